"""Scratch memory of operations: counted against the memory limits while an operation runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dala import memory, resources
from dala.budget import accounts
from dala.gpu.compute.engines.base import Engine, Storage


@contextmanager
def scratch_memory(engine: Engine, call: str, *sizes: int) -> Iterator[list[Storage]]:
    """Allocate memory for the time of a block, with undefined content.

    The bytes are reserved before they are allocated. Small ones are counted only where a limit is
    near, or in a block with a limit, as those of buffers are.

    Args:
        engine: where to allocate.
        call: the operation that needs the memory, for the error.
        sizes: the bytes of each storage.

    Raises:
        MemoryLimitExceeded: a limit would be exceeded; nothing was allocated.

    >>> from dala.gpu.compute.engines import auto
    >>> with scratch_memory(auto.get("cpu"), "example", 100, 200) as (first, second):
    ...     first.nbytes, second.nbytes
    (100, 200)
    """
    storages: list[Storage] = []
    with reserved_scratch(engine, call, int(sum(sizes))):
        try:
            for nbytes in sizes:
                storages.append(engine.allocate(nbytes, zero=False))
            yield storages
        finally:
            for storage in storages:
                engine.release(storage)


@contextmanager
def reserved_scratch(engine: Engine, call: str, total: int) -> Iterator[None]:
    """Count bytes against the memory limits for the time of a block, without allocating them.

    Args:
        engine: where they will be allocated.
        call: the operation that needs the memory, for the error.
        total: the bytes.

    Raises:
        MemoryLimitExceeded: a limit would be exceeded.

    >>> from dala.gpu.compute.engines import auto
    >>> with reserved_scratch(auto.get("cpu"), "example", 100):
    ...     pass
    """
    counted = total > 0 and (total >= memory.EXACT_FROM or resources.too_many or bool(accounts()))
    held = memory.reserve("scratch", engine.id, total, call) if counted else ()
    try:
        yield
    finally:
        if counted:
            memory.release("scratch", engine.id, total, held)
