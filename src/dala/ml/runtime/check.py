"""``dala models check FILE``: the facts of a model, and how each provider runs it."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from dala.errors import DalaError
from dala.ml.runtime.providers import available
from dala.ml.runtime.session import Port, Session
from dala.typing import NDArray

#: Runs that are timed.
_ROUNDS: Final = 5
#: The size of variable axes: one picture, and 224 pixels for sides.
_SIDE: Final = 224


#: How a provider runs a model, or all that is reported of a file.
Facts: TypeAlias = dict[str, Any]


def check_model(path: Path) -> Facts:
    """Open a file on every available provider, run it on random input, and compare.

    Of each provider it reports the ``status`` ("runs", or why it does not), the ``milliseconds`` of
    a run, the ``memory`` that loading and running took where the system knows it, whether runs are
    captured (``capture``), and the largest ``difference`` of an output from the CPU's, relative to
    its range.

    Raises:
        ModelError: the file is refused.

    Example::

        print(check_model(Path("my.onnx"))["operators"])
    """
    facts: dict[str, Facts] = {}
    reference: dict[str, NDArray] | None = None
    before = _resident()
    title = repr(path.name)
    cpu = Session(str(path), title, "cpu")
    given = _random_inputs(cpu.inputs)
    found: Facts = {
        "path": str(path),
        "size": path.stat().st_size,
        "inputs": [str(port) for port in cpu.inputs],
        "outputs": [str(port) for port in cpu.outputs],
        "opsets": {name or "ai.onnx": version for name, version in cpu.graph.opsets.items()},
        "operators": cpu.graph.operators,
        "weight_bytes": cpu.graph.bytes,
        "providers": facts,
    }
    for name in ["cpu", *(name for name in available() if name != "cpu")]:
        session: Session | None = cpu if name == "cpu" else None
        try:
            before = before if name == "cpu" else _resident()
            session = session or Session(str(path), title, name)
            made = session.run(given)
            facts[name] = {"status": "runs", "milliseconds": _milliseconds(session, given)}
            if before and (after := _resident()):
                facts[name]["memory"] = max(0, after - before)
            if session.capture:
                facts[name]["capture"] = session.capture
            if name == "cpu":
                reference = made
            elif reference is not None:
                facts[name]["difference"] = _difference(made, reference)
        except DalaError as error:
            facts[name] = {"status": str(error)}
        finally:
            if session is not None:
                session.close()
    return found


def _random_inputs(ports: tuple[Port, ...]) -> dict[str, NDArray]:
    """Return random values for inputs; variable first axes are 1, other variable axes 224."""
    rng = np.random.default_rng(0)
    found: dict[str, NDArray] = {}
    for port in ports:
        shape = [n or (_SIDE if k else 1) for k, n in enumerate(port.shape)]
        dtype = np.dtype(port.dtype or np.float32)
        numbers = rng.random(shape) if dtype.kind == "f" else rng.integers(0, 2, shape)
        found[port.name] = np.asarray(numbers, dtype)
    return found


def _milliseconds(session: Session, given: Mapping[str, NDArray]) -> float:
    times = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        session.run(given)
        times.append((time.perf_counter() - start) * 1e3)
    return round(statistics.median(times), 3)


def _difference(made: Mapping[str, NDArray], wanted: Mapping[str, NDArray]) -> float:
    worst = 0.0
    for name, right in wanted.items():
        got = made[name]
        if got.shape != right.shape:
            return float("inf")
        if right.size and right.dtype.kind in "fiub":
            a, b = got.astype(np.float64), right.astype(np.float64)
            worst = max(worst, float(np.abs(a - b).max() / max(np.ptp(b), 1e-6)))
    return worst


def _resident() -> int:
    """Return the bytes of memory that this process uses; 0 where the system does not say."""
    if not sys.platform.startswith("linux"):
        return 0
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0  # a sandbox without /proc
