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


def scan(text: str) -> list[str]:
    """Return the tokens of a text.

    >>> scan("let a = vec2<f32>(1.5f); // two")
    ['let', 'a', '=', 'vec2', '<', 'f32', '>', '(', '1.5f', ')', ';']
    """
    found: list[str] = []
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "other":
            raise DeviceError(f"cuda: WGSL must consist of its tokens, got {match[0]!r}.")
        if match.lastgroup != "space":
            found.append(match[0])
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
        near = " ".join(self.tokens[max(self.at - 8, 0) : self.at + 4])
        raise DeviceError(
            f"cuda: the shader must have {expected} near `{near}`, got {self.next!r}. The CUDA "
            "driver runs the WGSL that Dala writes; run other shaders on a webgpu device."
        )
