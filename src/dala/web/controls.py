"""Controls of an exported page: the parameters of a chain, with their symbols and ranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from dala.errors import ParameterError, did_you_mean
from dala.gpu.compute.kernels.filter import FilterParam

#: Numbers of symbols by name.
Numbers: TypeAlias = dict[str, int | float]

#: Controls that the caller asked for: name, and (low, high), or None for the declared range.
Ranges: TypeAlias = Mapping[str, "tuple[float, float] | None"]

#: Bounds of this magnitude only exclude infinity.
_FAR: Final = 1e6

#: The most positions of a control whose every position may need a plan of its own.
MOST_STEPS: Final = 33

#: Parameters that stay as they are: a size is part of the plan.
_SHAPING: Final = ("size", "box", "padding", "tiles", "matrix", "fill", "domain_min", "domain_max",
                   "shaper", "shaper_min", "shaper_max")  # fmt: skip
#: Parameters that few want to change in a page. They are controls only where the caller asks.
_QUIET: Final = ("border", "fill", "method", "antialias", "fit", "expand", "refine", "seed")
_COLORS: Final = ("color", "key")


@dataclass(frozen=True)
class Control:
    """A parameter of one filter of a chain.

    Attributes:
        name: as ``chain.run`` takes it; unique in the chain.
        filter: the name of the filter.
        index: the number of the filter in the chain.
        param: the name of the parameter.
        type: "float", "int", "bool", "choice", "floats" or "ints".
        symbols: the symbol of each number.
        values: the number of each symbol; of a choice its index.
        low: the lowest number.
        high: the highest number.
        step: between two positions.
        choices: the words of a choice.
        unit: such as "pixels".
        doc: one line.
        label: what is shown for the name; "" for the name itself.
        why: why it is fixed; "" if it can be changed.
    """

    name: str
    filter: str
    index: int
    param: str
    type: str
    symbols: tuple[str, ...]
    values: tuple[int | float, ...]
    low: float = 0.0
    high: float = 1.0
    step: float = 0.0
    choices: tuple[str, ...] = ()
    unit: str = ""
    doc: str = ""
    label: str = ""
    why: str = ""

    @property
    def discrete(self) -> bool:
        """True where every position may need a plan of its own."""
        return self.type in ("int", "ints", "bool", "choice")

    @property
    def numbers(self) -> Numbers:
        """The number of each symbol."""
        return dict(zip(self.symbols, self.values, strict=True))

    def positions(self) -> list[int | float]:
        """Return positions of the control to try: all of a discrete one, some of another."""
        if self.discrete:
            step = max(int(self.step), 1)
            return list(range(int(self.low), int(self.high) + 1, step))
        count = max(1, round((self.high - self.low) / self.step))
        return [min(self.low + self.step * k, self.high) for k in range(count + 1)]

    def fixed(self, why: str) -> Control:
        """Return the control as one that cannot be changed."""
        return replace(self, why=why)


def control(
    p: FilterParam, value: object, filter_name: str, index: int, ranges: Ranges
) -> Control | None:
    """Return the control of a parameter, or None where a page could not show one.

    Args:
        p: the declaration.
        value: the parameter's value; None where the filter chooses.
        filter_name: for the control's name.
        index: of the filter in its chain.
        ranges: ranges that the caller chose, by name of the parameter.
    """
    if p.is_input or value is None:
        return None
    symbol = f"p{index}.{p.name}"
    name = f"{filter_name}.{p.name}"
    made = Control(
        name, filter_name, index, p.name, p.type, (symbol,), (), unit=p.unit, doc=p.doc,
        label=p.label,
    )  # fmt: skip
    if p.type == "choice":
        if not isinstance(value, str) or value not in p.choices:
            return None
        chosen = p.choices.index(value)
        made = replace(made, values=(chosen,), high=len(p.choices) - 1, step=1, choices=p.choices)
        return made.fixed(_why(p, ranges))
    if p.type == "bool":
        made = replace(made, values=(int(bool(value)),), high=1, step=1)
        return made.fixed(_why(p, ranges))
    numbers = _numbers(value, 0 if p.spread else p.size)
    if numbers is None:
        return None
    whole = p.whole
    if whole:
        numbers = tuple(int(n) for n in numbers)
    low, high = _range(p, numbers, ranges)
    symbols = (
        (symbol,) if len(numbers) == 1 else tuple(f"{symbol}.{k}" for k in range(len(numbers)))
    )
    kind = ("int" if whole else "float") + ("s" if len(numbers) > 1 else "")
    made = replace(made, type=kind, symbols=symbols, values=numbers, low=low, high=high)
    made = made.fixed(_why(p, ranges))
    if whole:
        return replace(made, step=-(-(int(high) - int(low)) // (MOST_STEPS - 1)) or 1)
    return replace(made, step=_nice((high - low) / 200))


def _why(p: FilterParam, ranges: Ranges) -> str:
    """Return why a parameter is fixed from the beginning, or ""."""
    if p.name in _SHAPING:
        return "it is part of the plan"
    if p.name in _QUIET and p.name not in ranges:
        return "name it in sliders to change it"
    return ""


def _numbers(value: object, size: int) -> tuple[int | float, ...] | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return (value,) * (size or 1)
    if not isinstance(value, list | tuple) or not 0 < len(value) <= 4:
        return None
    plain = all(isinstance(n, int | float) and not isinstance(n, bool) for n in value)
    return tuple(value) if plain else None


def _range(p: FilterParam, numbers: Sequence[float], ranges: Ranges) -> tuple[float, float]:
    """Return the range of a slider: the declared one, narrowed to useful values."""
    chosen = ranges.get(p.name)
    if chosen is not None:
        return min(*chosen, *numbers), max(*chosen, *numbers)
    if p.name in _COLORS:
        return 0.0, 1.0
    most = max(abs(n) for n in numbers)
    whole = p.whole
    low = None if p.low is None or p.low <= -_FAR else p.low
    high = None if p.high is None or p.high >= _FAR else p.high
    reach = max(2 * most, 16 if whole else 1.0)
    if low is None:
        low = 0.1 if p.name == "sigma" else -reach
    if high is None or (whole and high > reach):
        high = max(low + 1, reach)
    elif high - low > 50 and not whole:
        high = min(high, max(low + 1, 4 * most, 10.0))
    return float(low), float(high)


def _nice(step: float) -> float:
    """Return a round number of about this size.

    >>> _nice(0.0123), _nice(0.5), _nice(3.0)
    (0.01, 0.5, 2.0)
    """
    if step <= 0:
        return 0.01
    power = 1.0
    while power > step:
        power /= 10
    while power * 10 <= step:
        power *= 10
    return round(power * max(n for n in (1, 2, 5) if power * n <= step * 1.0001), 12)


def named(controls: Iterable[Control]) -> list[Control]:
    """Return controls with short unique names: ``sigma``, ``blur.sigma``, ``blur2.sigma``."""
    found = list(controls)
    short = [c.param for c in found]
    long = [f"{c.filter}.{c.param}" for c in found]
    made = []
    for c, one, two in zip(found, short, long, strict=True):
        name = one if short.count(one) == 1 else two
        if long.count(two) > 1:
            number = 1 + sum(
                o.param == c.param and o.filter == c.filter and o.index < c.index for o in found
            )
            name = f"{c.filter}{number}.{c.param}" if number > 1 else two
        made.append(replace(c, name=name))
    return made


def check_ranges(ranges: Ranges | None, known: Iterable[str], call: str) -> Ranges:
    """Return ranges of controls; raise if a name or a range is not valid."""
    if ranges is None:
        return {}
    names = sorted(set(known))
    if not isinstance(ranges, Mapping):
        raise ParameterError.invalid(call, "sliders", "a dict of names and (low, high)", ranges)
    for name, pair in ranges.items():
        if pair is None and name in names:
            continue
        if name not in names:
            advice = did_you_mean(str(name), names) or f"The chain has: {', '.join(names)}."
            raise ParameterError(f"{call}: sliders: no parameter {name!r}. {advice}")
        try:
            low, high = (float(n) for n in pair or ())
        except (TypeError, ValueError):
            low, high = 1.0, 0.0
        if not low < high:
            raise ParameterError.invalid(call, f"sliders[{name!r}]", "(low, high) or None", pair)
    return ranges
