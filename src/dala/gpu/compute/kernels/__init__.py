"""The built-in kernels, by domain. Each is a plain kernel function, read when first used."""

from __future__ import annotations

from functools import partial
from types import ModuleType

from dala.gpu.compute.kernel import Kernel, declare_function
from dala.gpu.compute.kernels import color, compose, elementwise, filters, generate, keying


def _collect(*modules: ModuleType) -> dict[str, Kernel]:
    """Every public function of the modules, as a kernel that is declared on first use."""
    found: dict[str, Kernel] = {}
    for module in modules:
        for name in module.__all__:
            function = getattr(module, name)
            found[name] = Kernel(name, partial(declare_function, function, name))
    return found


BUILTINS = _collect(elementwise, generate, color, filters, keying, compose)
