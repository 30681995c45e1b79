"""Sending what a surface presents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import numpy as np

from dala.media.frame import Frame
from dala.media.live.functions import open as open_live
from dala.media.live.functions import seconds_of, started
from dala.media.live.sending import LiveRun, PacedRun
from dala.typing import ImageLike, NDArray, PathLike

if TYPE_CHECKING:
    from dala.gpu.render.thread import Renderer
    from dala.media.live.keywords import StreamKeywords

_CALL = "Surface.live"


def live_surface(
    renderer: Renderer,
    url: str | PathLike,
    seconds: float | None,
    *,
    fps: float,
    **given: Unpack[StreamKeywords],
) -> LiveRun:
    """See ``Surface.live``."""
    length = seconds_of(_CALL, seconds)
    height, width = renderer.front.shape[:2]
    output = open_live(url, (width, height), fps=fps, call=_CALL, **given)
    pictures = _Presented(renderer, (width, height))
    run = PacedRun(output, pictures, length, until=lambda: renderer.closed)
    return started(run, seconds is not None)


class _Presented:
    """The newest frame of a surface; None if it was returned before."""

    def __init__(self, renderer: Renderer, size: tuple[int, int]) -> None:
        self._renderer = renderer
        self._size = size
        self._seen: int | None = None

    def __call__(self, slot: int) -> ImageLike | None:
        renderer = self._renderer
        with renderer.front_lock:
            if renderer.frames == self._seen:
                return None
            self._seen = renderer.frames
            pixels = renderer.front.copy()
        picture = _opaque(pixels)
        if picture.shape[1::-1] == self._size:
            return picture
        return _fitted(picture, self._size)


def _opaque(pixels: NDArray) -> NDArray:
    """Return straight RGBA over black, as RGB."""
    alpha = pixels[..., 3:]
    if alpha.min() == 255:
        return np.ascontiguousarray(pixels[..., :3])
    return (pixels[..., :3] * (alpha.astype(np.uint16)) // 255).astype(np.uint8)


def _fitted(picture: NDArray, size: tuple[int, int]) -> Frame | NDArray:
    """Return a picture of a surface that was resized in the size of the stream."""
    from dala.media import gpu

    made: NDArray = gpu.resize(picture, *size, fit="pad")
    return made
