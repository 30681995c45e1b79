"""Lazy package attributes: a name is imported from its module when it is first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from operator import attrgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def attach_stub(
    package: str, renamed: Mapping[str, str] | None = None, *, aside: str = ""
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package, from its ``__init__.pyi``.

    The stub, which type checkers read, has a line for each name: ``from home import name as name``.
    A name of the package itself is a module.

    Args:
        package: the package's ``__name__``.
        renamed: as for :func:`attach`.
        aside: as for :func:`attach`.
    """
    spec = sys.modules[package].__spec__
    assert spec is not None
    loader: Any = spec.loader
    stub: bytes = loader.get_data(f"{spec.origin}i")
    lines = [line.split() for line in stub.decode().splitlines() if line.startswith("from ")]
    homes = {words[3]: words[1] for words in lines if words[1] != package}
    rooms = tuple(words[3] for words in lines if words[1] == package)
    made = attach(package, homes, rooms, renamed=renamed, aside=aside)
    return *made, [*rooms, *(name for name, home in homes.items() if home != aside)]


def attach(
    package: str,
    homes: Mapping[str, str],
    rooms: tuple[str, ...] = (),
    *,
    renamed: Mapping[str, str] | None = None,
    aside: str = "",
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package whose names load on first use.

    Args:
        package: the package's ``__name__``.
        homes: for each public name, the module that defines it.
        rooms: subpackages and submodules that are public names themselves.
        renamed: for each old name, the new one, or ``"Class.name"`` for a function that is a
            method or an attribute now. Old names keep working for one version, with a
            DeprecationWarning, and are not listed by ``dir``.
        aside: a module whose names are no part of ``import *``, and are not held by the package
            from their first use on, since some are those of builtins.
    """
    old = {} if renamed is None else renamed

    def getattr_(name: str) -> object:
        from importlib import import_module

        if name in rooms:
            return import_module(f"{package}.{name}")
        if name in old:
            import warnings

            warnings.warn(
                f"{package}.{name} is deprecated, use {package}.{old[name]}.",
                DeprecationWarning,
                stacklevel=2,
            )
            owner, _, new = old[name].rpartition(".")
            if not owner:
                return getattr(sys.modules[package], new)
            method: object = getattr(getattr(sys.modules[package], owner), new, None)
            return method if callable(method) else attrgetter(new)
        home = homes.get(name)
        if home is None:
            from dala.errors.describing import AttributeMissing

            raise AttributeMissing(sys.modules[package], name)
        value = getattr(import_module(home), name)
        if home != aside:
            setattr(sys.modules[package], name, value)  # the next lookup does not get here
        return value

    def dir_() -> list[str]:
        dunders = (name for name in vars(sys.modules[package]) if name.startswith("__"))
        return sorted({*dunders, *homes, *rooms})

    return getattr_, dir_
