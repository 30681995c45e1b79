"""The models that are known by name, a file each: how pictures go in, and what comes out."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from dala.ml.models.recipe import Recipe

#: Every model, in the order they are listed.
NAMES: Final = (
    "mobilenet_v2", "yolo_v5", "blazeface", "blazeface_back", "posenet", "deeplab", "u2netp",
)  # fmt: skip


@cache
def find_recipe(name: str) -> Recipe | None:
    """The recipe of a model, or None."""
    if name not in NAMES:
        return None
    home = "blazeface" if name.startswith("blazeface") else name
    recipe: Recipe = import_module(f"{__name__}.{home}").RECIPES[name]
    return recipe
