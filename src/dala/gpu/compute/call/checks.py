"""Check the buffers of a call: number, type, device, dtype and shared memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from dala.errors import ArityError, DeviceMismatch, ShapeMismatch, UnsupportedDtype
from dala.gpu.compute.buffer import Buffer, overlap, span
from dala.gpu.compute.engines.base import Engine
from dala.gpu.compute.lang.ir import Program

if TYPE_CHECKING:
    from dala.gpu.compute.runnable import Runnable

#: The accepted shapes of an image, for error messages.
IMAGE_SHAPES: Final = "an image of shape (height, width), (height, width, 3) or (height, width, 4)"


def check_buffers(kernel: Runnable, inputs: Sequence[Buffer], output: Buffer) -> Engine:
    """Check that the buffers match the kernel's inputs, are not freed and on one device.

    Return their engine.
    """
    name, args = kernel.name, kernel.inputs
    if isinstance(inputs, Buffer) or not isinstance(inputs, Sequence):
        raise ArityError.invalid(
            name, "inputs", "a list of buffers", type(inputs), "Write [a] for one input."
        )
    check_count(kernel, len(inputs))
    buffers = [*zip(args, inputs, strict=False), ("output", output)]
    for which, given in buffers:
        if not isinstance(given, Buffer):
            advice = "Make one with buffer(...) or from_array(...)."
            raise ArityError.invalid(name, which, "a Buffer", given, advice)
    for which, given in buffers:
        given.storage(name, which)
    engine = output.engine
    for which, given in buffers[:-1]:
        if given.engine is not engine:
            expected = f"on the output's device {engine.id!r}"
            advice = f"Move it: {which}.to({engine.id!r})."
            raise DeviceMismatch.invalid(name, which, expected, given.engine.id, advice)
    output.check_writable(name)
    return engine


def check_count(kernel: Runnable, count: int) -> None:
    """Check that a kernel takes so many inputs."""
    args = kernel.inputs
    least = len(args) - kernel.optional
    if not least <= count <= len(args):
        many = f"{least} to {len(args)}" if kernel.optional else f"{len(args)}"
        noun = "buffer" if many == "1" else "buffers"
        names = f" ({', '.join(args)})" if args else ""
        raise ArityError.invalid(kernel.name, "inputs", f"{many} {noun}{names}", count)


def check_types(engine: Engine, name: str, types: Iterable[str]) -> None:
    """Raise UnsupportedDtype if a call computes in a type that the device does not support."""
    missing = sorted({*types} - engine.dtypes - {"bool"})
    if missing:
        raise UnsupportedDtype(
            f"{name}: computes with {', '.join(missing)}, which "
            f"{engine.info().get('name', engine.id)} ({engine.id}) does not support. Use 32-bit "
            "dtypes (f32, s32, u32, u8), or move the buffers: b.to('cpu').",
            call=name,
        )


def check_alias(name: str, program: Program, inputs: Sequence[Buffer], output: Buffer) -> None:
    """Raise ShapeMismatch if the output shares memory with an input read at other positions."""
    for b, arg in zip(inputs, program.args, strict=True):
        if not overlap(b, output):
            continue
        mine, its = output.storage(name), b.storage(name)
        same = (b.shape, b.dtype) == (output.shape, output.dtype) and (
            its is mine or span(b.engine, its) == span(output.engine, mine)
        )
        if not same:
            raise ShapeMismatch(
                f"{name}: output must not share part of the memory of the input {arg.name!r}. "
                "Make a second buffer: buffer_zeros(...).",
                call=name,
                argument="output",
            )
        if arg.kind in ("image", "array"):
            raise in_place_error(name, arg.name)


def in_place_error(kernel: str, name: str) -> ShapeMismatch:
    """Return the error for an output that is also an input read at other positions."""
    return ShapeMismatch(
        f"{kernel}: output must not be the input {name!r}, which is read at other positions than "
        "the one written. Make a second buffer.",
        call=kernel,
        argument="output",
    )
