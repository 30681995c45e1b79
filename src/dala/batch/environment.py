"""The environment that a plan fixes for workers, so that all of them make the same bytes.

Stages inside the contract of bytes compute the same at every level of the processor, so a plan of
such stages fixes no level. Files of more than 8 bits are computed in floats there too: the plan has
a level for them alone, which is asked for when a worker meets one.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Final

from dala.errors import BatchError

#: Packages that decide the bytes of a kind of result, beside those that decide all of them.
_PACKAGES: Final = {"pictures": {"Pillow": "PIL"}, "tables": {"ONNX Runtime": "onnxruntime"}}
#: What computes on devices that every machine has.
_COMPILERS: Final = {"cpu": "llvmlite", "reference": "numpy"}
#: The key of the level of instructions that filters on the CPU are compiled for, in plans with a
#: stage outside the contract of bytes; and the key in all others, for files outside of it.
_LEVEL: Final = "CPU level"
_FLOATS: Final = "CPU level of floats"


@lru_cache(maxsize=8)
def _facts(device: str, encoder: str, kind: str) -> tuple[tuple[str, str], ...]:
    import dala
    from dala.media.video.source import pyav

    av = pyav()
    found = {"dala": dala.__version__, "PyAV": str(av.__version__)}
    for name, version in sorted(av.library_versions.items()):
        found[name] = ".".join(map(str, version))
    found["processor"] = platform.machine()
    for name, module in _PACKAGES.get(kind, {}).items():
        found[name] = _version(module)
    if kind == "pictures":
        found |= _codecs()
    if encoder:
        found["encoder"] = _encoder(encoder)
    if device:
        found["device"] = _device(device)
    return tuple(found.items())


def _version(module: str) -> str:
    try:
        return str(import_module(module).__version__)
    except ImportError:
        return "missing"


def _codecs() -> dict[str, str]:
    """Return the versions of the libraries that Pillow was built with."""
    try:
        from PIL import features
    except ImportError:
        return {}
    names = ("libjpeg_turbo", "webp", "zlib", "avif")
    return {name: str(features.version(name) or "missing") for name in names}


def _encoder(name: str) -> str:
    """Return an encoder, with the facts that its bytes depend on.

    x264 gives the same bytes with SSE4, AVX and AVX2, and is kept from using AVX-512; with less it
    gives others. Other encoders give the same with all instructions.
    """
    from dala.media.video.encode import has_instructions
    from dala.media.video.source import pyav

    av = pyav()
    try:
        av.Codec(name, "w")
    except (av.FFmpegError, ValueError):
        return f"no {name}"
    old = name == "libx264" and platform.machine().lower() in ("x86_64", "amd64")
    return f"{name} without SSE4" if old and not has_instructions("sse4.1") else name


def _device(device: str) -> str:
    """Return the kind of a device: its engine, and its interface."""
    import dala

    if device in _COMPILERS:  # without a list of adapters, which takes a second to make
        name = _COMPILERS[device]
        return f"{device} ({name} {_version(name)})"
    backend = device.partition(":")[0]
    found = next((d for d in dala.devices() if d.id == device or d.backend == backend), None)
    return f"no {device}" if found is None else f"{found.backend} {found.name} {found.api}"


def environment(
    device: str = "", encoder: str = "", kind: str = "", *, exact: bool = False
) -> dict[str, str]:
    """Return the devices and encoders that this machine would use.

    Args:
        device: the id of the device that filters run on; "" for none.
        encoder: FFmpeg's name of the encoder; "" for none.
        kind: "pictures" or "tables" for the packages that only these need.
        exact: whether all stages are inside the contract of bytes.

    >>> environment("cpu")["device"].startswith("cpu (llvmlite ")
    True
    >>> [key for key in environment("cpu", exact=True) if "level" in key]
    ['CPU level of floats']
    """
    made = {**dict(_facts(device, encoder, kind)), "device id": device, "encoder name": encoder}
    if kind:
        made["kind"] = kind
    if device == "cpu":
        from dala.machine.processor import cpu_level

        made[_FLOATS if exact else _LEVEL] = cpu_level()
    return made


def resumed_environment(own: Mapping[str, str], before: object) -> dict[str, str]:
    """Return the environment of a resumed plan: floats keep the level that they were begun with.

    >>> before = {"CPU level of floats": "avx2"}
    >>> resumed_environment({"CPU level of floats": "avx512"}, before)
    {'CPU level of floats': 'avx2'}
    """
    found = before.get(_FLOATS) if isinstance(before, dict) else None
    return {**own, _FLOATS: found} if isinstance(found, str) and _FLOATS in own else {**own}


def adopt_environment(wanted: Mapping[str, str]) -> None:
    """Make this process like the plan where it can be: a newer processor acts as an older one.

    It must be called before filters run.

    >>> adopt_environment({})
    """
    from dala.machine.processor import choose_cpu_level

    choose_cpu_level(wanted.get(_LEVEL) or wanted.get(_FLOATS, ""))


def check_environment(wanted: Mapping[str, str]) -> None:
    """Check that this machine matches the environment of a plan.

    Raises:
        BatchError: it does not; the error names the machine and each difference.

    >>> check_environment({})
    """
    from dala.batch.tasks import worker_name

    if not wanted:
        return
    here = environment(
        wanted.get("device id", ""), wanted.get("encoder name", ""), wanted.get("kind", ""),
        exact=_FLOATS in wanted,
    )  # fmt: skip
    different = [
        f"{name} is {here.get(name, 'missing')!r}, the plan has {value!r}"
        for name, value in wanted.items()
        if here.get(name) != value and name != _FLOATS
    ]
    if not different:
        return
    advice = "Install the same versions there, or make a new plan."
    if here.get(_LEVEL) != wanted.get(_LEVEL):
        least = here.get(_LEVEL) or "a common level"
        advice += f" DALA_CPU={least} in the driver makes a plan for older processors."
    raise BatchError(
        f"batch: the worker {worker_name()} cannot take part: {'; '.join(different)}. {advice}"
    )


def check_level(wanted: Mapping[str, str], floats: Callable[[], str]) -> None:
    """Check that this worker may do a file's work, where the plan has a level for floats only.

    Args:
        wanted: what the plan fixes.
        floats: returns what in the file is outside the contract of bytes, "" for nothing. It is
            called only if this worker's level is another one.

    Raises:
        BatchError: something is, and levels differ.

    >>> check_level({}, lambda: "HDR")
    """
    from dala.batch.tasks import worker_name
    from dala.machine.processor import cpu_level

    planned = wanted.get(_FLOATS)
    if planned is None or cpu_level() == planned or not (found := floats()):
        return
    raise BatchError(
        f"batch: {found} is computed in floats, which the plan fixes for CPU level {planned!r}; "
        f"the worker {worker_name()} has {cpu_level()!r}. DALA_CPU={cpu_level()} in the driver "
        "makes a plan for it."
    )


def processor_text(fixed: Mapping[str, str], outside: str) -> str:
    """Return which processors can take part in a plan, and why, for its user.

    >>> processor_text({"CPU level of floats": "avx2"}, "")
    'any processor level: all stages are exact in bytes (files of more than 8 bits: avx2)'
    >>> processor_text({"CPU level": "avx2"}, "'background' is a model")
    "processor level avx2 or above: 'background' is a model"
    >>> processor_text({}, "")
    ''
    """
    if _FLOATS in fixed:
        deep = f" (files of more than 8 bits: {fixed[_FLOATS]})" if fixed[_FLOATS] else ""
        return f"any processor level: all stages are exact in bytes{deep}"
    return f"processor level {fixed[_LEVEL]} or above: {outside}" if fixed.get(_LEVEL) else ""
