"""``dala doctor``: explains the machine."""

from __future__ import annotations

import argparse
import json
from typing import Any, Final

EXAMPLES: Final = """\
examples:
  dala doctor                      devices, drivers, what is missing and how to install it
  dala doctor --strict --json      for scripts
  dala doctor --device webgpu:1    and try that device
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this command's arguments."""
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 if there are problems (for scripts)"
    )
    parser.add_argument("--device", help="try this one too: does it filter a picture as it should?")


def run(args: argparse.Namespace) -> int:
    """Prints the report."""
    from dala.machine.report import doctor

    report = doctor()
    tried = _tried(args.device) if args.device else None
    if args.json:
        extra = {} if tried is None else {"tried": tried}
        print(json.dumps({**report.as_dict(), **extra}, indent=2))
    else:
        print(report)
        if tried is not None:
            print(f"{tried['device']}: {tried['what']}")
    fine = report.ok and (tried is None or tried["ok"])
    return 1 if args.strict and not fine else 0


def _tried(device: str) -> dict[str, Any]:
    """A list of filters over a small picture there, compared with what they mean."""
    import numpy as np

    from dala.errors import DalaError
    from dala.media import FramePipeline

    filters: list[tuple[str, dict[str, Any]]] = [
        ("blur", {"radius": 2}),
        ("saturation", {"value": 0.5}),
        ("sepia", {}),
    ]
    picture = np.random.default_rng(0).integers(0, 256, (48, 64, 4), np.uint8)
    try:
        with (
            FramePipeline(64, 48, device=device) as there,
            FramePipeline(64, 48, device="reference") as meant,
        ):
            made, named = there.process(picture, filters), there.device
            apart = int(np.abs(made.astype(int) - meant.process(picture, filters)).max())
    except DalaError as error:
        return {"device": device, "ok": False, "what": str(error)}
    fine = apart <= 3  # each of the three stages may round to either side
    verdict = "filters as it should" if fine else "filters WRONGLY"
    what = f"{verdict}: at most {apart} of 255 from the definition"
    return {"device": named, "ok": fine, "what": what}
