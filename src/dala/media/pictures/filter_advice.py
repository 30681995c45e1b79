"""Advice at pictures for filters, which are calls and no methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn


class FilterAdvice:
    """A base class whose missing attributes name the call of a filter, if there is one."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            from dala.media import gpu

            spec = None if name[:1] == "_" else gpu.declared().get(name)
            if spec is None:
                return super().__getattr__(name)
            call = f"Write dala.media.{gpu.module_of(spec)}.{name}(frame)."
            raise AttributeError(f"'Frame' object has no attribute {name!r}. {call}")

    def __getitem__(self, index: object) -> NoReturn:
        raise TypeError("A frame has no index. np.asarray(frame)[...] has one, and gpu.crop a box.")
