"""Lazy package attributes: a name is imported from its module when it is first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping


def attach(
    package: str, homes: Mapping[str, str], rooms: tuple[str, ...] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package whose names load on first use.

    Args:
        package: the package's ``__name__``.
        homes: for each public name, the module that defines it.
        rooms: subpackages and submodules that are public names themselves.
    """

    def getattr_(name: str) -> object:
        from importlib import import_module

        if name in rooms:
            return import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(  # with name and obj, Python adds its "Did you mean ...?"
                f"module {package!r} has no attribute {name!r}",
                name=name,
                obj=sys.modules[package],
            )
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)  # the next lookup does not get here
        return value

    def dir_() -> list[str]:
        dunders = (name for name in vars(sys.modules[package]) if name.startswith("__"))
        return sorted({*dunders, *homes, *rooms})

    return getattr_, dir_
