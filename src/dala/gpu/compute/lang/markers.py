"""Types for the annotations of kernel arguments. The front end reads only their names.

For type checkers they have the operators that kernels use. At run time they are empty, and
instantiating one raises an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Self, TypeAlias, cast

from dala.errors import DalaError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Array", "Date", "FrameNumber", "Image", "IntOrFloat", "Matrix", "Pixel", "Pointer",
    "Resolution", "Time", "Vector", "Within", "f32", "f64", "rgba",
    "s32", "s64", "u8", "u32", "vec2", "vec3", "vec4",
]  # fmt: skip


def outside_kernel(name: str) -> NoReturn:
    """Raise the error for using a name of the language outside a kernel."""
    raise DalaError(
        f"{name}: this name of the kernel language works only inside a kernel. "
        "Decorate the function with @dala.gpu.compute.kernel.",
        call=name,
    )


class Vector:
    """A vector of two to four numbers; arithmetic is componentwise.

    >>> Vector()
    Traceback (most recent call last):
    dala.errors.DalaError: Vector: this name of the kernel language works only inside a kernel. ...
    """

    def __init__(self, *components: float | Vector) -> None:
        outside_kernel(type(self).__name__)

    if TYPE_CHECKING:
        x: float
        y: float
        z: float
        w: float
        r: float
        g: float
        b: float
        a: float
        xy: vec2
        rg: vec2
        xyz: vec3
        rgb: vec3
        bgr: vec3

        def __add__(self, other: Vector | float) -> Self: ...
        def __radd__(self, other: float) -> Self: ...
        def __neg__(self) -> Self: ...
        def __lt__(self, other: Vector | float) -> bool: ...

        __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __add__
        __rsub__ = __rmul__ = __rtruediv__ = __radd__
        __abs__ = __neg__
        __gt__ = __le__ = __ge__ = __lt__

        def __getitem__(self, index: int) -> float: ...
        def __setitem__(self, index: int, value: float) -> None: ...
        def __iter__(self) -> Iterator[float]: ...


class vec2(Vector):  # noqa: N801 - the name that shading languages use
    """Two numbers: ``vec2(x, y)`` in a kernel, or the type of a parameter.

    >>> from dala.gpu.compute import kernel, vec2
    >>> @kernel
    ... def distance(x, *, to: vec2 = (3.0, 4.0)):
    ...     return length(to)
    >>> distance.params[0].size
    2
    """


class vec3(Vector):  # noqa: N801
    """Three numbers: ``vec3(x, y, z)`` in a kernel, or the type of a parameter.

    >>> from dala.gpu.compute import kernel, vec3
    >>> @kernel
    ... def luma(x, *, color: vec3 = (1.0, 0.5, 0.0)):
    ...     return dot(color, (0.2126, 0.7152, 0.0722))
    >>> luma.params[0].size
    3
    """


class vec4(Vector):  # noqa: N801
    """Four numbers: ``vec4(x, y, z, w)`` in a kernel, or the type of a parameter.

    >>> from dala.gpu.compute import kernel, vec4
    >>> @kernel
    ... def total(x, *, v: vec4 = (1.0, 2.0, 3.0, 4.0)):
    ...     return x + dot(v, (1.0, 1.0, 1.0, 1.0))
    >>> total.params[0].size
    4
    """


class Matrix:
    """A matrix of two, three or four columns: ``mat2(a, b, c, d)``; ``m @ v`` is their product.

    >>> from dala.gpu.compute import kernel
    >>> @kernel
    ... def turned(x):
    ...     return (mat2(0.0, 1.0, -1.0, 0.0) @ (x, 1.0)).y
    >>> turned.inputs
    ('x',)
    """

    def __init__(self) -> None:
        outside_kernel("Matrix")

    if TYPE_CHECKING:

        def __matmul__(self, other: Matrix | Vector | tuple[float, ...]) -> Any: ...
        def __rmatmul__(self, other: Vector) -> Any: ...
        def __mul__(self, other: Matrix | Vector | float) -> Any: ...
        def __add__(self, other: Matrix | float) -> Matrix: ...
        def __getitem__(self, column: int) -> Any: ...
        def __setitem__(self, column: int, value: Vector | tuple[float, ...]) -> None: ...

        __sub__ = __add__
        __rmul__ = __mul__


#: Inputs of a kernel that its surroundings give: ``*, time: Time``. Videos, scenes and surfaces set
#: them for each frame; elsewhere they are parameters, and 0.
#: Seconds since the beginning.
Time: TypeAlias = float
#: The number of the frame, from 0.
FrameNumber: TypeAlias = int
#: Width and height of the output.
Resolution: TypeAlias = vec2
#: The pointer in pixels from the upper left, and 1 while it is pressed.
Pointer: TypeAlias = vec3
#: Year, month (1 to 12), day, and seconds since midnight.
Date: TypeAlias = vec4


class Pixel(Vector):
    """An input read as one pixel per position: ``px.r px.g px.b px.a``; u8 is scaled to 0 to 1.

    >>> from dala.gpu.compute import Pixel, buffer, kernel, rgba
    >>> @kernel
    ... def swap(px: Pixel):
    ...     return rgba(px.b, px.g, px.r, px.a)
    >>> swap(buffer([[[255, 0, 9, 255]]], dtype="u8", device="cpu")).read_list()
    [9, 0, 255, 255]
    """

    width: int
    height: int
    shape: tuple[int, ...]


#: What is beyond the edges of an image: "clamp", "repeat", "mirror" or a color.
Edge: TypeAlias = "str | float | Vector | tuple[float, ...]"


class Image:
    """An input read as an image at relative offsets: ``img[dx, dy]``, clamped at the edges.

    >>> from dala.gpu.compute import Image, buffer, kernel
    >>> @kernel
    ... def shift(img: Image):
    ...     return img[1, 0]
    >>> shift(buffer([[10, 20, 30]], dtype="u8", device="cpu")).read_list()
    [20, 30, 30]
    """

    width: int
    height: int
    shape: tuple[int, ...]

    def __init__(self) -> None:
        outside_kernel("Image")

    def __getitem__(self, offset: tuple[float, float]) -> Pixel:
        outside_kernel("Image")

    def sample(
        self,
        x: float | Vector,
        y: float = 0.0,
        *,
        filter: str = "linear",
        edge: Edge = "clamp",
        lod: float = 0.0,
    ) -> Pixel:
        """Return the pixel at (x, y) in pixels; whole numbers are the centers of pixels.

        In programs, ``lod`` reads smaller copies of the image: of half the size for each whole.
        """
        outside_kernel("Image.sample")

    def sample_uv(
        self,
        u: float | Vector,
        v: float = 0.0,
        *,
        filter: str = "linear",
        edge: Edge = "clamp",
        lod: float = 0.0,
    ) -> Pixel:
        """Return the pixel at (u, v), where the image is 1 wide and 1 high."""
        outside_kernel("Image.sample_uv")


class Array:
    """An input read as an array at any index: ``a[i, j]``; each index is clamped to its axis.

    >>> from dala.gpu.compute import Array, buffer, kernel
    >>> @kernel
    ... def backwards(a: Array):
    ...     return a[len(a) - 1 - position(0)]
    >>> x = buffer([1.0, 2.0, 3.0], device="cpu")
    >>> backwards(x).read_list()
    [3.0, 2.0, 1.0]
    """

    shape: tuple[int, ...]

    def __init__(self) -> None:
        outside_kernel("Array")

    def __getitem__(self, index: int | tuple[int, ...]) -> float:
        outside_kernel("Array")

    def __len__(self) -> int:
        outside_kernel("Array")


if TYPE_CHECKING:
    from typing import Annotated as Within  # to a type checker, Within[int, 0, 16] is an int

    class f32(float):  # noqa: N801
        """A 32-bit float."""

    class f64(float):  # noqa: N801
        """A 64-bit float."""

    class s32(int):  # noqa: N801
        """A signed 32-bit integer."""

    class s64(int):  # noqa: N801
        """A signed 64-bit integer."""

    class u32(int):  # noqa: N801
        """An unsigned 32-bit integer."""

    class u8(int):  # noqa: N801
        """An unsigned 8-bit integer."""

    #: A parameter that is an int if the caller passes an int, else a float.
    IntOrFloat = float
else:

    class _Dtype(str):
        """The name of a dtype; inside a kernel also a cast."""

        __slots__ = ()

        def __call__(self, value: float) -> NoReturn:
            outside_kernel(str(self))

    #: dtypes: use them as annotations (``mask: u8``), as casts, and for ``dtype=``.
    f32, f64, s32, s64, u32, u8 = map(_Dtype, ("f32", "f64", "s32", "s64", "u32", "u8"))

    class IntOrFloat:
        """The type of a parameter that is an int if the caller passes an int, else a float."""

    class Within:
        """The type of a parameter with a range: ``radius: Within[int, 0, 16] = 2``.

        Both bounds are included. A bound of ``inf`` or ``-inf`` accepts every finite number on that
        side.

        >>> from dala.gpu.compute import Within, kernel
        >>> @kernel
        ... def dim(x, *, amount: Within[float, 0, 1] = 0.5):
        ...     return x * amount
        >>> dim.params[0].expected
        'a number from 0 to 1'
        """

        def __class_getitem__(cls, given: tuple[object, ...]) -> object:
            return Annotated[given]


def rgba(
    r: float | Vector, g: float | None = None, b: float | None = None, a: float = 1.0
) -> Pixel:
    """Make a pixel inside a kernel. Outside a kernel, return a tuple of four numbers.

    >>> rgba(1, 0, 0)
    (1, 0, 0, 1.0)
    """
    return cast("Pixel", (r, r if g is None else g, r if b is None else b, a))
