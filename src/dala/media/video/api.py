"""Video in and out, on PyAV (FFmpeg): ``pip install dala[media]``.

``video.open`` gives frames, ``video.write`` takes them; colours are converted by Dala's own kernels
on the device in use::

    from dala.media import gpu, video

    with video.open("in.mp4") as source, video.write("out.mp4", audio_from=source) as sink:
        for frame in source:
            sink.write(gpu.blur(frame, radius=3))
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from dala.errors import ParameterError
from dala.media.video.live import pyav, source_of
from dala.media.video.reader import Reader
from dala.media.video.writer import Writer

__all__ = ["Reader", "Writer", "open", "write"]


def open(
    source: str | os.PathLike[str] | int,
    *,
    format: str = "rgba",
    device: str | None = None,
    policy: str | None = None,
    queue: int | None = None,
    rotate: bool = True,
    square_pixels: bool = False,
    matrix: str | None = None,
    range: str | None = None,
    hwaccel: str | None = None,
    threads: int = 0,
    timeout: float = 10.0,
) -> Reader:
    """Opens a video for reading: a context manager that iterates :class:`dala.media.Frame`.

    Args:
        source: a path, a URL, or the number of a camera.
        format: "rgba", or "native": the planes as stored ("nv12" or "i420" of bytes). What is not
            4:2:0 of even size comes as "rgba" then too; ``frame.format`` says.
        device: where frames are; the current device where left out.
        policy: "every" frame, or only the "latest" (what is not taken in time is dropped). Left
            out, it is "latest" for cameras and live streams and "every" for files.
        queue: how many decoded frames may wait; 4, or 1 with "latest".
        rotate: turn pictures upright as the file says (telephones store them lying). "native"
            planes are never turned.
        square_pixels: stretch the width where pixels are not square.
        matrix: "bt601", "bt709" or "bt2020", against what the file says.
        range: "limited" or "full", against what the file says.
        hwaccel: decode with hardware ("cuda", "vaapi", "videotoolbox", ...), or fail; never
            silently anything else.
        threads: for decoding; 0 lets FFmpeg choose.
        timeout: seconds to wait for a URL or a camera.

    Raises:
        VideoNotFound: there is no such file or camera.
        VideoError: it is no video. Raised while iterating, after the frames that there are: the
            file is damaged or cut off.
        DeviceUnavailable: ``hwaccel`` cannot be had.
        MissingPackage: PyAV is not installed.
    """
    pyav()
    return Reader(
        source_of(source),
        format=format,
        device=device,
        policy=policy,
        queue=queue,
        rotate=rotate,
        square_pixels=square_pixels,
        matrix=matrix,
        range=range,
        hwaccel=hwaccel,
        threads=threads,
        timeout=timeout,
    )


def write(
    path: str | os.PathLike[str],
    frames: Iterable[Any] | None = None,
    *,
    fps: float | Fraction | None = None,
    codec: str | None = None,
    width: int | None = None,
    height: int | None = None,
    audio_from: str | os.PathLike[str] | Reader | None = None,
    retime: bool = False,
    matrix: str | None = None,
    range: str = "limited",
    options: Mapping[str, Any] | None = None,
    threads: int = 0,
    device: str | None = None,
    pixel_aspect: Fraction | float | None = None,
) -> Writer:
    """Opens a video for writing: a context manager with ``write(frame)``.

    Args:
        path: the file; its suffix names the container (.mp4, .mkv, .webm, .mov).
        frames: pictures to write, all of them: then the file is complete when the call returns.
        fps: frames a second, for pictures that have no time of their own. Frames that have one
            (``pts``) keep it, so a variable rate stays as it was.
        codec: "h264", "hevc", "av1", "vp9", "mpeg4", "ffv1", or one of FFmpeg's encoders; left out,
            "vp9" for .webm and "h264" otherwise.
        width, height: of the video; those of the first frame where left out.
        audio_from: a file or a reader whose sound is carried over untouched.
        retime: space all frames evenly by ``fps``, whatever their time.
        matrix: "bt601", "bt709" or "bt2020"; the first frame's where left out.
        range: "limited" or "full".
        options: for the encoder, such as ``{"crf": 18, "preset": "slow"}``.
        threads: for encoding; 0 takes as many as there are cores (for H.264 eight at most).
        pixel_aspect: width of a pixel by its height, for players to stretch the picture by.
        device: where arrays are converted; the current device where left out.

    Raises:
        VideoError: the file cannot be made.
        ParameterError: an argument is not one it takes.
        MissingPackage: PyAV is not installed.
    """
    if frames is not None:
        _check_many(frames)
    writer = Writer(
        path,
        fps=fps,
        codec=codec,
        width=width,
        height=height,
        audio_from=audio_from,
        retime=retime,
        matrix=matrix,
        range=range,
        options=options,
        threads=threads,
        device=device,
        pixel_aspect=pixel_aspect,
    )
    if frames is not None:
        with writer:
            for frame in frames:
                writer.write(frame)
    return writer


def _check_many(frames: Any) -> None:
    """Pictures one after another; neither a single one nor an argument that has a name."""
    single = isinstance(frames, np.ndarray) and (
        frames.ndim < 3 or (frames.ndim == 3 and frames.shape[2] in (1, 3, 4))
    )
    if single:
        raise ParameterError(
            f"video.write: frames are pictures one after another, a single one of shape "
            f"{frames.shape} came. Give a list of them."
        )
    if isinstance(frames, str | bytes | Mapping) or not isinstance(frames, Iterable):
        raise ParameterError(
            f"video.write: frames are pictures one after another, {frames!r} came. Other arguments "
            "are given by name, such as fps=30."
        )
