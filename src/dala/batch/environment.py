"""What the plan fixes about workers, so that all of them make the same bytes."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import lru_cache

from dala.errors import BatchError


@lru_cache(maxsize=8)
def _facts(device: str, encoder: str) -> tuple[tuple[str, str], ...]:
    import dala
    from dala.media.video.encode import instructions
    from dala.media.video.source import pyav

    av = pyav()
    found = {"dala": dala.__version__, "PyAV": str(av.__version__)}
    for name, version in sorted(av.library_versions.items()):
        found[name] = ".".join(map(str, version))
    # Encoders choose their code by these instructions; AVX-512 is not used.
    level = instructions().replace("avx512", "avx2")
    found["processor"] = f"{platform.machine()} {level}".strip()
    if encoder:
        found["encoder"] = encoder if _has_encoder(encoder) else f"no {encoder}"
    if device:
        found["device"] = _device(device)
    return tuple(found.items())


def _has_encoder(name: str) -> bool:
    from dala.media.video.source import pyav

    av = pyav()
    try:
        av.Codec(name, "w")
    except (av.FFmpegError, ValueError):
        return False
    return True


def _device(device: str) -> str:
    """Return the kind of a device: what computes, and through which interface."""
    import dala

    backend = device.partition(":")[0]
    found = next((d for d in dala.devices() if d.id == device or d.backend == backend), None)
    if found is None:
        return f"no {device}"
    if found.backend in ("cpu", "reference"):
        return found.id
    return f"{found.backend} {found.name} {found.api}"


def environment(device: str = "", encoder: str = "") -> dict[str, str]:
    """Return what this machine would compute and encode with.

    Args:
        device: the id of the device that filters run on; "" for none.
        encoder: FFmpeg's name of the encoder; "" for none.

    >>> environment("cpu")["device"]
    'cpu'
    """
    return {**dict(_facts(device, encoder)), "device id": device, "encoder name": encoder}


def check_environment(wanted: Mapping[str, str]) -> None:
    """Check that this machine matches what a plan fixes.

    Raises:
        BatchError: it does not; the error names the machine and each difference.

    >>> check_environment({})
    """
    from dala.batch.tasks import worker_name

    if not wanted:
        return
    here = environment(wanted.get("device id", ""), wanted.get("encoder name", ""))
    different = [
        f"{name} is {here.get(name, 'missing')!r}, the plan has {value!r}"
        for name, value in wanted.items()
        if here.get(name) != value
    ]
    if different:
        raise BatchError(
            f"batch: the worker {worker_name()} cannot take part: {'; '.join(different)}. "
            "Install the same versions there, or make a new plan."
        )
