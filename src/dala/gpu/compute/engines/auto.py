"""Choose the engine: ``with device(name):``, else ``use(name)``, else ``DALA_DEVICE``, else auto.

``devices.py`` lists the devices; ``instances.py`` holds the open engines.
"""

from __future__ import annotations

import os
from contextvars import ContextVar
from types import TracebackType

from dala.errors import DeviceUnavailable, ParameterError, UnknownDevice
from dala.gpu.compute.engines import devices as listing
from dala.gpu.compute.engines import instances
from dala.gpu.compute.engines.base import Engine
from dala.gpu.compute.engines.devices import Choice, Device, devices

__all__ = ["Choice", "Device", "choice", "current", "device", "devices", "get", "use"]

_process: str | None = None  # set by use()
_blocks: ContextVar[tuple[str, ...]] = ContextVar("dala_device", default=())
_auto_choice: Choice | None = None  # once auto has chosen
_logged: set[str] = set()  # ids of engines that auto has reported


def current() -> Engine:
    """Return the engine that new buffers are allocated on."""
    blocks = _blocks.get()
    if blocks:
        return _get(blocks[-1], "dala.device")
    if _process is not None:
        return _get(_process, "dala.use")
    return _get(os.environ.get("DALA_DEVICE") or "auto", "DALA_DEVICE")


def get(name: str | Device) -> Engine:
    """Return the engine of a device; open it on first use.

    Args:
        name: ``auto gpu cpu webgpu webgpu:N cuda cuda:N reference null``, or an item of
            :func:`devices`.

    Raises:
        UnknownDevice: the name is not valid.
        DeviceUnavailable: this machine has no such device; the message says what to do.

    >>> get("reference").id
    'reference'
    """
    return _get(name, "device")


def use(name: str | Device) -> None:
    """Set the device for the whole process; ``with device(...)`` overrides it in its block.

    The device is opened at once. If that fails, the setting does not change.

    >>> import dala
    >>> dala.use("warp drive")
    Traceback (most recent call last):
    dala.errors.UnknownDevice: dala.use: name must be auto, gpu, cpu, webgpu, webgpu:N (N counts ...
    """
    global _process
    _get(name, "dala.use")
    _process = _name(name)


class device:  # noqa: N801 - reads as a function
    """A context manager: buffers created in its block are on the given device.

    Blocks can be nested, and an object can be entered again. A block affects only its own thread
    or task. ``as`` gives the id of the chosen device.

    >>> import dala
    >>> with dala.device("null") as outer, dala.device("reference") as inner:
    ...     print(outer, inner)
    null reference
    """

    __slots__ = ("name",)

    def __init__(self, name: str | Device) -> None:
        self.name = _name(name)

    def __enter__(self) -> str:
        chosen = _get(self.name, "dala.device").id
        _blocks.set((*_blocks.get(), self.name))
        return chosen

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _blocks.set(_blocks.get()[:-1])

    def __repr__(self) -> str:
        return f"dala.device({self.name!r})"


def choice() -> Choice:
    """Return the device that ``auto`` chooses on this machine, and why, without opening it.

    >>> choice().device in {d.id for d in devices()}
    True
    """
    if _auto_choice is not None:
        return _auto_choice
    gpus, reason = listing.gpus()
    return Choice(gpus[0].id, listing.describe(gpus[0])) if gpus else Choice("cpu", reason)


def _name(name: str | Device) -> str:
    return name.id if isinstance(name, Device) else name


def _get(name: str | Device, call: str) -> Engine:
    name = _name(name)
    engine = instances.by_name.get(name) if isinstance(name, str) else None
    if engine is None or engine.lost:
        with instances.lock:
            engine = instances.by_name[name] = _choose(name, call)
    return engine


def _choose(name: str, call: str) -> Engine:
    if not isinstance(name, str):
        raise _unknown(name, call)
    if name == "auto":
        return _auto()
    if name in instances.ENGINES:
        return instances.open_engine(name, call)
    if name == "gpu":
        gpus, reason = listing.gpus()
        if not gpus:
            raise DeviceUnavailable(
                f"{call}: 'gpu' is not available: {reason}. Run `dala doctor` to see what is "
                "missing, or use 'auto' or 'cpu'."
            )
        return instances.open_adapter(gpus[0])
    prefix, colon, number = name.partition(":")
    valid = not colon or (number.isascii() and number.isdecimal() and len(number) < 6)
    if prefix not in ("webgpu", "cuda") or not valid:
        raise _unknown(name, call)
    return _adapter(f"{prefix}:{int(number or 0)}", f"{call}: {name!r} is not available")


def _unknown(name: object, call: str) -> UnknownDevice:
    names = (
        "auto, gpu, cpu, webgpu, webgpu:N (N counts adapters from 0), cuda, cuda:N, reference or "
        "null"
    )
    advice = "`dala doctor` lists the devices of this machine."
    return UnknownDevice.invalid(call, "name", names, name, advice)


def _adapter(id: str, problem: str) -> Engine:
    engine = instances.find(id)
    if engine is not None:
        return engine
    adapters = listing.adapters()
    for adapter in adapters:
        if adapter.id == id:
            return instances.open_adapter(adapter)
    if id.startswith("cuda"):
        raise DeviceUnavailable(
            f"{problem}: NVIDIA's driver offers no such GPU, or cuda-bindings is not installed. "
            "Run `dala doctor` for how to install it, or use 'auto' or 'cpu'."
        )
    if not adapters:
        raise DeviceUnavailable(
            f"{problem}: WebGPU has no adapter here. Run `dala doctor` for how to install one "
            "(Mesa's software Vulkan works on every Linux machine), or use 'cpu'."
        )
    known = ", ".join(f"{adapter.id} ({adapter.name}, {adapter.backend})" for adapter in adapters)
    raise DeviceUnavailable(f"{problem}: this machine has only {known}.")


def _auto() -> Engine:
    """Open the best GPU that works, else the CPU, and log the choice once."""
    global _auto_choice
    gpus, reason = listing.gpus()
    failures = []
    for adapter in gpus:
        try:
            engine = instances.open_adapter(adapter)
        except ParameterError:
            raise  # a setting that is wrong, such as DALA_WEBGPU_LIMITS
        except Exception as error:  # a broken driver may raise anything
            failures.append(f"{adapter.name} cannot be opened ({error})")
        else:
            _auto_choice = Choice(engine.id, listing.describe(adapter))
            _log(engine.id, "INFO", f"dala: running on {engine.id}, {_auto_choice.reason}")
            return engine
    engine = instances.open_engine("cpu", "auto")
    _auto_choice = Choice("cpu", "; ".join(failures) or reason)
    _log(
        "cpu",
        "WARNING",
        f"dala: running on the CPU engine, {_auto_choice.reason}. Run `dala doctor` for advice; "
        "DALA_DEVICE=cpu chooses the CPU without this message.",
    )
    return engine


def _log(id: str, level: str, line: str) -> None:
    if id not in _logged:
        import logging  # slow to import, and not needed if the device is named

        _logged.add(id)
        number = logging.getLevelNamesMapping()[level]
        # Commands show a notice with a name once a day.
        logging.getLogger("dala").log(number, line, extra={"notice": id})
