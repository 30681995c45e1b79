"""The front end: specialize a declared kernel for dtypes and ranks into a typed program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dala.errors import DtypeMismatch, KernelSyntaxError
from dala.gpu.compute.lang.builder import (
    Builder,
    Compound,
    Refused,
    Scalar,
    Term,
    Vec,
    describe,
    scalar,
    type_of,
)
from dala.gpu.compute.lang.declaration import KernelDecl
from dala.gpu.compute.lang.exact import exact
from dala.gpu.compute.lang.expressions import Restart, Site, Typing
from dala.gpu.compute.lang.ir import (
    FLOATS,
    LOADED,
    Arg,
    Out,
    Param,
    Program,
    Type,
    Value,
    make_program,
)
from dala.gpu.compute.lang.limits import MAX_TYPING
from dala.gpu.compute.lang.scalars import as_float
from dala.gpu.compute.lang.statements import Lowering

#: Result types that fit in each dtype without loss.
_HOLDS: dict[str, frozenset[str]] = {
    "f32": frozenset({"bool", "s32", "u32", "f32"}),
    "f64": frozenset({"bool", "s32", "u32", "s64", "f32", "f64"}),
    "s32": frozenset({"bool", "s32"}),
    "u32": frozenset({"bool", "u32"}),
    "s64": frozenset({"bool", "s32", "u32", "s64"}),
    "u8": frozenset({"bool", "s32", "u32", "s64", "f32", "f64"}),
}


@dataclass(frozen=True)
class Signature:
    """The dtypes and ranks that a kernel is specialized for.

    ``out_dtype`` None means the dtype of the result.
    """

    args: tuple[Arg, ...]
    out_dtype: str | None
    out_rank: int
    #: Size of the output's last axis if it has three axes, so that the last may be channels.
    out_last: int
    #: "int" or "float" for each parameter that accepts both, and the length of each list.
    numbers: tuple[tuple[str, str], ...] = ()


def specialize(decl: KernelDecl, signature: Signature) -> Program:
    """Return the program of a kernel for one signature.

    Raises:
        KernelSyntaxError: the kernel cannot run with these dtypes and ranks.
        KernelTooLarge: the kernel exceeds a limit.
        DtypeMismatch: the output's dtype cannot hold the result.
    """
    typing = Typing(pixels=decl.pixels)
    spent = 0
    while True:
        builder = Builder()
        try:
            return exact(_attempt(decl, signature, typing, builder))
        except Restart:
            # A variable needs a wider type, or the kernel returns pixels.
            spent += builder.count
            if spent > MAX_TYPING:
                decl.source.fail(
                    decl.function,
                    f"finding the types of the variables takes more than {MAX_TYPING:,} operations",
                    "Give variables their widest type at once: x = 0.0 rather than x = 0.",
                    limit=MAX_TYPING,
                )


def parameters(decl: KernelDecl, signature: Signature) -> tuple[Param, ...]:
    """Return the scalar parameters of a kernel's program, one per component of a vector."""
    dtypes = {a.dtype for a in signature.args} | {signature.out_dtype}
    real: Type = "f64" if "f64" in dtypes else "f32"
    numbers = dict(signature.numbers)
    found: list[Param] = []
    for p in decl.params:
        kind = numbers.get(p.name, "float") if p.type == "number" else p.type
        type_: Type = real if kind == "float" else "s32"
        if p.type == "number" and kind == "int" and signature.args:
            first = LOADED[signature.args[0].dtype]
            type_ = first if first not in FLOATS else real
        type_ = p.exact or type_
        size = int(numbers[p.name]) if p.listed else p.size
        names = list(range(size)) if size else [None]
        found.extend(Param(p.name, component, type_) for component in names)
    return tuple(found)


def _attempt(decl: KernelDecl, signature: Signature, typing: Typing, builder: Builder) -> Program:
    pixels = typing.pixels
    channels = 1
    if pixels:
        channels = signature.out_last if signature.out_rank == 3 else 1
        if signature.out_rank not in (2, 3) or channels not in (1, 3, 4):
            decl.source.fail(
                decl.function,
                "this kernel writes pixels, but the output is not an image",
                "Pass an output of shape (height, width), (height, width, 3) or "
                "(height, width, 4); or return one number.",
            )
    rank = 2 if pixels else max(signature.out_rank, 1)
    params = parameters(decl, signature)
    site = Site(signature.args, rank, pixels, signature.out_rank)
    lowering = Lowering(builder, site, typing)
    bound = _bind_params(builder, decl, params)
    root = builder.block
    try:
        result = lowering.kernel(decl, bound)
    except KernelSyntaxError:
        if lowering.widened:
            raise Restart from None  # the error may be due to types that were too narrow
        raise
    if lowering.widened:
        raise Restart
    dtype = signature.out_dtype or _natural(result, signature)
    try:
        stored = _store(builder, decl, result, dtype, channels, pixels)
    except Refused as refused:
        decl.source.fail(decl.function, refused.problem, refused.advice)
    out = Out(dtype, signature.out_rank, channels, pixels)
    return make_program(decl.name, signature.args, out, params, root, stored, rank)


def _bind_params(b: Builder, decl: KernelDecl, params: tuple[Param, ...]) -> Mapping[str, Term]:
    bound: dict[str, list[Scalar]] = {}
    for index, p in enumerate(params):
        bound.setdefault(p.name, []).append(b.emit("param", p.type, attr=index))
    result: dict[str, Term] = {}
    for declared in decl.params:
        items = bound[declared.name]
        if declared.listed:
            result[declared.name] = Compound("list", tuple(items))
        elif declared.role == "resolution":
            result[declared.name] = _resolution(b, items)
        elif declared.size:
            result[declared.name] = Vec(tuple(items))
        elif declared.type == "bool":
            result[declared.name] = b.truth(items[0])
        else:
            result[declared.name] = items[0]
    return result


def _resolution(b: Builder, given: list[Scalar]) -> Vec:
    """Return the output's width and height, unless another resolution is given."""
    found = []
    for item, axis in zip(given, (1, 0), strict=True):
        size = b.convert(b.emit("dim", "s32", attr=(-1, axis)), type_of(item))
        found.append(scalar(b.select(b.truth(b.binary("gt", item, 0)), item, size)))
    return Vec(tuple(found))


def _natural(result: Term, signature: Signature) -> str:
    """Return the default dtype of the output."""
    if isinstance(result, Vec):
        return signature.args[0].dtype if signature.args else "u8"
    found = type_of(scalar(result))
    inputs = {a.dtype for a in signature.args if a.kind != "array"}
    if found == "bool" or (found == "s32" and inputs == {"u8"}):
        return "u8"
    return next((a.dtype for a in signature.args if a.kind in ("pixel", "image")), found)


def _store(
    b: Builder, decl: KernelDecl, result: Term, dtype: str, channels: int, pixels: bool
) -> tuple[Value, ...]:
    """Return the values to store, one per channel."""
    items: list[Scalar]
    if not pixels:
        items = [scalar(result)]  # kernels that return vectors are pixel kernels
    elif isinstance(result, Vec):
        if len(result.items) < 3 and channels > 1:
            raise Refused(
                f"a pixel must be three or four numbers, got {describe(result)}",
                "Return rgba(r, g, b, a).",
            )
        items = [*result.items, 1.0][:channels]
    else:
        gray = scalar(result)
        items = [gray, gray, gray, 1.0][:channels]
    return tuple(_store_one(b, decl, item, dtype, pixels) for item in items)


def _store_one(b: Builder, decl: KernelDecl, item: Scalar, dtype: str, pixels: bool) -> Value:
    if pixels and dtype == "u8":
        return b.to_u8(b.binary("mul", b.convert(item, as_float(type_of(item))), 255.0))
    if isinstance(item, Value | float):
        found = type_of(item)
        literal = not isinstance(item, Value) and dtype in FLOATS
        if not literal and found not in _HOLDS[dtype]:
            raise DtypeMismatch.invalid(
                decl.name,
                "output",
                f"of a dtype that holds the {found} result without loss",
                dtype,
                f"Make the output {found}, or cast in the kernel: return {dtype}(...).",
            )
    if dtype == "u8":
        return b.to_u8(item)
    return b.convert(item, LOADED[dtype])
