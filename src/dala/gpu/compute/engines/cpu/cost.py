"""Estimate the cost of work, to choose the number of threads and the size of tiles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.base import Geometry
from dala.gpu.compute.engines.loop_bounds import repeated, turns
from dala.gpu.compute.lang.ir import For, Program, statements

if TYPE_CHECKING:
    from dala.gpu.compute.engines.cpu.loops.plan import RowStage

#: Less work runs on the calling thread: sharing it would cost more than it saves.
SINGLE_THREAD_NS: Final = 20_000.0
#: Work for which another thread is worth inviting.
HELPER_NS: Final = 10_000.0
#: Less work keeps the GIL: getting it back takes longer than the work.
KEEP_GIL_NS: Final = 3_000.0
#: The least work of a tile; claiming it costs nothing by comparison.
TILE_NS: Final = 5_000.0
#: The most work of a tile: work is ended between tiles.
MAX_TILE_NS: Final = 2e6
#: Work that can be ended early.
GUARDED_NS: Final = 2e6
#: Tiles per thread, so that other threads can take over from a slow one.
TILES: Final = 32
#: Outputs of at least this many bytes are written with non-temporal stores: no cache holds them.
STREAM_BYTES: Final = 20 << 20

# Nanoseconds on one core: for a byte moved, a tap of a blur (per byte of a pixel), an operation.
_BYTE_NS: Final = 0.03
_TAP_NS: Final = 0.03
_PLAIN_NS: Final = 0.03
_COSTLY_NS: Final = {
    "div": 0.1, "sqrt": 0.1, "idiv": 0.3, "mod": 0.3, "image": 0.1, "array": 0.4,
    "exp": 0.5, "log": 0.5, "sin": 0.6, "cos": 0.6, "tan": 0.8, "atan": 0.8, "atan2": 1.0,
    "pow": 1.2,
}  # fmt: skip
#: Iterations assumed for loops of unknown length; code with such loops does not vectorize.
_LOOP_ITERATIONS: Final = 16
_LOOP_FACTOR: Final = 8.0

_VECTOR_FEATURES: Final = (
    "sse4.2", "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512vnni",
    "neon", "sve", "sve2",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TilePlan:
    """The threads and tiles that a runner uses."""

    #: Other threads to invite; 0 runs everything on the calling thread.
    helpers: int
    #: Positions in a tile.
    chunk: int
    keep_gil: bool
    #: Whether the output may be written with non-temporal stores.
    stream: bool
    #: The estimated work on one core.
    work_ns: float


def plan(program: Program, geometry: Geometry, threads: int) -> TilePlan:
    """Choose threads and tiles for a program over a geometry."""
    total = geometry.count
    each, loops = _position_ns(program)
    work = total * each
    out_bytes = ITEMSIZE[program.out.dtype] * program.out.channels
    if work < SINGLE_THREAD_NS:
        return TilePlan(0, total, work < KEEP_GIL_NS and not loops, False, work)
    helpers = min(threads - 1, max(1, int(work // HELPER_NS)))
    tile = min(max(work / ((helpers + 1) * TILES), TILE_NS), MAX_TILE_NS)
    chunk = _rounded(max(int(tile / each), 1), geometry, out_bytes)
    stream = total * out_bytes >= STREAM_BYTES and chunk * out_bytes % 64 == 0
    return TilePlan(helpers, chunk, False, stream, work)


def _rounded(chunk: int, geometry: Geometry, out_bytes: int) -> int:
    """Round a tile up to whole rows, if rows are short, and to whole cache lines."""
    row = geometry.dims[-1] if len(geometry.dims) > 1 else 1
    unit = row if row <= chunk else 1
    unit *= 64 // math.gcd(64, unit * out_bytes)
    return -(-chunk // unit) * unit


def _position_ns(program: Program) -> tuple[float, bool]:
    """Return nanoseconds per position on one core, and whether loops make it a guess."""
    moved = ITEMSIZE[program.out.dtype] * program.out.channels
    moved += sum(ITEMSIZE[a.dtype] * a.channels for a in program.args if a.kind != "array")
    body = program.body
    every = repeated(body, _LOOP_ITERATIONS)
    computed = sum(_COSTLY_NS.get(v.op, _PLAIN_NS) * times for v, times in every)
    loops = any(isinstance(s, For) and turns(s) is None for s in statements(body))
    return moved * _BYTE_NS + computed * (_LOOP_FACTOR if loops else 1.0), loops


def stage_ns(stage: RowStage) -> float:
    """Return nanoseconds per pixel of a stage of a chain on one core."""
    if stage.analysis is not None:
        return _position_ns(stage.analysis.program)[0]
    if stage.blur is not None:
        return (2 * int(stage.blur["radius"]) + 1) * stage.pixel * _TAP_NS
    return stage.pixel * _BYTE_NS


def vector_features(features: dict[str, bool]) -> tuple[str, ...]:
    """Return the vector features of a CPU that affect speed."""
    return tuple(name for name in _VECTOR_FEATURES if features.get(name))
