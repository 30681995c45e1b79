"""Conversion of a pickled YOLOv5 network (version 6 layers), with decoded boxes as output."""

from __future__ import annotations

from typing import Final

import numpy as np

from dala.errors import ModelError
from dala.ml.convert.onnx_file import Graph
from dala.ml.convert.torch_file import PickledObject, read_torch
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


SIZE: Final = 640


def convert_yolo(data: bytes) -> bytes:
    """Convert the torch file of a YOLOv5; rows are xywh in pixels, objectness, class scores."""
    found = read_torch(data)
    network = found.get("model") if isinstance(found, dict) else found
    if not isinstance(network, PickledObject) or "model" not in _parts(network):
        raise ModelError("convert_yolo: the file has no YOLOv5 network.")
    return _Yolo(network).graph.save()


class _Yolo:
    """Adds the layers of a network to an ONNX graph."""

    def __init__(self, network: PickledObject) -> None:
        self.graph = Graph("yolo_v5")
        names = network.names
        listed = names.values() if isinstance(names, dict) else names
        self.graph.metadata["names"] = repr(dict(enumerate(listed)))
        x = self.graph.input("images", ("batch", 3, SIZE, SIZE))
        made: list[str] = []
        for layer in _parts(_parts(network)["model"]).values():
            sources = layer.f if isinstance(layer.f, list) else [layer.f]
            inputs = [x if k == -1 else made[k] for k in sources]
            x = self.layer(layer, inputs)
            made.append(x)

    def layer(self, layer: PickledObject, inputs: list[str]) -> str:
        """Add a layer, and return the name of its output."""
        kind, parts = layer.kind.rpartition(".")[2], _parts(layer)
        if kind == "Conv":
            return self.conv(layer, inputs[0])
        if kind == "C3":
            return self.c3(parts, inputs[0])
        if kind == "SPPF":
            return self.sppf(parts, inputs[0])
        if kind == "Upsample":
            scales = self.graph.constant(np.array([1, 1, 2, 2], np.float32))
            return self.graph.node(
                "Resize", inputs[0], "", scales, mode="nearest",
                coordinate_transformation_mode="asymmetric", nearest_mode="floor",
            )  # fmt: skip
        if kind == "Concat":
            return self.graph.node("Concat", *inputs, axis=1)
        if kind == "Detect":
            return self.detect(layer, inputs)
        raise ModelError(f"convert_yolo: unsupported layer {kind!r}.")

    def conv(self, layer: PickledObject, x: str) -> str:
        """Add a convolution with folded batch norm, and SiLU."""
        conv, norm = _parts(layer)["conv"], _parts(layer)["bn"]
        values = _weights(norm)
        w, b = fold_batch_norm(_weights(conv)["weight"], None, values, norm.eps)
        x = self.plain(conv, x, w, b)
        return self.graph.node("Mul", x, self.graph.node("Sigmoid", x))

    def plain(self, conv: PickledObject, x: str, w: NDArray, b: NDArray) -> str:
        return self.graph.node(
            "Conv", x, self.graph.constant(w), self.graph.constant(b),
            kernel_shape=conv.kernel_size, strides=conv.stride, pads=(*conv.padding,) * 2,
            dilations=conv.dilation, group=conv.groups,
        )  # fmt: skip

    def c3(self, parts: dict[str, PickledObject], x: str) -> str:
        y = self.conv(parts["cv1"], x)
        for block in _parts(parts["m"]).values():
            inner = self.conv(_parts(block)["cv2"], self.conv(_parts(block)["cv1"], y))
            y = self.graph.node("Add", y, inner) if block.add else inner
        both = self.graph.node("Concat", y, self.conv(parts["cv2"], x), axis=1)
        return self.conv(parts["cv3"], both)

    def sppf(self, parts: dict[str, PickledObject], x: str) -> str:
        pool, steps = parts["m"], [self.conv(parts["cv1"], x)]
        for _ in range(3):
            steps.append(
                self.graph.node(
                    "MaxPool", steps[-1], kernel_shape=(pool.kernel_size,) * 2,
                    strides=(pool.stride,) * 2, pads=(pool.padding,) * 4,
                )
            )  # fmt: skip
        return self.conv(parts["cv2"], self.graph.node("Concat", *steps, axis=1))

    def detect(self, layer: PickledObject, inputs: list[str]) -> str:
        """Add the detection head: rows of x, y, w, h in pixels, objectness and scores."""
        rows = []
        anchors = _weights(layer)["anchors"].astype(np.float32)
        for k, (x, conv) in enumerate(
            zip(inputs, _parts(_parts(layer)["m"]).values(), strict=True)
        ):
            stride = float(layer.stride[k])
            w, b = (_weights(conv)[n].astype(np.float32) for n in ("weight", "bias"))
            rows.append(self.grid(self.plain(conv, x, w, b), layer, anchors[k] * stride, stride))
        made = self.graph.node("Concat", *rows, axis=1)
        count = sum(layer.na * (SIZE // int(s)) ** 2 for s in layer.stride)
        self.graph.output(made, ("batch", count, layer.no), name="output0")
        return made

    def grid(self, x: str, layer: PickledObject, anchors: NDArray, stride: float) -> str:
        g, side = self.graph, SIZE // int(stride)
        shape = g.ints([-1, layer.na, layer.no, side, side])
        x = g.node("Transpose", g.node("Reshape", x, shape), perm=(0, 1, 3, 4, 2))
        x = g.node("Sigmoid", x)
        parts = [(0, 2), (2, 4), (4, layer.no)]
        xy, wh, rest = (g.slice(x, 4, a, b) for a, b in parts)
        y_at, x_at = np.mgrid[0:side, 0:side].astype(np.float32)
        corner = (np.stack([x_at, y_at], -1)[None, None] - 0.5) * np.float32(stride)
        two = g.constant(np.float32(2 * stride))
        xy = g.node("Add", g.node("Mul", xy, two), g.constant(corner))
        doubled = g.node("Mul", wh, g.constant(np.float32(2)))
        square = g.node("Mul", doubled, doubled)
        wh = g.node("Mul", square, g.constant(anchors.reshape(1, layer.na, 1, 1, 2)))
        x = g.node("Concat", xy, wh, rest, axis=4)
        return g.node("Reshape", x, g.ints([0, -1, layer.no]))


def _parts(layer: PickledObject) -> dict[str, PickledObject]:
    """Return the layers inside a layer, by name."""
    found: dict[str, PickledObject] = vars(layer).get("_modules", {})
    return found


def _weights(layer: PickledObject) -> dict[str, NDArray]:
    """Return the parameters and buffers of a layer, by name."""
    return {**vars(layer)["_parameters"], **vars(layer)["_buffers"]}
