"""Stages that convert 4:2:0 planes at the ends of a chain: planes to RGB rows, and back.

Both are native functions (``cpu/ops/yuv``), called for one row or one pair of rows. The chain's
job block holds such a call: the function's address and its argument block, in which planes are
offsets into the buffer that contains them. Every thread copies the block, adds the buffer's
address, and sets the RGB row for each call.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

from dala.gpu.compute.engines.base import Link, Task
from dala.gpu.compute.engines.cpu.llvm.tiles import HEAD_WORDS
from dala.gpu.compute.engines.cpu.native import Native
from dala.gpu.compute.engines.cpu.ops import yuv

#: The first argument in the block of a call; an array takes two words.
_FIRST: Final = HEAD_WORDS + 1
#: The chain's output, as the index of an input.
_OUTPUT: Final = -1


@dataclass(frozen=True)
class PlaneStage:
    """A stage that converts planes to RGB rows, or RGB rows to planes."""

    op: str
    native: Native
    #: The address of its code, and its argument block.
    call: bytes
    #: (word, input) pairs: words of the block to which the address of an input is added.
    based: tuple[tuple[int, int], ...]
    #: Words of the block that receive the address of an RGB row.
    rows: tuple[int, ...]
    #: Bytes of an RGB pixel.
    pixel: int

    @property
    def last(self) -> bool:
        """Whether it is the last stage of a chain."""
        return self.op == "rgb_to_yuv"

    @property
    def words(self) -> int:
        """Words of the call in a job block."""
        return len(self.call) // 8

    @property
    def described(self) -> tuple[Hashable, ...]:
        """The properties that a chain's code depends on."""
        return self.op, self.words, self.based, self.rows


def planes_fit(link: Link, shape: tuple[int, ...], *, last: bool) -> bool:
    """Return whether a link converts planes, at a valid position of a chain over ``shape``."""
    task = link.work
    assert isinstance(task, Task)
    if task.op not in ("yuv_to_rgb", "rgb_to_yuv") or task["format"] == "yuv444":
        return False
    first = task.op == "yuv_to_rgb"
    rgb = task.output if first else task.inputs[0]
    if rgb.dtype != "u8" or rgb.shape[:2] != shape or 0 in rgb.shape or link.store is not None:
        return False
    return all(n >= 0 for n in link.sources) and not last if first else link.sources[0] < 0 and last


def planes_of(task: Task, sources: Sequence[int]) -> PlaneStage | None:
    """Return the stage of a task; None for a blur."""
    if task.op == "yuv_to_rgb":
        native, arguments, rgb = *yuv.decode_rows(task), task.output
        # Luma, Cb and Cr, in one to three buffers, then the row.
        buffers = (sources[0], sources[min(1, len(sources) - 1)], sources[-1])
        based = tuple((_FIRST + 2 * k, n) for k, n in enumerate(buffers))
        rows: tuple[int, ...] = (_FIRST + 6,)
    elif task.op == "rgb_to_yuv":
        native, arguments, rgb = *yuv.encode_rows(task), task.inputs[0]
        rows = _FIRST, _FIRST + 2
        based = tuple((_FIRST + 4 + 2 * k, _OUTPUT) for k in range(3))
    else:
        return None
    call = struct.pack("=q", native.code.addresses["body"]) + native.block(*arguments)
    return PlaneStage(task.op, native, call, based, rows, rgb.shape[2])
