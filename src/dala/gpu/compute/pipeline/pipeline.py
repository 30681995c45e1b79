"""The Pipeline class, and the functions ``pipeline``, ``pipeline_add`` and ``pipeline_run``."""

from __future__ import annotations

import operator
import time
from typing import TYPE_CHECKING, Self

from dala import resources
from dala.errors import (
    DalaError,
    DeviceMismatch,
    DtypeMismatch,
    FreedError,
    ParameterError,
    ShapeMismatch,
)
from dala.gpu.compute.buffer import Buffer, overlap
from dala.gpu.compute.call.arguments import number_kinds, pack
from dala.gpu.compute.call.spec import Spec
from dala.gpu.compute.engines.base import Engine
from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.pipeline.chain import chain, explain
from dala.gpu.compute.pipeline.fuse import Pass, Stage, fuse
from dala.gpu.compute.pipeline.reading import CallableCount, CallableSpecs, PipelineReading
from dala.gpu.compute.stream.job import Job, memory_of
from dala.resources import Closing
from dala.trace.recorder import OFF, tracer
from dala.typing import ParamValue

if TYPE_CHECKING:
    from dala.extensions import WebExport, WebOption
    from dala.gpu.compute.runnable import Runnable
    from dala.gpu.compute.stream.command import Command
    from dala.gpu.compute.stream.stream import Priority
    from dala.typing import PathLike


class Pipeline(Closing):
    """Stages that run one after another, fused into as few passes as possible.

    ``add`` checks and appends a stage; ``run`` runs all stages, any number of times. Output buffers
    are always written, except those made with ``transient=True``: they only carry data between
    stages, and fusing may skip them. ``explain`` returns the plan.

    >>> from dala.gpu.compute import buffer, buffer_zeros
    >>> a, out = buffer([-1.0, 2.0], device="cpu"), buffer_zeros(2, device="cpu")
    >>> middle = buffer_zeros(2, device="cpu", transient=True)
    >>> p = Pipeline()
    >>> p = p.add({"op": "run_kernel", "kernel": "relu", "inputs": [a], "output": middle})
    >>> p = p.add({"op": "run_kernel", "kernel": "scalar_mul", "inputs": [middle], "output": out,
    ...            "params": {"scalar": 10}})
    >>> p.run()
    >>> out.read_list(), p.passes
    ([0.0, 20.0], 1)
    """

    _instead = "Pass the values, and build the pipeline there."

    def __init__(self) -> None:
        self._stages: list[Stage] = []
        self._passes: list[Pass] | None = None
        self._engine: Engine | None = None
        self._closed = False
        self._seconds: list[float] = []
        resources.track("pipeline", "any", 0)

    @classmethod
    def new(cls) -> Self:
        """Return a new, empty pipeline.

        >>> Pipeline.new().stage_count
        0
        """
        return cls()

    # building ---------------------------------------------------------------------------------
    def add(self, spec: Spec) -> Self:
        """Check a stage and append it. After an error the pipeline is unchanged.

        Args:
            spec: a dict as for :func:`~dala.gpu.compute.submit`. Keys that a stage does not use may
                be None or empty.
        """
        self._check_open("Pipeline.add")
        stage = Stage(spec)
        engine = self._engine if stage.output is None else stage.output.engine
        if self._engine is not None and engine is not self._engine:
            assert engine is not None
            expected = f"on the pipeline's device {self._engine.id!r}"
            advice = "Move its buffers, or make a second pipeline."
            raise DeviceMismatch.invalid(
                "Pipeline.add", f"stage {stage.name!r}", expected, engine.id, advice
            )
        self._check_cycle(stage)
        self._engine = engine
        self._stages.append(stage)
        self._passes = None
        return self

    def _check_cycle(self, stage: Stage) -> None:
        """Raise if a stage closes a cycle of buffers without a barrier."""
        made: dict[int, set[int]] = {}
        for earlier in self._stages:
            if earlier.op == "barrier":
                made = {}
            elif earlier.output is not None:
                makers = {id(b) for b in earlier.inputs}
                makers |= {m for b in earlier.inputs for m in made.get(id(b), ())}
                made.setdefault(id(earlier.output), set()).update(makers)
        written = {id(s.output) for s in self._stages}
        for b in stage.inputs:
            if b is stage.output:
                continue
            if id(stage.output) in made.get(id(b), ()):
                raise ParameterError(
                    f"Pipeline.add: stage {stage.name!r} closes a cycle: its inputs are computed "
                    f"from its output {_described(stage.output)}. Give it another output, or add a "
                    "barrier before it if each run continues from the last."
                )
            if b.transient and id(b) not in written:
                raise ParameterError(
                    f"Pipeline.add: stage {stage.name!r} reads the transient buffer "
                    f"{_described(b)}, which no earlier stage writes. Transient buffers hold "
                    "nothing between runs. Add the stage that writes it first."
                )

    @PipelineReading
    def stages(self) -> CallableSpecs:
        """The stages as dicts of op, kernel, inputs, output and params.

        ``p.stages()`` and ``Pipeline.stages(p)`` also work.
        """
        return CallableSpecs(stage.spec() for stage in self._stages)

    @property
    def ref(self) -> Pipeline:
        """The pipeline itself, for code ported from Dala in other languages."""
        return self

    @PipelineReading
    def stage_count(self) -> CallableCount:
        """The number of stages. ``p.stage_count()`` and ``Pipeline.stage_count(p)`` also work."""
        return CallableCount(len(self._stages))

    @property
    def kernels(self) -> list[Runnable | None]:
        """The kernel of each stage; None for copies and barriers.

        >>> Pipeline().add({"op": "barrier"}).kernels
        [None]
        """
        return [stage.kernel for stage in self._stages]

    @property
    def passes(self) -> int:
        """The number of passes over memory (dispatches on a GPU) in one run."""
        return sum(item.op != "barrier" for item in self._plan())

    def rebind(self, old: Buffer, new: Buffer) -> Self:
        """Replace one of the pipeline's buffers without planning again.

        This way one pipeline can process any number of frames, each in its own buffer.

        Args:
            old: an input or output of the stages. Transient buffers cannot be replaced.
            new: a buffer of the same shape, dtype and device. It must not share memory with
                another buffer of the pipeline if a stage writes one of the two.

        Raises:
            ParameterError: no stage uses ``old``, or it is transient.
            ShapeMismatch, DtypeMismatch, DeviceMismatch: the two differ.

        >>> from dala.gpu.compute import buffer, buffer_zeros
        >>> a, b = buffer([1.0], device="cpu"), buffer([-3.0], device="cpu")
        >>> out = buffer_zeros(1, device="cpu")
        >>> p = Pipeline().add({"op": "run_kernel", "kernel": "relu", "inputs": [a], "output": out})
        >>> p.run()
        >>> p.rebind(a, b).run()
        >>> out.read_list()
        [0.0]
        """
        self._check_open("Pipeline.rebind")
        if new is old:
            return self
        self._check_rebind(old, new)
        for stage in self._stages:
            stage.rebind(old, new)
        for item in self._passes or ():
            item.rebind(old, new)
        return self

    def swap(self, a: Buffer, b: Buffer) -> Self:
        """Exchange two of the pipeline's buffers without planning again.

        A pipeline that reads one and writes the other then goes on from its own result.

        Args:
            a: an input or output of the stages, not transient.
            b: another one, of the same shape and dtype.

        Raises:
            ParameterError: no stage uses one of them, or it is transient.
            ShapeMismatch, DtypeMismatch: the two differ.

        >>> from dala.gpu.compute import buffer, buffer_zeros
        >>> a, b = buffer([1.0], device="cpu"), buffer_zeros(1, device="cpu")
        >>> p = Pipeline().add({"op": "run_kernel", "kernel": "scalar_mul", "inputs": [a],
        ...                     "output": b, "params": {"scalar": 2}})
        >>> for _ in range(3):
        ...     p.run()
        ...     p = p.swap(a, b)
        >>> a.read_list()
        [4.0]
        """
        self._check_open("Pipeline.swap")
        hole: Buffer = object.__new__(Buffer)
        used = [x for stage in self._stages for x in (*stage.inputs, stage.output)]
        for x in (a, b):
            if not isinstance(x, Buffer) or not any(u is x for u in used) or x.transient:
                raise ParameterError("Pipeline.swap: a and b must be buffers of a stage that last.")
        for name, one, other in (("dtype", a.dtype, b.dtype), ("shape", a.shape, b.shape)):
            if one != other:
                wrong = DtypeMismatch if name == "dtype" else ShapeMismatch
                raise wrong.invalid("Pipeline.swap", "b", f"of {name} {one!r}", other)
        for old, new in ((a, hole), (b, a), (hole, b)):
            for item in (*self._stages, *(self._passes or ())):
                item.rebind(old, new)
        return self

    def _check_rebind(self, old: Buffer, new: Buffer) -> None:
        call = "Pipeline.rebind"
        if not isinstance(new, Buffer):
            raise ParameterError.invalid(call, "new", "a Buffer", new)
        read = [b for stage in self._stages for b in stage.inputs]
        written = [stage.output for stage in self._stages if stage.output is not None]
        writes = any(b is old for b in written)
        if not writes and not any(b is old for b in read):
            raise ParameterError(f"{call}: old must be a buffer of a stage.", call=call)
        if old.transient or new.transient:
            raise ParameterError(f"{call}: transient buffers cannot be replaced.", call=call)
        if new.engine is not old.engine:
            raise DeviceMismatch.invalid(call, "new", f"on {old.engine.id!r}", new.engine.id)
        if new.dtype != old.dtype:
            raise DtypeMismatch.invalid(call, "new", f"of dtype {old.dtype!r}", new.dtype)
        if new.shape != old.shape:
            raise ShapeMismatch.invalid(call, "new", f"of shape {old.shape}", new.shape)
        if writes:
            new.check_writable(call)
        others = (*read, *written) if writes else written
        if any(b is not old and overlap(b, new) for b in others):
            raise ShapeMismatch(
                f"{call}: new must not share memory with another buffer that a stage uses.",
                call=call,
                argument="new",
            )

    def set_params(self, stage: int, **params: ParamValue) -> None:
        """Change parameters of a stage for the next runs.

        Recompiles only if the code depends on the parameter, as for the radius of a blur.

        Args:
            stage: the stage's index; negative indices count from the end.
            params: the new values; other parameters keep theirs.
        """
        self._check_open("Pipeline.set_params")
        count = len(self._stages)
        try:
            fits = -count <= operator.index(stage) < count
        except TypeError:
            fits = False
        if not fits:
            expected = f"an index below {count}"
            raise ParameterError.invalid("Pipeline.set_params", "stage", expected, stage)
        changed = self._stages[stage]
        if changed.kernel is None or changed.call is None or changed.output is None:
            raise ParameterError(
                f"Pipeline.set_params: stage {stage} ({changed.name}) has no parameters."
            )
        merged = {**changed.params, **params}
        kernel, program = changed.kernel, changed.call.program
        if isinstance(kernel, Kernel) and program is not None:
            kinds = number_kinds(kernel.decl, merged)
            if kinds == number_kinds(kernel.decl, changed.params):
                changed.values = pack(kernel.decl, program, merged)
                changed.params = merged
                return
        call, changed.values = kernel.bind(changed.inputs, changed.output, merged)
        changed.call, changed.params = call, merged
        # Engine code is not fused, so the passes stay valid.
        for item in self._passes or []:
            if program is None and call.program is None and changed in item.stages and item.renew():
                return
        self._passes = None

    # running ----------------------------------------------------------------------------------
    def run(self, *, profile: bool = False) -> None:
        """Run every stage in order.

        On a device with its own queue the call submits the whole pipeline and returns; reading a
        buffer waits for the work.

        Args:
            profile: also measure each pass on such a device, and wait for the end.
        """
        self._check_open("Pipeline.run")
        nodes = self._plan()
        engine = self._engine
        if engine is None:
            return
        for node in nodes:
            node.check()
        if not engine.queued:
            self._seconds = [item.run_timed(engine) for item in nodes]
        elif profile:
            self._profile(nodes, engine)
        elif len(nodes) == 1:
            nodes[0].run(engine)
        else:
            with engine.batched():
                for item in nodes:
                    item.run(engine)

    def _profile(self, nodes: list[Pass], engine: Engine) -> None:
        """Run passes on a device with its own queue, measure each one and wait for the end."""
        with engine.profile() as times:
            seconds = []
            for item in nodes:
                start = time.perf_counter()
                item.run(engine)
                if times is not None:
                    times.mark()
                else:
                    engine.synchronize()
                seconds.append(time.perf_counter() - start)
        self._seconds = seconds if times is None else times.passes

    def submit(self, priority: Priority = "realtime") -> Command:
        """Run in the background and return a command, like :func:`~dala.gpu.compute.submit`."""
        from dala.gpu.compute.stream import stream

        return stream.default().begin(self._job(stream.is_background(priority)))

    async def run_async(self, priority: Priority = "realtime") -> None:
        """Run without blocking the event loop, and return once all outputs are written."""
        from dala.gpu.compute.stream import stream

        await stream.default().finish(self._job(stream.is_background(priority)))

    def _job(self, background: bool) -> Job:
        self._check_open("Pipeline.submit")
        nodes, engine = self._plan(), self._engine
        if engine is None:
            return Job("pipeline", background)
        for node in nodes:
            node.check()
        reads = [b for node in nodes for b in node.inputs]
        writes = [b for node in nodes for b in (*node.stores, node.output) if b is not None]
        steps = [node.freeze(engine) for node in nodes if node.op != "barrier"]

        def run() -> None:
            with engine.batched():
                for step in steps:
                    step()

        used = ([b.storage("Pipeline.submit") for b in buffers] for buffers in (reads, writes))
        name = f"pipeline of {self.stage_count} stages"
        return Job(name, background, engine, run, memory_of(*used), (reads, writes))

    def _plan(self) -> list[Pass]:
        if self._passes is None:
            with tracer.span("compile", "plan of a pipeline") if tracer.on else OFF:
                nodes = chain(fuse(self._stages))
                for node in nodes:
                    if node.output is not None:
                        node.prepare(node.output.engine)
            self._passes, self._seconds = nodes, []
        return self._passes

    def explain(self) -> str:
        """Return the plan as text: stages, passes, bytes moved and, after a run, times.

        On a device with its own queue, times are from the last ``run(profile=True)``.
        """
        return explain(self._engine, self._stages, self._plan(), self._seconds)

    def export_web(self, folder: PathLike, **options: WebOption) -> WebExport:
        """Export the pipeline as a web page that runs on the visitor's GPU.

        The page fills the first buffer of shape (height, width, 4) and dtype "u8" that a stage
        reads and none writes; other inputs are exported with their present content. It shows the
        output of the last stage. Pictures have the size of that buffer.

        Args:
            folder: where to write; a path that ends in ``.html`` makes one file.
            options: ``title``, ``picture``, ``sliders``, ``yuv``, ``one_file``; see the guide.

        Raises:
            ParameterError, ShapeError: the pipeline cannot be exported.
        """
        from dala.extensions import web_module

        self._check_open("Pipeline.export_web")
        return web_module().export(self, folder, **options)

    def _check_open(self, call: str) -> None:
        if self._closed:
            raise FreedError(f"{call}: the pipeline was closed. Make a new one.")

    def close(self) -> None:
        """Release the stages and their buffers. Closing twice is allowed."""
        if not self._closed:
            self._closed = True
            self._stages, self._passes = [], []
            resources.untrack("pipeline", "any", 0)

    def __del__(self) -> None:
        if hasattr(self, "_closed"):
            self.close()

    def _repr_html_(self) -> str:
        from dala.notebook import html_text

        try:
            return html_text(repr(self) if self._closed else self.explain())
        except DalaError as error:  # a buffer was freed, for example
            return html_text(f"{self!r}\n{error}")

    def __repr__(self) -> str:
        return f"<Pipeline of {self.stage_count} stages{' closed' if self._closed else ''}>"


def _described(b: Buffer | None) -> str:
    return f"{b.dtype} {b.shape}" if b is not None else ""


def pipeline() -> Pipeline:
    """Return a new, empty pipeline.

    >>> from dala.gpu.compute import pipeline
    >>> pipeline().stage_count
    0
    """
    return Pipeline()


def _checked(p: Pipeline, call: str) -> Pipeline:
    if not isinstance(p, Pipeline):
        raise ParameterError.invalid(call, "p", "a Pipeline", p)
    return p


def pipeline_add(p: Pipeline, spec: Spec) -> Pipeline:
    """Add a stage and return the pipeline.

    >>> from dala.gpu.compute import pipeline, pipeline_add
    >>> pipeline_add(pipeline(), {"op": "barrier"}).stage_count
    1
    """
    return _checked(p, "pipeline_add").add(spec)


def pipeline_run(p: Pipeline) -> None:
    """Run a pipeline.

    >>> from dala.gpu.compute import buffer, pipeline, pipeline_add, pipeline_run
    >>> a = buffer([-1.0, 2.0], device="cpu")
    >>> p = pipeline_add(
    ...     pipeline(), {"op": "run_kernel", "kernel": "relu", "inputs": [a], "output": a}
    ... )
    >>> pipeline_run(p)
    >>> a.read_list()
    [0.0, 2.0]
    """
    _checked(p, "pipeline_run").run()


async def pipeline_run_async(p: Pipeline) -> None:
    """Run a pipeline without blocking the event loop.

    >>> import asyncio
    >>> from dala.gpu.compute import pipeline, pipeline_run_async
    >>> asyncio.run(pipeline_run_async(pipeline()))
    """
    await _checked(p, "pipeline_run_async").run_async()


def free_pipeline(p: Pipeline) -> None:
    """Close a pipeline. Closing twice is allowed.

    >>> from dala.gpu.compute import free_pipeline, pipeline
    >>> free_pipeline(pipeline())
    """
    _checked(p, "free_pipeline").close()
