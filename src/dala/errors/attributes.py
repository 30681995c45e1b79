"""Advice for attributes that are not there: names of other libraries, and misspelled ones."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from dala.errors.describing import did_you_mean


class AttributeMissing(AttributeError):
    """An attribute that is not there. Its advice is made when it is read: many only try a name."""

    def __init__(self, owner: type | ModuleType, name: str) -> None:
        super().__init__(name, obj=owner)  # without a name, Python adds no advice of its own
        self._owner, self._wanted = owner, name

    def __str__(self) -> str:
        known = [name for name in dir(self._owner) if not name.startswith("_")]
        hint = "" if self._wanted.startswith("_") else did_you_mean(self._wanted, known)
        kind, name = type(self._owner) is ModuleType, repr(self._owner.__name__)
        said = f"module {name}" if kind else f"{name} object"
        said += f" has no attribute {self._wanted!r}"
        return f"{said}. {hint}" if hint else said


class KnownAttributes:
    """A base class whose missing attributes raise :class:`AttributeMissing`."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            if hasattr(type(self), name):  # a property or a slot that raised it: its own error
                return object.__getattribute__(self, name)
            raise AttributeMissing(type(self), name)
