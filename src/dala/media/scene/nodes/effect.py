"""Effects: a filter over a node, or over everything below."""

from __future__ import annotations

import math
from bisect import insort
from functools import lru_cache
from typing import ClassVar, Final, NamedTuple

import numpy as np

from dala.errors import DalaError, ParameterError, UnknownKernel, UnknownParameter, did_you_mean
from dala.gpu.compute import Buffer, buffer_zeros
from dala.gpu.compute.call.instant import Instant
from dala.gpu.compute.kernel import find
from dala.gpu.compute.kernels.filter import BORDER_OPTIONS, FilterParam
from dala.gpu.compute.params import PixelSize
from dala.gpu.compute.runnable import Runnable
from dala.media.filters import declarations
from dala.media.filters.plans import PICTURE, plan
from dala.media.filters.sizes import with_size
from dala.media.scene.boxes import container_size
from dala.media.scene.nodes import json_types as j
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.node import Content, Node, NotNamed
from dala.media.scene.nodes.properties import REQUIRED, Argument, Property
from dala.typing import ParamValue


class FilterParameter(NamedTuple):
    """A parameter of a filter."""

    default: ParamValue
    #: Whether it counts something; animated values are then rounded.
    integer: bool
    #: Its form in scene files, and its description.
    field: j.Field


@lru_cache(256)
def filter_parameters(filter: str | Runnable) -> dict[str, FilterParameter]:
    """Return the parameters of a filter by name, from its declaration.

    Raises:
        UnknownKernel: there is no such filter; the error suggests the nearest name.

    >>> filter_parameters("blur")["radius"].integer
    True
    """
    if isinstance(filter, str):
        spec = declarations.declared().get(filter)
        if spec is not None and spec.kind != "conversion":
            # The border of an effect is that of its box; the filter clamps.
            chosen = {o.name: o.default for o in BORDER_OPTIONS}
            clamps = any(
                p.name == "border" and p.default == chosen["border"] for p in spec.parameters
            )
            return {
                p.name: FilterParameter(
                    p.default, p.type == "int", j.Field(_declared_type(p), p.doc)
                )
                for p in spec.parameters
                if not (clamps and p.name in chosen)
            }
        kernel = find(filter)
        if kernel is None:
            hint = (
                did_you_mean(filter, declarations.filter_names())
                or "dala.media.gpu.filters() lists all."
            )
            raise UnknownKernel(f"add_effect: there is no filter {filter!r}. {hint}")
        filter = kernel
    if len(filter.inputs) > 1:
        raise ParameterError(
            f"add_effect: kernel {filter.name!r} has {len(filter.inputs)} inputs; an effect takes "
            "a kernel with one, the picture, or none."
        )
    return {
        a.name: FilterParameter(a.default, a.type == "int", j.Field(_custom_type(a.default)))
        for a in filter.params
    }


def params_object(filter: str) -> j.JsonObject:
    """Return the type of a filter's parameters in scene files.

    Raises:
        UnknownKernel: there is no such filter.
    """
    fields = {name: known.field for name, known in filter_parameters(filter).items()}
    return j.JsonObject(f"the parameters of {filter!r}", fields)


_NUMBERS: Final = j.ListOf(j.JsonNumber(), "a list of numbers")
#: The forms of parameters of custom kernels by the type of their default; a bool is an int, too.
_CUSTOM: Final[dict[type, j.JsonType]] = {
    bool: j.JsonBoolean(), str: j.JsonString(), int: j.JsonNumber(),
    float: j.OneOf(j.JsonNumber(), _NUMBERS), tuple: j.OneOf(_NUMBERS, j.JsonString()),
}  # fmt: skip


def _declared_type(parameter: FilterParam) -> j.JsonType:
    """Return the form of a parameter in scene files."""
    low = -j.LIMIT if parameter.low is None else max(parameter.low, -j.LIMIT)
    high = j.LIMIT if parameter.high is None else min(parameter.high, j.LIMIT)
    match parameter.type:
        case "bool":
            return j.JsonBoolean()
        case "int" | "float":
            return j.JsonNumber(low, high)
        case "choice":
            return j.JsonChoice(parameter.choices)
        case "ints" | "floats" | "size":
            return j.OneOf(j.JsonNumber(), _NUMBERS, j.JsonString())
    return j.JsonType()


def _custom_type(default: ParamValue) -> j.JsonType:
    """Return the form of a parameter of a custom kernel, from its default."""
    return next((k for form, k in _CUSTOM.items() if isinstance(default, form)), j.JsonType())


class EffectNode(Node):
    """A filter, by name or as a kernel, over a node or over everything below it.

    The filter's parameters are properties of the node under their own names, and can be set and
    animated; where a parameter has the name of a property, it is the parameter. On a node the
    filter runs over the node's box before rotation; blurs extend beyond the box unless the node is
    an opaque picture. Without a node it runs over everything drawn so far inside the effect's own
    box, by default the whole scene. ``opacity`` mixes the result with the unfiltered picture.

    >>> import dala
    >>> with dala.media.Scene(64, 36, background="white", device="cpu") as scene:
    ...     dim = scene.add_effect("brightness", value=-0.5)
    ...     scene.render().numpy()[0, 0].tolist()
    [128, 128, 128, 255]
    """

    type = "effect"
    WITHOUT = ("radius", "fit", "crop", "rotation", "scale", "shadow")
    OWN_ARGUMENTS: ClassVar[dict[str, Argument]] = {
        "type": Argument(
            t.PropertyType(j.JsonString("a filter's name", shortest=1), "str | Runnable"),
            "A filter of ``dala.media.gpu.filters()``, or a kernel with one input.",
            default=REQUIRED,
            key="filter",
        ),
        "input": Argument(
            t.PropertyType(
                j.JsonString("the id of a node", shortest=1), "Node | str", optional=True
            ),
            "The node to filter, or its id; by default everything below.",
        ),
    }
    POSITIONAL = ("type", "input")
    EXTRA = "params"
    EXTRA_DESCRIPTION = "The filter's parameters."
    __slots__: tuple[str, ...] = ("filter", "fixed", "input", "params", "revision")

    corner_radius = Property(0.0, t.NumberType(0.0), "Radius of the corners.", unit="pixels")

    def prepare(self, given: t.Values) -> None:
        """Take the arguments that are not properties."""
        filter = given.pop("type", None)
        if not isinstance(filter, str | Runnable):
            raise ParameterError.invalid(
                "add_effect", "type", "the name of a filter or a kernel", filter
            )
        given_input = given.pop("input", None)
        target: Node | None = None
        if given_input is not None:
            target = self.scene._find(given_input, "add_effect")
        if isinstance(target, EffectNode):
            target = target.input  # effects of one node form a chain
        known = filter_parameters(filter)
        own = {name: given.pop(name) for name in list(given) if name in known}
        unknown = [k for k in given if k not in self.PROPERTIES and k not in self.ARGUMENTS]
        name = filter.name if isinstance(filter, Runnable) else filter
        if unknown:
            hint = did_you_mean(unknown[0], known) or (
                f"It takes: {', '.join(known)}." if known else "It takes none."
            )
            raise UnknownParameter(
                f"add_effect: {name!r} has no parameter {unknown[0]!r}. {hint}", argument=unknown[0]
            )
        self.filter = filter
        self.input: Node | None = target
        self.params: t.Values = own
        #: Changes with the parameters.
        self.revision = 0

    def ready(self) -> None:
        """Check the parameters."""
        self.fixed = frozenset(self.params)
        self.params = self._checked_params(self.params)
        if self.remembers or (isinstance(self.filter, Runnable) and self.filter.roles):
            self.scene.timed.append(self)

    def at_moment(self, moment: Instant) -> None:
        """Set the parameters that the scene gives the kernel, unless the caller gave them."""
        assert isinstance(self.filter, Runnable)
        values = {n: v for n, v in moment.given(self.filter).items() if n not in self.fixed}
        changed = any(self.params.get(n) != v for n, v in values.items())
        if changed or (self.remembers and moment.frame != self.scene.number):
            self.params = self.params | values
            self.revision += 1
            self.touch()

    @property
    def remembers(self) -> bool:
        """True if the effect is a program that remembers frames."""
        return isinstance(self.filter, Runnable) and self.filter.remembers

    # properties -------------------------------------------------------------------------------
    def has(self, name: str) -> bool:
        """Return True if there is a parameter or property of that name."""
        return name in filter_parameters(self.filter) or super().has(name)

    def get(self, name: str) -> t.Value:
        """Return the value of a parameter or property."""
        known = filter_parameters(self.filter).get(name)
        if known is None:
            return super().get(name)
        return self.params.get(name, known.default)

    def set(self, name: str, value: t.Value) -> None:
        """Set a parameter or a property; the next frame shows it."""
        self.update(**{name: value})

    def update(self, **properties: t.Value) -> None:
        """Set several parameters or properties: all of them, or none if one is refused."""
        known = filter_parameters(self.filter)
        own = {k: properties.pop(k) for k in list(properties) if k in known}
        made = self._checked_params(self.params | own) if own else self.params
        if properties:
            super().update(**properties)
        if own:
            self.params = made
            self.revision += 1
            self.touch()

    def check(self, name: str, value: t.Value) -> None:
        """Raise the error that setting a parameter or property to a value would raise."""
        if name in filter_parameters(self.filter):
            self._checked_params(self.params | {name: value})
        else:
            super().check(name, value)

    def check_animatable(self, name: str) -> None:
        """Raise an error unless there is a parameter, or a property that can be animated."""
        if name not in filter_parameters(self.filter):
            super().check_animatable(name)

    def __getattr__(self, name: str) -> t.Value:
        if not name.startswith("_") and name not in _OWN and name in filter_parameters(self.filter):
            return self.get(name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}", name=name)

    def __setattr__(self, name: str, value: t.Value) -> None:
        if name not in _OWN and not name.startswith("_") and name in filter_parameters(self.filter):
            self.set(name, value)
        else:
            super().__setattr__(name, value)

    def _checked_params(self, params: t.Values) -> t.Values:
        """Return parameters that the filter accepts, checked against a small picture."""
        known = filter_parameters(self.filter)
        made = {name: _plain(value, known[name]) for name, value in params.items()}
        if isinstance(self.params.get("size"), PixelSize):  # of a file, and what animates it
            made = with_size(self.name, made)
        call = f"add_effect({self.name!r})"
        if _has_picture(made):
            return made  # its size has to be that of the filtered picture, which is not known yet
        small = _small_buffers()
        steps = plan([(self.filter, made)], _SMALL, "u8", call, listed=False)
        for step in steps:
            if step.shape == _SMALL and step.inputs == (PICTURE,):
                try:
                    step.kernel.bind([small[0]], small[1], step.params)
                except DalaError as error:
                    raise step.error(error) from error
        return made

    @property
    def name(self) -> str:
        """The filter's name."""
        return self.filter.name if isinstance(self.filter, Runnable) else self.filter

    # scene files ------------------------------------------------------------------------------
    def saved_arguments(self) -> t.Values:
        """Return the filter, its input and parameters."""
        filter: str | NotNamed = self.name
        if isinstance(self.filter, Runnable) and find(self.name) is not self.filter:
            filter = NotNamed(f"the kernel {self.name!r}, which is not registered")
        made: t.Values = {"filter": filter}
        if self.input is not None:
            made["input"] = self.input.id
        return made

    def saved_state(self) -> t.Values:
        """Return properties, and parameters as "params.name"."""
        given = dict(self.filter.roles) if isinstance(self.filter, Runnable) else {}
        own = {k: v for k, v in self.params.items() if k not in given or k in self.fixed}
        return super().saved_state() | {f"params.{k}": v for k, v in own.items()}

    # drawing ----------------------------------------------------------------------------------
    def touch(self) -> None:
        """Mark the picture that the effect is part of as changed."""
        target = self if self.input is None else self.input
        if target.display_item is not None:
            target.display_item.touch()
        else:
            self.scene._reorder()

    def changed(self, item: Property | None = None) -> None:
        """Mark the effect, or the node it is on, as changed."""
        if self.input is None:
            self.scene._reorder()
            return
        self.input.effects.sort(key=place_in_chain)
        self.touch()

    def joins(self, other: EffectNode) -> bool:
        """Return True if ``other``, just above, can run in the same filter list as this one."""
        own, others = self.property_values, other.property_values
        same = all(own[n] == others[n] for n in ("x", "y", "width", "height", "anchor"))
        return same and self.as_usual("opacity", "blend", "corner_radius", "border_width")

    def content(self) -> Content | None:
        """Return the size of the filtered region; the compositor makes the picture."""
        return Content(*container_size(self))


def place_in_chain(effect: EffectNode) -> tuple[float, int]:
    """Return the sort key of the effects of one node."""
    return effect.property_values["z_index"], effect.serial


def join_chain(effect: EffectNode, chain: list[EffectNode]) -> None:
    """Put an effect at its place among those of its node."""
    insort(chain, effect, key=place_in_chain)


_OWN = frozenset({*Node.__slots__, *EffectNode.__slots__, "effects"})

_SMALL = (8, 8, 4)


@lru_cache(1)
def _small_buffers() -> tuple[Buffer, Buffer]:
    """Return the two pictures that parameters are checked against; no filter runs on them."""
    made = [buffer_zeros(_SMALL, "u8", device="reference") for _ in range(2)]
    return made[0], made[1]


def _has_picture(params: t.Values) -> bool:
    return any(
        isinstance(v, np.ndarray | Buffer) or hasattr(v, "pixels") or hasattr(v, "getbands")
        for v in params.values()
    )


def _plain(value: t.Value, known: FilterParameter) -> t.Value:
    """Return a Python number, rounded where the filter needs an int: animations give floats."""
    if isinstance(value, np.generic):
        value = value.item()
    if known.integer and isinstance(value, float) and math.isfinite(value):
        return round(value)
    return value


def is_backdrop(node: Node) -> bool:
    """Return whether a node is an effect on everything below it."""
    return isinstance(node, EffectNode) and node.input is None
