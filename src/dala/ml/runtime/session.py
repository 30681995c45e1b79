"""An ONNX Runtime session: inputs, outputs, and runs."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import numpy as np

from dala import budget, forks, memory
from dala.errors import (
    DeviceError,
    DeviceLostError,
    DtypeMismatch,
    FreedError,
    ModelError,
    ShapeMismatch,
)
from dala.gpu.compute import Buffer
from dala.gpu.compute.dtypes import NUMPY
from dala.memory import Held
from dala.ml.runtime.cuda_runs import CudaRuns
from dala.ml.runtime.device_runs import DeviceRuns
from dala.ml.runtime.onnx_graph import MAX_ELEMENTS, ModelSource, open_model, read_graph
from dala.ml.runtime.providers import (
    OpenedSession,
    ProviderChoice,
    candidates,
    choose,
    cuda_place,
    first_line,
    open_best,
    open_session,
    runtime,
)
from dala.trace.recorder import OFF, tracer
from dala.typing import NDArray

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

#: NumPy dtypes of ONNX Runtime's tensor types.
DTYPES: Final = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(uint16)": np.uint16,
    "tensor(int16)": np.int16, "tensor(uint32)": np.uint32, "tensor(uint64)": np.uint64,
    "tensor(int32)": np.int32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_,
}  # fmt: skip


#: A value of an input, and runs that are bound to a device.
Tensor: TypeAlias = NDArray | Buffer
Runs: TypeAlias = DeviceRuns | CudaRuns

_reopening: Final = forks.lock()


@dataclass(frozen=True)
class Port:
    """An input or output. None in the shape means any size; a dtype of None is not in NumPy."""

    name: str
    shape: tuple[int | None, ...]
    dtype: type[np.generic] | None
    #: The type in ONNX Runtime, such as "tensor(float)".
    kind: str = ""
    #: The name of the first axis, if its size is variable.
    batch: str = ""

    def __str__(self) -> str:
        shape = ", ".join("any" if n is None else str(n) for n in self.shape)
        dtype = self.kind if self.dtype is None else np.dtype(self.dtype).name
        return f"{self.name} ({shape}) {dtype}"

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Return True if a shape matches."""
        same = len(shape) == len(self.shape)
        return same and all(n in (None, m) for n, m in zip(self.shape, shape, strict=True))


class Session:
    """An ONNX Runtime session. Any thread may use it."""

    def __init__(
        self, source: bytes | str, title: str, provider: str = "auto", threads: int | None = None
    ) -> None:
        self.title = title
        self._asked = provider
        self._threads = threads
        self._home = forks.Home()
        if isinstance(source, str):
            made, graph = open_model(Path(source), title)
        else:
            made, graph = ModelSource(source), read_graph(memoryview(source))
        #: The structure of the file.
        self._source, self.graph = made, graph
        #: ONNX Runtime holds the weights; its own working memory is not known.
        self._held = Held("model", budget.accounts())
        model = made.model
        size = len(model) if isinstance(model, bytes) else model.stat().st_size
        self._held.resize(size, "load_model")
        weakref.finalize(self, self._held.release).atexit = False
        wanted = candidates(provider)
        self._names = wanted.names
        opened, self.choice = choose(made, wanted, provider, threads, title, self.graph)
        self._session = opened.session
        self._packed = opened.packed
        #: False after an output had another shape than declared.
        self._trusted = True
        try:
            self.inputs, self.outputs = (
                tuple(_port(p.name, p.shape, p.type) for p in ports)
                for ports in (self._session.get_inputs(), self._session.get_outputs())
            )
            if self._packed:  # they are of f32, and their only variable axis is the batch
                declared = self.graph.outputs
                self.outputs = tuple(_port(v.name, v.shape, "tensor(float)") for v in declared)
            self.metadata: dict[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)
        except Exception as error:
            self._session = None
            raise ModelError(
                f"load_model: the inputs and outputs of {title} cannot be read: {first_line(error)}"
            ) from error
        for port in (*self.inputs, *self.outputs):
            if math.prod(n or 1 for n in port.shape) > MAX_ELEMENTS:
                self._session = None
                raise ModelError(f"load_model: {title} is refused: {port} has an absurd shape")
        self._names_in = {port.name for port in self.inputs}
        self._names_out = [port.name for port in self.outputs]
        #: Whether runs are captured on the device, and if not, why.
        self.capture = opened.capture
        #: Device-bound runs, on WebGPU, and on CUDA where it is the device.
        self._runs = self._device_runs(opened, self.provider)

    def _device_runs(self, opened: OpenedSession, provider: str) -> Runs | None:
        """Return device-bound runs, captured where WebGPU and the model allow; else None."""
        if provider == "cuda" and (place := cuda_place()) is not None:
            return CudaRuns(opened.session, place)
        if provider != "webgpu":
            return None
        dtypes = {port.name: port.dtype for port in self.outputs if port.dtype is not None}
        captures = opened.capture == "yes"
        return DeviceRuns(opened.session, self._output_shapes, dtypes, captures, opened.packed)

    def _output_shapes(self, given: Mapping[str, NDArray]) -> dict[str, tuple[int, ...]] | None:
        """Return the shapes of all outputs if they are known before the run, else None."""
        found: dict[str, tuple[int, ...]] = {}
        for port in self.outputs:
            shape = self._known(port, given) if self._trusted else None
            if shape is None or port.dtype is None:
                return None
            found[port.name] = shape
        return found

    @property
    def notes(self) -> dict[str, str]:
        """Why runs with a shape are not captured, by shape."""
        return dict(self._runs.notes) if self._runs is not None else {}

    @property
    def provider(self) -> str:
        """The name of the provider that runs it."""
        return self.choice.name

    @property
    def device(self) -> str:
        """The device whose buffers it takes as they are; "" if there is none."""
        return self._runs.device if isinstance(self._runs, CudaRuns) else ""

    def close(self) -> None:
        """Release the session. Closing twice is allowed."""
        self._held.release()
        self._source = ModelSource(b"")
        if not self._home.here:
            forks.keep((self._session, self._runs))
            self._session = self._runs = None
            return
        runs, self._runs = self._runs, None
        if runs is not None:
            runs.close()
        self._session = None

    def __del__(self) -> None:
        # In a forked child, freeing the parent's session would wait for its threads.
        if "_home" in self.__dict__ and not self._home.here:
            forks.keep((self.__dict__.get("_session"), self.__dict__.get("_runs")))

    def run(self, given: Mapping[str, Tensor]) -> dict[str, NDArray]:
        """Return the outputs by name, for inputs by name, which are checked.

        Buffers must be on :attr:`device`.
        """
        session = self._session
        if session is None:
            raise FreedError(f"predict: the model {self.title} is closed. Load it again.")
        budget.check_deadline("predict")
        self._check(given)
        if budget.accounts():
            self._check_memory(given)
        with tracer.span("model", self.title, provider=self.provider) if tracer.on else OFF:
            arrays = cast("Mapping[str, NDArray]", given)  # there are no others without CudaRuns
            if self._home.here and self._runs is not None:
                made = self._on_device(self._runs, arrays)
            else:
                made = self._plain(session if self._home.here else self._reopen(), arrays)
        budget.check_deadline("predict")  # a run of ONNX Runtime is one call
        return made

    def _on_device(self, runs: Runs, given: Mapping[str, NDArray]) -> dict[str, NDArray]:
        try:
            try:
                return runs.run(given)
            except Exception as error:
                if not self._trusted or "shape" not in str(error).lower():
                    raise
                # Files may declare other shapes than their outputs have.
                return self._distrusted(runs).run(given)
        except Exception as error:
            text = first_line(error)
            if "device" in text.lower() and "lost" in text.lower():
                raise DeviceLostError(
                    f"predict: the GPU of {self.title} was lost ({text}). Load the model again, "
                    "or with provider='cpu'."
                ) from None
            raise ModelError(
                f"predict: {self.title} failed on provider {self.provider!r}: {text}. If it keeps "
                "failing, load the model with provider='cpu'."
            ) from None

    def _distrusted(self, runs: Runs) -> Runs:
        """Return runs that do not rely on the declared shapes of the outputs."""
        self._trusted = False
        if not self._packed:
            return runs
        runs.close()
        opened = open_best(self._source, "webgpu", self._threads)
        self._session, self.capture, self._packed = opened
        made = self._device_runs(opened, "webgpu")
        assert made is not None
        self._runs = made
        return made

    def _reopen(self) -> InferenceSession:
        """Return a session of this process: a forked child has none of its parent's threads."""
        if self.provider != "cpu":
            raise DeviceError(
                f"predict: {self.title} runs on {self.provider}, which cannot be used in a process "
                "that was forked after it was loaded. Start processes with "
                "multiprocessing.get_context('spawn')."
            )
        with _reopening:
            if not self._home.here:
                forks.keep(self._session)
                self._session = open_session(self._source, "cpu", self._threads)
                self._home = forks.Home()
        return self._session

    def measure(self, given: Mapping[str, NDArray], rounds: int = 5) -> ProviderChoice:
        """Run once; with provider "auto", measure all providers and switch to the fastest."""
        self.run(given)
        if self._asked != "auto" or len(self._names) < 2:
            return self.choice
        times: dict[str, float] = {}
        sessions: dict[str, tuple[OpenedSession, Runs | None]] = {}
        tried = dict(self.choice.tried)
        for name in self._names:
            try:
                if name == self.choice.name:
                    opened = OpenedSession(self._session, self.capture, self._packed)
                    runs = self._runs
                else:
                    opened = open_best(self._source, name, self._threads, self.graph)
                    runs = self._device_runs(opened, name)
                self._timed(opened, runs, given)
                best = min(self._timed(opened, runs, given) for _ in range(rounds))
            except Exception as error:
                tried[name] = f"failed: {first_line(error)}"
                continue
            times[name], sessions[name] = best, (opened, runs)
            tried[name] = f"{best * 1e3:.2f} ms per run"
        fastest = min(times, key=lambda name: times[name])
        reason = f"{self.choice.reason}; it was the fastest of {', '.join(times)}"
        (self._session, self.capture, self._packed), self._runs = sessions[fastest]
        self.choice = ProviderChoice(fastest, tried, reason)
        return self.choice

    def _timed(
        self, opened: OpenedSession, runs: Runs | None, given: Mapping[str, NDArray]
    ) -> float:
        start = time.perf_counter()
        if runs is not None:
            runs.run(given)
        else:
            self._plain(opened.session, given)
        return time.perf_counter() - start

    def _plain(self, session: InferenceSession, given: Mapping[str, NDArray]) -> dict[str, NDArray]:
        names = self._names_out
        try:
            options = runtime().RunOptions()
            with budget.ending(lambda: setattr(options, "terminate", True)):
                made = session.run(names, given, options)
            return dict(zip(names, made, strict=True))
        except Exception as error:
            budget.check_deadline("predict")
            raise ModelError(f"predict: {self.title} failed: {first_line(error)}") from None

    def _known(self, port: Port, given: Mapping[str, Tensor]) -> tuple[int, ...] | None:
        """Return the shape of an output if it is known before the run, else None."""
        if self.provider not in ("cpu", "webgpu") or not port.shape or None in port.shape[1:]:
            return None
        first = port.shape[0]
        if first is None:
            # The size of the input whose first axis has the same name. Detectors have outputs of
            # unpredictable size.
            same = [given[i.name].shape[0] for i in self.inputs if port.batch == i.batch != ""]
            if not same:
                return None
            first = same[0]
        return (first, *(n or 0 for n in port.shape[1:]))

    def _check_memory(self, given: Mapping[str, Tensor]) -> None:
        """Raise MemoryLimitExceeded if the known tensors of a run need more than a limit leaves."""
        count = sum(array.nbytes for array in given.values())
        for port in self.outputs:
            shape = self._known(port, given)
            if shape is not None and port.dtype is not None:
                count += math.prod(shape) * np.dtype(port.dtype).itemsize
        memory.check(count, f"predict: {self.title}")

    def _check(self, given: Mapping[str, Tensor]) -> None:
        if given.keys() != self._names_in:
            raise ModelError(
                f"predict: the inputs of {self.title} must be {', '.join(map(str, self.inputs))}, "
                f"got {', '.join(map(repr, given)) or 'none'}."
            )
        for port in self.inputs:
            array = given[port.name]
            if not port.takes(array.shape):
                raise ShapeMismatch(
                    f"predict: input of {self.title} must be {port}, got shape {array.shape}. Pass "
                    "a tensor of that shape, or a picture."
                )
            dtype = NUMPY[array.dtype] if isinstance(array, Buffer) else array.dtype
            if port.dtype is not None and dtype != port.dtype:
                raise DtypeMismatch(
                    f"predict: input of {self.title} must be {port}, got {dtype}. "
                    f"Convert it: x.astype('{np.dtype(port.dtype).name}')."
                )


def _port(name: str, shape: Sequence[int | str | None] | None, kind: str) -> Port:
    first, *_ = shape or (None,)
    batch = first if isinstance(first, str) else ""
    sizes = tuple(n if isinstance(n, int) and n > 0 else None for n in shape or ())
    return Port(name, sizes, DTYPES.get(kind), kind, batch)
