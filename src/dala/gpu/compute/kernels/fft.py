"""Fourier transforms. Complex numbers are pairs, real and imaginary, in a last axis of 2."""

from __future__ import annotations

import numpy as np

from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.operation import Inputs, Operation, OperationValues
from dala.gpu.compute.params import Parameter
from dala.typing import NDArray


class _Transform(Operation):
    dtypes = ("f32", "f64")

    def _lengths(self, shape: tuple[int, ...], axes: int, pairs: bool) -> tuple[int, ...]:
        """Return the shape without the axis of pairs; raise if it cannot be transformed."""
        name = self.takes[0]
        if pairs and (not shape or shape[-1] != 2):
            raise self.wrong_shape(name, "of shape (..., 2) for complex numbers", shape)
        lengths = shape[:-1] if pairs else shape
        if len(lengths) < axes or 0 in lengths[len(lengths) - axes :]:
            before = " before the pairs" if pairs else ""
            raise self.wrong_shape(
                name, f"of {axes} or more axes{before} that are not empty", shape
            )
        return lengths


class Fft(_Transform):
    """Compute the discrete Fourier transform.

    ``out[k] = sum over n of a[n] * exp(-2 pi i k n / N)``

    Transforms the last axis, or the last two if ``axes`` is 2, of any length. A real input (..., N)
    gives all N complex numbers, (..., N, 2). ``complex`` says whether the input is complex,
    (..., N, 2); by default it is if the output has the input's shape, and real without an output.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([1, 2, 3, 4], np.float32)
    >>> get("fft")(a).round(3).tolist()                 # pairs of real and imaginary parts
    [[10.0, 0.0], [-2.0, 2.0], [-2.0, 0.0], [-2.0, -2.0]]
    """

    title = "fft"
    options = (Parameter("complex", "bool"), Parameter("axes", "int", 1, low=1, high=2))

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        lengths = self._lengths(inputs[0].shape, values["axes"], bool(values["complex"]))
        return Tensor((*lengths, 2), inputs[0].dtype)

    def fit(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        if values["complex"] is None:
            values = {**values, "complex": output.shape == inputs[0].shape}
        self.want(output, self.result(inputs, values))
        return values

    def define(self, task: Task, a: NDArray) -> NDArray:
        a = _joined(a) if task["complex"] else a.astype(np.float64)
        return _split(np.fft.fftn(a, axes=range(-task["axes"], 0)))


class Ifft(_Transform):
    """Compute the inverse discrete Fourier transform.

    ``out[n] = 1/N * sum over k of a[k] * exp(2 pi i k n / N)``

    Transforms the last axis, or the last two if ``axes`` is 2, of complex numbers (..., N, 2). An
    output of shape (..., N) receives the real parts.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([[10, 0], [-2, 2], [-2, 0], [-2, -2]], np.float32)
    >>> get("ifft")(a).round(3).tolist()
    [[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]]
    """

    title = "ifft"
    options = (Parameter("axes", "int", 1, low=1, high=2),)

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        self._lengths(inputs[0].shape, values["axes"], True)
        return inputs[0]

    def fit(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        lengths = self._lengths(inputs[0].shape, values["axes"], True)
        pairs = output.shape != lengths
        self.want(output, Tensor((*lengths, 2) if pairs else lengths, inputs[0].dtype))
        return {**values, "complex": pairs}

    def define(self, task: Task, a: NDArray) -> NDArray:
        found = np.fft.ifftn(_joined(a), axes=range(-task["axes"], 0))
        return _split(found) if task["complex"] else found.real


def _joined(pairs: NDArray) -> NDArray:
    return np.ascontiguousarray(pairs, np.float64).view(np.complex128)[..., 0]


def _split(numbers: NDArray) -> NDArray:
    return np.ascontiguousarray(numbers).view(np.float64).reshape(*numbers.shape, 2)
