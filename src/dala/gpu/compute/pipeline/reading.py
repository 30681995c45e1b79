"""Properties of pipelines that may also be called, and read through the class."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Self, TypeVar, overload

from dala.gpu.compute.call.spec import Spec

if TYPE_CHECKING:
    from dala.gpu.compute.pipeline.pipeline import Pipeline


class CallableCount(int):
    """An int that can be called, so that ``pipeline.stage_count()`` also works."""

    def __call__(self) -> int:
        return int(self)


class CallableSpecs(list[Spec]):
    """A list that can be called, so that ``pipeline.stages()`` also works."""

    def __call__(self) -> list[Spec]:
        return list(self)


_Value = TypeVar("_Value")


class PipelineReading(Generic[_Value]):
    """A read-only property; ``Pipeline.stages(p)``, through the class, also works."""

    def __init__(self, read: Callable[[Pipeline], _Value]) -> None:
        self._read = read
        self.__doc__ = read.__doc__

    @overload
    def __get__(self, p: None, owner: type[Pipeline]) -> Self: ...
    @overload
    def __get__(self, p: Pipeline, owner: type[Pipeline]) -> _Value: ...
    def __get__(self, p: Pipeline | None, owner: type[Pipeline]) -> Self | _Value:
        return self if p is None else self._read(p)

    def __set__(self, p: Pipeline, value: _Value) -> None:
        raise AttributeError("the stages of a Pipeline are changed with add and set_params")

    def __call__(self, p: Pipeline) -> _Value:
        return self._read(p)
