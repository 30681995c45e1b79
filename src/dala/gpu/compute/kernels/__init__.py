"""The built-in kernels, by domain, each read when first used.

Most are plain kernel functions in the language. Operations (:mod:`dala.gpu.compute.operation`) are
those that the language cannot say well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from importlib import import_module
from types import ModuleType
from typing import Final

from dala.extensions import kernel_modules
from dala.gpu.compute.kernel import Kernel, declare_function
from dala.gpu.compute.kernels import color, compose, elementwise, filters, generate, keying

#: Operations, by the module that holds their classes.
OPERATIONS: Final = {
    "arrange": ("gather", "reshape", "transpose"),
    "blur": ("blur", "gaussian_blur"),
    "conv": ("conv2d",),
    "fft": ("fft", "ifft"),
    "linalg": ("matmul",),
    "lut": ("lut_apply",),
    "norm": ("layer_norm", "softmax"),
    "reduce": ("argmax", "reduce_max", "reduce_min", "reduce_sum"),
    "resize": ("bicubic_scale", "preprocess", "resize"),
    "scan": ("cumsum", "histogram"),
    "signal": ("convolve1d",),
    "warp": ("remap", "warp_affine", "warp_perspective"),
    "yuv": ("rgb_to_yuv", "yuv_to_rgb"),
}


class _Builtins(Mapping[str, Kernel]):
    """Kernels by name; a module with operations is imported when one of them is asked for."""

    def __init__(self, *modules: ModuleType) -> None:
        self._found: dict[str, Kernel] = {}
        for module in modules:
            for name in module.__all__:
                function = getattr(module, name)
                self._found[name] = Kernel(name, partial(declare_function, function, name))

    @cached_property
    def _modules(self) -> dict[str, str]:
        """The module of each operation, this package's own and those that others add."""
        own = {n: f"{__name__}.{where}" for where, names in OPERATIONS.items() for n in names}
        return {**own, **dict(kernel_modules())}

    def __getitem__(self, name: str) -> Kernel:
        found = self._found.get(name)
        if found is None:
            module = import_module(self._modules[name])
            for made in (kind() for kind in module.OPERATIONS):
                self._found.setdefault(made.name, made)
            found = self._found[name]
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._found or name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter({**self._found, **self._modules})

    def __len__(self) -> int:
        return len({**self._found, **self._modules})


BUILTINS = _Builtins(elementwise, generate, color, filters, keying, compose)
