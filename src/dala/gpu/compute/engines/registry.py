"""Register and find an engine's code for operations.

Each engine has a package of operation code and one :class:`Implementations` table. Functions
register themselves there::

    @implements("resize", "preprocess")
    def make_resize(engine: CPUEngine, task: Task) -> Runner: ...

A module is imported when one of its operations is first used. It is named after the operation
(``ops/argmax.py``), or after the module in ``compute/kernels`` that declares it (``ops/reduce.py``
for ``reduce_sum``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from dala.errors import UnsupportedOperation
from dala.gpu.compute.dtypes import NUMPY
from dala.gpu.compute.engines.base import Bytes, Engine, Runner, Storage, Task, Values
from dala.typing import NDArray

E = TypeVar("E", bound=Engine)

#: Prepares a call of an operation on an engine; returns None for unsupported shapes or dtypes.
Make: TypeAlias = Callable[[E, Task], Runner | None]


class Implementations(Generic[E]):
    """An engine's code for operations, by name.

    Args:
        package: the package whose modules hold the code.

    >>> implementations = Implementations("dala.gpu.compute.engines.cpu.ops")
    >>> @implementations.register("double")
    ... def make_double(engine, task):
    ...     return lambda inputs, output, params: None
    >>> implementations.find("double") is make_double, implementations.find("triple")
    (True, None)
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self._makers: dict[str, Make[E]] = {}

    def register(self, *operations: str) -> Callable[[Make[E]], Make[E]]:
        """Return a decorator that registers a function for one or more operations."""

        def decorate(make: Make[E]) -> Make[E]:
            for operation in operations:
                self._makers[operation] = make
            return make

        return decorate

    def find(self, operation: str, domain: str = "") -> Make[E] | None:
        """Return the code of an operation, or None if the engine has none.

        Args:
            operation: the operation's name.
            domain: the module that declares the operation, without its package.
        """
        for module in (operation, domain):
            if operation in self._makers:
                break
            name = f"{self._package}.{module}"
            if module.isidentifier() and find_spec(name) is not None:
                import_module(name)
        return self._makers.get(operation)

    def prepare(self, engine: E, task: Task) -> Runner | None:
        """Return a runner for a task, or None if the engine has no code for it."""
        if task.host:
            return run_on_host(engine, task)
        make = self.find(task.op, task.domain)
        return make(engine, task) if make is not None else None


def unsupported(engine: Engine, task: Task) -> UnsupportedOperation:
    """Return the error for a task that an engine cannot run."""
    inputs = ", ".join(f"{t.dtype} {t.shape}" for t in task.inputs)
    return UnsupportedOperation(
        f"run_kernel: operation {task.op!r} on ({inputs}) has no implementation on the engine "
        f"{engine.id!r}. Move the buffers to a device that has one: b.to('cpu').",
        call="run_kernel",
        operation=task.op,
        engine=engine.id,
    )


def run_definition(task: Task, arrays: Sequence[NDArray], out: NDArray) -> None:
    """Compute a task by its definition, and store the result in the output's dtype."""
    assert task.define is not None  # else its kernel runs
    with np.errstate(all="ignore"):
        result = np.asarray(task.define(task, *arrays))
        if task.output.dtype == "u8" and result.dtype.kind == "f":
            result = np.clip(np.floor(np.nan_to_num(result) + 0.5), 0, 255)
        out[...] = result.astype(out.dtype, copy=False).reshape(out.shape)


def as_array(memory: Bytes | NDArray, shape: tuple[int, ...], dtype: str) -> NDArray:
    """Return an array that views the given bytes, without a copy."""
    return np.frombuffer(memory, NUMPY[dtype]).reshape(shape)


def run_on_host(engine: Engine, task: Task) -> Runner:
    """Return a runner that computes a task's definition on the host: download, compute, upload.

    Used for operations that are declared as host operations, and for tasks with empty inputs.
    """

    def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
        arrays = [
            as_array(engine.download(s), t.shape, t.dtype)
            for s, t in zip(inputs, task.inputs, strict=True)
        ]
        out = np.empty(task.output.shape, NUMPY[task.output.dtype])
        run_definition(task, arrays, out)
        engine.upload(output, memoryview(out.reshape(-1).view(np.uint8)))

    return run
