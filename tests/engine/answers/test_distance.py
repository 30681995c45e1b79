"""Every filter of bytes is near its formula: that of floats, within half a step and a bit.

The reference engine computes the formula in the filter's docstring in f64. Pictures in and out, and
between stages, are f32, which moves them by some 1e-5 of a step, far below the bounds.
"""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.answers import cases, scenes
from dala.answers.material import noise
from dala.gpu.compute import buffer_zeros, from_array
from dala.gpu.compute.engines.reference import engine
from dala.gpu.compute.operation import Operation
from dala.media import FramePipeline
from dala.media.filters.calls import call
from dala.media.filters.declarations import declared, module_of
from dala.media.filters.plans import PICTURE, plan

#: Steps, for functions of one pixel and for those that read others.
PIXEL, WINDOW = 0.51, 0.55
#: Filters of one pixel that look at others by another way than ``reach``.
WINDOWS = (
    "beauty", "bicubic_scale", "bilateral", "blur", "box_blur", "chromatic_aberration", "denoise",
    "edge_detect", "emboss", "gaussian_blur", "motion_blur", "pixelate", "remap", "resize",
    "rotate", "sharpen", "thumbnail", "unsharp_mask", "warp_affine", "warp_perspective",
)  # fmt: skip
PARAM = ("param", "f32")
#: Filters that are a chain of stages, each of bytes; every stage is compared.
STAGED = ("overlay", "virtual_background")
#: Filters whose definition for f32 is another one. Tests of their own compare them.
OTHERS = {
    "clahe": "f32 is interpolated between 256 levels",
    "equalize": "f32 is interpolated between 256 levels",
    "threshold": "u8 compares luma rounded to a level",
    "rgb_to_yuv": "f32 is yuv444 with signed chroma",
    "yuv_to_rgb": "4:2:0 is u8",
}
NAMES = [name for name in cases.names() if name not in (*scenes.GROUPS, *OTHERS, *STAGED)]


def as_floats(value):
    if isinstance(value, np.ndarray) and value.dtype == np.uint8:
        return value.astype(np.float32) / np.float32(255)
    return value


def whole_fill(given):
    """A color around bytes is of bytes itself."""
    return {**given, "fill": tuple(np.rint(np.array(given["fill"]) * 255) / 255)}


class Wide(engine.Interpreter):
    """Parameters are f32 like the pixels: a root of their difference is steep at 0."""

    def operation(self, value):
        found = super().operation(value)
        return found.astype("f4").astype("f8") if (value.op, value.type) == PARAM else found


def in_f64(run, *args, **given):
    """Return what the reference engine computes in f64, in steps of 0 to 255."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(engine.TYPES, "f32", np.dtype(np.float64))
        patch.setattr(engine, "Interpreter", Wide)
        return np.clip(np.asarray(run(*args, **given)) * np.float64(255), 0, 255)


def random_rows(name):
    return [row for row in cases.rows(name, share="few") if row.picture == "random"]


def distance(name, image, given):
    """Return how many steps the bytes of a filter are from its formula, at most."""
    run = call(name, module_of(declared()[name]))
    got = np.asarray(run(image, device="reference", **given)).astype(np.float64)
    floats = {key: as_floats(value) for key, value in given.items()}
    return np.abs(got - in_f64(run, as_floats(image), device="reference", **floats)).max()


@pytest.mark.third
@pytest.mark.parametrize("name", NAMES)
def test_bytes_are_near_the_formula(name):
    bound = WINDOW if name in WINDOWS else PIXEL
    for row in random_rows(name):
        given = row.arguments()
        given = whole_fill(given) if "fill" in given else given
        assert distance(name, row.source(), given) <= bound, row.id


@pytest.mark.parametrize("name", ["chroma_key", "temperature", "blend"])
def test_many_colors(name):
    """Luma and chroma inside other computations, where few colors have large errors."""
    image, over = noise((400, 400, 4), name), noise((400, 400, 4), "over")
    given = {"temperature": {"value": 0.7}, "blend": {"over": over, "mode": "color"}}
    assert distance(name, image, given.get(name, {})) <= PIXEL


def stage(step, inputs, dtype):
    """Run one stage of a filter."""
    with dala.device("reference"):
        out = buffer_zeros(step.shape, dtype)
        step.kernel.run([from_array(a) for a in inputs], out, step.params)
        return np.array(out.numpy())


@pytest.mark.third
@pytest.mark.parametrize("name", STAGED)
def test_stages_are_near_their_formulas(name):
    """A filter of several stages is their chain, to the byte."""
    for row in random_rows(name):
        image, given = row.source(), row.arguments()
        made = {PICTURE: image}
        for number, step in enumerate(plan([(name, given)], image.shape, "u8", name)):
            inputs = [made[i] if isinstance(i, int) else np.asarray(i) for i in step.inputs]
            made[number] = stage(step, inputs, step.dtype)
            if step.dtype == "u8":
                real = in_f64(stage, step, [as_floats(a) for a in inputs], "f32")
                bound = WINDOW if isinstance(step.kernel, Operation) else PIXEL
                apart = np.abs(made[number] - real).max()
                assert apart <= bound, (row.id, step.kernel.name, float(apart))
        whole = call(name, module_of(declared()[name]))(image, device="cpu", **given)
        assert np.array_equal(made[number], whole), row.id
        with FramePipeline(image.shape[1], image.shape[0], device="cpu") as pipeline:
            fused = pipeline.process(image, [(name, given)])
            assert np.array_equal(made[number], np.reshape(fused, whole.shape)), row.id


def test_every_filter_is_compared_or_named():
    assert {*OTHERS, *WINDOWS, *STAGED} <= declared().keys()
    assert {*NAMES, *OTHERS, *STAGED} == declared().keys() - cases.OUTSIDE.keys()


@pytest.mark.parametrize("name", [*NAMES, *OTHERS, *STAGED])
def test_docstrings_say_how_bytes_are_computed(name):
    text = declared()[name].definition
    words = ("u8", "ytes", "copied", "``resize``", "``blur``")  # or the filter that it is
    assert any(word in text for word in words)
