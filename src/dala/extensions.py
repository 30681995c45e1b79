"""Packages that add kernels to :mod:`dala.gpu.compute`, which itself knows none of them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Final

#: Pairs of modules. The first has ``NAMES``, the kernels' names, and is cheap to import; the second
#: has ``OPERATIONS``, their classes, and is imported when one of them is first used.
KERNEL_MODULES: Final = (("dala.ml.models", "dala.ml.stages"),)


def kernel_modules() -> Iterator[tuple[str, str]]:
    """Yield the name of each added kernel and the module that defines it.

    >>> dict(kernel_modules())["mobilenet_v2"]
    'dala.ml.stages'
    """
    for listing, module in KERNEL_MODULES:
        for name in import_module(listing).NAMES:
            yield name, module
