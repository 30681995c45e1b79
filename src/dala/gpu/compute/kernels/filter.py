"""Filter declarations: a decorator beside the kernel, from which everything else is derived.

A filter's name is that of its function (or the operation's title), its summary and its parameters'
descriptions are in the docstring, types, ranges and defaults in the signature. The calls for
pictures, the command line, scene effects and the tables in the documentation read
:data:`FILTERS`; there is no second list.

A docstring is a one-line summary, paragraphs that define the result, and an ``Args:`` section,
where parentheses hold a unit: ``radius (pixels): 0 changes nothing.``
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Literal, TypeAlias, TypeVar

from dala.gpu.compute.kernel import Kernel, declare_function
from dala.gpu.compute.lang.declaration import ParamDecl
from dala.gpu.compute.operation import Operation
from dala.gpu.compute.params import Parameter
from dala.typing import ParamValue

#: "filter": picture in, picture out; "effect": a recipe for grading or composing; "conversion": not
#: for filter lists, since the result or the input is not a picture.
Kind: TypeAlias = Literal["filter", "effect", "conversion"]

#: Docs categories, in the order of the documentation.
CATEGORIES: Final = ("Color", "Neighborhoods", "Geometry", "Two pictures", "Effects", "Conversions")

#: Bounds from here on only keep infinity out; they are not shown.
_FAR: Final = 1e6

#: Sections of a docstring that are not part of the definition.
_SECTION = re.compile(r"^(Args|Raises|Returns|Example)s?:+\s*$|^>>>", re.M)
_ARGUMENT = re.compile(r"(\w+)(?: \(([^)]*)\))?: (.*)", re.S)

#: A kernel function, the class of an operation, or a recipe; each kind returns something else.
FilterSource: TypeAlias = Callable[..., Any]

_Source = TypeVar("_Source", bound=FilterSource)


@dataclass(frozen=True)
class FilterParam:
    """One parameter of a filter: a number, a word, or an input besides the picture.

    ``type`` is "int", "float", "bool", "choice", "ints", "floats" (``size`` of them; a single one
    stands for all where ``spread``), or an input: "picture", "background" (a picture or a color),
    "lut", "map" or "points". ``default`` None means that the filter chooses, unless ``required``.
    """

    name: str
    type: str
    default: ParamValue = None
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    size: int = 0
    spread: bool = False
    required: bool = False
    unit: str = ""
    doc: str = ""

    @property
    def is_input(self) -> bool:
        """True for pictures, tables and curves, which are not numbers or words."""
        return self.type in INPUTS

    @property
    def range(self) -> str:
        """The accepted values as text, such as "0 to 200" or "0.01 or more"; "" for any.

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


@dataclass(frozen=True, eq=False)
class FilterSpec:
    """The declaration of a filter; see :func:`picture_filter`."""

    source: FilterSource
    category: str
    kind: Kind
    keeps_alpha: bool
    resizes: bool
    #: Channels of the result, where it is not those of the picture.
    channels: int | None
    example: str
    #: Types of the inputs besides the picture, by name.
    inputs: dict[str, str]
    #: Options of a recipe; a kernel has its own.
    options: tuple[Parameter, ...]
    #: Parameters that a kernel chooses itself, but a filter must be given.
    needs: tuple[str, ...]
    #: True for a filter of several steps, False for a single kernel.
    is_recipe: bool

    @cached_property
    def name(self) -> str:
        """The filter's name."""
        return str(getattr(self.source, "title", None) or self.source.__name__)

    @cached_property
    def is_operation(self) -> bool:
        """True for a kernel with engine code of its own."""
        return isinstance(self.source, type) and issubclass(self.source, Operation)

    @cached_property
    def kernel(self) -> Kernel | Operation | None:
        """The kernel; None for a recipe."""
        if self.is_recipe:
            return None
        if isinstance(self.source, type) and issubclass(self.source, Operation):
            return self.source()
        return Kernel(self.name, partial(declare_function, self.source, self.name))

    @cached_property
    def summary(self) -> str:
        """The first line of the docstring."""
        return self._doc.partition("\n")[0].strip()

    @cached_property
    def definition(self) -> str:
        """The docstring after its first line, without the sections."""
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
        text = inspect.cleandoc(text[: section.start()] if section else text)
        found = {}
        for entry in re.split(r"\n(?=\S)", text):
            match = _ARGUMENT.fullmatch(entry.strip())
            if match:
                found[match[1]] = (match[2] or "", " ".join(match[3].split()))
        return found

    @cached_property
    def parameters(self) -> tuple[FilterParam, ...]:
        """Every parameter in the order of the call, inputs first."""
        found = [FilterParam(name, kind) for name, kind in self._extra_inputs()]
        declared: Iterable[Parameter | ParamDecl] = self.options
        if self.kernel is not None:
            declared = self.kernel.params
        found += [parameter_of(p) for p in declared]
        return tuple(self._described(p) for p in found)

    def _extra_inputs(self) -> Iterable[tuple[str, str]]:
        if self.kernel is None or self.kind == "conversion":
            return self.inputs.items()
        return [(name, self.inputs.get(name, "picture")) for name in self.kernel.inputs[1:]]

    def _described(self, p: FilterParam) -> FilterParam:
        unit, doc = self._arguments.get(p.name, ("", ""))
        required = p.required or p.name in self.needs
        if p.is_input and self.kernel is not None:
            required = True
        facts = {**vars(p), "unit": unit, "doc": doc, "required": required}
        return FilterParam(**facts)

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the parameters."""
        return frozenset(p.name for p in self.parameters)


#: Every declared filter by name, in the order of declaration.
FILTERS: Final[dict[str, FilterSpec]] = {}


def picture_filter(
    category: str,
    *,
    kind: Kind = "filter",
    keeps_alpha: bool = True,
    resizes: bool = False,
    channels: int | None = None,
    example: str = "",
    inputs: dict[str, str] | None = None,
    options: tuple[Parameter, ...] = (),
    needs: tuple[str, ...] = (),
    is_recipe: bool = False,
) -> Callable[[_Source], _Source]:
    """Declare a kernel function, an operation class or a recipe as a filter.

    Args:
        category: the section of the documentation, one of :data:`CATEGORIES` or a new one.
        kind: where its call is; see :data:`Kind`.
        keeps_alpha: False where alpha is computed and not copied.
        resizes: True where the result may have another size.
        channels: of the result, where they differ from the picture's.
        example: parameters for the examples in help texts, such as ``"radius=8"``.
        inputs: types of the inputs besides the picture; pictures by default for a kernel.
        options: parameters of a recipe; a kernel declares its own.
        needs: parameters that a kernel can do without, but the filter cannot.
        is_recipe: True for a function that returns the steps of a filter, and not a kernel.

    Returns:
        The decorator; it returns what it is given.

    ::

        @picture_filter("Color", example="amount=0.3")
        def fade(px: Pixel, *, amount: Within[float, 0.0, 1.0] = 0.5):
            \"\"\"Mix every color with white.\"\"\"
            return rgba(mix(px.rgb, 1.0, amount), px.a)
    """

    def declare(source: _Source) -> _Source:
        spec = FilterSpec(
            source, category, kind, keeps_alpha, resizes, channels, example, dict(inputs or {}),
            options, needs, is_recipe,
        )  # fmt: skip
        FILTERS[spec.name] = spec
        return source

    return declare


def parameter_of(declared: Parameter | ParamDecl) -> FilterParam:
    """Return the parameter of a kernel as a :class:`FilterParam`, without a description."""
    default = declared.default
    spread = isinstance(declared, Parameter) and declared.spread
    if spread and isinstance(default, tuple) and len(set(default)) == 1:
        default = default[0]  # a single number stands for all
    return FilterParam(
        declared.name,
        declared.type if isinstance(declared, Parameter) or not declared.size else "floats",
        default,
        declared.low,
        declared.high,
        getattr(declared, "choices", ()),
        declared.size,
        spread,
        declared.required,
    )
