"""A model in ONNX Runtime: its inputs and outputs, and runs with memory bound to them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dala.errors import DtypeMismatch, FreedError, ModelError, ShapeMismatch
from dala.ml.providers import Choice, candidates, choose, first_line, open_session, runtime

#: NumPy's dtype of ONNX Runtime's tensor types.
DTYPES: Final = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
    "tensor(int8)": np.int8,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
}


@dataclass(frozen=True)
class Port:
    """An input or an output: None in the shape is any number."""

    name: str
    shape: tuple[int | None, ...]
    dtype: Any

    def __str__(self) -> str:
        shape = ", ".join("any" if n is None else str(n) for n in self.shape)
        return f"{self.name} ({shape}) {np.dtype(self.dtype).name}"

    def takes(self, shape: tuple[int, ...]) -> bool:
        """True for shapes that fit."""
        return len(shape) == len(self.shape) and all(
            n is None or n == m for n, m in zip(self.shape, shape, strict=True)
        )


class Session:
    """Runs a model. May be called from any thread."""

    def __init__(
        self, source: bytes | str, title: str, provider: str = "auto", threads: int | None = None
    ) -> None:
        self.title = title
        self._source = source
        self._asked = provider
        self._threads = threads
        self._names = candidates(provider)
        self._session, self.choice = choose(source, self._names, provider, threads, title)
        self._lock = threading.Lock()
        self.inputs = tuple(map(_port, self._session.get_inputs()))
        self.outputs = tuple(map(_port, self._session.get_outputs()))
        self.metadata: dict[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)

    @property
    def provider(self) -> str:
        """The provider that runs it, by our name for it."""
        return self.choice.name

    def close(self) -> None:
        """Lets go of the session. Closing twice is fine."""
        self._session = None

    def run(self, given: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """Outputs by name for inputs by name: arrays of the right dtype, checked here."""
        session = self._session
        if session is None:
            raise FreedError(f"predict: the model {self.title} was closed. Load it again.")
        self._check(given)
        return self._bound(session, given)

    def measure(self, given: Mapping[str, Any], rounds: int = 5) -> Choice:
        """Runs once, and where several providers work, takes the one that is quickest."""
        self.run(given)
        if self._asked != "auto" or len(self._names) < 2:
            return self.choice
        times: dict[str, float] = {}
        sessions: dict[str, Any] = {}
        tried = dict(self.choice.tried)
        for name in self._names:
            try:
                known = name == self.choice.name
                session = (
                    self._session if known else open_session(self._source, name, self._threads)
                )
                self._bound(session, given)
                best = min(self._timed(session, given) for _ in range(rounds))
            except Exception as error:
                tried[name] = f"did not run: {first_line(error)}"
                continue
            times[name], sessions[name] = best, session
            tried[name] = f"{best * 1e3:.2f} ms a run"
        quickest = min(times, key=lambda name: times[name])
        self._session, self.choice = sessions[quickest], Choice(quickest, tried)
        return self.choice

    def _timed(self, session: Any, given: Mapping[str, Any]) -> float:
        start = time.perf_counter()
        self._bound(session, given)
        return time.perf_counter() - start

    def _bound(self, session: Any, given: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        value = runtime().OrtValue.ortvalue_from_numpy
        binding = session.io_binding()
        batch = 1
        for name, array in given.items():
            binding.bind_ortvalue_input(name, value(array))
            batch = array.shape[0] if array.ndim else 1
        made: dict[str, Any] = {}
        for port in self.outputs:
            shape = self._known(port, batch)
            if shape is None or port.dtype is None:
                binding.bind_output(port.name, "cpu")
            else:
                made[port.name] = np.empty(shape, port.dtype)
                binding.bind_ortvalue_output(port.name, value(made[port.name]))
        try:
            session.run_with_iobinding(binding)
        except Exception as error:
            raise ModelError(f"predict: {self.title} failed: {first_line(error)}") from None
        if len(made) < len(self.outputs):
            found = binding.copy_outputs_to_cpu()
            for port, array in zip(self.outputs, found, strict=True):
                made.setdefault(port.name, array)
        return {port.name: made[port.name] for port in self.outputs}

    def _known(self, port: Port, batch: int) -> tuple[int, ...] | None:
        """The shape an output will have, where it can be told before the run."""
        if self.provider != "cpu" or not port.shape or None in port.shape[1:]:
            return None
        first = port.shape[0]
        if first is None and any(i.shape[:1] != (None,) for i in self.inputs):
            return None
        return (batch if first is None else first, *port.shape[1:])  # type: ignore[arg-type]

    def _check(self, given: Mapping[str, Any]) -> None:
        wanted = {port.name for port in self.inputs}
        if set(given) != wanted:
            raise ModelError(
                f"predict: {self.title} takes {', '.join(map(str, self.inputs))}; "
                f"{', '.join(map(repr, given)) or 'nothing'} came."
            )
        for port in self.inputs:
            array = given[port.name]
            if not port.takes(array.shape):
                raise ShapeMismatch(
                    f"predict: input {port} of {self.title} got shape {array.shape}. Give a "
                    "picture, which is prepared the model's way, or a tensor of that shape."
                )
            if array.dtype != port.dtype:
                raise DtypeMismatch(
                    f"predict: input {port} of {self.title} got {array.dtype}. "
                    f"Convert it: x.astype('{np.dtype(port.dtype).name}')."
                )


def _port(found: Any) -> Port:
    shape = tuple(n if isinstance(n, int) and n > 0 else None for n in found.shape or ())
    return Port(found.name, shape, DTYPES.get(found.type))
