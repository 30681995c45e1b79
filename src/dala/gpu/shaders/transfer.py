"""What a kernel made, onto a surface: in order with its commands, through no Python object.

From host memory the render thread copies, or converts in native code, straight into the back
framebuffer, while the caller waits, who may then write the buffer again. A device with a queue is
asked for the picture at once and nobody waits: the memory it arrives in becomes the framebuffer.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import cache
from typing import Any, Final

import numpy as np

from dala.errors import ArityError, CommandError, DtypeError, ShapeMismatch
from dala.gpu.checks import renderer_of
from dala.gpu.compute.buffer import Buffer, allocate
from dala.gpu.compute.create import from_dlpack
from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.lang.parser import declare
from dala.gpu.compute.lang.source import from_text
from dala.gpu.compute.runnable import Runnable
from dala.gpu.render.thread import Renderer
from dala.gpu.surface import Surface

CALL: Final = "run_to_surface"

#: Pictures of one surface that may be under way; whoever brings more waits.
UNDER_WAY: Final = 3

#: dtypes that pictures come in.
_DTYPES: Final = ("u8", "f32", "f64")


def run_and_put(
    kernel: Runnable,
    inputs: Sequence[Buffer],
    output: Buffer,
    surface: Surface,
    params: Mapping[str, Any],
) -> None:
    """Runs a kernel and puts its output into the surface's back framebuffer."""
    renderer = _checked(surface)
    _check_picture(output, renderer)
    kernel.run(inputs, output, params)
    _put(output, surface, renderer)


def put(output: Buffer, surface: Surface) -> None:
    """Puts a picture into the surface's back framebuffer; it may be written again afterwards."""
    renderer = _checked(surface)
    _check_picture(output, renderer)
    _put(output, surface, renderer)


def _put(output: Buffer, surface: Surface, renderer: Renderer) -> None:
    engine = output.engine
    view = engine.host_view(output.storage(CALL))
    if view is not None:  # held, so that the memory outlives a buffer freed meanwhile
        renderer.call(lambda: _copy(renderer, output, view))
        return
    room = _room(renderer)
    while not room.acquire(timeout=0.5):
        renderer_of(surface, CALL)
    try:
        picture = output if _is_rgba(output) else _converted(output)
        future = engine.download_async(picture.storage(CALL))
        renderer.post(lambda: _show(renderer, room, future, output.shape))
    except BaseException:
        room.release()
        raise


# checks ---------------------------------------------------------------------------------------
def _checked(surface: Any) -> Renderer:
    if not isinstance(surface, Surface):
        raise CommandError(
            f"{CALL}: a Surface is expected, {type(surface).__name__} came. "
            "create_surface(width, height) makes one."
        )
    return renderer_of(surface, CALL)


def _check_picture(output: Any, renderer: Renderer) -> None:
    if not isinstance(output, Buffer):
        raise ArityError(f"{CALL}: output must be a Buffer, {type(output).__name__} came.")
    output.storage(CALL)
    if output.dtype not in _DTYPES:
        raise DtypeError(
            f"{CALL}: output is a picture of u8, or of f32 within 0..1; {output.dtype} came."
        )
    canvas = renderer.canvas
    size = (canvas.height, canvas.width)
    if output.shape[:2] != size:  # unless it is being resized
        size = renderer.call(lambda: (canvas.height, canvas.width))
    _check_shape(output.shape, size)


def _check_shape(shape: tuple[int, ...], size: tuple[int, int]) -> None:
    height, width = size
    if shape[:2] != size or shape[2:] not in ((), (1,), (3,), (4,)):
        raise ShapeMismatch(
            f"{CALL}: the surface is {width} x {height}, so the output must be ({height}, {width}, "
            f"4), or that with 3 channels or none; {shape} came."
        )


def _is_rgba(output: Buffer) -> bool:
    return output.dtype == "u8" and output.shape[2:] == (4,)


# on the render thread -------------------------------------------------------------------------
def _copy(renderer: Renderer, output: Buffer, view: memoryview) -> None:
    """From host memory into the framebuffer, converting on the way where that is needed."""
    canvas = renderer.canvas
    pixels = canvas.pixels
    _check_shape(output.shape, (canvas.height, canvas.width))
    if _is_rgba(output):
        np.copyto(pixels, np.frombuffer(view, np.uint8).reshape(pixels.shape))
    else:
        _rgba().run([output], from_dlpack(pixels, device=output.engine.id))
    canvas.damage_all()


def _show(
    renderer: Renderer,
    room: threading.Semaphore,
    future: Future[memoryview],
    shape: tuple[int, ...],
) -> None:
    """The picture that was asked for, when it has come, as the framebuffer."""
    try:
        data = np.frombuffer(future.result(), np.uint8)
        canvas = renderer.canvas
        _check_shape(shape, (canvas.height, canvas.width))
        canvas.swap(data.reshape(canvas.pixels.shape))
        canvas.damage_all()
    finally:
        room.release()


# pictures -------------------------------------------------------------------------------------
@cache
def _rgba() -> Kernel:
    """Any image as RGBA: gray in all three channels, opaque where it has no alpha."""
    text = "def rgba_of(px: Pixel): return px"
    return Kernel("rgba_of", declare(from_text(text, "rgba_of"), lookup=lambda name: None))


def _converted(output: Buffer) -> Buffer:
    shape = (*output.shape[:2], 4)
    made = allocate(output.engine, shape, "u8", zero=False, call=CALL)
    _rgba().run([output], made)
    return made


_rooms: weakref.WeakKeyDictionary[Renderer, threading.Semaphore] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def _room(renderer: Renderer) -> threading.Semaphore:
    with _lock:
        return _rooms.setdefault(renderer, threading.Semaphore(UNDER_WAY))
