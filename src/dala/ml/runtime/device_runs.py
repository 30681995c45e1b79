"""Runs of a session on ONNX Runtime's GPU: device-bound values, and one captured graph per shape.

A plain run records, submits and waits for every operator and allocates its tensors. Here inputs and
outputs stay bound to memory of the device, and the commands of the first run with a shape are
captured and replayed. A replay is trusted only after it was compared with a plain run on other
values: copies that are no kernel, such as a last Flatten, are not captured by every version.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from dala import forks
from dala.ml.runtime.packing import PACKED, unpack
from dala.ml.runtime.providers import first_line, runtime
from dala.typing import NDArray

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_log = logging.getLogger("dala")

#: Shapes with values on the device and a captured graph; the one used longest ago is dropped.
MAX_SHAPES: Final = 8
#: The device's name in ONNX Runtime.
_DEVICE: Final = "webgpu"
#: The id of runs that are neither captured nor replayed.
_PLAIN: Final = "-1"
#: Differences between a replay and a plain run: they execute the same kernels on the same values.
_SAME: Final = {"rtol": 1e-3, "atol": 1e-5}

#: Objects of ONNX Runtime, which has no types.
OrtValue: TypeAlias = Any
Binding: TypeAlias = Any
RunOptions: TypeAlias = Any
#: The shape of each output by name, for inputs by name; None if it is not known before the run.
OutputShapes: TypeAlias = Callable[[Mapping[str, NDArray]], "dict[str, tuple[int, ...]] | None"]


@dataclass
class _Bound:
    """Values on the device for one shape, and how a run uses them."""

    binding: Binding
    inputs: dict[str, OrtValue]
    outputs: dict[str, OrtValue]
    #: The shapes of the outputs that the only one holds; None if it holds none.
    parts: Mapping[str, tuple[int, ...]] | None
    #: The options of a run that captures and replays, or that does neither.
    options: RunOptions
    #: The id of the captured graph; "-1" if there is none.
    graph: str

    def run(
        self, session: InferenceSession, given: Mapping[str, NDArray], options: RunOptions = None
    ) -> dict[str, NDArray]:
        for name, value in self.inputs.items():
            value.update_inplace(given[name])
        session.run_with_iobinding(self.binding, options or self.options)
        if self.parts is not None:
            return unpack(self.outputs[PACKED].numpy(), self.parts)
        return {name: value.numpy() for name, value in self.outputs.items()}


@dataclass(eq=False)
class DeviceRuns:
    """The runs of one session on ONNX Runtime's GPU. Any thread may use it."""

    #: Whose runs they are.
    session: InferenceSession
    #: Tells the shapes of the outputs.
    shapes: OutputShapes
    #: Of the outputs.
    dtypes: Mapping[str, type[np.generic]]
    #: Whether runs may be captured.
    captures: bool
    #: Whether the session has one output, which holds those of the model.
    packed: bool = False
    #: Why a shape is not captured, by shape.
    notes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._bound: OrderedDict[tuple[object, ...], _Bound] = OrderedDict()
        self._lock = forks.lock()
        self._count = 0

    def run(self, given: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return the outputs by name."""
        key = tuple((name, array.shape) for name, array in given.items())
        with self._lock:
            bound = self._bound.get(key)
            if bound is not None:
                self._bound.move_to_end(key)
                try:
                    return bound.run(self.session, given)
                except BaseException:
                    self._drop(key)  # a failed run may leave a graph that cannot be replayed
                    raise
            shapes = self.shapes(given)
            if shapes is None:
                return self._unbound(given)
            return self._first(key, given, shapes)

    @property
    def captured(self) -> int:
        """The number of shapes with a captured graph."""
        return sum(bound.graph != _PLAIN for bound in self._bound.values())

    def close(self) -> None:
        """Release the values and graphs."""
        with self._lock:
            for key in list(self._bound):
                self._drop(key)

    def _unbound(self, given: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Run with outputs whose shapes are not known before."""
        names = [port.name for port in self.session.get_outputs()]
        made = self.session.run(names, dict(given), _options(_PLAIN) if self.captures else None)
        return dict(zip(names, made, strict=True))

    def _first(
        self,
        key: tuple[object, ...],
        given: Mapping[str, NDArray],
        shapes: Mapping[str, tuple[int, ...]],
    ) -> dict[str, NDArray]:
        """Bind values for a new shape, capture its graph if that gives the right results, run."""
        while len(self._bound) >= MAX_SHAPES:
            self._drop(next(iter(self._bound)))
        self._count += 1
        graph = str(self._count) if self.captures else _PLAIN
        bound = self._bind(given, shapes, graph)
        title = ", ".join(str(array.shape) for array in given.values())
        problem = ""
        if graph != _PLAIN:
            try:
                bound.run(self.session, given)
                problem = self._wrong(bound, given)
            except Exception as error:
                problem = first_line(error)
        if problem:
            self._release(bound)
            self.notes[title] = problem
            _log.info("dala: inputs of %s are not captured: %s", title, problem)
            bound = self._bind(given, shapes, _PLAIN)
        made = bound.run(self.session, given)
        self._bound[key] = bound
        return made

    def _wrong(self, bound: _Bound, given: Mapping[str, NDArray]) -> str:
        """Return why a captured graph cannot be replayed, or ""."""
        rng = np.random.default_rng(0)
        # Other integers may be no valid indexes.
        other = {
            name: np.asarray(rng.random(a.shape), a.dtype) if a.dtype.kind == "f" else a
            for name, a in given.items()
        }
        for value in bound.outputs.values():  # what no command writes keeps these values
            seen = value.numpy()
            value.update_inplace(np.full_like(seen, np.nan if seen.dtype.kind == "f" else 77))
        replayed = bound.run(self.session, other)
        plain = bound.run(self.session, other, _options(_PLAIN))
        for name, wanted in plain.items():
            if not np.allclose(replayed[name], wanted, equal_nan=True, **_SAME):
                return f"a replay gives another {name!r} than a plain run"
        return ""

    def _bind(
        self, given: Mapping[str, NDArray], shapes: Mapping[str, tuple[int, ...]], graph: str
    ) -> _Bound:
        values = runtime().OrtValue
        binding = self.session.io_binding()
        inputs, outputs = {}, {}
        for name, array in given.items():
            inputs[name] = values.ortvalue_from_numpy(array, _DEVICE, 0)
            binding.bind_ortvalue_input(name, inputs[name])
        bound, dtypes = shapes, self.dtypes
        if self.packed:
            bound, dtypes = {PACKED: (sum(map(prod, shapes.values())),)}, {PACKED: np.float32}
        for name, shape in bound.items():
            outputs[name] = values.ortvalue_from_shape_and_type(
                list(shape), dtypes[name], _DEVICE, 0
            )
            binding.bind_ortvalue_output(name, outputs[name])
        options = _options(graph) if self.captures else None
        return _Bound(binding, inputs, outputs, shapes if self.packed else None, options, graph)

    def _drop(self, key: tuple[object, ...]) -> None:
        self._release(self._bound.pop(key))

    def _release(self, bound: _Bound) -> None:
        if bound.graph == _PLAIN:
            return
        try:
            self.session.release_captured_graph(int(bound.graph))
        except Exception as error:  # it was not captured, or the device is lost
            _log.debug("dala: a captured graph was not released: %s", first_line(error))


def _options(graph: str) -> RunOptions:
    options = runtime().RunOptions()
    options.add_run_config_entry("gpu_graph_id", graph)
    return options
