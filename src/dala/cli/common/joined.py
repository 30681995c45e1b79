"""The work of ``dala cut`` and ``dala concat``, and its report."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import perf_counter
from typing import Final

from dala.cli.common import arguments
from dala.cli.common.signals import stopping
from dala.errors import counted
from dala.media.video.joining.cut import JoinReport
from dala.media.video.options import EncoderOptions

#: The options of the result.
ENCODING: Final[arguments.Options] = {
    "--no-audio": arguments.switch("drop the sound"),
    **EncoderOptions.command_line(),
    **arguments.DEVICE,
    **arguments.JSON,
}


def joined(
    args: argparse.Namespace, facts: arguments.Report, work: Callable[[EncoderOptions], JoinReport]
) -> int:
    """Do the work, print its report with the facts, and return the exit code."""
    encoding = EncoderOptions.checked(f"dala {args.command}", EncoderOptions.given(args))
    begin = perf_counter()
    with stopping():
        made = work(encoding)
    seconds = perf_counter() - begin
    duration = {"duration": round(made.seconds, 6), "seconds": round(seconds, 3)}
    report = {**facts, **made._asdict(), **duration}
    return arguments.show(args, report, summary(args.out, made, seconds))


def summary(out: str, made: JoinReport, seconds: float) -> str:
    """Return the line of a result: the file, how it was made, and in how many seconds.

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
