"""Effects: a filter over a node, or over everything below."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dala.errors import DalaError, ParameterError, UnknownKernel, UnknownParameter, did_you_mean
from dala.gpu.compute import Buffer, buffer_zeros
from dala.gpu.compute.kernel import find
from dala.gpu.compute.runnable import Runnable
from dala.media.filters.declarations import declared
from dala.media.filters.plans import PICTURE, names, plan
from dala.media.scene.boxes import room
from dala.media.scene.nodes import properties as p
from dala.media.scene.nodes.node import Content, Node
from dala.media.scene.nodes.properties import Property

if TYPE_CHECKING:
    from dala.media.scene.nodes.group import GroupNode
    from dala.media.scene.scene import Scene


class EffectNode(Node):
    """A filter by name, or a kernel of your own, over a node or over all that lies below it.

    The filter's parameters are properties of the node under their own names; where a filter's
    parameter has the name of a property, it is the filter's. Corners are rounded by
    ``corner_radius``. On a node the filter sees the node's box as it lies in the scene, before
    rotation; blurs go beyond it, unless the node is an opaque picture. Without a node it sees what
    has been drawn so far inside its own box, which is the whole scene where no size is given.
    ``opacity`` mixes it with what it was made from.
    """

    type = "effect"
    WITHOUT = ("radius", "fit", "crop", "rotation", "scale", "shadow")
    __slots__ = ("filter", "input", "params", "revision")

    corner_radius = Property(0.0, p.number(0.0))

    def __init__(
        self,
        scene: Scene,
        parent: GroupNode,
        filter: str | Runnable,
        input: Node | None,
        given: dict[str, Any],
    ) -> None:
        known = parameters(filter)
        own = {name: given.pop(name) for name in list(given) if name in known}
        unknown = [k for k in given if k not in self.PROPERTIES and k not in ("id", "margin")]
        name = filter.name if isinstance(filter, Runnable) else filter
        if unknown:
            hint = did_you_mean(unknown[0], known) or (
                f"It takes: {', '.join(known)}." if known else "It takes none."
            )
            raise UnknownParameter(f"add_effect: {name!r} has no parameter {unknown[0]!r}. {hint}")
        self.filter = filter
        self.input = input
        self.params: dict[str, Any] = {}
        #: Changes with the parameters.
        self.revision = 0
        super().__init__(scene, parent, given)
        self.params = self._tried(own)

    # properties -------------------------------------------------------------------------------
    def has(self, name: str) -> bool:
        """Whether there is such a parameter or property."""
        return name in parameters(self.filter) or super().has(name)

    def get(self, name: str) -> Any:
        """The value of a parameter or property."""
        known = parameters(self.filter).get(name)
        if known is None:
            return super().get(name)
        return self.params.get(name, known.default)

    def set(self, name: str, value: Any) -> None:
        """Changes a parameter or a property; the next frame shows it."""
        if name in parameters(self.filter):
            self.update(**{name: value})
        else:
            super().set(name, value)

    def update(self, **properties: Any) -> None:
        """Changes several: all of them, or none if one is refused."""
        known = parameters(self.filter)
        own = {k: properties.pop(k) for k in list(properties) if k in known}
        made = self._tried(self.params | own) if own else self.params
        if properties:
            super().update(**properties)
        if own:
            self.params = made
            self.revision += 1
            self._touch()

    def check(self, name: str, value: Any) -> None:
        """Refuses what the parameter or property would not take."""
        if name in parameters(self.filter):
            self._tried(self.params | {name: value})
        else:
            super().check(name, value)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name not in _OWN and name in parameters(self.filter):
            return self.get(name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}", name=name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _OWN and not name.startswith("_") and name in parameters(self.filter):
            self.set(name, value)
        else:
            super().__setattr__(name, value)

    def _tried(self, params: dict[str, Any]) -> dict[str, Any]:
        """Parameters that the filter takes, checked as if for a tiny picture."""
        known = parameters(self.filter)
        made = {name: _plain(value, known[name]) for name, value in params.items()}
        call = f"add_effect({self.name!r})"
        steps = (
            plan([(self.filter, made)], _TRIAL, "u8", call, listed=False) if _small(made) else []
        )
        tiny = _tiny()
        for step in steps:
            if step.shape == _TRIAL and step.inputs == (PICTURE,):
                try:
                    step.kernel.bind([tiny[0]], tiny[1], step.params)
                except DalaError as error:
                    raise step.error(error) from error
        return made

    @property
    def name(self) -> str:
        """The filter's name."""
        return self.filter.name if isinstance(self.filter, Runnable) else self.filter

    # drawing ----------------------------------------------------------------------------------
    def _touch(self) -> None:
        target = self if self.input is None else self.input
        if target._item is not None:
            target._item.touch()
        else:
            self.scene._reorder()

    def _changed(self, item: Property | None = None) -> None:
        if self.input is None:
            self.scene._reorder()
            return
        self.input.effects.sort(key=lambda e: (e._values["z_index"], e.serial))
        self._touch()

    def joins(self, other: EffectNode) -> bool:
        """True where ``other``, just above, can go on with what this one made: one filter list."""
        v = self._values
        names = ("x", "y", "width", "height", "anchor")
        return (
            v["opacity"] == 1.0 and v["blend"] == "over" and not v["corner_radius"]
            and not v["border_width"] and all(v[n] == other._values[n] for n in names)
        )  # fmt: skip

    def content(self) -> Content | None:
        """The size of what is filtered; the picture is made where it is drawn."""
        return Content(*room(self))


_OWN = frozenset({*Node.__slots__, *EffectNode.__slots__, "effects"})


_TRIAL = (8, 8, 4)


@lru_cache(1)
def _tiny() -> tuple[Buffer, Buffer]:
    """Two pictures that no filter ever sees; they are what calls are checked against."""
    made = [buffer_zeros(_TRIAL, "u8", device="reference") for _ in range(2)]
    return made[0], made[1]


def _small(params: dict[str, Any]) -> bool:
    """True where no parameter is a picture, whose size must be that of what is filtered."""
    return not any(
        isinstance(v, np.ndarray | Buffer) or hasattr(v, "pixels") or hasattr(v, "getbands")
        for v in params.values()
    )


def _plain(value: Any, known: Parameter) -> Any:
    """Python's own numbers; whole ones where the filter counts, since animations give floats."""
    if isinstance(value, np.generic):
        value = value.item()
    if known.whole and isinstance(value, float) and math.isfinite(value):
        return round(value)
    return value


class Parameter(NamedTuple):
    """A parameter of a filter."""

    default: Any
    #: True where it counts something.
    whole: bool


@lru_cache(256)
def parameters(filter: str | Runnable) -> dict[str, Parameter]:
    """The parameters of a filter by name.

    Raises:
        UnknownKernel: there is no such filter; the nearest name is offered.
    """
    if isinstance(filter, str):
        spec = declared().get(filter)
        if spec is not None and spec.kind != "conversion":
            return {p.name: Parameter(p.default, p.type == "int") for p in spec.parameters}
        kernel = find(filter)
        if kernel is None:
            hint = did_you_mean(filter, names()) or "dala.media.gpu.filters() lists all."
            raise UnknownKernel(f"add_effect: there is no filter {filter!r}. {hint}")
        filter = kernel
    if len(filter.inputs) != 1:
        raise ParameterError(
            f"add_effect: kernel {filter.name!r} has {len(filter.inputs)} inputs; an effect takes "
            "one, the picture."
        )
    return {a.name: Parameter(a.default, a.type == "int") for a in filter.params}
