"""Models as kernels: stages of a pipeline, run by ONNX Runtime wherever the buffers are.

``preprocess -> mobilenet_v2 -> softmax`` is a pipeline like any other. The tensor goes through the
host where the device's memory is not its own. A model with several outputs gives the one that the
parameter ``output`` names.
"""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import numpy as np

from dala.errors import ModelError
from dala.gpu.compute.operation import Operation, Task, Tensor
from dala.gpu.compute.params import Parameter
from dala.ml.model import Model
from dala.ml.models import NAMES, find_model
from dala.ml.spec import ModelSpec

_loaded: dict[str, Model] = {}
_lock = threading.Lock()


def loaded(name: str) -> Model:
    """The model of a kernel, loaded once for the process."""
    from dala.ml.gpu import load_model

    with _lock:
        found = _loaded.get(name)
        if found is None:
            found = _loaded[name] = load_model(name)
        return found


class ModelOperation(Operation):
    """A model as an operation; ONNX Runtime runs it on host memory on every engine."""

    takes = ("input",)
    dtypes = ("f32",)
    host = True  # ONNX Runtime takes and returns arrays in host memory

    def result(self, inputs: tuple[Tensor, ...], values: dict[str, Any]) -> Tensor:
        model = loaded(self.name)
        (port,), given = model.ports, inputs[0].shape
        if not port.takes(given):
            raise self.shape_error(
                f"takes 'input' {port}, {given} came. The kernel 'preprocess' makes it of a "
                f"picture: load_model({self.name!r}).preprocess has its parameters."
            )
        shape = self._output(model, values).shape
        return Tensor(tuple(given[0] if n is None else n for n in shape), "f32")

    def _output(self, model: Model, values: dict[str, Any]) -> Any:
        wanted = values.get("output") or ""
        for port in model.output_ports:
            if wanted in port.name:
                return port
        raise ModelError(f"run_kernel: {self.name!r} has no output {wanted!r}.")

    def define(self, task: Task, tensor: Any) -> Any:
        model = loaded(self.name)
        wanted = self._output(model, dict(task.values)).name
        return model.run(np.ascontiguousarray(tensor, np.float32))[wanted]


def _operation(spec: ModelSpec) -> type[ModelOperation]:
    listed: tuple[Parameter, ...] = ()
    if spec.outputs:
        listed = (Parameter("output", "choice", spec.outputs[0], choices=spec.outputs),)

    class Declared(ModelOperation):
        title = spec.name
        options: ClassVar[tuple[Parameter, ...]] = listed

    text = f"""The model {spec.name!r} on a tensor that ``preprocess`` made

    ONNX Runtime runs it. It is loaded on first use; ``dala models pull {spec.name}`` fetches the
    weights.
    """
    setattr(Declared, "__doc__", text)  # noqa: B010 - instances show it through a property
    Declared.__qualname__ = Declared.__name__ = f"{spec.name}_operation"
    return Declared


OPERATIONS = tuple(_operation(spec) for spec in map(find_model, NAMES) if spec is not None)
