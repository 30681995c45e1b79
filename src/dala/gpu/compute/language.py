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
from dala.gpu.compute.lang.declaration import CONSTANTS
from dala.gpu.compute.lang.functions import FUNCTIONS
from dala.gpu.compute.lang.markers import (
    Array,
    Image,
    IntOrFloat,
    Pixel,
    Vector,
    Within,
    f32,
    f64,
    outside_kernel,
    rgba,
    s32,
    s64,
    u8,
    u32,
    vec2,
    vec3,
    vec4,
)

_MARKERS = {
    "Array": Array,
    "Image": Image,
    "IntOrFloat": IntOrFloat,
    "Pixel": Pixel,
    "Vector": Vector,
    "Within": Within,
    "f32": f32,
    "f64": f64,
    "kernel": kernel,
    "rgba": rgba,
    "s32": s32,
    "s64": s64,
    "u8": u8,
    "u32": u32,
    "vec2": vec2,
    "vec3": vec3,
    "vec4": vec4,
}


def _function(name: str, doc: str) -> Callable[..., NoReturn]:
    def function(*args: float, **params: float) -> NoReturn:
        outside_kernel(name)

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
globals().update(CONSTANTS, **_FUNCTIONS)
