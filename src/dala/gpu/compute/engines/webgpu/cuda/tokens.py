"""The tokens of a WGSL text, and a cursor over them."""

from __future__ import annotations

import re
from typing import Final, NoReturn

from dala.errors import DeviceError

_TOKEN: Final = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/)"
    r"|(?P<number>0[xX][0-9a-fA-F]+(?:li|lu|[iu])?"
    r"|(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?:li|lu|lf|[iufh])?)"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<sign>>>=|<<=|->|\+\+|--|&&|\|\||<=|>=|==|!=|<<|>>|[-+*/%&|^]=|[-+*/%&|^!~<>=.,;:(){}\[\]@])"
    r"|(?P<other>.)",
    re.DOTALL,
)


class Tokens(list[str]):
    """The tokens of a text, and where they begin in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.starts: list[int] = []

    def line(self, at: int) -> str:
        """Return the line of a token, with its number."""
        start = self.starts[at]
        number = self.text.count("\n", 0, start)
        return f"line {number + 1}, `{self.text.splitlines()[number].strip()}`"


def scan(text: str) -> Tokens:
    """Return the tokens of a text.

    >>> scan("let a = vec2<f32>(1.5f); // two")
    ['let', 'a', '=', 'vec2', '<', 'f32', '>', '(', '1.5f', ')', ';']
    """
    found = Tokens(text)
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "other":
            raise DeviceError(f"cuda: WGSL must consist of its tokens, got {match[0]!r}.")
        if match.lastgroup != "space":
            found.append(match[0])
            found.starts.append(match.start())
    return found


class TokenCursor:
    """A place in the tokens."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.at = 0

    @property
    def next(self) -> str:
        """The next token, or "" at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        """Return the next token and go on."""
        self.at += 1
        return self.tokens[self.at - 1]

    def skip(self, token: str) -> bool:
        """Go on if the next token is this one; return whether it was."""
        found = self.next == token
        self.at += found
        return found

    def expect(self, token: str) -> None:
        """Go on, or raise if the next token is another one."""
        if not self.skip(token):
            self.refuse(f"{token!r}")

    def close_angle(self) -> None:
        """Go beyond a ``>``, which may be the first half of ``>>``."""
        if self.next in (">>", ">=", ">>="):
            self.tokens[self.at] = self.next[1:]
        else:
            self.expect(">")

    def skip_block(self, opening: str, closing: str) -> None:
        """Go beyond a pair of brackets and what is between."""
        self.expect(opening)
        depth = 1
        while depth:
            token = self.take()
            depth += (token == opening) - (token == closing)

    def refuse(self, expected: str) -> NoReturn:
        """Raise an error about the next token."""
        self.refuse_at(self.at, expected, repr(self.next))

    def refuse_at(self, at: int, expected: str, got: str) -> NoReturn:
        """Raise an error about a token."""
        tokens = self.tokens
        where = tokens.line(at) if isinstance(tokens, Tokens) and at < len(tokens) else "its end"
        raise DeviceError(
            f"cuda: the shader must have {expected} in {where}, got {got}. The CUDA driver runs "
            "the WGSL that Dala writes; run other shaders on a webgpu device."
        )
