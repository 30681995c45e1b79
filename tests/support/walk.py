"""Print the modules that one warm call enters, in order.

Run it as ``python -m tests.support.walk``; PYTHONPATH chooses the source tree. Consecutive calls
within one module count as one entry, so a module that is listed twice was left and entered again.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

import dala


def walk(call: Callable[[], object]) -> tuple[list[str], int]:
    """Return the modules of Dala that a call enters, in order, and the number of function calls."""
    entered: list[str] = []
    calls = 0

    def record(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        if event != "call":
            return
        name = str(frame.f_globals.get("__name__", ""))
        if not name.startswith("dala"):
            return
        calls += 1
        if not entered or entered[-1] != name:
            entered.append(name)

    sys.setprofile(record)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered, calls


def blur() -> Callable[[], object]:
    """Return a warm ``dala.media.gpu.blur`` of an array."""
    from dala.media import gpu

    image = np.zeros((64, 64, 4), np.uint8)
    for _ in range(3):
        gpu.blur(image, radius=3)
    return lambda: gpu.blur(image, radius=3)


def pipeline() -> Callable[[], object]:
    """Return a warm run of a fused pipeline of three stages."""
    from dala.gpu.compute import Pipeline, buffer_zeros

    image, out = (buffer_zeros((64, 64, 4), "u8") for _ in range(2))
    first, second = (buffer_zeros((64, 64, 4), "u8", transient=True) for _ in range(2))
    made = Pipeline()
    steps = [("blur", image, first), ("sepia", first, second), ("invert", second, out)]
    for kernel, source, target in steps:
        made.add({"op": "run_kernel", "kernel": kernel, "inputs": [source], "output": target})
    made.run()
    return made.run


def main() -> None:
    """Print both walks."""
    for title, make in (("dala.media.gpu.blur(array)", blur), ("a fused pipeline", pipeline)):
        with dala.device("cpu"):
            entered, calls = walk(make())
        again = sum(count - 1 for count in Counter(entered).values())
        modules = len(set(entered))
        lines = [
            f"{title}: {modules} modules, {len(entered)} entries ({again} again), {calls} calls"
        ]
        lines += [f"  {name.removeprefix('dala.')}" for name in entered]
        sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
