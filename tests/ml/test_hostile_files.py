"""Damaged and hostile ONNX files are refused before ONNX Runtime opens them."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dala
from dala.ml.convert.onnx_file import Graph
from dala.ml.convert.protobuf import bytes_field, number_field, text_field
from dala.ml.gpu import load_model
from dala.ml.runtime.onnx_graph import check_file


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
            check_file(path, "'changed.onnx'")
