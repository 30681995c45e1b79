"""Names that mark a kernel's arguments. They are never instantiated; the front end reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

__all__ = [
    "Array", "Image", "Number", "Pixel", "Within", "f32", "f64", "rgba", "s32", "s64", "u8", "u32",
    "vec2", "vec3", "vec4",
]  # fmt: skip


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


if TYPE_CHECKING:
    from typing import Annotated as Within  # to a type checker, Within[int, 0, 16] is an int
else:

    class Within:
        """Marks a parameter with the range it must lie in, both ends included.

        ``radius: Within[int, 0, 16] = 2``. At an end of ``inf`` or ``-inf`` any finite number goes.
        """

        def __class_getitem__(cls, given: tuple[Any, ...]) -> Any:
            return Annotated[given]


class vec2:  # noqa: N801 - named as in every shading language
    """Marks a parameter of two numbers; inside a kernel, ``vec2(x, y)`` makes one."""


class vec3:  # noqa: N801
    """Marks a parameter of three numbers; inside a kernel, ``vec3(x, y, z)`` makes one."""

    r: Any
    g: Any
    b: Any


class vec4:  # noqa: N801
    """Marks a parameter of four numbers; inside a kernel, ``vec4(x, y, z, w)`` makes one."""


def rgba(r: Any, g: Any = None, b: Any = None, a: Any = 1.0) -> Any:
    """Builds a pixel inside a kernel; outside, a tuple.

    >>> rgba(1, 0, 0)
    (1, 0, 0, 1.0)
    """
    return (r, r if g is None else g, r if b is None else b, a)
