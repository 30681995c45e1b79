"""Loops that run at most once: WebGPU writes them without a loop, with the same results."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu.compute import buffer, kernel
from dala.gpu.compute.call.geometry import program_for
from dala.gpu.compute.engines.webgpu.wgsl.shader import Metering, write_shader
from tests.support.engines import evaluate

X = np.arange(-4, 9, dtype="<i4")

#: The statements between ``y = 0`` and ``return y``, their result in Python, and how many loops are
#: left in WGSL.
BODIES = {
    "empty, with an else": (
        "if x > 2:\n    for i in range(7, 2, 3):\n        break\nelse:\n    y = 10 + x",
        lambda x: 0 if x > 2 else 10 + x,
        0,
    ),
    "empty, counting down": (
        "for i in range(2, 7, -1):\n    y = 5\ny = y + 1",
        lambda x: 1,
        0,
    ),
    "one turn": (
        "for i in range(3, 4):\n    y = i * 10 + x",
        lambda x: 30 + x,
        0,
    ),
    "one turn, with a continue": (
        "for i in range(3, 4):\n    if x > 2:\n        continue\n    y = i",
        lambda x: 0 if x > 2 else 3,
        1,
    ),
    "break at the end": (
        "for i in range(x, 5):\n    y = i * 2 + 1\n    break",
        lambda x: x * 2 + 1 if x < 5 else 0,
        0,
    ),
    "break at the end, counting down": (
        "for i in range(x, 0, -2):\n    y = i + 100\n    break",
        lambda x: x + 100 if x > 0 else 0,
        0,
    ),
    "break at the end of each branch": (
        "for i in range(x):\n    if x > 3:\n        y = 1\n        break\n    else:\n"
        "        y = 2\n        break",
        lambda x: 0 if x <= 0 else 1 if x > 3 else 2,
        0,
    ),
    "break in one branch": (
        "for i in range(6):\n    y = y + i\n    if x < i:\n        break",
        lambda x: sum(range(6)) if x >= 5 else sum(range(max(x, -1) + 2)),
        1,
    ),
    "return": (
        "for i in range(x):\n    return 7 + i",
        lambda x: 7 if x > 0 else 0,
        0,
    ),
    "an inner loop that runs once": (
        "for i in range(3):\n    for j in range(i, 2):\n        y = y * 10 + j + 1\n        break",
        lambda x: 12,
        1,
    ),
    "an outer loop that runs once": (
        "for i in range(5, 9):\n    for j in range(3):\n        if j > x:\n            break\n"
        "        y = y + i\n    break",
        lambda x: 5 * min(max(x + 1, 0), 3),
        1,
    ),
    "statements after a break": (
        "for i in range(4):\n    y = y + 1\n    break\n    y = 99",
        lambda x: 1,
        0,
    ),
}


def text(body):
    inside = "\n".join("    " + line for line in body.splitlines())
    return f"def k(x):\n    y = 0\n{inside}\n    return y\n"


@pytest.mark.parametrize("body", BODIES)
def test_values(engine_id, body):
    source, expected, _ = BODIES[body]
    found = evaluate(text(source), [X], "s32")
    assert found.tolist() == [expected(int(x)) for x in X]


@pytest.mark.parametrize("body", BODIES)
def test_loops_that_are_left(body):
    source, _, loops = BODIES[body]
    with dala.device("reference"):
        inputs = [buffer(X.tolist(), dtype="s32")]
        program, geometry = program_for(kernel(text(source)).decl, inputs, X.shape, "s32")
    assert write_shader(program, geometry).source.count("for (") == loops
    counted = write_shader(program, geometry, metering=Metering(100)).source
    assert counted.count("for (") == source.count("for ")  # each iteration counts


def test_they_count_as_iterations(engine_id):
    made = kernel(
        text("for i in range(3):\n    for j in range(i, 9):\n        y = y + j\n        break")
    )
    source = buffer([1, 2], dtype="s32")
    with dala.limits(iterations=6):
        assert made(source).read_list() == [3, 3]
    with dala.limits(iterations=5), pytest.raises(dala.LimitExceeded):
        made(source).read_list()
