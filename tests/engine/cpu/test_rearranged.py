"""Programs of bytes: rearranged arithmetic, and less of it where a parameter is 0."""

from __future__ import annotations

import numpy as np
import pytest

from dala.gpu.compute import kernel
from dala.gpu.compute.engines.cpu import engine as cpu
from dala.gpu.compute.engines.cpu.llvm.analysis import analyze
from dala.gpu.compute.engines.cpu.llvm.weighted_sums import needed_values
from dala.gpu.compute.kernel import get
from tests.support.cpu_programs import tiny_tiles
from tests.support.row_programs import assert_like_reference, image_of, programs_of

__all__ = ["tiny_tiles"]

SHAPE = (9, 67, 4)


def analyzed(source):
    program, _ = programs_of(source, SHAPE, "u8")
    analysis = analyze(program)
    assert analysis is not None
    assert analysis.form == "packed"
    return analysis


def text_of(expression):
    return f"def k(px: Pixel, *, a=0.5, b=2.0): return rgba({expression}, px.r * px.g, px.b, px.a)"


def is_rounding(v):
    """Return whether a sum adds the half that rounds a stored byte."""
    return v.args[1].op == "const" and v.args[1].attr == 0.5


@pytest.mark.parametrize(
    ("expression", "sums"),
    [
        ("px.r * px.g + px.b", 1),
        ("px.b - px.r * px.g", 1),
        ("px.r * px.g - px.b", 1),
        ("px.r * 0.3 + px.g * 0.6 + px.b * 0.1", 2),
        ("sqrt(px.r * px.r + px.g * px.g)", 1),
        ("abs(px.r * a - px.g * b)", 1),
        ("floor((px.r * px.g + px.b) * 4.0) * 0.25", 0),  # a step of floor
        ("1.0 if px.r * px.g + px.b > 0.5 else 0.0", 0),  # a comparison
        ("px.b / (px.r * px.g + 0.1)", 0),  # a divisor
        ("sqrt(px.r * a - px.g * a)", 0),  # 0 where r equals g, or below 0
        ("(px.r * px.g - px.b) * 1e6", 0),  # errors are enlarged
    ],
)
def test_fused_sums(expression, sums):
    analysis = analyzed(text_of(expression))
    assert sum(not is_rounding(v) for v in analysis.fused) == sums
    data = image_of(SHAPE, "u8")
    data[:, :30, 1] = data[:, :30, 0]
    assert_like_reference(kernel(text_of(expression)), [data], SHAPE, "u8")


def test_quotients_and_factors():
    analysis = analyzed(text_of("min(max(px.r / b, 0.0), 1.0) + px.g / px.b"))
    assert len(analysis.products) == 1
    analysis = analyzed(text_of("px.g / b if px.r / b > 0.25 else 0.0"))
    assert len(analysis.products) == 1  # the compared one decides between far values
    factors = [v for v in analyzed(text_of("px.r * 0.3 + px.g * 0.5")).block.body if v.op == "mul"]
    from_bytes = [v for v in factors if v.args[0].op == "cast" and v.args[1].op == "const"]
    assert {round(v.args[1].attr * 255, 6) for v in from_bytes} >= {0.3, 0.5}


@pytest.mark.parametrize(
    ("expression", "products", "sums"),
    [
        ("px.r * px.g", 2, 1),  # of the two bytes, and with 1/255
        ("px.r * (1.0 - px.g * px.g) * a", 4, 2),
        ("sqrt(px.r) * a * b", 2, 1),  # of the byte with 1/255, of the root with a * b * 255
        ("abs(px.r * 0.25 + px.g * 0.5 + px.b * 0.125 - a)", 4, 4),
        ("abs(a + (px.r * 0.25 - px.g * 0.5))", 3, 3),
        ("max(px.r, px.g) * 0.5 * (px.b * 2.0)", 3, 1),
    ],
)
def test_factors_and_terms_join(expression, products, sums):
    """Factors of a stored byte are one, and terms are added to products."""
    text = f"def k(px: Pixel, *, a=0.5, b=2.0): return rgba({expression}, px.g, px.b, px.a)"
    analysis = analyzed(text)
    made = [v for v in needed_values(analysis.result[:1]) if v in analysis.varying]
    assert len([v for v in made if v.op == "mul"]) == products
    added = [v for v in made if v.op in ("add", "sub")]
    assert len(added) == sums
    assert sum(v in analysis.fused for v in added) >= sums - 1
    data = image_of(SHAPE, "u8")
    for a in (0.5, 0.0, -3.0, 1e38, np.inf):
        assert_like_reference(kernel(text), [data], SHAPE, "u8", {"a": a, "b": 2.0})


@pytest.mark.parametrize(
    ("expression", "clamped"),
    [
        ("px.r * px.g * 2.0", False),
        ("sqrt(px.r) + abs(a - px.g)", False),
        ("smoothstep(a, b, px.r) * px.g", False),
        ("max(px.r * a, 0.0) * b * b", False),  # b * b is a square
        ("(3.0 - 2.0 * px.r) * px.g", False),
        ("min(px.r, px.g) + max(px.b * a, 0.125)", False),
        ("(1.0 - 2.0 * px.r) * px.g", True),
        ("px.r * px.g * a", True),
        ("px.r - px.g * px.b", True),
        ("sqrt(px.r) * b - px.g * px.g", True),
    ],
)
def test_values_that_are_never_negative_are_not_clamped(expression, clamped):
    text = f"def k(px: Pixel, *, a=0.5, b=2.0): return rgba(px.r, {expression}, px.b, px.a)"
    result = analyzed(text).result[1]
    assert (result.attr == "in_range") == clamped
    data = image_of(SHAPE, "u8")
    data[0], data[1] = 0, 255
    for a, b in ((0.5, 2.0), (0.0, 0.0), (-3.0, 1e38), (np.inf, -np.inf), (1e38, np.inf)):
        assert_like_reference(kernel(text), [data], SHAPE, "u8", {"a": a, "b": b})
    gray = f"def k(px: Pixel, *, a=0.5, b=2.0): return {expression}"
    for a, b in ((0.5, 2.0), (np.inf, -np.inf)):
        assert_like_reference(kernel(gray), [data], SHAPE[:2], "u8", {"a": a, "b": b})


@pytest.mark.parametrize(
    ("expression", "clamped"),
    [
        ("smoothstep(a, b, px.r) * px.g", False),
        ("px.r * px.g", False),
        ("px.r * px.r * (1.0 - px.r * 0.5) * 1.9", False),  # 0.95 at most
        ("px.r * px.r * (1.0 - px.r * 0.5) * 2.1", True),
        ("smoothstep(a, b, px.r) + px.g * 0.125", True),
        ("sqrt(px.r)", True),  # unknown to the analysis
    ],
)
def test_values_that_are_never_above_one_are_not_clamped(expression, clamped):
    text = f"def k(px: Pixel, *, a=0.5, b=2.0): return rgba(px.r, {expression}, px.b, px.a)"
    result = analyzed(text).result[1]
    assert result.attr == "in_range_or_nan"
    assert (result.args[0].op == "select") == clamped
    data = image_of(SHAPE, "u8")
    data[0], data[1] = 0, 255
    data[2, :, 0] = np.arange(SHAPE[1]) + 189
    for a, b in ((0.0, 1.0), (0.25, 0.26), (0.5, 0.5), (-3.0, 1e38), (np.inf, -np.inf)):
        assert_like_reference(kernel(text), [data], SHAPE, "u8", {"a": a, "b": b})


@pytest.mark.parametrize("operator", ["*", "/"])
@pytest.mark.parametrize("difference", ["sqrt(px.g) - a", "a - sqrt(px.g)", "a + sqrt(px.g)"])
def test_factors_of_differences_join_their_terms(difference, operator):
    """One fused multiply-add; infinite and zero factors still decide by the sign."""
    text = text_of(f"min(max(({difference}) {operator} b, 0.0), 1.0) * px.b")
    analysis = analyzed(text)
    varying = [s for s in analysis.block.body if s in analysis.varying]
    (scaled,) = [s for s in varying if s.op == "mul" and s.args[0].op == "sqrt"]
    (total,) = [s for s in analysis.fused if scaled in s.args]
    assert [a in analysis.varying for a in total.args].count(False) == 1
    assert not any(s.op == "div" for s in varying)
    data = image_of(SHAPE, "u8")
    data[0], data[1] = 0, 255
    for a in (0.0, 0.5, 1.0, -2.0, 1e38, np.inf):
        for b in (0.25, 3.0, 0.0, -0.0, 1e38, np.inf, -np.inf):
            assert_like_reference(kernel(text), [data], SHAPE, "u8", {"a": a, "b": b})


def test_the_first_byte_of_a_word_is_clamped():
    """NaN is stored as 0, with nothing in the bytes above."""
    roots = "sqrt(px.r * a - a), sqrt(px.g * a - a)"
    text = f"def k(px: Pixel, *, a=0.0): return rgba({roots}, px.b, px.a)"
    first, second, *_ = analyzed(text).result
    assert (first.attr, second.attr) == ("in_range", "in_range_or_nan")
    data = image_of(SHAPE, "u8")
    for shape in (SHAPE, (9, 67, 3)):
        given = np.ascontiguousarray(data[..., : shape[2]])
        assert_like_reference(kernel(text), [given], shape, "u8", {"a": 3.0})


def test_chroma_key_keeps_colors_without_despill():
    analysis = analyzed(get("chroma_key"))
    assert analysis.zero is not None
    assert analysis.program.params[analysis.zero.param].name == "despill"
    assert set(analysis.zero.kept) == {0, 1, 2}
    data = image_of(SHAPE, "u8")
    for key in ((0.1, 0.8, 0.2), (0.5, 0.5, 0.5), (3e38, -3e38, 3e38)):
        for despill in (0.0, -0.0, 1.0):
            params = {"key": key, "despill": despill, "threshold": 0.1, "softness": 0.3}
            assert_like_reference(get("chroma_key"), [data], SHAPE, "u8", params)


SOURCE = """def k(px: Pixel, *, amount=0.0, big=1.0):
    more = (px.g * big - px.b) * amount
    return rgba(px.r + more, px.g - big * more, max(px.b, px.r), px.a)
"""


@pytest.mark.parametrize("big", [1.0, -1000.0, 1e20, np.inf])
@pytest.mark.parametrize("amount", [0.0, 0.5])
def test_large_numbers_times_zero(tiny_tiles, amount, big):
    """Infinity times 0 is not 0: rows with such numbers are computed in full."""
    assert analyzed(SOURCE).zero is not None
    for shape in ((9, 67, 4), (5, 33, 3)):
        params = {"amount": amount, "big": big}
        assert_like_reference(kernel(SOURCE), [image_of(shape, "u8")], shape, "u8", params)


def test_unbounded_functions_are_not_left_out():
    text = "def k(px: Pixel, *, a=0.0): return rgba(px.r + a / px.g, px.g, px.b * px.r, px.a)"
    assert analyzed(text).zero is None
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
