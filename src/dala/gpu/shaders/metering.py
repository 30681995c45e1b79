"""Budgets of iterations for WGSL from strangers: every loop counts, and leaves beyond the budget.

WGSL has no recursion and no jumps, so a shader can only run long in ``for``, ``while`` and
``loop``. Expressions contain no braces: the first one after such a word opens the loop's body.
"""

from __future__ import annotations

import re
from itertools import count
from typing import Final

_LOOP: Final = re.compile(r"\b(?:for|while|loop)\b")


def metered(source: str, text: str, binding: int, limit: int) -> str | None:
    """Return a shader with a budget of iterations for each invocation, or None without loops.

    Its lines are those of the given one. The flag is an ``atomic<u32>`` that becomes 1.

    Args:
        source: The shader.
        text: The same with its comments blanked, so that offsets are equal.
        binding: A free binding for the flag.
        limit: The budget.

    >>> text = "fn f() { loop { } }"
    >>> print(metered(text, text, 2, 100))
    fn f() { loop { dala_left -= 1; if (dala_left < 0) { atomicStore(&dala_over, 1u); break; } } }
    @group(0) @binding(2) var<storage, read_write> dala_over: atomic<u32>;
    var<private> dala_left: i32 = 100;
    <BLANKLINE>
    """
    places = []
    for match in _LOOP.finditer(text):
        opened = text.find("{", match.end())
        if opened >= 0:
            places.append(opened + 1)
    if not places:
        return None
    left, over = _free("dala_left", text), _free("dala_over", text)
    step = f" {left} -= 1; if ({left} < 0) {{ atomicStore(&{over}, 1u); break; }}"
    parts, at = [], 0
    for place in sorted(set(places)):
        parts += [source[at:place], step]
        at = place
    parts += [
        source[at:],
        f"\n@group(0) @binding({binding}) var<storage, read_write> {over}: atomic<u32>;\n",
        f"var<private> {left}: i32 = {min(limit, (1 << 31) - 1)};\n",
    ]
    return "".join(parts)


def _free(name: str, text: str) -> str:
    """Return a name that a text does not contain."""
    names = (f"{name}{number or ''}" for number in count())
    return next(made for made in names if made not in text)
