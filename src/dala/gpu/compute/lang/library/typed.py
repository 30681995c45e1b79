"""Source of functions that are in no file: typed, piped, given by ``-c``, or run by ``exec``.

Python 3.13 and IPython keep such text. Before that, it may still be in its place; a text
counts only if it compiles to the function's code.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator
from itertools import chain
from types import CodeType

#: Lines of a session that are looked at, and strings of each frame.
_MOST_LINES = 500
_MOST_STRINGS = 200


def source_of(code: CodeType) -> tuple[list[str], int] | None:
    """Return the lines of a function's source and the number of the first, or None."""
    if not code.co_filename.startswith("<"):
        return None
    for text in chain(_arguments(), _standard_input(code), _session(code), _strings(code)):
        try:
            module = compile(text, code.co_filename, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
        for found in _codes(module):
            if _same(found, code):
                lines = text.splitlines(keepends=True)[found.co_firstlineno - 1 :]
                return inspect.getblock(lines), found.co_firstlineno
    return None


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _same(a: CodeType, b: CodeType) -> bool:
    plain = [[c for c in x.co_consts if not isinstance(c, CodeType)] for x in (a, b)]
    return (a.co_name, a.co_code, a.co_names, a.co_varnames) == (
        b.co_name, b.co_code, b.co_names, b.co_varnames,
    ) and repr(plain[0]) == repr(plain[1])  # fmt: skip


def _arguments() -> Iterator[str]:
    """Yield the text of ``python -c``."""
    given = sys.orig_argv
    if "-c" in given[:-1]:
        yield given[given.index("-c") + 1]


def _standard_input(code: CodeType) -> Iterator[str]:
    """Yield the text of ``python -`` where the input is a file, which can be read again."""
    if code.co_filename != "<stdin>":
        return
    try:
        size = os.fstat(0).st_size
        data = os.pread(0, size, 0) if size else b""
    except (OSError, AttributeError):
        return
    yield data.decode("utf-8", "replace")


def _session(code: CodeType) -> Iterator[str]:
    """Yield the last lines of an interactive session that may define the function."""
    readline = sys.modules.get("readline")
    if readline is None or not hasattr(sys, "ps1"):
        return
    last = readline.get_current_history_length()
    lines = [
        readline.get_history_item(i) or "" for i in range(max(last - _MOST_LINES, 0), last + 1)
    ]
    for first in reversed(range(len(lines))):
        if lines[first].startswith(("@", "def ")):
            yield "\n".join(lines[first:]) + "\n"


def _strings(code: CodeType) -> Iterator[str]:
    """Yield strings of the calling functions that may be the text given to ``exec``."""
    frame = inspect.currentframe()
    while frame is not None:
        values = list(frame.f_locals.values())[:_MOST_STRINGS]
        yield from (v for v in values if isinstance(v, str) and f"def {code.co_name}" in v)
        if frame.f_back is None:
            return
        frame = frame.f_back
