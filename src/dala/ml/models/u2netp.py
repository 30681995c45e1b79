"""U2-Net, the small one: what stands in front, for cut-outs and virtual backgrounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dala.ml.models.deeplab import enlarged
from dala.ml.models.recipe import Outputs, Recipe
from dala.ml.prepare import Placement
from dala.ml.results import Matte


def decode(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, Any]
) -> Matte:
    """The first map, stretched to 0..1 where it says anything at all, in the picture's size."""
    found = next(iter(outputs.values()))[0].astype(np.float32)
    low, high = float(found.min()), float(found.max())
    if high > 0.1 and high > low:
        found = (found - low) / (high - low)
    return Matte(np.clip(enlarged(found, placement.source), 0, 1), outputs)


RECIPES = {
    "u2netp": Recipe(
        name="u2netp",
        task="matte",
        title="U2-Net (small), foreground matte, 320 x 320",
        licence="Apache-2.0 (the package that carries it says MIT)",
        prepare={"normalize": "imagenet", "fit": "stretch"},
        decode=decode,
    )
}
