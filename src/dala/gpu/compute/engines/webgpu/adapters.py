"""List the WebGPU adapters of this machine, with ids that are the same in every process.

Functions import wgpu when called, so that importing this module loads no driver.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dala import forks
from dala.gpu.compute.engines.hardware import card_bytes

if TYPE_CHECKING:
    import wgpu

#: Kinds of adapters by wgpu's names, best first.
_KINDS: Final = {
    "DiscreteGPU": "discrete", "IntegratedGPU": "integrated", "VirtualGPU": "virtual",
    "Unknown": "unknown", "CPU": "software",
}  # fmt: skip

#: Parts of the names of software rasterizers; some report themselves as another kind.
_SOFTWARE: Final = ("llvmpipe", "lavapipe", "softpipe", "swiftshader", "basic render driver")

_NATIVE_BACKENDS: Final = ("Vulkan", "Metal", "D3D12")


@dataclass(frozen=True, slots=True)
class Adapter:
    """A GPU accessed through one API. A GPU may have both a Vulkan and an OpenGL adapter."""

    #: "webgpu:0", "webgpu:1", ...: best first.
    id: str
    name: str
    vendor: str
    driver: str
    #: "Vulkan", "Metal", "D3D12" or "OpenGL".
    backend: str
    #: "discrete", "integrated", "virtual", "unknown" or "software".
    kind: str
    software: bool
    features: frozenset[str]
    #: The adapter's own limits; an engine may ask for less.
    limits: Mapping[str, int]
    dtypes: frozenset[str]
    #: The ``wgpu.GPUAdapter``.
    native: wgpu.GPUAdapter = field(repr=False, compare=False)

    @property
    def memory_bytes(self) -> int | None:
        """The memory of a graphics card, or None if it is not known."""
        if self.backend == "CUDA":
            return int(self.native.memory_bytes)
        info = self.native.info
        return card_bytes(int(info.get("vendor_id", 0)), int(info.get("device_id", 0)))


_lock = forks.lock()
_found: list[Adapter] | None = None
_error = ""
_cuda_error = ""


def list_adapters() -> list[Adapter]:
    """Return all adapters, best first; an empty list if wgpu or its drivers cannot be loaded.

    Adapters are enumerated once per process.
    """
    global _found, _error, _cuda_error
    with _lock:
        if _found is None:
            try:
                _found = _enumerate()
            except Exception as error:  # a broken driver may raise anything
                _found, _error = [], f"{type(error).__name__}: {error}"
            try:
                from dala.gpu.compute.engines.webgpu.cuda.adapters import list_gpus

                _found += list_gpus()
                _error = "" if _found else _error
            except ImportError:
                pass  # cuda-bindings is not installed
            except Exception as error:  # most machines have no driver of NVIDIA's
                _cuda_error = str(error)
        return list(_found)


def cuda_error() -> str:
    """Return why CUDA offers no GPU, or an empty string: it does, or is not installed."""
    list_adapters()
    return _cuda_error


def enumeration_error() -> str:
    """Return why :func:`list_adapters` failed, or an empty string."""
    list_adapters()
    return _error


def _enumerate() -> list[Adapter]:
    with _quiet_wayland():
        import wgpu

        natives = wgpu.gpu.enumerate_adapters_sync()
    natives.sort(key=_rank)
    return [_describe(f"webgpu:{i}", native) for i, native in enumerate(natives)]


def _kind(info: Mapping[str, object]) -> str:
    if any(word in str(info.get("device", "")).lower() for word in _SOFTWARE):
        return "software"
    return _KINDS.get(str(info.get("adapter_type", "")), "unknown")


def _rank(native: wgpu.GPUAdapter) -> tuple[object, ...]:
    info = native.info
    return (
        list(_KINDS.values()).index(_kind(info)),
        info.get("backend_type") not in _NATIVE_BACKENDS,
        info.get("vendor_id", 0),
        info.get("device_id", 0),
        str(info.get("device", "")),
    )


def _describe(id: str, native: wgpu.GPUAdapter) -> Adapter:
    info, features = native.info, frozenset(native.features)
    dtypes = {"f32", "s32", "u32", "u8"}
    if "shader-f64" in features:
        dtypes.add("f64")
    if "shader-int64" in features:
        dtypes.add("s64")
    kind = _kind(info)
    return Adapter(
        id=id, name=str(info.get("device") or info.get("description") or "unknown adapter"),
        vendor=str(info.get("vendor") or ""), driver=str(info.get("description") or ""),
        backend=str(info.get("backend_type") or "unknown"), kind=kind,
        software=kind == "software", features=features, limits=dict(native.limits),
        dtypes=frozenset(dtypes), native=native,
    )  # fmt: skip


@contextmanager
def _quiet_wayland() -> Iterator[None]:
    """Suppress error messages of Wayland's client library on machines without Wayland.

    Mesa's EGL tries to open a display; without XDG_RUNTIME_DIR each attempt prints a line.
    """
    name = "XDG_RUNTIME_DIR"
    if not sys.platform.startswith("linux") or name in os.environ:
        yield
        return
    os.environ[name] = "/nonexistent"
    try:
        yield
    finally:
        os.environ.pop(name, None)
