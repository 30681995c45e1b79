"""MoveNet: the operators of its graph, its points by hand, and the results of TensorFlow.js."""

import json

import numpy as np
import onnxruntime
import pytest

import dala
from dala.ml.convert.tfjs import convert_tfjs
from dala.ml.models import movenet, movenet_multi
from dala.ml.models.posenet import PARTS
from dala.ml.prepare import Placement
from dala.ml.spec import RawResult


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
    x = np.array([[-5, -4, 3, 7, 200]], np.float32)  # inputs of integers are f32
    got, down = run(nodes, {"half": 0.5, "two": 2}, ["y", "d"], x, "DT_INT32")
    assert np.array_equal(got, [[0.25, 0, 0.25, 0.25, 0]])  # cut toward zero
    assert np.array_equal(down, [[-1, -1, 0, 1, 50]])  # rounded down


@pytest.mark.parametrize(
    ("index", "masks"),
    [
        (np.s_[:, 1:3], {"begin": 1, "end": 1}),
        (np.s_[:, :, None], {"begin": 3, "end": 3, "new_axis": 4}),
        (np.s_[None, None, :, 1:], {"begin": 4, "end": 12, "new_axis": 3}),
        (np.s_[1, :, -1], {"begin": 2, "end": 2, "shrink_axis": 5}),
        (np.s_[-2:, None, 0:-1], {"end": 1, "new_axis": 2}),
    ],
)
@pytest.mark.parametrize("constant", [False, True])
def test_strided_slices(index, masks, constant):
    """As in NumPy, of a computed value and of a constant."""
    parts = [p if isinstance(p, slice) else slice(p, None) for p in index]
    arrays = {
        "begin": [p.start or 0 for p in parts],
        "end": [p.stop or 0 for p in parts],
        "step": [1] * len(parts),
        "c": X,
    }
    attr = {f"{k}_mask": {"i": str(v)} for k, v in masks.items()}
    source = "c" if constant else "x"
    (got,) = run([node("StridedSlice", source, "begin", "end", "step", **attr)], arrays, ["y"], X)
    assert np.array_equal(got, X[index])


def test_depth_to_space():
    """Each pixel of twelve channels becomes a square of 2 x 2 pixels of three."""
    x = RNG.normal(size=(1, 2, 3, 12)).astype(np.float32)
    (got,) = run([node("DepthToSpace", "x", block_size={"i": "2"})], {}, ["y"], x)
    wanted = x.reshape(1, 2, 3, 2, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(1, 4, 6, 3)
    assert np.array_equal(got, wanted)
    with pytest.raises(dala.ModelError, match="12 channels are no squares of 5 x 5"):
        run([node("DepthToSpace", "x", block_size={"i": "5"})], {}, ["y"], x)


def test_steps_of_slices_are_refused():
    arrays = {"begin": [0], "end": [2], "step": [2]}
    with pytest.raises(dala.ModelError, match="unsupported step 2"):
        run([node("StridedSlice", "x", "begin", "end", "step")], arrays, ["y"], X)


@pytest.mark.parametrize(
    ("op", "compute"),
    [
        ("Less", np.less), ("LessEqual", np.less_equal), ("Greater", np.greater),
        ("GreaterEqual", np.greater_equal), ("Equal", np.equal),
    ],
)  # fmt: skip
def test_comparisons_and_select(op, compute):
    """Of a value and a constant, of two constants, joined by "and"."""
    x = np.round(X)
    nodes = [
        node(op, "x", "zero", name="a"),
        node(op, "c", "zero", name="b"),
        node("LogicalAnd", "a", "b", name="both"),
        node("Select", "both", "x", "c"),
    ]
    c = np.round(RNG.normal(size=X.shape)).astype(np.float32)
    one, both, got = run(nodes, {"zero": 0.0, "c": c}, ["a", "both", "y"], x)
    holds = compute(x, 0) & compute(c, 0)
    assert np.array_equal(one, compute(x, 0))
    assert np.array_equal(both, holds)
    assert np.array_equal(got, np.where(holds, x, c))


def test_top_k():
    x = np.array([[3, 9, 1, 9, 5], [0, 0, 0, 0, 1]], np.float32)
    values, indexes = run([node("TopKV2", "x", "k", name="t")], {"k": 3}, ["t", "t:1"], x)
    assert values.tolist() == [[9, 9, 5], [1, 0, 0]]
    assert indexes.tolist() == [[1, 3, 4], [4, 0, 1]]  # of equal ones the first


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axes", [1, [0, -1], [2]])
def test_sums_and_maxima(axes, keep):
    flag = {"keep_dims": {"b": keep}}
    nodes = [node("Sum", "x", "axes", **flag), node("Max", "x", "axes", name="m", **flag)]
    total, largest = run(nodes, {"axes": axes}, ["y", "m"], X)
    along = tuple(np.atleast_1d(axes).tolist())
    assert np.allclose(total, X.sum(along, keepdims=keep), atol=1e-5)
    assert np.array_equal(largest, X.max(along, keepdims=keep))


def test_grids_of_constants():
    """x plus its column: a range, as long as an axis, filled and tiled."""
    nodes = [
        node("Shape", "x", name="shape"),
        node("StridedSlice", "shape", "two", "three", "one", name="n", shrink_axis_mask={"i": 1}),
        node("Range", "zero", "n", "step", name="r"),
        node("Size", "r", name="size"),
        node("Fill", "shape", "size", name="f"),
        node("Tile", "x", "times", name="t"),
        node("AddN", "x", "r", "f"),
        node("Split", "axis", "t", name="s", num_split={"i": "2"}),
    ]
    arrays = {"two": [2], "three": [3], "one": [1], "zero": 0, "step": 1, "times": [1, 2, 1],
              "axis": 1}  # fmt: skip
    got, tiled, half = run(nodes, arrays, ["y", "t", "s:1"], X)
    assert np.allclose(got, X + np.arange(4) + 4)
    assert np.array_equal(tiled, np.tile(X, (1, 2, 1)))
    assert np.array_equal(half, X)


# points -------------------------------------------------------------------------------------------
def test_points_by_hand():
    """In a picture of 384 x 192: half as large, 48 pixels from the top."""
    rows = np.full((1, 17, 3), 0.5, np.float32)
    rows[0, 0] = 0.25, 0.75, 0.9  # y, x, score of the nose
    place = Placement.of(192, 384, (192, 192), "letterbox")
    (person,) = movenet.decode(RawResult({"y": rows}, place, (), {"score": 0.2}))
    assert np.allclose(tuple(person["nose"]), (288, 0))
    assert np.allclose(tuple(person["left_ankle"]), (192, 96))
    assert np.isclose(person["nose"].score, 0.9)
    assert np.isclose(person.score, (0.9 + 16 * 0.5) / 17)
    assert tuple(p.name for p in person.keypoints) == PARTS
    assert movenet.decode(RawResult({"y": rows}, place, (), {"score": 0.6})) == []


def test_several_people_by_hand():
    rows = np.zeros((6, 56), np.float32)
    for k, score in enumerate((0.3, 0.1, 0.8, 0.25, 0, 0)):
        rows[k, :51] = np.tile([0.5, k / 10, 0.6], 17)
        rows[k, 55] = score
    place = Placement((512, 256), (0.5, 0.5), (0, 64), (256, 256))
    found = movenet_multi.decode(RawResult({"y": rows}, place, (), {"score": 0.2}))
    assert np.allclose([p.score for p in found], [0.8, 0.3, 0.25])
    assert np.allclose([tuple(p["nose"]) for p in found], [(102.4, 128), (0, 128), (153.6, 128)])
    assert np.isclose(found[0]["nose"].score, 0.6)


# with the real weights ----------------------------------------------------------------------------
def test_skeletons_are_drawn(real, photo):
    drawn = real("movenet").predict(photo("astronaut")).draw(photo("astronaut"))
    assert (drawn != photo("astronaut")).any(axis=2).mean() > 0.005


def test_photographs_without_people(real, photo):
    model = real("movenet")
    assert model.predict(photo("chelsea")) == []
    assert model.predict(photo("coffee")) == []
    assert real("movenet_multi").predict(photo("coffee")) == []


def test_letterbox(real, photo):
    """The same person in a wide picture, moved to the right."""
    wide = np.zeros((512, 900, 3), np.uint8)
    wide[:, 200:712] = photo("astronaut")
    (person,) = real("movenet").predict(wide)
    assert np.allclose(tuple(person["left_eye"]), (446, 101), atol=12)
