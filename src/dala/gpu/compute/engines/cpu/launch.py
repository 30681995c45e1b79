"""Runners of compiled jobs: on one thread or in tiles, under a guard where they may take long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from dala import budget
from dala.gpu.compute.engines.base import Runner, Storage
from dala.gpu.compute.engines.cpu.guard import guarding
from dala.gpu.compute.engines.cpu.job import Packer

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.threads import ThreadPool, Tiles

_handle: Final = attrgetter("handle")


def job_runner(
    threads: ThreadPool, name: str, plain: bytes, pack: Packer, run_all: Callable[[bytes], None],
    tiles: Tiles | None, helpers: int, *, guarded: bool, stream: bytes | None = None, size: int = 1,
) -> Runner:  # fmt: skip
    """Return the runner of a job.

    Args:
        threads: The threads that run its tiles.
        name: What errors call it.
        plain: The head of its block; see ``job.py``.
        pack: Packs its block.
        run_all: The native function that runs all of it on this thread.
        tiles: The functions that run it in tiles; None runs all of it at once.
        helpers: Threads that may join.
        guarded: Whether it can be ended early also where no limits are set.
        stream: The head for non-temporal stores, or None.
        size: Bytes of the output per position, if there is such a head.
    """

    def run(inputs: Sequence[Storage], output: Storage, params: tuple[float, ...]) -> None:
        # These references keep the memory alive while native code uses it.
        memories, target = list(map(_handle, inputs)), output.handle
        head = plain
        # An output that is read too is in the caches already.
        if stream is not None and target is not None and target not in memories:
            head = stream if -target.address % 64 % size == 0 else plain
        scope = budget.find_scope()
        if scope is None and not guarded:
            block = pack(head, target, memories, params)
            if tiles is None:
                run_all(block)
            else:
                threads.run(tiles, block, helpers)
            return
        with guarding(scope, name) as guard:
            block = pack(head[:-8] + guard.word, target, memories, params)
            if tiles is None:
                run_all(block)
            else:
                threads.run(tiles, block, helpers, guard)

    return run


def lazily(make: Callable[[], Runner]) -> Runner:
    """Return a runner that is made by its first call."""
    made = cache(make)

    def run(inputs: Sequence[Storage], output: Storage, params: tuple[float, ...]) -> None:
        made()(inputs, output, params)

    return run


def do_nothing(inputs: Sequence[Storage], output: Storage, params: tuple[float, ...]) -> None:
    """Do nothing: the runner for empty outputs."""
