"""The options of reading and writing videos.

``EncoderOptions`` belong to everything that encodes a video: ``video.write``, scenes, jobs,
commands and the studio. ``DecoderOptions`` belong to everything that filters one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dala.arguments import (
    SECONDS,
    WAIT,
    Fitting,
    Flag,
    Integer,
    Rate,
    Ratio,
    Selection,
    Settings,
    Text,
)
from dala.media.hdr import Hdr
from dala.options import DeviceOptions, Options, option

if TYPE_CHECKING:
    from dala.media.video.reader import Reader
    from dala.media.video.tracks import Tracks
    from dala.typing import PathLike

#: Codecs that people ask for; the names of FFmpeg's encoders are accepted too.
_CODECS: Final = Text(names=("h264", "hevc", "av1", "vp9", "ffv1", "prores"))
_ENCODERS: Final = Selection("auto", "x264", "nvenc", "qsv", "videotoolbox", "vaapi", "amf")
_MATRIX: Final = Selection("bt709", "bt601", "bt2020")
_RANGE: Final = Selection("limited", "full")
#: Which frames are deinterlaced; the hidden ones are what :class:`VideoIndex` has found.
_FIELDS: Final = Selection(
    True, False, "auto", expected="True, False, 'auto' or None", hidden=("flags", "tff", "bff")
)
_TONES: Final = Selection("sdr", "keep", expected="'sdr' or 'keep'")
_ASPECT: Final = Ratio("a pixel's width / height, such as Fraction(64, 45)")
_PLAYS: Final = Integer(0, words="the number of plays, 0 for forever")
_HDR: Final = Fitting("an Hdr, such as frame.hdr", lambda value: isinstance(value, Hdr))


# reading ------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class DecoderOptions(Options):
    """How the frames of a video are made, for readers and for jobs that filter videos.

    Args:
        deinterlace: True for all frames, "auto" for those that are interlaced by their flags, or by
            their looks if nothing is flagged; False for none. By default none, with a notice.
        on_resize: "scale" frames into the first size if the size changes in mid-stream, with a
            notice, or "error" to raise VideoError there.
    """

    deinterlace: bool | str | None = option(_FIELDS)
    on_resize: str = option(
        Selection("scale", "error"), "scale", "where a video changes its size (scale)", command=True
    )


@dataclass(frozen=True, kw_only=True)
class DecodeOptions(DeviceOptions, DecoderOptions):
    """The options of ``video.open``.

    Args:
        format: "rgba", or "native" for the stored planes ("nv12" or "i420", u8). Videos that are
            not 4:2:0 with an even size are returned as "rgba" either way; see ``frame.format``.
        depth: None for u8 frames, tone-mapped to SDR if the video is HDR (HLG, PQ); "float" for f32
            frames without rounding, with SDR white at 1.0 and highlights of HDR above.
        policy: "every" frame, or only the "latest", dropping frames that are not read in time. The
            default is "latest" for cameras and live streams, "every" for files.
        queue: how many decoded frames may wait; by default 4, or 1 with "latest".
        rotate: apply the file's rotation, as phones record it. "native" frames are never rotated.
        square_pixels: stretch the width of videos with non-square pixels.
        matrix: of the colors; overrides the file's tag.
        range: of the values; overrides the file's tag.
        hwaccel: decode with this hardware ("cuda", "vaapi", "videotoolbox", ...), or raise; "auto"
            tries what there is, and says why if the CPU decodes. With a ``device`` of "cuda" it is
            NVIDIA's decoder, and frames stay in the GPU's memory; else the CPU, with a notice.
        threads: decoding threads; 0 lets FFmpeg choose.
        timeout: seconds to wait for a URL or a camera.
        playlists: let a playlist (HLS, DASH, concat, SDP, numbered pictures) open the files and
            hosts that it names; one at a URL opens no files. Set it for playlists that you trust
            only. HLS at a URL of HTTP that names only its own host needs no permission.
        reconnect: seconds for which a camera, live stream or URL that was lost, or ended, is tried
            again, with growing waits. Times continue. Iterating waits meanwhile; a scene shows the
            last picture.
    """

    format: str = option(Selection("rgba", "native"), "rgba")
    depth: str | None = option(Selection("float"))
    policy: str | None = option(Selection("every", "latest"))
    queue: int | None = option(Integer(1))
    rotate: bool = option(Flag(), True)
    square_pixels: bool = option(Flag(), False)
    matrix: str | None = option(_MATRIX)
    range: str | None = option(_RANGE)
    hwaccel: str | None = option(Text("the name of hardware, 'auto' or None"))
    threads: int = option(Integer(0), 0)
    timeout: float = option(WAIT, 10.0)
    playlists: bool = option(Flag(), False)
    reconnect: float = option(SECONDS, 0.0)


# writing ------------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class EncoderOptions(Options):
    """How a video is encoded, for everything that writes one.

    Args:
        codec: "h264", "hevc", "av1", "vp9", "mpeg4", "ffv1", "prores", "png", or the name of an
            FFmpeg encoder. The default is "vp9" for .webm and "h264" otherwise; with alpha "prores"
            for .mov and "ffv1" for .mkv.
        encoder: "auto" for hardware that works here, else software; "nvenc", "qsv",
            "videotoolbox", "vaapi" or "amf" for that hardware, or raise; "x264". By default
            software.
        options: encoder options, such as ``{"preset": "slow"}``.
        threads: encoding threads; 0 uses all cores (for H.264 at most eight).
    """

    codec: str | None = option(
        _CODECS, None, "of videos: h264, hevc, av1, vp9, prores, ffv1, ..", command=True, page=True
    )
    crf: int | None = option(
        Integer(0, 63), None, "quality: lower is better and larger", command=True, page=True
    )
    encoder: str | None = option(
        _ENCODERS, None, "hardware that must work; auto: that works, else software", command=True
    )
    options: Mapping[str, str | float] | None = option(Settings("a dict of FFmpeg's options"))
    threads: int = option(Integer(0, 1024), 0, "encoding threads (all cores)", command=True)

    @property
    def ffmpeg(self) -> dict[str, str]:
        """The encoder options by FFmpeg's names."""
        given = {name: str(value) for name, value in (self.options or {}).items()}
        return given if self.crf is None else {**given, "crf": str(self.crf)}


@dataclass(frozen=True, kw_only=True)
class EncodeOptions(DeviceOptions, EncoderOptions):
    """The options of ``video.write``.

    Args:
        format: the container, such as "mkv"; by default that of the suffix.
        fps: frames per second, for pictures without a time. Frames with a ``pts`` keep it, so
            variable rates are preserved.
        width: of the video, with ``height``; by default that of the first frame.
        height: of the video.
        audio_from: a file or a reader whose audio is copied, and encoded again only where the
            container cannot hold its codec. It ends with the pictures.
        tracks_from: a file or a reader of which everything but the pictures is kept: all audio
            (unless ``audio_from`` is given), subtitles, chapters, attachments, cover and tags.
            What the container cannot hold is converted or left out, and listed in a notice.
        retime: space all frames evenly by ``fps``, ignoring their own times.
        matrix: of the colors; by default the first frame's.
        range: of the values.
        pixel_aspect: a pixel's width / height, stored for players.
        loop: of an animated picture: how often it plays; 0, the default, is forever.
        alpha: keep alpha; the codec must be "prores", "vp9", "ffv1" or "png".
        pixel_format: FFmpeg's name of the layout to encode, such as "yuv444p"; by default
            "yuv420p", or the first that the encoder takes.
        hdr: how to code HDR: the transfer, the mastering display and the light levels. By default
            as ``frame.hdr`` of the first frame says. Frames of HDR are written with ten bits, by
            "hevc" (.webm: "av1") unless ``codec`` is given; formats of eight bits get them
            tone-mapped. Frames of SDR in an HDR video have SDR white at 203 cd/m2.
    """

    format: str | None = option(Fitting())
    fps: float | str | Fraction | None = option(Rate())
    width: int | None = option(Integer(0))
    height: int | None = option(Integer(0))
    audio_from: PathLike | Reader | Tracks | None = option(Fitting())
    tracks_from: PathLike | Reader | Tracks | None = option(Fitting())
    retime: bool = option(Flag(), False, "space frames evenly, ignoring their own times")
    matrix: str | None = option(_MATRIX)
    range: str = option(_RANGE, "limited")
    pixel_aspect: Fraction | float | None = option(_ASPECT)
    loop: int | None = option(_PLAYS, None, "plays of an animated picture; 0 is forever")
    alpha: bool = option(Flag(), False, "keep alpha: prores, png (.mov), vp9 (.webm), ffv1 (.mkv)")
    pixel_format: str | None = option(Text())
    hdr: Hdr | None = option(_HDR)


# filtering ----------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class FilterOptions(DecoderOptions, EncoderOptions):
    """The options of reading a video, filtering it and writing it: ``dala filter`` and jobs.

    Args:
        deinterlace: make whole pictures of the fields of interlaced videos.
        hdr: "sdr" to tone-map HDR, "keep" to keep it and more than 8 bits.
        audio: keep the sound.
    """

    deinterlace: bool = option(Flag(), False, "make whole pictures of fields", command=True)
    hdr: str = option(_TONES, "sdr", "tone-map HDR, or keep it: hevc or av1 (sdr)", command=True)
    audio: bool = option(Flag(), True, "drop the sound", command=True)
