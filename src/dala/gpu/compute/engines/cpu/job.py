"""Job blocks: the packed arguments of a native call.

A block starts with the head that ``llvm/tiles.py`` describes. What follows depends on the code:

- Kernels read the addresses of the output and of the inputs, then fixed numbers, then parameters
  (:func:`job_packer`). Sizes are among the fixed numbers, so a call packs nothing but addresses.
- ``@native`` functions read the addresses of the result and of the fault report, then typed
  arguments; an array is an address and a length (``native/arguments.py``).
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final

from dala.errors import FreedError
from dala.gpu.compute.engines.cpu.llvm.metering import CELL_WORDS
from dala.gpu.compute.engines.cpu.memory import Memory

#: The ctypes type of the native function ``all(job)``.
CallWithoutGil: Final = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
#: The same, but keeping the GIL: for work shorter than the wait for the GIL.
CallWithGil: Final = ctypes.PYFUNCTYPE(None, ctypes.c_char_p)

#: Struct format of a number in a block, by type; each takes eight bytes.
WORD_FORMATS: Final = {
    "bool": "?7x", "u8": "B7x", "i8": "b7x", "u16": "H6x", "i16": "h6x", "u32": "I4x",
    "i32": "i4x", "u64": "Q", "i64": "q", "f32": "f4x", "f64": "d",
    "s32": "i4x", "s64": "q",  # the names of the kernel language
}  # fmt: skip
_LARGEST_F32: Final = 3.4028235677973366e38
_HEAD: Final = struct.Struct("=10q")
#: Bytes of a block's head.
HEAD_BYTES: Final = _HEAD.size
_address: Final = attrgetter("address")
#: The stop cell of calls that cannot be ended early.
_NEVER: Final = (ctypes.c_int64 * CELL_WORDS)()

#: Packs a block: (head, output, inputs, parameters) -> bytes.
Packer = Callable[[bytes, Memory, Sequence[Memory], tuple[float, ...]], bytes]


def job_head(total: int, chunk: int, body: int, size: int = 0, stream: bool = False) -> bytes:
    """Return the head of a job block. Its last word is the address of a stop cell.

    Args:
        total: The number of positions.
        chunk: Positions per tile.
        body: Address of the native function ``body``.
        size: Bytes of the output per position.
        stream: Whether to use non-temporal stores.
    """
    return _HEAD.pack(0, total, chunk, 0, 0, body, size, stream, 0, ctypes.addressof(_NEVER))


def job_packer(inputs: int, numbers: bytes, types: Sequence[str]) -> Packer:
    """Return a function that packs a job block.

    Args:
        inputs: The number of inputs.
        numbers: The packed numbers that are the same in every call.
        types: IR types of the parameters.
    """
    params_format = "".join(WORD_FORMATS[t] for t in types)
    pack = struct.Struct(f"={HEAD_BYTES}sq{inputs}q{len(numbers)}s{params_format}").pack

    def packed(
        head: bytes, output: Memory, memories: Sequence[Memory], params: tuple[float, ...]
    ) -> bytes:
        try:
            return pack(head, output.address, *map(_address, memories), numbers, *params)
        except AttributeError:
            raise freed_error() from None
        except (struct.error, OverflowError):
            params = _in_range(types, params)
            return pack(head, output.address, *map(_address, memories), numbers, *params)

    return packed


def freed_error() -> FreedError:
    """Return the error for a buffer that another thread freed after the call's checks."""
    return FreedError("run_kernel: a buffer was freed by another thread.", call="run_kernel")


def _in_range(types: Sequence[str], params: tuple[float, ...]) -> tuple[float, ...]:
    """Wrap or saturate parameters that are out of the range of their type."""
    from dala.gpu.compute.engines.unroll import wrap

    found: list[float] = []
    for t, p in zip(types, params, strict=True):
        if t == "f32":
            value = float(p)
            large = math.isfinite(value) and abs(value) > _LARGEST_F32
            found.append(math.copysign(math.inf, value) if large else value)
        elif t in ("f64", "bool"):
            found.append(p)
        else:
            found.append(wrap(int(p), t))
    return tuple(found)
