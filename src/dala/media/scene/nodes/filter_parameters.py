"""The parameters of the filters that effects run, and their form in scene files."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from dala.errors import ParameterError, UnknownKernel, did_you_mean
from dala.gpu.compute.kernel import find
from dala.gpu.compute.kernels.filter import BORDER_OPTIONS, FilterParam
from dala.gpu.compute.runnable import Runnable
from dala.media.filters import declarations
from dala.media.scene.nodes.json_types import (
    LIMIT,
    Field,
    JsonBoolean,
    JsonChoice,
    JsonNumber,
    JsonObject,
    JsonString,
    JsonType,
    ListOf,
    OneOf,
)
from dala.typing import ParamValue


class FilterParameter(NamedTuple):
    """A parameter of a filter."""

    default: ParamValue
    #: Whether it counts something; animated values are then rounded.
    integer: bool
    #: Its form in scene files, and its description.
    field: Field


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
                p.name: FilterParameter(p.default, p.type == "int", Field(_declared_type(p), p.doc))
                for p in spec.parameters
                if not (clamps and p.name in chosen)
            }
        kernel = find(filter)
        if kernel is None:
            hint = did_you_mean(filter, filter_names()) or "dala.media.gpu.filters() lists all."
            raise UnknownKernel(f"add_effect: there is no filter {filter!r}. {hint}")
        filter = kernel
    if len(filter.inputs) != 1:
        raise ParameterError(
            f"add_effect: kernel {filter.name!r} has {len(filter.inputs)} inputs; an effect takes "
            "a kernel with one, the picture."
        )
    return {
        a.name: FilterParameter(a.default, a.type == "int", Field(_custom_type(a.default)))
        for a in filter.params
    }


def filter_names() -> list[str]:
    """Return the names of all filters."""
    return declarations.filter_names()


def params_object(filter: str) -> JsonObject:
    """Return the type of a filter's parameters in scene files.

    Raises:
        UnknownKernel: there is no such filter.
    """
    fields = {name: known.field for name, known in filter_parameters(filter).items()}
    return JsonObject(f"the parameters of {filter!r}", fields)


_NUMBERS: Final = ListOf(JsonNumber(), "a list of numbers")
#: The forms of parameters of custom kernels by the type of their default; a bool is an int, too.
_CUSTOM: Final[dict[type, JsonType]] = {
    bool: JsonBoolean(), str: JsonString(), int: JsonNumber(),
    float: OneOf(JsonNumber(), _NUMBERS), tuple: OneOf(_NUMBERS, JsonString()),
}  # fmt: skip


def _declared_type(parameter: FilterParam) -> JsonType:
    """Return the form of a parameter in scene files."""
    low = -LIMIT if parameter.low is None else max(parameter.low, -LIMIT)
    high = LIMIT if parameter.high is None else min(parameter.high, LIMIT)
    match parameter.type:
        case "bool":
            return JsonBoolean()
        case "int" | "float":
            return JsonNumber(low, high)
        case "choice":
            return JsonChoice(parameter.choices)
        case "ints" | "floats" | "size":
            return OneOf(JsonNumber(), _NUMBERS, JsonString())
    return JsonType()


def _custom_type(default: ParamValue) -> JsonType:
    """Return the form of a parameter of a custom kernel, from its default."""
    return next((k for form, k in _CUSTOM.items() if isinstance(default, form)), JsonType())
