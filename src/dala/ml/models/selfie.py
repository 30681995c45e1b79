"""MediaPipe's selfie segmentation: a matte of people near the camera, in real time on a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from dala.ml.convert.tfjs import convert_tfjs
from dala.ml.models.deeplab import upscale
from dala.ml.prepare import Placement
from dala.ml.results import Matte, Outputs
from dala.ml.spec import ModelSpec
from dala.ml.weights.origin import human_models


def decode(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, float]
) -> Matte:
    """Return the probability of a person at each pixel, at the picture's size."""
    found = next(iter(outputs.values()))[..., 0]
    if placement.source != found.shape[::-1]:
        found = upscale(found, placement.source)
    return Matte(np.clip(found, 0, 1), outputs)


MODEL = ModelSpec(
    name="selfie",
    task="matte",
    title="MediaPipe selfie segmentation, people near the camera, 256 x 256",
    license="Apache-2.0 (MediaPipe; its package says MIT)",
    prepare={"normalize": "unit", "fit": "stretch"},
    size=(256, 256),
    layout="nhwc",
    decode=decode,
    origin=human_models(
        {
            "selfie.json": "8b7f5f95c0159a83a7240b1298a67012cfffd0396bfa653bdf452913610e9a88",
            "selfie.bin": "8f57aaa72dc068a50bd37c232d2e073e107912241e459002e1480876676f382a",
        },
        partial(convert_tfjs, name="selfie"),
    ),
    finds="people near the camera",
    result="`Matte`: `.alpha`",
)
