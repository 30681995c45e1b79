"""Sources of exports: a list of filters, a kernel or a pipeline of buffers.

A source records its plan for the size of a picture and the values of its controls. Names in
``symbolic`` stay symbols; the others are plain numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from dala.arguments import Flag
from dala.errors import DalaError, ParameterError, ShapeError
from dala.gpu.compute import Buffer, Pipeline
from dala.gpu.compute.kernel import find
from dala.gpu.compute.kernels.filter import FilterParam
from dala.gpu.compute.operation import Operation
from dala.gpu.compute.passes.program import KernelProgram, Previous
from dala.gpu.compute.passes.state import remembered
from dala.gpu.compute.recording import Plan, Recorder, ShaderCache
from dala.gpu.compute.runnable import Runnable
from dala.media.filters.declarations import declared, parameters_of
from dala.media.filters.plans import PICTURE, Filter, Step, declared_steps, parted, plan
from dala.media.images import dtype_of
from dala.typing import NDArray
from dala.web.controls import Control, Numbers, Ranges, control, named

#: Symbols of the picture's size.
WIDTH: Final = "w"
HEIGHT: Final = "h"

#: Symbols of what a page gives kernels that ask for it, by role; the resolution is the output's.
GIVEN: Final = {
    "time": ("time",),
    "frame": ("frame",),
    "pointer": ("pointer.x", "pointer.y", "pointer.pressed"),
    "date": ("date.year", "date.month", "date.day", "date.seconds"),
}

#: Formats of the picture that a chain takes, and the array of one of h times w pixels.
FORMATS: Final = ("rgba", "nv12", "i420")


class WebSource(ABC):
    """A chain that can be recorded."""

    #: For the title of a page.
    name: str
    controls: list[Control]
    #: (width, height) of the picture where the chain takes one size only.
    size: tuple[int, int] | None = None
    #: Formats of the picture, as pages may give it.
    formats: tuple[str, ...] = ("rgba",)
    #: What a page gives the kernels: keys of :data:`GIVEN`.
    roles: tuple[str, ...] = ()
    #: True if no stage reads the picture.
    generator = False
    _shaders: ShaderCache

    @abstractmethod
    def record(self, values: Numbers, symbolic: Collection[str], format: str = "rgba") -> Plan:
        """Record the plan for these numbers."""

    def _given(
        self,
        index: int,
        params: Mapping[str, Any],
        recorder: Recorder,
        values: Numbers,
        symbolic: Collection[str],
    ) -> dict[str, Any]:
        """Return the parameters of a filter, with the values of its controls."""
        own = {c.param: c for c in self.controls if c.index == index}
        return {
            **params,
            **{name: _value(recorder, c, values, symbolic, params) for name, c in own.items()},
        }


def _at_moment(
    kernel: Runnable, params: Mapping[str, Any], recorder: Recorder, values: Numbers
) -> dict[str, Any]:
    """Return the parameters of a kernel with symbols for the values of a page."""
    found: dict[str, Any] = {}
    for name, role in kernel.roles:
        if role in GIVEN:
            whole = role == "frame"
            numbers = tuple(_number(recorder, s, values, GIVEN[role], whole) for s in GIVEN[role])
            found[name] = numbers if len(numbers) > 1 else numbers[0]
    return {**found, **params}


def _roles(kernels: Iterable[tuple[Runnable, Mapping[str, Any]]]) -> tuple[str, ...]:
    """Return the values that kernels ask for and their parameters do not give."""
    asked = {role for k, params in kernels for name, role in k.roles if name not in params}
    return tuple(role for role in GIVEN if role in asked)


def _value(
    recorder: Recorder,
    c: Control,
    values: Numbers,
    symbolic: Collection[str],
    params: Mapping[str, Any],
) -> Any:
    if c.type == "choice":
        return c.choices[int(values[c.symbols[0]])]
    if c.type == "bool":
        return bool(values[c.symbols[0]])
    if c.why and all(values[s] == v for s, v in c.numbers.items()):
        return params.get(c.param)  # as it was given
    whole = c.type in ("int", "ints")
    numbers = tuple(_number(recorder, s, values, symbolic, whole) for s in c.symbols)
    return numbers[0] if len(numbers) == 1 else numbers


def _number(
    recorder: Recorder, name: str, values: Numbers, symbolic: Collection[str], whole: bool = True
) -> Any:
    """Return the number of a symbol, or the symbol."""
    value = int(values[name]) if whole else float(values[name])
    make: Any = recorder.trace.integer if whole else recorder.trace.real
    return make(name, value) if name in symbolic else value


class FilterSource(WebSource):
    """A list of filters: names or kernels, with their parameters."""

    def __init__(
        self, filters: Sequence[Filter], call: str, ranges: Ranges | None = None, yuv: bool = False
    ) -> None:
        self._call = call
        self._shaders = {}
        Flag().check(call, "yuv", yuv)
        self._filters = [parted(item, call) for item in filters]
        #: As frame pipelines take them.
        self.filters: list[Filter] = list(self._filters)
        if not self._filters:
            raise ParameterError.invalid(call, "chain", "a list with at least one filter", [])
        for item, params in self._filters:
            self._refuse(item, params)
        self.formats = FORMATS if yuv else ("rgba",)
        names = [i.name if isinstance(i, Runnable) else i for i, _ in self._filters]
        self.name = " + ".join(names)
        declared_ = [parameters_of(item) for item, _ in self._filters]
        given = [params for _, params in self._filters]
        self.controls = _controls(names, declared_, given, ranges)
        self.size = _second_size(self._filters)
        width, height = self.size or (640, 360)
        steps = plan(self.filters, (height, width, 4), "u8", call)
        self.roles = _roles((s.kernel, s.params) for s in steps)
        programs = [item for item, _ in self._filters if isinstance(item, KernelProgram)]
        #: What pictures of sound hold, by the ids of their arrays.
        self._sounds = {id(p.images[n]): _sound(f) for p in programs for n, f in p.sounds.items()}
        self.roles += ("sound",) if self._sounds else ()
        read = [i for s in steps for i in s.inputs if isinstance(i, int)]
        self.generator = PICTURE not in read

    def _refuse(self, item: str | Runnable, params: Mapping[str, Any]) -> None:
        """Raise for models and operations on the host, which a page cannot run."""
        kernel = item if isinstance(item, Runnable) else None
        if kernel is None and isinstance(item, str) and item not in declared():
            kernel = find(item)
        model = type(kernel).__module__.startswith("dala.ml")
        if isinstance(kernel, Operation) and (kernel.host or model):
            raise ParameterError(
                f"{self._call}: {kernel.name!r} cannot be exported: models and operations on the "
                "host are not part of web pages.",
            )

    def record(self, values: Numbers, symbolic: Collection[str], format: str = "rgba") -> Plan:
        recorder = Recorder(self._shaders)
        width, height = (_number(recorder, n, values, symbolic) for n in (WIDTH, HEIGHT))
        filters: list[Any] = [
            (item, self._given(index, params, recorder, values, symbolic))
            for index, (item, params) in enumerate(self._filters)
        ]
        shape = (height, width, 4)
        first: list[Step] = []
        picture = shape
        if format != "rgba":
            rows = height * 3 // 2
            picture = (rows, width)  # type: ignore[assignment]
            coding = {
                "format": format,
                "matrix": MATRICES[int(values["matrix"])],
                "range": RANGES[int(values["full"])],
            }
            first = declared_steps(declared()["yuv_to_rgb"], picture, "u8", coding, self._call)
            shape = first[-1].shape  # type: ignore[assignment]
        steps = plan(filters, shape, "u8", self._call)
        steps = [*first, *(s.moved(len(first)) for s in steps)]
        return _record(recorder, steps, picture, values, self._sounds)


#: Matrices and ranges of YUV pictures, by the numbers of the symbols "matrix" and "full".
MATRICES: Final = ("bt709", "bt601", "bt2020")
RANGES: Final = ("limited", "full")


def _record(
    recorder: Recorder,
    steps: Sequence[Step],
    shape: Sequence[int],
    values: Numbers,
    sounds: Mapping[int, str],
) -> Plan:
    """Record steps as one fused pipeline, as frame pipelines run them."""
    source = recorder.buffer(shape, "u8")
    kept = remembered([(s.inputs, s.shape, s.dtype) for s in steps])
    before = {n: recorder.buffer(*form) for n, form in kept.items()}
    made = [
        recorder.buffer(s.shape, s.dtype, transient=n < len(steps) - 1 and n not in kept)
        for n, s in enumerate(steps)
    ]
    given: dict[int, Buffer] = {}
    with Pipeline() as pipeline:
        for step, output in zip(steps, made, strict=True):
            inputs = []
            for i in step.inputs:
                if isinstance(i, int):
                    inputs.append(source if i == PICTURE else made[i])
                    continue
                if isinstance(i, Previous):
                    inputs.append(before[i.step])
                    continue
                if id(i) not in given:
                    given[id(i)] = _constant(recorder, i)
                inputs.append(given[id(i)])
            try:
                pipeline.add({
                    "op": "run_kernel", "kernel": step.kernel, "inputs": inputs, "output": output,
                    "params": _at_moment(step.kernel, step.params, recorder, values),
                })  # fmt: skip
            except DalaError as error:
                raise step.error(error) from error
        pipeline.run()
    swaps = [(made[n], b) for n, b in before.items()]
    heard = [(b, sounds[i]) for i, b in given.items() if i in sounds]
    return recorder.plan([source], made[-1], swaps, heard)


def _sound(made: Callable[[NDArray], NDArray]) -> str:
    """Return the content of a picture of sound that a page makes, and its width: "spectrum 256".

    >>> from functools import partial
    >>> from dala.shaders.sound import toy, wave
    >>> _sound(toy), _sound(partial(wave, width=128))
    ('toy 512', 'wave 128')
    """
    function = made.func if isinstance(made, partial) else made
    return f"{function.__name__} {made(np.zeros(1)).shape[1]}"


def _constant(recorder: Recorder, value: NDArray | Buffer) -> Buffer:
    array = value.numpy() if isinstance(value, Buffer) else value
    dtype = value.dtype if isinstance(value, Buffer) else dtype_of(array)
    kind = {"u8": np.uint8, "s32": np.int32, "f32": np.float32, "u32": np.uint32}.get(dtype)
    array = np.ascontiguousarray(array, kind)
    return recorder.buffer(array.shape, dtype, data=array)


def _controls(
    names: Sequence[str],
    declared_: Sequence[Sequence[FilterParam]],
    given: Sequence[Mapping[str, Any]],
    ranges: Ranges | None,
) -> list[Control]:
    """Return the controls of the filters of a chain, from their names, parameters and values."""
    made = [
        control(p, params.get(p.name, p.default), name, index, ranges or {})
        for index, (name, known, params) in enumerate(zip(names, declared_, given, strict=True))
        for p in known
    ]
    return named(c for c in made if c is not None)


def _second_size(
    filters: Sequence[tuple[str | Runnable, Mapping[str, Any]]],
) -> tuple[int, int] | None:
    """Return (width, height) of a second picture, which the first then has too."""
    for item, params in filters:
        spec = declared().get(item) if isinstance(item, str) else None
        for p in spec.parameters if spec is not None else ():
            if p.type in ("picture", "map") and p.name in params and item != "overlay":
                shape = np.shape(params[p.name])
                if len(shape) >= 2:
                    return int(shape[1]), int(shape[0])
    return None


class PipelineSource(WebSource):
    """A pipeline of buffers. Its picture is the buffer that a page fills; others are constants."""

    def __init__(self, pipeline: Pipeline, call: str, ranges: Ranges | None = None) -> None:
        self._call = call
        self._shaders = {}
        pairs = zip(pipeline.stages(), pipeline.kernels, strict=True)
        every: list[Any] = [{**spec, "kernel": kernel} for spec, kernel in pairs]
        self._stages = [s for s in every if s["op"] != "barrier"]
        if not self._stages:
            raise ParameterError(f"{call}: the pipeline has no stages.")
        self._picture = self._find_picture()
        output = self._target(self._stages[-1])
        if len(output.shape) not in (2, 3) or output.dtype not in ("u8", "f32"):
            raise ShapeError.invalid(
                call, "the last output", "a picture of dtype 'u8' or 'f32'",
                f"{output.dtype} {output.shape}",
            )  # fmt: skip
        self.size = (self._picture.shape[1], self._picture.shape[0])
        kernels: list[Runnable | None] = [stage["kernel"] for stage in self._stages]
        names = ["copy" if k is None else k.name for k in kernels]
        self.name = " + ".join(names)
        declared_ = [[] if k is None else parameters_of(k) for k in kernels]
        given = [stage.get("params") or {} for stage in self._stages]
        self.controls = _controls(names, declared_, given, ranges)
        used = zip(kernels, given, strict=True)
        self.roles = _roles((k, params) for k, params in used if k is not None)

    @staticmethod
    def _target(stage: Any) -> Buffer:
        made: Buffer = stage["output"] if stage["op"] == "run_kernel" else stage["dst"]
        return made

    @staticmethod
    def _sources(stage: Any) -> list[Buffer]:
        return list(stage["inputs"]) if stage["op"] == "run_kernel" else [stage["src"]]

    def _find_picture(self) -> Buffer:
        written: set[int] = set()
        for stage in self._stages:
            for b in self._sources(stage):
                rgba = len(b.shape) == 3 and b.shape[2] == 4 and b.dtype == "u8"
                if id(b) not in written and rgba:
                    return b
            written.add(id(self._target(stage)))
        raise ShapeError(
            f"{self._call}: no stage reads a picture of shape (height, width, 4) and dtype 'u8' "
            "that no stage writes. A web page fills such a buffer.",
        )

    def record(self, values: Numbers, symbolic: Collection[str], format: str = "rgba") -> Plan:
        recorder = Recorder(self._shaders)
        held: dict[int, Buffer] = {}
        written = {id(self._target(stage)) for stage in self._stages}

        def moved(b: Buffer) -> Buffer:
            if id(b) not in held:
                data = None
                if b is not self._picture and id(b) not in written:
                    data = np.ascontiguousarray(b.numpy())
                held[id(b)] = recorder.buffer(b.shape, b.dtype, transient=b.transient, data=data)
            return held[id(b)]

        source = moved(self._picture)
        with Pipeline() as pipeline:
            for index, stage in enumerate(self._stages):
                target = moved(self._target(stage))
                inputs = [moved(b) for b in self._sources(stage)]
                if stage["op"] != "run_kernel":
                    pipeline.add({"op": "copy_buffer", "src": inputs[0], "dst": target})
                    continue
                params = stage.get("params") or {}
                given = self._given(index, params, recorder, values, symbolic)
                given = _at_moment(stage["kernel"], given, recorder, values)
                pipeline.add({
                    "op": "run_kernel", "kernel": stage["kernel"], "inputs": inputs,
                    "output": target, "params": {k: v for k, v in given.items() if v is not None},
                })  # fmt: skip
            pipeline.run()
        return recorder.plan([source], moved(self._target(self._stages[-1])))
