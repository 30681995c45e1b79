"""``dala.selftest()`` in processes of their own, one for each engine, level and driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import dala
from dala.answers.known import KNOWN
from dala.machine.processor import CPU_LEVELS, cpu_level

ROOT = Path(__file__).parents[2]
#: What makes llvmpipe run as on a processor without AVX-512, and print what it uses.
LOWER = {"GALLIUM_OVERRIDE_CPU_CAPS": "avx", "GALLIUM_DUMP_CPU": "1"}


class Engine(NamedTuple):
    """A device, and the environment that it is opened in."""

    label: str
    device: str
    environment: Mapping[str, str]


def processors() -> list[Engine]:
    """Return the CPU engine at each level that this processor has."""
    own = cpu_level()
    if own not in CPU_LEVELS:
        return [Engine("cpu", "cpu", {})]
    levels = CPU_LEVELS[CPU_LEVELS.index(own) :]
    return [Engine(f"cpu at {level}", "cpu", {"DALA_CPU": level}) for level in levels]


def adapters() -> list[Engine]:
    """Return WebGPU on each adapter, and llvmpipe's lower level."""
    found = [d for d in dala.devices() if d.backend == "webgpu"]
    made = [Engine(f"{d.id} ({d.name}, {d.api})", d.id, {}) for d in found]
    for d in found:
        if "llvmpipe" in d.name and d.api == "Vulkan":
            made.append(Engine(f"{d.id} (llvmpipe without AVX-512)", d.id, LOWER))
    return made


#: Drivers print to standard output as well, so the report goes to a file.
_RUN = """
import json, sys
import dala
path, device, share, *only = sys.argv[1:]
with open(path, "w") as file:
    json.dump(dala.selftest(device, share=share, only=only).as_dict(), file)
"""


def selftest(engine: Engine, share: str, only: Iterable[str] = ()) -> dict[str, Any]:
    """Return the report of an engine."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        ran = subprocess.run(
            [sys.executable, "-c", _RUN, str(path), engine.device, share, *only],
            env={**os.environ, **engine.environment}, capture_output=True, text=True, cwd=ROOT,
        )  # fmt: skip
        said = ran.stdout + ran.stderr
        assert ran.returncode == 0, f"{engine.label}: {said[-4000:]}"
        report: dict[str, Any] = json.loads(path.read_text())["devices"][0]
    if engine.environment is LOWER:
        assert "has_avx512f = 0" in said
        assert "has_avx512f = 1" not in said
    assert report["rows"] > 0
    return report


def assert_answers(engines: Sequence[Engine], backend: str, share: str) -> None:
    """Check that engines give the table's bytes, and that what is known to differ still does."""
    problems, differing = [], set()
    for engine in engines:
        for found in selftest(engine, share)["differing"]:
            differing.add(found["filter"])
            if not found["known"]:
                problems.append(
                    f"{engine.label}: {found['filter']}, {found['count']} of {found['of']} rows: "
                    f"{found['first']}"
                )
    stale = KNOWN[backend].keys() - differing
    for engine in engines:
        if stale and share != "all":  # other rows of these filters may still differ
            stale -= {f["filter"] for f in selftest(engine, "all", sorted(stale))["differing"]}
    problems += [
        f"{name} is equal on {backend} now: remove it from dala/answers/known.py"
        for name in sorted(stale)
    ]
    assert not problems, "\n".join(problems)
