"""Programs of bytes: less arithmetic where a parameter is 0."""

from __future__ import annotations

import numpy as np
import pytest

from dala.gpu.compute import kernel
from dala.gpu.compute.engines.cpu import engine as cpu
from dala.gpu.compute.engines.cpu.rules.choose import analyze
from dala.gpu.compute.engines.cpu.rules.zero_parameter import ZeroVariant
from dala.gpu.compute.kernel import get
from tests.support.cpu_programs import tiny_tiles
from tests.support.row_programs import assert_like_reference, image_of, programs_of

__all__ = ["tiny_tiles"]

SHAPE = (9, 67, 4)


def analyzed(source):
    program, _ = programs_of(source, SHAPE, "u8")
    analysis = analyze(program)
    assert analysis is not None
    assert analysis.form.name == "packed"
    return analysis


def test_chroma_key_keeps_colors_without_despill():
    analysis = analyzed(get("chroma_key"))
    assert isinstance(analysis.form, ZeroVariant)
    assert analysis.program.params[analysis.form.param].name == "despill"
    assert set(analysis.form.kept) == {0, 1, 2}
    data = image_of(SHAPE, "u8")
    for key in ((0.1, 0.8, 0.2), (0.5, 0.5, 0.5), (3e38, -3e38, 3e38)):
        for despill in (0.0, -0.0, 1.0):
            params = {"key": key, "despill": despill, "threshold": 0.1, "softness": 0.3}
            assert_like_reference(get("chroma_key"), [data], SHAPE, "u8", params)


SOURCE = """def k(px: Pixel, *, amount=0.0, big=1.0):
    more = (px.g * px.g * big - px.b) * amount
    return rgba(px.r + more, px.g - big * more, max(px.b, px.r), px.a)
"""


@pytest.mark.parametrize("big", [1.0, -1000.0, 1e20, np.inf])
@pytest.mark.parametrize("amount", [0.0, 0.5])
def test_large_numbers_times_zero(tiny_tiles, amount, big):
    """Infinity times 0 is not 0: rows with such numbers are computed in full."""
    assert isinstance(analyzed(SOURCE).form, ZeroVariant)
    for shape in ((9, 67, 4), (5, 33, 3)):
        params = {"amount": amount, "big": big}
        assert_like_reference(kernel(SOURCE), [image_of(shape, "u8")], shape, "u8", params)


def test_unbounded_functions_are_not_left_out():
    text = "def k(px: Pixel, *, a=0.0): return rgba(px.r + a / px.g, px.g, px.b * px.r, px.a)"
    assert not isinstance(analyzed(text).form, ZeroVariant)
    data = image_of(SHAPE, "u8")
    data[0] = 0
    assert_like_reference(kernel(text), [data], SHAPE, "u8", {"a": 0.0})


@pytest.mark.parametrize("channels", [None, 3, 4])
def test_neighbors_at_parameters(monkeypatch, channels):
    """Code is specialized for offsets that are parameters, as it is for the lengths of loops."""
    monkeypatch.setattr(cpu, "SPECIALIZE_ROWS_NS", 0.0)
    shape = (23, 70) if channels is None else (23, 70, channels)
    for dx, dy in ((-1, -1), (2, 0), (0, 0), (-32, 32), (1, -5)):
        for dtype in ("u8", "f32"):
            params = {"dx": dx, "dy": dy, "amount": 1.5}
            assert_like_reference(get("emboss"), [image_of(shape, dtype)], shape, dtype, params)
