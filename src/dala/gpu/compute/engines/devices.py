"""What is on this machine: adapters, devices, and what ``auto`` makes of them. Starts nothing."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from dala.errors import DeviceUnavailable

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.adapters import Adapter

#: Beginnings of the names under /dev that graphics hardware has on Linux.
_NODES: Final = (
    "dri/renderD",  # every driver of the kernel's own (AMD, Intel, Nouveau, Asahi, Pi, ...)
    "nvidia",  # NVIDIA's driver
    "nvhost",  # NVIDIA Tegra
    "nvgpu",
    "kfd",  # AMD compute
    "dxg",  # Windows' GPU seen from WSL
    "mali",  # Arm
    "kgsl",  # Qualcomm
)

#: Hardware that ``auto`` takes first.
_KINDS: Final = ("discrete", "integrated", "virtual")

#: True in a process forked from one that used a GPU: drivers do not survive that.
gpu_left_behind = False


class Choice(NamedTuple):
    """What ``auto`` takes, and why."""

    device: str
    reason: str


@dataclass(frozen=True, slots=True)
class Device:
    """Something that work can run on; ``id`` is the name to ask for it by.

    ``kind`` is "discrete", "integrated", "virtual" or "software" for a WebGPU adapter, and the
    engine's own name for the others. ``gpu`` is True for graphics hardware alone. ``api`` is what
    it is reached through ("Vulkan", "Metal", "D3D12", "OpenGL"; "LLVM" for the CPU).
    """

    id: str
    name: str
    backend: str
    kind: str
    gpu: bool
    dtypes: tuple[str, ...]
    driver: str = ""
    api: str = ""


def devices() -> list[Device]:
    """Every device that can be asked for here: WebGPU adapters (best first), CPU, and the rest.

    A driver that cannot be loaded has no adapters; ``dala doctor`` says why.

    >>> [d.id for d in devices() if d.backend != "webgpu"]
    ['cpu', 'reference', 'null']
    """
    from dala.gpu.compute.dtypes import DTYPES

    try:
        found = [
            Device(
                id=a.id, name=a.name, backend="webgpu", kind=a.kind, gpu=not a.software,
                dtypes=tuple(d for d in DTYPES if d in a.dtypes), driver=a.driver, api=a.backend,
            )
            for a in adapters()
        ]  # fmt: skip
    except DeviceUnavailable:
        found = []
    llvm, numpy = _version("llvmlite"), _version("numpy")
    found.append(Device("cpu", cpu_name(), "cpu", "cpu", False, DTYPES, llvm, "LLVM"))
    found.append(
        Device(
            "reference", "NumPy reference", "reference", "reference", False, DTYPES, numpy, "NumPy"
        )
    )
    found.append(Device("null", "records, runs nothing", "null", "null", False, DTYPES))
    return found


def search() -> tuple[list[Adapter], str]:
    """Graphics hardware, best first; if there is none, why (a clause, for a message)."""
    if gpu_nodes() == []:  # then no driver has one either, and wgpu need not be loaded to ask
        return [], "no GPU was found (there is no GPU device node under /dev)"
    try:
        every = adapters()
    except DeviceUnavailable as error:
        return [], f"no GPU can be reached ({error})"
    hardware = [adapter for adapter in every if not adapter.software]
    if hardware:
        return sorted(hardware, key=_rank), ""
    if every:
        names = ", ".join(sorted({adapter.name for adapter in every}))
        return [], f"no GPU was found (only software adapters, slower than the CPU engine: {names})"
    return [], "no GPU was found (WebGPU has no adapter here)"


def adapters() -> list[Adapter]:
    """The WebGPU adapters, software ones included.

    Raises:
        DeviceUnavailable: wgpu or its drivers cannot be loaded.
    """
    if gpu_left_behind:
        raise DeviceUnavailable(
            "a process made by fork() cannot use the GPU its parent was using; start it with "
            "multiprocessing.get_context('spawn'), or ask for a device only after the fork"
        )
    from dala.gpu.compute.engines.webgpu.adapters import enumeration_error, list_adapters

    found = list_adapters()
    problem = enumeration_error()
    if problem:
        raise DeviceUnavailable(f"WebGPU cannot be loaded: {problem}")
    return found


def describe(adapter: Adapter) -> str:
    """An adapter in words."""
    return f"{adapter.name}, {adapter.kind} GPU through {adapter.backend}"


def gpu_nodes(root: str = "/dev") -> list[str] | None:
    """The GPU device nodes of a Linux machine, or None on systems that have no such thing.

    An empty list means that no driver can find a GPU here, whatever else is installed.
    """
    if not sys.platform.startswith("linux"):
        return None
    found = []
    for folder in ("", "dri/"):
        try:
            names = os.listdir(os.path.join(root, folder))
        except OSError:
            continue
        found += [folder + name for name in names if (folder + name).startswith(_NODES)]
    return sorted(os.path.join(root, name) for name in found)


@cache
def cpu_name() -> str:
    """The processor as its maker calls it, or the architecture where that cannot be found.

    >>> bool(cpu_name())
    True
    """
    if sys.platform.startswith("linux"):
        try:
            with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    key, _, value = line.partition(":")
                    if key.strip() in ("model name", "Hardware", "Model") and value.strip():
                        return " ".join(value.split())
        except OSError:
            pass  # a sandbox without /proc
    elif sys.platform == "darwin":
        import subprocess

        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
            return done.stdout.strip()
        except (OSError, subprocess.SubprocessError):
            pass
    return platform.processor() or platform.machine() or "CPU"


def _rank(adapter: Adapter) -> int:
    return _KINDS.index(adapter.kind) if adapter.kind in _KINDS else len(_KINDS)


def _version(package: str) -> str:
    from importlib import metadata

    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return f"{package} is not installed"
