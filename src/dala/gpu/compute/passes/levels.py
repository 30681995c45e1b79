"""Mipmaps: passes that fill a picture with smaller copies of an image, for ``sample(lod=)``.

Of an image of any size the levels are in one picture of that size (``lang/library/levels.kernel``
says where), which is computed four levels at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from dala.gpu.compute.kernel import Kernel, text_kernel
from dala.gpu.compute.lang.declaration import LEVELS
from dala.gpu.compute.passes.program import ProgramPass

#: Levels that a pass computes, and passes.
_EACH, _PASSES = 4, 3

_TEXT: Final = """
def levels(img: Image, {done}*, first: int):
    y, x = position()
    w, h = img.width, img.height
    found = {start}
    for level in range(first + 1, first + 5):
        i = x - min(w - (w >> (level - 1)), w - 1)
        j = y - min(h - (h >> (level - 1)), h - 1)
        wide, high = max(w >> level, 1), max(h >> level, 1)
        if i >= 0 and i < wide and j >= 0 and j < high and (max(w, h) >> level) > 0:
            n = 1 << (level - first - 1)
            total = vec4(0.0)
            for k in range(n * n):
                u, v = (i + (k % n + 0.5) / n) / wide, (j + (k // n + 0.5) / n) / high
                total += {read}.rgba
            found = total / float(n * n)
    return found
"""
#: Of the image, and of the last level of those before.
_FIRST: Final = _TEXT.format(done="", start="vec4(0.0)", read="img.sample_uv(u, v)")
_NEXT: Final = _TEXT.format(
    done="done: Image, ", start="done[0, 0]", read="before(done, u, v, first)"
)
_BEFORE: Final = """
def place(at, size: int, level: int):
    count = max(size >> level, 1)
    return clamp(at * count - 0.5, 0.0, count - 1.0) + min(size - (size >> (level - 1)), size - 1)


def before(done: Image, u, v, level: int):
    return done.sample(place(u, done.width, level), place(v, done.height, level))
"""


def with_levels(passes: Sequence[ProgramPass]) -> Iterator[ProgramPass]:
    """Yield the passes of a program, with added passes that make the levels of images."""
    wanted: dict[str, None] = {}
    for p in passes:
        args = zip(p.kernel.decl.args, p.sources, strict=True)
        wanted |= {source: None for arg, source in args if arg.levels}
    written = {p.target for p in passes}
    for source in wanted:
        if source not in written:
            yield from _passes(source)
    for p in passes:
        decl = p.kernel.decl.with_levels()
        more = {f"{a.name}{LEVELS}": f"{p.reads.get(a.name, a.name)}{LEVELS}" for a in decl.args}
        reads = {n: more.get(n) or p.reads.get(n, n) for n in (a.name for a in decl.args)}
        made = Kernel(p.kernel.name, decl, p.kernel.limits) if decl != p.kernel.decl else p.kernel
        yield replace(p, kernel=made, reads=reads) if made is not p.kernel else p
        if p.target in wanted:
            yield from _passes(p.target)


def _passes(source: str) -> Iterator[ProgramPass]:
    target = f"{source}{LEVELS}"
    for number in range(_PASSES):
        text = _BEFORE + _NEXT if number else _FIRST
        reads = {"img": source, "done": target}
        params = {"first": number * _EACH}
        yield ProgramPass(text_kernel("levels", text), target, 1.0, "f32", reads, params)
