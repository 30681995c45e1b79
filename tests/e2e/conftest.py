"""Examples import what they share from their own folder, as they do when they are run."""

import pathlib
import sys

EXAMPLES = str(pathlib.Path(__file__).parents[2] / "examples")
if EXAMPLES not in sys.path:
    sys.path.append(EXAMPLES)
