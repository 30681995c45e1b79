"""Programs that once differed between engines, and the fuzzer that finds such."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from dala.gpu import compute
from tests.fuzz.programs import PAIRS, kept_programs, program_of
from tests.support.disagreements import compare, disagreement
from tests.support.engines import dala_device, engine_id, pytest_generate_tests

__all__ = ["dala_device", "engine_id", "pytest_generate_tests"]


def test_kept_programs(engine_id):
    programs = kept_programs()
    assert len(programs) >= 2
    for name, program in programs:
        if program.dtypes <= set(compute.supported_dtypes()):
            assert not disagreement(program, engine_id), name


def test_programs_have_all_types():
    assert len(PAIRS) == 8
    assert {(p.reals, p.ints) for p in map(program_of, range(8))} == set(PAIRS)
    assert program_of(17).source == program_of(17).source


def test_differences_are_found():
    for number in range(20):
        program = program_of(number)
        expected = np.zeros(61, "f4" if program.floats else "i4")
        got = expected.copy()
        assert compare(program, "cpu", got, expected) == ""
        got[5] = 1000
        assert "at 5: got" in compare(program, "cpu", got, expected)


def run(*args: str) -> str:
    command = [sys.executable, "-m", "tests.fuzz.programs", *args]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def test_fuzzer_counts_programs():
    out = run("--programs", "4", "--jobs", "2", "--engines", "cpu")
    assert "cpu 4, programs 4; " in out
    assert "0 failures" in out


@pytest.mark.long
def test_programs_for_an_hour():
    assert "0 failures" in run("--minutes", "50", "--jobs", "2")


@pytest.mark.long
def test_mutated_texts_run():
    assert "0 failures" in run("--minutes", "10", "--jobs", "2", "--mutated")
