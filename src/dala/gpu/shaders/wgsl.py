"""WGSL reflection for surfaces: the bindings of a shader, and compiler messages as errors.

Only declarations are parsed here; the compiler checks the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NoReturn

from dala.errors import ShaderError
from dala.gpu.shaders.metering import metered

#: The largest number of characters in a shader.
MAX_SOURCE: Final = 1 << 20
#: The deepest nesting of operators and brackets; compilers recurse over them.
MAX_DEPTH: Final = 500

#: Bindings with a fixed meaning: the pixels, and the block of size and parameters.
PIXELS: Final = 0
BLOCK: Final = 1

#: The buffer type in a bind group layout, by the template of ``var``.
_KINDS: Final = {
    "uniform": "uniform",
    "storage": "read-only-storage",
    "storage,read": "read-only-storage",
    "storage,read_write": "storage",
}

_OUTSIDE: Final = re.compile(r"//|/\*")
#: What ends a line comment for compilers: more than a line feed.
_LINE_END: Final = re.compile("[\n-\r\x85\u2028\u2029]")
_INSIDE: Final = re.compile(r"/\*|\*/")
_ATTRIBUTES: Final = r"(?:@\s*\w+\s*(?:\((?:[^()]|\([^()]*\))*\))?\s*)+"
_VARIABLE: Final = re.compile(rf"({_ATTRIBUTES})var\s*(?:<([^<>]*)>)?\s*(\w+)\s*[:=;]")
_NUMBERED: Final = re.compile(r"@\s*(group|binding)\s*\(([^()]*)\)")
_ENTRY: Final = re.compile(rf"({_ATTRIBUTES})fn\s+(\w+)")
_TOKEN: Final = re.compile(r"[(\[{)\]},;<+\-*/%&|^!~.]|\belse\b")
_ELSE: Final = re.compile(r"\s*else\b")
_INTEGER: Final = re.compile(r"(0[xX][0-9a-fA-F]+|[0-9]+)[iu]?")

_PROBLEM: Final = re.compile(r"Shader (?:'[^\n]*?' )?(?:parsing|validation) error: ([^\n]*)")
_PLACE: Final = re.compile(r"┌─ [^\n]*?:(\d+):(\d+)")
_LABEL: Final = re.compile(r"^[^\n]*\^ ([^\n]+)$", re.MULTILINE)
_NOTE: Final = re.compile(r"^\s*= (?:note: )?([^\n]+)$", re.MULTILINE)
_TOO_SMALL: Final = re.compile(
    r"(?:binding index (?P<index>\d+) )?is bound with size (?P<got>\d+) where[^\n]*?"
    r"expects (?P<expected>\d+)(?: in group\[0\] compact index (?P<place>\d+))?"  # wgpu 0.31
)


@dataclass(frozen=True)
class ShaderBinding:
    """A variable that a buffer is bound to."""

    index: int
    name: str
    #: "storage", "read-only-storage" or "uniform", as WebGPU calls them.
    kind: str


@dataclass(frozen=True)
class Wgsl:
    """A shader: its source, entry point, and bindings sorted by index."""

    source: str
    entry: str
    bindings: tuple[ShaderBinding, ...]
    #: The source with a budget of iterations, if it has loops. Its flag has the last binding.
    metered: str | None = None
    #: The budget.
    limit: int = 0
    #: The name in errors.
    name: str = field(default="", compare=False)

    def error(self, problem: str) -> ShaderError:
        """Return an error of this shader."""
        return ShaderError(problem, shader=self.name)

    @property
    def flag(self) -> int:
        """The binding of the flag of a metered shader."""
        return self.bindings[-1].index + 1

    def block(self, given: str) -> ShaderBinding | None:
        """Return the binding of size and parameters; raise where parameters are given without."""
        found = next((b for b in self.bindings if b.index == BLOCK), None)
        if found is None and given:
            raise self.error(
                f"got {given}, but the shader binds no block for them. Declare "
                "@group(0) @binding(1) var<uniform> with width, height and the params"
            )
        return found


def reflect(source: str, shader: str, limit: int = 0) -> Wgsl:
    """Parse the bindings and the entry point of a shader, and give its loops a budget.

    Args:
        source: The shader.
        shader: Its name in errors.
        limit: The most iterations of an invocation; 0 for any number.

    Raises:
        ShaderError: The shader binds something that a surface does not provide.
    """
    if len(source) > MAX_SOURCE:
        raise ShaderError(
            f"the source must have at most {MAX_SOURCE} characters, got {len(source)}",
            shader=shader,
        )
    if "\0" in source:
        _fail(source, shader, source.index("\0"), "the source has a NUL character here. Remove it")
    text = without_comments(source)
    _check_depth(text, source, shader)
    found: dict[int, ShaderBinding] = {}
    for match in _VARIABLE.finditer(text):
        numbers = dict(_NUMBERED.findall(match[1]))
        if not numbers:
            continue  # not bound to a buffer
        name, fail = match[3], partial(_fail, source, shader, match.start(3))
        if "group" not in numbers or "binding" not in numbers:
            fail(f"{name} needs both @group(0) and @binding(n)")
        group, index = (_integer(numbers[k], fail) for k in ("group", "binding"))
        if group != 0:
            fail(f"{name} is in group {group}; surfaces bind group 0")
        kind = _KINDS.get(re.sub(r"\s", "", match[2] or "").rstrip(","))
        if kind is None:
            fail(f"{name} is neither var<uniform> nor var<storage>; surfaces bind buffers only")
        if index == PIXELS and kind != "storage":
            fail(f"binding 0 is the pixels: var<storage, read_write> {name}: array<u32>")
        if index > BLOCK and kind == "storage":
            fail(
                f"{name} is writable, but only the pixels at binding 0 may be; "
                "write var<storage, read>"
            )
        if index in found:
            fail(f"binding {index} is already {found[index].name}")
        found[index] = ShaderBinding(index, name, kind)
    if PIXELS not in found:
        raise ShaderError(
            "the shader does not bind the pixels. Declare "
            "@group(0) @binding(0) var<storage, read_write> pixels: array<u32>;",
            shader=shader,
        )
    bindings = tuple(found[i] for i in sorted(found))
    counting = metered(source, text, bindings[-1].index + 1, limit) if limit else None
    return Wgsl(source, _entry(text, shader), bindings, counting, limit, shader)


def explain(message: str, wgsl: Wgsl) -> ShaderError:
    """Return the error for a message of wgpu about a shader, with line and caret."""
    short = _TOO_SMALL.search(message)
    if short is not None:
        index = short["index"] or sorted(b.index for b in wgsl.bindings)[int(short["place"])]
        return _binding_too_small(wgsl, int(index), int(short["got"]), int(short["expected"]))
    place = _PLACE.search(message)
    problem = _PROBLEM.search(message)
    if problem is None:
        lines = [line.strip() for line in message.splitlines() if line.strip()]
        words = [x for x in lines if x not in ("Validation Error", "Caused by:")]
        words = [x for x in words if not x.startswith("In wgpu")] or words
        return wgsl.error("; ".join(words) or "the compiler refused it")
    details = [m[1].strip() for m in (_LABEL.search(message), _NOTE.search(message)) if m]
    if place is None:
        return wgsl.error("; ".join([problem[1], *details]))
    line, column = int(place[1]), int(place[2])
    return ShaderError(
        problem[1],
        shader=wgsl.name,
        lineno=line,
        column=column - 1,
        line=_line(wgsl.source, line),
        detail="; ".join(details),
    )


def _binding_too_small(wgsl: Wgsl, index: int, got: int, expected: int) -> ShaderError:
    binding = next(b for b in wgsl.bindings if b.index == index)
    if binding.index == PIXELS:
        problem = f"the pixels must have {expected} bytes, the surface has {got}"
    elif binding.index == BLOCK:
        problem = (
            f"the block {binding.name!r} has {expected} bytes: 8 for width and height and "
            f"{expected - 8} of params; got {got - 8} bytes of params"
        )
    else:
        problem = f"the uniform {binding.name!r} must have {expected} bytes, got {got}"
    return wgsl.error(problem)


def without_comments(source: str) -> str:
    """Return the text with comments replaced by spaces, so that offsets stay valid."""
    out: list[str] = []
    depth = at = 0  # block comments nest
    while (match := (_INSIDE if depth else _OUTSIDE).search(source, at)) is not None:
        start, end = match.span()
        out.append(_blank(source[at:start]) if depth else source[at:start])
        if match[0] == "//":
            ends = _LINE_END.search(source, start)
            end = len(source) if ends is None else ends.start()
        else:
            depth += 1 if match[0] == "/*" else -1
        out.append(_blank(source[start:end]))
        at = end
    out.append(_blank(source[at:]) if depth else source[at:])
    return "".join(out)


def _check_depth(text: str, source: str, shader: str) -> None:
    """Refuse nesting that would overflow the compiler's stack and abort the process."""
    outer: list[tuple[int, int]] = []
    base = here = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "([{":
            outer.append((base, here))
            base, here = base + here + 1, 0
        elif token in ")]}":
            base, here = outer.pop() if outer else (0, 0)
            if token == "}" and _ELSE.match(text, match.end()) is None:
                here = 0
        elif token in ",;":
            here = 0
        else:
            here += 1
        if base + here > MAX_DEPTH:
            _fail(
                source,
                shader,
                match.start(),
                f"more than {MAX_DEPTH} operators and brackets are chained here. Split it with let",
            )


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _entry(text: str, shader: str) -> str:
    names = [m[2] for m in _ENTRY.finditer(text) if re.search(r"@\s*compute\b", m[1])]
    if len(names) == 1 or "main" in names:
        return "main" if "main" in names else names[0]
    if not names:
        raise ShaderError("the shader has no function with @compute", shader=shader)
    raise ShaderError(
        f"several functions have @compute ({', '.join(names)}); name one of them main",
        shader=shader,
    )


def _integer(text: str, fail: Callable[[str], NoReturn]) -> int:
    match = _INTEGER.fullmatch(text.strip().rstrip(","))
    if match is None:
        fail(f"@group and @binding must be integer literals, got {text!r}")
    return int(match[1], 0) if match[1][:2] in ("0x", "0X") else int(match[1])


def _line(source: str, number: int) -> str:
    lines = source.split("\n")
    return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""


def _fail(source: str, shader: str, at: int, problem: str) -> NoReturn:
    line = source.count("\n", 0, at) + 1
    column = at - (source.rfind("\n", 0, at) + 1)
    raise ShaderError(problem, shader=shader, lineno=line, column=column, line=_line(source, line))
