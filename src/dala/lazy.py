"""Lazy package attributes: a name is imported from its module when it is first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping


def attach(
    package: str,
    homes: Mapping[str, str],
    rooms: tuple[str, ...] = (),
    *,
    stars: tuple[str, ...] = (),
    renamed: Mapping[str, str] | None = None,
    keep: bool = True,
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package whose names load on first use.

    Args:
        package: the package's ``__name__``.
        homes: for each public name, the module that defines it.
        rooms: subpackages and submodules that are public names themselves.
        stars: modules whose ``__all__`` are names of the package too.
        renamed: for each old name, the new one. Old names keep working for one version, with a
            DeprecationWarning, and are not listed by ``dir``.
        keep: whether the package holds a name from its first use on; not if it is a builtin's.
    """
    old = {} if renamed is None else renamed

    def starred() -> dict[str, str]:
        from importlib import import_module

        return {name: star for star in stars for name in import_module(star).__all__}

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
            return getattr(sys.modules[package], old[name])
        home = homes.get(name)
        if home is None and not name.startswith("_"):
            home = starred().get(name)
        if home is None:
            raise AttributeError(  # with name and obj, Python adds its "Did you mean ...?"
                f"module {package!r} has no attribute {name!r}",
                name=name,
                obj=sys.modules[package],
            )
        value = getattr(import_module(home), name)
        if keep:
            setattr(sys.modules[package], name, value)  # the next lookup does not get here
        return value

    def dir_() -> list[str]:
        dunders = (name for name in vars(sys.modules[package]) if name.startswith("__"))
        return sorted({*dunders, *homes, *starred(), *rooms})

    return getattr_, dir_
