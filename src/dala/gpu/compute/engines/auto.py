"""The one file that chooses an engine, and the only one that makes them.

An engine is made when it is first asked for and lives until the process ends; asking again gives
the same one, or a new one if its device was lost. Which one is used, first rule that applies:
``with device(name):``, then ``use(name)``, then ``DALA_DEVICE``, then ``auto``.

Engines are imported inside functions: choosing the CPU must not load wgpu, nor the other way.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Final

from dala.errors import DeviceUnavailable, UnknownDevice
from dala.gpu.compute.engines import devices as machine
from dala.gpu.compute.engines.base import Engine
from dala.gpu.compute.engines.devices import Choice, Device, devices

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.adapters import Adapter

__all__ = ["Choice", "Device", "choice", "current", "device", "devices", "get", "use"]


#: Engines that need to be told nothing, and their classes.
_PLAIN: Final = {
    "cpu": ("cpu.engine", "CPUEngine"),
    "reference": ("reference.engine", "ReferenceEngine"),
    "null": ("null", "NullEngine"),
}

_lock = threading.RLock()
_engines: dict[str, Engine] = {}  # by id
_resolved: dict[str, Engine] = {}  # by the name asked for, so "auto" and "webgpu" too
_auto_choice: Choice | None = None  # once auto has chosen
_said: set[str] = set()  # the choices of auto that have been logged
_left_behind: list[Engine] = []  # of a parent process: kept, so that nothing finalizes them here
_process: str | None = None
_blocks: ContextVar[tuple[str, ...]] = ContextVar("dala_device", default=())


def current() -> Engine:
    """The engine that new buffers are made on here and now."""
    blocks = _blocks.get()
    if blocks:
        return _get(blocks[-1], "dala.device")
    if _process is not None:
        return _get(_process, "dala.use")
    return _get(os.environ.get("DALA_DEVICE") or "auto", "DALA_DEVICE")


def get(name: str | Device) -> Engine:
    """The engine of that name, made on first use.

    Args:
        name: ``auto gpu cpu webgpu webgpu:N reference null``, or an item of :func:`devices`.

    Raises:
        UnknownDevice: no device has such a name.
        DeviceUnavailable: this machine has no such device; the message says what to do.

    >>> get("reference").id
    'reference'
    """
    return _get(name, "device")


def use(name: str | Device) -> None:
    """Sets the device of the whole process, unless a ``with device(...)`` block says otherwise.

    It is made at once, so a wrong or missing device raises here, and the old setting stays.

    >>> import dala
    >>> dala.use("warp drive")
    Traceback (most recent call last):
    dala.errors.UnknownDevice: dala.use: no device is called 'warp drive'; ...
    """
    global _process
    _get(name, "dala.use")
    _process = _name(name)


class device:  # noqa: N801 - reads as a function
    """Everything created inside a ``with`` block of this lives on the named device.

    Blocks nest, and one object may be entered again. Threads and tasks have their own: a block
    never changes what another thread does. The block's value is the chosen device's id.

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
    """What ``auto`` takes on this machine, and why; starts no device.

    >>> choice().device in {d.id for d in devices()}
    True
    """
    if _auto_choice is not None:
        return _auto_choice
    hardware, reason = machine.search()
    if hardware:
        return Choice(hardware[0].id, machine.describe(hardware[0]))
    return Choice("cpu", reason)


def engines_in_use() -> list[Engine]:
    """The engines that have been made and not lost."""
    with _lock:
        return [engine for engine in _engines.values() if not _lost(engine)]


# choosing ----------------------------------------------------------------------------------------


def _name(name: str | Device) -> str:
    return name.id if isinstance(name, Device) else name


def _lost(engine: Engine) -> bool:
    return bool(getattr(engine, "lost", False))


def _get(name: str | Device, call: str) -> Engine:
    name = _name(name)
    if not isinstance(name, str):
        raise _unknown(name, call)
    engine = _resolved.get(name)
    if engine is not None and not _lost(engine):
        return engine
    with _lock:
        engine = _resolve(name, call)
        _resolved[name] = engine
        return engine


def _resolve(name: str, call: str) -> Engine:
    if name == "auto":
        return _auto()
    if name == "gpu":
        return _gpu(call)
    if name in _PLAIN:
        return _plain(name, call)
    prefix, colon, index = name.partition(":")
    if prefix == "webgpu" and (
        not colon or (index.isascii() and index.isdecimal() and len(index) < 6)
    ):
        return _webgpu(f"webgpu:{int(index or 0)}", f"{call}: {name!r} was asked for")
    raise _unknown(name, call)


def _unknown(name: object, call: str) -> UnknownDevice:
    return UnknownDevice(
        f"{call}: no device is called {name!r}; the names are auto, gpu, cpu, webgpu, webgpu:N "
        "(N counts adapters from 0), reference and null. "
        "`dala doctor` lists the devices of this machine."
    )


def _auto() -> Engine:
    global _auto_choice
    hardware, reason = machine.search()
    failures = []
    for adapter in hardware:
        try:
            engine = _on(adapter)
        except Exception as error:  # a broken driver may raise anything
            failures.append(f"{adapter.name} cannot be opened ({error})")
        else:
            _auto_choice = Choice(engine.id, machine.describe(adapter))
            _say(engine.id, "INFO", f"dala: running on {engine.id}, {_auto_choice.reason}")
            return engine
    engine = _plain("cpu", "auto")
    _auto_choice = Choice("cpu", "; ".join(failures) or reason)
    _say(
        "cpu",
        "WARNING",
        f"dala: running on the CPU engine, {_auto_choice.reason}. `dala doctor` says what can be "
        "done; DALA_DEVICE=cpu chooses the CPU without this line.",
    )
    return engine


def _gpu(call: str) -> Engine:
    hardware, reason = machine.search()
    if not hardware:
        raise DeviceUnavailable(
            f"{call}: 'gpu' was asked for, but {reason}. Run `dala doctor` for what is missing, "
            "or ask for 'auto' or 'cpu'."
        )
    return _on(hardware[0])


def _webgpu(id: str, call: str) -> Engine:
    engine = _engines.get(id)
    if engine is not None and not _lost(engine):
        return engine
    adapters = machine.adapters()
    for adapter in adapters:
        if adapter.id == id:
            return _on(adapter)
    if not adapters:
        raise DeviceUnavailable(
            f"{call}, but WebGPU has no adapter here. Run `dala doctor` for how to install one "
            "(Mesa's software Vulkan works on every Linux machine), or ask for 'cpu'."
        )
    there = ", ".join(f"{adapter.id} ({adapter.name}, {adapter.backend})" for adapter in adapters)
    raise DeviceUnavailable(f"{call}, but this machine has only {there}.")


def _say(key: str, level: str, line: str) -> None:
    if key not in _said:
        import logging  # here, because a chosen device says nothing and starts faster without it

        _said.add(key)
        logging.getLogger("dala").log(logging.getLevelNamesMapping()[level], line)


# making and ending -------------------------------------------------------------------------------


def _plain(name: str, call: str) -> Engine:
    try:
        module = import_module(f"dala.gpu.compute.engines.{_PLAIN[name][0]}")
    except ImportError as error:
        raise DeviceUnavailable(
            f"{call}: the {name} engine cannot be loaded: {error}. "
            "Run `dala doctor` for what is missing."
        ) from error
    return _keep(name, getattr(module, _PLAIN[name][1]))


def _on(adapter: Adapter) -> Engine:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

    return _keep(adapter.id, lambda: WebGPUEngine(adapter))


def _keep(id: str, make: Callable[[], Engine]) -> Engine:
    engine = _engines.get(id)
    if engine is None or _lost(engine):
        fresh = make()
        if engine is not None:
            with suppress(Exception):  # what is left of a lost device may well object
                engine.close()
        _engines[id] = engine = fresh
    return engine


@atexit.register
def _close_all() -> None:
    with _lock:
        _resolved.clear()
        while _engines:
            _, engine = _engines.popitem()
            with suppress(Exception):
                engine.close()


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()  # another thread of the parent may have held it
    for table in (_engines, _resolved):
        for name in [name for name, engine in table.items() if engine.backend == "webgpu"]:
            _left_behind.append(table.pop(name))
            machine.gpu_left_behind = True


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
