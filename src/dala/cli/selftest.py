"""Compare the bytes that this machine's devices compute with the stored table of answers.

examples:
  dala selftest                    every device; half a minute each
  dala selftest --device webgpu:0  one device
  dala selftest --share few        a third of the rows
  dala selftest --only blur resize --share all
  dala selftest --json             for scripts

Exit code 1: a result differs. Please report what is printed.
"""

from __future__ import annotations

import argparse
from typing import Final

from dala.cli.common import arguments
from dala.cli.common.arguments import argument

ARGUMENTS: Final[arguments.Options] = {
    "--device": argument(
        "this device; may be given again (default: every device)", action="append"
    ),
    "--share": argument("how many of the rows", choices=("few", "most", "all"), default="most"),
    "--only": argument("these filters", nargs="+", metavar="NAME", default=[]),
    "--json": arguments.switch("print the report as JSON"),
}


def run(args: argparse.Namespace) -> int:
    """Print the report."""
    from dala.answers.report import selftest

    report = selftest(args.device, share=args.share, only=args.only)
    return arguments.show(args, report.as_dict(), report, code=0 if report.ok else 1)
