"""Errors of filters: the call, the index in a filter list, the parameter."""

import numpy as np
import pytest

from dala.errors import (
    DalaError,
    FileMissing,
    ParameterError,
    ShapeMismatch,
    UnknownKernel,
    UnknownParameter,
)  # fmt: skip
from dala.gpu.compute import kernel
from dala.media import FramePipeline, effects, gpu
from dala.media.filters.plans import check

PHOTO = np.random.default_rng(5).integers(0, 256, (20, 30, 4), np.uint8)


def error_of(call):
    with pytest.raises(DalaError) as caught:
        call()
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: gpu.pad(PHOTO, padding=1, fill="ornage"), ParameterError,
     "pad: fill must be a number or 4 numbers from -1e+06 to 1e+06, got 'ornage'. "
     "Did you mean 'orange'?"),
    (lambda: gpu.blur(PHOTO, radius=-1), ParameterError,
     "blur: radius must be an int from 0 to 200, got -1."),
    (lambda: gpu.gaussian_blur(PHOTO, sigma="x"), ParameterError,
     "gaussian_blur: sigma must be a number of at most 100, got 'x'."),
    (lambda: effects.virtual_background(PHOTO, PHOTO, radius=999), ParameterError,
     "virtual_background: radius must be an int from 0 to 200, got 999."),
    (lambda: effects.virtual_background(PHOTO, PHOTO, feather=0.5), ParameterError,
     "virtual_background: feather must be an int from 0 to 200, got 0.5."),
    (lambda: effects.overlay(PHOTO, PHOTO, opacity=2), ParameterError,
     "overlay: opacity must be a number from 0 to 1, got 2."),
    (lambda: gpu.lut_apply(PHOTO, lut=np.zeros((5, 2))), ShapeMismatch,
     "lut_apply: lut must be of shape (n, n, n, 3), or (n, 3) for curves, got (5, 2)."),
    (lambda: gpu.lut_apply(PHOTO, lut="no.cube"), FileMissing,
     "lut_apply: there is no file 'no.cube'."),
])  # fmt: skip
def test_errors_of_calls(engine_id, call, kind, text):
    assert error_of(call) == (kind, text)


@pytest.mark.parametrize(("filters", "kind", "text"), [
    ([("blur", {"radius": 2}), ("blur", {"radius": -1})], ParameterError,
     "filters[1] ('blur'): radius must be an int from 0 to 200, got -1."),
    (["invert", ("blur", {"radus": 2})], UnknownParameter,
     "filters[1] ('blur'): no parameter 'radus'. Did you mean 'radius'?"),
    (["invert", "sepia", "blr"], UnknownKernel,
     "filters[2] ('blr') is not a filter. Did you mean 'blur'?"),
    (["invert", ("grade", {"lift": 3})], ParameterError,
     "filters[1] ('grade'): lift must be a number or 3 numbers from -1 to 1, got 3."),
    ([("grade", {"lif": 3})], UnknownParameter,
     "filters[0] ('grade'): no parameter 'lif'. Did you mean 'lift'?"),
    # Two steps run the kernel "blur"; the error names the filter of the second.
    ([("blur", {"radius": 2}), ("virtual_background", {"mask": PHOTO, "radius": -4})],
     ParameterError,
     "filters[1] ('virtual_background'): radius must be an int from 0 to 200, got -4."),
    (["invert", ("sepia",)], ParameterError,
     "filters[1] ('sepia'): a filter must be a name, or a name and its parameters such as "
     "('blur', {'radius': 3}), got ('sepia',)."),
])  # fmt: skip
def test_errors_of_filter_lists(engine_id, filters, kind, text):
    with FramePipeline(30, 20) as p:
        assert error_of(lambda: p.process(PHOTO, filters)) == (kind, f"process_frame: {text}")
        assert error_of(lambda: list(p.stream([PHOTO], filters))) == (
            kind,
            f"FramePipeline.stream: {text}",
        )


def test_error_in_a_later_frame(engine_id):
    with FramePipeline(30, 20) as p:
        p.process(PHOTO, ["invert", ("gamma", {"value": 2.0})])
        kind, text = error_of(lambda: p.process(PHOTO, ["invert", ("gamma", {"value": -2.0})]))
    assert kind is ParameterError
    assert text.startswith("process_frame: filters[1] ('gamma'): value must be")


def test_error_of_a_custom_kernel():
    own = kernel("def dimmer(px: Pixel, *, by=1.0): return rgba(px.rgb * by, px.a)")
    with FramePipeline(30, 20, device="cpu") as p:
        _, text = error_of(lambda: p.process(PHOTO, ["sepia", (own, {"bye": 2.0})]))
    assert text.startswith("process_frame: filters[1] ('dimmer'): no parameter 'bye'.")


def test_errors_have_attributes():
    with pytest.raises(ParameterError) as caught:
        gpu.blur(PHOTO, radius=-1, device="cpu")
    error = caught.value
    assert (error.call, error.argument, error.got) == ("blur", "radius", -1)
    assert error.expected == "an int from 0 to 200"
    with FramePipeline(30, 20, device="cpu") as p, pytest.raises(ParameterError) as caught:
        p.process(PHOTO, ["invert", ("blur", {"radius": -1})])
    assert caught.value.call == "process_frame: filters[1] ('blur')"
    assert isinstance(caught.value.__cause__, ParameterError)


def test_check_without_a_picture():
    for item in (("blur", {"radius": 3}), "sepia", ("overlay_alpha", {"over": PHOTO})):
        check(item, "x")  # the size of a second picture is not checked yet
    with pytest.raises(
        ParameterError, match=r"^--blur: radius must be an int from 0 to 200, got 201"
    ):
        check(("blur", {"radius": 201}), "--blur")
    with pytest.raises(
        ParameterError, match=r"^--grade: gamma must be a number or 3 numbers from 0"
    ):
        check(("grade", {"gamma": 0}), "--grade")
