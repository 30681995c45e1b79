"""Random programs give the same results on every engine as on the reference engine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings

import dala
from dala.gpu.compute import kernel
from tests.support.engines import run
from tests.support.programs import Program, Stencil, inputs, programs, stencils
from tests.support.tolerances import assert_close, family

# The same programs in every run, so that a failure is always a change in the code.
FIXED = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=60,
    suppress_health_check=list(HealthCheck),
)


def check(program: Program, engine: str) -> None:
    note(program.source)
    arrays, params = inputs(), {"s": 1.5, "k": 5}
    dtype = "f32" if program.floats else "s32"
    k = kernel(program.source)
    got = run(k, arrays, arrays[0].shape, dtype, params)
    with dala.device("reference"):
        expected = run(k, arrays, arrays[0].shape, dtype, params)
    if program.floats:
        assert np.isfinite(expected).all()
        distance = np.abs(got.astype("f8") - expected.astype("f8"))
        worst = int(np.argmax(np.where(np.isnan(distance), np.inf, distance)))
        limit = program.error[family(engine)]
        assert distance[worst] <= limit, (
            f"on {engine}, at {worst}: got {got[worst]!r}, expected {expected[worst]!r} "
            f"(within {limit:.3g})"
        )
    else:
        wrong = np.flatnonzero(got != expected)
        assert wrong.size == 0, (
            f"on {engine}, at {wrong[0]}: got {got[wrong[0]]}, expected {expected[wrong[0]]}"
        )


def test_random_programs(engine_id):
    @FIXED
    @given(programs())
    def every(program):
        check(program, engine_id)

    every()


def check_stencil(stencil: Stencil, engine: str) -> None:
    note(f"{stencil.source}\n{stencil.image.shape} {stencil.dtype} r={stencil.radius}")
    table = np.array([0.5, -0.25, 1.0, 0.125, -1.0], "<f4")
    arrays = [stencil.image, stencil.pixels, table]
    k = kernel(stencil.source)
    got = run(k, arrays, stencil.image.shape, stencil.dtype, {"r": stencil.radius})
    with dala.device("reference"):
        expected = run(k, arrays, stencil.image.shape, stencil.dtype, {"r": stencil.radius})
    assert_close(got, expected, engine, "exact" if stencil.dtype == "f32" else "program")


def test_random_stencils(engine_id):
    @settings(FIXED, max_examples=40)
    @given(stencils())
    def every(stencil):
        check_stencil(stencil, engine_id)

    every()


@pytest.mark.long
def test_many_random_stencils(engine_id):
    @settings(FIXED, max_examples=150)
    @given(stencils())
    def every(stencil):
        check_stencil(stencil, engine_id)

    every()


@pytest.mark.long
def test_many_random_programs(engine_id):
    @settings(FIXED, max_examples=300)
    @given(programs())
    def every(program):
        check(program, engine_id)

    every()


def test_error_bounds_are_tight():
    """A bound so wide that anything passes would test nothing."""
    seen = []

    @settings(FIXED, max_examples=300)
    @given(programs())
    def every(program):
        if program.floats:
            seen.append(program.error["webgpu"])

    every()
    assert len(seen) > 100
    assert np.median(seen) < 0.01
    assert np.quantile(seen, 0.9) < 0.5
