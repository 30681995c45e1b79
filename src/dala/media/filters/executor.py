"""The executor of filter lists: compiled pipelines of the last lists, one frame at a time."""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from dala import forks
from dala.errors import DalaError, ParameterError
from dala.gpu.compute import Buffer, Pipeline, Spec, buffer_zeros
from dala.gpu.compute.buffer import allocate
from dala.gpu.compute.call.instant import BEGINNING, Instant
from dala.gpu.compute.params import exact_key
from dala.gpu.compute.passes.program import Previous
from dala.gpu.compute.passes.state import FrameMemory, remembered
from dala.media.filters.plans import PICTURE, Step, Values
from dala.media.images import SourceImage, dtype_of
from dala.trace.recorder import OFF, tracer
from dala.typing import ImageLike, NDArray

if TYPE_CHECKING:
    from concurrent.futures import Future

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

#: Compiled lists of filters that are kept.
MAX_CHAINS = 8
#: Results of one list that the user may hold before further ones are copied.
MAX_RESULTS = 3


@dataclass(eq=False)
class ResultSlot:
    """A result buffer and the pipeline that writes it."""

    pipeline: Pipeline
    source: Buffer
    result: Buffer
    params: list[Values]
    #: Whether a step reads the source: a program may draw without the picture.
    reads: bool
    #: The array over the result's memory that every view of it refers to, while one exists.
    view: weakref.ref[NDArray] | None = None

    @property
    def free(self) -> bool:
        """True when no array over the result is alive."""
        return self.view is None or self.view() is None

    def set(self, steps: Sequence[Step]) -> None:
        """Set the parameters of the next frame."""
        for number, step in enumerate(steps):
            if not _same(step.params, self.params[number]):
                try:
                    self.pipeline.set_params(number, **step.params)
                except DalaError as error:
                    raise step.error(error) from error
                self.params[number] = step.params

    def read(self, source: Buffer) -> None:
        """Let the pipeline read a buffer from now on."""
        if self.reads:
            self.pipeline.rebind(self.source, source)
        self.source = source

    def lend(self) -> NDArray:
        """Return the result's own memory; the slot is free again when the last view is gone."""
        array = self.result.numpy()
        root = array.base if isinstance(array.base, np.ndarray) else array
        self.view = weakref.ref(root)
        return array


def at_moment(step: Step, moment: Instant) -> Step:
    """Return a step with the parameters that a moment gives its kernel."""
    if not step.kernel.roles:
        return step
    return replace(step, params={**moment.given(step.kernel), **step.params})


class CompiledChain:
    """One list of filters over frames of one shape, as pipelines."""

    def __init__(
        self, picture: SourceImage, steps: Sequence[Step], device: str, results: int
    ) -> None:
        self.device = device
        self._results = results
        self.source = buffer_zeros(picture.shape, picture.dtype, device=device)
        #: Results that the next frame reads.
        self.memory = FrameMemory(remembered([(s.inputs, s.shape, s.dtype) for s in steps]), device)
        #: The inputs of each step: numbers, results of the frame before, or buffers.
        self.inputs = [
            [
                i if isinstance(i, int | Previous | Buffer)
                else buffer_zeros(i.shape, dtype_of(i), device=device)
                for i in step.inputs
            ]
            for step in steps
        ]  # fmt: skip
        self.between = {
            n: buffer_zeros(s.shape, s.dtype, device=device, transient=True)
            for n, s in enumerate(steps[:-1])
            if n not in self.memory
        }
        self.slots: list[ResultSlot] = []
        #: A slot whose result is always copied.
        self.spare: ResultSlot | None = None

    @property
    def all_slots(self) -> list[ResultSlot]:
        """The slots, with the one whose result is copied."""
        return [*self.slots, *([self.spare] if self.spare else [])]

    def slot(self, steps: Sequence[Step], lends: bool) -> tuple[ResultSlot, bool]:
        """Return a slot for the next frame, and whether its result's memory may be returned."""
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

    def _slot(self, steps: Sequence[Step]) -> ResultSlot:
        last = steps[-1]
        result = buffer_zeros(last.shape, last.dtype, device=self.device)
        numbers = range(len(steps) - 1)
        made = [self.between[n] if n in self.between else self.memory.now(n) for n in numbers]
        made.append(result)
        pipeline = Pipeline()
        for step, given, output in zip(steps, self.inputs, made, strict=True):
            inputs = [
                i if isinstance(i, Buffer)
                else self.memory.before(i.step) if isinstance(i, Previous)
                else self.source if i == PICTURE else made[i]
                for i in given
            ]  # fmt: skip
            stage: Spec = {
                "op": "run_kernel",
                "kernel": step.kernel,
                "inputs": inputs,
                "output": output,
                "params": step.params,
            }
            try:
                pipeline.add(stage)
            except DalaError as error:
                raise step.error(error) from error
        reads = any(i == PICTURE for s in self.inputs for i in s if type(i) is int)
        return ResultSlot(pipeline, self.source, result, [step.params for step in steps], reads)

    def run(
        self, slot: ResultSlot, picture: SourceImage, steps: Sequence[Step], shares_memory: bool
    ) -> None:
        """Upload a frame and its filters' pictures and tables, and run."""
        for step, given in zip(steps, self.inputs, strict=True):
            for value, held in zip(step.inputs, given, strict=True):
                if isinstance(held, Buffer) and isinstance(value, np.ndarray):
                    held.write(value)
        with tracer.span("upload", self.device) if tracer.on else OFF:
            if shares_memory or isinstance(picture.pixels, Buffer):
                slot.read(picture.buffer(self.device))
            else:
                self.source.write(picture.pixels)
        try:
            slot.pipeline.run()
        finally:
            slot.read(self.source)  # the pipeline must not keep the user's memory alive

    def close(self) -> None:
        """Free all buffers; the memory of results that the user holds stays valid."""
        for slot in self.all_slots:
            slot.pipeline.close()
            slot.result.free()
        self.memory.close()
        for b in (self.source, *self.between.values()):
            b.free()
        self.slots, self.spare, self.inputs = [], None, []


class FilterExecutor:
    """Runs filter lists on one frame at a time and keeps the last used lists compiled."""

    def __init__(self, device: str, shares_memory: bool, results: int = MAX_RESULTS) -> None:
        self._device = device
        self._results = results
        #: Whether the host can access the device's memory, so that results need no copy.
        self._shares_memory = shares_memory
        self._chains: OrderedDict[tuple[Hashable, ...], CompiledChain] = OrderedDict()
        self._last: ResultSlot | None = None
        #: False if other executors work on other frames of the same stream.
        self.alone = True

    def run(
        self,
        picture: SourceImage,
        steps: Sequence[Step],
        out: NDArray | None,
        moment: Instant | None = None,
    ) -> ImageLike:
        """Run steps on a frame and return the result as the frame's kind, or in ``out``."""
        moment = moment or BEGINNING
        local = [self._local(step) for step in steps]
        chain = self._chain(picture, [at_moment(step, moment) for step in local])
        if chain.memory and not self.alone:
            raise ParameterError(
                "a program that remembers frames needs one worker. Pass workers=1.",
                argument="workers",
            )
        given = chain.memory.since(moment)
        steps = [at_moment(step, given) for step in local]
        lends = self._shares_memory and out is None and picture.kind != "bytes"
        slot, lent = chain.slot(steps, lends)
        slot.set(steps)
        chain.memory.begin(moment.frame, [s.pipeline for s in chain.all_slots])
        chain.run(slot, picture, steps, self._shares_memory)
        self._last = slot
        if out is not None:
            np.copyto(out, slot.result.numpy())
            return out
        if lent:
            return picture.give(slot.lend(), self._device)
        if isinstance(picture.pixels, Buffer):
            fresh = allocate(
                slot.result.engine, slot.result.shape, slot.result.dtype, zero=False, call="frames"
            )
            _copy(slot.result, fresh)
            return picture.give(fresh)
        made = slot.result.numpy()
        copied = self._shares_memory and picture.kind != "bytes"
        return picture.give(made.copy() if copied else made)

    def _local(self, step: Step) -> Step:
        """Return the step with its buffers on this device."""
        if not any(isinstance(i, Buffer) and i.device != self._device for i in step.inputs):
            return step
        moved = tuple(i.numpy() if isinstance(i, Buffer) else i for i in step.inputs)
        return replace(step, inputs=moved)

    def _chain(self, picture: SourceImage, steps: Sequence[Step]) -> CompiledChain:
        key = (picture.shape, picture.dtype, *(_key(step) for step in steps))
        chain = self._chains.get(key)
        if chain is None:
            chain = CompiledChain(picture, steps, self._device, self._results)
            try:
                chain.slot(steps, self._shares_memory)  # refused filters are not kept
            except BaseException:
                chain.close()
                raise
            while len(self._chains) >= MAX_CHAINS:
                self._chains.popitem(last=False)[1].close()
            self._chains[key] = chain
        self._chains.move_to_end(key)
        return chain

    @property
    def passes(self) -> int:
        """The number of passes of the last frame."""
        return self._last.pipeline.passes if self._last is not None else 0

    def explain(self) -> str:
        """Return the plan of the last frame, as text."""
        return self._last.pipeline.explain() if self._last is not None else "no frame yet"

    def close(self) -> None:
        """Free all buffers; results stay valid."""
        for chain in self._chains.values():
            chain.close()
        self._chains.clear()
        self._last = None


def overlapped(
    items: Iterator[_Item],
    executors: Sequence[FilterExecutor],
    work: Callable[[FilterExecutor, _Item], _Result],
    name: str,
) -> Iterator[_Result]:
    """Yield the results of work on items, in their order, several at the same time.

    Items are read on the calling thread. An error of theirs is raised after the results of those
    before it.

    Args:
        items: what to work on.
        executors: each works on one item at a time, on a thread of its own.
        work: from an executor and an item to a result.
        name: of the threads.

    >>> two = [FilterExecutor("cpu", True), FilterExecutor("cpu", True)]
    >>> list(overlapped(iter([1, 2, 3]), two, lambda executor, n: n * n, "squares"))
    [1, 4, 9]
    """
    idle = list(executors)

    def run(item: _Item, frame: int | None) -> _Result:
        if tracer.on:
            tracer.frame = frame
        executor = idle.pop()
        try:
            return work(executor, item)
        finally:
            idle.append(executor)

    pending: deque[tuple[Future[_Result], int | None]] = deque()
    pool = forks.pool(len(executors), name)
    failed: Exception | None = None
    try:
        while True:
            try:
                item = next(items)
            except StopIteration:
                break
            except Exception as error:
                failed = error
                break
            frame = tracer.frame if tracer.on else None
            pending.append((pool.submit(run, item, frame), frame))
            del item  # a frame that is referenced keeps its memory from being reused
            if len(pending) > len(executors):
                yield _result(*pending.popleft())
        while pending:
            yield _result(*pending.popleft())
        if failed is not None:
            raise failed
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _result(future: Future[_Result], frame: int | None) -> _Result:
    """Wait for a result, and go on with its frame in a trace."""
    with tracer.wait("", "filtered frames") if tracer.on else OFF:
        made = future.result()
    if tracer.on:
        tracer.frame = frame
    return made


def _key(step: Step) -> tuple[Hashable, ...]:
    """Return the key of a compiled step: all it depends on but the values of its parameters."""
    inputs = tuple(
        i
        if isinstance(i, int | Previous)
        else id(i)
        if isinstance(i, Buffer)
        else (i.shape, i.dtype.char)
        for i in step.inputs
    )
    return step.kernel, inputs, step.shape, step.dtype, tuple(sorted(step.params))


def _same(params: Values, others: Values) -> bool:
    """Return True if parameters of the same names have the same values, of the same types."""
    return all(v is others[n] or exact_key(v) == exact_key(others[n]) for n, v in params.items())


def _copy(source: Buffer, target: Buffer) -> None:
    with Pipeline() as p:
        p.add({"op": "copy_buffer", "src": source, "dst": target}).run()
