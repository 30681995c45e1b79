"""Explain why frames were late, from a trace.

examples:
  dala why run.json                    which frames were late, why, and what to change
  dala why run.json --budget 33.3      against the time of a frame at 30 a second
  dala why run.json --open             look at the trace, in a browser
  dala why run.json --picture late.svg
                                       the slowest frames as a picture

`dala --trace run.json filter clip.mp4 out.mp4 --blur 9` writes a trace.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from dala.cli.common import arguments
from dala.cli.common.arguments import argument, switch
from dala.errors import ParameterError
from dala.extensions import write_whole

ARGUMENTS: Final[arguments.Options] = {
    "trace": argument("what --trace, dala.trace or DALA_TRACE wrote", metavar="PATH"),
    "--budget": argument(
        "milliseconds of a frame (its due time, else the usual time)", type=float, metavar="MS"
    ),
    "--tolerance": argument(
        "milliseconds that a frame may be late (8)", type=float, default=8.0, metavar="MS"
    ),
    "--open": switch("show the trace in a browser, on this machine"),
    "--picture": argument("write a picture of the slowest frames (.svg)", metavar="PATH"),
    **arguments.JSON,
}


def run(args: argparse.Namespace) -> int:
    """Print the report."""
    from dala.trace.report import TraceReport

    path = Path(args.trace)
    report = TraceReport.open(path, tolerance=args.tolerance, budget=args.budget)
    if args.picture is not None:
        from dala.trace.drawing import picture

        target = Path(args.picture)
        if target.suffix.lower() != ".svg":
            raise ParameterError(
                f"--picture must be a file such as late.svg, got {args.picture!r}."
            )
        write_whole(target, picture(report).encode())
    arguments.show(args, report.json(), report)
    if args.open:
        from dala.cli.traces.perfetto import show

        show(path, report)
    return 0
