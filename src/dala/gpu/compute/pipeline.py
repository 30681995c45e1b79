"""Pipelines: stages checked when added, melted together, run as often as you like."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Self

from dala.errors import DeviceMismatch, FreedError, ParameterError
from dala.gpu.compute import live
from dala.gpu.compute.bind import Call, check_call, number_kinds, pack
from dala.gpu.compute.buffer import Buffer
from dala.gpu.compute.closing import Closing
from dala.gpu.compute.engines.base import Engine
from dala.gpu.compute.fusion import Node, melt
from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.kernel import get as find_kernel
from dala.gpu.compute.spec import check_copy, operation


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
        call = check_call(kernel, inputs, spec["output"], number_kinds(kernel.decl, params))
        self.kernel, self.call, self.params = kernel, call, params
        self.values = pack(kernel.decl, call.program.params, params)
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
        live.track("pipeline", "any", 0)

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
            self._engine = engine
        self._stages.append(stage)
        self._nodes = None
        return self

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
        """Changes parameters of a stage for the next runs; nothing is compiled again."""
        self._check_open("Pipeline.set_params")
        if not -len(self._stages) <= stage < len(self._stages):
            raise ParameterError(
                f"Pipeline.set_params: stage must be below {len(self._stages)}, {stage} came."
            )
        changed = self._stages[stage]
        if changed.kernel is None or changed.call is None:
            raise ParameterError(f"Pipeline.set_params: stage {stage} ({changed.name}) has none.")
        merged = {**changed.params, **params}
        decl = changed.kernel.decl
        if number_kinds(decl, merged) != number_kinds(decl, changed.params):
            changed.call = check_call(
                changed.kernel, changed.inputs, changed.output, number_kinds(decl, merged)
            )
            self._nodes = None
        changed.values = pack(decl, changed.call.program.params, merged)
        changed.params = merged

    # running ----------------------------------------------------------------------------------
    def run(self, *, profile: bool = False) -> None:
        """Runs every stage in order; with ``profile`` each pass is timed by itself.

        On a device with a queue of its own the whole pipeline goes there at once and the call
        returns; reading waits for it.
        """
        self._check_open("Pipeline.run")
        nodes = self._plan()
        engine = self._engine
        if engine is None:
            return
        for node in nodes:
            node.check()
        if profile:
            self._seconds = []
            for node in nodes:
                start = time.perf_counter()
                node.run(engine)
                engine.synchronize()
                self._seconds.append(time.perf_counter() - start)
            return
        with engine.together():
            for node in nodes:
                node.run(engine)

    def _plan(self) -> list[Node]:
        if self._nodes is None:
            self._nodes = melt(self._stages)
            self._seconds = []
        return self._nodes

    # showing ----------------------------------------------------------------------------------
    def explain(self) -> str:
        """The plan in words: stages, passes, bytes moved and, after a profiled run, times."""
        nodes = self._plan()
        where = self._engine.id if self._engine is not None else "no device yet"
        lines = [f"pipeline on {where}: {self.stage_count} stages in {self.passes} passes"]
        for number, stage in enumerate(self._stages):
            shape = stage.output.shape if stage.output is not None else ""
            gone = any(stage in node.stages[:-1] for node in nodes)
            lines.append(f"  stage {number}: {stage.name} {shape}{', melted' if gone else ''}")
        for number, node in enumerate(nodes):
            took = f", {self._seconds[number] * 1e3:.3f} ms" if self._seconds else ""
            members = " + ".join(stage.name for stage in node.stages)
            lines.append(f"  pass {number}: {members}, {node.moved:,} bytes{took}")
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
            live.untrack("pipeline", "any", 0)

    def __del__(self) -> None:
        if hasattr(self, "_closed"):
            self.close()

    def __repr__(self) -> str:
        return f"<Pipeline of {self.stage_count} stages{' closed' if self._closed else ''}>"


def pipeline() -> Pipeline:
    """A new, empty pipeline."""
    return Pipeline()


def pipeline_add(p: Pipeline, spec: Mapping[str, Any]) -> Pipeline:
    """Adds a stage and returns the pipeline."""
    return p.add(spec)


def pipeline_run(p: Pipeline) -> None:
    """Runs a pipeline."""
    p.run()


def free_pipeline(p: Pipeline) -> None:
    """Closes a pipeline. Doing it twice is fine."""
    p.close()
