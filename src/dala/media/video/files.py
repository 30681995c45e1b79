"""``video.open`` and ``video.write``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import BinaryIO

import numpy as np

from dala.errors import ParameterError
from dala.media.hdr import Hdr
from dala.media.video.animated.facts import SUFFIXES, animation_kind
from dala.media.video.animated.reader import open_animation
from dala.media.video.animated.writer import AnimationWriter
from dala.media.video.reader import Reader
from dala.media.video.source import VideoFile, lasting, pyav, source_of
from dala.media.video.tracks import Tracks
from dala.media.video.writer import Writer
from dala.typing import ImageLike, PathLike

__all__ = ["Reader", "Writer", "open", "write"]


def open(
    source: VideoFile,
    *,
    format: str = "rgba",
    depth: str | None = None,
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
    deinterlace: bool | str | None = None,
    on_resize: str = "scale",
    playlists: bool = False,
    reconnect: float = 0.0,
) -> Reader:
    """Open a video for reading: a context manager that iterates :class:`dala.media.Frame`.

    Args:
        source: a path, a URL, or the index of a camera. An animated GIF, APNG or WebP is a video
            too: RGBA frames with ``duration``, and ``reader.loop``.
        format: "rgba", or "native" for the stored planes ("nv12" or "i420", u8). Videos that are
            not 4:2:0 with an even size are returned as "rgba" either way; see ``frame.format``.
        depth: None for u8 frames, tone-mapped to SDR if the video is HDR (HLG, PQ); "float" for f32
            frames without rounding, with SDR white at 1.0 and highlights of HDR above.
        device: where frames are created; by default the current device.
        policy: "every" frame, or only the "latest", dropping frames that are not read in time. The
            default is "latest" for cameras and live streams, "every" for files.
        queue: how many decoded frames may wait; by default 4, or 1 with "latest".
        rotate: apply the file's rotation, as phones record it. "native" frames are never rotated.
        square_pixels: stretch the width of videos with non-square pixels.
        matrix: "bt601", "bt709" or "bt2020"; overrides the file's tag.
        range: "limited" or "full"; overrides the file's tag.
        hwaccel: decode with this hardware ("cuda", "vaapi", "videotoolbox", ...), or raise; "auto"
            tries what there is, and says why if the CPU decodes.
        threads: decoding threads; 0 lets FFmpeg choose.
        timeout: seconds to wait for a URL or a camera.
        deinterlace: True for all frames, "auto" for those that are interlaced by their flags, or by
            their looks if nothing is flagged; False for none. By default none, with a notice.
        on_resize: "scale" frames into the first size if the size changes in mid-stream, with a
            notice, or "error" to raise VideoError there.
        playlists: let a playlist in a file (HLS, DASH, concat, SDP, numbered pictures) open the
            files and hosts that it names. A URL may always be an HLS playlist, which reaches
            other URLs of HTTP. Set it for files that you trust only.
        reconnect: seconds for which a camera, live stream or URL that was lost, or ended, is tried
            again, with growing waits. Times continue. Iterating waits meanwhile; a scene shows the
            last picture.

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
    pyav()
    found = lasting(source_of(source, playlists=playlists), reconnect)
    animation = open_animation(
        found, format=format, device=device, policy=policy, hwaccel=hwaccel, depth=depth
    )
    if animation is not None:
        return animation
    return Reader(
        found,
        format=format,
        depth=depth,
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
        deinterlace=deinterlace,
        on_resize=on_resize,
    )


def write(
    path: PathLike | BinaryIO,
    frames: Iterable[ImageLike] | None = None,
    *,
    format: str | None = None,
    fps: float | Fraction | None = None,
    codec: str | None = None,
    width: int | None = None,
    height: int | None = None,
    audio_from: PathLike | Reader | Tracks | None = None,
    tracks_from: PathLike | Reader | Tracks | None = None,
    retime: bool = False,
    matrix: str | None = None,
    range: str = "limited",
    options: Mapping[str, str | float] | None = None,
    threads: int = 0,
    device: str | None = None,
    pixel_aspect: Fraction | float | None = None,
    loop: int | None = None,
    alpha: bool = False,
    pixel_format: str | None = None,
    encoder: str | None = None,
    hdr: Hdr | None = None,
) -> Writer:
    """Open a video for writing: a context manager with ``write(frame)``.

    Args:
        path: the file; its suffix names the container (.mp4, .mkv, .webm, .mov), or an animated
            picture (.gif, .apng, .webp). Or a file object open for writing bytes; MP4 to one that
            cannot seek is fragmented.
        frames: pictures to write. If given, the file is complete when the call returns.
        format: the container, such as "mkv"; by default that of the suffix.
        fps: frames per second, for pictures without a time. Frames with a ``pts`` keep it, so
            variable rates are preserved.
        codec: "h264", "hevc", "av1", "vp9", "mpeg4", "ffv1", "prores", "png", or the name of an
            FFmpeg encoder. The default is "vp9" for .webm and "h264" otherwise; with alpha "prores"
            for .mov and "ffv1" for .mkv.
        width, height: size of the video; by default that of the first frame.
        audio_from: a file or a reader whose audio is copied, and encoded again only where the
            container cannot hold its codec. It ends with the pictures.
        tracks_from: a file or a reader of which everything but the pictures is kept: all audio
            (unless ``audio_from`` is given), subtitles, chapters, attachments, cover and tags.
            What the container cannot hold is converted or left out, and listed in a notice.
        retime: space all frames evenly by ``fps``, ignoring their own times.
        matrix: "bt601", "bt709" or "bt2020"; by default the first frame's.
        range: "limited" or "full".
        options: encoder options, such as ``{"crf": 18, "preset": "slow"}``.
        threads: encoding threads; 0 uses all cores (for H.264 at most eight).
        pixel_aspect: a pixel's width / height, stored for players.
        loop: of an animated picture: how often it plays; 0, the default, is forever.
        alpha: keep alpha; the codec must be "prores", "vp9", "ffv1" or "png".
        pixel_format: FFmpeg's name of the layout to encode, such as "yuv444p"; by default
            "yuv420p", or the first that the encoder takes.
        encoder: "auto" for hardware that works here, else software; "nvenc", "qsv",
            "videotoolbox", "vaapi" or "amf" for that hardware, or raise; "x264". By default
            software.
        device: where arrays are converted; by default the current device.
        hdr: how to code HDR: the transfer, the mastering display and the light levels. By default
            as ``frame.hdr`` of the first frame says. Frames of HDR are written with ten bits, by
            "hevc" (.webm: "av1") unless ``codec`` is given; formats of eight bits get them
            tone-mapped. Frames of SDR in an HDR video have SDR white at 203 cd/m2.

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
    kind = SUFFIXES.get(f".{format}")
    if format is None and isinstance(path, str | os.PathLike):
        kind = animation_kind(path, codec)
    if kind is not None:
        for name, given in (("audio_from", audio_from), ("tracks_from", tracks_from)):
            if given is not None:
                raise ParameterError(f"video.write: {kind} has no sound. Leave out {name}.")
        only = {"encoder": encoder, "pixel_format": pixel_format, "hdr": hdr}
        for name in only:
            if only[name] is not None:
                raise ParameterError(f"video.write: {kind} has one encoder only. Leave out {name}.")
        if matrix is not None or range != "limited":
            name = "range" if matrix is None else "matrix"
            raise ParameterError(f"video.write: {kind} is coded as RGB. Leave out {name}.")
        animation = AnimationWriter(
            path,
            kind,
            fps=fps,
            width=width,
            height=height,
            retime=retime,
            options=options,
            device=device,
            loop=loop,
        )
        return _filled(animation, frames)
    if loop is not None:
        raise ParameterError(
            "video.write: loop is for animated pictures (.gif, .apng, .webp). Leave it out."
        )
    writer = Writer(
        path,
        format=format,
        fps=fps,
        codec=codec,
        width=width,
        height=height,
        audio_from=audio_from,
        tracks_from=tracks_from,
        retime=retime,
        matrix=matrix,
        range=range,
        options=options,
        threads=threads,
        device=device,
        pixel_aspect=pixel_aspect,
        alpha=alpha,
        pixel_format=pixel_format,
        encoder=encoder,
        hdr=hdr,
    )
    return _filled(writer, frames)


def _filled(writer: Writer, frames: Iterable[ImageLike] | None) -> Writer:
    """Write the frames, if there are any, and complete the file."""
    if frames is not None:
        with writer:
            for frame in frames:
                writer.write(frame)
    return writer


def _check_frames(frames: Iterable[ImageLike]) -> None:
    """Refuse a single picture, and arguments that must be given by name."""
    single = isinstance(frames, np.ndarray) and (
        frames.ndim < 3 or (frames.ndim == 3 and frames.shape[2] in (1, 3, 4))
    )
    if single:
        raise ParameterError.invalid(
            "video.write", "frames", "several pictures", frames, "Write [picture] for a single one."
        )
    if isinstance(frames, str | bytes | bytearray | memoryview | Mapping) or not isinstance(
        frames, Iterable
    ):
        raise ParameterError.invalid(
            "video.write",
            "frames",
            "several pictures",
            frames,
            "Give other arguments by name, such as fps=30.",
        )
