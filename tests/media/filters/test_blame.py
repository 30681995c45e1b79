"""Errors of filters name the call that was made, the filter's place in a list, the parameter."""

import numpy as np
import pytest

from dala.errors import DalaError, ParameterError, ShapeMismatch, UnknownKernel, UnknownParameter
from dala.gpu.compute import kernel
from dala.media import FramePipeline, effects, gpu
from dala.media.filters import blame

PHOTO = np.random.default_rng(5).integers(0, 256, (20, 30, 4), np.uint8)


def said(call):
    with pytest.raises((DalaError, FileNotFoundError)) as caught:
        call()
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: gpu.blur(PHOTO, radius=-1), ParameterError,
     "dala.media.gpu.blur: radius must be an int from 0 to 200, got -1."),
    (lambda: gpu.gaussian_blur(PHOTO, sigma="x"), ParameterError,
     "dala.media.gpu.gaussian_blur: sigma must be a number of at most 100, got 'x'."),
    (lambda: effects.virtual_background(PHOTO, PHOTO, radius=999), ParameterError,
     "dala.media.effects.virtual_background: radius must be an int from 0 to 200, got 999."),
    (lambda: effects.virtual_background(PHOTO, PHOTO, feather=0.5), ParameterError,
     "dala.media.effects.virtual_background: feather must be a whole number within 0..200, "
     "0.5 came."),
    (lambda: effects.overlay(PHOTO, PHOTO, opacity=2), ParameterError,
     "dala.media.effects.overlay: opacity must be a number from 0 to 1, got 2."),
    (lambda: gpu.lut_apply(PHOTO, lut=np.zeros((5, 2))), ShapeMismatch,
     "dala.media.gpu.lut_apply: takes a 'lut' of shape (n, n, n, 3), or (n, 3) for a curve a "
     "channel; (5, 2) came."),
    (lambda: gpu.lut_apply(PHOTO, lut="no.cube"), FileNotFoundError,
     "dala.media.gpu.lut_apply: there is no file 'no.cube'."),
])  # fmt: skip
def test_calls(engine_id, call, kind, text):
    assert said(call) == (kind, text)


@pytest.mark.parametrize(("filters", "kind", "text"), [
    ([("blur", {"radius": 2}), ("blur", {"radius": -1})], ParameterError,
     "filters[1] ('blur'): radius must be an int from 0 to 200, got -1."),
    (["invert", ("blur", {"radus": 2})], UnknownParameter,
     "filters[1] ('blur'): no parameter 'radus'. Did you mean 'radius'?"),
    (["invert", "sepia", "blr"], UnknownKernel,
     "filters[2] ('blr') is no filter. Did you mean 'blur'?"),
    (["invert", ("grade", {"lift": 3})], ParameterError,
     "filters[1] ('grade'): lift must be 3 numbers from -1 to 1, got (3.0, 3.0, 3.0)."),
    ([("grade", {"lif": 3})], UnknownParameter,
     "filters[0] ('grade'): it has no parameter 'lif'. Did you mean 'lift'?"),
    # A blur of its own before the one within the effect: the kernels have one name.
    ([("blur", {"radius": 2}), ("virtual_background", {"mask": PHOTO, "radius": -4})],
     ParameterError,
     "filters[1] ('virtual_background'): radius must be an int from 0 to 200, got -4."),
    (["invert", ("sepia",)], ParameterError,
     "filters[1] ('sepia'): a filter is a name, or a name and its parameters, such as "
     "('blur', {'radius': 3}); ('sepia',) came."),
])  # fmt: skip
def test_lists(engine_id, filters, kind, text):
    with FramePipeline(30, 20) as p:
        assert said(lambda: p.process(PHOTO, filters)) == (kind, f"process_frame: {text}")
        assert said(lambda: list(p.stream([PHOTO], filters))) == (
            kind,
            f"FramePipeline.stream: {text}",
        )


def test_a_later_frame_of_a_list_that_was_right(engine_id):
    with FramePipeline(30, 20) as p:
        p.process(PHOTO, ["invert", ("gamma", {"value": 2.0})])
        kind, text = said(lambda: p.process(PHOTO, ["invert", ("gamma", {"value": -2.0})]))
    assert kind is ParameterError
    assert text.startswith("process_frame: filters[1] ('gamma'): value must be")


def test_a_kernel_of_one_s_own():
    own = kernel("def dimmer(px: Pixel, *, by=1.0): return rgba(px.rgb * by, px.a)")
    with FramePipeline(30, 20, device="cpu") as p:
        _, text = said(lambda: p.process(PHOTO, ["sepia", (own, {"bye": 2.0})]))
    assert text.startswith("process_frame: filters[1] ('dimmer'): no parameter 'bye'.")


def test_checked_without_a_picture():
    for item in (("blur", {"radius": 3}), "sepia", ("overlay_alpha", {"over": PHOTO})):
        blame.check(item, "x")  # a second picture's size is nothing to judge yet
    with pytest.raises(
        ParameterError, match=r"^--blur: radius must be an int from 0 to 200, got 201"
    ):
        blame.check(("blur", {"radius": 201}), "--blur")
    with pytest.raises(
        ParameterError, match=r"^--grade: gamma must be a number or 3 numbers of at least"
    ):
        blame.check(("grade", {"gamma": 0}), "--grade")
