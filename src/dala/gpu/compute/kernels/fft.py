"""Fourier transforms. A complex number is a pair, real and imaginary, in a last axis of 2."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.operation import Operation
from dala.gpu.compute.params import Parameter


class _Transform(Operation):
    takes = ("a",)
    dtypes = ("f32", "f64")

    def _lengths(self, shape: tuple[int, ...], axes: int, pairs: bool) -> tuple[int, ...]:
        """The shape without the pairs' axis, checked."""
        name = self.takes[0]
        if pairs and (not shape or shape[-1] != 2):
            raise self.shape_error(
                f"takes {name!r} of complex numbers, which are pairs in a last axis of 2; shape "
                f"{shape} came."
            )
        lengths = shape[:-1] if pairs else shape
        if len(lengths) < axes or 0 in lengths[len(lengths) - axes :]:
            raise self.shape_error(
                f"transforms the last {axes} axes{' before the pairs' if pairs else ''}, which "
                f"must be there and not empty; {name!r} of shape {shape} came."
            )
        return lengths


class Fft(_Transform):
    """The discrete Fourier transform: out[k] = sum over n of a[n] * exp(-2 pi i k n / N)

    Over the last axis, or the last two with ``axes`` 2, of any length. A real input (..., N) gives
    all N complex numbers, (..., N, 2). ``complex`` says whether the input is complex, (..., N, 2);
    left out, it is so if the output has the input's shape, and a call that makes its output takes
    real numbers.
    """

    title = "fft"
    options = (Parameter("complex", "bool"), Parameter("axes", "int", 1, low=1, high=2))

    def result(self, inputs: tuple[Tensor, ...], values: dict[str, Any]) -> Tensor:
        lengths = self._lengths(inputs[0].shape, values["axes"], bool(values["complex"]))
        return Tensor((*lengths, 2), inputs[0].dtype)

    def fit(
        self, inputs: tuple[Tensor, ...], output: Tensor, values: dict[str, Any]
    ) -> dict[str, Any]:
        if values["complex"] is None:
            values = {**values, "complex": output.shape == inputs[0].shape}
        self.want(output, self.result(inputs, values))
        return values

    def define(self, task: Task, a: Any) -> Any:
        a = _joined(a) if task["complex"] else a.astype(np.float64)
        return _split(np.fft.fftn(a, axes=range(-task["axes"], 0)))


class Ifft(_Transform):
    """The inverse of fft: out[n] = 1/N * sum over k of a[k] * exp(2 pi i k n / N)

    Over the last axis, or the last two with ``axes`` 2, of complex numbers (..., N, 2). An output
    of shape (..., N) gets the real parts.
    """

    title = "ifft"
    options = (Parameter("axes", "int", 1, low=1, high=2),)

    def result(self, inputs: tuple[Tensor, ...], values: dict[str, Any]) -> Tensor:
        self._lengths(inputs[0].shape, values["axes"], True)
        return inputs[0]

    def fit(
        self, inputs: tuple[Tensor, ...], output: Tensor, values: dict[str, Any]
    ) -> dict[str, Any]:
        lengths = self._lengths(inputs[0].shape, values["axes"], True)
        pairs = output.shape != lengths
        self.want(output, Tensor((*lengths, 2) if pairs else lengths, inputs[0].dtype))
        return {**values, "complex": pairs}

    def define(self, task: Task, a: Any) -> Any:
        found = np.fft.ifftn(_joined(a), axes=range(-task["axes"], 0))
        return _split(found) if task["complex"] else found.real


def _joined(pairs: Any) -> Any:
    return np.ascontiguousarray(pairs, np.float64).view(np.complex128)[..., 0]


def _split(numbers: Any) -> Any:
    return np.ascontiguousarray(numbers).view(np.float64).reshape(*numbers.shape, 2)


OPERATIONS = (Fft, Ifft)
