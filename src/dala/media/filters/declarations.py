"""Every declared filter: the kernels' and the recipes'."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from dala.gpu.compute.kernel import builtins
from dala.gpu.compute.kernels.filter import FILTERS, FilterSpec


def declared() -> Mapping[str, FilterSpec]:
    """Return every declared filter by name.

    Effects and conversions are included. A filter that is declared later appears here at once.

    >>> declared()["blur"].parameters[0].range
    '0 to 200'
    """
    if "grade" not in FILTERS:
        import_module("dala.media.filters.recipes")
        len(builtins())  # imports the modules of kernels, which declare theirs
    return FILTERS


def filter_names() -> list[str]:
    """Return the names that a list of filters may hold, sorted; conversions are left out."""
    return sorted(name for name, spec in declared().items() if spec.kind != "conversion")
