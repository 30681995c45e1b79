"""The functions of the kernel language: name, number of arguments, documentation, IR builder."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import product
from typing import Final, TypeVar

from dala.gpu.compute.lang.builder import (
    Builder,
    Scalar,
    Term,
    Vec,
    components,
    floor,
    refuse,
    scalar,
    type_of,
)
from dala.gpu.compute.lang.ir import FLOATS, INTS, Type, Value
from dala.gpu.compute.lang.library import matrices
from dala.gpu.compute.lang.scalars import as_float


@dataclass(frozen=True)
class Function:
    """One function of the kernel language."""

    name: str
    least: int
    most: int
    build: Callable[..., Term]
    doc: str
    #: True if ``build`` takes whole vectors; otherwise it is called for each component.
    whole: bool = False
    #: True if it is written in the kernel language itself; see ``library/prelude.py``.
    prelude: bool = False
    #: True if all its arguments are one vector: ``noise(x, y)`` is ``noise((x, y))``.
    joined: bool = False


FUNCTIONS: Final[dict[str, Function]] = {}

Build = TypeVar("Build", bound=Callable[..., Term])


def _row(
    name: str, least: int, most: int | None = None, *, doc: str, whole: bool = False
) -> Callable[[Build], Build]:
    def add(build: Build) -> Build:
        FUNCTIONS[name] = Function(name, least, most or least, build, doc, whole)
        return build

    return add


def _none(b: Builder, *terms: Term) -> Term:
    raise AssertionError("the front end lowers calls of the prelude")


def _real(name: str, b: Builder, *terms: Scalar) -> Scalar:
    return b.real(name, *terms)


for _name, _doc in {
    "sqrt": "square root",
    "exp": "e to the power x",
    "log": "natural logarithm",
    "sin": "sine, radians",
    "cos": "cosine, radians",
    "tan": "tangent, radians",
    "atan2": "angle of the point (x, y): atan2(y, x)",
}.items():
    _row(_name, 2 if _name == "atan2" else 1, doc=_doc)(partial(_real, _name))


@_row("atan", 1, 2, doc="arc tangent, or the angle of the point (x, y): atan(y, x)")
def _atan(b: Builder, y: Scalar, *x: Scalar) -> Scalar:
    return b.real("atan2" if x else "atan", y, *x)


@_row("pow", 2, doc="x to the power y")
def _pow(b: Builder, x: Scalar, y: Scalar) -> Scalar:
    if type_of(x) in FLOATS or type_of(y) in FLOATS:
        return b.power(x, y)
    return b.power(float(x) if not isinstance(x, Value) else b.convert(x, as_float(x.type)), y)


def _rounded(name: str, b: Builder, x: Scalar) -> Scalar:
    if type_of(x) not in FLOATS:
        return x
    return b.emit(name, x.type, x) if isinstance(x, Value) else float(_ROUND[name](x))


_ROUND: Final[dict[str, Callable[[float], float]]] = {
    "floor": floor,
    "ceil": lambda x: -floor(-x),
    "round": lambda x: math.copysign(round(x), x) if math.isfinite(x) else x,
}
for _name, _doc in {
    "floor": "the largest integer not above x",
    "ceil": "the smallest integer not below x",
    "round": "the nearest integer, halves to even",
}.items():
    _row(_name, 1, doc=f"{_doc}, as a float")(partial(_rounded, _name))


def _joined(op: str, b: Builder, *terms: Scalar) -> Scalar:
    return reduce(partial(b.binary, op), terms)


_row("min", 2, 64, doc="the smallest argument; NaN if any is NaN")(partial(_joined, "min"))
_row("max", 2, 64, doc="the largest argument; NaN if any is NaN")(partial(_joined, "max"))


@_row("abs", 1, doc="the absolute value")
def _abs(b: Builder, x: Scalar) -> Scalar:
    if not isinstance(x, Value):
        return abs(x)
    if x.type in ("u32", "bool"):
        return x
    return b.emit("abs", x.type, x)


@_row("clamp", 3, doc="clamp(x, low, high): x limited to the range from low to high")
def _clamp(b: Builder, x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    return b.binary("min", b.binary("max", x, low), high)


@_row("mix", 3, doc="mix(a, b, t): a*(1-t) + b*t")
def _mix(b: Builder, x: Scalar, y: Scalar, t: Scalar) -> Scalar:
    keep = b.binary("mul", x, b.binary("sub", 1.0, t))
    return b.binary("add", keep, b.binary("mul", y, t))


@_row("step", 2, doc="step(edge, x): 0.0 where x < edge, else 1.0")
def _step(b: Builder, edge: Scalar, x: Scalar) -> Scalar:
    if not isinstance(edge, Value) and not isinstance(x, Value):
        return 0.0 if x < edge else 1.0
    type_ = as_float(b.common(edge, x))
    below = b.truth(b.binary("lt", x, edge))
    return b.emit("select", type_, below, b.convert(0.0, type_), b.convert(1.0, type_))


@_row("smoothstep", 3, doc="smoothstep(low, high, x): a smooth step from 0 at low to 1 at high")
def _smoothstep(b: Builder, low: Scalar, high: Scalar, x: Scalar) -> Scalar:
    span = b.binary("sub", high, low)
    if isinstance(span, Value) or span:
        # A product: the bounds are mostly the same everywhere, and then so is the quotient.
        t = b.binary("mul", b.binary("sub", x, low), b.binary("div", 1.0, span))
    else:
        t = b.binary("div", b.binary("sub", x, low), span)
    t = _clamp(b, t, 0.0, 1.0)
    return b.binary("mul", b.binary("mul", t, t), b.binary("sub", 3.0, b.binary("mul", 2.0, t)))


@_row("fract", 1, doc="x - floor(x)")
def _fract(b: Builder, x: Scalar) -> Scalar:
    return b.binary("sub", x, FUNCTIONS["floor"].build(b, x))  # type: ignore[arg-type]


@_row("sign", 1, doc="-1, 0 or 1, in the type of x")
def _sign(b: Builder, x: Scalar) -> Scalar:
    if not isinstance(x, Value):
        return (x > 0) - (x < 0) if not isinstance(x, float) else float((x > 0) - (x < 0))
    type_: Type = "s32" if x.type == "bool" else x.type
    x = b.convert(x, type_)
    zero, one = b.convert(0, type_), b.convert(1, type_)
    up = b.emit("select", type_, b.emit("gt", "bool", x, zero), one, zero)
    if type_ == "u32":
        return up
    down = b.emit("select", type_, b.emit("lt", "bool", x, zero), one, zero)
    return b.emit("sub", type_, up, down)


_TANH_SERIES: Final = (
    1.0, -1 / 3, 2 / 15, -17 / 315, 62 / 2835, -1382 / 155925, 21844 / 6081075,
    -929569 / 638512875, 6404582 / 10854718875, -443861162 / 1856156927625,
    18888466084 / 194896477400625,
)  # fmt: skip


@_row("tanh", 1, doc="hyperbolic tangent")
def _tanh(b: Builder, x: Scalar) -> Scalar:
    if not isinstance(x, Value):
        return math.tanh(x)
    type_ = as_float(x.type)
    x = b.convert(x, type_)
    # Near zero 1 - 2/(e+1) loses digits, so a series is used there.
    square = b.binary("mul", x, x)
    terms, reach = (7, 0.25) if type_ == "f32" else (11, 0.0625)
    series: Scalar = _TANH_SERIES[terms - 1]
    for coefficient in reversed(_TANH_SERIES[: terms - 1]):
        series = b.binary("add", b.binary("mul", series, square), coefficient)
    series = b.binary("mul", series, x)
    power = b.real("exp", b.binary("mul", x, 2.0))
    far = b.binary("sub", 1.0, b.binary("div", 2.0, b.binary("add", power, 1.0)))
    near = b.truth(b.binary("lt", square, reach))
    return b.emit("select", type_, near, b.convert(series, type_), b.convert(far, type_))


@_row("isnan", 1, doc="True where x is NaN")
def _isnan(b: Builder, x: Scalar) -> Scalar:
    if not isinstance(x, Value):
        return math.isnan(x)
    if x.type not in FLOATS:
        return False
    return b.emit("isnan", "bool", x)


@_row("div", 2, doc="division in the type of the arguments: floor division for ints")
def _div(b: Builder, x: Scalar, y: Scalar) -> Scalar:
    return b.binary("div" if b.common(x, y) in FLOATS else "idiv", x, y)


# casts ----------------------------------------------------------------------------------------
def _cast(target: Type, b: Builder, x: Scalar) -> Scalar:
    if not isinstance(x, Value) and isinstance(x, int) and target == "u32":
        x %= 2**32  # u32(-1) is all ones, as for values
    return b.convert(x, target)


@_row("int", 1, doc="truncated and clamped to an int; NaN gives 0")
def _int(b: Builder, x: Scalar) -> Scalar:
    return b.convert(x, "s64" if type_of(x) == "s64" else "s32")


@_row("float", 1, doc="as a float")
def _float(b: Builder, x: Scalar) -> Scalar:
    return b.convert(x, as_float(type_of(x)))


for _target in ("f32", "f64", "s32", "s64", "u32"):
    _row(_target, 1, doc=f"as {_target}")(partial(_cast, _target))


_row("bool", 1, doc="True where x is not 0")(Builder.truth)
_row("u8", 1, doc="rounded and clamped to 0 to 255, as an s32")(Builder.to_u8)
for _name in ("select", "where"):
    _doc = f"{_name}(condition, a, b): a where the condition holds, else b"
    _row(_name, 3, doc=_doc, whole=True)(Builder.select)


@_row("like", 2, doc="like(x, v): v in the type of x, rounded and clamped for integers")
def _like(b: Builder, x: Scalar, v: Scalar) -> Scalar:
    target, value = type_of(x), b.value(v)
    if target in INTS and value.type in FLOATS:
        value = b.emit("round", value.type, value)
    return b.convert(value, target)


# vectors --------------------------------------------------------------------------------------
@_row("dot", 2, doc="the dot product of two vectors", whole=True)
def _dot(b: Builder, x: Term, y: Term) -> Term:
    return _joined("add", b, *components([b.lift(partial(b.binary, "mul"), x, y)]))


@_row("length", 1, 4, doc="the length of a vector, or of the vector of the arguments", whole=True)
def _length(b: Builder, *terms: Term) -> Term:
    parts = components(terms)
    if len(parts) == 1:
        return _abs(b, parts[0])
    square = b.binary("mul", parts[0], parts[0])
    for p in parts[1:]:
        square = b.binary("add", square, b.binary("mul", p, p))
    return b.real("sqrt", square)


def _vector(name: str, size: int, b: Builder, *terms: Term) -> Term:
    parts = components(terms)
    if len(parts) == 1:
        parts = parts * size
    if name == "rgba" and len(parts) == 3:
        parts = [*parts, 1.0]
    if len(parts) != size:
        refuse(f"{name} takes {size} numbers, got {len(parts)}", f"Pass {size}, or one.")
    return Vec(tuple(parts))


for _name, _size, _doc in (
    ("rgba", 4, "a pixel; alpha is 1 if three numbers are given"),
    ("vec2", 2, "a vector of two numbers"),
    ("vec3", 3, "a vector of three numbers"),
    ("vec4", 4, "a vector of four numbers"),
):
    _row(_name, 1, _size, doc=_doc, whole=True)(partial(_vector, _name, _size))

for _name, _type in (("ivec", "s32"), ("uvec", "u32"), ("bvec", "bool")):
    for _size in (2, 3, 4):

        def _typed(b: Builder, *terms: Term, n: int = _size, t: str = _type) -> Term:
            made = _vector(f"a vector of {t}", n, b, *terms)
            return b.lift(FUNCTIONS[t].build, b, made)  # type: ignore[arg-type]

        _row(f"{_name}{_size}", 1, _size, doc=f"a vector of {_size} {_type}", whole=True)(_typed)


# bits and conditions --------------------------------------------------------------------------
def _bits(kind: str, b: Builder, x: Scalar) -> Scalar:
    """Reinterpret the bits of a float as an int (``kind`` is its type), or those of an int."""
    if kind == "f":
        v = b.value(x)
        v = b.convert(v, "s32") if v.type not in INTS else v
        return b.emit("bits", "f64" if v.type == "s64" else "f32", v)
    v = b.convert(x, as_float(type_of(x)))
    target: Type = "s64" if v.type == "f64" else "s32"
    found = b.emit("bits", target, v)
    return b.convert(found, "u32") if kind == "u32" and target == "s32" else found


for _name, _to in {
    "floatBitsToInt": "s32", "floatBitsToUint": "u32",
    "intBitsToFloat": "f", "uintBitsToFloat": "f",
}.items():  # fmt: skip
    _row(_name, 1, doc="the same bits as another type")(partial(_bits, _to))

for _name, _op, _mark in (
    ("lessThan", "lt", "<"), ("lessThanEqual", "le", "<="), ("greaterThan", "gt", ">"),
    ("greaterThanEqual", "ge", ">="), ("equal", "eq", "=="), ("notEqual", "ne", "!="),
):  # fmt: skip
    _row(_name, 2, doc=f"a {_mark} b for each component")(partial(_joined, _op))


def _every(op: str, b: Builder, *terms: Term) -> Term:
    return reduce(partial(b.logical, op), components(terms))


_row("any", 1, 4, doc="True if one of the components is", whole=True)(partial(_every, "or"))
_row("all", 1, 4, doc="True if all of the components are", whole=True)(partial(_every, "and"))


@_row("log2", 1, doc="logarithm to the base 2, exact for powers of 2")
def _log2(b: Builder, x: Scalar) -> Scalar:
    if not isinstance(x, Value):
        return math.log2(x) if x > 0 else b.real("log", x)
    found = b.binary("div", b.real("log", x), math.log(2))
    whole = _rounded("round", b, found)
    error = _abs(b, b.binary("sub", found, whole))
    step = 2.0**-23 if type_of(found) == "f32" else 2.0**-52
    near = b.binary("le", error, b.binary("mul", _abs(b, whole), step))
    return scalar(b.select(near, whole, found))


# matrices -------------------------------------------------------------------------------------
for _size, _height in product((2, 3, 4), repeat=2):
    _name = f"mat{_size}" if _size == _height else f"mat{_size}x{_height}"
    _doc = "a matrix, column by column; of one number on the diagonal; of another matrix"
    _row(_name, 1, _size * _height, doc=_doc, whole=True)(
        partial(matrices.matrix, _name, _size, _height)
    )
for _name, _most, _build in (
    ("transpose", 1, matrices.transpose), ("determinant", 1, matrices.determinant),
    ("inverse", 1, matrices.inverse), ("outerProduct", 2, matrices.outer_product),
):  # fmt: skip
    _row(_name, _most, doc=(_build.__doc__ or "").split(".")[0], whole=True)(_build)
_row("matrixCompMult", 2, doc="the products of the numbers of two matrices")(
    lambda b, x, y: b.binary("mul", x, y)
)

#: Other names, of NumPy, Python and GLSL.
for _alias, _name in {
    "lerp": "mix", "roundEven": "round", "fabs": "abs", "rint": "round", "clip": "clamp",
    "arctan": "atan", "arctan2": "atan2", "fmin": "min", "fmax": "max", "power": "pow",
}.items():  # fmt: skip
    FUNCTIONS[_alias] = replace(FUNCTIONS[_name], name=_alias)

_row("mod", 2, doc="x - y*floor(x/y), as x % y")(partial(_joined, "mod"))

# written in the language ----------------------------------------------------------------------
for _name, _least, _doc in (
    ("radians", 1, "degrees as radians"), ("degrees", 1, "radians as degrees"),
    ("trunc", 1, "without the fraction"), ("isinf", 1, "True where x is infinite"),
    ("inversesqrt", 1, "1 / sqrt(x)"), ("asin", 1, "arc sine"), ("acos", 1, "arc cosine"),
    ("exp2", 1, "2 to the power x"), ("sinh", 1, "hyperbolic sine"),
    ("cosh", 1, "hyperbolic cosine"), ("asinh", 1, "inverse of sinh"),
    ("acosh", 1, "inverse of cosh"), ("atanh", 1, "inverse of tanh"),
    ("hypot", 2, "sqrt(x*x + y*y)"), ("distance", 2, "length(a - b)"),
    ("cross", 2, "the cross product of two vectors of three"),
    ("normalize", 1, "a vector of length 1; one of length 0 stays 0"),
    ("faceforward", 3, "faceforward(n, i, reference): n, or -n where dot(reference, i) >= 0"),
    ("reflect", 2, "reflect(i, n): i mirrored at a surface with the unit normal n"),
    ("refract", 3, "refract(i, n, eta): i refracted at a surface with the unit normal n"),
    ("modf", 1, "the fraction and the whole part, with the sign of x"),
    ("packUnorm2x16", 1, "two numbers from 0 to 1 in a u32"),
    ("packSnorm2x16", 1, "two numbers from -1 to 1 in a u32"),
    ("packHalf2x16", 1, "two numbers as halves in a u32"),
    ("unpackUnorm2x16", 1, "the two numbers from 0 to 1 in a u32"),
    ("unpackSnorm2x16", 1, "the two numbers from -1 to 1 in a u32"),
    ("unpackHalf2x16", 1, "the two halves in a u32, as floats"),
):  # fmt: skip
    FUNCTIONS[_name] = Function(_name, _least, _least, _none, _doc, prelude=True)
for _alias, _name in {
    "arcsin": "asin", "arccos": "acos", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "deg2rad": "radians", "rad2deg": "degrees", "rsqrt": "inversesqrt",
}.items():  # fmt: skip
    FUNCTIONS[_alias] = FUNCTIONS[_name]


# chance ---------------------------------------------------------------------------------------
@_row("hash", 1, 4, doc="a random u32 for up to four numbers, the same on every device", whole=True)
def _hash(b: Builder, *terms: Term) -> Term:
    found: Scalar = b.convert(0x9E3779B9, "u32")
    for item in components(terms):
        found = _scrambled(b, b.binary("xor", found, _key(b, b.value(item))))
    return found


def _key(b: Builder, v: Value) -> Scalar:
    """Return the bits of a number; those of -0.0 are those of 0.0."""
    if v.type in FLOATS:
        zero = b.truth(b.binary("eq", v, 0.0))
        v = b.value(_bits("s32", b, scalar(b.select(zero, b.convert(0.0, v.type), v))))
    if v.type == "s64":
        high = _scrambled(b, b.convert(b.shift("shr", v, 32), "u32"))
        return b.binary("xor", b.convert(v, "u32"), high)
    return b.convert(v, "u32")


def _scrambled(b: Builder, x: Scalar) -> Scalar:
    """Scramble the bits of a u32: each bit of the result depends on all (Wellons' lowbias32)."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = b.binary("mul", b.binary("xor", x, b.shift("shr", x, shift)), factor)
    return b.binary("xor", x, b.shift("shr", x, 16))


for _name, _doc in {
    "random": "a random number from 0 to below 1 for up to four numbers",
    "noise": "gradient noise of one to three numbers, from -1 to 1",
    "value_noise": "value noise of one to three numbers, from 0 to 1",
    "simplex": "simplex noise of two or three numbers, from -1 to 1",
    "worley": "the distance to the nearest of random points, of two or three numbers",
    "fbm": "noise of several octaves: fbm(p, octaves=5, lacunarity=2.0, gain=0.5)",
}.items():
    FUNCTIONS[_name] = Function(_name, 1, 4, _none, _doc, prelude=True, joined=True)

# The front end builds these itself, because they depend on the kernel's inputs and output.
for _name, _least, _doc in (
    ("position", 0, "the index in the output; (y, x) for pixels; position(axis) for one axis"),
    ("shape", 0, "the shape of an input, or of the output; (height, width) for pixels"),
    ("len", 1, "the length of an input's first axis"),
):
    _row(_name, _least, 1, doc=_doc, whole=True)(_dot)
