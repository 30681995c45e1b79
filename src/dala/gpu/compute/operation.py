"""Operations: kernels with hand-written engine code, for work that the language expresses badly.

Users run them like any other kernel: by name, in pipelines, asynchronously. Each operation is
defined in NumPy; the reference engine runs that definition. The other engines have code for it
under ``engines/cpu/ops`` and ``engines/webgpu/ops``, or the operation is *lowered* to a kernel of
the language, or both. In a pipeline the lowered kernel is fused with its neighbors; on its own, an
operation runs the engine code.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final, TypeAlias

from dala.errors import (
    DtypeMismatch,
    FreedError,
    ParameterError,
    ShapeError,
    ShapeMismatch,
    UnsupportedDtype,
)
from dala.gpu.compute.buffer import Buffer, allocate, evaluated, overlap, settle
from dala.gpu.compute.call.arguments import pack
from dala.gpu.compute.call.checks import IMAGE_SHAPES, check_buffers, check_types, in_place_error
from dala.gpu.compute.call.geometry import program_for
from dala.gpu.compute.call.plans import BoundCall, ReadyCall, Values
from dala.gpu.compute.convert import count_of
from dala.gpu.compute.engines.base import Engine, Task, Tensor
from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.params import (
    CheckedValue,
    CheckedValues,
    Parameter,
    check_mapping,
    check_values,
)
from dala.gpu.compute.runnable import MAX_PLANS, NO_PARAMS, Runnable
from dala.typing import NDArray, Params

__all__ = ["Operation", "OperationValues", "Task", "Tensor", "elements"]

#: Types of parameters of which equal values are the same in every way.
_PLAIN: Final = frozenset({int, bool, str})

#: Checked parameter values by name, of the types that the operation declares.
OperationValues: TypeAlias = dict[str, CheckedValue]


class Operation(Runnable):
    """A kernel with engine code. Subclass it and list the class in its module's ``OPERATIONS``.

    A subclass declares its inputs and parameters as class attributes, the shape and dtype of the
    output in :meth:`result` (and :meth:`fit`, if several fit), and its definition in NumPy in
    :meth:`define`.

    >>> from dala.gpu.compute.kernel import get
    >>> blur = get("blur")
    >>> blur.inputs, [p.name for p in blur.params]
    (('img',), ['radius', 'sigma'])
    """

    #: The name that users pass to ``run_kernel``.
    title: ClassVar[str]
    #: Names of the inputs; the last ``optional`` of them may be omitted.
    takes: ClassVar[tuple[str, ...]] = ("a",)
    options: ClassVar[tuple[Parameter, ...]] = ()
    #: Accepted dtypes of the inputs.
    dtypes: ClassVar[tuple[str, ...]] = ("f32", "f64", "s32", "s64", "u32", "u8")
    #: The operation whose engine code this one shares; empty if it has its own.
    code: ClassVar[str] = ""
    #: True if every engine runs the definition on the host, as for models. Otherwise an engine
    #: without code for the operation raises UnsupportedOperation.
    host: ClassVar[bool] = False

    def __init__(self) -> None:
        self.name = self.title
        self._plans = {}
        #: Checked values, by parameters that are all ints, bools and strings, and their types.
        self._checked: dict[tuple[object, ...], CheckedValues] = {}
        required = any(option.required for option in self.options)
        #: Values of a call without parameters; empty if a parameter is required.
        self._defaults = () if required else self.check_params({})

    # for subclasses -----------------------------------------------------------------------------
    def result(self, inputs: tuple[Tensor, ...], values: OperationValues) -> Tensor | None:
        """Return the shape and dtype of the output, or None if the caller must pass an output.

        Raises an error if the inputs do not match; use :meth:`shape_error` and its siblings.
        """
        return inputs[0]

    def fit(
        self, inputs: tuple[Tensor, ...], output: Tensor, values: OperationValues
    ) -> OperationValues:
        """Check an output, and return the parameter values with those derived from shapes."""
        wanted = self.result(inputs, values)
        if wanted is not None:
            self.want(output, wanted)
        return values

    @abstractmethod
    def define(self, task: Task, *arrays: NDArray) -> NDArray:
        """Compute the result with NumPy. This defines the operation; the reference engine runs it.

        Arrays have their stored dtype. Floats returned for a u8 output are rounded (halves up) and
        clamped.
        """

    def lower(self, task: Task) -> tuple[Kernel, OperationValues] | None:
        """Return an equivalent kernel of the language and its parameters, or None."""
        return None

    # errors -------------------------------------------------------------------------------------
    def shape_error(self, text: str) -> ShapeMismatch:
        """Return a ShapeMismatch that names the operation."""
        return ShapeMismatch(f"{self.name}: {text}", call=self.name)

    def want(self, output: Tensor, wanted: Tensor) -> None:
        """Raise if an output does not have the wanted shape and dtype."""
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
        """Return the dtype of all inputs; raise if they differ."""
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
        """Return the shape of an input; raise unless its number of axes is one of ``ranks``."""
        shape = inputs[index].shape
        if len(shape) not in ranks:
            axes = f"{' or '.join(map(str, ranks))} {'axis' if ranks == (1,) else 'axes'}"
            raise ShapeMismatch.invalid(self.name, self.takes[index], f"of {axes}", shape)
        return shape

    def want_image(self, inputs: Sequence[Tensor], index: int = 0) -> tuple[int, int, int]:
        """Return height, width and channels of an input; raise unless it is a u8 or f32 image."""
        t, name = inputs[index], self.takes[index]
        channels = t.shape[2] if len(t.shape) == 3 else 1
        if len(t.shape) not in (2, 3) or channels not in (1, 3, 4):
            raise ShapeError.invalid(self.name, name, IMAGE_SHAPES, t.shape)
        if t.dtype not in ("u8", "f32"):
            raise DtypeMismatch.invalid(self.name, name, "an image of dtype 'u8' or 'f32'", t.dtype)
        return t.shape[0], t.shape[1], channels

    # the interface of kernels --------------------------------------------------------------------
    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return self.takes

    @property
    def params(self) -> tuple[Parameter, ...]:
        """The parameters, with types, ranges and defaults."""
        return self.options

    @property
    def doc(self) -> str:
        """The docstring of the class."""
        return type(self).__doc__ or ""

    def __repr__(self) -> str:
        first = len(self.takes) - self.optional
        inputs = [*self.takes[:first], *(f"{n}=None" for n in self.takes[first:])]
        params = [p.name if p.required else f"{p.name}={p.default!r}" for p in self.options]
        return f"<Kernel {self.name}({', '.join([*inputs, *(['*', *params] if params else [])])})>"

    def check_params(self, params: Params) -> CheckedValues:
        """Return all parameters with their checked values, in order of declaration."""
        if type(params) is not dict:
            return check_values(self.name, self.options, params)
        kinds = [type(value) for value in params.values()]
        if not _PLAIN.issuperset(kinds):
            return check_values(self.name, self.options, params)
        key = (*params.items(), *kinds)
        found = self._checked.get(key)
        if found is None:
            found = check_values(self.name, self.options, params)
            if len(self._checked) >= MAX_PLANS:
                self._checked.clear()
            self._checked[key] = found
        return found

    def bind(
        self, inputs: Sequence[Buffer], output: Buffer, params: Params
    ) -> tuple[BoundCall, Values]:
        """Check a call; return it ready to compile, with the parameter values of its program."""
        engine = check_buffers(self, inputs, output)
        task = self._task(engine, inputs, output, dict(self.check_params(params)))
        for name, b in zip(self.takes, inputs, strict=False):
            if overlap(b, output):
                raise in_place_error(self.name, name)
        shared = any(b.storage(self.name).foreign for b in (*inputs, output))
        lowered = None if engine.backend == "reference" else self.lower(task)
        if lowered is None:
            return BoundCall(engine, None, None, (), shared, task), ()
        kernel, values = lowered
        program, geometry = program_for(kernel.decl, inputs, output.shape, output.dtype)
        check_types(engine, program)
        call = BoundCall(engine, program, geometry, (), shared, task)
        return call, pack(kernel.decl, program, values)

    def _task(
        self,
        engine: Engine,
        inputs: Sequence[Buffer],
        output: Buffer,
        values: OperationValues,
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

    def plan(
        self, inputs: Sequence[Buffer], output: Buffer, params: Params = NO_PARAMS
    ) -> ReadyCall:
        """Check and prepare a call, or find its cached plan. Runs nothing."""
        if type(params) is not dict:
            check_mapping(self.name, params)
        values = self.check_params(params) if params else self._defaults
        try:
            key = (values, output._key, *[b._key for b in inputs])
            plan = self._plans.get(key)
        except (AttributeError, TypeError):
            plan = None  # not a buffer; the checks below raise
        if (
            plan is None
            or output._key is None
            or (plan.shared and any(overlap(b, output) for b in inputs))
        ):
            if evaluated(inputs):
                return self.plan(inputs, output, params)
            call, numbers = self.bind(inputs, output, params)
            values = values or self.check_params(params)
            key = (values, output._key, *[b._key for b in inputs])
            plan = self._keep(key, call.plan(numbers))
        target = output._storage
        storages = [b._storage for b in inputs]
        if target is None or None in storages:
            raise FreedError(f"{self.name}: a buffer was freed during the call.", call=self.name)
        if target in storages:
            self.bind(inputs, output, params)  # raises
        if target.reader is not None:
            settle(target)
        return plan, storages, target, plan.values  # type: ignore[return-value]

    def new_output(self, inputs: Sequence[Buffer], params: Params) -> Buffer:
        """Return a new output buffer for some inputs."""
        buffers = [b for b in inputs if isinstance(b, Buffer)]
        if not len(self.takes) - self.optional <= len(buffers) <= len(self.takes):
            check_buffers(self, inputs, buffers[0] if buffers else None)  # type: ignore[arg-type]
        for b in buffers:
            b.storage(self.name)
        values = dict(self.check_params(params))
        tensors = tuple(Tensor(b.shape, b.dtype) for b in buffers)
        self._check_dtypes(tensors)
        made = self.result(tensors, values)
        if made is None:
            raise ParameterError(
                f"{self.name}: the output's shape does not follow from the inputs. "
                "Pass it: out=buffer_zeros(shape, dtype).",
                call=self.name,
                argument="out",
            )
        return allocate(buffers[0].engine, made.shape, made.dtype, zero=False, call=self.name)

    def source(self, target: str = "python", *, dtype: str | None = None) -> str:
        """Return the Python source of the definition. Other targets raise an error."""
        import inspect
        import textwrap

        if target != "python":
            raise ParameterError.invalid(
                "Kernel.source",
                "target",
                f"'python' for the operation {self.name!r}",
                target,
                "Each device has its own code for it.",
            )
        return textwrap.dedent(inspect.getsource(type(self).define))


def elements(t: Tensor) -> int:
    """Return the number of elements of a buffer."""
    return count_of(t.shape)
