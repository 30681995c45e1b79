"""``dala info``: versions and devices, without advice."""

from __future__ import annotations

import argparse
import json
from typing import Final

EXAMPLES: Final = """\
examples:
  dala info                        versions and devices
  dala info --json                 for scripts
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this command's arguments."""
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--json", action="store_true", help="print as JSON, with everything `dala doctor` knows"
    )


def run(args: argparse.Namespace) -> int:
    """Prints what there is."""
    from dala.checkup import doctor

    report = doctor()
    print(json.dumps(report.as_dict(), indent=2) if args.json else report.facts())
    return 0
