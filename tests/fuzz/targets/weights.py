"""Files of model weights."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from dala.ml.convert import indexing, tfjs_ops
from dala.ml.convert.onnx_file import Graph
from dala.ml.convert.tfjs import convert_tfjs
from dala.ml.convert.tflite import convert_tflite
from dala.ml.convert.torch_file import read_torch
from tests.fuzz.flatbuffer import tflite_network
from tests.fuzz.target import Target, digest

_PICKLE = (
    b"\x80\x02}q\x00X\x01\x00\x00\x00wq\x01ctorch._utils\n_rebuild_tensor_v2\nq\x02((X\x07\x00\x00\x00"
    b"storageq\x03ctorch\nFloatStorage\nq\x04X\x01\x00\x00\x000q\x05X\x03\x00\x00\x00cpuq\x06K\x04tq\x07Q"
    b"K\x00K\x02K\x02\x86K\x02K\x01\x86\x89ccollections\nOrderedDict\nq\x08)Rq\x09tq\x0aRq\x0bs."
)


def zipped(pickled: bytes, packed: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packed) as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/data/0", np.arange(4, dtype="<f4").tobytes())
        archive.writestr("archive/version", b"3\n")
    return out.getvalue()


class Torch(Target):
    """Pickles of PyTorch, whole files and bare pickles (which are put into a file)."""

    name = "torch"
    words = (
        b"ctorch\nHalfStorage\n",
        b"cos\nsystem\n",
        b"cbuiltins\neval\n",
        b"\x80\x04",
        b"\x85R",
        b"q\x00",
        b"h\x00",
        b"(",
        b"t",
        b"R",
        b"Q",
        b"]",
        b"}",
        b"s",
        b"u",
        b"e",
        b"\x94",
        b"\x8c\x01a",
        b"r\xff\xff\xff\x7f",
        b"archive/data/0",
    )

    def seeds(self) -> list[bytes]:
        return [
            zipped(_PICKLE),
            _PICKLE,
            b"\x80\x02]q\x00(K\x01K\x02e.",
            zipped(_PICKLE, zipfile.ZIP_DEFLATED),
        ]

    def read(self, data: bytes) -> str:
        whole = data if data.startswith(b"PK") else zipped(data)
        return digest(shown(read_torch(whole)).encode("utf-8", "backslashreplace"))


def shown(value: object, depth: int = 4) -> str:
    """Return a description of a tree that may contain itself."""
    if depth and isinstance(value, dict):
        return str([(shown(k, 1), shown(v, depth - 1)) for k, v in list(value.items())[:20]])
    if depth and isinstance(value, list | tuple):
        return str([shown(v, depth - 1) for v in value[:20]])
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {digest(value.tobytes())}"
    return (
        repr(value) if isinstance(value, int | float | str | bytes | None) else type(value).__name__
    )


class TfLite(Target):
    """TensorFlow Lite files."""

    name = "tflite"

    def seeds(self) -> list[bytes]:
        return [tflite_network(), b"\x1c\x00\x00\x00TFL3" + bytes(range(200))]

    def read(self, data: bytes) -> str:
        return digest(convert_tflite(data))


MODEL = {
    "modelTopology": {
        "node": [
            {
                "name": "x",
                "op": "Placeholder",
                "attr": {
                    "dtype": {"type": "DT_FLOAT"},
                    "shape": {"shape": {"dim": [{"size": "1"}, {"size": "4"}]}},
                },
            },
            {"name": "w", "op": "Const", "attr": {"dtype": {"type": "DT_FLOAT"}}},
            {"name": "y", "op": "MatMul", "input": ["x", "w"], "attr": {}},
            {"name": "z", "op": "Relu", "input": ["y"], "attr": {}},
        ],
    },
    "signature": {
        "inputs": {
            "x": {
                "name": "x:0",
                "dtype": "DT_FLOAT",
                "tensorShape": {"dim": [{"size": "1"}, {"size": "4"}]},
            }
        },
        "outputs": {"z": {"name": "z:0"}},
    },
    "weightsManifest": [
        {"paths": ["a.bin"], "weights": [{"name": "w", "shape": [4, 2], "dtype": "float32"}]}
    ],
}


OPERATORS = sorted({*tfjs_ops.HANDLERS, *indexing.HANDLERS})
#: Attributes that operators have; each takes its own.
ATTRIBUTES = {
    "strides": {"list": {"i": ["1", "1", "1", "1"]}},
    "ksize": {"list": {"i": ["1", "2", "2", "1"]}},
    "dilations": {"list": {"i": ["1", "1", "1", "1"]}},
    "padding": {"s": "U0FNRQ=="},
    "data_format": {"s": "TkhXQw=="},
    "block_size": {"i": "1"},
    "num_split": {"i": "2"},
    "num": {"i": "1"},
    "axis": {"i": "0"},
    "keep_dims": {"b": True},
    "align_corners": {"b": True},
    "alpha": {"f": 0.2},
    "squeeze_dims": {"list": {"i": ["0"]}},
    "begin_mask": {"i": "1"},
    "shrink_axis_mask": {"i": "1"},
}


def with_operator(op: str, inputs: int, kind: str) -> bytes:
    """Return a model of one operator between its input and its output."""
    shape = {"dim": [{"size": n} for n in ("1", "4", "4", "2")]}
    given = ["x", "w", "w"][:inputs]
    nodes = [
        {"name": "x", "op": "Placeholder",
         "attr": {"dtype": {"type": "DT_FLOAT"}, "shape": {"shape": shape}}},
        {"name": "w", "op": "Const", "attr": {"dtype": {"type": f"DT_{kind.upper()}"}}},
        {"name": "y", "op": op, "input": given, "attr": ATTRIBUTES},
    ]  # fmt: skip
    sizes = [4] if kind == "int32" else [1, 1, 2, 4]
    weights = [{"name": "w", "shape": sizes, "dtype": kind}]
    if kind == "int32":
        weights.append({"name": "rest", "shape": [4], "dtype": kind})
    model = {
        "modelTopology": {"node": nodes},
        "signature": {
            "inputs": {"x": {"name": "x:0", "dtype": "DT_FLOAT", "tensorShape": shape}},
            "outputs": {"y": {"name": "y:0"}},
        },
        "weightsManifest": [{"paths": ["a.bin"], "weights": weights}],
    }
    return json.dumps(model).encode()


class TfJs(Target):
    """Graph models of TensorFlow.js: the topology, with weights of 32 bytes."""

    name = "tfjs"
    words = (
        b'"op": "',
        b'"Conv2D"',
        b'"Add"',
        b'"Reshape"',
        b'"ConcatV2"',
        b'"input": [',
        b'"x"',
        b'"y"',
        b'"size": "-1"',
        b"1e99",
        b'"shape": [',
        b'"DT_INT32"',
        b"null",
        b"[]",
        b"{}",
        b'"quantization": ',
        b"99999999999",
    )

    def seeds(self) -> list[bytes]:
        whole = [json.dumps(MODEL).encode(), json.dumps(MODEL, indent=1).encode()]
        single = [with_operator(op, 1, "float32") for op in OPERATORS]
        pairs = [with_operator(op, 2, kind) for op in OPERATORS for kind in ("float32", "int32")]
        return [*whole, *single, *pairs, *(with_operator(op, 3, "int32") for op in OPERATORS)]

    def read(self, data: bytes) -> str:
        # Small as numbers of both kinds.
        return digest(convert_tfjs(data, np.array([1, 2, 2, 1, 0, 1, 1, 1], "<i4").tobytes()))


class Onnx(Target):
    """ONNX files, which ONNX Runtime loads; nothing is run."""

    name = "onnx"

    def seeds(self) -> list[bytes]:
        return [small_onnx()]

    def read(self, data: bytes) -> str:
        from dala.ml.gpu import load_model

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(data)
            try:
                with load_model(path, "cpu", pull=False) as model:
                    return repr(model).replace(folder, "")
            except Exception as error:
                error.args = tuple(str(a).replace(folder, "") for a in error.args)
                raise


def small_onnx() -> bytes:
    graph = Graph("small")
    x = graph.input("x", (1, 3, 4, 4))
    weights = graph.constant(np.ones((2, 3, 1, 1), np.float32))
    y = graph.node("Relu", graph.node("Conv", x, weights, kernel_shape=[1, 1]))
    graph.output(y, (1, 2, 4, 4), name="y")
    return graph.save()
