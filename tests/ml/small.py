"""What the tests of models share."""

import numpy as np
import pytest

from dala.ml.convert.onnx_file import Graph
from dala.ml.gpu import load_model

RED = np.zeros((8, 12, 3), np.uint8) + np.array([255, 0, 0], np.uint8)


def unit(path, **options):
    return load_model(path, preprocess={"normalize": "unit"}, **options)


def saved(tmp_path, name, shape, build, out, dtype="float32"):
    """Save a model with one input x and one output y."""
    graph = Graph(name)
    graph.output(build(graph, graph.input("x", shape, dtype)), out, name="y", dtype=dtype)
    path = tmp_path / f"{name}.onnx"
    path.write_bytes(graph.save())
    return path


def frames(count, gate=None):
    from dala.media.frame import Frame

    for k in range(count):
        if gate is not None:
            gate(k)
        yield Frame.from_array(np.full((4, 6, 3), k, np.uint8), pts=k, time_base="1/10")


def check_error(error, words, call, *args, **options):
    with pytest.raises(error) as caught:
        call(*args, **options)
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text, (word, text)
    return text
