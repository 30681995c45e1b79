"""Sizes are (width, height) in every call that takes one; shapes are (height, width)."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from PIL import Image

import dala
from dala.errors import ParameterError
from dala.gpu.compute import buffer_zeros, from_array, params, run_kernel
from dala.gpu.compute.kernel import get
from dala.gpu.compute.pipeline import Pipeline
from dala.media import Frame, Scene, gpu
from dala.media.filters.declarations import declared
from dala.media.filters.plans import plan
from dala.media.notices import MediaNotice, collected

#: 40 wide and 30 high, each row another color.
PHOTO = np.random.default_rng(4).integers(0, 256, (30, 40, 4), np.uint8)
WIDE, HIGH = SIZE = (20, 9)
MATRIX = {
    "warp_affine": (1, 0, 0, 0, 1, 0), "warp_perspective": (1, 0, 0, 0, 1, 0, 0, 0, 1),
}  # fmt: skip


def listed(name, **given):
    with gpu.start_pipeline(64, 64) as pipeline:
        return pipeline.process(PHOTO, [(name, given)])


def kernel(name, **given):
    return get(name)(from_array(PHOTO), **given).numpy()


def into(name, **given):
    output = buffer_zeros((HIGH, WIDE, 4), "u8")
    run_kernel(name, [from_array(PHOTO)], output, given)
    return output.numpy()


def staged(name, **given):
    output = buffer_zeros((HIGH, WIDE, 4), "u8")
    stage = {"op": "run_kernel", "kernel": name, "inputs": [from_array(PHOTO)], "output": output}
    with Pipeline() as pipeline:
        pipeline.add({**stage, "params": given}).run()
    return output.numpy()


def called(name, **given):
    return getattr(gpu, name)(PHOTO, **given)


def applied(name, **given):
    return gpu.apply(PHOTO, name, **given)


SIZED = {n for n, spec in declared().items() if any(p.type == "size" for p in spec.parameters)}
PICTURES = sorted(SIZED - {"preprocess"})
KERNELS = [name for name in PICTURES if name != "thumbnail"]  # that is a recipe


@pytest.mark.parametrize(
    ("call", "name"),
    [(call, name) for call in (called, applied, listed) for name in PICTURES]
    + [(call, name) for call in (kernel, into, staged) for name in KERNELS],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_every_call_takes_width_and_height(call, name):
    given = {"matrix": MATRIX[name]} if name in MATRIX else {}
    if name == "thumbnail":
        given["fit"] = "stretch"
    with dala.device("cpu"):
        for size in (SIZE, [*SIZE], np.array(SIZE)):
            assert call(name, size=size, **given).shape == (HIGH, WIDE, 4)


def test_the_filters_with_a_size():
    assert PICTURES == ["crop", "resize", "thumbnail", "warp_affine", "warp_perspective"]


def test_preprocess():
    with dala.device("cpu"):
        assert dala.ml.preprocess(PHOTO, SIZE).shape == (1, 3, HIGH, WIDE)
        assert dala.ml.preprocess(PHOTO, size=SIZE, layout="nhwc").shape == (1, HIGH, WIDE, 3)
        assert gpu.preprocess(PHOTO, size=SIZE).shape == (1, 3, HIGH, WIDE)


def test_effects_of_scenes():
    with Scene(64, 48, device="cpu") as scene:
        box = scene.add_overlay(color="white", size=(40, 30))
        effect = scene.add_effect("resize", box, size=SIZE)
        (step,) = plan([(effect.filter, effect.params)], (30, 40, 4), "u8", "test")
        assert step.shape == (HIGH, WIDE, 4)


@pytest.mark.parametrize(
    ("args", "given", "shape"),
    [
        ((20, 9), {}, (9, 20)),
        ((), {"width": 20, "height": 9}, (9, 20)),
        ((20,), {}, (15, 20)),
        ((), {"width": 20}, (15, 20)),
        ((), {"height": 60}, (60, 80)),
        ((), {"scale": 0.5}, (15, 20)),
        ((), {"scale": 1e-4}, (1, 1)),
        ((), {"size": (20, None)}, (15, 20)),
        ((), {"size": (None, 60)}, (60, 80)),
        ((20, 20), {"fit": "contain"}, (15, 20)),
        ((20, 20), {"fit": "cover"}, (20, 20)),
    ],
)
def test_ways_to_say_a_size(args, given, shape):
    with dala.device("cpu"):
        made = gpu.resize(PHOTO, *args, **given)
        assert made.shape == (*shape, 4)
        alike = {**given, "size": shape[::-1]}
        for name in ("width", "height", "scale"):
            alike.pop(name, None)
        if "fit" not in given:
            np.testing.assert_array_equal(made, gpu.resize(PHOTO, **alike))
        for picture in (Frame.from_array(PHOTO), Image.fromarray(PHOTO), from_array(PHOTO)):
            np.testing.assert_array_equal(np.asarray(gpu.resize(picture, *args, **given)), made)


def test_bytes_have_their_own_width_and_height():
    data = PHOTO.tobytes()
    with dala.device("cpu"):
        want = gpu.resize(PHOTO, 20, 9).tobytes()
        for kind in (bytes, bytearray, memoryview):
            assert bytes(gpu.resize(kind(data), 40, 30, size=SIZE)) == want
            half = gpu.resize(kind(data), 40, 30, scale=0.5)
            assert bytes(half) == gpu.resize(PHOTO, 20, 15).tobytes()
        with pytest.raises(ParameterError, match="bytes need width and height"):
            gpu.resize(data, size=SIZE)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, r"missing required parameter 'size'. Give size=\(width, height\), width=, height="),
        ({"size": (0, 4)}, r"size must be \(width, height\), ints from 1 to \d+, got \(0, 4\)"),
        ({"size": (1, 2, 3)}, r"size must be \(width, height\)"),
        ({"size": "4x4"}, r"size must be \(width, height\)"),
        ({"size": (None, None)}, r"size must be \(width, height\)"),
        ({"width": 0}, "width must be an int from 1"),
        ({"width": 4, "height": 2.5}, "height must be an int from 1"),
        ({"width": True}, "width must be an int"),
        ({"scale": 0}, "scale must be a number from 0.0001"),
        ({"scale": "half"}, "scale must be a number"),
        ({"width": 4, "scale": 0.5}, r"give size=\(width, height\).* got width=, scale="),
        ({"width": 4, "height": 2, "size": (4, 2)}, "give .* got size=, width=, height=. Only"),
    ],
)
def test_errors_name_width_and_height(given, words):
    with pytest.raises(ParameterError, match=f"resize: {words}"):
        gpu.resize(PHOTO, device="cpu", **given)


def test_errors_of_other_calls():
    with pytest.raises(ParameterError, match=r"size must be an int or \(width, height\)"):
        gpu.thumbnail(PHOTO, size=0, device="cpu")
    with pytest.raises(ParameterError, match=r"\(width, height\) within the picture of 40 x 30"):
        gpu.crop(PHOTO, size=(30, 40), device="cpu")
    with pytest.raises(ParameterError, match=r"load_model: size must be \(width, height\)"):
        dala.ml.gpu.load_model("mobilenet_v2", size=(0, 4))


# the notice ---------------------------------------------------------------------------------------
@pytest.fixture
def fresh(monkeypatch):
    """As in a new process: nothing was said."""
    monkeypatch.setattr(params, "_reported", [])
    with dala.device("cpu"):
        yield


def test_a_size_says_its_order_once(fresh):
    picture = np.zeros((33, 44, 3), np.uint8)  # no plan of this shape is kept
    text = r"^resize: size=\(22, 11\) is 22 wide and 11 high. Earlier .* \(height, width\).$"
    with pytest.warns(MediaNotice, match=text):
        gpu.resize(picture, size=(22, 11))
    gpu.crop(picture, size=(22, 11))  # a second one would be an error here


def test_it_can_be_silenced(fresh):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MediaNotice)
        gpu.crop(np.zeros((34, 44, 3), np.uint8), size=(22, 11))


def test_sizes_that_say_their_order_say_nothing(fresh):
    from dala.cli.common.chain import parse

    picture = np.zeros((35, 45, 3), np.uint8)
    with collected() as notices:
        gpu.resize(picture, 22, 11)
        gpu.resize(picture, width=22)
        gpu.resize(picture, scale=0.3)
        gpu.resize(picture, size=(22, None))
        gpu.resize(picture, size=(13, 13))
        gpu.thumbnail(picture, size=17)
        gpu.rotate(picture, angle=20, expand=True)
        gpu.pixelate(picture, block=4)
        with gpu.start_pipeline(64, 64) as pipeline:
            pipeline.process(picture, [parse("resize", "22x11")])
    assert notices == []
