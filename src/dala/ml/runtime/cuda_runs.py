"""Runs of a session on ONNX Runtime's CUDA provider, on memory and the stream of a device of ours.

Inputs are buffers of the device, and outputs are memory that the device shares: what a kernel wrote
goes into a model as it is, and only results cross the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from dala.gpu.compute import Buffer, from_array, from_dlpack
from dala.ml.runtime.providers import CudaPlace, runtime
from dala.typing import NDArray

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from dala.ml.runtime.device_runs import OrtValue

#: Tensors that buffers can share, by ONNX Runtime's names.
_SHARED: Final = {
    "tensor(float)", "tensor(double)", "tensor(int32)", "tensor(int64)", "tensor(uint8)",
}  # fmt: skip
#: A run ends when its work is enqueued: what reads the results follows it on the stream.
_NO_WAIT: Final = "disable_synchronize_execution_providers"


class CudaRuns:
    """The runs of one session. Any thread may use it."""

    #: Where outputs are.
    memory: ClassVar = "cuda"
    #: Why shapes are not captured: none is.
    notes: ClassVar[dict[str, str]] = {}

    def __init__(self, session: InferenceSession, place: CudaPlace) -> None:
        self.session = session
        self.device = place.device
        self._place = place
        self._outputs = [port.name for port in session.get_outputs()]
        self._options = runtime().RunOptions()
        if _SHARED.issuperset(port.type for port in session.get_outputs()):
            self._options.add_run_config_entry(_NO_WAIT, "1")

    def run(self, given: Mapping[str, NDArray | Buffer]) -> dict[str, NDArray]:
        """Return the outputs by name."""
        binding, stream = self.session.io_binding(), self._place.stream
        for name, value in given.items():
            if isinstance(value, np.ndarray) and (value.dtype != np.float32 or not value.size):
                binding.bind_cpu_input(name, value)  # few bytes
                continue
            tensor = value if isinstance(value, Buffer) else from_array(value, device=self.device)
            lent = runtime().OrtValue.from_dlpack(tensor.__dlpack__(stream=stream))
            binding.bind_ortvalue_input(name, lent)
        for name in self._outputs:
            binding.bind_output(name, self.memory, self._place.ordinal)
        self.session.run_with_iobinding(binding, self._options)
        return dict(zip(self._outputs, map(self._read, binding.get_outputs()), strict=True))

    def _read(self, output: OrtValue) -> NDArray:
        if output.data_type() not in _SHARED or 0 in output.shape():
            made: NDArray = output.numpy()
            return made
        with from_dlpack(output, device=self.device) as shared:
            return shared.numpy()

    def close(self) -> None:
        """Nothing to do: runs keep nothing."""
