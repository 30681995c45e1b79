"""Kernel results on a surface, in order with its commands and without Python objects between.

From host memory the render thread copies or converts into the back framebuffer while the caller
waits; afterwards the caller may overwrite the buffer. A device with a queue starts a download, and
the caller continues: the downloaded memory becomes the framebuffer.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Final

import numpy as np

from dala import forks
from dala.errors import ArityError, DtypeError, ShapeMismatch
from dala.gpu.checks import not_a_surface, renderer_of
from dala.gpu.compute.buffer import Buffer, allocate
from dala.gpu.compute.create import from_dlpack
from dala.gpu.compute.kernel import Kernel, text_kernel
from dala.gpu.compute.runnable import Runnable
from dala.gpu.render.thread import Renderer
from dala.gpu.surface import Surface
from dala.trace.recorder import tracer
from dala.typing import Params

CALL: Final = "run_to_surface"

#: Downloads of one surface that may be in flight; further calls wait.
MAX_IN_FLIGHT: Final = 3

#: The dtypes of a picture.
_DTYPES: Final = ("u8", "f32", "f64")


def run_and_put(
    kernel: Runnable,
    inputs: Sequence[Buffer],
    output: Buffer,
    surface: Surface,
    params: Params,
) -> None:
    """Run a kernel and copy its output to the surface's back framebuffer."""
    _check_picture(output, _checked(surface))
    kernel.run(inputs, output, params)
    put(output, surface)


def put(output: Buffer, surface: Surface) -> None:
    """Copy a picture to the surface's back framebuffer. The buffer may be reused afterwards."""
    renderer = _checked(surface)
    _check_picture(output, renderer)
    engine = output.engine
    if tracer.on:
        renderer.post(partial(setattr, tracer, "frame", tracer.frame))
    view = engine.host_view(output.storage(CALL))
    if view is not None:  # the reference keeps the memory of a buffer that is freed meanwhile
        renderer.call(lambda: _copy(renderer, output, view))
        return
    slots = _slots_of(renderer)
    while not slots.acquire(timeout=0.5):
        renderer_of(surface, CALL)
    try:
        picture = output if _is_rgba(output) else _converted(output)
        future = engine.download_async(picture.storage(CALL))
        renderer.post(lambda: _show(renderer, slots, future, output.shape))
    except BaseException:
        slots.release()
        raise


# checks ---------------------------------------------------------------------------------------
def _checked(surface: Surface) -> Renderer:
    if not isinstance(surface, Surface):
        raise not_a_surface(CALL, surface, "surface")
    return renderer_of(surface, CALL)


def _check_picture(output: Buffer, renderer: Renderer) -> None:
    if not isinstance(output, Buffer):
        raise ArityError.invalid(CALL, "output", "a Buffer", type(output))
    output.storage(CALL)
    if output.dtype not in _DTYPES:
        raise DtypeError.invalid(CALL, "output", "a picture of u8, f32 or f64", output.dtype)
    canvas = renderer.canvas
    size = (canvas.height, canvas.width)
    if output.shape[:2] != size:  # a resize may be queued
        size = renderer.call(lambda: (canvas.height, canvas.width))
    _check_shape(output.shape, size)


def _check_shape(shape: tuple[int, ...], size: tuple[int, int]) -> None:
    height, width = size
    if shape[:2] != size or shape[2:] not in ((), (1,), (3,), (4,)):
        raise ShapeMismatch(
            f"{CALL}: output must have the shape ({height}, {width}, 4) of the surface, or 3, 1 or "
            f"no channels, got {shape}."
        )


def _is_rgba(output: Buffer) -> bool:
    return output.dtype == "u8" and output.shape[2:] == (4,)


# on the render thread -------------------------------------------------------------------------
def _copy(renderer: Renderer, output: Buffer, view: memoryview) -> None:
    """Copy from host memory to the framebuffer, and convert where needed."""
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
    slots: threading.Semaphore,
    future: Future[memoryview],
    shape: tuple[int, ...],
) -> None:
    """Wait for a download and make it the framebuffer."""
    try:
        data = np.frombuffer(future.result(), np.uint8)
        canvas = renderer.canvas
        _check_shape(shape, (canvas.height, canvas.width))
        canvas.swap(data.reshape(canvas.pixels.shape))
        canvas.damage_all()
    finally:
        slots.release()


# pictures -------------------------------------------------------------------------------------
def _rgba() -> Kernel:
    """Return a kernel that converts any image to RGBA: gray to RGB, opaque without alpha."""
    return text_kernel("rgba_of", "def rgba_of(px: Pixel): return px")


def _converted(output: Buffer) -> Buffer:
    shape = (*output.shape[:2], 4)
    made = allocate(output.engine, shape, "u8", zero=False, call=CALL)
    _rgba().run([output], made)
    return made


_slots: weakref.WeakKeyDictionary[Renderer, threading.Semaphore] = weakref.WeakKeyDictionary()
_lock = forks.lock()


def _slots_of(renderer: Renderer) -> threading.Semaphore:
    with _lock:
        return _slots.setdefault(renderer, forks.semaphore(MAX_IN_FLIGHT))
