"""Playlists of HLS that have ended, so that every player reads them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from dala.media.parts import PartFile

#: A packet of MPEG-TS that receivers ignore, and the packets by which they recognize a stream.
_NULL: Final = b"\x47\x1f\xff\x10" + b"\xff" * 184
_LEAST: Final = 32


def complete_playlist(path: Path) -> None:
    """Make a playlist readable whose stream was very short.

    FFmpeg rounds a target duration below half a second to 0, which players refuse or read without
    a pause, and its own reader needs some packets to recognize a segment.
    """
    try:
        text = path.read_text()
    except OSError:
        return  # nothing was sent
    segments = [line for line in text.splitlines() if line and not line.startswith("#")]
    if segments:
        segment = path.parent / segments[-1]
        missing = _LEAST - segment.stat().st_size // len(_NULL) if segment.is_file() else 0
        if missing > 0:
            with segment.open("ab") as file:
                file.write(_NULL * missing)
    made = re.sub(r"(?m)^#EXT-X-TARGETDURATION:0$", "#EXT-X-TARGETDURATION:1", text)
    if made != text:
        with PartFile(path) as part:
            part.path.write_text(made)
            part.complete()
