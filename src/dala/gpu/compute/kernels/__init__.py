"""The built-in kernels, one module per domain; modules are imported on first use.

Most kernels are functions in the kernel language: filters, and those in their module's ``__all__``.
Others are operations (:mod:`dala.gpu.compute.operation`). All modules of this package are searched,
so a new kernel is declared in one place.
"""

from __future__ import annotations

import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

from dala import forks
from dala.extensions import kernel_modules
from dala.forks import cached_property
from dala.gpu.compute.kernel import Kernel, declare_function
from dala.gpu.compute.kernels.filter import FILTERS
from dala.gpu.compute.operation import DECLARED
from dala.gpu.compute.runnable import Runnable

#: Matches the possible kernel names in a module: its functions, and titles of its operations.
_NAMES: Final = re.compile(r'^(?:def |    title = ")(\w+)', re.M)


class Builtins(Mapping[str, Runnable]):
    """Kernels by name. Modules are imported when a kernel is first looked up."""

    def __init__(self) -> None:
        #: Those that were looked up, for a fast path.
        self.held: dict[str, Runnable] = {}
        self._lock = forks.rlock()
        self._loaded = False

    @cached_property
    def _modules(self) -> dict[str, str]:
        """The module of each kernel that other packages add."""
        return dict(kernel_modules())

    @cached_property
    def _homes(self) -> dict[str, set[str]]:
        """The modules that may declare each name, found by scanning their source text.

        Scanning is much faster than importing, which would slow down the first result by a fifth.
        """
        found: dict[str, set[str]] = defaultdict(set)
        for path in Path(__file__).parent.glob("*.py"):
            for name in _NAMES.findall(path.read_text(encoding="utf-8")):
                found[name].add(path.stem)
        return found

    def _look(self, name: object) -> Runnable | None:
        """Return the kernel with a name from this package, importing as little as possible."""
        if name in self.held:
            return self.held[str(name)]
        if name not in FILTERS and isinstance(name, str) and not self._loaded:
            with self._lock:
                for home in self._homes.get(name, ()):
                    self._add(import_module(f"{__name__}.{home}"))
        if name in FILTERS and not FILTERS[str(name)].is_recipe:
            return FILTERS[str(name)].kernel
        return self.held.get(str(name))

    def _load(self) -> dict[str, Runnable]:
        if not self._loaded:
            with self._lock:
                for found in () if self._loaded else pkgutil.iter_modules(__path__):
                    self._add(import_module(f"{__name__}.{found.name}"))
                self._loaded = True
        return self.held

    def _add(self, module: ModuleType) -> None:
        for name in getattr(module, "__all__", ()):
            if name not in FILTERS and name not in self.held:
                function = getattr(module, name)
                self.held[name] = Kernel(name, partial(declare_function, function, name))
        for kind in DECLARED[module.__name__]:
            if kind.title not in FILTERS:
                self.held.setdefault(kind.title, kind())

    def __getitem__(self, name: str) -> Runnable:
        found = self._look(name)
        if found is None:
            self._add(import_module(self._modules[name]))
            found = self.held[name]
        return found

    def _names(self) -> dict[str, None]:
        plain = self._load()  # also declares the filters
        own = [name for name, spec in FILTERS.items() if not spec.is_recipe]
        return dict.fromkeys([*plain, *own, *self._modules])

    def __contains__(self, name: object) -> bool:
        return name in self._modules or self._look(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())


BUILTINS: Final = Builtins()
