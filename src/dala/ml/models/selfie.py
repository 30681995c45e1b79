"""MediaPipe's selfie segmentation: a matte of people near the camera, in real time on a CPU."""

from __future__ import annotations

import numpy as np

from dala.ml.models.deeplab import upscale
from dala.ml.results import Matte
from dala.ml.spec import RawResult, human_model


def decode(raw: RawResult) -> Matte:
    """Return the probability of a person at each pixel, at the picture's size."""
    found = raw.first[..., 0]
    if raw.placement.source != found.shape[::-1]:
        found = upscale(found, raw.placement.source)
    return Matte(np.clip(found, 0, 1), raw.outputs)


MODEL = human_model(
    "selfie",
    "selfie",
    "8b7f5f95c0159a83a7240b1298a67012cfffd0396bfa653bdf452913610e9a88",
    "8f57aaa72dc068a50bd37c232d2e073e107912241e459002e1480876676f382a",
    task="matte",
    title="MediaPipe selfie segmentation, people near the camera, 256 x 256",
    size=(256, 256),
    decode=decode,
    finds="people near the camera",
    result="`Matte`: `.alpha`",
)
