"""The kernel language for completion: functions, types, constants and kernels to start from."""

from __future__ import annotations

import inspect
import keyword
from typing import Final

from dala.gpu.compute.lang.declaration import CONSTANTS
from dala.gpu.compute.lang.functions import FUNCTIONS, Function
from dala.gpu.compute.lang.markers import Array, Image, Pixel, Vector, Within, rgba
from dala.studio.catalogue.parameters import JsonObject

#: The statements and operators of Python that kernels have.
_KEYWORDS: Final = ("def", "return", "if", "else", "elif", "for", "in", "range", "and", "or", "not")
#: Types of inputs and parameters, with the form that is inserted.
_TYPES: Final = {
    "Pixel": (Pixel, "px: Pixel"),
    "Image": (Image, "img: Image"),
    "Array": (Array, "a: Array"),
    "Vector": (Vector, "v: Vector"),
    "Within": (Within, "amount: Within[float, 0.0, 1.0] = 0.5"),
}
#: Kernels to start from, by title.
TEMPLATES: Final[dict[str, str]] = {
    "Color": '''\
def tint(
    px: Pixel,
    *,
    amount: Within[float, 0.0, 1.0] = 0.4,
    warmth: Within[float, -1.0, 1.0] = 0.3,
):
    """Tint every pixel."""
    warm = vec3(1.0 + warmth * 0.5, 1.0, 1.0 - warmth * 0.5)
    return rgba(mix(px.rgb, px.rgb * warm, amount), px.a)
''',
    "Neighborhood": '''\
def outline(img: Image, *, strength: Within[float, 0.0, 8.0] = 2.0):
    """Darken edges."""
    px = img[0, 0]
    dx = img[1, 0].rgb - img[-1, 0].rgb
    dy = img[0, 1].rgb - img[0, -1].rgb
    edge = clamp(length(dx) + length(dy), 0.0, 1.0)
    return rgba(px.rgb * (1.0 - clamp(edge * strength, 0.0, 1.0)), px.a)
''',
    "Position": '''\
def stripes(
    px: Pixel,
    *,
    width: Within[float, 2.0, 64.0] = 12.0,
    dark: Within[float, 0.0, 1.0] = 0.5,
):
    """Darken every second stripe."""
    odd = step(0.5, fract(position(1) / (2.0 * width)))
    return rgba(px.rgb * (1.0 - dark * odd), px.a)
''',
}  # fmt: skip


def language() -> list[JsonObject]:
    """Return the names of the kernel language with their documentation.

    >>> next(row for row in language() if row["name"] == "mix")["signature"]
    'mix(x, y, t)'
    """
    rows: list[JsonObject] = [
        _row(f.name, "function", _signature(f), f.doc) for f in FUNCTIONS.values()
    ]
    rows.append(_row("rgba", "function", "rgba(rgb, a)", _first_line(rgba)))
    for name, (marker, form) in _TYPES.items():
        rows.append(_row(name, "type", form, _first_line(marker)))
    for name, value in CONSTANTS.items():
        rows.append(_row(name, "constant", name, f"{value}"))
    known = {row["name"] for row in rows}
    rows += [
        _row(word, "keyword", word, "")
        for word in _KEYWORDS
        if word not in known and (keyword.iskeyword(word) or word == "range")
    ]
    return rows


def templates() -> list[JsonObject]:
    """Return kernels to start from.

    >>> [row["title"] for row in templates()]
    ['Color', 'Neighborhood', 'Position']
    """
    return [{"name": t.lower(), "title": t, "text": text} for t, text in TEMPLATES.items()]


def _row(name: str, kind: str, signature: str, doc: str) -> JsonObject:
    return {"name": name, "kind": kind, "signature": signature, "doc": doc}


def _signature(function: Function) -> str:
    """Return a call with the names of the builder's arguments, which are those of the language."""
    names = [
        p.name
        for p in list(inspect.signature(function.build).parameters.values())[1:]
        if p.kind is not inspect.Parameter.VAR_POSITIONAL
    ]
    if len(names) < function.least:
        names = {1: ["x"], 2: ["a", "b"], 3: ["a", "b", "c"]}.get(function.least, names)
    shown = ", ".join(names[: function.most])
    return f"{function.name}({shown})"


def _first_line(thing: object) -> str:
    return inspect.cleandoc(getattr(thing, "__doc__", None) or "").partition("\n")[0]
