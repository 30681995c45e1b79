"""Operations: kernels with hand-written engine code, for work that the language expresses badly.

Users run them like any other kernel: by name, in pipelines, asynchronously. An operation has one
definition: a kernel of the language that it is *lowered* to, or where the language cannot say it, a
function of NumPy. The reference engine runs the definition. The other engines have code under
``engines/cpu/ops`` and ``engines/webgpu/ops``, or run the kernel. In a pipeline the kernel is fused
with its neighbors; on its own, an operation runs the engine code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from math import prod
from typing import ClassVar, Final, TypeAlias, TypeVar

from dala.errors import DalaError, DtypeMismatch, ParameterError, ShapeError, ShapeMismatch
from dala.gpu.compute.buffer import Buffer, allocate, overlap
from dala.gpu.compute.call.arguments import pack
from dala.gpu.compute.call.checks import IMAGE_SHAPES, check_buffers, check_types, in_place_error
from dala.gpu.compute.call.geometry import program_for
from dala.gpu.compute.call.plans import BoundCall, Values
from dala.gpu.compute.engines.base import Engine, Task, Tensor
from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.lang.ir import Program
from dala.gpu.compute.params import CheckedValue, CheckedValues, Parameter, check_values
from dala.gpu.compute.runnable import Runnable
from dala.typing import NDArray, Params, ParamValue

__all__ = ["Inputs", "Lowered", "Operation", "OperationValues", "Task", "Tensor", "elements"]

#: Checked parameter values by name, of the types that the operation declares.
OperationValues: TypeAlias = dict[str, CheckedValue]
Inputs: TypeAlias = tuple[Tensor, ...]
#: An equivalent kernel of the language and its parameters, or None.
Lowered: TypeAlias = tuple[Kernel, OperationValues] | None


_Error = TypeVar("_Error", bound=DalaError)


def _wrong(error: type[_Error]) -> Callable[..., _Error]:
    """Return a method that makes an error of this kind, which names the operation."""

    def wrong(
        self: Operation, argument: str, expected: str, got: ParamValue, advice: str = ""
    ) -> _Error:
        """Return the error of an argument."""
        return error.invalid(self.name, argument, expected, got, advice)

    return wrong


class Operation(Runnable):
    """A kernel with engine code. Subclass it in a module of kernels.

    A subclass declares its inputs and parameters as class attributes, the shape and dtype of the
    output in :meth:`result` (and :meth:`fit`, if several fit), and its definition: a kernel in
    :meth:`lower`, or code in NumPy in ``define``.

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

    def __init_subclass__(cls) -> None:
        if "title" in vars(cls):
            DECLARED[cls.__module__].append(cls)

    def __init__(self) -> None:
        self.name = self.title
        self._plans = {}
        required = any(option.required for option in self.options)
        #: Values of a call without parameters; empty if a parameter is required.
        self._defaults = () if required else self.check_params({})

    # for subclasses -----------------------------------------------------------------------------
    def result(self, inputs: Inputs, values: OperationValues) -> Tensor | None:
        """Return the shape and dtype of the output, or None if the caller must pass an output.

        Raises an error if the inputs do not match; use :meth:`shape_error` and its siblings.
        """
        return inputs[0]

    def fit(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        """Check an output, and return the parameter values with those derived from shapes."""
        wanted = self.result(inputs, values)
        if wanted is not None:
            self.want(output, wanted)
        return self.derived(inputs, output, values)

    def derived(self, inputs: Inputs, output: Tensor, values: OperationValues) -> OperationValues:
        """Return the values that engines take, of a call whose output is that of :meth:`result`."""
        return values

    #: ``define(self, task, *arrays)`` computes the result with NumPy: the definition of tasks that
    #: no kernel of the language defines. Arrays have their stored dtype. Floats returned for a u8
    #: output are rounded (halves up) and clamped.
    define: Callable[..., NDArray] | None = None

    def lower(self, task: Task) -> Lowered:
        """Return the kernel of the language that defines a task, and its parameters, or None."""
        return None

    # errors -------------------------------------------------------------------------------------
    def shape_error(self, text: str) -> ShapeMismatch:
        """Return a ShapeMismatch that names the operation."""
        return ShapeMismatch(f"{self.name}: {text}", call=self.name)

    #: Errors of an input or output of a wrong shape or dtype, and of a wrong value of a parameter,
    #: from the argument, what is expected, what was given, and advice.
    wrong_shape, wrong_dtype = _wrong(ShapeMismatch), _wrong(DtypeMismatch)
    wrong_value = _wrong(ParameterError)

    def want(self, output: Tensor, wanted: Tensor) -> None:
        """Raise if an output does not have the wanted shape and dtype."""
        if output.shape != wanted.shape:
            advice = f"Use buffer_zeros({wanted.shape}, {wanted.dtype!r})."
            raise self.wrong_shape("output", f"of shape {wanted.shape}", output.shape, advice)
        if output.dtype != wanted.dtype:
            raise self.wrong_dtype("output", f"of dtype {wanted.dtype!r}", output.dtype)

    def same_dtype(self, inputs: Sequence[Tensor]) -> str:
        """Return the dtype of all inputs; raise if they differ."""
        for name, t in zip(self.takes, inputs, strict=False):
            if t.dtype != inputs[0].dtype:
                raise self.wrong_dtype(
                    name, f"of dtype {inputs[0].dtype!r}, as {self.takes[0]!r} is", t.dtype
                )
        return inputs[0].dtype

    def want_rank(self, inputs: Sequence[Tensor], index: int, *ranks: int) -> tuple[int, ...]:
        """Return the shape of an input; raise unless its number of axes is one of ``ranks``."""
        shape = inputs[index].shape
        if len(shape) not in ranks:
            axes = f"{' or '.join(map(str, ranks))} {'axis' if ranks == (1,) else 'axes'}"
            raise self.wrong_shape(self.takes[index], f"of {axes}", shape)
        return shape

    def want_f32(self, inputs: Sequence[Tensor], index: int) -> None:
        """Raise unless an input is f32."""
        if inputs[index].dtype != "f32":
            raise self.wrong_dtype(self.takes[index], "of dtype 'f32'", inputs[index].dtype)

    def want_color(self, inputs: Sequence[Tensor], advice: str = "") -> tuple[int, ...]:
        """Return the shape of the first input; raise unless it is an RGB or RGBA image."""
        shape = inputs[0].shape
        if len(shape) != 3 or shape[2] not in (3, 4):
            expected = "of shape (height, width, 3) or (height, width, 4)"
            raise self.wrong_shape(self.takes[0], expected, shape, advice)
        return shape

    def want_image(self, inputs: Sequence[Tensor], *, empty: bool = True) -> tuple[int, int, int]:
        """Return height, width and channels of the first input, a u8 or f32 image, or raise.

        ``empty`` is False if it must have pixels.
        """
        t, name = inputs[0], self.takes[0]
        channels = t.shape[2] if len(t.shape) == 3 else 1
        if len(t.shape) not in (2, 3) or channels not in (1, 3, 4):
            raise ShapeError.invalid(self.name, name, IMAGE_SHAPES, t.shape)
        if t.dtype not in ("u8", "f32"):
            raise self.wrong_dtype(name, "an image of dtype 'u8' or 'f32'", t.dtype)
        if not empty and 0 in t.shape:
            raise self.wrong_shape(name, "a picture with pixels", t.shape)
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

    def _described_inputs(self) -> list[str]:
        first = len(self.takes) - self.optional
        return [*self.takes[:first], *(f"{n}=None" for n in self.takes[first:])]

    def check_params(self, params: Params) -> CheckedValues:
        """Return all parameters with their checked values, in order of declaration."""
        return check_values(self.name, self.options, params)

    def bind(
        self, inputs: Sequence[Buffer], output: Buffer, params: Params
    ) -> tuple[BoundCall, Values]:
        """Check a call; return it ready to compile, with the parameter values of its program."""
        engine = check_buffers(self, inputs, output)
        task = self._task(engine, inputs, output, dict(self.check_params(params)))
        self._check_apart(inputs, output)
        shared = any(b.storage(self.name).foreign for b in (*inputs, output))
        lowered = self.lower(task)
        distinct = tuple(range(len(inputs)))
        if lowered is None:
            return BoundCall(engine, None, None, distinct, shared, task), ()
        kernel, values = lowered
        program, geometry = program_for(kernel.decl, inputs, output.shape, output.dtype)
        check_types(engine, self.name, program.types)
        own = None if engine.backend == "reference" else task
        call = BoundCall(engine, program, geometry, distinct, shared, own)
        return call, pack(kernel.decl, program, values)

    def _task(
        self, engine: Engine, inputs: Sequence[Buffer], output: Buffer, values: OperationValues
    ) -> Task:
        tensors = tuple(Tensor(b.shape, b.dtype) for b in inputs)
        target = Tensor(output.shape, output.dtype)
        self._check_dtypes(tensors)
        values = self.fit(tensors, target, values)
        check_types(engine, self.name, (t.dtype for t in (*tensors, target)))
        return Task(
            self.code or self.name, tensors, target, tuple(values.items()), self.define,
            domain=type(self).__module__.rpartition(".")[2], host=self.host,
        )  # fmt: skip

    def _check_apart(
        self, inputs: Sequence[Buffer], output: Buffer, program: Program | None = None
    ) -> None:
        for name, b in zip(self.takes, inputs, strict=False):
            if overlap(b, output):
                raise in_place_error(self.name, name)

    def _check_dtypes(self, inputs: Inputs) -> None:
        for name, t in zip(self.takes, inputs, strict=False):
            if t.dtype not in self.dtypes:
                raise self.wrong_dtype(name, f"of dtype {' or '.join(self.dtypes)}", t.dtype)

    def _facts(self, params: Params) -> CheckedValues:
        return self.check_params(params) if params else self._defaults

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
            raise self._no_output()
        return allocate(buffers[0].engine, made.shape, made.dtype, zero=False, call=self.name)

    def source(self, target: str = "python", *, dtype: str | None = None) -> str:
        """Return the Python source of the definition. Other targets raise an error."""
        import inspect
        import textwrap

        if target != "python":
            expected = f"'python' for the operation {self.name!r}"
            advice = "Each device has its own code for it."
            raise ParameterError.invalid("Kernel.source", "target", expected, target, advice)
        return textwrap.dedent(inspect.getsource(type(self).define or type(self).lower))


#: Operations, by the name of the module that declares them.
DECLARED: Final[defaultdict[str, list[type[Operation]]]] = defaultdict(list)


def elements(t: Tensor) -> int:
    """Return the number of elements of a buffer."""
    return prod(t.shape)
