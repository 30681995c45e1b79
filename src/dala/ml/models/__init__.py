"""The models that are known by name, a file each: how pictures go in, and what comes out."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from dala.ml.models.recipe import Recipe
from dala.ml.names import NAMES as NAMES


@cache
def find_recipe(name: str) -> Recipe | None:
    """The recipe of a model, or None."""
    if name not in NAMES:
        return None
    home = "blazeface" if name.startswith("blazeface") else name
    recipe: Recipe = import_module(f"{__name__}.{home}").RECIPES[name]
    return recipe
