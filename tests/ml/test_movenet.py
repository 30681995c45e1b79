"""MoveNet: the operators of its graph, its points by hand, and the results of TensorFlow.js."""

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import dala
from dala.ml.convert.tfjs import convert_tfjs
from dala.ml.models import movenet
from dala.ml.models.posenet import PARTS
from dala.ml.prepare import Placement

KNOWN = Path(__file__).with_name("known") / "movenet_tfjs.npz"


def run(nodes, arrays, outputs, x, dtype="DT_FLOAT"):
    """Convert a graph with the input x, run it in ONNX Runtime, and return its outputs."""
    arrays = {k: np.asarray(v) for k, v in arrays.items()}
    arrays = {k: v.astype("<i4" if v.dtype.kind == "i" else "<f4") for k, v in arrays.items()}
    dims = {"dim": [{"size": n} for n in x.shape]}
    kinds = {"i": "int32", "f": "float32"}
    model = {
        "modelTopology": {"node": [{"name": "x", "op": "Placeholder"}, *nodes]},
        "weightsManifest": [
            {"weights": [
                {"name": k, "shape": list(v.shape), "dtype": kinds[v.dtype.kind]}
                for k, v in arrays.items()
            ]}
        ],
        "signature": {
            "inputs": {"x": {"name": "x", "dtype": dtype, "tensorShape": dims}},
            "outputs": {n: {"name": n} for n in outputs},
        },
    }  # fmt: skip
    data = b"".join(v.tobytes() for v in arrays.values())
    made = convert_tfjs(json.dumps(model).encode(), data)
    return onnxruntime.InferenceSession(made).run(None, {"x": x})


def node(op, *inputs, name="y", **attr):
    return {"name": name, "op": op, "input": list(inputs), "attr": attr}


RNG = np.random.default_rng(4)
X = RNG.normal(size=(2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unpack_and_pack(axis):
    parts = [f"u:{k}" if k else "u" for k in range(X.shape[axis])]
    nodes = [
        node("Unpack", "x", name="u", axis={"i": axis}),
        node("Pack", *parts[::-1], axis={"i": axis}),
    ]
    got, first = run(nodes, {}, ["y", "u"], X)
    assert np.array_equal(got, np.flip(X, axis))
    assert np.array_equal(first, X.take(0, axis))


def test_pack_of_constants_and_values():
    nodes = [node("Pack", "x", "c", axis={"i": 1})]
    (got,) = run(nodes, {"c": np.ones((2, 3, 4))}, ["y"], X)
    assert np.array_equal(got, np.stack([X, np.ones_like(X)], 1))


@pytest.mark.parametrize("axis", [0, 2, -1, -2])
def test_expand_and_squeeze(axis):
    nodes = [
        node("ExpandDims", "x", "axis", name="e"),
        node("Squeeze", "e", squeeze_dims={"list": {"i": [axis]}}),
    ]
    wide, got = run(nodes, {"axis": axis}, ["e", "y"], X)
    assert np.array_equal(wide, np.expand_dims(X, axis))
    assert np.array_equal(got, X)


def test_a_long_axis_cannot_be_squeezed():
    with pytest.raises(dala.ModelError, match="cannot squeeze"):
        run([node("Squeeze", "x", squeeze_dims={"list": {"i": [1]}})], {}, ["y"], X)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_arg_max_takes_the_first(axis):
    x = np.round(X)  # with ties
    (got,) = run([node("ArgMax", "x", "axis")], {"axis": axis}, ["y"], x)
    assert np.array_equal(got, x.argmax(axis))


@pytest.mark.parametrize("deep", [1, 2, 3])
def test_gather(deep):
    at = np.stack([RNG.integers(0, n, (5, 2)) for n in X.shape[:deep]], -1)
    (got,) = run([node("GatherNd", "x", "at")], {"at": at}, ["y"], X)
    assert np.array_equal(got, X[tuple(np.moveaxis(at, -1, 0))])


def test_gather_at_computed_indexes():
    """The row of each picture with the largest value, by division of an index."""
    nodes = [
        node("Reshape", "x", "flat", name="r"),
        node("ArgMax", "r", "one", name="a"),
        node("FloorDiv", "a", "four", name="row"),
        node("Pack", "count", "row", name="at", axis={"i": 1}),
        node("GatherNd", "x", "at"),
    ]
    arrays = {"flat": [2, 12], "one": 1, "four": 4, "count": [0, 1]}
    (got,) = run(nodes, arrays, ["y"], X)
    rows = X.reshape(2, 12).argmax(1) // 4
    assert np.array_equal(got, X[[0, 1], rows])


def test_casts_and_differences():
    nodes = [
        node("Cast", "x", name="f", SrcT={"type": "DT_INT32"}, DstT={"type": "DT_FLOAT"}),
        node("Mul", "f", "half", name="h"),
        node("Cast", "h", name="c", SrcT={"type": "DT_FLOAT"}, DstT={"type": "DT_INT32"}),
        node("SquaredDifference", "h", "c"),
        node("FloorDiv", "c", "two", name="d"),
    ]
    x = np.array([[-5, -4, 3, 7, 200]], np.int32)
    got, down = run(nodes, {"half": 0.5, "two": 2}, ["y", "d"], x, "DT_INT32")
    assert np.array_equal(got, [[0.25, 0, 0.25, 0.25, 0]])  # cut toward zero
    assert np.array_equal(down, [[-1, -1, 0, 1, 50]])  # rounded down


# points -------------------------------------------------------------------------------------------
def test_points_by_hand():
    """In a picture of 384 x 192: half as large, 48 pixels from the top."""
    rows = np.full((1, 17, 3), 0.5, np.float32)
    rows[0, 0] = 0.25, 0.75, 0.9  # y, x, score of the nose
    place = Placement.of(192, 384, (192, 192), "letterbox")
    (person,) = movenet.decode({"y": rows}, place, (), {"score": 0.2})
    assert np.allclose(tuple(person["nose"]), (288, 0))
    assert np.allclose(tuple(person["left_ankle"]), (192, 96))
    assert np.isclose(person["nose"].score, 0.9)
    assert np.isclose(person.score, (0.9 + 16 * 0.5) / 17)
    assert tuple(p.name for p in person.keypoints) == PARTS
    assert movenet.decode({"y": rows}, place, (), {"score": 0.6}) == []


# with the real weights ----------------------------------------------------------------------------
def test_as_in_tensorflow_js(real, photo):
    """The rows of TensorFlow.js 4 (its CPU backend) for the same input."""
    found = real("movenet", provider="cpu").predict(photo("astronaut"))
    (raw,) = found.raw.values()
    with np.load(KNOWN) as known:
        assert np.allclose(raw[0], known["rows"], atol=5e-3)
    (person,) = found
    assert np.allclose(tuple(person["nose"]), (221, 121), atol=4)
    assert np.allclose(tuple(person["left_eye"]), (246, 101), atol=4)
    assert np.allclose(tuple(person["right_eye"]), (204, 99), atol=4)
    drawn = found.draw(photo("astronaut"))
    assert (drawn != photo("astronaut")).any(axis=2).mean() > 0.005


def test_photographs_without_people(real, photo):
    model = real("movenet")
    assert model.predict(photo("chelsea")) == []
    assert model.predict(photo("coffee")) == []


def test_letterbox(real, photo):
    """The same person in a wide picture, moved to the right."""
    wide = np.zeros((512, 900, 3), np.uint8)
    wide[:, 200:712] = photo("astronaut")
    (person,) = real("movenet").predict(wide)
    assert np.allclose(tuple(person["left_eye"]), (446, 101), atol=12)
