"""Explain this machine: devices, drivers, missing packages and how to install them.

examples:
  dala doctor                      devices, drivers, missing packages and how to install them
  dala doctor --strict --json      for scripts
  dala doctor --device webgpu:1    and test that device
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from dala.cli.common import arguments, settings
from dala.cli.common.arguments import Report, argument, switch

if TYPE_CHECKING:
    from dala.media.filters.plans import Filter

ARGUMENTS: Final[arguments.Options] = {
    "--json": switch("print the report as JSON"),
    "--strict": switch("exit with 1 if there are problems (for scripts)"),
    "--device": argument("test this device too, with filters on a small picture"),
}


def run(args: argparse.Namespace) -> int:
    """Print the report."""
    from dala.machine.report import doctor

    report = doctor()
    found = settings.all_settings()
    tested = _test_device(args.device) if args.device else None
    page, facts = str(report), report.as_dict()
    facts["settings"] = {name: value for name, (value, _) in found.items()}
    if found:
        page += "\n\nSettings\n  " + "\n  ".join(settings.lines(found))
    if tested is not None:
        page += f"\n{tested['device']}: {tested['what']}"
        facts["tried"] = tested
    fine = report.ok and (tested is None or tested["ok"])
    return arguments.show(args, facts, page, code=1 if args.strict and not fine else 0)


def _test_device(device: str) -> Report:
    """Compare a list of filters on a small picture with the reference engine."""
    import numpy as np

    from dala.errors import DalaError
    from dala.media import FramePipeline

    filters: list[Filter] = [
        ("blur", {"radius": 2}),
        ("saturation", {"value": 0.5}),
        ("sepia", {}),
    ]
    picture = np.random.default_rng(0).integers(0, 256, (48, 64, 4), np.uint8)
    try:
        with (
            FramePipeline(64, 48, device=device) as own,
            FramePipeline(64, 48, device="reference") as reference,
        ):
            made, named = own.process(picture, filters), own.device
            difference = int(np.abs(made.astype(int) - reference.process(picture, filters)).max())
    except DalaError as error:
        return {"device": device, "ok": False, "what": str(error)}
    fine = difference <= 3  # each of the three stages may round up or down
    verdict = "filters correctly" if fine else "filters INCORRECTLY"
    result = f"{verdict}: at most {difference} of 255 from the definition"
    return {"device": named, "ok": fine, "what": result}
