"""Facts about the machine for ``dala.doctor()``, without judgement."""

from __future__ import annotations

import ctypes
import glob
import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Final

import dala
from dala.errors import DeviceUnavailable, MissingPackage
from dala.extras import CORE, EXTRAS
from dala.gpu.compute.engines import auto, hardware
from dala.gpu.compute.engines import devices as machine
from dala.gpu.compute.engines.cpu.cache import cache_folder
from dala.gpu.compute.engines.devices import Choice, Device
from dala.gpu.compute.engines.webgpu.adapters import cuda_error
from dala.gpu.compute.engines.webgpu.limits import VARIABLE
from dala.trust import distrust, key_problem

#: Distributions that provide a package: any build of ONNX Runtime works.
_DISTRIBUTIONS: Final = {
    "onnxruntime": (
        "onnxruntime",
        "onnxruntime-gpu",
        "onnxruntime-directml",
        "onnxruntime-openvino",
    )
}

#: Where Vulkan loaders look for drivers.
_ICD_FOLDERS: Final = (
    "~/.config/vulkan/icd.d", "/etc/xdg/vulkan/icd.d", "/usr/local/etc/vulkan/icd.d",
    "/etc/vulkan/icd.d", "~/.local/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d",
    "/usr/share/vulkan/icd.d",
)  # fmt: skip


@dataclass(frozen=True)
class Probe:
    """Facts about a machine, gathered by :func:`look`.

    Tests construct their own. The defaults describe an ordinary Linux machine.
    """

    dala: str = "0"
    python: str = "3.11"
    platform: str = "linux"
    system: str = "Linux"
    machine: str = "x86_64"
    #: "glibc 2.36" or "musl"; "" on systems other than Linux.
    libc: str = "glibc 2.36"
    #: ID and ID_LIKE of /etc/os-release: ("ubuntu", "debian").
    distro: tuple[str, ...] = ()
    root: bool = False
    #: Installed version of each package in CORE and EXTRAS, None if missing.
    versions: Mapping[str, str | None] = field(default_factory=dict)
    #: Version of the distribution named "dala", which is not ours, or "".
    other: str = ""
    devices: tuple[Device, ...] = ()
    #: Why the adapters could not be listed, or "".
    adapter_error: str = ""
    #: Why CUDA offers no GPU where it is installed, or "".
    cuda_error: str = ""
    choice: Choice = field(default_factory=lambda: Choice("cpu", ""))
    #: The provider that models run on and why, and all that are available; "" without the extra.
    models: str = ""
    #: The value of DALA_DEVICE, or "".
    setting: str = ""
    #: The value of DALA_WEBGPU_LIMITS, or "".
    limits: str = ""
    gpu_nodes: tuple[str, ...] = ()
    #: The ``gpu_nodes`` that this user has no permission to open.
    locked_nodes: tuple[str, ...] = ()
    #: True if NVIDIA's EGL library can be loaded.
    nvidia_egl: bool = False
    #: True if libvulkan.so.1 can be loaded.
    vulkan_loader: bool = True
    #: Driver files (ICD) that the Vulkan loader reads, and the library in each.
    icds: Mapping[str, str] = field(default_factory=dict)
    #: The folder that compiled kernels are cached in, "" if there is none.
    cache: str = ""
    #: Why nothing can be written there, or "".
    cache_error: str = ""
    #: Why what is there is not trusted, or "".
    cache_distrust: str = ""


def look() -> Probe:
    """Return the facts about this machine. Loads wgpu to list adapters, opens no device."""
    linux = sys.platform.startswith("linux")
    nodes = tuple(hardware.gpu_nodes() or ())
    error = ""
    try:
        machine.adapters()
    except DeviceUnavailable as problem:
        error = str(problem)
    cache, cache_error = _cache()
    distrusted = distrust(cache) or key_problem(cache) if cache else ""
    return Probe(
        dala=dala.__version__,
        python=platform.python_version(),
        platform=sys.platform,
        system=f"{platform.system()} {platform.release()}",
        machine=platform.machine(),
        libc=_libc() if linux else "",
        distro=_distro() if linux else (),
        root=hasattr(os, "geteuid") and os.geteuid() == 0,
        versions={name: _version(name) for name in _packages()},
        other=_version("dala") or "",
        devices=tuple(machine.devices()),
        adapter_error=error,
        cuda_error=cuda_error(),
        choice=auto.choice(),
        models=_models(auto.choice().device),
        setting=os.environ.get("DALA_DEVICE", ""),
        limits=os.environ.get(VARIABLE, "").strip(),
        gpu_nodes=nodes,
        locked_nodes=tuple(node for node in nodes if not os.access(node, os.R_OK | os.W_OK)),
        nvidia_egl=linux and _loads("libEGL_nvidia.so.0"),
        vulkan_loader=not linux or _loads("libvulkan.so.1"),
        icds=find_icds(os.environ) if linux else {},
        cache=cache,
        cache_error=cache_error,
        cache_distrust=distrusted,
    )


def find_icds(
    environ: Mapping[str, str], folders: tuple[str, ...] = _ICD_FOLDERS
) -> dict[str, str]:
    """Return the Vulkan driver files and the library in each ("" if a file is unreadable)."""
    chosen = environ.get("VK_DRIVER_FILES") or environ.get("VK_ICD_FILENAMES")
    if chosen:  # the loader reads only these
        paths = [path for path in chosen.split(os.pathsep) if path]
    else:
        paths = [
            path
            for folder in folders
            for path in sorted(glob.glob(os.path.join(os.path.expanduser(folder), "*.json")))
        ]
    return {path: _library(path) for path in paths}


def _library(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return str(json.load(file)["ICD"]["library_path"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _packages() -> tuple[str, ...]:
    return (*CORE, *(name for _, packages in EXTRAS.values() for name in packages))


def _version(package: str) -> str | None:
    for name in _DISTRIBUTIONS.get(package, (package,)):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return None


def _models(device: str) -> str:
    """Return the provider that models run on and why, and all that are available."""
    from dala.ml.runtime.providers import available, following

    try:
        wanted = following(device)
        return f"{wanted.names[0]}: {wanted.reason}; available: {', '.join(available())}"
    except MissingPackage:
        return ""


def _libc() -> str:
    name, version = platform.libc_ver()
    if name:
        return f"{name} {version}".strip()
    return "musl" if glob.glob("/lib/ld-musl-*") else ""


def _distro() -> tuple[str, ...]:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return ()
    return (release.get("ID", ""), *release.get("ID_LIKE", "").split())


def _cache() -> tuple[str, str]:
    named = cache_folder()
    if named is None:  # disabled, or no home directory
        return "", ""
    folder = Path(named)
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        return str(folder), f"{there} is not a folder"
    if not os.access(there, os.W_OK | os.X_OK):
        return str(folder), f"{there} is not writable"
    return str(folder), ""
