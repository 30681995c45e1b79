"""``dala.selftest()``: the table of answers on the devices of this machine, as a report."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Final, get_args

import dala
from dala import Device, forks
from dala.answers.cases import Row, Share, names, rows
from dala.answers.table import check
from dala.arguments import Selection
from dala.errors import counted
from dala.machine.processor import cpu_level
from dala.machine.report import Json, doctor, system_line

#: Devices that are not tested unless they are named: the table is the reference engine's own.
_QUIET: Final = ("reference", "null")
#: How many filters are tested at a time.
THREADS: Final = 4
#: The packages that results may depend on.
_ENGINES: Final = ("numpy", "llvmlite", "wgpu")


@dataclass(frozen=True)
class Differing:
    """The rows of one filter that differ on a device."""

    filter: str
    #: How many rows differ, and how many there are.
    count: int
    of: int
    #: The first of them, with its first differing pixel.
    first: str
    #: The ids of all of them.
    rows: tuple[str, ...]


@dataclass(frozen=True)
class DeviceResult:
    """The table on one device."""

    device: Device
    #: The level of instructions, for the CPU.
    level: str
    rows: int
    seconds: float
    differing: tuple[Differing, ...]

    @property
    def ok(self) -> bool:
        """True if every row gives the stored bytes."""
        return not self.differing


@dataclass(frozen=True, repr=False)
class SelfTest:
    """The result of ``dala.selftest()``; print it to read it."""

    system: Mapping[str, str]
    versions: Mapping[str, str | None]
    share: Share
    devices: tuple[DeviceResult, ...]

    @property
    def ok(self) -> bool:
        """True if no device differs."""
        return all(d.ok for d in self.devices)

    def as_dict(self) -> dict[str, Json]:
        """Return the report as dicts, lists and strings, for JSON."""
        return {
            "ok": self.ok,
            "system": dict(self.system),
            "versions": dict(self.versions),
            "share": self.share,
            "devices": [{**asdict(d), "ok": d.ok} for d in self.devices],
        }

    def __str__(self) -> str:
        installed = ", ".join(f"{name} {self.versions[name]}" for name in _ENGINES)
        page = [
            system_line(self.system),
            f"with {installed}",
        ]
        for d in self.devices:
            page += ["", *_lines(d)]
        page += ["", "All bytes are equal." if self.ok else "Some rows DIFFER. Please report this."]
        return "\n".join(page)

    __repr__ = __str__


def _lines(d: DeviceResult) -> list[str]:
    through = ", ".join(filter(None, (d.device.kind, d.device.api, d.device.driver, d.level)))
    wrong = sum(f.count for f in d.differing)
    lines = [
        f"{d.device.id}: {d.device.name} ({through})",
        f"  {counted(d.rows - wrong, 'rows')} equal, {wrong} differ; {d.seconds:.1f} s",
    ]
    for f in d.differing:
        lines += [f"  {f.filter}: {f.count} of {f.of} rows", f"    {f.first}"]
    return lines


def selftest(
    device: str | Device | Sequence[str | Device] | None = None,
    *,
    share: Share = "most",
    only: Sequence[str] = (),
) -> SelfTest:
    """Compare the results of this machine's devices with the stored table of answers.

    Every built-in filter, the compositor and the rasterizer are run on small pictures of bytes,
    with many parameters. Their bytes must be equal on all devices. It takes about half a minute for
    a device.

    Args:
        device: a device, or several; all of ``dala.devices()`` by default, except "reference".
        share: "most" of the rows; "few", a third of them; "all", also with random parameters.
        only: names of filters; all by default.

    Returns:
        A report; print it, or use its ``ok`` and ``as_dict()``.

    >>> selftest("cpu", only=["invert"]).ok
    True
    """
    Selection(*get_args(Share), expected="'all', 'most' or 'few'").check("selftest", "share", share)
    for name in only:
        Selection(*names(), expected="names of filters").check("selftest", "only", name)
    if device is None:
        chosen = [d for d in dala.devices() if d.id not in _QUIET]
    else:
        given = [device] if isinstance(device, str | Device) else device
        chosen = [_device(d) for d in given]
    facts = doctor()
    some = list(rows(*only, share=share))
    return SelfTest(facts.system, facts.versions, share, tuple(_test(d, some) for d in chosen))


def _device(name: str | Device) -> Device:
    with dala.device(name) as id:
        return next(d for d in dala.devices() if d.id == id)


def _test(device: Device, some: Sequence[Row]) -> DeviceResult:
    begun = time.monotonic()
    here = [row for row in some if row.runs_on(device.backend)]
    wrong: dict[str, list[tuple[str, str]]] = {}
    total: dict[str, int] = {}
    groups = [list(group) for _, group in groupby(here, lambda row: row.name)]
    with forks.pool(THREADS, "dala selftest") as pool:  # most of the time goes into compiling
        for found in pool.map(lambda group: list(check(group, device.id)), groups):
            for row, problem in found:
                total[row.name] = total.get(row.name, 0) + 1
                if problem:
                    wrong.setdefault(row.name, []).append((row.id, problem))
    differing = tuple(
        Differing(name, len(found), total[name], ": ".join(found[0]), tuple(id for id, _ in found))
        for name, found in wrong.items()
    )
    level = cpu_level() if device.backend == "cpu" else ""
    return DeviceResult(device, level, len(here), time.monotonic() - begun, differing)
