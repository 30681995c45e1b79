"""Specialize a kernel for the buffers of a call, and compute the positions it runs over."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Protocol

from dala.errors import DtypeMismatch, ShapeError, ShapeMismatch
from dala.gpu.compute.call.checks import IMAGE_SHAPES
from dala.gpu.compute.engines.base import Geometry
from dala.gpu.compute.lang.declaration import KernelDecl
from dala.gpu.compute.lang.frontend import Signature, specialize
from dala.gpu.compute.lang.ir import Arg, Program


class BufferLike(Protocol):
    """Anything with a shape and a dtype: a buffer, or a description of one."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...


def program_for(
    decl: KernelDecl,
    inputs: Sequence[BufferLike],
    out_shape: tuple[int, ...],
    out_dtype: str | None,
    numbers: tuple[tuple[str, str], ...] = (),
) -> tuple[Program, Geometry]:
    """Return a kernel's program and geometry for given inputs and output.

    Args:
        decl: the kernel's declaration.
        inputs: the input buffers, or descriptions of them.
        out_shape: the output's shape.
        out_dtype: the output's dtype; None to use the result's.
        numbers: "int" or "float" for each parameter that accepts both, see
            :func:`~dala.gpu.compute.call.arguments.number_kinds`.
    """
    args = tuple(_arg(decl, i, inputs[i], out_shape) for i in range(len(inputs)))
    _check_shared_dtype(decl, args)
    last = out_shape[2] if len(out_shape) == 3 else 0
    program = specialize(decl, Signature(args, out_dtype, len(out_shape), last, numbers))
    shapes = tuple(tuple(b.shape) for b in inputs)
    return program, geometry(program, shapes, out_shape)


def _arg(decl: KernelDecl, index: int, given: BufferLike, out_shape: tuple[int, ...]) -> Arg:
    declared = decl.args[index]
    shape, dtype = given.shape, given.dtype
    if declared.dtype is not None and dtype != declared.dtype:
        raise DtypeMismatch.invalid(
            decl.name, declared.name, f"of dtype {declared.dtype!r}, as declared", dtype
        )
    channels = 1
    if declared.kind in ("pixel", "image"):
        if len(shape) == 3:
            channels = shape[2]
        if len(shape) not in (2, 3) or channels not in (1, 3, 4):
            raise ShapeError.invalid(decl.name, declared.name, IMAGE_SHAPES, shape)
    elif declared.kind == "array" and not shape:
        raise ShapeError.invalid(
            decl.name, declared.name, "of at least one axis", shape, "Give it shape (1,)."
        )
    kind = declared.kind
    if declared.sampled and tuple(shape[:2]) != out_shape[:2] and 0 not in shape:
        kind = "array"  # an image of another size is read at absolute places only
    return Arg(declared.name, kind, dtype, len(shape), channels)  # type: ignore[arg-type]


def _check_shared_dtype(decl: KernelDecl, args: tuple[Arg, ...]) -> None:
    free = [
        a for a, d in zip(args, decl.args, strict=True) if a.kind == "element" and d.dtype is None
    ]
    for a in free[1:]:
        if a.dtype != free[0].dtype:
            expected = f"of dtype {free[0].dtype!r}, as {free[0].name!r} is"
            advice = f"Convert one, or annotate the argument in the kernel ({a.name}: {a.dtype})."
            raise DtypeMismatch.invalid(decl.name, a.name, expected, a.dtype, advice)


def geometry(
    program: Program, shapes: tuple[tuple[int, ...], ...], out_shape: tuple[int, ...]
) -> Geometry:
    """Return the positions a program runs over; check that the inputs' shapes fit them."""
    domain = out_shape[:2] if program.out.pixels else (out_shape or (1,))
    empty = 0 in domain
    strides: list[tuple[int, ...]] = []
    for arg, shape in zip(program.args, shapes, strict=True):
        if arg.kind == "element":
            strides.append(_broadcast(program.name, arg.name, shape, domain, out_shape))
            continue
        strides.append(())
        if arg.kind in ("pixel", "image") and shape[:2] != domain:
            expected = f"an image of the output's height and width {domain}"
            advice = "Use the 'resize' kernel, or make the output of that size."
            raise ShapeMismatch.invalid(program.name, arg.name, expected, shape, advice)
        if arg.kind == "array" and 0 in shape and not empty:
            raise ShapeMismatch.invalid(
                program.name, arg.name, f"an array with elements to fill {out_shape}", shape
            )
    dims = tuple(domain)
    if not program.uses_position:
        dims, strides = merge_axes(dims, strides)
    return Geometry(dims, tuple(strides), shapes, out_shape)


def _broadcast(
    kernel: str,
    arg: str,
    shape: tuple[int, ...],
    domain: tuple[int, ...],
    out_shape: tuple[int, ...],
) -> tuple[int, ...]:
    """Return an argument's stride along each axis of the domain; 0 where it is broadcast."""
    padded = (1,) * (len(domain) - len(shape)) + shape
    fits = len(padded) == len(domain) and all(
        a in (1, d) for a, d in zip(padded, domain, strict=True)
    )
    if not fits and len(domain) == 2 and shape[:2] == domain:
        expected = "declared as a picture, because the kernel computes pixels"
        advice = f"Write {arg}: Pixel, or {arg}: Image to read its neighbors."
        raise ShapeMismatch.invalid(kernel, arg, expected, shape, advice)
    if not fits:
        expected = f"of a shape that broadcasts to the output's {out_shape}"
        advice = "Axes must be equal or 1, counted from the last."
        raise ShapeMismatch.invalid(kernel, arg, expected, shape, advice)
    return broadcast_strides(padded)


def strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the distance in elements along each axis."""
    return tuple(prod(shape[i + 1 :]) for i in range(len(shape)))


def broadcast_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the same, with 0 for axes of size 1, which are broadcast."""
    return tuple(s if n > 1 else 0 for s, n in zip(strides_of(shape), shape, strict=True))


def merge_axes(
    dims: tuple[int, ...], strides: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Merge adjacent axes that are contiguous in every argument; drop axes of size one.

    >>> merge_axes((2, 3, 4), [(12, 4, 1), (0, 4, 1)])
    ((2, 12), [(12, 1), (0, 1)])
    """
    axes = [axis for axis, size in enumerate(dims) if size != 1] or [len(dims) - 1]
    sizes: list[int] = []
    merged: list[list[int]] = []
    for axis in axes:
        here = [s[axis] for s in strides if s]
        if sizes and all(
            outer == inner * dims[axis] for outer, inner in zip(merged[-1], here, strict=True)
        ):
            sizes[-1] *= dims[axis]
            merged[-1] = here
        else:
            sizes.append(dims[axis])
            merged.append(here)
    columns = zip(*merged, strict=True)
    return tuple(sizes), [next(columns) if s else () for s in strides]
