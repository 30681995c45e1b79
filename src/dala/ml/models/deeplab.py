"""DeepLab v3: what each pixel belongs to, of Pascal VOC's twenty classes and the background."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dala.gpu.compute import from_array
from dala.gpu.compute.kernel import get as get_kernel
from dala.ml.boxes import softmax
from dala.ml.models.recipe import Outputs, Recipe
from dala.ml.prepare import Placement
from dala.ml.results import Segmentation

#: Classes whose largest probability stays below this are left out.
_SEEN = 0.05


def decode(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, Any]
) -> Segmentation:
    """Probabilities of the classes that occur, in the picture's size; the likeliest at each."""
    logits = next(iter(outputs.values())).astype(np.float32)
    share = softmax(logits)
    left, top, right, bottom = placement.window
    share = share[top:bottom, left:right]
    seen = [k for k in range(share.shape[-1]) if share[..., k].max() > _SEEN]
    planes = {k: enlarged(share[..., k], placement.source) for k in seen}
    stacked = np.stack([planes[k] for k in seen])
    kind = np.uint8 if logits.shape[-1] <= 256 else np.int32
    classes = np.array(seen, kind)[np.argmax(stacked, axis=0)]
    return Segmentation(classes, labels, planes, outputs)


def enlarged(plane: Any, size: tuple[int, int]) -> Any:
    """A plane of f32 in the size of a picture, (width, height), bilinear."""
    source = from_array(np.ascontiguousarray(plane, np.float32), device="cpu")
    return get_kernel("resize")(source, size=(size[1], size[0])).numpy()


RECIPES = {
    "deeplab": Recipe(
        name="deeplab",
        task="segment",
        title="DeepLab v3 on MobileNetV2, 21 classes of Pascal VOC, 257 x 257",
        licence="Apache-2.0 (TensorFlow; the package that carries it says MIT)",
        prepare={"normalize": "signed", "fit": "stretch"},
        decode=decode,
        labels="voc",
    )
}
