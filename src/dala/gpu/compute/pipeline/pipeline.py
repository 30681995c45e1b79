"""Pipelines: stages checked when added, melted together, run as often as you like."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from dala import resources
from dala.errors import DeviceMismatch, FreedError, ParameterError
from dala.gpu.compute.buffer import Buffer
from dala.gpu.compute.call.bind import Call, number_kinds, pack
from dala.gpu.compute.call.spec import check_copy, operation
from dala.gpu.compute.engines.base import Engine
from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.kernel import get as find_kernel
from dala.gpu.compute.pipeline.chain import Chain, chain
from dala.gpu.compute.pipeline.fuse import Node, melt
from dala.gpu.compute.stream.job import Job
from dala.resources import Closing

if TYPE_CHECKING:
    from dala.gpu.compute.stream.command import Command
    from dala.gpu.compute.stream.stream import Priority


class Stage:
    """One checked step of a pipeline."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.op = operation(spec, "Pipeline.add")
        self.kernel: Kernel | None = None
        self.inputs: list[Buffer] = []
        self.output: Buffer | None = None
        self.params: dict[str, Any] = {}
        self.call: Call | None = None
        self.values: tuple[int | float, ...] = ()
        if self.op == "run_kernel":
            self._kernel_stage(spec)
        elif self.op == "copy_buffer":
            check_copy(spec["src"], spec["dst"], "Pipeline.add")
            self.inputs, self.output = [spec["src"]], spec["dst"]

    def _kernel_stage(self, spec: Mapping[str, Any]) -> None:
        kernel = find_kernel(spec["kernel"], "Pipeline.add")
        params = dict(spec.get("params") or {})
        inputs = spec["inputs"]
        self.call, self.values = kernel.bind(inputs, spec["output"], params)
        self.kernel, self.params = kernel, params
        self.inputs, self.output = list(inputs), spec["output"]

    @property
    def name(self) -> str:
        """What the stage does, in a word."""
        return self.kernel.name if self.kernel is not None else self.op

    def spec(self) -> dict[str, Any]:
        """The stage as it was given."""
        if self.op == "copy_buffer":
            return {"op": self.op, "src": self.inputs[0], "dst": self.output}
        if self.kernel is None:
            return {"op": self.op}
        return {
            "op": self.op,
            "kernel": self.kernel.name,
            "inputs": list(self.inputs),
            "output": self.output,
            "params": dict(self.params),
        }


class Pipeline(Closing):
    """Stages that run one after another, melted into as few passes as possible.

    ``add`` checks a stage; ``run`` runs all of them, as often as you like. Buffers that you pass in
    are always written; buffers made with ``transient=True`` may vanish into the pass that reads
    them. ``explain`` says what was made of the stages.

    >>> from dala.gpu.compute import buffer, buffer_zeros
    >>> a, out = buffer([-1.0, 2.0], device="cpu"), buffer_zeros(2, device="cpu")
    >>> between = buffer_zeros(2, device="cpu", transient=True)
    >>> p = Pipeline()
    >>> p = p.add({"op": "run_kernel", "kernel": "relu", "inputs": [a], "output": between})
    >>> p = p.add({"op": "run_kernel", "kernel": "scalar_mul", "inputs": [between], "output": out,
    ...            "params": {"scalar": 10}})
    >>> p.run()
    >>> out.read_list(), p.passes
    ([0.0, 20.0], 1)
    """

    def __init__(self) -> None:
        self._stages: list[Stage] = []
        self._nodes: list[Node] | None = None
        self._engine: Engine | None = None
        self._closed = False
        self._seconds: list[float] = []
        resources.track("pipeline", "any", 0)

    # building ---------------------------------------------------------------------------------
    def add(self, spec: Mapping[str, Any]) -> Self:
        """Adds a stage, checked now; a stage that is refused leaves the pipeline as it was."""
        self._check_open("Pipeline.add")
        stage = Stage(spec)
        if stage.output is not None:
            engine = stage.output.engine
            if self._engine is not None and engine is not self._engine:
                raise DeviceMismatch(
                    f"Pipeline.add: the pipeline runs on {self._engine.id}, stage {stage.name!r} "
                    f"on {engine.id}. Move its buffers, or make a second pipeline."
                )
        self._check_cycle(stage)
        if stage.output is not None:
            self._engine = stage.output.engine
        self._stages.append(stage)
        self._nodes = None
        return self

    def _check_cycle(self, stage: Stage) -> None:
        """Refuses a stage that closes a circle of buffers, unless a barrier opens it."""
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
                    f"Pipeline.add: stage {stage.name!r} closes a cycle: it writes the buffer "
                    f"{_described(stage.output)} that what it reads was made from. Give it another "
                    "output, or add a barrier before it if each run shall go on from the last."
                )
            if b.transient and id(b) not in written:
                raise ParameterError(
                    f"Pipeline.add: stage {stage.name!r} reads the transient buffer "
                    f"{_described(b)}, which no stage before it writes; a transient buffer holds "
                    "nothing between runs. Add the stage that writes it first."
                )

    @property
    def stages(self) -> list[dict[str, Any]]:
        """The stages as they were given."""
        return [stage.spec() for stage in self._stages]

    @property
    def stage_count(self) -> int:
        """How many stages there are."""
        return len(self._stages)

    @property
    def passes(self) -> int:
        """How many passes over memory (dispatches on a GPU) one run makes."""
        return sum(node.op != "barrier" for node in self._plan())

    def set_params(self, stage: int, **params: Any) -> None:
        """Changes parameters of a stage for the next runs.

        Nothing is compiled again unless the code depends on them, as a blur's does on its radius.
        """
        self._check_open("Pipeline.set_params")
        if not -len(self._stages) <= stage < len(self._stages):
            raise ParameterError(
                f"Pipeline.set_params: stage must be below {len(self._stages)}, {stage} came."
            )
        changed = self._stages[stage]
        if changed.kernel is None or changed.call is None:
            raise ParameterError(f"Pipeline.set_params: stage {stage} ({changed.name}) has none.")
        merged = {**changed.params, **params}
        kernel, program = changed.kernel, changed.call.program
        if kernel.language and program is not None:
            kinds = number_kinds(kernel.decl, merged)
            if kinds == number_kinds(kernel.decl, changed.params):
                changed.values = pack(kernel.decl, program.params, merged)
                changed.params = merged
                return
        call, changed.values = kernel.bind(changed.inputs, changed.output, merged)
        changed.call, changed.params = call, merged
        # An operation that no program says stays the pass, or the part of a chain, that it is.
        for node in self._nodes or []:
            if program is None and call.program is None and changed in node.stages and node.renew():
                return
        self._nodes = None

    # running ----------------------------------------------------------------------------------
    def run(self, *, profile: bool = False) -> None:
        """Runs every stage in order.

        On a device with a queue of its own the whole pipeline goes there at once and the call
        returns; reading waits for it. Such a device tells how long each pass took only when asked:
        with ``profile``. Then the call waits for the end.
        """
        self._check_open("Pipeline.run")
        nodes = self._plan()
        engine = self._engine
        if engine is None:
            return
        for node in nodes:
            node.check()
        if engine.queued and not profile:
            if len(nodes) == 1:
                nodes[0].run(engine)
                return
            with engine.together():
                for node in nodes:
                    node.run(engine)
            return
        with engine.profile() as times:
            seconds = []
            for node in nodes:
                start = time.perf_counter()
                node.run(engine)
                if times is not None:
                    times.mark()
                elif engine.queued:
                    engine.synchronize()
                seconds.append(time.perf_counter() - start)
        self._seconds = seconds if times is None else times.passes

    def submit(self, priority: Priority = "realtime") -> Command:
        """Runs it while the program goes on; a command like any other, see :func:`submit`."""
        from dala.gpu.compute.stream import stream

        return stream.default().begin(self._job(stream.is_background(priority)))

    async def run_async(self, priority: Priority = "realtime") -> None:
        """As :meth:`run`, awaited: the event loop goes on until every output is written."""
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
            with engine.together():
                for step in steps:
                    step()

        return Job(
            f"pipeline of {self.stage_count} stages",
            background,
            engine,
            run,
            [b.storage("Pipeline.submit") for b in reads],
            [b.storage("Pipeline.submit") for b in writes],
            (reads, writes),
        )

    def _plan(self) -> list[Node]:
        if self._nodes is None:
            nodes = chain(melt(self._stages))
            for node in nodes:
                if node.output is not None:
                    node.prepare(node.output.engine)
            self._nodes, self._seconds = nodes, []
        return self._nodes

    # showing ----------------------------------------------------------------------------------
    def explain(self) -> str:
        """The plan in words: stages, passes, bytes moved and, after a run, the time of each.

        On a device with a queue of its own the times are those of the last profiled run.
        """
        nodes = self._plan()
        where = self._engine.id if self._engine is not None else "no device yet"
        lines = [f"pipeline on {where}: {self.stage_count} stages in {self.passes} passes"]
        for number, stage in enumerate(self._stages):
            shape = stage.output.shape if stage.output is not None else ""
            lines.append(f"  stage {number}: {stage.name} {shape}{_fate(stage, nodes)}")
        for number, node in enumerate(nodes):
            took = f", {self._seconds[number] * 1e3:.3f} ms" if self._seconds else ""
            lines.append(f"  pass {number}: {node.label}, {node.moved:,} bytes{took}")
        return "\n".join(lines)

    # end --------------------------------------------------------------------------------------
    def _check_open(self, call: str) -> None:
        if self._closed:
            raise FreedError(f"{call}: the pipeline was closed. Make a new one.")

    def close(self) -> None:
        """Lets go of the stages and their buffers. Closing twice is fine."""
        if not self._closed:
            self._closed = True
            self._stages, self._nodes = [], []
            resources.untrack("pipeline", "any", 0)

    def __del__(self) -> None:
        if hasattr(self, "_closed"):
            self.close()

    def __repr__(self) -> str:
        return f"<Pipeline of {self.stage_count} stages{' closed' if self._closed else ''}>"


def _described(b: Buffer | None) -> str:
    return f"{b.dtype} {b.shape}" if b is not None else ""


def _fate(stage: Stage, nodes: list[Node]) -> str:
    """What became of a stage, where it is no pass of its own."""
    for node in nodes:
        members = node.nodes if isinstance(node, Chain) else [node]
        if any(stage in member.stages[:-1] for member in members):
            return ", melted"
        if len(members) > 1 and any(stage in member.stages for member in members):
            return ", in a window"
    return ""


def pipeline() -> Pipeline:
    """A new, empty pipeline."""
    return Pipeline()


def pipeline_add(p: Pipeline, spec: Mapping[str, Any]) -> Pipeline:
    """Adds a stage and returns the pipeline."""
    return p.add(spec)


def pipeline_run(p: Pipeline) -> None:
    """Runs a pipeline."""
    p.run()


async def pipeline_run_async(p: Pipeline) -> None:
    """Runs a pipeline, awaited."""
    await p.run_async()


def free_pipeline(p: Pipeline) -> None:
    """Closes a pipeline. Doing it twice is fine."""
    p.close()
