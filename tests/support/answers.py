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
from dala.answers.cases import names
from dala.machine.processor import CPU_LEVELS, cpu_level

ROOT = Path(__file__).parents[2]
#: What makes llvmpipe run as on a processor without AVX-512, and print what it uses.
LOWER = {"GALLIUM_OVERRIDE_CPU_CAPS": "avx", "GALLIUM_DUMP_CPU": "1"}


class Engine(NamedTuple):
    """A device, and the environment that it is opened in."""

    label: str
    device: str
    environment: Mapping[str, str]
    #: The filters that are run; all if there are none.
    only: Sequence[str] = ()


def processors(*, every: bool = False) -> list[Engine]:
    """Return the CPU engine as it is, with all that this processor has, and at lower levels.

    Args:
        every: also at its own level, without what this processor has beyond it, and all filters at
            the lower ones. Otherwise each filter is run at one of two lower levels.
    """
    own = cpu_level()
    lower = CPU_LEVELS[CPU_LEVELS.index(own) + (not every) :] if own in CPU_LEVELS else ()
    parts = 1 if every else min(len(lower), 2)
    return [
        Engine("cpu", "cpu", {}),
        *(
            Engine(f"cpu at {level}", "cpu", {"DALA_CPU": level}, names()[n % parts :: parts])
            for n, level in enumerate(lower)
        ),
    ]


def adapters(*, every: bool = False) -> list[Engine]:
    """Return WebGPU on each adapter, and llvmpipe's lower level.

    Args:
        every: all filters on each. Otherwise the adapters after the first share the filters.
    """
    found = [d for d in dala.devices() if d.backend == "webgpu"]
    made = [Engine(f"{d.id} ({d.name}, {d.api})", d.id, {}) for d in found]
    for d in found:
        if "llvmpipe" in d.name and d.api == "Vulkan":
            made.append(Engine(f"{d.id} (llvmpipe without AVX-512)", d.id, LOWER))
    if every or len(made) < 3:
        return made
    parts = len(made) - 1
    others = (each._replace(only=names()[n::parts]) for n, each in enumerate(made[1:]))
    return [made[0], *others]


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


def assert_answers(engines: Sequence[Engine], share: str) -> None:
    """Check that engines give the table's bytes."""
    problems = [
        f"{engine.label}: {found['filter']}, {found['count']} of {found['of']} rows: "
        f"{found['first']}"
        for engine in engines
        for found in selftest(engine, share, engine.only)["differing"]
    ]
    assert not problems, "\n".join(problems)
