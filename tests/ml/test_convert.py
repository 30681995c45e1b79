"""Conversion of weights: the writer and graph models."""

import json

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dala
from dala.ml.convert.builder import Layers, same_pads
from dala.ml.convert.onnx_file import Graph
from dala.ml.convert.tfjs import convert_tfjs
from dala.ml.convert.yolo import fold_batch_norm


def run(graph, **inputs):
    session = onnxruntime.InferenceSession(graph.save())
    return session.run(None, inputs)


# the writer ---------------------------------------------------------------------------------------


def test_attribute_types():
    graph = Graph("all")
    x = graph.input("x", ("n", 2, 3))
    y = graph.node("Transpose", x, perm=(0, 2, 1))  # whole numbers
    y = graph.node("LeakyRelu", y, alpha=0.25)  # a float
    y = graph.node("Softmax", y, axis=-1)  # a negative number
    fixed = graph.node("Constant", value=np.array([2.0], np.float32))  # an array
    graph.output(graph.node("Mul", y, fixed), ("n", 3, 2), name="y")
    a = np.random.default_rng(1).normal(size=(4, 2, 3)).astype(np.float32)
    b = np.where(a < 0, a * 0.25, a).transpose(0, 2, 1)
    e = np.exp(b - b.max(-1, keepdims=True))
    (got,) = run(graph, x=a)
    assert np.allclose(got, 2 * e / e.sum(-1, keepdims=True), atol=1e-6)


def test_metadata_is_kept():
    graph = Graph("meta")
    graph.metadata["names"] = "{0: 'ä'}"
    graph.output(graph.input("x", (1,)), (1,), name="y")
    session = onnxruntime.InferenceSession(graph.save())
    assert session.get_modelmeta().custom_metadata_map == {"names": "{0: 'ä'}"}


@given(
    size=st.tuples(*[st.integers(3, 12)] * 2),
    kernel=st.tuples(*[st.integers(1, 3)] * 2),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 2),
)
@settings(max_examples=40, deadline=None)
def test_same_padding_against_a_plain_loop(size, kernel, stride, dilation):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 2, *size)).astype(np.float32)
    w = rng.normal(size=(3, 2, *kernel)).astype(np.float32)
    layers = Layers("conv")
    at = layers.input("x", x.shape)
    y = layers.conv(at, w, np.zeros(3), size, (stride,) * 2, (dilation,) * 2, True)
    out = tuple(-(-n // stride) for n in size)
    layers.output(y, (1, 3, *out), name="y")
    (got,) = run(layers, x=x)
    top, left, bottom, right = same_pads(size, kernel, (stride,) * 2, (dilation,) * 2)
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    wanted = np.zeros((1, 3, *out))
    for i in range(out[0]):
        for j in range(out[1]):
            rows = slice(i * stride, i * stride + (kernel[0] - 1) * dilation + 1, dilation)
            columns = slice(j * stride, j * stride + (kernel[1] - 1) * dilation + 1, dilation)
            part = padded[:, :, rows, columns]
            wanted[0, :, i, j] = np.einsum("chw,ochw->o", part[0], w)
    assert np.allclose(got, wanted, atol=1e-4)


def test_batch_norm_is_folded():
    rng = np.random.default_rng(3)
    w, b = rng.normal(size=(4, 3, 1, 1)), rng.normal(size=4)
    norm = {k: rng.normal(size=4) for k in ("weight", "bias", "running_mean")}
    norm["running_var"] = rng.random(4) + 0.1
    x = rng.normal(size=3)
    y = w[:, :, 0, 0] @ x + b
    scale = norm["weight"] / np.sqrt(norm["running_var"] + 1e-5)
    wanted = (y - norm["running_mean"]) * scale + norm["bias"]
    made, shift = fold_batch_norm(w, b, norm, 1e-5)
    assert np.allclose(made[:, :, 0, 0] @ x + shift, wanted, atol=1e-5)


# graph models -------------------------------------------------------------------------------------


def test_graph_model_of_two_convolutions():
    rng = np.random.default_rng(5)
    arrays = {
        "w1": rng.normal(size=(3, 3, 2, 4)), "b1": rng.normal(size=4),
        "w2": rng.normal(size=(3, 3, 4, 1)), "b2": rng.normal(size=4),
    }  # fmt: skip
    arrays = {k: v.astype("<f4") for k, v in arrays.items()}

    def word(text):
        import base64

        return base64.b64encode(text.encode()).decode()

    def conv(name, op, source, k, fused, stride):
        attr = {
            "strides": {"list": {"i": ["1", stride, stride, "1"]}},
            "dilations": {"list": {"i": ["1", "1", "1", "1"]}},
            "padding": {"s": word("SAME")},
            "fused_ops": {"list": {"s": [word(f) for f in fused]}},
        }
        return {"name": name, "op": op, "input": [source, f"w{k}", f"b{k}"], "attr": attr}

    def end(name, *shape):
        return {name: {"name": name, "tensorShape": {"dim": [{"size": str(n)} for n in shape]}}}

    model = {
        "modelTopology": {
            "node": [
                {"name": "x", "op": "Placeholder", "attr": {}},
                conv("mid", "_FusedConv2D", "x", 1, ["BiasAdd", "Relu6"], "2"),
                conv("y", "FusedDepthwiseConv2dNative", "mid", 2, ["BiasAdd"], "1"),
            ]
        },
        "weightsManifest": [
            {"weights": [
                {"name": k, "shape": list(v.shape), "dtype": "float32"} for k, v in arrays.items()
            ]}
        ],
        "signature": {"inputs": end("x:0", 1, 6, 6, 2), "outputs": end("y:0", 1, 3, 3, 4)},
    }  # fmt: skip
    data = b"".join(v.tobytes() for v in arrays.values())
    made = convert_tfjs(json.dumps(model).encode(), data)
    x = rng.normal(size=(1, 6, 6, 2)).astype(np.float32)
    (got,) = onnxruntime.InferenceSession(made).run(None, {"x:0": x})
    padded = np.pad(x[0], ((0, 1), (0, 1), (0, 0)))
    mid = np.zeros((3, 3, 4))
    for i in range(3):
        for j in range(3):
            part = padded[2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
            mid[i, j] = np.clip(np.einsum("hwc,hwco->o", part, arrays["w1"]) + arrays["b1"], 0, 6)
    padded = np.pad(mid, ((1, 1), (1, 1), (0, 0)))
    wanted = np.zeros((3, 3, 4))
    for i in range(3):
        for j in range(3):
            part = padded[i : i + 3, j : j + 3]
            wanted[i, j] = np.einsum("hwc,hwc->c", part, arrays["w2"][..., 0]) + arrays["b2"]
    assert np.allclose(got[0], wanted, atol=1e-4)
    with pytest.raises(dala.ModelError):
        convert_tfjs(json.dumps(model).encode(), data[:-8])


def test_graph_model_with_numbers_that_are_computed():
    """NumPy makes scalars of arrays without dimensions."""
    numbers = {"a": 3.0, "b": 4.0}

    def end(name):
        return {name: {"name": name, "tensorShape": {"dim": [{"size": "2"}]}}}

    model = {
        "modelTopology": {
            "node": [
                {"name": "x", "op": "Placeholder", "attr": {}},
                {"name": "sum", "op": "AddV2", "input": ["a", "b"]},
                {"name": "square", "op": "Mul", "input": ["sum", "sum"]},
                {"name": "y", "op": "Mul", "input": ["x", "square"]},
            ]
        },
        "weightsManifest": [
            {"weights": [{"name": k, "shape": [], "dtype": "float32"} for k in numbers]}
        ],
        "signature": {"inputs": end("x:0"), "outputs": end("y:0")},
    }
    made = convert_tfjs(json.dumps(model).encode(), np.array([*numbers.values()], "<f4").tobytes())
    (got,) = onnxruntime.InferenceSession(made).run(None, {"x:0": np.array([1, -2], np.float32)})
    assert got.tolist() == [49.0, -98.0]
