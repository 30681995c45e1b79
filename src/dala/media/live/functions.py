"""``live.open`` and ``live.send``, and the functions that scenes and surfaces call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, Unpack

import numpy as np

from dala.arguments import WAIT, Rate, Size
from dala.budget import check_deadline
from dala.errors import DalaError, FreedError, ParameterError, VideoError
from dala.media.audio.arriving import LiveSound, sound_of_reader
from dala.media.audio.mixing.blocks import FileSound
from dala.media.filters.plans import Filter
from dala.media.frame import Frame
from dala.media.images import check_pixels
from dala.media.live.destination import destination_of
from dala.media.live.muxing import SOUND_RATE
from dala.media.live.output import LiveOutput, StreamOptions
from dala.media.live.sending import Arrived, LiveRun, PacedRun, SourceRun
from dala.media.video.chain import VideoChain
from dala.media.video.files import open as open_video
from dala.media.video.reader import Reader
from dala.media.video.source import VideoFile
from dala.media.video.timing import DEFAULT_RATE
from dala.notices import notify
from dala.options import takes
from dala.typing import ImageLike, NDArray, PathLike

if TYPE_CHECKING:
    from dala.gpu.render.thread import Renderer
    from dala.media.live.keywords import StreamKeywords

_SIZE: Final = Size(2, expected="(width, height) in pixels, from 2 to 16384")


class FrameFilters(Protocol):
    """An object that returns the filters of each frame, such as a ``Background``."""

    def filters(self, frame: Frame) -> Sequence[Filter]:
        """Return the filters of the next frame; called once for each, in order."""


@takes(StreamOptions)
def open(
    url: PathLike,
    size: tuple[int, int],
    *,
    fps: float | str | Fraction = 30,
    sound: bool = False,
    call: str = "live.open",
    **given: Unpack[StreamKeywords],
) -> LiveOutput:
    """Open a live stream for writing: a context manager with ``write(frame)``.

    Args:
        url: "rtmp://...", "rtsp://...", "udp://host:port" (MPEG-TS), "srt://..." where PyAV has it,
            "whip+https://...", a folder for HLS (with ``live.m3u8`` in it), or "camera:" for a
            virtual camera ("camera:/dev/video2" for a certain one).
        size: (width, height) of the frames.
        fps: the constant frame rate.
        sound: whether the stream has sound: AAC, or Opus for WHIP.

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
    size, rate = _SIZE.check(call, "size", size), Rate().check(call, "fps", fps)
    return LiveOutput(url, size, fps=rate, sound=sound, call=call, **given)


@takes(StreamOptions)
def send(
    source: VideoFile | Reader,
    url: PathLike,
    process: Callable[[Frame], ImageLike] | Sequence[Filter] | FrameFilters | None = None,
    *,
    seconds: float | None = None,
    device: str | None = None,
    fps: float | str | Fraction | None = None,
    audio: bool | LiveSound = True,
    wait: bool | None = None,
    call: str = "live.send",
    **given: Unpack[StreamKeywords],
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
        rate = Rate().check(call, "fps", fps) if fps is not None else reader.fps or DEFAULT_RATE
        first = _first(reader, work, call)
        heard = _live_sound(reader, audio, call)
        sound = _file_sound(reader) if audio and heard is None else None
        if sound is not None:
            held.callback(sound.close)
        output = open(
            url, _size_of(first.frame, call), fps=min(rate, Fraction(240)),
            sound=sound is not None or heard is not None, call=call, **given,
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
            while not run.wait(0.2):
                check_deadline("live")
        except BaseException:
            run.stop()
            raise
    return run


def seconds_of(call: str, seconds: float | None) -> Fraction | None:
    """Return a duration as a fraction; None for None."""
    if seconds is None:
        return None
    return Fraction(WAIT.check(call, "seconds", seconds)).limit_denominator(10**6)


def _first(reader: Reader, process: Callable[[Frame], ImageLike] | None, call: str) -> Arrived:
    """Return the first picture to send; its size is the stream's."""
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


_CALL = "Surface.live"


def live_surface(
    renderer: Renderer,
    url: PathLike,
    seconds: float | None,
    *,
    fps: float,
    **given: Unpack[StreamKeywords],
) -> LiveRun:
    """See ``Surface.live``."""
    length = seconds_of(_CALL, seconds)
    height, width = renderer.front.shape[:2]
    output = open(url, (width, height), fps=fps, call=_CALL, **given)
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
