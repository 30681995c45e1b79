"""Models whose outputs are joined, run by ONNX Runtime on the CPU."""

import numpy as np
import pytest

from dala.ml.convert.onnx_file import Graph
from dala.ml.runtime.onnx_graph import open_model, read_graph
from dala.ml.runtime.packing import PACKED, can_pack, pack_outputs, unpack


def network(outputs=(("a", 4), ("b", 2)), batch="n", dtype="float32", named="x"):
    """A network that multiplies rows by random weights, once for each output."""
    rng = np.random.default_rng(0)
    graph = Graph("rows")
    x = graph.input(named, (batch, 3))
    for name, columns in outputs:
        weights = rng.normal(size=(3, 4)).astype(np.float32)
        y = graph.node("MatMul", x, graph.constant(weights))
        if dtype != "float32":
            y = graph.node("Cast", y, to=7)
        graph.output(y, (batch, columns), name=name, dtype=dtype)
    return graph.save()


def run(data, x):
    ort = pytest.importorskip("onnxruntime")
    session = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_outputs()]
    return dict(zip(names, session.run(names, {"x": x}), strict=True))


@pytest.mark.parametrize("batch", ["n", 5])
def test_joined_outputs(tmp_path, batch):
    data = network((("a", 4), ("scores:0", 4), ("c", 4)), batch)
    path = tmp_path / "rows.onnx"
    path.write_bytes(data)
    x = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    want = run(data, x)
    _, graph = open_model(path, "'rows.onnx'")
    assert [(v.name, v.kind, v.shape) for v in graph.inputs] == [("x", 1, (batch, 3))]
    assert [v.name for v in graph.outputs] == ["a", "scores:0", "c"]
    for model in (data, str(path)):
        (made,) = run(pack_outputs(graph, model), x).values()
        got = unpack(made, {name: array.shape for name, array in want.items()})
        assert list(got) == list(want)
        for name, array in want.items():
            np.testing.assert_array_equal(got[name], array)


@pytest.mark.parametrize(
    "data",
    [
        network((("a", 4),)),
        network(dtype="int64"),
        network((("a", "columns"), ("b", 4))),
        network((("a", ""), ("b", 4))),
        network((("a", 4), (PACKED, 4))),
    ],
    ids=["one output", "integers", "unknown size", "nameless size", "name in use"],
)
def test_what_stays_apart(data):
    graph = read_graph(memoryview(data))
    assert not can_pack(graph)
    assert pack_outputs(graph, data) is None


def test_batches_that_are_not_those_of_an_input_stay_apart():
    graph = read_graph(memoryview(network(batch="n")))
    assert can_pack(graph)
    graph.outputs[1].shape = ("detections", 4)
    assert not can_pack(graph)
    graph.outputs[1].shape = None
    assert not can_pack(graph)


@pytest.mark.parametrize("batch", ["n", 5])
def test_wrong_shapes_do_not_mix_up_outputs(batch):
    """Their total is right, and each of them is wrong."""
    data = network((("a", 3), ("b", 5)), batch)
    packed = pack_outputs(read_graph(memoryview(data)), data)
    with pytest.raises(Exception, match=r"(?i)shape"):
        run(packed, np.zeros((5, 3), np.float32))


def test_weights_in_other_files_stay_there():
    graph = read_graph(memoryview(network()))
    graph.weights[0].external = {"location": "weights.bin"}
    assert not can_pack(graph)
