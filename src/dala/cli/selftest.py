"""Compare the bytes that this machine's devices compute with the stored table of answers."""

from __future__ import annotations

import argparse
import json
from typing import Final

EXAMPLES: Final = """\
examples:
  dala selftest                    every device; half a minute each
  dala selftest --device webgpu:0  one device
  dala selftest --share few        a third of the rows
  dala selftest --only blur resize --share all
  dala selftest --json             for scripts

Exit code 1: a result differs, and is not known to. Please report what is printed.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "--device", action="append", help="this device; may be given again (default: every device)"
    )
    parser.add_argument(
        "--share", choices=("few", "most", "all"), default="most", help="how many of the rows"
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="these filters")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the report."""
    from dala.answers.report import selftest

    report = selftest(args.device, share=args.share, only=args.only)
    print(json.dumps(report.as_dict(), indent=2) if args.json else report)
    return 0 if report.ok else 1
