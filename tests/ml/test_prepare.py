"""dala.ml.preprocess: repeated calls, the input of models, and errors."""

import re

import numpy as np
import pytest

import dala
from dala.gpu.compute import buffer_zeros, from_array
from dala.gpu.compute.kernel import get
from dala.ml import preprocess
from dala.ml.convert.onnx_file import Graph
from dala.ml.gpu import load_model
from dala.ml.model import Model
from dala.ml.models import NAMES, find_model
from dala.ml.runtime.session import Session

PICTURE = np.random.default_rng(5).integers(0, 256, (40, 70, 3), np.uint8)


def test_repeated_calls():
    wanted = np.array(get("preprocess")(from_array(PICTURE), size=(17, 9), mean=0.25).numpy())
    for _ in range(3):
        made = preprocess(PICTURE, (17, 9), mean=0.25)
        np.testing.assert_array_equal(made.numpy(), wanted)
    other = preprocess(PICTURE, (17, 9), mean=0.5).numpy()
    np.testing.assert_allclose(wanted - other, 0.25 / 0.226, rtol=0.03)


def test_tensors_do_not_share_memory():
    first = preprocess(PICTURE, (17, 9), antialias=False)
    kept = first.numpy().copy()
    preprocess(255 - PICTURE, (17, 9), antialias=False)
    np.testing.assert_array_equal(first.numpy(), kept)


def test_out():
    out = buffer_zeros((1, 3, 9, 17))
    assert preprocess(PICTURE, (17, 9), out=out) is out
    np.testing.assert_array_equal(out.numpy(), preprocess(PICTURE, (17, 9)).numpy())
    changed = PICTURE.copy()
    preprocess(changed, (17, 9), out=out)
    changed[:] = 0  # the same memory with other values
    preprocess(changed, (17, 9), normalize="unit", out=out)
    assert (out.numpy() == 0).all()


@pytest.mark.parametrize(
    ("fine", "wrong", "words"),
    [
        ({"size": (1, 1)}, {"size": (True, True)}, r"size must be \(width, height\)"),
        ({"size": (4, 4)}, {"size": (4, 4, 4)}, r"size must be \(width, height\)"),
        ({"size": (4, 4)}, {"size": (4,)}, r"size must be \(width, height\)"),
        ({"size": (4, 4)}, {"size": (4, 4.5)}, r"size must be \(width, height\)"),
        ({"keep": 1.0}, {"keep": True}, "keep must be a number"),
        ({"pad": (1.0, 1.0, 1.0)}, {"pad": (True, True, True)}, "pad must be a number or 3"),
        ({"normalize": True}, {"normalize": 1}, "normalize must be one of"),
        ({"mean": 0.0}, {"mean": float("nan")}, "mean must be a number"),
        ({"std": 0.5}, {"std": 0.0}, "std must be a number"),
        ({"method": "area"}, {"method": ["area"]}, "method must be one of"),
    ],
)
def test_cached_parameters_do_not_accept_similar_values(fine, wrong, words):
    preprocess(PICTURE, **fine)
    out = buffer_zeros((1, 3, 224, 224))
    for _ in range(2):
        with pytest.raises(dala.ParameterError, match=words):
            preprocess(PICTURE, out=out, **wrong)
        assert (out.numpy() == 0).all()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"size": (0, 4)}, "preprocess: size must be (width, height), ints from 1"),
        ({"fit": "fill"}, "preprocess: fit must be one of"),
        (
            {"out": buffer_zeros((3, 5, 5), device="cpu")},
            "preprocess: output must be of shape (1, 3",
        ),
    ],
)
def test_errors_name_the_call(given, said):
    with pytest.raises(dala.DalaError) as caught:
        preprocess(PICTURE, device="cpu", **given)
    assert str(caught.value).startswith(said)


def test_number_types():
    wanted = preprocess(PICTURE, (17, 9), pad=0.0, mean=0.5, antialias=True).numpy()
    for size in ([17, 9], np.array([17, 9]), (17.0, 9.0), (np.int64(17), np.uint8(9))):
        got = preprocess(PICTURE, size, pad=[0, 0, 0], mean=np.float32(0.5), antialias=1)
        np.testing.assert_array_equal(got.numpy(), wanted)


# the input of a model -------------------------------------------------------------------------
@pytest.mark.parametrize("name", NAMES)
def test_the_input_of_a_named_model(real, photo, monkeypatch, name):
    """It is what ``predict`` feeds, to the bit, and needs no weights."""
    model, picture = real(name, provider="cpu"), photo("chelsea")[:200]
    spec = find_model(name)
    assert model.preprocess == {**spec.prepare, "size": spec.size, "layout": spec.layout}
    fed = []

    def stop(session, inputs):
        fed.extend(inputs.values())
        raise InterruptedError

    monkeypatch.setattr(Session, "run", stop)
    with pytest.raises(InterruptedError):
        # Models of regions are fed what their detector finds; alone they take a whole picture.
        (Model._one if spec.steps else type(model)._one)(model, picture, model.options)
    (tensor,) = fed
    for given in (name, model):
        ours = preprocess(picture, model=given)
        assert np.array_equal(ours.numpy(), tensor)
    raw = preprocess(picture.tobytes(), model=name, width=picture.shape[1], height=200)
    assert np.array_equal(raw.numpy(), tensor)


def test_the_plain_default_is_no_models(photo):
    picture = photo("chelsea")
    plain = preprocess(picture)
    assert np.array_equal(plain.numpy(), preprocess(picture, fit="stretch").numpy())
    assert not np.allclose(plain.numpy(), preprocess(picture, model="mobilenet_v2").numpy())


@pytest.mark.parametrize(("channels", "dtype"), [(1, "float32"), (3, "uint8"), (1, "uint8")])
def test_the_input_of_odd_models(tmp_path, photo, channels, dtype):
    graph = Graph("odd")
    x = graph.input("x", (1, channels, 8, 6), dtype)
    graph.output(graph.node("Flatten", x, axis=1), (1, channels * 48), name="y", dtype=dtype)
    path = tmp_path / "odd.onnx"
    path.write_bytes(graph.save())
    with load_model(path, "cpu", task="raw") as model:
        (fed,) = model.predict(photo("coffee")).values()
        ours = preprocess(photo("coffee"), model=model)
        assert ours.shape == (1, channels, 8, 6)
        assert np.array_equal(ours.numpy().reshape(-1), np.asarray(fed).reshape(-1))


def test_model_and_other_parameters():
    for given, said in (
        ({"size": (64, 64)}, "the model decides size, got (64, 64)"),
        ({"fit": "crop"}, "the model decides fit, got 'crop'"),
        ({"antialias": 1}, "the model decides antialias, got 1"),
    ):
        with pytest.raises(dala.ParameterError, match=re.escape(said)):
            preprocess(PICTURE, model="mobilenet_v2", **given)
    with pytest.raises(dala.UnknownModel, match="Did you mean 'mobilenet_v2'"):
        preprocess(PICTURE, model="mobilenet")
    with pytest.raises(dala.UnknownModel, match="a loaded model"):
        preprocess(PICTURE, model=5)
