"""Importable names of the kernel language, for editors and type checkers.

Kernels run without these imports, and importing the names changes nothing about a kernel. Calling
one outside a kernel raises an error. ``dala.gpu.compute`` has the names too. ``import *`` leaves
out names that are Python builtins (``abs len max min pow round``); import them by name to pass
vectors to them::

    from dala.gpu.compute.language import Pixel, clamp, kernel, rgba

    @kernel
    def brighter(px: Pixel, *, by: float = 0.1):
        return rgba(clamp(px.rgb + by, 0.0, 1.0), px.a)

>>> clamp(0.5, 0.0, 1.0)
Traceback (most recent call last):
dala.errors.DalaError: clamp: this name of the kernel language works only inside a kernel. ...
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import NoReturn

from dala.gpu.compute.kernel import kernel
from dala.gpu.compute.lang import markers
from dala.gpu.compute.lang.declaration import CONSTANTS
from dala.gpu.compute.lang.functions import FUNCTIONS

_MARKERS = {"kernel": kernel} | {name: getattr(markers, name) for name in markers.__all__}


def _function(name: str, doc: str) -> Callable[..., NoReturn]:
    def function(*args: float, **params: float) -> NoReturn:
        markers.outside_kernel(name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}." if doc.startswith(name) else f"{doc[:1].upper()}{doc[1:]}."
    return function


#: Python's own types, which kernels use as casts.
_CASTS = ("bool", "float", "int")
_FUNCTIONS = {
    name: _function(name, row.doc)
    for name, row in FUNCTIONS.items()
    if name not in _MARKERS and name not in _CASTS
}

__all__ = sorted(
    name for name in (*_MARKERS, *CONSTANTS, *_FUNCTIONS) if not hasattr(builtins, name)
)

# ``language.pyi`` declares their types; a test compares the two.
globals().update(_MARKERS, **CONSTANTS, **_FUNCTIONS)
