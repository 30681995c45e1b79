"""The common interface of kernels and operations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from dala.gpu.compute.buffer import Buffer
from dala.gpu.compute.call.plans import BoundCall, CallPlan, ReadyCall, Values
from dala.typing import Params, ParamValue

if TYPE_CHECKING:
    from dala.gpu.compute.lang.declaration import ParamDecl
    from dala.gpu.compute.params import Parameter

#: The number of call plans that each kernel caches.
MAX_PLANS = 1024

NO_PARAMS: Params = {}


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
    #: True if it may be the last pass of a chain although it changes the height or width.
    ends_chain: ClassVar[bool] = False
    _plans: dict[tuple[object, ...], CallPlan]

    @property
    @abstractmethod
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""

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
    def plan(
        self, inputs: Sequence[Buffer], output: Buffer, params: Params = NO_PARAMS
    ) -> ReadyCall:
        """Check and compile a call, or find its cached plan. Runs nothing."""

    @abstractmethod
    def new_output(self, inputs: Sequence[Buffer], params: Params) -> Buffer:
        """Return a new output buffer for some inputs."""

    @abstractmethod
    def source(self, target: str = "python", *, dtype: str | None = None) -> str:
        """Return the source code, or generated code for a target."""

    def run(self, inputs: Sequence[Buffer], output: Buffer, params: Params = NO_PARAMS) -> None:
        """Run on input buffers and write the output, after checking all arguments."""
        plan, storages, target, values = self.plan(inputs, output, params)
        plan.run(storages, target, values)

    def __call__(self, *inputs: Buffer, out: Buffer | None = None, **params: ParamValue) -> Buffer:
        """Run on buffers and return the output: ``out``, or a new buffer.

        A new output has the inputs' broadcast shape and the dtype of the result.
        """
        if out is None:
            out = self.new_output(inputs, params)
        self.run(inputs, out, params)
        return out

    def _keep(self, key: tuple[object, ...], plan: CallPlan) -> CallPlan:
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans[key] = plan
        return plan
