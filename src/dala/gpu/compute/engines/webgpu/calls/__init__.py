"""Calls of wgpu: of its native library where the version is known, else of public functions."""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.webgpu.adapters import Adapter
from dala.gpu.compute.engines.webgpu.calls.public import PublicCalls
from dala.gpu.compute.engines.webgpu.owner import Owner

#: The version of wgpu whose internals :mod:`ffi` knows.
KNOWN: Final = (0, 32)

_noticed: set[str] = set()


def open_device(adapter: Adapter, limits: dict[str, int], owner: Owner) -> PublicCalls:
    """Open a device with these limits and return the calls for it.

    A version of wgpu that :mod:`ffi` does not know is used by its public functions, which is
    slower; that is logged once.
    """
    if adapter.backend == "CUDA":
        from dala.gpu.compute.engines.webgpu.cuda.adapters import open_gpu

        return open_gpu(adapter)
    import wgpu  # creates its logger

    owner.watch_log("wgpu")
    if wgpu.version_info[:2] == KNOWN:
        from dala.gpu.compute.engines.webgpu.calls.ffi import NativeCalls

        return NativeCalls(NativeCalls.request_device(adapter, limits))
    version = wgpu.__version__
    if version not in _noticed:
        import logging  # slow to import

        _noticed.add(version)
        logging.getLogger("dala").warning(
            "dala: wgpu %s is used by its public functions only, which is slower. Install wgpu "
            "%d.%d for full speed.",
            version,
            *KNOWN,
        )
    return PublicCalls(PublicCalls.request_device(adapter, limits))
