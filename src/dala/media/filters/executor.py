"""What frames run through, one at a time: the pipelines of the last lists of filters."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from dala.gpu.compute import Buffer, Pipeline, buffer_zeros
from dala.gpu.compute.buffer import allocate
from dala.media.filters.plans import PICTURE, Step
from dala.media.images import NDArray, Picture

#: Lists of filters that are kept.
LISTS = 8
#: Results of one list that may be out with the user before further ones are copied.
RESULTS = 3


class Parts(Picture):
    """A picture in several buffers, which steps read as PICTURE, PICTURE - 1 and so on."""

    __slots__ = ("parts",)

    def __init__(self, kind: str, parts: Sequence[Buffer], given: Any) -> None:
        super().__init__(kind, parts[0], given)
        self.parts = parts


class Slot:
    """A result buffer and the pipeline that ends in it."""

    def __init__(self, pipeline: Pipeline, result: Buffer, params: list[dict[str, Any]]) -> None:
        self.pipeline = pipeline
        self.result = result
        self.params = params
        #: The array over the result's memory that all views of it hold on to, while one does.
        self.out: weakref.ref[NDArray] | None = None

    @property
    def free(self) -> bool:
        """True when nobody holds the result."""
        return self.out is None or self.out() is None

    def set(self, steps: Sequence[Step]) -> None:
        """The parameters of this frame."""
        for number, step in enumerate(steps):
            if step.params != self.params[number]:
                self.pipeline.set_params(number, **step.params)
                self.params[number] = step.params

    def lend(self) -> NDArray:
        """The result's own memory; the slot is not free until the last view of it is gone."""
        array = self.result.numpy()
        root = array.base if isinstance(array.base, np.ndarray) else array
        self.out = weakref.ref(root)
        return array


class Line:
    """One list of filters over frames of one shape."""

    def __init__(self, picture: Picture, steps: Sequence[Step], device: str, results: int) -> None:
        self.device = device
        self._results = results
        parts = picture.parts if isinstance(picture, Parts) else (picture,)
        self.sources = [buffer_zeros(p.shape, p.dtype, device=device) for p in parts]
        self.given = [
            [None if isinstance(i, int) else self._given(i) for i in step.inputs] for step in steps
        ]
        self.between = [
            buffer_zeros(s.shape, s.dtype, device=device, transient=True) for s in steps[:-1]
        ]
        self.slots: list[Slot] = []
        #: A slot whose result is only ever copied.
        self.spare: Slot | None = None

    def _given(self, value: NDArray | Buffer) -> Buffer:
        if isinstance(value, Buffer):
            return value
        dtype = "u8" if value.dtype == np.uint8 else "f32"
        return buffer_zeros(value.shape, dtype, device=self.device)

    def slot(self, steps: Sequence[Step], lends: bool) -> tuple[Slot, bool]:
        """A slot for the next frame, and whether its result may be lent."""
        if lends:
            for slot in self.slots:
                if slot.free:
                    return slot, True
            if len(self.slots) < self._results:
                self.slots.append(self._slot(steps))
                return self.slots[-1], True
        if self.spare is None:
            self.spare = self._slot(steps)
        return self.spare, False

    def _slot(self, steps: Sequence[Step]) -> Slot:
        last = steps[-1]
        result = buffer_zeros(last.shape, last.dtype, device=self.device)
        made = [*self.between, result]
        pipeline = Pipeline()
        for step, given, output in zip(steps, self.given, made, strict=True):
            inputs = [self._input(i, g, made) for i, g in zip(step.inputs, given, strict=True)]
            pipeline.add(
                {
                    "op": "run_kernel",
                    "kernel": step.kernel,
                    "inputs": inputs,
                    "output": output,
                    "params": step.params,
                }
            )
        return Slot(pipeline, result, [step.params for step in steps])

    def _input(self, i: Any, given: Buffer | None, made: Sequence[Buffer]) -> Buffer:
        if given is not None:
            return given
        number: int = i
        return self.sources[PICTURE - number] if number < 0 else made[number]

    def run(self, slot: Slot, picture: Picture, steps: Sequence[Step], sees: bool) -> None:
        """Brings in the frame, and the pictures and tables of its filters, and runs."""
        for step, given in zip(steps, self.given, strict=True):
            for value, held in zip(step.inputs, given, strict=True):
                if held is not None and not isinstance(value, Buffer):
                    held.write(value)
        if isinstance(picture, Parts):
            with ExitStack() as places:
                for source, part in zip(self.sources, picture.parts, strict=True):
                    places.enter_context(_in_place_of(source, part.to(self.device)))
                slot.pipeline.run()
        elif sees or isinstance(picture.pixels, Buffer):
            with _in_place_of(self.sources[0], picture.buffer(self.device)):
                slot.pipeline.run()
        else:
            self.sources[0].write(picture.pixels)
            slot.pipeline.run()

    def close(self) -> None:
        """Frees what is not lent."""
        slots = [*self.slots, *([self.spare] if self.spare else [])]
        for slot in slots:
            slot.pipeline.close()
            slot.result.free()  # its memory lives on under arrays that were handed out
        for b in (*self.sources, *self.between):
            b.free()
        self.slots, self.spare, self.given = [], None, []


class Lane:
    """Runs one frame at a time; lists of filters are kept, the last used ones."""

    def __init__(self, device: str, sees: bool, results: int = RESULTS) -> None:
        self._device = device
        self._results = results
        #: Whether the host sees the device's memory, so that results can be lent.
        self._sees = sees
        self._lines: OrderedDict[Any, Line] = OrderedDict()
        self._last: Slot | None = None

    def run(self, picture: Picture, steps: Sequence[Step], out: NDArray | None) -> Any:
        """A frame through steps, as the kind that it came in, or into an array."""
        steps = [self._here(step) for step in steps]
        line = self._line(picture, steps)
        lends = self._sees and out is None and picture.kind != "bytes"
        slot, lent = line.slot(steps, lends)
        slot.set(steps)
        line.run(slot, picture, steps, self._sees)
        self._last = slot
        if out is not None:
            np.copyto(out, slot.result.numpy())
            return out
        if lent:
            return picture.give(slot.lend(), self._device)
        if picture.kind in ("frame", "buffer"):
            fresh = allocate(
                slot.result.engine, slot.result.shape, slot.result.dtype, zero=False, call="frames"
            )
            _copy(slot.result, fresh)
            return picture.give(fresh)
        made = slot.result.numpy()
        return picture.give(made.copy() if self._sees and picture.kind != "bytes" else made)

    def _here(self, step: Step) -> Step:
        """A step whose buffers are on this device."""
        if not any(isinstance(i, Buffer) and i.device != self._device for i in step.inputs):
            return step
        moved = tuple(i.numpy() if isinstance(i, Buffer) else i for i in step.inputs)
        return Step(step.kernel, moved, step.shape, step.dtype, step.params)

    def _line(self, picture: Picture, steps: Sequence[Step]) -> Line:
        key = (picture.shape, picture.dtype, *(_key(step) for step in steps))
        line = self._lines.get(key)
        if line is None:
            line = Line(picture, steps, self._device, self._results)
            try:
                line.slot(steps, self._sees)  # refused filters are not kept
            except BaseException:
                line.close()
                raise
            while len(self._lines) >= LISTS:
                self._lines.popitem(last=False)[1].close()
            self._lines[key] = line
        self._lines.move_to_end(key)
        return line

    @property
    def passes(self) -> int:
        """Passes of the last frame."""
        return self._last.pipeline.passes if self._last is not None else 0

    def explain(self) -> str:
        """The plan of the last frame."""
        return self._last.pipeline.explain() if self._last is not None else "no frame yet"

    def close(self) -> None:
        """Frees all."""
        for line in self._lines.values():
            line.close()
        self._lines.clear()
        self._last = None


def _key(step: Step) -> tuple[Any, ...]:
    """What two steps have in common that differ in numbers only."""
    inputs = tuple(
        i if isinstance(i, int) else id(i) if isinstance(i, Buffer) else (i.shape, i.dtype.char)
        for i in step.inputs
    )
    return step.kernel, inputs, step.shape, step.dtype, tuple(sorted(step.params))


@contextmanager
def _in_place_of(source: Buffer, pixels: Buffer) -> Iterator[None]:
    """A pipeline that reads ``source`` reads other pixels of its shape and dtype for now.

    Pipelines look up where their buffers' memory is when they run: no frame needs to be copied.
    """
    own, source._storage = source._storage, pixels.storage("process_frame")
    try:
        yield
    finally:
        source._storage = own


def _copy(source: Buffer, target: Buffer) -> None:
    with Pipeline() as p:
        p.add({"op": "copy_buffer", "src": source, "dst": target}).run()
