"""``dala.doctor()``: what this machine offers, what is missing, and how to get it.

``probe.look`` gathers facts, :func:`diagnose` judges them: the same facts always give
the same report, so every kind of machine can be tested from any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from dala.gpu.compute.engines.devices import Choice, Device
from dala.machine.advice import ICD_JSON, NVIDIA_ICD, install, no_driver
from dala.machine.probe import CORE, EXTRAS, Probe, look

#: What each extra is for.
_PURPOSE = {
    "media": "video files and pictures (dala.media)",
    "ml": "models (dala.ml)",
    "view": "windows on the screen",
}


class Problem(NamedTuple):
    """Something to repair, and how."""

    what: str
    fix: str


@dataclass(frozen=True, repr=False)
class Report:
    """The doctor's report; printing it gives the readable page."""

    #: No problems. Optional packages that are not installed don't count.
    ok: bool
    devices: list[Device]
    #: What ``auto`` takes, and why.
    choice: Choice
    problems: list[Problem]
    #: Optional packages that are not installed, and how to install them.
    optional: list[Problem]
    #: The system in words: ``dala``, ``python``, ``system``, ``machine``, ...
    system: dict[str, str]
    #: Installed versions; None for what is missing.
    versions: dict[str, str | None]

    def as_dict(self) -> dict[str, Any]:
        """The report as plain dicts, lists and strings, ready for JSON."""
        return {
            "ok": self.ok,
            "system": self.system,
            "versions": self.versions,
            "devices": [{**asdict(d), "dtypes": list(d.dtypes)} for d in self.devices],
            "choice": self.choice._asdict(),
            "problems": [problem._asdict() for problem in self.problems],
            "optional": [problem._asdict() for problem in self.optional],
        }

    def facts(self) -> str:
        """The part of the page that states what is there."""
        s = self.system
        libc = f", {s['libc']}" if s["libc"] else ""
        lines = [
            f"Dala {s['dala']}, Python {s['python']}, {s['system']} ({s['machine']}{libc})",
            "",
            "Packages",
            *(
                f"  {name:13} {version or 'not installed'}"
                for name, version in self.versions.items()
            ),
            "",
            "Devices (* is what auto takes)",
        ]
        width = max((len(d.id) for d in self.devices), default=0)
        for d in self.devices:
            mark = "*" if d.id == self.choice.device else " "
            through = ", ".join(part for part in (d.kind, d.api, d.driver) if part)
            lines.append(f"  {mark} {d.id:{width}}  {d.name}")
            lines.append(f"    {'':{width}}  {through}; {' '.join(d.dtypes)}")
        lines += ["", f"auto takes {self.choice.device}: {self.choice.reason}"]
        if s["setting"]:
            lines.append(f"DALA_DEVICE={s['setting']} is set and comes before auto")
        lines.append(f"compiled kernels are kept in {s['cache'] or 'memory only'}")
        return "\n".join(lines)

    def __str__(self) -> str:
        page = [self.facts(), ""]
        for title, items in (("Problems", self.problems), ("Optional", self.optional)):
            if items:
                page.append(title)
                for number, (what, fix) in enumerate(items, 1):
                    page.append(f"  {number}. {what}")
                    page += [f"     {line}".rstrip() for line in fix.splitlines()]
                page.append("")
        page.append("Everything is in order." if self.ok else "See the problems above.")
        return "\n".join(page)

    __repr__ = __str__


def doctor() -> Report:
    """Looks at this machine and says what Dala can use, what is missing and how to install it.

    >>> import dala
    >>> report = dala.doctor()
    >>> report.choice.device in [device.id for device in report.devices]
    True
    """
    return diagnose(look())


def diagnose(probe: Probe) -> Report:
    """The report on a machine, from what was seen of it alone."""
    problems = list(_problems(probe))
    return Report(
        ok=not problems,
        devices=list(probe.devices),
        choice=probe.choice,
        problems=problems,
        optional=list(_optional(probe.versions)),
        system={
            "dala": probe.dala,
            "python": probe.python,
            "system": probe.system,
            "machine": probe.machine,
            "libc": probe.libc,
            "setting": probe.setting,
            "cache": "" if probe.cache_error else probe.cache,
        },
        versions=dict(probe.versions),
    )


def _problems(probe: Probe) -> Iterator[Problem]:
    yield from _packages(probe)
    yield from _graphics(probe)
    yield from _setting(probe)
    if probe.cache_error:
        yield Problem(
            f"Compiled kernels cannot be kept in {probe.cache} ({probe.cache_error}), so every "
            "process compiles them anew.",
            "Make the folder writable, or name another:\n    export DALA_CACHE_DIR=/tmp/dala",
        )


def _packages(probe: Probe) -> Iterator[Problem]:
    for name in CORE:
        if name in probe.versions and probe.versions[name] is None:
            yield Problem(f"{name} is not installed.", f"pip install {name}")
    if probe.libc == "musl":
        yield Problem(
            "This Python uses musl (Alpine Linux), for which wgpu and llvmlite have no wheels.",
            "Use an image with glibc, such as Debian's: python:3-slim instead of python:3-alpine.",
        )


def _graphics(probe: Probe) -> Iterator[Problem]:
    if probe.versions.get("wgpu", "") is None:
        return  # said already, and nothing else can be known
    adapters = [d for d in probe.devices if d.backend == "webgpu"]
    linux = probe.platform.startswith("linux")
    if probe.adapter_error and probe.libc != "musl":
        yield Problem(
            f"No adapter can be listed: {probe.adapter_error}.",
            "Reinstall wgpu: pip install --force-reinstall wgpu",
        )
    if linux and not probe.vulkan_loader:
        yield Problem(
            "The Vulkan loader (libvulkan.so.1) is not installed; no GPU can be reached without.",
            install("loader", probe.distro, probe.root),
        )
    explained = False
    if linux and probe.locked_nodes and len(probe.locked_nodes) == len(probe.gpu_nodes):
        explained = True
        yield Problem(
            f"There is a GPU, but this user may not open it ({', '.join(probe.locked_nodes)}).",
            "Join the groups that may, then log in again:\n    sudo usermod -aG render,video $USER",
        )
    for problem in _nvidia(probe, adapters) if linux else ():
        explained = True
        yield problem
    if any(d.gpu for d in adapters) or explained:
        return
    if probe.gpu_nodes and not any(node.startswith("/dev/nvidia") for node in probe.gpu_nodes):
        yield Problem(
            f"There is a GPU ({', '.join(probe.gpu_nodes)}), but no driver shows it to Vulkan.",
            install("mesa", probe.distro, probe.root),
        )
    elif not adapters and not probe.adapter_error:
        yield Problem(
            "There is no GPU and no WebGPU adapter: device 'cpu' works, device 'webgpu' does not.",
            install("mesa", probe.distro, probe.root) if linux else no_driver(probe.platform),
        )


def _nvidia(probe: Probe, adapters: list[Device]) -> Iterator[Problem]:
    nodes = any(node.startswith("/dev/nvidia") for node in probe.gpu_nodes)
    if not (nodes or probe.nvidia_egl):
        return
    if any("nvidia" in f"{d.name} {d.driver}".lower() and d.api == "Vulkan" for d in adapters):
        return
    described = any("nvidia" in f"{path} {library}".lower() for path, library in probe.icds.items())
    if not probe.nvidia_egl:
        yield Problem(
            "There is an NVIDIA GPU, but its graphics driver is not here (libEGL_nvidia.so.0 "
            "cannot be loaded), only the compute part.",
            "In a container, ask for the graphics part too:\n"
            "    docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=all ...\n"
            "On the machine itself, install the whole driver, not its headless or compute variant.",
        )
    elif not described:
        yield Problem(
            "There is an NVIDIA driver, but no file that tells Vulkan of it (an ICD file), as on "
            "many servers and in containers.",
            NVIDIA_ICD.format(json=ICD_JSON),
        )
    elif probe.vulkan_loader:  # a missing loader has been reported
        yield Problem(
            "There is an NVIDIA driver and Vulkan is told of it, but it shows no GPU.",
            "Kernel module and libraries may differ in version: compare `nvidia-smi` with\n"
            "    cat /proc/driver/nvidia/version\nand restart after an update of the driver.",
        )


def _setting(probe: Probe) -> Iterator[Problem]:
    name = probe.setting
    there = {d.id for d in probe.devices} | {"auto"}
    if any(d.backend == "webgpu" for d in probe.devices):
        there.add("webgpu")
    if any(d.gpu for d in probe.devices):
        there.add("gpu")
    if name and name not in there:
        yield Problem(
            f"DALA_DEVICE is {name!r}, which this machine does not have.",
            f"Set it to one of {', '.join(sorted(there))}, or not at all: unset DALA_DEVICE",
        )


def _optional(versions: Mapping[str, str | None]) -> Iterator[Problem]:
    for extra, packages in EXTRAS.items():
        missing = [name for name in packages if name in versions and versions[name] is None]
        if missing:
            yield Problem(
                f"{', '.join(missing)} not installed: needed for {_PURPOSE[extra]}.",
                f'pip install "dala[{extra}]"',
            )
