"""Conversion of convolutional TFLite networks in f32, such as BlazeFace and DeepLab."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

import numpy as np

from dala.errors import ModelError
from dala.ml.convert.layers import Layers
from dala.ml.convert.tflite_file import Network, Op, Table, read_tflite
from dala.typing import NDArray

_ACTIVATIONS: Final = {0: "none", 1: "relu", 3: "relu6"}
_SAME: Final = 0


def convert_tflite(data: bytes, name: str = "network") -> bytes:
    """Convert a TFLite file to ONNX; inputs and outputs keep their names and shapes.

    Raises:
        ModelError: the file is damaged, or has an operator that is not supported.
    """
    network = read_tflite(data)
    try:
        return _Converter(network, name).save()
    except (LookupError, ValueError, ArithmeticError, TypeError, struct.error) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(
            f"convert_tflite: the network is damaged: {type(error).__name__}: {error}"
        ) from error


class _Converter:
    def __init__(self, network: Network, name: str) -> None:
        self.net = network
        self.layers = Layers(name)
        self.graph = self.layers.graph
        #: The name of each tensor's value, and whether it is channels-first.
        self.values: dict[int, tuple[str, bool]] = {}
        self.weights = {k: t.data for k, t in enumerate(network.tensors) if t.data is not None}
        for k in network.inputs:
            tensor = network.tensors[k]
            self.values[k] = self.graph.input(tensor.name, tensor.shape), False
        for op in network.ops:
            handler = _HANDLERS.get(op.code)
            if handler is None:
                raise ModelError(
                    f"convert_tflite: unsupported operator {op.code}. Supported: "
                    f"{', '.join(map(str, _HANDLERS))}."
                )
            handler(self, op)
        for k in network.outputs:
            tensor = network.tensors[k]
            self.graph.output(self.read(k, False), tensor.shape, name=tensor.name)

    def save(self) -> bytes:
        return self.graph.save()

    # values ---------------------------------------------------------------------------------------
    def read(self, k: int, first: bool) -> str:
        """Return the name of a value, channels-first or channels-last if it has four axes."""
        if k not in self.values:
            data = np.asarray(self.weights[k], np.float32)
            if first and data.ndim == 4:
                data = data.transpose(0, 3, 1, 2)
            elif first and data.ndim == 1:
                data = data.reshape(-1, 1, 1)
            return self.graph.constant(data)
        name, is_first = self.values[k]
        if is_first == first or len(self.net.tensors[k].shape) != 4:
            return name
        return self.layers.first(name) if first else self.layers.last(name)

    def write(self, op: Op, name: str, first: bool, activation: int = 0) -> None:
        made = self.layers.activation(name, _ACTIVATIONS[activation])
        self.values[op.outputs[0]] = made, first

    def size(self, op: Op) -> tuple[int, int]:
        shape = self.net.tensors[op.inputs[0]].shape
        return shape[1], shape[2]

    def bias(self, op: Op, count: int) -> NDArray:
        if len(op.inputs) > 2 and op.inputs[2] >= 0:
            return self.weights[op.inputs[2]]
        return np.zeros(count, np.float32)

    # operators ------------------------------------------------------------------------------------
    def dequantize(self, op: Op) -> None:
        self.weights[op.outputs[0]] = self.weights[op.inputs[0]].astype(np.float32)

    def conv(self, op: Op) -> None:
        o = _options(op)
        weights = self.weights[op.inputs[1]].transpose(0, 3, 1, 2)
        made = self.layers.conv(
            self.read(op.inputs[0], True), weights, self.bias(op, len(weights)), self.size(op),
            (o.number(2, "i", 1), o.number(1, "i", 1)),
            (o.number(5, "i", 1), o.number(4, "i", 1)), o.number(0, "b") == _SAME,
        )  # fmt: skip
        self.write(op, made, True, o.number(3, "b"))

    def depthwise(self, op: Op) -> None:
        o = _options(op)
        weights = self.weights[op.inputs[1]].transpose(3, 0, 1, 2)
        groups = self.net.tensors[op.inputs[0]].shape[3]
        made = self.layers.conv(
            self.read(op.inputs[0], True), weights, self.bias(op, len(weights)), self.size(op),
            (o.number(2, "i", 1), o.number(1, "i", 1)),
            (o.number(6, "i", 1), o.number(5, "i", 1)), o.number(0, "b") == _SAME, groups,
        )  # fmt: skip
        self.write(op, made, True, o.number(4, "b"))

    def pool(self, op: Op) -> None:
        o = _options(op)
        made = self.layers.pool(
            self.read(op.inputs[0], True), "MaxPool" if op.code == 17 else "AveragePool",
            self.size(op), (o.number(4), o.number(3)), (o.number(2), o.number(1)),
            o.number(0, "b") == _SAME,
        )  # fmt: skip
        self.write(op, made, True, o.number(5, "b"))

    def add(self, op: Op) -> None:
        a, b = (self.read(k, True) for k in op.inputs)
        activation = op.options.number(0, "b") if op.options else 0
        self.write(op, self.graph.node("Add", a, b), True, activation)

    def relu(self, op: Op) -> None:
        made = self.layers.activation(self.read(op.inputs[0], True), "relu")
        self.write(op, made, True)

    def relu6(self, op: Op) -> None:
        made = self.layers.activation(self.read(op.inputs[0], True), "relu6")
        self.write(op, made, True)

    def pad(self, op: Op) -> None:
        pads = self.weights[op.inputs[1]][[0, 3, 1, 2]]  # channels-first
        amounts = self.graph.constant(np.concatenate([pads[:, 0], pads[:, 1]]).astype(np.int64))
        self.write(op, self.graph.node("Pad", self.read(op.inputs[0], True), amounts), True)

    def reshape(self, op: Op) -> None:
        shape = self.net.tensors[op.outputs[0]].shape
        wanted = self.graph.constant(np.array(shape, np.int64))
        self.write(op, self.graph.node("Reshape", self.read(op.inputs[0], False), wanted), False)

    def concat(self, op: Op) -> None:
        o = _options(op)
        shape = self.net.tensors[op.inputs[0]].shape
        axis = o.number(0) % len(shape)
        first = len(shape) == 4
        if first:
            axis = (0, 2, 3, 1)[axis]
        parts = [self.read(k, first) for k in op.inputs]
        self.write(op, self.graph.node("Concat", *parts, axis=axis), first, o.number(1, "b"))

    def resize(self, op: Op) -> None:
        o = _options(op)
        size = [int(n) for n in self.weights[op.inputs[1]]]
        x = self.read(op.inputs[0], True)
        made = self.layers.resize(x, size, bool(o.number(2, "b")), bool(o.number(3, "b")))
        self.write(op, made, True)


def _options(op: Op) -> Table:
    if op.options is None:
        raise ModelError(f"convert_tflite: the operator {op.code} has no options.")
    return op.options


#: By number of the TFLite built-in operator.
_HANDLERS: Final[dict[int, Callable[[_Converter, Op], None]]] = {
    0: _Converter.add,
    1: _Converter.pool,
    2: _Converter.concat,
    3: _Converter.conv,
    4: _Converter.depthwise,
    6: _Converter.dequantize,
    17: _Converter.pool,
    19: _Converter.relu,
    21: _Converter.relu6,
    22: _Converter.reshape,
    23: _Converter.resize,
    34: _Converter.pad,
}
