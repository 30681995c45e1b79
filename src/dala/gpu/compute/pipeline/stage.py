"""Stages of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dala.gpu.compute.buffer import Buffer
from dala.gpu.compute.call.plans import BoundCall, Values
from dala.gpu.compute.call.spec import FullSpec, Spec, check_copy, read_spec
from dala.gpu.compute.kernel import get as find_kernel
from dala.gpu.compute.params import check_mapping
from dala.typing import ParamValue

if TYPE_CHECKING:
    from dala.gpu.compute.runnable import Runnable


class Stage:
    """A checked stage of a pipeline: a kernel, a copy or a barrier."""

    def __init__(self, spec: Spec) -> None:
        given = read_spec(spec, "Pipeline.add")
        self.op = given["op"]
        self.kernel: Runnable | None = None
        self.inputs: list[Buffer] = []
        self.output: Buffer | None = None
        self.params: dict[str, ParamValue] = {}
        self.call: BoundCall | None = None
        self.values: Values = ()
        if self.op == "run_kernel":
            self._bind(given)
        elif self.op == "copy_buffer":
            check_copy(given["src"], given["dst"], "Pipeline.add")
            self.inputs, self.output = [given["src"]], given["dst"]

    def _bind(self, spec: FullSpec) -> None:
        kernel = find_kernel(spec["kernel"], "Pipeline.add")
        check_mapping(kernel.name, spec["params"])
        params = dict(spec["params"])
        self.call, self.values = kernel.bind(spec["inputs"], spec["output"], params)
        self.kernel, self.params = kernel, params
        self.inputs, self.output = list(spec["inputs"]), spec["output"]

    @property
    def name(self) -> str:
        """The kernel's name, "copy_buffer" or "barrier"."""
        return self.kernel.name if self.kernel is not None else self.op

    def rebind(self, old: Buffer, new: Buffer) -> None:
        """Replace one of its buffers."""
        self.inputs = [new if b is old else b for b in self.inputs]
        if self.output is old:
            self.output = new

    def spec(self) -> Spec:
        """Return the stage as a dict that ``Pipeline.add`` accepts."""
        if self.output is None:
            return {"op": self.op}
        if self.kernel is None:
            return {"op": self.op, "src": self.inputs[0], "dst": self.output}
        return {
            "op": self.op,
            "kernel": self.kernel.name,
            "inputs": list(self.inputs),
            "output": self.output,
            "params": dict(self.params),
        }
