"""``live.open`` and ``live.send``, and what scenes and surfaces call."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from fractions import Fraction
from functools import partial
from os import PathLike
from typing import Protocol

from dala.arguments import items_of
from dala.errors import DalaError, FreedError, ParameterError, VideoError
from dala.media.audio.arriving import LiveSound, sound_of_reader
from dala.media.audio.mixing.blocks import FileSound
from dala.media.filters.plans import Filter
from dala.media.frame import Frame
from dala.media.images import check_pixels
from dala.media.live.destination import destination_of
from dala.media.live.muxing import SOUND_RATE
from dala.media.live.output import RECONNECT, TIMEOUT, LiveOutput
from dala.media.live.sending import Arrived, LiveRun, SourceRun
from dala.media.notices import notify
from dala.media.video.arguments import check_count, check_rate, check_seconds
from dala.media.video.borrowed import BorrowedFrame
from dala.media.video.chain import VideoChain
from dala.media.video.files import open as open_video
from dala.media.video.reader import Reader
from dala.media.video.source import VideoFile
from dala.media.video.timing import DEFAULT_RATE
from dala.typing import ImageLike


class FrameFilters(Protocol):
    """What knows the filters of each frame, such as a ``Background``."""

    def filters(self, frame: Frame | BorrowedFrame) -> Sequence[Filter]:
        """Return the filters of the next frame; called once for each, in order."""


def open(
    url: str | PathLike[str],
    size: tuple[int, int],
    *,
    fps: float | str | Fraction = 30,
    bit_rate: int | str | None = None,
    key_frames: float = 2.0,
    encoder: str | None = None,
    options: Mapping[str, str | float] | None = None,
    sound: bool = False,
    reconnect: float = RECONNECT,
    timeout: float = TIMEOUT,
    threads: int = 0,
    call: str = "live.open",
) -> LiveOutput:
    """Open a live stream for writing: a context manager with ``write(frame)``.

    Args:
        url: "rtmp://...", "rtsp://...", "udp://host:port" (MPEG-TS), "srt://..." where PyAV has it,
            "whip+https://...", a folder for HLS (with ``live.m3u8`` in it), or "camera:" for a
            virtual camera ("camera:/dev/video2" for a certain one).
        size: (width, height) of the frames.
        fps: the constant frame rate.
        bit_rate: bits a second of the pictures, such as 4_000_000 or "4M"; by default by the size.
        key_frames: seconds between key frames, at which receivers can begin.
        encoder: "auto" for hardware that works here, or the name of one; by default software.
        options: options of the encoder, such as ``{"preset": "superfast"}``.
        sound: whether the stream has sound: AAC, or Opus for WHIP.
        reconnect: seconds for which a lost receiver is tried again.
        timeout: seconds until a receiver that does not answer counts as lost.
        threads: encoding threads; 0 lets the encoder choose.

    Raises:
        ParameterError: an argument is invalid.
        VideoError: the receiver cannot be reached.
        DeviceUnavailable: there is no such encoder or virtual camera here.

    >>> import tempfile
    >>> import numpy as np
    >>> from dala.media import live
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with live.open(folder, (64, 48), fps=10) as sink:
    ...         sink.write(np.zeros((48, 64, 3), np.uint8))
    ...     sink.stats["shown"]
    1
    """
    width, height = _size(call, size)
    return LiveOutput(
        url,
        (width, height),
        fps=check_rate(call, fps),
        bit_rate=bit_rate,
        key_frames=key_frames,
        encoder=encoder,
        options=options,
        sound=sound,
        reconnect=_patience(call, reconnect),
        timeout=check_seconds(call, "timeout", timeout),
        threads=check_count(call, "threads", threads, 0),
        call=call,
    )


def send(
    source: VideoFile | Reader,
    url: str | PathLike[str],
    process: Callable[[Frame], ImageLike] | Sequence[Filter] | FrameFilters | None = None,
    *,
    seconds: float | None = None,
    device: str | None = None,
    fps: float | str | Fraction | None = None,
    bit_rate: int | str | None = None,
    key_frames: float = 2.0,
    encoder: str | None = None,
    options: Mapping[str, str | float] | None = None,
    audio: bool | LiveSound = True,
    reconnect: float = RECONNECT,
    timeout: float = TIMEOUT,
    wait: bool | None = None,
    call: str = "live.send",
) -> LiveRun:
    """Send a camera, a live source or a file, through a function, until it ends or is closed.

    With ``seconds`` the call returns when they have passed; without, it returns at once, and the
    stream runs on a thread until the returned :class:`LiveRun` is closed.

    Args:
        source: what ``video.open`` takes, or an open video, which is closed at the end.
        url: see :func:`open`.
        process: a list of filters, as for ``FramePipeline``, a ``Background``, or a function of a
            frame that returns the picture to send; by default the frame is sent as it is. Filters
            and backgrounds read and write the planes of the video, which saves time.
        seconds: how long to send.
        device: where frames are processed; by default the current device.
        fps: the constant frame rate; by default that of the source.
        audio: whether the sound of the source is sent too; or a microphone, instead of it.
        wait: whether the call returns at the end only; by default if ``seconds`` is given.

    The other arguments are those of :func:`open`.

    Example::

        live.send(0, "rtmp://127.0.0.1/live/test", [("blur", {"radius": 12})], seconds=60)
    """
    length = seconds_of(call, seconds)
    destination_of(url, call)  # before a camera is switched on
    chain, work = None, process if callable(process) else None
    if process is not None and not callable(process):
        found = process if isinstance(process, list | tuple) else getattr(process, "filters", None)
        if found is None or isinstance(process, str | bytes):
            expected = "a list of filters, a Background or a function of a frame"
            raise ParameterError.invalid(call, "process", expected, process)
        chain = VideoChain(found, device=device, workers=1, range="limited")
        work = partial(_filtered, chain)
    planes = "native" if chain is not None else "rgba"
    if isinstance(source, Reader):
        reader = source
    else:
        reader = open_video(source, format=planes, device=device)
    with ExitStack() as held:
        held.callback(reader.close)
        if chain is not None:
            held.callback(chain.close)
        rate = check_rate(call, fps) if fps is not None else reader.fps or DEFAULT_RATE
        first = _first(reader, work, call)
        heard = _live_sound(reader, audio, call)
        sound = _file_sound(reader) if audio and heard is None else None
        if sound is not None:
            held.callback(sound.close)
        output = open(
            url, _size_of(first.frame, call), fps=min(rate, Fraction(240)), bit_rate=bit_rate,
            key_frames=key_frames, encoder=encoder, options=options,
            sound=sound is not None or heard is not None,
            reconnect=reconnect, timeout=timeout, call=call,
        )  # fmt: skip
        render = None if sound is None else sound.render
        run = SourceRun(output, reader, work, length, first, sound=render, heard=heard)
        run.held.push(held.pop_all())
    return started(run, seconds is not None if wait is None else wait)


def _live_sound(reader: Reader, audio: bool | LiveSound, call: str) -> LiveSound | None:
    """Return the sound that arrives with the pictures, or beside them; None for none."""
    if isinstance(audio, LiveSound):
        if audio.closed:
            raise FreedError(f"{call}: {audio.label} is closed. Open it again.")
        return audio
    if not isinstance(audio, bool):
        raise ParameterError.invalid(call, "audio", "True, False or an open microphone", audio)
    return sound_of_reader(reader) if audio else None


def _file_sound(reader: Reader) -> FileSound | None:
    """Return the sound of a file; None if it has none, or is live."""
    if reader.policy == "latest" or reader.source.live or not reader.has_audio:
        return None
    try:
        return FileSound(reader.source, SOUND_RATE, layout="stereo")
    except DalaError as error:
        notify(f"{reader.name}: sent without sound: {error}")
        return None


def _filtered(chain: VideoChain, frame: Frame) -> Frame:
    return next(chain.stream([frame]))


def started(run: LiveRun, wait: bool) -> LiveRun:
    """Start a run, and wait for its end if that is wanted."""
    run.start()
    if wait:
        try:
            run.wait()
        except BaseException:
            run.stop()
            raise
    return run


def seconds_of(call: str, seconds: float | None) -> Fraction | None:
    """Return a duration as a fraction; None for None."""
    if seconds is None:
        return None
    return Fraction(check_seconds(call, "seconds", seconds)).limit_denominator(10**6)


def _first(reader: Reader, process: Callable[[Frame], ImageLike] | None, call: str) -> Arrived:
    """Return the first picture to send, which tells the size."""
    frame = next(reader, None)
    if frame is None:
        raise VideoError(f"{call}: {reader.name!r} has no frames.")
    time = None if frame.time is None else float(frame.time)
    return Arrived(frame if process is None else process(frame), time, reader.arrived)


def _size_of(picture: ImageLike, call: str) -> tuple[int, int]:
    if isinstance(picture, Frame):
        return picture.width, picture.height
    found = check_pixels(picture, call)
    return found.shape[1], found.shape[0]


def _size(call: str, size: tuple[int, int]) -> tuple[int, int]:
    try:
        width, height = (operator.index(side) for side in items_of(size) or ())
    except (TypeError, ValueError):
        width = height = 0
    if not 2 <= min(width, height) <= max(width, height) <= 16384:
        raise ParameterError.invalid(
            call, "size", "(width, height) in pixels, from 2 to 16384", size
        )
    return width, height


def _patience(call: str, reconnect: float) -> float:
    number = not isinstance(reconnect, bool | str) and hasattr(reconnect, "__float__")
    if not number or not 0 <= float(reconnect) < math.inf:
        raise ParameterError.invalid(call, "reconnect", "a number of seconds", reconnect)
    return float(reconnect)
