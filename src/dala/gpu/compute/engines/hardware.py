"""Hardware information from the operating system, without loading a driver."""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from typing import Final

#: Prefixes of GPU device nodes under /dev on Linux.
_GPU_NODES: Final = (
    "dri/renderD",  # drivers in the kernel (AMD, Intel, Nouveau, Asahi, Pi, ...)
    "nvidia",  # NVIDIA's driver
    "nvhost",  # NVIDIA Tegra
    "nvgpu",
    "kfd",  # AMD compute
    "dxg",  # Windows' GPU seen from WSL
    "mali",  # Arm
    "kgsl",  # Qualcomm
)


def gpu_nodes(root: str = "/dev") -> list[str] | None:
    """Return the GPU device nodes of a Linux machine, or None on other systems.

    An empty list means that no driver can find a GPU.
    """
    if not sys.platform.startswith("linux"):
        return None
    found = []
    for folder in ("", "dri/"):
        try:
            names = os.listdir(os.path.join(root, folder))
        except OSError:
            continue
        found += [folder + name for name in names if (folder + name).startswith(_GPU_NODES)]
    return sorted(os.path.join(root, name) for name in found)


def card_bytes(vendor: int, device: int, root: str = "/sys/class/drm") -> int | None:
    """Return the memory of a graphics card, or None where it is not known.

    WebGPU does not tell. On Linux the drivers of AMD do, for cards with these PCI ids.

    >>> card_bytes(0, 0) is None
    True
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        folders = sorted(os.listdir(root))
    except OSError:
        return None
    for folder in folders:
        path = os.path.join(root, folder, "device")
        try:
            ids = [int(_text(os.path.join(path, name)), 16) for name in ("vendor", "device")]
            if ids == [vendor, device]:
                return int(_text(os.path.join(path, "mem_info_vram_total"))) or None
        except (OSError, ValueError):
            continue
    return None


def _text(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read(64)


@cache
def cpu_name() -> str:
    """Return the processor's model name, or its architecture if the model is unknown.

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
