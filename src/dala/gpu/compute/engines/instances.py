"""The open engines: one for each device, opened on first use and closed at interpreter exit."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Final

from dala import forks
from dala.errors import DeviceUnavailable
from dala.gpu.compute.engines import devices
from dala.gpu.compute.engines.base import Engine

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.adapters import Adapter

#: Module and class of the engines without arguments. They are imported on first use, so that the
#: CPU engine does not load wgpu, nor WebGPU LLVM.
ENGINES: Final = {
    "cpu": ("cpu.engine", "CPUEngine"),
    "reference": ("reference.engine", "ReferenceEngine"),
    "null": ("null", "NullEngine"),
}

lock = forks.rlock()
#: Engines by requested name, such as "auto" or "webgpu"; read without the lock.
by_name: dict[str, Engine] = {}
_by_id: dict[str, Engine] = {}
_inherited: list[Engine] = []  # from before a fork; kept so that they are never finalized


def open_engine(name: str, call: str) -> Engine:
    """Return the engine "cpu", "reference" or "null"."""
    module, kind = ENGINES[name]
    try:
        make = getattr(import_module(f"{__package__}.{module}"), kind)
    except ImportError as error:
        raise DeviceUnavailable(
            f"{call}: the {name} engine cannot be loaded: {error}. "
            "Run `dala doctor` to see what is missing."
        ) from error
    return _keep(name, make)


def open_adapter(adapter: Adapter) -> Engine:
    """Return the engine of a WebGPU adapter."""
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

    return _keep(adapter.id, lambda: WebGPUEngine(adapter))


def find(id: str) -> Engine | None:
    """Return the open engine of a device id, or None if it is not open or was lost."""
    engine = _by_id.get(id)
    return None if engine is None or engine.lost else engine


def engines_in_use() -> list[Engine]:
    """Return the engines that are open and not lost."""
    with lock:
        return [engine for engine in _by_id.values() if not engine.lost]


def _keep(id: str, make: Callable[[], Engine]) -> Engine:
    with lock:
        engine = _by_id.get(id)
        if engine is None or engine.lost:
            fresh = make()
            if engine is not None:
                with suppress(Exception):  # closing a lost device may fail
                    engine.close()
            _by_id[id] = engine = fresh
        return engine


@atexit.register
def close_all() -> None:
    """Close every engine."""
    with lock:
        by_name.clear()
        while _by_id:
            _, engine = _by_id.popitem()
            with suppress(Exception):
                engine.close()


def _after_fork() -> None:
    for table in (_by_id, by_name):
        for name in [name for name, engine in table.items() if engine.backend == "webgpu"]:
            _inherited.append(table.pop(name))
            devices.gpu_unusable_after_fork = True


forks.in_child(_after_fork)
