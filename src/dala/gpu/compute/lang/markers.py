"""Names that mark a kernel's arguments. They are never instantiated; the front end reads them."""

from __future__ import annotations

from typing import Any


class Pixel:
    """Marks an input as pixels: ``px.r px.g px.b px.a``, u8 images as 0..1."""

    r: Any
    g: Any
    b: Any
    a: Any
    rgb: Any
    width: int
    height: int
    shape: tuple[int, ...]


class Image:
    """Marks an input as an image read at relative offsets: ``img[dx, dy]``, edges clamped."""

    width: int
    height: int
    shape: tuple[int, ...]

    def __getitem__(self, offset: tuple[int, int]) -> Any:
        raise TypeError("Image marks an argument of a kernel; it holds no pixels")


class Array:
    """Marks an input as an array read at any index: ``a[i, j]``, indexes clamped."""

    shape: tuple[int, ...]

    def __getitem__(self, index: Any) -> Any:
        raise TypeError("Array marks an argument of a kernel; it holds no numbers")


#: dtypes, to annotate elements with (``mask: u8``) or to pass as ``dtype=``.
f32, f64, s32, s64, u32, u8 = "f32", "f64", "s32", "s64", "u32", "u8"


class Number:
    """Marks a parameter that is computed as an int where the caller gives one, else as a float."""


class vec2:  # noqa: N801 - named as in every shading language
    """Marks a parameter of two numbers; inside a kernel, ``vec2(x, y)`` makes one."""


class vec3:  # noqa: N801
    """Marks a parameter of three numbers; inside a kernel, ``vec3(x, y, z)`` makes one."""


class vec4:  # noqa: N801
    """Marks a parameter of four numbers; inside a kernel, ``vec4(x, y, z, w)`` makes one."""


def rgba(r: Any, g: Any = None, b: Any = None, a: Any = 1.0) -> Any:
    """Builds a pixel inside a kernel; outside, a tuple.

    >>> rgba(1, 0, 0)
    (1, 0, 0, 1.0)
    """
    return (r, r if g is None else g, r if b is None else b, a)
