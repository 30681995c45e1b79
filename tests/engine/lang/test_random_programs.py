"""Random programs give the same results on every engine as on the reference engine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings

import dala
from dala.gpu import compute
from dala.gpu.compute import kernel
from tests.support.disagreements import disagreement
from tests.support.engines import run
from tests.support.programs import Program, programs, programs_of_any_type
from tests.support.stencils import Stencil, stencils
from tests.support.tolerances import assert_close

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
    wrong = disagreement(program, engine)
    assert not wrong, wrong


def test_random_programs(engine_id):
    @FIXED
    @given(programs())
    def every(program):
        check(program, engine_id)

    every()


@pytest.mark.third
def test_random_programs_of_any_type(engine_id):
    """Every pair of a float and an int type that the device has."""
    dtypes = set(compute.supported_dtypes())

    @settings(FIXED, max_examples=30)
    @given(programs_of_any_type())
    def every(program):
        if program.dtypes <= dtypes:
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


@pytest.mark.long
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
