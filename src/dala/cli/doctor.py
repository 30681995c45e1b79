"""``dala doctor``: explains the machine."""

from __future__ import annotations

import argparse
import json
from typing import Final

EXAMPLES: Final = """\
examples:
  dala doctor                      devices, drivers, what is missing and how to install it
  dala doctor --strict --json      for scripts
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this command's arguments."""
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 if there are problems (for scripts)"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the report."""
    from dala.checkup import doctor

    report = doctor()
    print(json.dumps(report.as_dict(), indent=2) if args.json else report)
    return 1 if args.strict and not report.ok else 0
