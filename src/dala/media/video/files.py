"""``video.open`` and ``video.write``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, BinaryIO, Final, Unpack

import numpy as np

from dala.errors import ParameterError
from dala.media.video.animated.facts import animation_kind
from dala.media.video.animated.reader import open_animation
from dala.media.video.animated.writer import AnimationWriter
from dala.media.video.options import DecodeOptions, EncodeOptions
from dala.media.video.reader import Reader
from dala.media.video.source import VideoFile, lasting, pyav, source_of
from dala.media.video.suffixes import ANIMATED
from dala.media.video.writer import Writer
from dala.options import takes
from dala.typing import ImageLike, PathLike

if TYPE_CHECKING:
    from dala.media.video.keywords import DecodeKeywords, EncodeKeywords

__all__ = ["Reader", "Writer", "open", "write"]

#: Options that animated pictures do not have, and why.
_NOT_ANIMATED: Final = {
    **dict.fromkeys(("audio_from", "tracks_from"), "has no sound"),
    **dict.fromkeys(("encoder", "pixel_format", "hdr"), "has one encoder only"),
    **dict.fromkeys(("matrix", "range"), "is coded as RGB"),
}


@takes(DecodeOptions)
def open(source: VideoFile, **given: Unpack[DecodeKeywords]) -> Reader:
    """Open a video for reading: a context manager that iterates :class:`dala.media.Frame`.

    Args:
        source: a path, a URL, or the index of a camera. An animated GIF, APNG or WebP is a video
            too: RGBA frames with ``duration``, and ``reader.loop``.

    Raises:
        VideoNotFound: there is no such file or camera.
        VideoError: the source is not a video. While iterating: the file is damaged or truncated;
            raised after all frames that can be decoded.
        DeviceUnavailable: ``hwaccel`` is not available.
        MissingPackage: PyAV is not installed.

    Example::

        with video.open("clip.mp4") as reader:
            reader.seek(1.5)
            frame = next(reader)
    """
    return open_reader(source, DecodeOptions.checked("video.open", given))


def open_reader(source: VideoFile, options: DecodeOptions) -> Reader:
    """Open a video for reading, with options that are checked."""
    pyav()
    found = lasting(source_of(source, playlists=options.playlists), options.reconnect)
    return open_animation(found, options) or Reader(found, options)


@takes(EncodeOptions)
def write(
    path: PathLike | BinaryIO,
    frames: Iterable[ImageLike] | None = None,
    **given: Unpack[EncodeKeywords],
) -> Writer:
    """Open a video for writing: a context manager with ``write(frame)``.

    Args:
        path: the file; its suffix names the container (.mp4, .mkv, .webm, .mov), or an animated
            picture (.gif, .apng, .webp). Or a file object open for writing bytes; MP4 to one that
            cannot seek is fragmented.
        frames: pictures to write. If given, the file is complete when the call returns.

    Raises:
        VideoError: the file cannot be created.
        ParameterError: an argument is invalid.
        DeviceUnavailable: the hardware of ``encoder`` does not work here.
        MissingPackage: PyAV is not installed.

    Example::

        video.write("fade.mp4", [picture * t for t in (0.2, 0.6, 1.0)], fps=25)
    """
    if frames is not None:
        _check_frames(frames)
    writer = open_writer(path, EncodeOptions.checked("video.write", given))
    if frames is not None:
        with writer:
            for frame in frames:
                writer.write(frame)
    return writer


def open_writer(path: PathLike | BinaryIO, options: EncodeOptions) -> Writer:
    """Open a video for writing, with options that are checked."""
    kind = ANIMATED.get(f".{options.format}")
    if options.format is None and isinstance(path, str | os.PathLike):
        kind = animation_kind(path, options.codec)
    if kind is None:
        if options.loop is not None:
            raise ParameterError(
                "video.write: loop is for animated pictures (.gif, .apng, .webp). Leave it out."
            )
        return Writer(path, options)
    for name in options.changed():
        if name in _NOT_ANIMATED:
            raise ParameterError(f"video.write: {kind} {_NOT_ANIMATED[name]}. Leave out {name}.")
    return AnimationWriter(path, kind, options)


def _check_frames(frames: Iterable[ImageLike]) -> None:
    """Refuse a single picture, and arguments that must be given by name."""
    advice = ""
    if isinstance(frames, np.ndarray):
        if frames.ndim < 3 or (frames.ndim == 3 and frames.shape[2] in (1, 3, 4)):
            advice = "Write [picture] for a single one."
    elif isinstance(frames, str | bytes | bytearray | memoryview | Mapping) or not isinstance(
        frames, Iterable
    ):
        advice = "Give other arguments by name, such as fps=30."
    if advice:
        raise ParameterError.invalid("video.write", "frames", "several pictures", frames, advice)
