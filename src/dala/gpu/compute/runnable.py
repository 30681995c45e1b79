"""The common interface of kernels and operations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar, overload

import numpy as np

from dala.budget import find_scope
from dala.errors import FreedError, ParameterError
from dala.gpu.compute.buffer import Buffer, evaluated, settle
from dala.gpu.compute.call.plans import BoundCall, CallPlan, ReadyCall, Values
from dala.gpu.compute.lang.ir import Program
from dala.gpu.compute.params import check_mapping
from dala.trace.recorder import tracer
from dala.typing import KernelInput, NDArray, Params, ParamValue

if TYPE_CHECKING:
    from dala.extensions import WebExport, WebOption
    from dala.gpu.compute.lang.declaration import ParamDecl
    from dala.gpu.compute.params import Parameter
    from dala.typing import PathLike

#: The number of call plans that each kernel caches.
MAX_PLANS = 1024

NO_PARAMS: Params = {}

_Kind = TypeVar("_Kind", bound=KernelInput)
_Out = TypeVar("_Out", Buffer, NDArray)


class InstanceDoc:
    """The docstring of a class whose instances have docstrings of their own."""

    def __init__(self, doc: str | None) -> None:
        self._doc = doc

    def __get__(self, instance: Runnable | None, owner: type) -> str | None:
        return self._doc if instance is None else instance.doc


class Runnable(ABC):
    """Work on buffers: a :class:`Kernel` of the language, or an :class:`Operation`.

    ``run_kernel``, pipelines and streams accept both, as objects or by name. Call one to run it:

    >>> from dala.gpu.compute import buffer
    >>> from dala.gpu.compute.kernel import get
    >>> get("relu")(buffer([-1.0, 2.0], device="cpu")).read_list()
    [0.0, 2.0]
    """

    #: The name that users pass to ``run_kernel``.
    name: str
    #: The number of trailing inputs that may be omitted.
    optional: ClassVar[int] = 0
    _plans: dict[tuple[object, ...], CallPlan]

    @property
    @abstractmethod
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""

    @property
    def pictures(self) -> frozenset[str]:
        """Names of the inputs that are read as pixels."""
        return frozenset()

    @property
    def roles(self) -> tuple[tuple[str, str], ...]:
        """Names and roles of the parameters that videos, scenes and surfaces give."""
        return ()

    @property
    def remembers(self) -> bool:
        """True if results depend on the frames before."""
        return False

    @property
    @abstractmethod
    def params(self) -> Sequence[ParamDecl | Parameter]:
        """The parameters, with types, ranges and defaults."""

    @property
    @abstractmethod
    def doc(self) -> str:
        """The documentation of the kernel."""

    @abstractmethod
    def bind(
        self, inputs: Sequence[Buffer], output: Buffer, params: Params
    ) -> tuple[BoundCall, Values]:
        """Check a call; return it ready to compile, with its parameter values."""

    @abstractmethod
    def _facts(self, params: Params) -> tuple[object, ...]:
        """Return the facts that a plan depends on besides the buffers."""

    @abstractmethod
    def _check_apart(
        self, inputs: Sequence[Buffer], output: Buffer, program: Program | None
    ) -> None:
        """Raise if the output shares memory with an input that must be another buffer."""

    @abstractmethod
    def _described_inputs(self) -> list[str]:
        """Return the inputs as ``repr`` shows them."""

    def plan(
        self, inputs: Sequence[Buffer], output: Buffer, params: Params = NO_PARAMS
    ) -> ReadyCall:
        """Check and compile a call, or find its cached plan. Runs nothing."""
        if type(params) is not dict:
            check_mapping(self.name, params)
        facts = self._facts(params)
        try:
            plan = self._plans.get((facts, output._key, *[b._key for b in inputs]))
        except (AttributeError, TypeError):
            plan = None  # not a buffer; the checks below raise
        bound = plan is None or output._key is None
        if plan is None or bound:
            if evaluated(inputs):
                return self.plan(inputs, output, params)
            call, values = self.bind(inputs, output, params)
            plan = call.plan(values)
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            self._plans[(facts, output._key, *[b._key for b in inputs])] = plan
        if plan.decl is None or plan.program is None:
            values = plan.values
        else:
            values = plan.params.pack(plan.decl, plan.program, params)
        target = output._storage
        storages = [b._storage for b in inputs]
        if target is None or None in storages:  # another thread freed it
            raise FreedError(f"{self.name}: a buffer was freed during the call.", call=self.name)
        if not bound:  # plans do not depend on addresses
            if plan.shared:
                output.check_writable(self.name)
            in_place = target in storages and any(storages[i] is target for i in plan.distinct)
            if in_place or plan.shared:
                self._check_apart(inputs, output, plan.program)
        if target.reader is not None:
            settle(target)
        return plan, storages, target, values  # type: ignore[return-value]  # none is None

    @abstractmethod
    def new_output(self, inputs: Sequence[Buffer], params: Params) -> Buffer:
        """Return a new output buffer for some inputs."""

    @abstractmethod
    def source(self, target: str = "python", *, dtype: str | None = None) -> str:
        """Return the source code, or generated code for a target."""

    def run(self, inputs: Sequence[Buffer], output: Buffer, params: Params = NO_PARAMS) -> None:
        """Run on input buffers and write the output, after checking all arguments."""
        plan, storages, target, values = self.plan(inputs, output, params)
        scope = find_scope()
        if scope is not None:
            scope.check(self.name)
        if tracer.on:
            output.engine.name_work(self.name, tracer.frame)
            with tracer.span("pass", self.name, device=output.engine.id):
                plan.run(storages, target, values)
        else:
            plan.run(storages, target, values)

    @overload
    def __call__(
        self, *inputs: Buffer, out: Buffer | None = None, **params: ParamValue
    ) -> Buffer: ...
    @overload
    def __call__(
        self, first: _Kind, /, *inputs: KernelInput, out: None = None, **params: ParamValue
    ) -> _Kind: ...
    @overload
    def __call__(self, *inputs: KernelInput, out: _Out, **params: ParamValue) -> _Out: ...
    def __call__(  # type: ignore[misc] # mypy misses that *inputs accepts the first one too
        self, *inputs: KernelInput, out: Buffer | NDArray | None = None, **params: ParamValue
    ) -> KernelInput:
        """Run on buffers, arrays, tensors or pictures; return the output: ``out``, or a new one.

        A new output has the inputs' broadcast shape and the dtype of the result. It is of the same
        kind as the first input: a Buffer, a NumPy array, a Pillow image, a Frame, or a tensor of
        the library and on the device of the input. Inputs that are not buffers run on the device of
        those that are, else on the current one.

        >>> import numpy as np
        >>> from dala.gpu.compute.kernel import get
        >>> get("relu")(np.array([-1.0, 2.0], np.float32)).tolist()
        [0.0, 2.0]
        """
        for value in inputs:
            if not isinstance(value, Buffer):
                return self._call_on(inputs, out, params)
        if out is None:
            out = self.new_output(inputs, params)  # type: ignore[arg-type] # they are buffers
        elif isinstance(out, np.ndarray):
            return self._call_on(inputs, out, params)
        self.run(inputs, out, params)  # type: ignore[arg-type]
        return out

    def export_web(
        self, folder: PathLike, params: Params = NO_PARAMS, **options: WebOption
    ) -> WebExport:
        """Export the kernel as a web page that runs on the visitor's GPU.

        The first input is the page's picture; further ones are given among the parameters.

        Args:
            folder: where to write; a path that ends in ``.html`` makes one file.
            params: values of parameters and further inputs, by name.
            options: ``title``, ``picture``, ``sliders``, ``yuv``, ``one_file``; see the guide.

        Raises:
            ParameterError: the kernel cannot be exported.

        >>> import tempfile
        >>> from dala.gpu.compute import kernel
        >>> fade = kernel("def fade(px: Pixel, *, amount=0.5): return px * amount")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fade.export_web(folder).plan.dispatches
        1
        """
        from dala.extensions import web_module

        return web_module().export([(self, params)], folder, **options)

    def _call_on(
        self, inputs: Sequence[KernelInput], out: Buffer | NDArray | None, params: Params
    ) -> KernelInput:
        from dala.gpu.compute.call.foreign import call_on

        return call_on(self, inputs, out, params)

    def _no_output(self) -> ParameterError:
        """Return the error for a call without the output that it needs."""
        return ParameterError(
            f"{self.name}: the output's shape does not follow from the inputs. "
            "Pass it: out=buffer_zeros(shape, dtype).",
            call=self.name,
            argument="out",
        )

    def __repr__(self) -> str:
        params = [p.name if p.required else f"{p.name}={p.default!r}" for p in self.params]
        shown = [*self._described_inputs(), *(["*", *params] if params else [])]
        return f"<Kernel {self.name}({', '.join(shown)})>"
