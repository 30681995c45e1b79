"""List versions and devices."""

from __future__ import annotations

import argparse
from typing import Final

from dala.cli.common import arguments

EXAMPLES: Final = """\
examples:
  dala info                        versions and devices
  dala info --json                 for scripts
  dala info --device webgpu        everything about one device
"""


ARGUMENTS: Final[arguments.Options] = {
    "--json": arguments.switch("print as JSON, with everything `dala doctor` reports"),
    "--device": arguments.argument("only this device: auto, gpu, cpu, webgpu:N, .."),
}


def run(args: argparse.Namespace) -> int:
    """Print versions and devices."""
    if args.device:
        _device(args)
        return 0
    from dala.machine.report import doctor

    report = doctor()
    return arguments.show(args, report.as_dict(), report.facts())


def _device(args: argparse.Namespace) -> None:
    import dala
    from dala.gpu import compute

    with dala.device(args.device):
        facts = compute.device_info()
    arguments.show(args, facts)
    for name, value in () if args.json else facts.items():
        if isinstance(value, dict):
            print(name)
            print("\n".join(f"  {key:46} {held:,}" for key, held in value.items()))
        else:
            shown = " ".join(map(str, value)) if isinstance(value, list | tuple) else value
            print(f"{name:16} {shown}")
