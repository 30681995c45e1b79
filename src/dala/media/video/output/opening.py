"""Opening an encoder, without the real-time priority that some take.

SVT-AV1, where it runs as root, gives itself and the thread that opens it the highest real-time
priority. Such a thread keeps all others of the machine waiting, and so do the processes that are
started from it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final, TypeAlias

from dala.media.video.source import AvObject

#: Code points of range (FFmpeg's), matrix, primaries and transfer (H.273).
Tags: TypeAlias = tuple[int, int, int, int]
#: The threads of this process; on Linux only.
_THREADS: Final = Path("/proc/self/task")


def open_encoder(context: AvObject, *, strict: bool = False) -> None:
    """Open an encoder; its threads, and the calling one, keep their usual priority."""
    with _usual_priority():
        context.open(strict=strict)


def set_tags(target: AvObject, tags: Tags) -> None:
    """Set range, matrix, primaries and transfer of a frame or an encoder."""
    target.color_range, target.colorspace, target.color_primaries, target.color_trc = tags


# nodeco
@dataclass(frozen=True)
class PictureEncoding:
    """An encoder of pictures, as it is added to a container; JSON can hold it."""

    codec: str
    options: dict[str, str]
    #: Frames per second, and the unit of their times, as texts of fractions.
    rate: str
    time_base: str
    width: int
    height: int
    pixel_format: str
    #: A pixel's width / height; "" for square ones.
    aspect: str
    threads: int
    tags: Tags
    codec_tag: str = ""

    @property
    def label(self) -> str:
        """What encodes, for traces: codec, preset and threads."""
        preset = self.options.get("preset", "")
        threads = f", {self.threads} threads" if self.threads else ""
        return f"{self.codec} {preset}".rstrip() + threads

    def add_to(self, output: AvObject, device: str | None = None) -> AvObject:
        """Add the stream to a container of PyAV; its encoder is to be opened with ``open_encoder``.

        Args:
            output: the container.
            device: the kind of hardware device that frames are uploaded to.
        """
        stream = output.add_stream(
            self.codec, rate=Fraction(self.rate), options=dict(self.options),
            hwaccel=hardware_device(device),
        )  # fmt: skip
        context = stream.codec_context
        context.width, context.height = self.width, self.height
        context.pix_fmt = self.pixel_format
        context.time_base = Fraction(self.time_base)
        context.thread_type = "AUTO"
        context.thread_count = self.threads
        set_tags(context, self.tags)
        if self.codec_tag:
            context.codec_tag = self.codec_tag
        if self.aspect:
            context.sample_aspect_ratio = Fraction(self.aspect)
        return stream


def hardware_device(kind: str | None) -> AvObject:
    """Return the device that FFmpeg uploads frames to; None for none."""
    if not kind:
        return None
    from av.codec.hwaccel import HWAccel

    return HWAccel(device_type=kind, allow_software_fallback=False)


@contextlib.contextmanager
def _usual_priority() -> Iterator[None]:
    """Take real-time priority back from the threads that got it, unless the caller has it."""
    if not hasattr(os, "sched_setscheduler") or not _THREADS.is_dir() or _is_realtime(0):
        yield
        return
    before = set(filter(_is_realtime, _threads()))
    try:
        yield
    finally:
        for thread in filter(_is_realtime, _threads() - before):
            with contextlib.suppress(OSError):
                os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))


def _threads() -> set[int]:
    return {int(name) for name in os.listdir(_THREADS)}


def _is_realtime(thread: int) -> bool:
    try:
        return os.sched_getscheduler(thread) in (os.SCHED_FIFO, os.SCHED_RR)
    except OSError:  # it has ended
        return False
