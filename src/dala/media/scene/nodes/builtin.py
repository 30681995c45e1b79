"""Import every module of this folder: declaring a node class registers it."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from dala.media.scene import nodes

for _found in pkgutil.iter_modules(nodes.__path__):
    import_module(f"{nodes.__name__}.{_found.name}")
