"""The tracks that each container holds besides pictures, by the name of FFmpeg's muxer.

FFmpeg muxes more than players can read (Vorbis in MP4, say); these are the codecs that are usual.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

_PCM: Final = "pcm_s16le pcm_s24le pcm_s32le pcm_f32le pcm_s16be pcm_s24be pcm_u8"
#: Codecs of subtitles that are text, which can be converted into each other.
TEXT: Final = frozenset((
    "ass", "jacosub", "microdvd", "mov_text", "mpl2", "pjs", "realtext", "sami", "ssa", "stl",
    "subrip", "subviewer", "subviewer1", "text", "ttml", "vplayer", "webvtt",
))  # fmt: skip


@dataclass(frozen=True)
class Container:
    """The codecs that a container takes unchanged, and the targets for all others.

    Attributes:
        sound: codecs of sound, with spaces between; "*" is all.
        sound_encoder: FFmpeg's encoder for other sound; "" if there is none.
        subtitles: codecs of subtitles, likewise.
        text: the codec that other text subtitles are converted to; "" if there is none.
        cover: how a cover picture is stored: "stream", "attachment" or "".
        attachments: whether files can be attached.
        chapters: whether it has chapters.
    """

    sound: str = ""
    sound_encoder: str = ""
    subtitles: str = ""
    text: str = ""
    cover: str = ""
    attachments: bool = False
    chapters: bool = False

    def takes_sound(self, codec: str) -> bool:
        """Return whether sound of a codec is copied."""
        return codec in self.sound.split() or self.sound == "*"


_MP4: Final = Container(
    sound="aac ac3 alac eac3 flac mp2 mp3 opus",
    sound_encoder="aac",
    subtitles="mov_text",
    text="mov_text",
    cover="stream",
    chapters=True,
)

CONTAINERS: Final = {
    "mp4": _MP4,
    "ipod": _MP4,
    "mov": replace(_MP4, sound=f"aac ac3 alac eac3 mp3 {_PCM}"),
    "matroska": Container(
        sound="*",
        sound_encoder="aac",
        subtitles="ass hdmv_text_subtitle ssa subrip text webvtt "
        "hdmv_pgs_subtitle dvd_subtitle dvb_subtitle",
        text="subrip",
        cover="attachment",
        attachments=True,
        chapters=True,
    ),
    "webm": Container(
        sound="opus vorbis",
        sound_encoder="libopus",
        subtitles="webvtt",
        text="webvtt",
        chapters=True,
    ),
    "avi": Container(
        sound="aac ac3 mp2 mp3 pcm_s16le pcm_u8 wmav2",
        sound_encoder="libmp3lame",
    ),
    "mpegts": Container(
        sound="aac ac3 dts eac3 mp2 mp3 opus",
        sound_encoder="aac",
        subtitles="dvb_subtitle dvb_teletext",
    ),
    "mpeg": Container(sound="ac3 mp2", sound_encoder="mp2"),
    "vob": Container(sound="ac3 mp2", sound_encoder="mp2"),
    "ogg": Container(sound="flac opus vorbis", sound_encoder="libopus", chapters=True),
    "flv": Container(sound="aac mp3", sound_encoder="aac"),
    "3gp": Container(
        sound="aac amr_nb amr_wb",
        sound_encoder="aac",
        subtitles="mov_text",
        text="mov_text",
    ),
    "asf": Container(sound="mp3 wmav1 wmav2", sound_encoder="wmav2"),
    "mxf": Container(sound="pcm_s16le pcm_s24le", sound_encoder="pcm_s16le"),
    "nut": Container(sound="*", chapters=True),
}


def container_of(muxer: str) -> Container:
    """Return the codecs of a container, by the name of its muxer; none for unknown ones.

    >>> container_of("webm").takes_sound("aac"), container_of("yuv4mpegpipe").sound_encoder
    (False, '')
    """
    known = {"ogv": "ogg", "3g2": "3gp", "asf_stream": "asf"}.get(muxer, muxer)
    return CONTAINERS.get(known, Container())
