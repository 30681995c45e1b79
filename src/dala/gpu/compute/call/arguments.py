"""Check parameter values of a kernel and pack them for its program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dala.arguments import items_of
from dala.errors import ParameterError
from dala.gpu.color import color_advice, unit_color
from dala.gpu.compute.engines.symbols import FUNCTIONS, apply, is_symbolic
from dala.gpu.compute.lang.declaration import KernelDecl, ParamDecl, expected_numbers
from dala.gpu.compute.lang.exact.fixed_point import fixed_point
from dala.gpu.compute.lang.exact.uniform import OPERATIONS
from dala.gpu.compute.lang.ir import FLOATS, Derived, Param, Program, Value, arguments_first
from dala.gpu.compute.lang.limits import MAX_LIST
from dala.gpu.compute.lang.scalars import RANGES
from dala.gpu.compute.params import check_params, missing, number_of, python_number
from dala.typing import Params, ParamValue

#: The largest finite f32.
_F32_MAX: Final = 3.4028234663852886e38
#: Types whose values never change.
_FIXED: Final = frozenset((float, int, bool))


def number_kinds(decl: KernelDecl, params: Params) -> tuple[tuple[str, str], ...]:
    """Return "int" or "float" for each parameter that accepts both, and the length of lists."""
    found = []
    for p in decl.generic:
        value = params.get(p.name, p.default)
        if p.listed:
            found.append((p.name, str(len(_components(decl, p, value)))))
            continue
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        found.append((p.name, "int" if whole else "float"))
    return tuple(found)


def pack(decl: KernelDecl, program: Program, params: Params) -> tuple[int | float, ...]:
    """Check parameters, and return the values of all parameters of the program, in their order."""
    if not decl.params and not params:
        return ()
    slots = program.params
    if params and not params.keys() <= decl.param_names:
        check_params(decl.name, params, [p.name for p in decl.params])
    values: list[int | float] = []
    place = 0
    for p in decl.params:
        value = params.get(p.name, p.default)
        if value is None:
            raise missing(decl.name, p.name)
        for item in _components(decl, p, value):
            number = _number(p, item, slots[place])
            if number is None:
                raise _refused(decl, p, slots[place], value)
            values.append(number)
            place += 1
    found = tuple(values)
    return found if program.derived is None else with_derived(program.derived, found)


class LastParams:
    """The parameters of a plan's last call: most calls repeat them, and checking takes longest.

    They are compared by identity, and only numbers and tuples of numbers are kept, so nothing can
    have changed.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: tuple[dict[str, ParamValue], tuple[int | float, ...]] | None = None

    def pack(self, decl: KernelDecl, program: Program, params: Params) -> tuple[int | float, ...]:
        """Return the result of :func:`pack`."""
        kept = self._kept
        if kept is not None and len(params) == len(kept[0]):
            get = params.get
            for name, value in kept[0].items():
                if get(name) is not value:
                    break
            else:
                return kept[1]
        values = pack(decl, program, params)
        if all(_is_fixed(v) for v in params.values()):
            self._kept = dict(params), values
        return values


def _is_fixed(value: object) -> bool:
    if type(value) is tuple:
        return all(type(v) in _FIXED for v in value)
    return type(value) in _FIXED


def _components(decl: KernelDecl, p: ParamDecl, value: ParamValue) -> Sequence[object]:
    if not p.size and not p.listed:
        return (value,)
    if value is None:
        raise missing(decl.name, p.name)
    items: Sequence[object] | None
    if isinstance(value, str):
        items = unit_color(value, p.size)
    else:
        items = items_of(value)  # type: ignore[arg-type]  # it may be anything
    if items is None or (not 1 <= len(items) <= MAX_LIST if p.listed else len(items) != p.size):
        advice = color_advice(value) if p.size in (3, 4) else ""
        raise ParameterError.invalid(decl.name, p.name, p.expected, value, advice)
    return items


def _refused(decl: KernelDecl, p: ParamDecl, slot: Param, value: ParamValue) -> ParameterError:
    """Return the error for an invalid value."""
    expected = p.expected
    if p.low is None and slot.type not in FLOATS and p.type != "bool":
        expected = expected_numbers(True, *RANGES[slot.type], p.size)
    elif slot.type == "f32" and isinstance(value, int | float) and abs(value) > _F32_MAX:
        expected = f"{expected} that fits f32" if p.allows(value) else expected
    return ParameterError.invalid(decl.name, p.name, expected, python_number(value))


def _number(p: ParamDecl, value: object, slot: Param) -> int | float | None:
    """Convert a number to the slot's type; return None if it is invalid."""
    real = slot.type in FLOATS
    number = number_of(value, not real)
    if number is None or number != number or not p.allows(number):
        return None
    if not real:
        low, high = RANGES[slot.type]
        number = int(number) if isinstance(number, bool) else number
        return number if low <= number <= high else None
    return None if p.low is not None and slot.type == "f32" and abs(number) > _F32_MAX else number


_Numbers = Sequence[Any]  # plain numbers, or symbols of an exported plan


def _evaluate(wanted: Sequence[Value], params: _Numbers) -> list[Any]:
    """Return the values of uniform expressions for given parameters."""
    known: dict[Value, Any] = {}
    for v in arguments_first(wanted):
        args = [known[a] for a in v.args]
        if v.op == "const":
            known[v] = v.attr
        elif v.op == "param":
            known[v] = params[v.attr]
        elif v.op == "cast":
            known[v] = args[0] * 1.0
        else:
            found = OPERATIONS[v.op](*args)
            known[v] = apply(v.op, found, *args) if v.op in FUNCTIONS else found
    return [known[v] for v in wanted]


def with_derived(derived: Derived, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the declared parameters, and the derived ones behind them."""
    numbers = _evaluate(derived.numbers, values)
    found = fixed_point(derived.window, derived.layout, [float(n) for n in numbers])
    if not is_symbolic(*numbers):
        return (*values, *found)
    given = (int(derived.window), len(derived.layout), *derived.layout, *numbers)
    return (*values, *(apply("fixed_point", n, i, *given) for i, n in enumerate(found)))


def _fixed_point_at(index: int, window: int, length: int, *given: float) -> int:
    layout = [int(n) for n in given[:length]]
    return fixed_point(bool(window), layout, given[length:])[index]


FUNCTIONS["fixed_point"] = _fixed_point_at
