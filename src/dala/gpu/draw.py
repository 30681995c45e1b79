"""The drawing calls. Each is a function that takes a surface first, and a method of ``Surface``.

A call encodes one command and appends it to the surface's queue. Most calls are derived from the
rows of ``dala.gpu.command``; here are those that do more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala.errors import CommandError
from dala.gpu import checks, protocol
from dala.gpu import command as encode
from dala.gpu.checks import renderer_of
from dala.gpu.derive import compiled, described
from dala.gpu.protocol import BytesLike, CommandRow
from dala.gpu.render.thread import check_pixels
from dala.gpu.vector import calls as vector_calls
from dala.gpu.vector import words
from dala.gpu.vector.calls import put
from dala.gpu.vector.shapes import PENS, as_shape, has_fraction
from dala.typing import ColorLike as ColorLike
from dala.typing import NDArray, Params

if TYPE_CHECKING:
    from dala.gpu.compute.kernel import Kernel
    from dala.gpu.compute.passes.program import KernelProgram
    from dala.gpu.surface import Surface

_RESIZE: Final = protocol.OPCODES["resize"]
_CALL: Final = """
def {name}(s: Surface, {arguments}) -> None:
    try:
        data = {pack}
    except unusual:
        data = encode({values})
    try:
        put = s._put
    except AttributeError:
        raise checks.not_a_surface({name!r}, s) from None
    put(data)
"""
_PEN_CALL: Final = _CALL.replace(
    "    try:\n        data",
    "    if width is not None:\n"
    "        vector_calls.put(s, {name!r}, as_shape({name!r}, {values}, width))\n"
    "        return\n"
    "    try:\n        data",
    1,
)
_LARGE_CALL: Final = """
def {name}(s: Surface, {arguments}) -> None:
    put(s, {name!r}, encode({values}))
"""


_PEN_DOC: Final = """

    With ``width=``, or where a coordinate has a fraction, the line is antialiased and that wide.
"""


# streams --------------------------------------------------------------------------------------
def batch(s: Surface, commands: Iterable[bytes]) -> None:
    """Execute encoded commands together; the fast way to draw many primitives.

    >>> from dala import gpu
    >>> from dala.gpu.command import encode_fill_rect
    >>> commands = [encode_fill_rect(x, 0, 1, 1, "red") for x in (0, 2)]
    >>> with gpu.create_surface(3, 1) as s:
    ...     gpu.batch(s, commands)
    ...     gpu.get_pixels(s).hex(" ", 4)
    'ff0000ff 00000000 ff0000ff'

    Args:
        s: The surface.
        commands: Commands made by ``dala.gpu.command.encode_*``.

    Raises:
        ProtocolError: The bytes are malformed; none of them was applied.
    """
    renderer_of(s, "batch")
    items = commands if type(commands) is list else encode.command_list(commands)
    try:
        _submit(s, "batch", protocol.encode_commands(items))
    except (TypeError, ValueError):  # ProtocolError too: an item without bytes, for example
        encode.encode_batch(items)  # names the item
        raise


def submit(s: Surface, data: BytesLike) -> None:
    """Execute a stream of command bytes, from a file or the network for example.

    >>> from dala import gpu
    >>> from dala.gpu.command import encode_clear, encode_present
    >>> with gpu.create_surface(2, 1) as s:
    ...     s.submit(encode_clear("red") + encode_present())
    ...     s.get_pixels().hex(" ", 4)
    'ff0000ff ff0000ff'

    Raises:
        ProtocolError: The bytes are malformed; none of them was applied.
    """
    renderer_of(s, "submit")
    _submit(s, "submit", protocol.as_bytes("submit", "data", data))


def _submit(s: Surface, call: str, data: bytes) -> None:
    renderer_of(s, call).canvas.check(data)
    if data:
        put(s, call, data)
        if _RESIZE in data:
            s._note_resize()


# compute --------------------------------------------------------------------------------------
def dispatch_compute(
    s: Surface,
    shader: str | Kernel | KernelProgram,
    params: BytesLike | Params = b"",
    workgroups: tuple[int, int, int] = (1, 1, 1),
) -> None:
    """Run a shader or kernel over the pixels; see :func:`load_shader`.

    Args:
        s: The surface.
        shader: A kernel or program with one input, ``px: Pixel`` or ``img: Image``, or none; or the
            name of a loaded shader, or source text.
        params: The parameters: a dict, or their bytes.
        workgroups: The number of WGSL workgroups along x, y and z. Kernels ignore it.

    >>> from dala import gpu
    >>> with gpu.create_surface(1, 1) as s:
    ...     gpu.clear(s, "red")
    ...     gpu.dispatch_compute(s, "def swap(px: Pixel): return rgba(px.b, px.g, px.r, px.a)")
    ...     dim = "def dim(px: Pixel, *, by): return rgba(px.r * by, px.g * by, px.b * by, px.a)"
    ...     gpu.dispatch_compute(s, dim, {"by": 0.2})
    ...     gpu.get_pixels(s).hex()
    '000033ff'
    """
    if isinstance(shader, str) and not isinstance(params, Mapping):
        put(s, "dispatch_compute", encode.encode_dispatch_compute(shader, params, workgroups))
        return
    from dala.gpu.shaders.dispatch import post_dispatch

    post_dispatch(renderer_of(s, "dispatch_compute"), shader, params, workgroups)


def supports_compute(s: Surface) -> bool:
    """Return True if this machine can run WGSL shaders. Kernel text runs everywhere.

    >>> from dala import gpu
    >>> with gpu.create_surface(1, 1) as s:
    ...     gpu.supports_compute(s) in (True, False)
    True
    """
    from dala.gpu.shaders.dispatch import wgsl_available

    renderer_of(s, "supports_compute")
    return wgsl_available()


# frames and the end ---------------------------------------------------------------------------
def read_pixels(s: Surface, x: int, y: int, w: int, h: int) -> bytes:
    """Return the pixels of a rectangle as RGBA bytes; waits for the queued commands.

    >>> from dala import gpu
    >>> with gpu.create_surface(8, 8) as s:
    ...     gpu.clear(s, "red")
    ...     gpu.read_pixels(s, 4, 4, 1, 1)
    b'\\xff\\x00\\x00\\xff'

    Raises:
        CommandError: The rectangle is not inside the surface.
    """
    renderer = renderer_of(s, "read_pixels")
    encode.encode_read_pixels(x, y, w, h)  # checks the numbers
    return renderer.sync(lambda: renderer.read(int(x), int(y), int(w), int(h)))


def get_pixels(s: Surface) -> bytes:
    """Return all pixels as RGBA bytes, row by row; waits for the queued commands.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.clear(s, "red")
    ...     gpu.get_pixels(s).hex(" ", 4)
    'ff0000ff ff0000ff'
    """
    return renderer_of(s, "get_pixels").copy_pixels(np.ndarray.tobytes)


def set_pixels(s: Surface, rgba: BytesLike) -> None:
    """Replace all pixels, in order with the drawing calls.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.set_pixels(s, bytes([1, 2, 3, 255, 4, 5, 6, 255]))
    ...     gpu.get_pixels(s).hex(" ", 4)
    '010203ff 040506ff'

    Args:
        s: The surface.
        rgba: Bytes, or a uint8 array of shape (height, width, 4).
    """
    renderer = renderer_of(s, "set_pixels")
    pixels = checks.pixel_array("set_pixels", "rgba", rgba)
    check_pixels("set_pixels", pixels, *s.size)
    if not isinstance(rgba, bytes):
        pixels = pixels.copy()
    renderer.post(lambda: renderer.write("set_pixels", pixels), pixels.nbytes)


def with_pixels(s: Surface, fn: Callable[[NDArray], BytesLike | None]) -> None:
    """Call a function with the pixels; nothing else is drawn while it runs.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.clear(s, "white")
    ...     gpu.with_pixels(s, lambda pixels: pixels // 2)
    ...     gpu.get_pixels(s).hex(" ", 4)
    '7f7f7f7f 7f7f7f7f'

    Args:
        s: The surface.
        fn: A function of a uint8 array of shape (height, width, 4). It changes the array in place,
            or returns other pixels of the same size. If it raises, the pixels stay unchanged.
    """
    renderer = renderer_of(s, "with_pixels")
    if not callable(fn):
        raise CommandError.invalid("with_pixels", "fn", "a function of an array", fn)
    with renderer.exclusive() as canvas:
        copy = canvas.pixels.copy()
        returned = fn(copy)
        pixels = copy
        if returned is not None:
            pixels = checks.pixel_array("with_pixels", "the result of fn", returned)
        renderer_of(s, "with_pixels")
        renderer.write("with_pixels", pixels)


def resize(s: Surface, w: int, h: int) -> None:
    """Change the size. Pixels that fit are kept, new ones are transparent, the clip is removed.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     gpu.clear(s, "red")
    ...     gpu.resize(s, 3, 1)
    ...     gpu.get_pixels(s).hex(" ", 4)
    'ff0000ff ff0000ff 00000000'
    """
    w, h = checks.checked_size("resize", "w", w), checks.checked_size("resize", "h", h)
    put(s, "resize", encode.encode_resize(w, h))
    s._note_resize()


def wait_closed(s: Surface, timeout: float | None = None) -> bool:
    """Wait until the viewer closes the surface's window or page. Return True once it is closed.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     pass
    >>> gpu.wait_closed(s)
    True

    Args:
        s: The surface.
        timeout: Seconds to wait at most; None waits without a limit.
    """
    from dala.gpu.presenters import wait_until_closed

    if not hasattr(s, "_renderer"):
        raise checks.not_a_surface("wait_closed", s)
    return wait_until_closed(s, timeout)


def destroy_surface(s: Surface) -> None:
    """Close a surface and end its thread. Calling it again does nothing.

    >>> from dala import gpu
    >>> s = gpu.create_surface(2, 1)
    >>> gpu.destroy_surface(s)
    >>> s.closed
    True
    """
    if not hasattr(s, "_renderer"):
        raise checks.not_a_surface("destroy_surface", s)
    s.close()


# calls derived from rows ----------------------------------------------------------------------
def _encode_anywhere(row: CommandRow) -> Callable[[Sequence[object]], bytes]:
    """Return the encoder of a call: positions may be negative, unlike those of u32 fields.

    Then the command ``<name>_signed`` is used, or the part at positions of 0 and above.
    """
    unsigned = [*row.kinds.items()][:4] == [(name, protocol.u32) for name in ("x", "y", "w", "h")]
    signed = protocol.BY_NAME.get(f"{row.name}_signed")

    def encode(values: Sequence[Any]) -> bytes:
        if has_fraction(row.function, values):
            return as_shape(row.function, values)
        try:
            return row.encode(values)
        except CommandError:
            if not unsigned:
                raise
            x, y, w, h, *rest = values
            if signed is not None:
                place = checks.signed_position(row.function, x, y)
                if place is not None:  # beyond i32, nothing is on any surface
                    place = min(place[0], protocol.i32.high), min(place[1], protocol.i32.high)
                    return signed.encode((*place, w, h, *rest))
            else:
                rect = checks.clipped_rect(row.function, x, y, w, h)
                if rect is not None:
                    return row.encode((*rect, *rest))
            raise

    return encode


def add_calls(rows: Sequence[CommandRow], module: dict[str, Any]) -> None:
    """Add to a module the calls of commands that it does not have."""
    for row in rows:
        if row.function not in module:
            template, doc = _CALL if row.struct else _LARGE_CALL, "".join(described(row, ""))
            more = ""
            if row.function in PENS:
                template, more = _PEN_CALL, ", width: float | None = None"
                doc = doc.rstrip() + _PEN_DOC
            module[row.function] = compiled(
                template, row, row.function, row.call_arguments, doc, module,
                _encode_anywhere(row), more,
            )  # fmt: skip


for _room in (vector_calls, words):
    globals().update((name, getattr(_room, name)) for name in _room.__all__)
add_calls(protocol.COMMANDS, globals())
#: The names of the calls, each a method of ``Surface`` too.
__all__ = [
    *dict.fromkeys(row.function for row in protocol.COMMANDS),
    "submit", "get_pixels", "set_pixels", "with_pixels", "supports_compute", "wait_closed",
    "destroy_surface",
    *sorted({*vector_calls.__all__, *words.__all__} - {row.function for row in protocol.COMMANDS}),
]  # fmt: skip


class DrawingCalls:
    """The calls as methods."""


for _name in __all__:
    if _name != "destroy_surface":  # Surface.close
        setattr(DrawingCalls, _name, globals()[_name])
