"""The models that load by name: one file each, which declares the model as ``MODEL``."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # importing this package imports no model
    from dala.ml.spec import ModelSpec

#: Every model, by name.
NAMES: Final = tuple(sorted(found.name for found in pkgutil.iter_modules(__path__)))


def find_model(name: str) -> ModelSpec | None:
    """Return the declaration of a model, or None if there is no such model."""
    if name not in NAMES:
        return None
    spec: ModelSpec = import_module(f"{__name__}.{name}").MODEL
    return spec
