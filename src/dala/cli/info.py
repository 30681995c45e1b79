"""List versions and devices."""

from __future__ import annotations

import argparse
import json
from typing import Final

EXAMPLES: Final = """\
examples:
  dala info                        versions and devices
  dala info --json                 for scripts
  dala info --device webgpu        everything about one device
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument(
        "--json", action="store_true", help="print as JSON, with everything `dala doctor` reports"
    )
    parser.add_argument("--device", help="only this device: auto, gpu, cpu, webgpu:N, ..")


def run(args: argparse.Namespace) -> int:
    """Print versions and devices."""
    if args.device:
        _device(args)
        return 0
    from dala.machine.report import doctor

    report = doctor()
    print(json.dumps(report.as_dict(), indent=2) if args.json else report.facts())
    return 0


def _device(args: argparse.Namespace) -> None:
    import dala
    from dala.gpu import compute

    with dala.device(args.device):
        facts = compute.device_info()
    if args.json:
        print(json.dumps(facts, indent=2))
        return
    for name, value in facts.items():
        if isinstance(value, dict):
            print(name)
            print("\n".join(f"  {key:46} {held:,}" for key, held in value.items()))
        else:
            shown = " ".join(map(str, value)) if isinstance(value, list | tuple) else value
            print(f"{name:16} {shown}")
