"""Kernels written in the kernel language, and the registry of kernels by name."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, overload

import numpy as np

from dala.budget import Limits
from dala.errors import (
    KernelExists,
    KernelSyntaxError,
    ParameterError,
    UnknownKernel,
    describe,
    did_you_mean,
    printable,
)
from dala.extensions import filter_hint, write_whole
from dala.gpu.compute.buffer import Buffer, allocate
from dala.gpu.compute.call.arguments import number_kinds, pack
from dala.gpu.compute.call.checks import check_alias, check_buffers, check_count, check_types
from dala.gpu.compute.call.geometry import program_for
from dala.gpu.compute.call.plans import BoundCall, Values
from dala.gpu.compute.call.registry import Registry
from dala.gpu.compute.lang import source as sources
from dala.gpu.compute.lang.declaration import KernelDecl, ParamDecl
from dala.gpu.compute.lang.ir import Program
from dala.gpu.compute.lang.markers import Vector
from dala.gpu.compute.lang.parser import declare
from dala.gpu.compute.params import check_mapping
from dala.gpu.compute.runnable import InstanceDoc, Runnable
from dala.typing import Params, PathLike

if TYPE_CHECKING:
    from dala.gpu.compute.kernels import Builtins

#: A Python function in the kernel language.
KernelFunction: TypeAlias = Callable[..., float | Vector | tuple[float, ...]]


class Kernel(Runnable):
    """A function in the kernel language, which runs at every position of an output on any device.

    Make one with :func:`kernel` or :meth:`Kernel.register`. Run it by calling it, or with
    ``run_kernel``. ``kernel.source("wgsl")`` and ``kernel.source("llvm")`` return generated code.

    >>> from dala.gpu.compute import buffer, kernel
    >>> double = kernel("def double(x): return x + x")
    >>> double(buffer([1.0, 2.0], device="cpu")).read_list()
    [2.0, 4.0]
    """

    __doc__ = InstanceDoc(__doc__)

    def __init__(
        self, name: str, decl: KernelDecl | Callable[[], KernelDecl], limits: Limits | None = None
    ) -> None:
        self.name = name
        #: Limits of each call, or None.
        self.limits = limits
        self._decl = decl
        self._plans = {}

    @property
    def decl(self) -> KernelDecl:
        """The checked declaration. Built-in kernels are parsed on first use."""
        if not isinstance(self._decl, KernelDecl):
            self._decl = self._decl()
        return self._decl

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(a.name for a in self.decl.args)

    @property
    def pictures(self) -> frozenset[str]:
        """Names of the inputs that are read as pixels."""
        return frozenset(a.name for a in self.decl.args if a.kind in ("pixel", "image"))

    @property
    def roles(self) -> tuple[tuple[str, str], ...]:
        """Names and roles of the parameters that videos, scenes and surfaces give."""
        return self.decl.roles

    @property
    def params(self) -> tuple[ParamDecl, ...]:
        """The parameters, with types, ranges and defaults."""
        return self.decl.params

    @property
    def doc(self) -> str:
        """The docstring of the function."""
        return self.decl.doc

    def _described_inputs(self) -> list[str]:
        return [f"{a.name}: {a.kind}" for a in self.decl.args]

    # running ----------------------------------------------------------------------------------
    def bind(
        self, inputs: Sequence[Buffer], output: Buffer, params: Params
    ) -> tuple[BoundCall, Values]:
        """Check a call; return it ready to compile, with its parameter values."""
        check_mapping(self.name, params)
        decl, numbers = self.decl, number_kinds(self.decl, params)
        engine = check_buffers(self, inputs, output)
        program, geometry = program_for(decl, inputs, output.shape, output.dtype, numbers)
        check_types(engine, self.name, program.types)
        distinct = tuple(i for i, arg in enumerate(program.args) if arg.kind in ("image", "array"))
        self._check_apart(inputs, output, program)
        shared = any(b.storage(self.name).foreign for b in (*inputs, output))
        call = BoundCall(engine, program, geometry, distinct, shared, limits=self.limits, decl=decl)
        return call, pack(decl, program, params)

    def _facts(self, params: Params) -> tuple[tuple[str, str], ...]:
        decl = self.decl
        return number_kinds(decl, params) if decl.generic else ()

    def _check_apart(
        self, inputs: Sequence[Buffer], output: Buffer, program: Program | None
    ) -> None:
        assert program is not None
        check_alias(self.name, program, inputs, output)

    def new_output(self, inputs: Sequence[Buffer], params: Params) -> Buffer:
        """Return a new buffer of the inputs' broadcast shape and the result's dtype."""
        check_mapping(self.name, params)
        if self.decl.args:
            check_count(self, len(inputs))
        buffers = [b for b in inputs if isinstance(b, Buffer)]
        if not buffers or len(buffers) != len(self.decl.args):
            raise self._no_output()
        engine = buffers[0].engine
        for b in buffers:
            b.storage(self.name)
        kinds = [a.kind for a in self.decl.args]
        images = [b for b, kind in zip(buffers, kinds, strict=True) if kind in ("pixel", "image")]
        try:
            shape = images[0].shape if images else np.broadcast_shapes(*(b.shape for b in buffers))
        except ValueError:
            shape = buffers[0].shape  # the run raises and names the mismatched input
        program, _ = program_for(self.decl, buffers, shape, None, number_kinds(self.decl, params))
        return allocate(engine, shape, program.out.dtype, zero=False, call=self.name)

    # pickling ---------------------------------------------------------------------------------
    def __reduce__(self) -> tuple[Callable[..., Runnable], tuple[str, KernelDecl | None, bool]]:
        builtin = builtins().get(self.name) is self
        registered = _custom.knows(self.name, self)
        return _restored, (self.name, None if builtin else self.decl, registered)

    # showing ----------------------------------------------------------------------------------
    def source(self, target: str = "python", *, dtype: str | None = None) -> str:
        """Return the kernel as "python", as "ir", or as generated code.

        Args:
            target: "python", "ir", "wgsl", "llvm", "glsl" (a fragment shader of GLSL ES 3.00, for
                kernels of pixels) or "isf" (a file for programs that read ISF).
            dtype: the dtype of the buffers in generated code; by default f32 for elements and
                arrays, u8 for images.
        """
        from dala.gpu.compute.codegen import generate

        return generate(self.decl, target, dtype)

    def export_isf(self, path: PathLike) -> None:
        """Write the kernel as an ISF 2 file, for VDMX, Resolume and other programs that read ISF.

        Parameters become inputs with their ranges and defaults; the time, the frame's number, the
        resolution and the date are ISF's own. The kernel must read and write pixels.

        Args:
            path: the file to write, such as "glow.fs".

        Raises:
            ParameterError: GLSL has no form of the kernel.

        >>> import pathlib, tempfile
        >>> fade = kernel("def fade(px: Pixel, *, amount=0.5): return px * amount")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "fade.fs")
        ...     fade.export_isf(path)
        ...     path.read_text()[:2]
        '/*'
        """
        from dala.arguments import checked_path

        file = checked_path("Kernel.export_isf", "path", path)
        write_whole(file, self.source("isf").encode())

    # the registry -----------------------------------------------------------------------------
    @staticmethod
    def register(
        name: str,
        source: str | KernelFunction | Kernel,
        inputs: int | None = None,
        params: Sequence[str] | None = None,
        *,
        limits: Limits | None = None,
    ) -> Kernel:
        """Register a kernel under a name, from text or from a function, and return it.

        Args:
            name: the name to pass to ``run_kernel``. An existing custom kernel of that name is
                replaced; names of built-in kernels are refused (:func:`kernel` accepts them).
            source: a Python function, or the text of one. Text is parsed and never executed.
            inputs: the number of inputs; checked against the function if given.
            params: names of the parameters; checked against the function if given.
            limits: ``dala.limits(...)`` for each call of the kernel, as for text from strangers.
                Tighter limits of ``with`` blocks around a call hold as well. A kernel with limits
                is not fused with others.

        Raises:
            KernelSyntaxError: the source is outside the language. The message shows the line.
            KernelExists: a built-in kernel has this name.

        >>> twice = Kernel.register("twice", "def twice(x): return x + x")
        >>> from dala.gpu.compute import buffer
        >>> twice(buffer([1.0, 2.0], device="cpu")).read_list()
        [2.0, 4.0]
        """
        if params is not None and not all(isinstance(p, str) for p in params):
            expected = "a list of names such as ['amount']"
            advice = "Types and defaults belong in the function."
            raise ParameterError.invalid("Kernel.register", "params", expected, params, advice)
        return _register(name, source, inputs, params, limits)

    @staticmethod
    def unregister(name: str) -> None:
        """Remove a custom kernel. Unknown and built-in names raise an error."""
        _refuse_builtin(name)
        if not _custom.remove(name):
            raise _unknown("Kernel.unregister", name)


def _restored(name: str, decl: KernelDecl | None, registered: bool) -> Runnable:
    """Return a kernel from the state that :meth:`Kernel.__reduce__` keeps."""
    if decl is None:
        return builtins()[name]
    return Kernel.register(name, Kernel(name, decl)) if registered else Kernel(name, decl)


#: Of more registered kernels, those that were made or found by name last are kept compiled.
MAX_HELD: Final = 512

#: Of kernels made with :func:`kernel` that no one holds, the names of so many are known.
MAX_PASSING: Final = 1024

_custom = Registry[Kernel](MAX_HELD, MAX_PASSING)


def _register(
    name: str,
    source: str | KernelFunction | Kernel,
    inputs: int | None,
    params: Sequence[str] | None,
    limits: Limits | None,
    *,
    passing: bool = False,
) -> Kernel:
    """Register a kernel; a passing one may be forgotten when no one holds it."""
    if not isinstance(name, str) or not name or printable(name) != name:
        raise ParameterError.invalid(
            "Kernel.register", "name", "a non-empty str without lone surrogates", name
        )
    _refuse_builtin(name)
    check_limits("Kernel.register", limits)
    if isinstance(source, Kernel):
        limits = limits or source.limits
        decl = source.decl
        again: KernelDecl | Callable[[], KernelDecl] = decl
    else:
        decl, again = _declare(name, source, inputs, params)
    made = Kernel(name, decl, limits)
    _custom.put(name, made, functools.partial(Kernel, name, again, limits), passing=passing)
    return made


def check_limits(call: str, limits: object) -> None:
    """Raise unless limits are those of ``dala.limits``, or None."""
    if limits is not None and not isinstance(limits, Limits):
        raise ParameterError.invalid(call, "limits", "dala.limits(...) or None", limits)


@overload
def kernel(
    source: KernelFunction | str, *, name: str | None = None, limits: Limits | None = None
) -> Kernel: ...
@overload
def kernel(
    *, name: str | None = None, limits: Limits | None = None
) -> Callable[[KernelFunction], Kernel]: ...
def kernel(
    source: KernelFunction | str | None = None,
    *,
    name: str | None = None,
    limits: Limits | None = None,
) -> Kernel | Callable[[KernelFunction], Kernel]:
    """Create a kernel from a Python function or its text, and register it under its name.

    The name means the kernel while someone holds it, and for the last 1,024 that were made; those
    of :meth:`Kernel.register` are kept until they are unregistered.

    A kernel may have the name of a built-in one. It is then not registered: the name still means
    the built-in kernel, and calls take the kernel itself instead of its name.

    Args:
        source: the function or its text; without it, :func:`kernel` returns a decorator.
        name: the name; by default the function's.
        limits: ``dala.limits(...)`` for each call, see :meth:`Kernel.register`.

    >>> from dala.gpu.compute import buffer
    >>> wave = kernel("def wave(x, *, amount=2.0): return x * amount + 1")
    >>> wave(buffer([1.0, 2.0], device="cpu"), amount=10).read_list()
    [11.0, 21.0]
    """
    if source is None:
        return lambda function: kernel(function, name=name, limits=limits)
    check_limits("kernel", limits)
    if isinstance(source, str):
        name = name or _name_in(source)
    elif name is None:
        name = str(getattr(source, "__name__", "kernel"))
    if not isinstance(name, str) or name not in builtins():
        return _register(name, source, None, None, limits, passing=True)
    logging.getLogger("dala").info(
        "kernel: the name %r means the built-in kernel. Pass the new kernel itself, not its name.",
        name,
    )
    return Kernel(name, _declare(name, source, None, None)[0], limits)


def _name_in(text: str) -> str:
    """Return the name of the last function in source text."""
    import ast

    try:
        tree = sources.from_text(text, "kernel").parse()
    except KernelSyntaxError:
        return "kernel"  # declaring it raises
    names = [s.name for s in tree.body if isinstance(s, ast.FunctionDef)]
    return names[-1] if names else "kernel"


def _declare(
    name: str, source: str | KernelFunction, inputs: int | None, params: Sequence[str] | None
) -> tuple[KernelDecl, KernelDecl | Callable[[], KernelDecl]]:
    """Return the declaration, and a way to make it again: of text, a function that holds little."""
    if isinstance(source, str):
        text, used = sources.from_text(source, name), {}

        def lookup(free: str) -> KernelDecl | None:
            found = registered(free)
            if found is not None:
                used[free] = found  # the name may mean another kernel later
            return found

        decl = declare(text, lookup=lookup, inputs=inputs, params=params)
        again = functools.partial(declare, text, lookup=used.get, inputs=inputs, params=params)
        return decl, again
    if not callable(source) or getattr(source, "__name__", "") == "<lambda>":
        raise KernelSyntaxError(
            f"a kernel must be a function or its text, got {getattr(source, '__name__', source)!r}",
            advice="Write def name(x): return ...",
            kernel=name,
        )
    decl = declare_function(source, name, inputs, params)
    return decl, decl


def declare_function(
    function: KernelFunction,
    name: str,
    inputs: int | None = None,
    params: Sequence[str] | None = None,
) -> KernelDecl:
    """Return the declaration of a Python function; free names are looked up in its module."""
    return declare(
        sources.from_function(function, name),
        lookup=function_lookup(function),
        inputs=inputs,
        params=params,
    )


def function_lookup(function: KernelFunction) -> Callable[[str], object]:
    """Return the lookup of a function's free names: its closure, its module, and kernels."""
    code = getattr(function, "__code__", None)
    cells = getattr(function, "__closure__", None) or ()
    closed = {}
    for free, cell in zip(code.co_freevars if code else (), cells, strict=True):
        try:
            closed[free] = cell.cell_contents
        except ValueError:
            continue  # not bound yet
    names = getattr(function, "__globals__", {})

    def lookup(free: str) -> object:
        found = closed.get(free, names.get(free))
        if isinstance(found, Kernel):
            return found.decl
        # The name of a plain function means the built-in kernel of that name.
        return registered(free) if found is None or callable(found) else found

    return lookup


@functools.cache
def text_kernel(name: str, text: str) -> Kernel:
    """Return a kernel that is not registered, from its text; equal text gives the same kernel."""
    return Kernel(name, declare(sources.from_text(text.strip(), name)))


def registered(name: str) -> KernelDecl | None:
    """Return the declaration of a registered language kernel, or None."""
    found = find(name)
    return found.decl if isinstance(found, Kernel) else None


def _refuse_builtin(name: str) -> None:
    if name in builtins():
        raise KernelExists(
            f"Kernel.register: {name!r} is a built-in kernel and cannot be replaced. "
            "Choose another name, or use @kernel and pass the kernel itself."
        )


def builtins() -> Builtins:
    """Return the built-in kernels and operations, by name."""
    from dala.gpu.compute.kernels import BUILTINS

    return BUILTINS


_builtins = functools.cache(builtins)  # an import statement takes half a microsecond


def find(name: str) -> Runnable | None:
    """Return the kernel or operation with a name, or None."""
    known = _builtins()
    return _custom.held.get(name) or known.held.get(name) or known.get(name) or _custom.find(name)


def names() -> list[str]:
    """Return the names of all kernels, custom ones included, sorted."""
    return sorted({*builtins(), *_custom})


def get(kernel: Runnable | str, call: str = "run_kernel") -> Runnable:
    """Return the kernel with a name, or a kernel object itself; raise UnknownKernel otherwise."""
    if isinstance(kernel, str):  # first: an ABC's isinstance is slow
        found = find(kernel)
        if found is None:
            raise _unknown(call, kernel)
        return found
    if not isinstance(kernel, (Kernel, Runnable)):  # the exact type is a fast path
        raise _unknown(call, kernel)
    return kernel


def _unknown(call: str, name: object) -> UnknownKernel:
    if not isinstance(name, str):
        return UnknownKernel(
            f"{call}: kernel must be a name or a Kernel, got {describe(name)}.", call=call
        )
    hint = filter_hint(name) or did_you_mean(name, names()) or "kernels() lists all."
    return UnknownKernel(f"{call}: no kernel {name!r}. {hint}", call=call)
