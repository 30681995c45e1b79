"""torchvision's MobileNetV2 as ONNX, with batch norms folded into the convolutions."""

from __future__ import annotations

import numpy as np

from dala.errors import ModelError
from dala.ml.convert.onnx_file import Graph
from dala.ml.convert.torch_file import read_torch
from dala.typing import NDArray

_BLOCKS = 17


def fold_batch_norm(
    weights: NDArray, bias: NDArray | None, norm: dict[str, NDArray], eps: float
) -> tuple[NDArray, NDArray]:
    """Return the weights and bias of a convolution that includes the following batch norm.

    ``norm`` has "weight", "bias", "running_mean" and "running_var".
    """
    weights = np.asarray(weights, np.float64)
    gain = np.asarray(norm["weight"], np.float64) / np.sqrt(
        np.asarray(norm["running_var"], np.float64) + eps
    )
    start = np.zeros(len(gain)) if bias is None else np.asarray(bias, np.float64)
    shift = (start - norm["running_mean"]) * gain + norm["bias"]
    made = weights * gain.reshape(-1, *[1] * (weights.ndim - 1))
    return made.astype(np.float32), shift.astype(np.float32)


def convert_mobilenet(data: bytes) -> bytes:
    """Convert the torch file of a MobileNetV2 to ONNX."""
    state = read_torch(data)
    if not isinstance(state, dict) or "classifier.1.weight" not in state:
        raise ModelError("convert_mobilenet: the file has no weights of a MobileNetV2.")
    graph = Graph("mobilenet_v2")
    x = graph.input("input", ("batch", 3, 224, 224))

    def conv(x: str, at: str, norm: str, stride: int, groups: int, relu: bool) -> str:
        parts = ("weight", "bias", "running_mean", "running_var")
        w, b = fold_batch_norm(
            state[f"{at}.weight"], None, {p: state[f"{norm}.{p}"] for p in parts}, 1e-5
        )
        pad = w.shape[2] // 2
        made = graph.node(
            "Conv", x, graph.constant(w), graph.constant(b),
            kernel_shape=w.shape[2:], strides=(stride,) * 2, pads=(pad,) * 4, group=groups,
        )  # fmt: skip
        return graph.clip(made, 0, 6) if relu else made

    x = conv(x, "features.0.0", "features.0.1", 2, 1, True)
    strides = {2: 2, 4: 2, 7: 2, 14: 2}
    for k in range(1, _BLOCKS + 1):
        base, start = f"features.{k}.conv", x
        step = 0
        if f"{base}.3.weight" in state and state[f"{base}.0.0.weight"].shape[2] == 1:
            x = conv(x, f"{base}.0.0", f"{base}.0.1", 1, 1, True)
            step = 1
        middle = state[f"{base}.{step}.0.weight"]
        stride = strides.get(k, 1)
        x = conv(x, f"{base}.{step}.0", f"{base}.{step}.1", stride, len(middle), True)
        last = state[f"{base}.{step + 1}.weight"]
        x = conv(x, f"{base}.{step + 1}", f"{base}.{step + 2}", 1, 1, False)
        first = state[f"{base}.0.0.weight"]
        entering = len(first) if step == 0 else first.shape[1]
        if stride == 1 and entering == len(last):
            x = graph.node("Add", x, start)
    x = conv(x, "features.18.0", "features.18.1", 1, 1, True)
    x = graph.node("Flatten", graph.node("GlobalAveragePool", x), axis=1)
    w, b = state["classifier.1.weight"], state["classifier.1.bias"]
    x = graph.node("Gemm", x, graph.constant(w), graph.constant(b), transB=1)
    graph.output(x, ("batch", len(b)), name="output")
    return graph.save()
