"""Run one random program on an engine and on the reference engine, and compare the answers."""

from __future__ import annotations

import numpy as np

import dala
from dala.gpu import compute
from tests.support.engines import run
from tests.support.programs import Program, inputs
from tests.support.tolerances import family

PARAMS = {"s": 1.5, "k": 5}


def answer(program: Program, device: str | None = None) -> np.ndarray:
    """Return a program's output on a device, or on the current one."""
    arrays = inputs(program.reals, program.ints)
    made = compute.kernel(program.source)
    if device is None:
        return run(made, arrays, arrays[0].shape, program.out, PARAMS)
    with dala.device(device):
        return run(made, arrays, arrays[0].shape, program.out, PARAMS)


def disagreement(program: Program, engine: str, expected: np.ndarray | None = None) -> str:
    """Return what the current device computes differently from the reference engine, or ""."""
    if expected is None:
        expected = answer(program, "reference")
    return compare(program, engine, answer(program), expected)


def compare(program: Program, engine: str, got: np.ndarray, expected: np.ndarray) -> str:
    """Return where two answers differ by more than the program's bound, or ""."""
    if not program.floats:
        wrong = np.flatnonzero(got != expected)
        if not wrong.size:
            return ""
        at = wrong[0]
        return f"on {engine}, at {at}: got {got[at]}, expected {expected[at]}"
    if not np.isfinite(expected).all():
        return f"the reference engine computes {expected[~np.isfinite(expected)][0]}"
    distance = np.abs(got.astype("f8") - expected.astype("f8"))
    at = int(np.argmax(np.where(np.isnan(distance), np.inf, distance)))
    limit = program.error[family(engine)]
    if distance[at] <= limit:
        return ""
    return f"on {engine}, at {at}: got {got[at]!r}, expected {expected[at]!r} (within {limit:.3g})"
