"""Models as operations, so that a pipeline can hold ``preprocess -> mobilenet_v2 -> softmax``.

ONNX Runtime runs them on host memory, so tensors on a GPU are downloaded and uploaded. For models
with several outputs, the parameter ``output`` selects one.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dala import forks
from dala.errors import ModelError
from dala.gpu.compute.operation import Operation, OperationValues, Task, Tensor
from dala.gpu.compute.params import Parameter
from dala.ml.model import Model
from dala.ml.models import NAMES, find_model
from dala.ml.results import Prediction
from dala.ml.runtime.session import Port
from dala.ml.spec import ModelSpec
from dala.typing import NDArray

_loaded: dict[str, Model[Prediction]] = {}
_lock = forks.lock()


def loaded(name: str) -> Model[Prediction]:
    """Return a model by name, loaded once per process."""
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

    def result(self, inputs: tuple[Tensor, ...], values: OperationValues) -> Tensor:
        model = loaded(self.name)
        (port,), given = model.ports, inputs[0].shape
        if not port.takes(given):
            raise self.shape_error(
                f"input must be {port}, got shape {given}. The kernel 'preprocess' makes it from a "
                f"picture, with the parameters in load_model({self.name!r}).preprocess."
            )
        shape = self._output(model, values).shape
        return Tensor(tuple(given[0] if n is None else n for n in shape), "f32")

    def _output(self, model: Model[Prediction], values: OperationValues) -> Port:
        wanted = values.get("output") or ""
        for port in model.output_ports:
            if wanted in port.name:
                return port
        raise ModelError(f"run_kernel: {self.name!r} has no output {wanted!r}.")

    def define(self, task: Task, *arrays: NDArray) -> NDArray:
        (tensor,) = arrays
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
