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
class ResultBuffer:
    """A result buffer, whose memory may be lent."""

    buffer: Buffer
    #: The array over its memory that every view of it refers to, while one exists.
    view: weakref.ref[NDArray] | None = None

    @property
    def free(self) -> bool:
        """True when no array over the result is alive."""
        return self.view is None or self.view() is None

    def lend(self) -> NDArray:
        """Return the result's own memory; it is free again when the last view is gone."""
        array = self.buffer.numpy()
        root = array.base if isinstance(array.base, np.ndarray) else array
        self.view = weakref.ref(root)
        return array


def at_moment(step: Step, moment: Instant) -> Step:
    """Return a step with the parameters that a moment gives its kernel."""
    if not step.kernel.roles:
        return step
    return replace(step, params={**moment.given(step.kernel), **step.params})


class CompiledChain:
    """One list of filters over frames of one shape, as a pipeline."""

    def __init__(
        self, picture: SourceImage, steps: Sequence[Step], device: str, results: int
    ) -> None:
        self.device = device
        self._most = results
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
        self._last = steps[-1]
        #: Results whose memory is lent, and one that is always copied.
        self.results = [self._new_result()]
        self.spare: ResultBuffer | None = None
        #: What the pipeline reads and writes; it reads no source where a program draws without it.
        self._bound = [self.source, self.results[0].buffer]
        self._reads = any(i == PICTURE for s in self.inputs for i in s if type(i) is int)
        self.params = [step.params for step in steps]
        self.pipeline = Pipeline()
        try:
            self._add(steps)
        except BaseException:
            self.close()
            raise

    def _add(self, steps: Sequence[Step]) -> None:
        numbers = range(len(steps) - 1)
        made = [self.between[n] if n in self.between else self.memory.now(n) for n in numbers]
        made.append(self.results[0].buffer)
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
                self.pipeline.add(stage)
            except DalaError as error:
                raise step.error(error) from error

    def _new_result(self) -> ResultBuffer:
        return ResultBuffer(buffer_zeros(self._last.shape, self._last.dtype, device=self.device))

    def result(self, lends: bool) -> tuple[ResultBuffer, bool]:
        """Return where the next frame goes, and whether that memory may be returned."""
        if lends:
            for found in self.results:
                if found.free:
                    return found, True
            if len(self.results) < self._most:
                self.results.append(self._new_result())
                return self.results[-1], True
        if self.spare is None:
            unused = self.results and self.results[-1].free
            self.spare = self.results.pop() if unused else self._new_result()
        return self.spare, False

    def set(self, steps: Sequence[Step]) -> None:
        """Set the parameters of the next frame."""
        for number, step in enumerate(steps):
            if not _same(step.params, self.params[number]):
                try:
                    self.pipeline.set_params(number, **step.params)
                except DalaError as error:
                    raise step.error(error) from error
                self.params[number] = step.params

    def _bind(self, place: int, buffer: Buffer) -> None:
        self.pipeline.rebind(self._bound[place], buffer)
        self._bound[place] = buffer

    def run(
        self, result: ResultBuffer, picture: SourceImage, steps: Sequence[Step], shares_memory: bool
    ) -> None:
        """Upload a frame and its filters' pictures and tables, and run."""
        for step, given in zip(steps, self.inputs, strict=True):
            for value, held in zip(step.inputs, given, strict=True):
                if isinstance(held, Buffer) and isinstance(value, np.ndarray):
                    held.write(value)
        self._bind(1, result.buffer)
        with tracer.span("upload", self.device) if tracer.on else OFF:
            if not shares_memory and not isinstance(picture.pixels, Buffer):
                self.source.write(picture.pixels)
            elif self._reads:
                self._bind(0, picture.buffer(self.device))
        try:
            self.pipeline.run()
        finally:
            if self._reads:
                self._bind(0, self.source)  # the pipeline must not keep the user's memory alive

    def close(self) -> None:
        """Free all buffers; the memory of results that the user holds stays valid."""
        self.pipeline.close()
        for result in (*self.results, *([self.spare] if self.spare else [])):
            result.buffer.free()
        self.memory.close()
        for b in (self.source, *self.between.values()):
            b.free()
        self.results, self.spare, self.inputs = [], None, []


class FilterExecutor:
    """Runs filter lists on one frame at a time and keeps the last used lists compiled."""

    def __init__(self, device: str, shares_memory: bool, results: int = MAX_RESULTS) -> None:
        self._device = device
        self._results = results
        #: Whether the host can access the device's memory, so that results need no copy.
        self._shares_memory = shares_memory
        self._chains: OrderedDict[tuple[Hashable, ...], CompiledChain] = OrderedDict()
        self._last: CompiledChain | None = None
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
        result, lent = chain.result(lends)
        chain.set(steps)
        chain.memory.begin(moment.frame, chain.pipeline)
        chain.run(result, picture, steps, self._shares_memory)
        self._last, b = chain, result.buffer
        if out is not None:
            np.copyto(out, b.numpy())
            return out
        if lent:
            return picture.give(result.lend(), self._device)
        if isinstance(picture.pixels, Buffer):
            fresh = allocate(b.engine, b.shape, b.dtype, zero=False, call="frames")
            _copy(b, fresh)
            return picture.give(fresh)
        made = b.numpy()
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
