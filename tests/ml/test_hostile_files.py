"""Damaged and hostile ONNX files are refused before ONNX Runtime opens them."""

import os
from contextlib import nullcontext, suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dala
from dala.ml.convert.onnx_file import Graph, ProtoMessage, bytes_field, number_field, text_field
from dala.ml.gpu import load_model
from dala.ml.runtime import providers, session
from dala.ml.runtime.onnx_graph import open_model


def refused(path, data, text, kind=dala.ModelError):
    path.write_bytes(data)
    with pytest.raises(kind) as caught:
        load_model(path, "cpu")
    assert text in str(caught.value)
    assert "'net.onnx'" in str(caught.value)


@pytest.fixture
def net(tmp_path):
    return tmp_path / "net.onnx"


def with_weight(weight):
    """Return a model that adds a weight, given as the bytes of its tensor, to its input."""
    graph = Graph("g")
    graph._weights.append(weight)
    graph.output(graph.node("Add", graph.input("x", (2,)), "w"), (2,), name="y")
    return graph.save()


def tensor(shape, data=b"", more=b""):
    made = b"".join(number_field(1, n) for n in shape) + number_field(2, 1)
    return made + text_field(8, "w") + (bytes_field(9, data) if data else b"") + more


def external(**entries):
    found = b"".join(
        bytes_field(13, text_field(1, key) + text_field(2, value)) for key, value in entries.items()
    )
    return tensor((2,), more=found + number_field(14, 1))


def test_every_truncation_is_refused_or_checked(net, tmp_path):
    graph = Graph("g")
    graph.output(graph.node("Relu", graph.input("x", (2,))), (2,), name="y")
    whole = graph.save()
    for size in range(len(whole)):
        net.write_bytes(whole[:size])
        with pytest.raises(dala.ModelError):
            load_model(net, "cpu")


def test_cycles(net):
    graph = Graph("g")
    x = graph.input("x", (2,))
    graph.node("Add", x, "b", output="a")
    graph.node("Relu", "a", output="b")
    graph.output("b", (2,), name="y")
    refused(net, graph.save(), "is refused: the node Add 'n_Add_1' is part of a cycle")


def test_absurd_shapes(net):
    refused(net, with_weight(tensor((1 << 40, 4))), "'w' has the absurd shape (1099511627776, 4)")
    refused(net, with_weight(tensor((-2, 4))), "the weight 'w' has the shape (-2, 4)")
    refused(
        net, with_weight(tensor((1000,), b"1234")), "'w' of shape (1000,) has 4 bytes, less than"
    )
    graph = Graph("g")
    size = graph.constant(np.array([1 << 20, 1 << 20], np.int64))
    graph.output(graph.node("ConstantOfShape", size), ("n", "m"), name="y")
    refused(net, graph.save(), "makes a tensor of the absurd shape (1048576, 1048576)")
    graph = Graph("g")
    graph.output(graph.input("x", (1 << 20, 1 << 20)), (1 << 20, 1 << 20), name="y")
    refused(net, graph.save(), "x (1048576, 1048576) float32 has an absurd shape")


def test_files_outside_the_folder(net, tmp_path):
    outside = tmp_path.parent / "secret.bin"
    outside.write_bytes(bytes(8))
    for location in ("../secret.bin", str(outside), "a/../../secret.bin", "C:\\secret.bin", ""):
        refused(net, with_weight(external(location=location)), "outside the model's folder")
    (tmp_path / "link.bin").symlink_to(outside)
    refused(
        net, with_weight(external(location="link.bin")), "which leads outside the model's folder"
    )
    refused(net, with_weight(external(location="no.bin")), "'no.bin', which is missing")
    (tmp_path / "own.bin").write_bytes(np.array([1, 2], np.float32).tobytes())
    late = external(location="own.bin", offset="4", length="8")
    refused(net, with_weight(late), "'own.bin', which ends before it")
    net.write_bytes(with_weight(external(location="own.bin", offset="0", length="8")))
    with load_model(net, "cpu") as model:
        assert model.run(np.ones(2, np.float32))["y"].tolist() == [2, 3]


def test_weights_are_those_that_were_checked(net, tmp_path, monkeypatch):
    """ONNX Runtime looks no name up: a file that takes the place of another is not read."""
    good, other = (np.array(pair, np.float32).tobytes() for pair in ((1, 2), (7, 7)))
    weights = tmp_path / "own.bin"
    net.write_bytes(with_weight(external(location="own.bin", offset="0", length="8")))
    changed = Graph("g")
    changed.output(changed.node("Neg", changed.input("x", (2,))), (2,), name="y")
    opened = session.open_model

    def replaced(path, title):
        found = opened(path, title)
        for name, data in (("net.onnx", changed.save()), ("own.bin", other)):
            (tmp_path / "new").write_bytes(data)
            (tmp_path / "new").rename(tmp_path / name)
        return found

    weights.write_bytes(good)
    monkeypatch.setattr(session, "open_model", replaced)
    with load_model(net, "cpu") as model:
        assert model.run(np.ones(2, np.float32))["y"].tolist() == [2, 3]
        assert not {*os.listdir(tmp_path)} - {"net.onnx", "own.bin"}


def in_function(weight):
    """Return a model whose one node is a function of its own, which adds a weight."""
    graph = Graph("g")
    called = text_field(1, graph.input("x", (2,))) + text_field(2, "z")
    graph._nodes.append(called + text_field(3, "c") + text_field(4, "F") + text_field(7, "own"))
    graph.output(graph.node("Identity", "z"), (2,), name="y")
    value = text_field(1, "value") + bytes_field(5, weight) + number_field(20, 4)
    constant = text_field(2, "w") + text_field(4, "Constant") + bytes_field(5, value)
    add = text_field(1, "a") + text_field(1, "w") + text_field(2, "b") + text_field(4, "Add")
    made = text_field(1, "F") + text_field(4, "a") + text_field(5, "b") + text_field(10, "own")
    made += bytes_field(7, constant) + bytes_field(7, add)
    made += bytes_field(9, text_field(1, "") + number_field(2, 17))
    domain = text_field(1, "own") + number_field(2, 1)
    return graph.save() + bytes_field(25, made) + bytes_field(8, domain)


def test_weights_in_functions(net, tmp_path):
    refused(net, in_function(external(location="../a.bin")), "outside the model's folder")
    refused(net, in_function(tensor((1 << 40, 4))), "'w' has the absurd shape")
    net.write_bytes(in_function(tensor((2,), np.array([1, 2], np.float32).tobytes())))
    with load_model(net, "cpu") as model:
        assert model.run(np.ones(2, np.float32))["y"].tolist() == [2, 3]
    # Of these ONNX Runtime asks the folder of the model, which is not that of the file.
    (tmp_path / "own.bin").write_bytes(np.array([1, 2], np.float32).tobytes())
    inside = in_function(external(location="own.bin", offset="0", length="8"))
    refused(net, inside, "was rejected by ONNX Runtime")


def test_sparse_weights(net):
    """A few bytes of which ONNX Runtime would make a large tensor."""
    for shape, text in (((1 << 40,), "absurd shape"), ((-4,), "has the shape (-4,)")):
        parts = tensor((1,), np.ones(1, np.float32).tobytes())
        where = number_field(1, 1) + number_field(2, 7) + bytes_field(9, bytes(8))
        sparse = bytes_field(1, parts) + bytes_field(2, where)
        sparse += b"".join(number_field(3, n) for n in shape)
        graph = Graph("g")
        graph.output(graph.node("Add", graph.input("x", (1,)), "w"), (1,), name="y")
        whole = ProtoMessage(memoryview(graph.save()))
        inner = bytes(whole.data(7)[0]) + bytes_field(15, sparse)
        opset = text_field(1, "") + number_field(2, 17)
        data = number_field(1, 8) + bytes_field(7, inner) + bytes_field(8, opset)
        refused(net, data, text)


def test_memory_is_checked_before_it_is_allocated(net):
    graph = Graph("g")
    x = graph.input("x", ("n", 4))
    graph.output(graph.node("Relu", x), ("n", 4), name="y")
    net.write_bytes(graph.save())
    with dala.limits(memory=50), pytest.raises(dala.LimitExceeded, match=r"'net\.onnx' needs"):
        load_model(net, "cpu")
    with load_model(net, "cpu") as model, dala.limits(memory=64):
        assert model.run(np.ones((2, 4), np.float32))["y"].shape == (2, 4)
        with pytest.raises(dala.LimitExceeded, match=r"needs 96 bytes of memory, and the block of"):
            model.run(np.ones((3, 4), np.float32))


@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 255))
@settings(max_examples=150, deadline=None)
def test_changed_bytes(tmp_path_factory, junk, at, byte):
    """The reader returns or raises ModelError, whatever the bytes are."""
    graph = Graph("g")
    w = graph.constant(np.arange(6, dtype=np.float32))
    graph.output(graph.node("Add", graph.input("x", (6,)), w), (6,), name="y")
    whole = bytearray(graph.save())
    whole[at % len(whole)] = byte
    path = tmp_path_factory.getbasetemp() / "changed.onnx"
    for data in (bytes(whole), junk, b"\x3a" + bytes([len(junk) & 127]) + junk):
        path.write_bytes(data)
        with suppress(dala.ModelError):
            open_model(path, "'changed.onnx'")


def endless():
    """Return a model with a loop of 2^62 rounds."""

    def value(name, kind, *shape):
        sizes = b"".join(bytes_field(1, number_field(1, n)) for n in shape)
        tensor = number_field(1, kind) + bytes_field(2, sizes)
        return text_field(1, name) + bytes_field(2, bytes_field(1, tensor))

    def node(op, inputs, output, more=b""):
        named = b"".join(text_field(1, name) for name in inputs.split())
        return bytes_field(1, named + text_field(2, output) + text_field(4, op) + more)

    body = node("Identity", "c", "c2") + node("Add", "v v", "v2") + text_field(2, "body")
    for each in (value("i", 7), value("c", 9), value("v", 1, 2)):
        body += bytes_field(11, each)
    body += bytes_field(12, value("c2", 9)) + bytes_field(12, value("v2", 1, 2))
    attribute = text_field(1, "body") + bytes_field(6, body) + number_field(20, 5)
    rounds = (
        number_field(2, 7) + text_field(8, "M") + bytes_field(9, (1 << 62).to_bytes(8, "little"))
    )
    going = number_field(2, 9) + text_field(8, "C") + bytes_field(9, b"\1")
    graph = node("Loop", "M C x", "y", bytes_field(5, attribute)) + text_field(2, "g")
    graph += bytes_field(5, rounds) + bytes_field(5, going)
    graph += bytes_field(11, value("x", 1, 2)) + bytes_field(12, value("y", 1, 2))
    opset = text_field(1, "") + number_field(2, 17)
    return number_field(1, 8) + bytes_field(7, graph) + bytes_field(8, opset)


def test_a_model_that_never_ends_is_ended(net):
    """``dala.limits`` was looked at before and after a run: this one took for ever."""
    net.write_bytes(endless())
    with load_model(net, "cpu") as model:
        for _ in range(2):  # it can be used again
            with dala.limits(time=0.05), pytest.raises(dala.CommandTimeout, match="predict: ended"):
                model.run(np.ones(2, np.float32))


def test_a_model_of_many_nodes_is_ended_while_it_is_loaded(net, monkeypatch):
    """The deadline comes while ONNX Runtime optimizes the graph, which takes seconds."""
    graph = Graph("g")
    x = graph.input("x", (2,))
    for _ in range(6000):
        x = graph.node("Relu", x)
    graph.output(x, (2,), name="y")
    net.write_bytes(graph.save())
    made = providers.runtime().InferenceSession

    def opened(*args, **more):
        args[1].set_load_cancellation_flag(True)  # as when the deadline comes now
        return made(*args, **more)

    told = []
    monkeypatch.setattr(providers.budget, "ending", lambda stop: told.append(stop) or nullcontext())
    monkeypatch.setattr(providers.runtime(), "InferenceSession", opened)
    with pytest.raises(dala.DalaError, match=r"load_model: .*net\.onnx"):
        load_model(net, "cpu")
    assert len(told) == 1
    told[0]()
