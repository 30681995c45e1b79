"""The null engine: records calls and runs nothing.

Tests use it to check plans: which programs are prepared, how many passes a pipeline runs, which
buffers are copied and read. It needs no device and no memory. Downloads return zeros.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from dala.gpu.compute.dtypes import DTYPES
from dala.gpu.compute.engines.base import (
    Bytes,
    Engine,
    Geometry,
    Info,
    Runner,
    Storage,
    Task,
    Values,
)
from dala.gpu.compute.engines.compositing import ComposedFrame, Composer
from dala.gpu.compute.lang.ir import Program, format_program
from dala.typing import NDArray

#: The number of calls that the log keeps.
LOG_LENGTH: Final = 10_000


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of the engine.

    ``name`` is allocate, upload, prepare, run, copy, download, put or compose. ``storages`` are the
    serial numbers of the storages, the output last. ``program``, ``dims`` and ``params`` belong to
    prepare and run. For put, ``dims`` is the picture's shape and ``params`` its number. For
    compose, ``dims`` is the target's shape and ``params`` the draws, rectangles and background.
    """

    name: str
    storages: tuple[int, ...] = ()
    nbytes: int = 0
    program: str = ""
    dims: tuple[int, ...] = ()
    params: tuple[object, ...] = ()


class NullEngine(Engine):
    """An engine that records every call in ``log``, newest last."""

    id = "null"
    backend = "null"
    fuses_operations = True
    dtypes = frozenset(DTYPES)

    def __init__(self) -> None:
        self.log: deque[RecordedCall] = deque(maxlen=LOG_LENGTH)
        self._serial = count(1)
        self._live: dict[int, int] = {}

    def note(self, name: str, *storages: Storage, **rest: Any) -> None:
        """Log a call; its bytes are those of the last storage."""
        serials = tuple(storage.handle for storage in storages)
        nbytes = storages[-1].nbytes if storages else 0
        self.log.append(RecordedCall(name, serials, nbytes, **rest))

    def calls(self, name: str) -> list[RecordedCall]:
        """Return the logged calls with a name, oldest first."""
        return [call for call in self.log if call.name == name]

    def info(self) -> Info:
        return {"name": "null (records, runs nothing)", "gpu": False, "backend": "null"}

    def allocate(self, nbytes: int, *, zero: bool) -> Storage:
        storage = Storage(nbytes, next(self._serial))
        self._live[storage.handle] = nbytes
        self.note("allocate", storage)
        return storage

    def release(self, storage: Storage) -> None:
        self._live.pop(storage.handle, None)

    def upload(self, storage: Storage, data: Bytes) -> None:
        self.note("upload", storage)

    def download(self, storage: Storage) -> memoryview:
        self.note("download", storage)
        return memoryview(bytearray(storage.nbytes))

    def copy(self, source: Storage, target: Storage) -> None:
        self.note("copy", source, target)

    def prepare(self, program: Program, geometry: Geometry) -> Runner:
        return self._logged(program.name, geometry.dims)

    def operate(self, task: Task) -> Runner:
        values = tuple(value for _, value in task.values)
        return self._logged(task.op, task.output.shape, values)

    def _logged(self, name: str, dims: tuple[int, ...], values: Values | None = None) -> Runner:
        """Log that work is prepared; return a runner that logs it, with its own values if any."""
        self.note("prepare", program=name, dims=dims)

        def run(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
            given = params if values is None else values
            self.note("run", *inputs, output, program=name, dims=dims, params=given)

        return run

    def source(self, program: Program, geometry: Geometry) -> str:
        return format_program(program.body, program.result)

    def composer(self) -> Composer:
        return _NullComposer(self)

    def stats(self) -> dict[str, int]:
        live = list(self._live.values())
        return {"live_buffers": len(live), "live_bytes": sum(live)}


class _NullComposer(Composer):
    """A composer that records pictures and draws."""

    def __init__(self, engine: NullEngine) -> None:
        self._engine = engine
        self._numbers = count()
        self._sizes: dict[int, tuple[int, int]] = {}

    def picture(self, width: int, height: int) -> int:
        number = next(self._numbers)
        self._sizes[number] = height, width
        return number

    def put(self, picture: int, source: Storage | NDArray, channels: int) -> None:
        serials = (source.handle,) if isinstance(source, Storage) else ()
        dims = (*self._sizes[picture], channels)
        nbytes = dims[0] * dims[1] * channels
        self._engine.log.append(RecordedCall("put", serials, nbytes, dims=dims, params=(picture,)))

    def drop(self, picture: int) -> None:
        self._sizes.pop(picture, None)

    def compose(self, frame: ComposedFrame) -> None:
        params = (frame.draws.copy(), tuple(frame.rects), frame.background)
        dims = (frame.height, frame.width, 4)
        self._engine.note("compose", frame.target, dims=dims, params=params)
