"""Weights in the files of torch, also malicious ones."""

import copy
import io
import json
import os
import pickle
import struct
import zipfile

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dala
from dala.ml.convert.tfjs import convert_tfjs
from dala.ml.convert.tflite import convert_tflite
from dala.ml.convert.torch_file import read_torch
from dala.ml.convert.yolo import convert_mobilenet, convert_yolo

# torch's files ------------------------------------------------------------------------------------


class _Pickler(pickle._Pickler):
    """A pickler that can name classes that are not installed."""

    def save_global(self, obj, name=None):
        if isinstance(obj, _Name):
            module, _, last = obj.path.rpartition(".")
            self.write(pickle.GLOBAL + f"{module}\n{last}\n".encode())
            self.memoize(obj)
        else:
            super().save_global(obj, name)

    dispatch = dict(pickle._Pickler.dispatch)  # noqa: RUF012

    def persistent_id(self, obj):
        return (
            ("storage", _Name(f"torch.{obj.kind}"), obj.key, "cpu", obj.count)
            if isinstance(obj, _Stored)
            else None
        )


class _Name:
    def __init__(self, path):
        self.path = path

    def __call__(self, *args):  # so that pickle takes it for a function
        raise AssertionError


class _Stored:
    def __init__(self, key, kind, count):
        self.key, self.kind, self.count = key, kind, count


class _Reduced:
    def __init__(self, path, *args):
        self.path, self.args = path, args

    def __reduce__(self):
        return _Name(self.path), self.args


_Pickler.dispatch[_Name] = _Pickler.save_global


def pickled(value):
    out = io.BytesIO()
    _Pickler(out, 2).dump(value)
    return out.getvalue()


def zipped(value, storages):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("archive/data.pkl", pickled(value))
        for key, array in storages.items():
            z.writestr(f"archive/data/{key}", array.tobytes())
    return out.getvalue()


def tensor(key, kind, count, offset, size, stride):
    stored = _Stored(key, kind, count)
    return _Reduced("torch._utils._rebuild_tensor_v2", stored, offset, size, stride, False, {})


def test_tensors_with_offsets_and_strides():
    flat = np.arange(24, dtype=np.float32)
    half = np.arange(6).astype(np.float16)
    state = {
        "turned": tensor("0", "FloatStorage", 24, 2, (3, 4), (1, 5)),
        "half": [tensor("1", "HalfStorage", 6, 0, (2, 3), (3, 1))],
    }
    got = read_torch(zipped(state, {"0": flat, "1": half}))
    wanted = [[2 + i + 5 * j for j in range(4)] for i in range(3)]
    assert got["turned"].tolist() == wanted
    assert got["half"][0].dtype == np.float16
    assert got["half"][0].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_old_file_format():
    data = pickled(0x1950A86A20F9469CFC6C) + pickled(1001) + pickled({"little_endian": True})
    data += pickled({"w": tensor("7", "LongStorage", 3, 0, (3,), (1,))}) + pickled(["7"])
    data += struct.pack("<q", 3) + np.array([5, -6, 7], "<i8").tobytes()
    assert read_torch(data)["w"].tolist() == [5, -6, 7]


@pytest.mark.parametrize(
    "path", ["os.system", "builtins.eval", "builtins.exec", "subprocess.Popen", "torch.load",
             "numpy.load", "builtins.getattr", "posix.system", "importlib.import_module"],
)  # fmt: skip
def test_files_that_name_other_functions(path, tmp_path):
    marker = tmp_path / "ran"
    attack = zipped({"w": _Reduced(path, f"touch {marker}")}, {})
    with pytest.raises(dala.ModelError, match=path.replace(".", r"\.")):
        read_torch(attack)
    assert not marker.exists()
    assert os.listdir(tmp_path) == []


def test_tensor_that_exceeds_its_storage():
    bad = zipped({"w": tensor("0", "FloatStorage", 4, 0, (4, 4), (4, 1))}, {"0": np.zeros(4, "f4")})
    with pytest.raises(dala.ModelError, match="exceeds its storage"):
        read_torch(bad)
    negative = {"w": tensor("0", "FloatStorage", 4, 3, (3,), (-2,))}
    with pytest.raises(dala.ModelError):
        read_torch(zipped(negative, {"0": np.zeros(4, "f4")}))


def packed(pickle_bytes, storages=None, how=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as z:
        z.writestr("archive/data.pkl", pickle_bytes)
        for key, data in (storages or {}).items():
            z.writestr(f"archive/data/{key}", data)
    return out.getvalue()


#: A tuple nested so deeply that hashing it would overflow the C stack.
DEEP = b")" + b"\x85" * 200_000


FUNCTION = b"ctorch._utils\n_rebuild_parameter\n"


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (b"\x80\x02}" + DEEP + b"Ns.", "a key of type tuple"),
        (b"\x80\x02}(" + DEEP + b"Nu.", "a key of type tuple"),
        (b"\x80\x02(" + DEEP + b"Nd.", "a key of type tuple"),
        (b"\x80\x04\x8f(" + DEEP + b"\x90.", "a key of type tuple"),
        (b"\x80\x04(" + DEEP + b"\x91.", "a key of type tuple"),
        (b"\x80\x02cbuiltins\nset\n]" + DEEP + b"a\x85R.", "a key of type tuple"),
        (b"\x80\x02ccollections\nOrderedDict\n]]" + DEEP + b"aNaa\x85R.", "a key of type"),
        (b"\x80\x02" + DEEP + b".", "RecursionError"),
        (b"\x80\x02" + FUNCTION + b"}X\x01\x00\x00\x00xK\x01sb.", "a state for an object"),
        (b"\x80\x02" + FUNCTION + b"N}X\x0c\x00\x00\x00__defaults__Ns\x86b.", "a state for"),
        (b"\x80\x02cmodels.x\nFoo\n}b.", "a state for an object without one"),
        (b"(S'echo'\nios\nsystem\n.", r"os\.system"),
        (b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.", r"builtins\.eval"),
        (b"\x80\x02\x82\x01.", "the opcode EXT1"),
        (b"\x80\x05\x97.", "the opcode NEXT_BUFFER"),
        (b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b"x.", "ValueError: expected"),
        (b"\x80\x04\x8e" + struct.pack("<Q", 1 << 60) + b"x.", "ValueError: expected"),
        (b"\x80\x05\x96" + struct.pack("<Q", 1) + b"x.", "the opcode BYTEARRAY8"),
        (b"\x80\x09N.", "protocol 9"),
        (b"\x80\x02N\x85R.", "a stack that is too short"),
        (b"\x80\x02K\x01)R.", "a call of type int"),
        (b"\x80\x02K\x01K\x02a.", "items for type int"),
        (b"\x80\x02]K\x01K\x02s.", "keys for type list"),
        (b"\x80\x02}(K\x01u.", "a key without a value"),
        (b"\x80\x02(Kaq\x00tQ.", "other than a storage"),
        (b"\x80\x02K\x01Q.", "other than a storage"),
    ],
)  # fmt: skip
def test_malicious_pickles(attack, words):
    with pytest.raises(dala.ModelError, match=words) as caught:
        read_torch(packed(attack))
    assert len(str(caught.value)) < 400


def test_large_memo_index():
    """With the unpickler in C, this index allocates 16 GB."""
    assert read_torch(packed(b"\x80\x02]r\xff\xff\xff\x7f.")) == []


def test_shared_objects_are_read_once():
    """Sixty nested lists of ten references each have 10^60 entries."""
    data = b"\x80\x02]q\x00"
    for k in range(1, 60):
        data += b"](" + (b"h" + bytes([k - 1])) * 10 + b"eq" + bytes([k])
    found = read_torch(packed(data + b"."))
    assert found[0] is found[9]
    (itself,) = loop = read_torch(packed(b"\x80\x02]q\x00h\x00a."))
    assert itself is loop


@pytest.mark.parametrize(
    ("offset", "size", "stride"),
    [(-3, (5,), (1,)), (0, (2, 2), (-5, 6)), (0, (1 << 20, 1 << 20), (0, 0)), (0, (-1,), (1,)),
     (0, (1.5,), (1,)), (1 << 61, (1,), (1,)), (0, (2,), (1, 1)), (2, (3,), (1,))],
)  # fmt: skip
def test_tensors_outside_their_storage(offset, size, stride):
    """Memory beside the storage is never read, and sizes are checked."""
    bad = {"w": tensor("0", "FloatStorage", 1 << 60, offset, size, stride)}
    with pytest.raises(dala.ModelError):
        read_torch(zipped(bad, {"0": np.zeros(4, "f4")}))


def test_files_that_expand():
    """Compressed members, and many tensors of one storage, could fill the memory."""
    with pytest.raises(dala.ModelError, match="compressed"):
        read_torch(packed(b"\x80\x02]." + bytes(10**6), how=zipfile.ZIP_DEFLATED))
    many = [tensor("0", "FloatStorage", 1000, 0, (1000,), (1,)) for _ in range(3000)]
    with pytest.raises(dala.ModelError, match="larger than the file"):
        read_torch(zipped(many, {"0": np.zeros(1000, "f4")}))
    old = pickled(0x1950A86A20F9469CFC6C) + pickled(1001) + pickled({})
    old += pickled({"w": tensor("7", "LongStorage", 3, 0, (3,), (1,))}) + pickled(["7"])
    with pytest.raises(dala.ModelError, match="longer than the file"):
        read_torch(old + struct.pack("<q", 1 << 60) + b"xx")


def test_cyclic_graphs():
    ends = {"e": {"name": "a", "tensorShape": {"dim": [{"size": "1"}]}}}
    nodes = [{"name": "a", "op": "x", "input": ["b"]}, {"name": "b", "op": "x", "input": ["a"]}]
    model = {
        "modelTopology": {"node": nodes},
        "weightsManifest": [],
        "signature": {"inputs": {}, "outputs": ends},
    }
    with pytest.raises(dala.ModelError, match="the graph has a cycle"):
        convert_tfjs(json.dumps(model).encode(), b"")
    with pytest.raises(dala.ModelError):
        convert_tfjs(b"[" * 100_000, b"")


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_random_bytes(data):
    for reader in (read_torch, convert_mobilenet, convert_yolo, convert_tflite):
        with pytest.raises(dala.ModelError):
            reader(data)
    with pytest.raises(dala.ModelError):
        reader(b"\x1c\x00\x00\x00TFL3" + data)
    with pytest.raises(dala.ModelError):
        convert_tfjs(data, b"")


def test_weights_of_another_model():
    other = zipped({"conv.weight": tensor("0", "FloatStorage", 1, 0, (1,), (1,))},
                   {"0": np.zeros(1, "f4")})  # fmt: skip
    with pytest.raises(dala.ModelError, match="MobileNetV2"):
        convert_mobilenet(other)
    with pytest.raises(dala.ModelError, match="YOLOv5"):
        convert_yolo(other)


# torch files whose few bytes ask for much work ----------------------------------------------------


def torch_zip(body, members=()):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/data.pkl", body)
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def named(module, name):
    return f"c{module}\n{name}\n".encode()


def again_and_again(function, container, count):
    """A pickle that gives one large container to a function many times."""
    call = b"h\x01h\x00\x85R0"
    return torch_zip(b"\x80\x02" + container + b"q\x00" + function + b"q\x01" + call * count + b".")


PAIRS = b"](" + b"(K\x01K\x02t" * 3000 + b"e"


NUMBERS = b"](" + b"".join(b"J" + struct.pack("<i", n) for n in range(3000)) + b"e"


TEXT = b"X" + struct.pack("<I", 9000) + b"a" * 9000


STATE = b"}(" + b"".join(b"X\x04\0\0\0%04dK\x01" % n for n in range(3000)) + b"u"


EXPENSIVE = {
    "dicts": again_and_again(named("collections", "OrderedDict"), PAIRS, 3000),
    "sets": again_and_again(named("builtins", "set"), NUMBERS, 3000),
    "sizes": again_and_again(named("torch", "Size"), PAIRS, 3000),
    "texts": again_and_again(named("_codecs", "encode"), TEXT, 3000),
    "states": torch_zip(
        b"\x80\x02" + STATE + b"q\x00" + named("torch.nn.x", "M") + b")\x81q\x01"
        + b"h\x01h\x00b0" * 3000 + b"."
    ),
    "equal hashes": torch_zip(
        b"\x80\x02}("
        + b"".join(
            b"\x8a\x0a" + (n * (2**61 - 1)).to_bytes(10, "little") + b"K\x01"
            for n in range(1, 3000)
        )
        + b"u."
    ),
    "classes": torch_zip(
        b"\x80\x02" + b"".join(named("torch.nn.x", f"M{n}") + b"0" for n in range(5000)) + b"N."
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", EXPENSIVE)
def test_torch_files_whose_work_is_quadratic_are_refused(kind):
    wanted = (
        "copy more than the file has|more than 60 bits|more than 4,096 classes|storage or shape"
    )
    with pytest.raises(dala.ModelError, match=wanted):
        read_torch(EXPENSIVE[kind])


def test_torch_files_whose_members_overlap_are_refused():
    """Many names for the same bytes: each would be read into memory of its own."""
    count = 40
    body = b"\x80\x02]("
    for n in range(count):
        body += named("torch._utils", "_rebuild_tensor_v2") + b"((X\x07\0\0\0storage"
        body += named("torch", "ByteStorage") + b"X\x02\0\0\0%02d" % n
        body += b"X\x03\0\0\0cpuK\x01tQK\x00K\x01\x85K\x01\x85\x89NtR"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/data.pkl", body + b"e.")
        archive.writestr("a/data/00", bytes(20000))
        for n in range(1, count):
            other = copy.copy(archive.getinfo("a/data/00"))
            other.filename = f"a/data/{n:02d}"
            archive.filelist.append(other)
    data = file.getvalue()
    # Newer Pythons refuse other names in the headers, or overlaps, themselves.
    with pytest.raises(dala.ModelError, match=r"larger than the file|differ|Overlapped"):
        read_torch(data)


def test_members_of_one_torch_file_may_fill_it():
    numbers = np.arange(6, dtype="<f4")
    body = b"\x80\x02" + named("torch._utils", "_rebuild_tensor_v2") + b"((X\x07\0\0\0storage"
    body += named("torch", "FloatStorage") + b"X\x01\0\0\x000X\x03\0\0\0cpuK\x06tQK\x00"
    body += b"K\x02K\x03\x86K\x03K\x01\x86\x89NtR."
    data = torch_zip(body, [("a/data/0", numbers.tobytes())])
    assert read_torch(data).tolist() == numbers.reshape(2, 3).tolist()


def test_graph_model_of_many_operators():
    """Pooling, padding, activations, joins and products, with weights stored in 16 bits."""
    import base64

    rng = np.random.default_rng(8)

    def word(text):
        return base64.b64encode(text.encode()).decode()

    def node(name, op, *inputs, **attr):
        return {"name": name, "op": op, "input": list(inputs), "attr": attr}

    def four(a, b):
        return {"list": {"i": ["1", str(a), str(b), "1"]}}

    valid, same = {"s": word("VALID")}, {"s": word("SAME")}
    floats = {
        "alpha": rng.normal(size=(1, 1, 2)), "w": rng.normal(size=(4, 3)), "b": rng.normal(size=3),
        "up": rng.normal(size=(2, 2, 1, 4)),
    }  # fmt: skip
    floats = {k: v.astype("<f2") for k, v in floats.items()}
    ints = {
        "pads": [[0, 0], [1, 1], [1, 1], [0, 0]], "axis": 3, "axes": [1, 2], "size": [1, 8, 8, 1]
    }  # fmt: skip
    ints = {k: np.array(v, "<i4") for k, v in ints.items()}
    half = {"dtype": "float16", "original_dtype": "float32"}
    listed = [
        {"name": k, "shape": list(v.shape), "dtype": "float32", "quantization": half}
        for k, v in floats.items()
    ] + [{"name": k, "shape": list(v.shape), "dtype": "int32"} for k, v in ints.items()]
    nodes = [
        node("x", "Placeholder"),
        node("max", "MaxPool", "x", ksize=four(2, 2), strides=four(2, 2), padding=valid),
        node("wide", "Pad", "max", "pads"),
        node("bent", "Prelu", "wide", "alpha"),
        node("mean", "AvgPool", "x", ksize=four(3, 3), strides=four(1, 1), padding=same),
        node("both", "ConcatV2", "bent", "mean", "axis"),
        node("sum", "AddN", "both", "both"),
        node("flat", "Mean", "sum", "axes", keep_dims={"b": False}),
        node(
            "y", "_FusedMatMul", "flat", "w", "b",
            fused_ops={"list": {"s": [word("BiasAdd"), word("Sigmoid")]}},
        ),
        node("z", "Conv2DBackpropInput", "size", "up", "sum", strides=four(2, 2), padding=same),
    ]  # fmt: skip

    def end(name, *shape):
        dims = [{"size": str(n)} for n in shape]
        return {name: {"name": f"{name}:0", "tensorShape": {"dim": dims}}}

    model = {
        "modelTopology": {"node": nodes},
        "weightsManifest": [{"weights": listed}],
        "userDefinedMetadata": {
            "signature": {
                "inputs": end("x", -1, 4, 4, 2),
                "outputs": {**end("y", 1, 3), **end("z", 1, 8, 8, 1)},
            }
        },
    }
    data = b"".join(v.tobytes() for v in (*floats.values(), *ints.values()))
    made = convert_tfjs(json.dumps(model).encode(), data)
    x = rng.normal(size=(1, 4, 4, 2)).astype(np.float32)
    y, z = onnxruntime.InferenceSession(made).run(["y", "z"], {"x": x})

    top = x[0].reshape(2, 2, 2, 2, 2).max((1, 3))
    bent = np.pad(top, ((1, 1), (1, 1), (0, 0)))
    bent = np.where(bent < 0, bent * floats["alpha"].astype(np.float64), bent)
    mean = np.array([
        [x[0, max(0, i - 1) : i + 2, max(0, j - 1) : j + 2].mean((0, 1)) for j in range(4)]
        for i in range(4)
    ])  # fmt: skip
    total = 2 * np.concatenate([bent, mean], axis=2)
    wanted = total.mean((0, 1)) @ floats["w"].astype(np.float64) + floats["b"]
    assert np.allclose(y[0], 1 / (1 + np.exp(-wanted)), atol=1e-5)
    raised = np.einsum("ijc,hwoc->ihjwo", total, floats["up"].astype(np.float64))
    assert np.allclose(z[0], raised.reshape(8, 8, 1), atol=1e-4)
    model["modelTopology"]["node"][1]["op"] = "Strange"
    with pytest.raises(dala.ModelError, match="unsupported operator 'Strange' at 'max'"):
        convert_tfjs(json.dumps(model).encode(), data)
