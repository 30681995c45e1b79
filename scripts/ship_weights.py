"""Write the small models that come with the package: python scripts/ship_weights.py.

They are pulled and converted as by ``dala models pull``. The license texts beside them are written
by hand: look at the packages again before changing a version.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from dala.ml.weights.pull import SHIPPED, pull

for name in ("blazeface", "selfie"):
    path = pull(name, folder=SHIPPED)
    print(f"{path}: {path.stat().st_size:,} bytes")
