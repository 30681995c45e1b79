"""NanoDet: its graph's operators, its boxes by hand, and the results of TensorFlow.js."""

import json

import numpy as np
import onnxruntime
import pytest

import dala
from dala.ml.convert.tfjs import convert_tfjs
from dala.ml.models import nanodet
from dala.ml.prepare import Placement
from dala.ml.spec import RawResult


def graph(nodes, arrays, outputs):
    """Return a graph model with the input x (1, 2, 2, 5), and its weights."""

    def ends(names):
        return {n: {"name": n, "tensorShape": {"dim": [{"size": k} for k in s]}} for n, s in names}

    weights = [
        {"name": k, "shape": list(v.shape), "dtype": "int32" if v.dtype == "<i4" else "float32"}
        for k, v in arrays.items()
    ]
    model = {
        "modelTopology": {"node": [{"name": "x", "op": "Placeholder"}, *nodes]},
        "weightsManifest": [{"weights": weights}],
        "signature": {"inputs": ends([("x", (1, 2, 2, 5))]), "outputs": ends(outputs)},
    }
    return json.dumps(model).encode(), b"".join(v.tobytes() for v in arrays.values())


def split(sizes, axis):
    node = {"name": "s", "op": "SplitV", "input": ["x", "sizes", "axis"]}
    arrays = {"sizes": np.array(sizes, "<i4"), "axis": np.array(axis, "<i4")}
    outputs = [("s" if not k else f"s:{k}", ()) for k in range(len(sizes))]
    return graph([node], arrays, outputs)


@pytest.mark.parametrize("axis", [3, -1])
def test_split(axis):
    x = np.arange(20, dtype=np.float32).reshape(1, 2, 2, 5)
    made = onnxruntime.InferenceSession(convert_tfjs(*split([1, 4], axis))).run(None, {"x": x})
    assert np.array_equal(made[0], x[..., :1])
    assert np.array_equal(made[1], x[..., 1:])


@pytest.mark.parametrize("sizes", [[2, 2], [5, 0], [6, -1]])
def test_impossible_splits_are_refused(sizes):
    with pytest.raises(dala.ModelError, match="split an axis of 5"):
        convert_tfjs(*split(sizes, 3))


def test_sparse_to_dense():
    """A constant (2, 5) with two values, added to x."""
    arrays = {
        "at": np.array([[0, 1], [1, 4]], "<i4"),
        "shape": np.array([2, 5], "<i4"),
        "values": np.array([3, 7], "<f4"),
        "fill": np.array(1, "<f4"),
    }
    nodes = [
        {"name": "c", "op": "SparseToDense", "input": list(arrays)},
        {"name": "y", "op": "AddV2", "input": ["x", "c"]},
    ]
    made = convert_tfjs(*graph(nodes, arrays, [("y", (1, 2, 2, 5))]))
    (got,) = onnxruntime.InferenceSession(made).run(None, {"x": np.zeros((1, 2, 2, 5), "f4")})
    assert got[0].tolist() == [[[1, 3, 1, 1, 1], [1, 1, 1, 1, 7]]] * 2


def outputs_of(found):
    """Return outputs with one sure distance each; found: (cells, cell, class, score, sides)."""
    outputs = {}
    for cells in (169, 2704, 676):
        outputs[f"d{cells}"] = np.zeros((cells, 44), np.float32)
        outputs[f"s{cells}"] = np.zeros((cells, 80), np.float32)
    for cells, cell, kind, score, sides in found:
        outputs[f"s{cells}"][cell, kind] = score
        for k, n in enumerate(sides):
            outputs[f"d{cells}"][cell, k * 11 + n] = 100
    return outputs


def decoded(found, placement=None, **options):
    placement = placement or Placement((416, 416), (1.0, 1.0), (0, 0), (416, 416))
    labels = tuple(f"k{k}" for k in range(80))
    chosen = {**nanodet.MODEL.options, **options}
    return nanodet.decode(RawResult(outputs_of(found), placement, labels, chosen))


def test_boxes_by_hand():
    """A box per grid: its cell's center, less and plus the distances in cells."""
    found = decoded(
        [
            (169, 13 * 6 + 4, 2, 0.9, (1, 2, 3, 4)),  # cell (4, 6), 32 pixels: center (144, 208)
            (676, 26 * 1 + 20, 5, 0.8, (0, 1, 2, 3)),  # 16 pixels: center (328, 24)
            (2704, 52 * 51, 7, 0.7, (5, 1, 1, 9)),  # 8 pixels: center (4, 412), outside is clipped
            (2704, 0, 7, 0.39, (5, 1, 1, 9)),  # below the score
        ]
    )
    assert [d.label for d in found] == ["k2", "k5", "k7"]
    assert np.allclose([d.score for d in found], [0.9, 0.8, 0.7])
    assert np.allclose([d.box for d in found], [
        (112, 144, 240, 336), (328, 8, 360, 72), (0, 404, 12, 416),
    ], atol=1e-6)  # fmt: skip


def test_distances_are_expected_values():
    """Two distances of equal probability are averaged."""
    outputs = outputs_of([(169, 84, 0, 0.9, (2, 2, 2, 2))])
    outputs["d169"][84, 4] = 100  # left: 2 or 4 cells
    place = Placement((416, 416), (1.0, 1.0), (0, 0), (416, 416))
    (found,) = nanodet.decode(RawResult(outputs, place, (), nanodet.MODEL.options))
    assert np.allclose(found.box, (208 - 96, 144, 272, 272))
    assert found.label == "0"


def test_overlaps_and_letterbox():
    near = [(676, 26 * 8 + k, 3, 0.9 - k / 100, (5, 5, 5, 5)) for k in (8, 9)]
    assert len(decoded(near)) == 1
    assert len(decoded(near, overlap=0.95)) == 2
    assert len(decoded(near, overlap=0.95, most=1)) == 1
    assert decoded([]) == []
    wide = Placement.of(208, 832, (416, 416), "letterbox")  # half as large, 156 pixels from the top
    (found,) = decoded([(169, 13 * 6 + 6, 1, 0.9, (1, 1, 1, 1))], wide)
    assert np.allclose(found.box, (352, 40, 480, 168))


# with the real weights ----------------------------------------------------------------------------
def test_photographs(real, photo):
    model = real("nanodet")
    (cat,) = model.predict(photo("chelsea"))
    assert (cat.label, round(cat.score, 1)) == ("cat", 0.5)
    assert np.allclose(cat.box, (2, 0, 446, 295), atol=5)
    assert "cup" in {d.label for d in model.predict(photo("coffee"), score=0.2)}
    two = np.concatenate([photo("astronaut")] * 2, axis=1)
    people = [d for d in model.predict(two) if d.label == "person"]
    assert len(people) == 2
    assert np.allclose(sorted(d.box[0] for d in people), [16, 16 + 512], atol=20)
