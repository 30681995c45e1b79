"""4:2:0 pictures at the ends of a chain: rows of RGB made of planes, and planes of rows.

Both are native functions of their own (``cpu/ops/yuv.py``), called for one row, or a pair of rows,
at a time. The chain's job block holds a call of them: the function's address, and the block that it
reads its arguments from. In it planes are told by how far they begin behind the buffer that holds
them; every thread makes a copy and puts in where that buffer is, and row by row where the RGB is.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dala.gpu.compute.engines.base import Link, Task
from dala.gpu.compute.engines.cpu.llvm.tiles import HEAD_WORDS
from dala.gpu.compute.engines.cpu.native import Native
from dala.gpu.compute.engines.cpu.ops import yuv

#: The first argument in the block of a call; an array takes two words.
_FIRST: Final = HEAD_WORDS + 1
#: The chain's output, among outside inputs.
_OUTPUT: Final = -1


@dataclass(frozen=True)
class PlaneStage:
    """A stage that makes rows of planes, or planes of rows."""

    op: str
    native: Native
    #: The address of its code, and the block of its call.
    call: bytes
    #: Words of that block which a buffer's address is added to, and the number of that buffer.
    based: tuple[tuple[int, int], ...]
    #: Words of that block which are told a row of RGB for each call.
    rows: tuple[int, ...]
    #: Bytes of a pixel of RGB.
    pixel: int

    @property
    def last(self) -> bool:
        """Whether it ends a chain."""
        return self.op == "rgb_to_yuv"

    @property
    def words(self) -> int:
        """Words that the call takes in a job block."""
        return len(self.call) // 8

    @property
    def described(self) -> tuple[object, ...]:
        """What the code of a chain depends on."""
        return self.op, self.words, self.based, self.rows


def planes_fit(link: Link, shape: tuple[int, ...], *, last: bool) -> bool:
    """Whether a link is such a stage, where it stands, in a chain over pictures of a shape."""
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
    """The stage of a task; None for a blur."""
    if task.op == "yuv_to_rgb":
        native, arguments, rgb = *yuv.decode_rows(task), task.output
        # Luma, Cb and Cr, in as many buffers as there are, then the row.
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
