"""Destinations of live streams: a URL, a folder, or a virtual camera."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dala.errors import ParameterError, VideoError
from dala.errors.masking import resembles_url
from dala.untrusted.address import Address, scheme_of
from dala.untrusted.secret import SecretUrl

#: The playlist in a folder of HLS.
PLAYLIST: Final = "live.m3u8"
#: Prefix of a virtual camera: "camera:" or "camera:/dev/video2".
CAMERA: Final = "camera:"
_EXPECTED: Final = (
    "a URL of rtmp, rtmps, rtsp, rtsps, udp, tcp, srt, whip+http or whip+https, a folder for HLS, "
    "or 'camera:'"
)
#: FFmpeg's muxer of each kind of URL, and the muxer's options.
_MUXERS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "rtmp": ("flv", {"flvflags": "no_duration_filesize"}),
    "rtmps": ("flv", {"flvflags": "no_duration_filesize"}),
    "rtsp": ("rtsp", {"rtsp_transport": "tcp"}),
    "rtsps": ("rtsp", {"rtsp_transport": "tcp"}),
    "udp": ("mpegts", {}),
    "tcp": ("mpegts", {}),
    "srt": ("mpegts", {}),
    "whip+http": ("whip", {}),
    "whip+https": ("whip", {}),
}
#: Seconds of a segment of HLS, and how many the playlist names.
SEGMENT_SECONDS: Final = 2
_SEGMENTS: Final = 6


@dataclass(frozen=True)
class Destination:
    """The destination of a live stream, as FFmpeg opens it.

    ``label`` is for messages: it names no password and no stream key.
    """

    name: str | SecretUrl
    label: str
    muxer: str
    options: dict[str, str] = field(default_factory=dict)
    #: FFmpeg's encoder for sound; "" if the destination takes none.
    sound: str = "aac"
    #: The folder of HLS, to be created.
    folder: Path | None = None

    @property
    def opened(self) -> str:
        """The name that FFmpeg opens, with its secrets."""
        if not isinstance(self.name, SecretUrl):
            return self.name
        name = self.name.reveal().removeprefix("whip+")
        if name.startswith("udp:") and "pkt_size" not in name:  # seven packets of MPEG-TS
            name += ("&" if "?" in name else "?") + "pkt_size=1316"
        return name

    def hide(self, text: str) -> str:
        """Return a text of FFmpeg with the secrets of the destination masked."""
        return self.name.hide(text) if isinstance(self.name, SecretUrl) else text


def destination_of(where: str | os.PathLike[str], call: str) -> Destination:
    """Return the destination that a URL, a folder or "camera:" names.

    Raises:
        ParameterError: it is none of these.
        VideoError: the folder is a file.

    >>> destination_of("rtmp://host/app/secret-key", "Scene.live").label
    'rtmp://host/...'
    """
    if not isinstance(where, str | os.PathLike):
        raise ParameterError.invalid(call, "url", _EXPECTED, type(where))
    text = os.fspath(where)
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise ParameterError.invalid(call, "url", _EXPECTED, where)
    scheme = scheme_of(text) if isinstance(where, str) else None
    if scheme is None and isinstance(where, str) and text.startswith(CAMERA):
        return Destination(text[len(CAMERA) :], text, "camera", sound="")
    if scheme is None and resembles_url(text):
        raise ParameterError.invalid(call, "url", _EXPECTED, text)
    if scheme is None:
        return _folder(Path(text), call)
    if scheme in ("http", "https"):
        advice = f"For WHIP write 'whip+{scheme}://...'."
        raise ParameterError.invalid(call, "url", _EXPECTED, text, advice)
    address = Address.parse(text, call, "url", _MUXERS, _EXPECTED)
    if not address.host and address.port is None:
        raise ParameterError.invalid(call, "url", "a URL with a host", text)
    muxer, options = _MUXERS[scheme]
    return Destination(
        address.url, str(address.url), muxer, dict(options), "libopus" if muxer == "whip" else "aac"
    )


def _folder(path: Path, call: str) -> Destination:
    if path.suffix == ".m3u8":
        folder, playlist = path.parent, path
    elif path.suffix in (".mp4", ".mkv", ".mov", ".webm", ".ts", ".flv", ".avi"):
        raise ParameterError.invalid(
            call, "url", _EXPECTED, str(path), "Scene.render_to and dala filter write files."
        )
    else:
        folder, playlist = path, path / PLAYLIST
    if folder.exists() and not folder.is_dir():
        raise VideoError(f"{call}: {str(folder)!r} is a file. HLS needs a folder.")
    options = {
        "hls_time": str(SEGMENT_SECONDS),
        "hls_list_size": str(_SEGMENTS),
        "hls_flags": "delete_segments+independent_segments+temp_file",
        "hls_segment_filename": str(playlist.with_suffix("")) + "-%05d.ts",
    }
    return Destination(str(playlist), str(playlist), "hls", options, folder=folder)
