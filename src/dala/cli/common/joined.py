"""What ``dala cut`` and ``dala concat`` print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dala.errors import counted

if TYPE_CHECKING:
    from dala.media.video.joining.cut import JoinReport


def summary(out: str, made: JoinReport, seconds: float) -> str:
    """Return the line that says what was written, how, and in how many seconds.

    >>> from dala.media.video.joining.cut import JoinReport
    >>> summary("out.mp4", JoinReport(True, "", 30, 1.2), 0.1)
    'out.mp4: 30 frames, 1.2 s, copied without encoding (0.1 s)'
    """
    if made.copied:
        how = "copied without encoding"
    elif made.encoded == made.frames:
        how = "encoded again"
    else:
        how = f"{made.encoded} of them encoded again"
    why = f": {made.reason}" if made.reason else ""
    frames = counted(made.frames, "frames")
    return f"{out}: {frames}, {round(made.seconds, 6):g} s, {how}{why} ({seconds:.1f} s)"
