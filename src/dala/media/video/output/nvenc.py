"""Frames in the memory of a GPU, as NVIDIA's encoder takes them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dala.gpu.compute import Buffer
from dala.media.video.source import AvObject, DecodedFrame, av

if TYPE_CHECKING:
    from dala.media.frame import Frame


class _GpuPlane:
    """A plane within a buffer, for libraries with DLPack."""

    def __init__(self, pixels: Buffer, shape: tuple[int, ...], start: int) -> None:
        self._pixels = pixels
        self._shape = shape
        self._start = start

    def __dlpack__(self, *, stream: int | None = None) -> Any:
        engine = self._pixels.engine
        assert engine.sharing is not None, engine.id
        return engine.sharing.lend_tensor(
            engine, self._pixels.settled("video.write"), self._shape, np.dtype(np.uint8),
            readonly=False, stream=stream, offset=self._start,
        )  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._pixels.__dlpack_device__()


def gpu_picture(frame: Frame, device: str, *, copy: bool) -> DecodedFrame:
    """Return an "nv12" frame as a picture of PyAV in the memory of a GPU.

    Args:
        frame: of even sizes. One of another device is uploaded.
        device: the one that encodes.
        copy: copy the frame's own memory; False borrows it.
    """
    pixels = frame.pixels.to(device)
    if pixels is frame.pixels and copy:
        pixels = pixels.__copy__()
    sharing, width, height = pixels.engine.sharing, frame.width, frame.height
    assert sharing is not None, device
    sharing.enter(pixels.engine)
    # The encoder expects CbCr right behind Y.
    planes = (
        _GpuPlane(pixels, (height, width), 0),
        _GpuPlane(pixels, (height // 2, width // 2, 2), height * width),
    )
    context = _context(sharing.ordinal_of(pixels.engine))
    return av.VideoFrame.from_dlpack(planes, "nv12", width, height, cuda_context=context)


@cache
def _context(ordinal: int) -> AvObject:
    """Return FFmpeg's handle of the context that the thread has entered."""
    from av.video.frame import CudaContext

    return CudaContext(ordinal, primary_ctx=False, current_ctx=True)
