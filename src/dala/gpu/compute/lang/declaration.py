"""Declarations of kernels: inputs, parameters, and the names that the body uses."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from dala.forks import cached_property
from dala.gpu.compute.lang.ir import Type
from dala.gpu.compute.lang.source import KernelSource

Number: TypeAlias = int | float | bool

#: The end of the names of inputs that hold the smaller copies of an image.
LEVELS: Final = "_levels_"


def expected_numbers(
    whole: bool,
    low: float | None,
    high: float | None,
    size: int = 0,
    *,
    spread: bool = False,
    listed: bool = False,
) -> str:
    """Return a phrase for the accepted numbers, for error messages.

    An infinite bound accepts every finite number on that side. With ``spread`` a single number is
    accepted and repeated ``size`` times; with ``listed`` a list of any length is accepted.

    >>> expected_numbers(True, 0, 200), expected_numbers(False, 0.5, math.inf)
    ('an int from 0 to 200', 'a finite number of at least 0.5')
    >>> expected_numbers(False, 0, 1, 3), expected_numbers(True, 1, None, 2, spread=True)
    ('3 numbers from 0 to 1', 'an int or 2 ints of at least 1')
    """
    noun = "int" if whole else "number"
    bounds = [b for b in (low, high) if b is not None]
    if not whole and any(map(math.isinf, bounds)):
        noun = f"finite {noun}"
    many = f"{size} {noun}s"
    text = many if size else ("an " if whole else "a ") + noun
    if listed:
        text = f"a list of {noun}s"
    if spread and size:
        text = f"{'an' if whole else 'a'} {noun} or {many}"
    least = low is not None and not math.isinf(low)
    most = high is not None and not math.isinf(high)
    if least and most:
        return f"{text} from {_plain(low)} to {_plain(high)}"
    if least:
        return f"{text} of at least {_plain(low)}"
    return f"{text} of at most {_plain(high)}" if most else text


def _plain(value: float | None) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


@dataclass(frozen=True)
class ArgDecl:
    """An input of a kernel: its kind, and its dtype if annotated."""

    name: str
    kind: str
    dtype: str | None = None
    #: True for an image that is sampled, so that it may be of any size.
    sampled: bool = False
    #: True for an image that is sampled with ``lod=``, which needs smaller copies of it.
    levels: bool = False


@dataclass(frozen=True)
class ParamDecl:
    """One parameter of a kernel.

    Attributes:
        name: the name that callers use.
        type: "int", "float", "bool", or "number" (int or float, depending on the value passed).
        exact: the scalar type if the annotation names one, or None.
        size: the number of components; 0 for a scalar.
        default: the default value; None for a required parameter.
        low: the smallest accepted value, or None; -inf accepts every finite number.
        high: the largest accepted value, or None; inf accepts every finite number.
        listed: True for a list of numbers, whose length is that of the value.
        role: "time", "frame", "resolution", "pointer" or "date" if the surroundings give it, or "".
        label: what controls show for the name, or "".
    """

    name: str
    type: str
    exact: Type | None = None
    size: int = 0
    default: Number | tuple[Number, ...] | None = None
    low: int | float | None = None
    high: int | float | None = None
    listed: bool = False
    role: str = ""
    label: str = ""

    @property
    def required(self) -> bool:
        """True if the parameter has no default."""
        return self.default is None

    @property
    def expected(self) -> str:
        """A phrase for the accepted values, used in error messages."""
        if self.type == "bool":
            return "True or False"
        whole = self.type == "int"
        return expected_numbers(whole, self.low, self.high, self.size, listed=self.listed)

    def allows(self, value: Number) -> bool:
        """Return True if a number is within the range, or if there is no range."""
        low, high = self.low, self.high
        return low is None or high is None or (low <= value <= high and abs(value) != math.inf)


@dataclass(frozen=True, eq=False)
class KernelDecl:
    """A checked kernel, ready to be specialized for dtypes and ranks."""

    name: str
    source: KernelSource
    function: ast.FunctionDef
    args: tuple[ArgDecl, ...]
    params: tuple[ParamDecl, ...]
    doc: str = ""
    #: True if the function is annotated ``-> Pixel`` or visibly returns a pixel.
    returns_pixel: bool = False
    #: Kernels that the body calls, by name.
    helpers: dict[str, KernelDecl] = field(default_factory=dict)
    #: Constants of the surrounding module (numbers and tuples of numbers), by name.
    constants: dict[str, Number | tuple[Number, ...]] = field(default_factory=dict)

    @cached_property
    def param_names(self) -> frozenset[str]:
        """Names of the parameters."""
        return frozenset(p.name for p in self.params)

    @cached_property
    def generic(self) -> tuple[ParamDecl, ...]:
        """Parameters whose type or length is that of the value passed."""
        return tuple(p for p in self.params if p.type == "number" or p.listed)

    @cached_property
    def roles(self) -> tuple[tuple[str, str], ...]:
        """Names and roles of the parameters that the surroundings give."""
        return tuple((p.name, p.role) for p in self.params if p.role)

    def with_levels(self) -> KernelDecl:
        """Return the kernel with an input for the smaller copies of each image that needs them."""
        names = {a.name for a in self.args}
        more = [ArgDecl(f"{a.name}{LEVELS}", "image", sampled=True) for a in self.args if a.levels]
        more = [a for a in more if a.name not in names]
        return replace(self, args=(*self.args, *more)) if more else self

    @property
    def pixels(self) -> bool:
        """True if the declaration says that the kernel runs once per pixel."""
        return self.returns_pixel or any(a.kind in ("pixel", "image") for a in self.args)


#: Annotations of parameters that the surroundings give: what they are, their type and size.
ROLES: Final = {
    "Time": ("time", "float", 0),
    "FrameNumber": ("frame", "int", 0),
    "Frame": ("frame", "int", 0),
    "Resolution": ("resolution", "float", 2),
    "Pointer": ("pointer", "float", 3),
    "Date": ("date", "float", 4),
}

KINDS: Final = {"Pixel": "pixel", "Image": "image", "Array": "array"}

#: Constants that every kernel can use.
CONSTANTS: Final[dict[str, float]] = {
    "pi": 3.141592653589793,
    "tau": 6.283185307179586,
    "e": 2.718281828459045,
    "inf": float("inf"),
    "nan": float("nan"),
}

EXACT_TYPES: Final[dict[str, Type]] = {
    "f32": "f32", "f64": "f64", "s32": "s32", "s64": "s64", "u32": "u32",
}  # fmt: skip
