"""Easings: end points, known values, CSS curves against bisection, names, errors."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dala
from dala.media.sources.easing import EASINGS, easing

FAMILIES = ("quad", "cubic", "quart", "quint", "sine", "expo", "circ", "back", "bounce", "elastic")
unit = st.floats(0.0, 1.0)


@pytest.mark.parametrize("name", EASINGS)
def test_every_easing_maps_0_to_0_and_1_to_1(name):
    curve = easing(name)
    assert [curve(-1.0), curve(0.0), curve(1.0), curve(2.0)] == [0.0, 0.0, 1.0, 1.0]
    # and without a jump at the ends
    assert abs(curve(1e-9)) < 1e-4
    assert abs(curve(1 - 1e-9) - 1) < 1e-4


@pytest.mark.parametrize("family", FAMILIES)
@given(t=unit)
def test_out_mirrors_in_and_in_out_combines_both(family, t):
    slow, late, both = (easing(f"{family}-{end}") for end in ("in", "out", "in-out"))
    assert late(t) == pytest.approx(1 - slow(1 - t), abs=1e-12)
    if t < 0.5:
        assert both(t) == pytest.approx(slow(2 * t) / 2, abs=1e-12)
    else:
        assert both(t) == pytest.approx(1 - slow(2 - 2 * t) / 2, abs=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_plain_names(family):
    end = "out" if family in ("bounce", "elastic") else "in-out"
    for t in (0.1, 0.4, 0.7):
        assert easing(family)(t) == easing(f"{family}-{end}")(t)


@pytest.mark.parametrize(
    ("name", "t", "value"),
    [
        ("linear", 0.3, 0.3),
        ("quad-in", 0.3, 0.09),
        ("cubic-in", 0.3, 0.027),
        ("cubic-out", 0.25, 1 - 0.75**3),
        ("quart-in", 0.5, 0.0625),
        ("quint-in", 0.5, 0.03125),
        ("sine-in", 0.5, 1 - math.sqrt(0.5)),
        ("sine-in-out", 0.25, 0.5 - math.sqrt(0.125)),
        ("circ-in", 0.6, 0.2),
        ("expo-in", 0.5, (2**-5 - 2**-10) / (1 - 2**-10)),
        ("back-in", 0.5, 0.25 * (2.70158 * 0.5 - 1.70158)),
        ("bounce-out", 1 / 2.75, 1.0),  # the first time on the ground
        ("bounce-out", 1.5 / 2.75, 0.75),  # the tops of the three hops
        ("bounce-out", 2.25 / 2.75, 0.9375),
        ("bounce-out", 2.625 / 2.75, 0.984375),
        ("elastic-out", 0.15, 1 + (2**-1.5 - 2**-10) / (1 - 2**-10)),  # the first swing beyond
        ("elastic-out", 0.075, 1.0),
    ],
)
def test_known_values(name, t, value):
    assert easing(name)(t) == pytest.approx(value, abs=1e-12)


def test_back_overshoots_by_a_tenth():
    assert max(easing("back-out")(i / 1000) for i in range(1001)) == pytest.approx(1.1, abs=1e-4)


def bend(s, p1, p2):
    return 3 * (1 - s) ** 2 * s * p1 + 3 * (1 - s) * s * s * p2 + s**3


def where(x, x1, x2):
    low, high = 0.0, 1.0
    for _ in range(100):
        s = (low + high) / 2
        low, high = (low, s) if bend(s, x1, x2) > x else (s, high)
    return low


@given(t=unit, x1=unit, x2=unit, y1=st.floats(-3, 3), y2=st.floats(-3, 3))
@example(t=0.5, x1=1.0, x2=0.0, y1=0.0, y2=1.0)  # x rests in the middle
@example(t=0.500001, x1=1.0, x2=0.0, y1=0.0, y2=1.0)
@example(t=1e-10, x1=0.0, x2=1.0, y1=1.0, y2=1.0)
@example(t=1e-6, x1=0.0, x2=0.0, y1=1.0, y2=1.0)  # steep at the beginning
@example(t=1 - 1e-6, x1=1.0, x2=1.0, y1=0.0, y2=0.0)
def test_cubic_bezier_against_bisection(t, x1, x2, y1, y2):
    # Where x rests, the place is known no better than x is: y lies between those of its neighbors.
    low, high = where(t - 1e-12, x1, x2), where(t + 1e-12, x1, x2)
    ys = [bend(low + (high - low) * i / 8, y1, y2) for i in range(9)]
    found = easing(("cubic-bezier", x1, y1, x2, y2))(t)
    assert min(ys) - 1e-9 <= found <= max(ys) + 1e-9


def test_css_names_are_css_curves():
    for name, numbers in {
        "ease": "0.25, 0.1, 0.25, 1",
        "ease-in": "0.42, 0, 1, 1",
        "ease-out": "0, 0, 0.58, 1",
        "ease-in-out": "0.42, 0, 0.58, 1",
    }.items():
        for t in (0.1, 0.5, 0.8):
            assert easing(name)(t) == easing(f"cubic-bezier({numbers})")(t)
    assert easing("ease")(0.5) == pytest.approx(0.8024033877, abs=1e-9)
    assert easing("cubic-bezier(0.3, 0.3, 0.7, 0.7)")(0.123) == 0.123


@pytest.mark.parametrize(
    ("way", "values"),
    [
        ("steps(4)", [0, 0.25, 0.5, 0.75, 1]),
        (("steps", 4), [0, 0.25, 0.5, 0.75, 1]),
        ("steps(4, jump-end)", [0, 0.25, 0.5, 0.75, 1]),
        ("steps(4, jump-start)", [0.25, 0.5, 0.75, 1, 1]),
        ("steps(4, start)", [0.25, 0.5, 0.75, 1, 1]),
        ("steps(4, jump-both)", [0.2, 0.4, 0.6, 0.8, 1]),
        (["steps", 4, "jump-none"], [0, 1 / 3, 2 / 3, 1, 1]),
    ],
)
def test_steps(way, values):
    curve = easing(way)
    assert [curve(t) for t in (0, 0.25, 0.5, 0.75, 1)] == pytest.approx(values)
    assert curve(0.49) == pytest.approx(values[1])


@given(count=st.integers(1, 500), data=st.data())
def test_steps_start_exactly(count, data):
    step = data.draw(st.integers(0, count - 1))
    assert easing(("steps", count))(step / count) == step / count


@pytest.mark.parametrize("written", ["easeInOutQuad", "quad_in_out", "ease-in-out-quad", "QUAD"])
def test_other_spellings(written):
    assert easing(written)(0.3) == easing("quad-in-out")(0.3)


def test_custom_function():
    def half(t):
        return t / 2

    assert easing(half) is half


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("qaud-in", "Did you mean 'quad-in'"),
        ("bounces", "Did you mean 'bounce"),
        ("quad-sideways", "there is no easing"),
        ("", "there is no easing"),
        ("cubic-bezier(1, 2, 3)", "four numbers"),
        ("cubic-bezier(2, 0, 1, 1)", "from 0 to 1"),
        ("cubic-bezier(a, b, c, d)", "four numbers"),
        ("cubic-bezier(nan, 0, 1, 1)", "four numbers"),
        (("cubic-bezier", 0, True, 1, 1), "four numbers"),
        ("steps(0)", "must be an int of at least 1"),
        ("steps(2.5)", "must be an int of at least 1"),
        ("steps(1, jump-none)", "2 with jump-none"),
        ("steps(4, sideways)", "jump-start"),
        ("steps()", "must be an int of at least 1"),
        ("stepps(4)", "Did you mean 'steps'"),
        (3, "a name such as"),
        (None, "a name such as"),
        ((1, 2, 3, 4), "a name such as"),
        (lambda: 0.0, "failed for 0.0"),
        (lambda t: 1 / t, "failed for 0.0"),
        (lambda t: "x", "must return a finite number"),
        (lambda t: math.nan, "must return a finite number"),
    ],
)
def test_invalid_arguments(way, message):
    with pytest.raises(dala.errors.ParameterError, match=message):
        easing(way)
