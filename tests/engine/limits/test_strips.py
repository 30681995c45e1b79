"""Metered loops of the CPU engine run in strips: all iterations run once, whatever their number."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu.compute import Kernel, buffer, buffer_zeros, kernel
from dala.gpu.compute.engines.cpu.llvm import metering
from dala.gpu.compute.engines.cpu.llvm.metering import TINY_LOOP

#: Weights of strips and of short loops, small enough for the reference engine to run many.
STRIP, SHORT = 4096, 512
#: Iterations around the end of each, in an order that mixes short and long ones.
LENGTHS = [
    at + n
    for n in (-2, -1, 0, 1, 2)
    for at in (2, STRIP // 4, TINY_LOOP, SHORT // 4, STRIP // 3, STRIP, 40)
] + [0, -3, 3 * STRIP]
SUM = """
def strips_sum(first: s32, length: s32):
    total = 0
    for i in range(first, first + length * ({step}), {step}):
        total = total * 3 + i
    return total
"""
LEAVE = """
def strips_leave(first: s32, length: s32):
    total = 0
    for i in range(first, first + length):
        if i % 3 == 1:
            continue
        if i > first + 2000:
            break
        total += i
    return total * 2
"""
NESTED = """
def strips_nested(first: s32, length: s32):
    total = first
    for i in range(length // 7):
        for j in range(i % 5):
            total = total * 5 + j
        for j in range(3, length // 100 - 3, -1):
            total += i ^ j
        if total % 11 == 3:
            break
    return total
"""
#: The same after much else, too long for a copy without strips.
LONG = "\n".join(
    [
        "def strips_long(first: s32, length: s32):",
        "    total = first",
        *("    total = (total ^ length) * 3" for _ in range(80)),
        *SUM.format(step=1).splitlines()[3:],
    ]
)
TEXTS = {
    "up": SUM.format(step=1), "by 3": SUM.format(step=3), "down": SUM.format(step=-1),
    "down by 5": SUM.format(step=-5), "leave": LEAVE, "nested": NESTED, "long": LONG,
}  # fmt: skip


@pytest.fixture(autouse=True)
def strips(monkeypatch):
    monkeypatch.setattr(metering, "STRIPS", (STRIP, 2 * STRIP, 4 * STRIP))
    monkeypatch.setattr(metering, "SHORT_LOOPS", (SHORT, 2 * SHORT, 4 * SHORT))
    monkeypatch.setattr(metering, "ROW_STRIP", 9 * STRIP)
    monkeypatch.setattr(metering, "SHORT_ROW", 23 * SHORT)


@pytest.fixture
def inputs():
    lengths = np.array(LENGTHS * 5, np.int32)
    first = (np.arange(len(lengths)) * 37 % 101 - 50).astype(np.int32)
    return first, lengths


def run(made: Kernel, arrays: list[np.ndarray], device: str) -> np.ndarray:
    out = buffer_zeros(arrays[0].shape, "s32", device=device)
    made.run([buffer(a, dtype="s32", device=device) for a in arrays], out)
    return out.numpy().copy()


@pytest.mark.parametrize("name", TEXTS)
def test_every_iteration_runs_once(inputs, name):
    made = kernel(TEXTS[name])
    expected = run(made, inputs, "reference")
    np.testing.assert_array_equal(run(made, inputs, "cpu"), expected)
    rows = [a.reshape(5, -1) for a in inputs]  # rows of odd lengths
    np.testing.assert_array_equal(run(made, rows, "cpu").ravel(), expected)
    with dala.limits(iterations=10**6):  # counts every iteration instead
        np.testing.assert_array_equal(run(made, inputs, "cpu"), expected)


def test_positions_that_start_again_read_their_input_once_more(inputs):
    """The output may be an input: a position that leaves its first copy has written nothing."""
    made = kernel(SUM.format(step=1), name="strips_in_place")
    expected = run(made, inputs, "reference")
    first, length = (buffer(a, dtype="s32", device="cpu") for a in inputs)
    made.run([first, length], length)
    np.testing.assert_array_equal(length.numpy(), expected)


@pytest.mark.parametrize("bounds", ["2147483600, n", "n, -2147483600, -1", "-n, 2147483647"])
def test_bounds_at_the_ends_of_their_type(bounds):
    """Differences of bounds need 33 bits."""
    ends = np.array([2147483647, -2147483648, 2147483620, -2147483590, 0], np.int32)
    text = f"def strips_ends(n: s32):\n    c = 0\n    for i in range({bounds}):\n        c += 1\n"
    text += "        if c == 60:\n            break\n    return c\n"
    made = kernel(text)
    np.testing.assert_array_equal(run(made, [ends], "cpu"), run(made, [ends], "reference"))
