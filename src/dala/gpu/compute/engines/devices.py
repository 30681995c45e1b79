"""List the devices of this machine without opening them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from dala.errors import DeviceUnavailable
from dala.gpu.compute.engines import hardware

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.adapters import Adapter

#: Kinds of GPU in the order of preference for ``auto``.
_KINDS: Final = ("discrete", "integrated", "virtual")

#: True in a process forked from one that used a GPU, because drivers do not survive a fork.
gpu_unusable_after_fork = False


class Choice(NamedTuple):
    """The device that ``auto`` chooses, and the reason."""

    device: str
    reason: str


@dataclass(frozen=True, slots=True)
class Device:
    """A device that work can run on.

    Attributes:
        id: the name to pass to ``dala.use`` and ``dala.device``.
        name: the name of the hardware or software.
        backend: the engine: "webgpu", "cpu", "reference" or "null".
        kind: "discrete", "integrated", "virtual", "unknown" or "software" for a WebGPU adapter;
            the engine's name otherwise.
        gpu: True for graphics hardware.
        dtypes: the supported dtypes.
        driver: the driver and its version.
        api: "Vulkan", "Metal", "D3D12", "OpenGL" or "LLVM".

    >>> import dala
    >>> next(d for d in dala.devices() if d.id == "cpu").api
    'LLVM'
    """

    id: str
    name: str
    backend: str
    kind: str
    gpu: bool
    dtypes: tuple[str, ...]
    driver: str = ""
    api: str = ""


class DeviceList(list[Device]):
    """Devices; printed, they are a table.

    >>> print(DeviceList([Device("cpu", "AMD EPYC", "cpu", "cpu", False, ("u8",), "", "LLVM")]))
    cpu  AMD EPYC  cpu, LLVM  u8
    """

    def __str__(self) -> str:
        rows = [
            (d.id, d.name, ", ".join(part for part in (d.kind, d.api) if part), " ".join(d.dtypes))
            for d in self
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (
            "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )
        return "\n".join(lines)


def devices() -> list[Device]:
    """Return all devices of this machine: WebGPU adapters (best first), the CPU, and the rest.

    Adapters of a driver that cannot be loaded are missing; ``dala doctor`` says why. Printed, they
    are a table.

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
    found += [
        Device("cpu", hardware.cpu_name(), "cpu", "cpu", False, DTYPES, llvm, "LLVM"),
        Device("reference", "NumPy reference", "reference", "reference", False, DTYPES, numpy,
            "NumPy"),
        Device("null", "records, runs nothing", "null", "null", False, DTYPES),
    ]  # fmt: skip
    return DeviceList(found)


def adapters() -> list[Adapter]:
    """Return the WebGPU adapters, software ones included.

    Raises:
        DeviceUnavailable: wgpu or its drivers cannot be loaded.
    """
    if gpu_unusable_after_fork:
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


def gpus() -> tuple[list[Adapter], str]:
    """Return the adapters of graphics hardware, best first, and a reason if there are none."""
    if hardware.gpu_nodes() == []:  # no driver can find a GPU, so there is no need to load wgpu
        return [], "no GPU was found (there is no GPU device node under /dev)"
    try:
        every = adapters()
    except DeviceUnavailable as error:
        return [], f"no GPU can be reached ({error})"
    found = [adapter for adapter in every if not adapter.software]
    if found:
        return sorted(found, key=_rank), ""
    if every:
        names = ", ".join(sorted({adapter.name for adapter in every}))
        return [], f"no GPU was found (only software adapters, slower than the CPU engine: {names})"
    return [], "no GPU was found (WebGPU has no adapter here)"


def describe(adapter: Adapter) -> str:
    """Return an adapter's name, kind and interface for a message, and what it is preferred to."""
    found = f"{adapter.name}, {adapter.kind} GPU through {adapter.backend}"
    others = [a.id for a in adapters() if a.name == adapter.name and a.backend != "CUDA"]
    if adapter.backend != "CUDA" or not others:
        return found
    return f"{found}, which copies faster than Vulkan and shares memory ({others[0]} has Vulkan)"


def _rank(adapter: Adapter) -> tuple[int, bool]:
    kind = _KINDS.index(adapter.kind) if adapter.kind in _KINDS else len(_KINDS)
    return kind, adapter.backend != "CUDA"


def _version(package: str) -> str:
    from importlib import metadata

    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return f"{package} is not installed"
