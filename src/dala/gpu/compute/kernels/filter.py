"""Declare filters with a decorator on the kernel; everything else is derived from it.

The filter's name is the function's name (or the operation's title). Its summary and the
descriptions of its parameters come from the docstring; types, ranges and defaults come from the
signature. Picture functions, the command line, scene effects and the tables in the documentation
read :data:`FILTERS`; there is no second list.

A docstring has a one-line summary, paragraphs that define the result, and an ``Args:`` section with
units in parentheses: ``radius (pixels): 0 changes nothing.``
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from dala.forks import cached_property
from dala.gpu.compute.engines.sampling.coordinates import BORDERS
from dala.gpu.compute.kernel import Kernel, KernelFunction, declare_function
from dala.gpu.compute.lang.declaration import ParamDecl
from dala.gpu.compute.operation import Operation
from dala.gpu.compute.params import DeclaredParam, Parameter

#: "filter": picture in, picture out; "effect": a recipe for grading or composing; "conversion": the
#: input or the result is not a picture, so it cannot be used in filter lists.
Kind: TypeAlias = Literal["filter", "effect", "conversion"]

#: Categories, in the order of the documentation.
CATEGORIES: Final = ("Color", "Neighborhoods", "Geometry", "Two pictures", "Effects", "Conversions")

#: Bounds of this magnitude only exclude infinity; they are not shown.
_FAR: Final = 1e6

#: Starts of docstring sections that are not part of the definition.
_SECTION = re.compile(r"^(Args|Raises|Returns|Example)s?:+\s*$|^>>>", re.M)
_ARGUMENT = re.compile(r"(\w+)(?: \(([^)]*)\))?: (.*)", re.S)

#: How far a filter reads beyond a pixel: pixels, the parameter that says so, or a function of all
#: parameters.
Reach: TypeAlias = int | str | Callable[[dict[str, Any]], int]

#: Kernels that compute the same one after another, faster; none where the kernel itself is better.
Passes: TypeAlias = Callable[[dict[str, Any]], Sequence[Kernel]]

#: Parameters of every filter that declares its reach. The filter itself clamps at the border.
BORDER_OPTIONS: Final = (
    Parameter("border", "choice", "clamp", choices=("clamp", "reflect", "wrap", "constant")),
    Parameter("fill", "floats", (0.0,) * 4, size=4, spread=True, low=-1e6, high=1e6),
)
assert set(BORDER_OPTIONS[0].choices) == set(BORDERS)
_BORDER_DOCS: Final = {
    "border": (
        "",
        'values beyond the picture: "clamp" (the nearest pixel), "reflect" (mirrored, without '
        'repeating the edge), "wrap" (repeated) or "constant" (``fill``).',
    ),
    "fill": ("", 'a color by name, or r, g, b, a of 0 to 1, for the border "constant".'),
}

#: A kernel function, an operation class, or a recipe. Their signatures have nothing in common.
FilterSource: TypeAlias = Callable[..., Any]

_Source = TypeVar("_Source", bound=FilterSource)


@dataclass(frozen=True)
class FilterParam(DeclaredParam):
    """One parameter of a filter: a number, a word, or an input besides the picture.

    ``type`` is that of a :class:`Parameter`, or of an input: "picture", "background" (a picture or
    a color), "lut", "map" or "points". A ``default`` of None lets the filter choose, unless the
    parameter is ``required``.
    """

    unit: str = ""
    doc: str = ""
    label: str = ""

    @property
    def is_input(self) -> bool:
        """True for pictures, tables, maps and curves; False for numbers and words."""
        return self.type in INPUTS

    @property
    def range(self) -> str:
        """The accepted values as text, such as "0 to 200" or "0.01 or more"; "" if unlimited.

        >>> FilterParam("radius", "int", 3, 0, 200).range
        '0 to 200'
        """
        if self.choices:
            return ", ".join(self.choices)
        low = None if self.low is None or self.low <= -_FAR else self.low
        high = None if self.high is None or self.high >= _FAR else self.high
        if low is None:
            return "" if high is None else f"{high:g} or less"
        return f"{low:g} or more" if high is None else f"{low:g} to {high:g}"


#: Types of parameters that are inputs.
INPUTS: Final = ("picture", "background", "lut", "map", "points")


@dataclass(eq=False)
class FilterSpec:
    """The declaration of a filter: a decorator of a kernel function, operation class or recipe.

    It is used by its other name, :data:`picture_filter`, and returns what it decorates unchanged.

    Args:
        category: the section of the documentation, one of :data:`CATEGORIES` or a new one.
        kind: see :data:`Kind`.
        keeps_alpha: False if alpha is computed and not copied.
        resizes: True if the result may have another size.
        sides: True if calls and lists may have ``width``, ``height`` or ``scale`` for ``size``.
        channels: channels of the result, if they differ from the picture's.
        example: parameters for the examples in help texts, such as ``"radius=8"``.
        inputs: types of additional inputs; those of a kernel are pictures by default.
        options: parameters of a recipe; a kernel declares its own.
        needs: parameters that are optional for the kernel but required for the filter.
        is_recipe: True for a function that returns the steps of a filter, and not a kernel.
        reach: how far the filter reads beyond a pixel. It then also has the parameters ``border``
            and ``fill``; the kernel or recipe itself clamps.
        passes: a function from the parameters to kernels that compute the same in several passes,
            faster than the kernel alone; for a kernel with one input.

    ::

        @picture_filter("Color", example="amount=0.3")
        def fade(px: Pixel, *, amount: Within[float, 0.0, 1.0] = 0.5):
            \"\"\"Mix every color with white.\"\"\"
            return rgba(mix(px.rgb, 1.0, amount), px.a)
    """

    category: str
    _: KW_ONLY
    kind: Kind = "filter"
    keeps_alpha: bool = True
    resizes: bool = False
    sides: bool = False
    channels: int | None = None
    example: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    options: tuple[Parameter, ...] = ()
    needs: tuple[str, ...] = ()
    is_recipe: bool = False
    reach: Reach | None = None
    passes: Passes | None = None
    #: The kernel function, operation class or recipe.
    source: FilterSource = field(init=False)

    def __call__(self, source: _Source) -> _Source:
        """Declare a filter."""
        self.source = source
        FILTERS[self.name] = self
        return source

    @cached_property
    def name(self) -> str:
        """The filter's name."""
        return str(getattr(self.source, "title", None) or self.source.__name__)

    @cached_property
    def kernel(self) -> Kernel | Operation | None:
        """The kernel; None for a recipe."""
        if self.is_recipe:
            return None
        if isinstance(self.source, type) and issubclass(self.source, Operation):
            return self.source()
        function = cast(KernelFunction, self.source)
        return Kernel(self.name, partial(declare_function, function, self.name))

    def kernels(self, given: Mapping[str, Any]) -> Sequence[Kernel | Operation]:
        """Return the kernels that a picture passes through with the given parameters.

        Each takes the parameters of the filter.
        """
        assert self.kernel is not None
        values = {p.name: p.default for p in self.parameters} | dict(given)
        return (self.passes(values) if self.passes is not None else ()) or (self.kernel,)

    @cached_property
    def summary(self) -> str:
        """The first line of the docstring."""
        return self._doc.partition("\n")[0].strip()

    @cached_property
    def definition(self) -> str:
        """The docstring without its first line and its sections."""
        body = self._doc.partition("\n")[2]
        section = _SECTION.search(body)
        return (body[: section.start()] if section else body).strip()

    @cached_property
    def _doc(self) -> str:
        return inspect.cleandoc(self.source.__doc__ or "")

    @cached_property
    def _arguments(self) -> dict[str, tuple[str, str]]:
        """Unit and description of each parameter, from the ``Args:`` section."""
        _, _, text = self._doc.partition("\nArgs:\n")
        section = _SECTION.search(text)
        text = textwrap.dedent(text[: section.start()] if section else text).strip()
        found = {}
        for entry in re.split(r"\n(?=\S)", text):
            match = _ARGUMENT.fullmatch(entry.strip())
            if match:
                found[match[1]] = (match[2] or "", " ".join(match[3].split()))
        if self.reach is not None:
            found |= _BORDER_DOCS
        return found

    @cached_property
    def parameters(self) -> tuple[FilterParam, ...]:
        """All parameters in the order of the call, inputs first."""
        found = [FilterParam(name, kind) for name, kind in self._extra_inputs()]
        declared: Iterable[Parameter | ParamDecl] = self.options
        if self.kernel is not None:
            declared = self.kernel.params
        found += [parameter_of(p) for p in declared]
        if self.reach is not None:
            found += [parameter_of(p) for p in BORDER_OPTIONS]
        return tuple(self._described(p) for p in found)

    def _extra_inputs(self) -> Iterable[tuple[str, str]]:
        if self.kernel is None or self.kind == "conversion":
            return self.inputs.items()
        return [(name, self.inputs.get(name, "picture")) for name in self.kernel.inputs[1:]]

    def _described(self, p: FilterParam) -> FilterParam:
        unit, doc = self._arguments.get(p.name, ("", ""))
        needed = p.name in self.needs or (p.is_input and self.kernel is not None)
        return replace(p, unit=unit, doc=doc, required=p.required or needed)

    def pixels_around(self, given: Mapping[str, Any]) -> int:
        """Return how far the filter reads beyond a pixel with the given parameters, in pixels."""
        if self.reach is None or isinstance(self.reach, int):
            return self.reach or 0
        values = {p.name: p.default for p in self.parameters} | dict(given)
        return int(values[self.reach] if isinstance(self.reach, str) else self.reach(values))

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the parameters."""
        return frozenset(p.name for p in self.parameters)


#: All declared filters by name, in order of declaration.
FILTERS: Final[dict[str, FilterSpec]] = {}


picture_filter = FilterSpec


def parameter_of(declared: Parameter | ParamDecl) -> FilterParam:
    """Convert a kernel's parameter to a :class:`FilterParam`, without a description."""
    facts = {**vars(declared), "required": declared.required}
    if isinstance(declared, ParamDecl):
        del facts["exact"]
        listed, _ = facts.pop("listed"), facts.pop("role")
        numbers = "ints" if listed and declared.type == "int" else "floats"
        facts["type"] = numbers if declared.size or listed else declared.type
    default = declared.default
    if facts.get("spread") and isinstance(default, tuple) and len(set(default)) == 1:
        facts["default"] = default[0]  # a single number is repeated
    return FilterParam(**facts)
