"""dala.ml.preprocess: repeated calls, and errors."""

import numpy as np
import pytest

import dala
from dala.gpu.compute import buffer_zeros, from_array
from dala.gpu.compute.kernel import get
from dala.ml import preprocess

PICTURE = np.random.default_rng(5).integers(0, 256, (40, 70, 3), np.uint8)


def test_repeated_calls():
    wanted = np.array(get("preprocess")(from_array(PICTURE), size=(9, 17), mean=0.25).numpy())
    for _ in range(3):
        made = preprocess(PICTURE, (9, 17), mean=0.25)
        np.testing.assert_array_equal(made.numpy(), wanted)
    other = preprocess(PICTURE, (9, 17), mean=0.5).numpy()
    np.testing.assert_allclose(wanted - other, 0.25 / 0.226, rtol=0.03)


def test_tensors_do_not_share_memory():
    first = preprocess(PICTURE, (9, 17), antialias=False)
    kept = first.numpy().copy()
    preprocess(255 - PICTURE, (9, 17), antialias=False)
    np.testing.assert_array_equal(first.numpy(), kept)


def test_out():
    out = buffer_zeros((1, 3, 9, 17))
    assert preprocess(PICTURE, (9, 17), out=out) is out
    np.testing.assert_array_equal(out.numpy(), preprocess(PICTURE, (9, 17)).numpy())
    changed = PICTURE.copy()
    preprocess(changed, (9, 17), out=out)
    changed[:] = 0  # the same memory with other values
    preprocess(changed, (9, 17), normalize="unit", out=out)
    assert (out.numpy() == 0).all()


@pytest.mark.parametrize(
    ("fine", "wrong", "words"),
    [
        ({"size": (1, 1)}, {"size": (True, True)}, "size must be 2 ints"),
        ({"size": (4, 4)}, {"size": (4, 4, 4)}, "size must be 2 ints"),
        ({"size": (4, 4)}, {"size": (4,)}, "size must be 2 ints"),
        ({"size": (4, 4)}, {"size": (4, 4.5)}, "size must be 2 ints"),
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
        ({"size": (0, 4)}, "preprocess: size must be 2 ints from 1"),
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
    wanted = preprocess(PICTURE, (9, 17), pad=0.0, mean=0.5, antialias=True).numpy()
    for size in ([9, 17], np.array([9, 17]), (9.0, 17.0), (np.int64(9), np.uint8(17))):
        got = preprocess(PICTURE, size, pad=[0, 0, 0], mean=np.float32(0.5), antialias=1)
        np.testing.assert_array_equal(got.numpy(), wanted)
