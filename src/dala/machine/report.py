"""``dala.doctor()``: the devices of this machine, what is missing, and how to install it.

:func:`~dala.machine.probe.look` gathers facts and :func:`diagnose` makes the report from them
alone, so every kind of machine can be tested on any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, NamedTuple, TypeAlias

from dala.errors import counted
from dala.extras import EXTRAS, pip_install
from dala.gpu.compute.engines.devices import Choice, Device
from dala.gpu.compute.engines.webgpu.limits import (
    CLASSES,
    STORAGE_BUFFERS,
    VARIABLE,
    WORKGROUP_MEMORY,
)
from dala.machine.advice import Problem, find_problems, missing_extras, missing_in
from dala.machine.probe import Probe, look

#: A value that JSON can represent.
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


#: Facts of a probe that a report has as they are.
_SYSTEM: Final = ("dala", "python", "system", "machine", "libc", "setting")


class ExtraFacts(NamedTuple):
    """An optional part of the distribution, and what is missing in it."""

    purpose: str
    packages: list[str]
    missing: list[str]
    install: str


@dataclass(frozen=True, repr=False)
class Report:
    """The result of ``dala.doctor()``; print it to read it.

    >>> import dala
    >>> report = dala.doctor()
    >>> report.ok == (not report.problems)
    True
    """

    #: True if there are no problems. Missing optional packages do not count.
    ok: bool
    devices: list[Device]
    #: The device that ``auto`` selects, and why.
    choice: Choice
    problems: list[Problem]
    #: Optional packages that are not installed, and how to install them.
    optional: list[Problem]
    #: The system: ``dala``, ``python``, ``system``, ``machine``, ...
    system: dict[str, str]
    #: Installed versions; None for missing packages.
    versions: dict[str, str | None]
    #: Every extra: what it is for, its packages, those that are missing, and how to install it.
    extras: dict[str, ExtraFacts]

    def as_dict(self) -> dict[str, Json]:
        """Return the report as dicts, lists and strings, for JSON."""
        return {
            "ok": self.ok,
            "system": self.system,
            "versions": self.versions,
            "extras": {name: facts._asdict() for name, facts in self.extras.items()},
            "devices": [{**asdict(d), "dtypes": list(d.dtypes)} for d in self.devices],
            "choice": self.choice._asdict(),
            "problems": [problem._asdict() for problem in self.problems],
            "optional": [problem._asdict() for problem in self.optional],
        }

    def facts(self) -> str:
        """Return the first part of the page: system, packages, devices."""
        s = self.system
        lines = [
            system_line(s),
            "",
            "Packages",
            *(
                f"  {name:20} {version or 'not installed'}"
                for name, version in self.versions.items()
            ),
            "",
            "Devices (* = selected by auto)",
        ]
        width = max((len(d.id) for d in self.devices), default=0)
        for d in self.devices:
            mark = "*" if d.id == self.choice.device else " "
            through = ", ".join(part for part in (d.kind, d.api, d.driver) if part)
            lines.append(f"  {mark} {d.id:{width}}  {d.name}")
            lines.append(f"    {'':{width}}  {through}; {' '.join(d.dtypes)}")
        lines += ["", f"auto selects {self.choice.device}: {self.choice.reason}"]
        if s["setting"]:
            lines.append(f"DALA_DEVICE={s['setting']} is set and overrides auto")
        if any(d.backend == "webgpu" for d in self.devices):
            lines.append(_limits(s["webgpu_limits"]))
        if s["models"]:
            lines.append(f"Models run on {s['models']}")
        lines.append(f"Compiled kernels are cached in {s['cache'] or 'memory only'}")
        return "\n".join(lines)

    def __str__(self) -> str:
        page = [self.facts(), ""]
        if self.problems:
            page.append("Problems")
            for number, (what, fix) in enumerate(self.problems, 1):
                page.append(f"  {number}. {what}")
                page += [f"     {line}".rstrip() for line in fix.splitlines()]
            page.append("")
        page.append("Extras (optional)")
        for name, facts in self.extras.items():
            missing = ", ".join(facts.missing)
            page.append(
                f"  {name:7} {facts.purpose}: {f'missing {missing}' if missing else 'installed'}"
            )
            if missing:
                page.append(f"          {facts.install}")
        count = counted(len(self.problems), "problems") if self.problems else "No problems"
        page += ["", f"{count} found."]
        return "\n".join(page)

    __repr__ = __str__


def system_line(s: Mapping[str, str]) -> str:
    """Return the first line of a report: versions and the system."""
    libc = f", {s['libc']}" if s["libc"] else ""
    return f"Dala {s['dala']}, Python {s['python']}, {s['system']} ({s['machine']}{libc})"


def _limits(name: str) -> str:
    """Return the limits that WebGPU devices are asked for.

    >>> _limits("")
    "WebGPU uses the adapters' own limits"
    """
    if not name:
        return "WebGPU uses the adapters' own limits"
    most = CLASSES[name]
    return (
        f"WebGPU asks for the limits {name!r} ({VARIABLE}): {most[STORAGE_BUFFERS]} storage "
        f"buffers, {most[WORKGROUP_MEMORY]} bytes of workgroup memory, buffers of "
        f"{most['max-storage-buffer-binding-size'] >> 20} MiB"
    )


def doctor() -> Report:
    """Examine this machine: devices, drivers and packages, what is missing and how to install it.

    >>> import dala
    >>> report = dala.doctor()
    >>> report.choice.device in [device.id for device in report.devices]
    True
    """
    return diagnose(look())


def diagnose(probe: Probe) -> Report:
    """Return the report on a machine, from the facts in ``probe`` alone."""
    problems = list(find_problems(probe))
    return Report(
        ok=not problems,
        devices=list(probe.devices),
        choice=probe.choice,
        problems=problems,
        optional=list(missing_extras(probe.versions)),
        system={
            **{name: getattr(probe, name) for name in _SYSTEM},
            "webgpu_limits": probe.limits if probe.limits in CLASSES else "",
            "models": probe.models,
            "cache": "" if probe.cache_error or probe.cache_distrust else probe.cache,
        },
        versions=dict(probe.versions),
        extras={
            name: ExtraFacts(
                purpose, list(packages), missing_in(name, probe.versions), pip_install(name)
            )
            for name, (purpose, packages) in EXTRAS.items()
        },
    )
