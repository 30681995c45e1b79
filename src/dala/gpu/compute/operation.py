"""Operations: kernels that the language cannot say well, with code of their own on each engine.

To a user they are kernels like any other: run by name, in pipelines, asynchronously. Each has a
definition in NumPy (what the reference engine runs), and engine code under ``engines/cpu/ops`` and
``engines/webgpu/ops``, or a kernel of the language that it is *lowered* to, or both: lowered ones
melt into their neighbours in a pipeline, and engine code runs where they stand alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from dala.errors import (
    DtypeMismatch,
    FreedError,
    ParameterError,
    ShapeError,
    ShapeMismatch,
    UnsupportedDtype,
)
from dala.gpu.compute.buffer import Buffer, allocate, overlap
from dala.gpu.compute.call.bind import (
    IMAGE_SHAPES,
    Call,
    Plan,
    check_buffers,
    check_types,
    describe,
    in_place_error,
    pack,
)
from dala.gpu.compute.convert import count_of
from dala.gpu.compute.engines.base import Engine, Task, Tensor
from dala.gpu.compute.kernel import _MAX_PLANS, Checked, Kernel
from dala.gpu.compute.lang.decl import KernelDecl
from dala.gpu.compute.params import Option, check_options

__all__ = ["Operation", "Task", "Tensor", "elements"]

_NO_PARAMS: Mapping[str, Any] = {}


class Operation(Kernel):
    """A kernel with code of its own. Subclass it and list an instance in its module's ``__all__``.

    A subclass says what it takes (class attributes), which output fits (:meth:`result`, or
    :meth:`fit` where more than one does), and what it means (:meth:`define`).
    """

    #: The name users know it by.
    title: ClassVar[str]
    #: Names of the inputs; the last ``optional`` of them may be left out.
    takes: ClassVar[tuple[str, ...]] = ("a",)
    optional: ClassVar[int] = 0
    options: ClassVar[tuple[Option, ...]] = ()
    #: dtypes that inputs may have.
    dtypes: ClassVar[tuple[str, ...]] = ("f32", "f64", "s32", "s64", "u32", "u8")
    language: ClassVar[bool] = False
    #: What engines know it by, where that is another operation's name.
    code: ClassVar[str] = ""
    #: True where every engine runs the definition on the host, as models do. Otherwise an engine
    #: without code for the operation raises UnsupportedOperation.
    host: ClassVar[bool] = False

    def __init__(self) -> None:
        self.name = self.title
        self._plans: dict[Any, Plan] = {}
        required = any(option.required for option in self.options)
        #: The values of a call without parameters, where there is such a call.
        self._defaults = () if required else check_options(self.name, self.options, {})

    # to be written by each ----------------------------------------------------------------------
    def result(self, inputs: tuple[Tensor, ...], values: dict[str, Any]) -> Tensor | None:
        """The output that a plain call makes; None where it must be given.

        Raises what is wrong with the inputs (use :meth:`shape_error` and its like).
        """
        return inputs[0]

    def fit(
        self, inputs: tuple[Tensor, ...], output: Tensor, values: dict[str, Any]
    ) -> dict[str, Any]:
        """Refuses an output that does not fit; gives the values with what depends on shapes."""
        wanted = self.result(inputs, values)
        if wanted is not None:
            self.want(output, wanted)
        return values

    def define(self, task: Task, *arrays: Any) -> Any:
        """What it computes, in NumPy: arrays as stored, and the numbers to store.

        Results for u8 may be floats: they are rounded (halves up) and saturated.
        """
        raise NotImplementedError

    def lower(self, task: Task) -> tuple[Kernel, dict[str, Any]] | None:
        """The kernel of the language, and its parameters, that does the same; None if none does."""
        return None

    # errors -------------------------------------------------------------------------------------
    def shape_error(self, text: str) -> ShapeMismatch:
        """An error about shapes, to be raised."""
        return ShapeMismatch(f"{self.name}: {text}", call=self.name)

    def want(self, output: Tensor, wanted: Tensor) -> None:
        """Refuses an output that is not as wanted."""
        if output.shape != wanted.shape:
            raise ShapeMismatch.invalid(
                self.name,
                "output",
                f"of shape {wanted.shape}",
                output.shape,
                f"Use buffer_zeros({wanted.shape}, {wanted.dtype!r}).",
            )
        if output.dtype != wanted.dtype:
            raise DtypeMismatch.invalid(
                self.name, "output", f"of dtype {wanted.dtype!r}", output.dtype
            )

    def same_dtype(self, inputs: Sequence[Tensor]) -> str:
        """The dtype that all inputs have."""
        for name, t in zip(self.takes, inputs, strict=False):
            if t.dtype != inputs[0].dtype:
                raise DtypeMismatch.invalid(
                    self.name,
                    name,
                    f"of dtype {inputs[0].dtype!r}, as {self.takes[0]!r} is",
                    t.dtype,
                )
        return inputs[0].dtype

    def want_rank(self, inputs: Sequence[Tensor], index: int, *ranks: int) -> tuple[int, ...]:
        """The shape of an input, its number of axes checked."""
        shape = inputs[index].shape
        if len(shape) not in ranks:
            axes = f"{' or '.join(map(str, ranks))} {'axis' if ranks == (1,) else 'axes'}"
            raise ShapeMismatch.invalid(self.name, self.takes[index], f"of {axes}", shape)
        return shape

    def want_image(self, inputs: Sequence[Tensor], index: int = 0) -> tuple[int, int, int]:
        """Height, width and channels of an input that is a picture, u8 or f32."""
        t, name = inputs[index], self.takes[index]
        channels = t.shape[2] if len(t.shape) == 3 else 1
        if len(t.shape) not in (2, 3) or channels not in (1, 3, 4):
            raise ShapeError.invalid(self.name, name, IMAGE_SHAPES, t.shape)
        if t.dtype not in ("u8", "f32"):
            raise DtypeMismatch.invalid(self.name, name, "an image of dtype 'u8' or 'f32'", t.dtype)
        return t.shape[0], t.shape[1], channels

    # a kernel like any other --------------------------------------------------------------------
    @property
    def decl(self) -> KernelDecl:
        """Operations are not written in the language."""
        raise ParameterError(
            f"{self.name}: this kernel has code of its own on each device and no declaration. "
            "Run it by its name, or as a stage of a pipeline."
        )

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return self.takes

    @property
    def params(self) -> tuple[Option, ...]:  # type: ignore[override]
        """The parameters, with types, ranges and defaults."""
        return self.options

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return type(self).__dict__.get("__doc__") or ""

    def __repr__(self) -> str:
        first = len(self.takes) - self.optional
        inputs = [*self.takes[:first], *(f"{n}=None" for n in self.takes[first:])]
        params = [p.name if p.required else f"{p.name}={p.default!r}" for p in self.options]
        return f"<Kernel {self.name}({', '.join([*inputs, *(['*', *params] if params else [])])})>"

    def bind(
        self, inputs: Sequence[Any], output: Any, params: Mapping[str, Any]
    ) -> tuple[Call, tuple[int | float, ...]]:
        """Checks a call; gives it ready to be prepared, and the values to run it with."""
        engine = check_buffers(self, inputs, output)
        checked = dict(check_options(self.name, self.options, params))
        task = self._task(engine, inputs, output, checked)
        for b in inputs:
            if overlap(b, output):
                name = self.takes[next(i for i, x in enumerate(inputs) if x is b)]
                raise in_place_error(self.name, name)
        shared = any(b.storage(self.name).foreign for b in (*inputs, output))
        lowered = None if engine.backend == "reference" else self.lower(task)
        if lowered is None:
            return Call(engine, None, None, (), shared, task), ()
        kernel, values = lowered
        program, over = describe(kernel.decl, inputs, output.shape, output.dtype)
        check_types(engine, program)
        call = Call(engine, program, over, (), shared, task)
        return call, pack(kernel.decl, program.params, values)

    def _task(
        self, engine: Engine, inputs: Sequence[Any], output: Any, values: dict[str, Any]
    ) -> Task:
        tensors = tuple(Tensor(b.shape, b.dtype) for b in inputs)
        target = Tensor(output.shape, output.dtype)
        self._check_dtypes(tensors)
        values = self.fit(tensors, target, values)
        missing = {t.dtype for t in (*tensors, target)} - engine.dtypes
        if missing:
            raise UnsupportedDtype(
                f"{self.name}: computes with {', '.join(sorted(missing))}, which {engine.id} does "
                "not support. Use 32-bit dtypes, or move the buffers: b.to('cpu').",
                call=self.name,
            )
        return Task(
            self.code or self.name,
            tensors,
            target,
            tuple(values.items()),
            self.define,
            domain=type(self).__module__.rpartition(".")[2],
            host=self.host,
        )

    def _check_dtypes(self, inputs: tuple[Tensor, ...]) -> None:
        for name, t in zip(self.takes, inputs, strict=False):
            if t.dtype not in self.dtypes:
                raise DtypeMismatch.invalid(
                    self.name, name, f"of dtype {' or '.join(self.dtypes)}", t.dtype
                )

    def run(
        self,
        inputs: Sequence[Buffer],
        output: Buffer,
        params: Mapping[str, Any] = _NO_PARAMS,
        _checked: list[Checked] | None = None,
    ) -> None:
        """Runs it: checks everything, then writes ``output``."""
        values = check_options(self.name, self.options, params) if params else self._defaults
        try:
            key = (values, output._key, *[b._key for b in inputs])
            plan = self._plans.get(key)
        except (AttributeError, TypeError):
            plan = None  # something is not a buffer; the checks below say what
        if (
            plan is None
            or output._key is None
            or (plan.shared and any(overlap(b, output) for b in inputs))
        ):
            values = check_options(self.name, self.options, params)
            call, numbers = self.bind(inputs, output, params)
            plan = Plan(call.program, call.geometry, call.prepare(), (), call.shared, numbers)
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            self._plans[(values, output._key, *[b._key for b in inputs])] = plan
        target = output._storage
        storages = [b._storage for b in inputs]
        if target is None or None in storages:
            raise FreedError(f"{self.name}: a buffer was freed during the call.", call=self.name)
        if target in storages:
            self.bind(inputs, output, params)  # says what is wrong
        if _checked is None:
            plan.run(storages, target, plan.values)  # type: ignore[arg-type]
        else:
            _checked.append((plan, storages, target, plan.values))  # type: ignore[arg-type]

    def _new_output(self, inputs: Sequence[Buffer], params: Mapping[str, Any]) -> Buffer:
        buffers = [b for b in inputs if isinstance(b, Buffer)]
        if not len(self.takes) - self.optional <= len(buffers) <= len(self.takes):
            check_buffers(self, inputs, None)  # says what is wrong
        for b in buffers:
            b.storage(self.name)
        values = dict(check_options(self.name, self.options, params))
        tensors = tuple(Tensor(b.shape, b.dtype) for b in buffers)
        self._check_dtypes(tensors)
        made = self.result(tensors, values)
        if made is None:
            raise ParameterError(
                f"{self.name}: the output's shape cannot be told from the inputs. "
                "Give it: out=buffer_zeros(shape, dtype)."
            )
        return allocate(buffers[0].engine, made.shape, made.dtype, zero=False, call=self.name)

    def source(self, target: str = "python", *, dtype: str | None = None) -> str:
        """The definition, as "python"; engine code has no single text."""
        import inspect
        import textwrap

        if target != "python":
            raise ParameterError(
                f"Kernel.source: {self.name!r} has code of its own on each device, so target must "
                f"be 'python' (its definition); {target!r} came."
            )
        return textwrap.dedent(inspect.getsource(type(self).define))


def elements(t: Tensor) -> int:
    """How many numbers a buffer holds."""
    return count_of(t.shape)
