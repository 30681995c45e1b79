"""The interface that kernels and operations share: work that runs over buffers, by name."""

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

#: Plans that each kernel keeps.
MAX_PLANS = 1024

NO_PARAMS: Params = {}


class InstanceDoc:
    """The docstring of a class whose instances have docstrings of their own."""

    def __init__(self, doc: str | None) -> None:
        self._doc = doc

    def __get__(self, instance: Runnable | None, owner: type) -> str | None:
        return self._doc if instance is None else instance.doc


class Runnable(ABC):
    """Work that runs over buffers: a :class:`Kernel` of the language, or an :class:`Operation`.

    ``run_kernel``, pipelines and streams accept both, by name or as objects. Calling one runs it:

    >>> from dala.gpu.compute import buffer
    >>> from dala.gpu.compute.kernel import get
    >>> get("relu")(buffer([-1.0, 2.0], device="cpu")).read_list()
    [0.0, 2.0]
    """

    #: The name that ``run_kernel`` finds it by.
    name: str
    #: How many of the last inputs may be left out.
    optional: ClassVar[int] = 0
    #: True where it may end a chain of passes although it changes the height or width.
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
        """Check a call; return it ready to be compiled, and its parameter values."""

    @abstractmethod
    def plan(
        self, inputs: Sequence[Buffer], output: Buffer, params: Params = NO_PARAMS
    ) -> ReadyCall:
        """Check a call and compile it, or find its plan; nothing is run."""

    @abstractmethod
    def new_output(self, inputs: Sequence[Buffer], params: Params) -> Buffer:
        """Return a new buffer that fits as the output of a call."""

    @abstractmethod
    def source(self, target: str = "python", *, dtype: str | None = None) -> str:
        """Return the source code, or code generated from it."""

    def run(self, inputs: Sequence[Buffer], output: Buffer, params: Params = NO_PARAMS) -> None:
        """Run over some inputs into an output. Everything is checked before anything is written."""
        plan, storages, target, values = self.plan(inputs, output, params)
        plan.run(storages, target, values)

    def __call__(self, *inputs: Buffer, out: Buffer | None = None, **params: ParamValue) -> Buffer:
        """Run over buffers and return the output: ``out``, or a new buffer.

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
