"""Kernels: declared once, run anywhere, found by name."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias, overload

from dala.errors import (
    FreedError,
    KernelExists,
    KernelSyntaxError,
    ParameterError,
    UnknownKernel,
    did_you_mean,
)
from dala.errors import describe as describe_value
from dala.gpu.compute.buffer import Buffer, allocate
from dala.gpu.compute.call.bind import (
    Call,
    Plan,
    check_alias,
    check_call,
    describe,
    make_plan,
    number_kinds,
    pack,
)
from dala.gpu.compute.engines.base import Storage
from dala.gpu.compute.lang import source as sources
from dala.gpu.compute.lang.decl import KernelDecl, ParamDecl
from dala.gpu.compute.lang.declare import declare
from dala.gpu.compute.params import check_params

_MAX_PLANS = 1024
_NO_PARAMS: Mapping[str, Any] = {}

#: A run that was checked: its plan, the inputs' and the output's memory, the parameters.
Checked: TypeAlias = tuple[Plan, list[Storage], Storage, tuple[int | float, ...]]


class Kernel:
    """A function that runs at every position of an output, on any device.

    Make one with :func:`kernel` or :meth:`Kernel.register`; run it by calling it, or with
    ``run_kernel``. ``kernel.source("wgsl")`` and ``kernel.source("llvm")`` show generated code.
    """

    #: How many of the last inputs may be left out.
    optional: ClassVar[int] = 0
    #: False for operations, which have code of their own and cannot be called from other kernels.
    language: ClassVar[bool] = True

    def __init__(self, name: str, decl: KernelDecl | Callable[[], KernelDecl]) -> None:
        self.name = name
        self._decl = decl
        self._plans: dict[Any, Plan] = {}

    @property
    def decl(self) -> KernelDecl:
        """The checked declaration. Built-in kernels are read when first asked for."""
        if not isinstance(self._decl, KernelDecl):
            self._decl = self._decl()
        return self._decl

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(a.name for a in self.decl.args)

    @property
    def params(self) -> tuple[ParamDecl, ...]:
        """The parameters, with types and defaults."""
        return self.decl.params

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return self.decl.doc

    def __repr__(self) -> str:
        inputs = [f"{a.name}: {a.kind}" for a in self.decl.args]
        params = [p.name if p.required else f"{p.name}={p.default}" for p in self.decl.params]
        return f"<Kernel {self.name}({', '.join([*inputs, *(['*', *params] if params else [])])})>"

    # running ----------------------------------------------------------------------------------
    def check(
        self, inputs: Sequence[Buffer], output: Buffer, params: Mapping[str, Any] = _NO_PARAMS
    ) -> Checked:
        """Checks a run without running it; ``plan.run(storages, target, values)`` runs it."""
        found: list[Checked] = []
        self.run(inputs, output, params, found)
        return found[0]

    def bind(
        self, inputs: Sequence[Any], output: Any, params: Mapping[str, Any]
    ) -> tuple[Call, tuple[int | float, ...]]:
        """Checks a call; gives it ready to be prepared, and the values to run it with."""
        call = check_call(self, inputs, output, number_kinds(self.decl, params))
        assert call.program is not None
        return call, pack(self.decl, call.program.params, params)

    def run(
        self,
        inputs: Sequence[Buffer],
        output: Buffer,
        params: Mapping[str, Any] = _NO_PARAMS,
        _checked: list[Checked] | None = None,  # here and not around: a call within costs 5%
    ) -> None:
        """Runs the kernel: checks everything, then writes ``output``."""
        decl = self.decl
        if params and not isinstance(params, Mapping):
            check_params(self.name, params, ())
        numbers = number_kinds(decl, params) if decl.params and params else ()
        try:
            key = (numbers, output._key, *[b._key for b in inputs])
            plan = self._plans.get(key)
        except (AttributeError, TypeError):
            plan = None  # something is not a buffer; the checks below say what
        if plan is None or output._key is None:
            numbers = numbers or number_kinds(decl, params)
            plan = make_plan(self, inputs, output, numbers)
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            self._plans[(numbers if params else (), output._key, *[b._key for b in inputs])] = plan
        program = plan.program
        assert program is not None
        values = pack(decl, program.params, params)
        target = output._storage
        storages = [b._storage for b in inputs]
        if target is None or None in storages:
            raise FreedError(f"{self.name}: a buffer was freed during the call.", call=self.name)
        for i in plan.distinct:
            if storages[i] is target:
                check_alias(self.name, program, inputs, output)
        if plan.shared:  # what memory a buffer lies over is no part of the plan
            output.check_writable(self.name)
            check_alias(self.name, program, inputs, output)
        if _checked is None:
            plan.run(storages, target, values)  # type: ignore[arg-type]
        else:
            _checked.append((plan, storages, target, values))  # type: ignore[arg-type]

    def __call__(self, *inputs: Buffer, out: Buffer | None = None, **params: Any) -> Buffer:
        """Runs the kernel on buffers and returns the output, a new one unless ``out`` is given.

        A new output has the inputs' broadcast shape and the dtype of the result.
        """
        if out is None:
            out = self._new_output(inputs, params)
        self.run(list(inputs), out, params)
        return out

    def _new_output(self, inputs: Sequence[Buffer], params: Mapping[str, Any]) -> Buffer:
        import numpy as np

        buffers = [b for b in inputs if isinstance(b, Buffer)]
        if not buffers or len(buffers) != len(self.decl.args):
            raise ParameterError(
                f"{self.name}: the output's shape cannot be told from the inputs. "
                "Give it: out=buffer_zeros(shape, dtype)."
            )
        engine = buffers[0].engine
        for b in buffers:
            b.storage(self.name)
        kinds = [a.kind for a in self.decl.args]
        images = [b for b, kind in zip(buffers, kinds, strict=True) if kind in ("pixel", "image")]
        try:
            shape = images[0].shape if images else np.broadcast_shapes(*(b.shape for b in buffers))
        except ValueError:
            shape = buffers[0].shape  # the run below says which input does not fit
        program, _ = describe(self.decl, buffers, shape, None, number_kinds(self.decl, params))
        return allocate(engine, shape, program.out.dtype, zero=False, call=self.name)

    # showing ----------------------------------------------------------------------------------
    def source(self, target: str = "python", *, dtype: str | None = None) -> str:
        """The kernel as "python", as "ir", or as generated "wgsl" or "llvm" code.

        Args:
            target: which form.
            dtype: dtype of the buffers it is shown for; f32 for elements and arrays, u8 for images
                where left out.
        """
        from dala.gpu.compute.listing import show

        return show(self.decl, target, dtype)

    # the registry -----------------------------------------------------------------------------
    @staticmethod
    def register(
        name: str,
        source: str | Callable[..., Any] | Kernel,
        inputs: int | None = None,
        params: Sequence[str] | None = None,
    ) -> Kernel:
        """Declares a kernel under a name, from text or from a function, and returns it.

        Args:
            name: the name ``run_kernel`` finds it by. A custom kernel of that name is replaced;
                the name of a built-in one is refused.
            source: a Python function, or the text of one. Text is parsed and never executed.
            inputs: how many inputs it has; checked against the function where given.
            params: names of its parameters; checked against the function where given.

        Raises:
            KernelSyntaxError: the source is outside the language; shows line, caret and advice.
            KernelExists: a built-in kernel has this name.

        >>> twice = Kernel.register("twice", "def twice(x): return x + x")
        >>> from dala.gpu.compute import buffer
        >>> twice(buffer([1.0, 2.0], device="cpu")).read_list()
        [2.0, 4.0]
        """
        if not isinstance(name, str) or not name:
            raise ParameterError.invalid("Kernel.register", "name", "a non-empty str", name)
        _refuse_builtin(name)
        if params is not None and not all(isinstance(p, str) for p in params):
            raise ParameterError.invalid(
                "Kernel.register",
                "params",
                "a list of names such as ['amount']",
                params,
                "Types and defaults belong in the function.",
            )
        if isinstance(source, Kernel):
            made = Kernel(name, source.decl)
        else:
            made = Kernel(name, _declare(name, source, inputs, params))
        with _lock:
            _custom[name] = made
        return made

    @staticmethod
    def unregister(name: str) -> None:
        """Forgets a custom kernel; unknown and built-in names are refused."""
        _refuse_builtin(name)
        with _lock:
            gone = _custom.pop(name, None)
        if gone is None:
            raise _unknown("Kernel.unregister", name)


_lock = threading.Lock()
_custom: dict[str, Kernel] = {}


@overload
def kernel(source: Callable[..., Any] | str, *, name: str | None = None) -> Kernel: ...
@overload
def kernel(*, name: str | None = None) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(
    source: Callable[..., Any] | str | None = None, *, name: str | None = None
) -> Kernel | Callable[[Callable[..., Any]], Kernel]:
    """Turns a Python function (or its text) into a kernel, registered under the function's name.

    >>> from dala.gpu.compute import buffer
    >>> wave = kernel("def wave(x, *, amount=2.0): return x * amount + 1")
    >>> wave(buffer([1.0, 2.0], device="cpu"), amount=10).read_list()
    [11.0, 21.0]
    """
    if source is None:
        return lambda function: kernel(function, name=name)
    if isinstance(source, str):
        return Kernel.register(name or _name_in(source), source)
    return Kernel.register(name or str(getattr(source, "__name__", "kernel")), source)


def _name_in(text: str) -> str:
    """The name of the last function in a text."""
    import ast

    try:
        tree = sources.from_text(text, "kernel").parse()
    except KernelSyntaxError:
        return "kernel"  # declaring it says what is wrong
    names = [s.name for s in tree.body if isinstance(s, ast.FunctionDef)]
    return names[-1] if names else "kernel"


def _declare(
    name: str,
    source: str | Callable[..., Any],
    inputs: int | None,
    params: Sequence[str] | None,
) -> KernelDecl:
    if isinstance(source, str):
        return declare(
            sources.from_text(source, name), lookup=_registered, inputs=inputs, params=params
        )
    if not callable(source) or getattr(source, "__name__", "") == "<lambda>":
        raise KernelSyntaxError(
            f"a kernel is a function or its text, {getattr(source, '__name__', source)!r} came",
            advice="Write def name(x): return ...",
            kernel=name,
        )
    return declare_function(source, name, inputs, params)


def declare_function(
    function: Callable[..., Any],
    name: str,
    inputs: int | None = None,
    params: Sequence[str] | None = None,
) -> KernelDecl:
    """The declaration of a Python function; free names mean what they mean in its module."""
    code = getattr(function, "__code__", None)
    cells = getattr(function, "__closure__", None) or ()
    closed = {}
    for free, cell in zip(code.co_freevars if code else (), cells, strict=True):
        try:
            closed[free] = cell.cell_contents
        except ValueError:
            continue  # not bound yet
    names = getattr(function, "__globals__", {})

    def lookup(free: str) -> Any:
        found = closed.get(free, names.get(free))
        if isinstance(found, Kernel) and found.language:
            return found.decl
        # A plain function beside it is a built-in kernel, or nothing the language can call.
        return _registered(free) if found is None or callable(found) else found

    return declare(
        sources.from_function(function, name), lookup=lookup, inputs=inputs, params=params
    )


def _registered(name: str) -> KernelDecl | None:
    """What a free name means in kernel text: a registered kernel, or nothing."""
    found = find(name)
    return found.decl if found is not None and found.language else None


def _refuse_builtin(name: str) -> None:
    if name in builtins():
        raise KernelExists(
            f"Kernel.register: {name!r} is a built-in kernel and cannot be replaced. "
            "Choose another name."
        )


def builtins() -> Mapping[str, Kernel]:
    """The built-in kernels by name."""
    from dala.gpu.compute.kernels import BUILTINS

    return BUILTINS


def find(name: str) -> Kernel | None:
    """The kernel of a name, or None."""
    return _custom.get(name) or builtins().get(name)


def names() -> list[str]:
    """Names of all kernels, custom ones included, sorted."""
    with _lock:
        return sorted({*builtins(), *_custom})


def get(kernel: Kernel | str, call: str = "run_kernel") -> Kernel:
    """The kernel, by name or itself; UnknownKernel with the nearest names otherwise."""
    if isinstance(kernel, Kernel):
        return kernel
    found = find(kernel) if isinstance(kernel, str) else None
    if found is None:
        raise _unknown(call, kernel)
    return found


def _unknown(call: str, name: object) -> UnknownKernel:
    if not isinstance(name, str):
        return UnknownKernel(
            f"{call}: kernel must be a name or a Kernel, got {describe_value(name)}.", call=call
        )
    hint = did_you_mean(name, names()) or "kernels() lists all."
    return UnknownKernel(f"{call}: no kernel {name!r}. {hint}", call=call)
