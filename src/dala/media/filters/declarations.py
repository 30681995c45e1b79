"""Every declared filter: the kernels' and the recipes'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final

from dala import forks
from dala.gpu.compute.kernel import builtins, find
from dala.gpu.compute.kernels.filter import FILTERS, FilterParam, FilterSpec, parameter_of
from dala.gpu.compute.runnable import Runnable

#: The modules of this package that declare recipes.
RECIPES: Final = (
    "recipes",
    "backgrounds",
    "tones",
    "histograms",
    "blending",
    "geometry",
    "neighborhoods",
)

_lock = forks.rlock()
#: Whether every module that declares filters has been imported.
_complete = False


def declared() -> Mapping[str, FilterSpec]:
    """Return every declared filter by name.

    Effects and conversions are included. A filter that is declared later appears here at once.

    >>> declared()["blur"].parameters[0].range
    '0 to 200'
    """
    global _complete
    if not _complete:
        with _lock:
            len(builtins())  # imports the modules of the built-in kernels
            for module in RECIPES:
                import_module(f"dala.media.filters.{module}")
            _complete = True
    return FILTERS


def filter_names() -> list[str]:
    """Return the names that a list of filters may hold, sorted; conversions are left out."""
    return sorted(name for name, spec in declared().items() if spec.kind != "conversion")


def parameters_of(item: str | Runnable) -> Sequence[FilterParam]:
    """Return the parameters of a filter or kernel, without those that every call is given itself.

    >>> [p.name for p in parameters_of("sepia")]
    ['amount']
    """
    spec = declared().get(item) if isinstance(item, str) else None
    if spec is not None:
        return spec.parameters
    kernel = find(item) if isinstance(item, str) else item
    if kernel is None:
        return ()
    given = dict(kernel.roles)
    return [parameter_of(p) for p in kernel.params if p.name not in given]


def module_of(spec: FilterSpec) -> str:
    """Return the name of the module that has the filter's call."""
    return "effects" if spec.kind == "effect" else "gpu"


def recipe_hint(name: str) -> str:
    """Return how to call a filter of several kernels, which has no kernel of its name; else "".

    >>> recipe_hint("equalize")
    'It is a filter of several kernels: call dala.media.gpu.equalize(picture).'
    >>> recipe_hint("blur")
    ''
    """
    spec = declared().get(name)
    if spec is None or not spec.is_recipe:
        return ""
    call = f"dala.media.{module_of(spec)}.{name}(picture{', ...' if spec.example else ''})"
    return f"It is a filter of several kernels: call {call}."
