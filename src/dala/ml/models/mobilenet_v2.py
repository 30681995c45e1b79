"""MobileNetV2: which of ImageNet's thousand classes a picture shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dala.ml.boxes import softmax
from dala.ml.models.recipe import Outputs, Recipe
from dala.ml.prepare import Placement
from dala.ml.results import Scores


def decode(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, Any]
) -> Scores:
    """Probabilities of the classes, whether the model gives logits or those."""
    values = np.asarray(next(iter(outputs.values())), np.float32).reshape(-1)
    return Scores(probabilities(values), labels, outputs)


def probabilities(values: Any) -> Any:
    """Values that are not probabilities yet, made some."""
    values = np.asarray(values)
    positive = np.minimum.reduce(values, axis=None) >= 0
    ready = positive and abs(float(values.sum(dtype=np.float64)) - 1) < 1e-3
    return values if ready else softmax(values.astype(np.float32, copy=False))


RECIPES = {
    "mobilenet_v2": Recipe(
        name="mobilenet_v2",
        task="classify",
        title="MobileNetV2, 1000 classes of ImageNet, 224 x 224",
        licence="BSD-3-Clause (torchvision)",
        prepare={"normalize": "imagenet", "fit": "crop", "keep": 0.875},
        decode=decode,
        labels="imagenet",
    )
}
