"""The composer's work on the owner's thread: uploads to arenas, moves between them, dispatches."""

from __future__ import annotations

import struct
from functools import cache
from typing import Final, NamedTuple

from dala.gpu.compute.engines.base import Storage
from dala.gpu.compute.engines.blending import TABLES
from dala.gpu.compute.engines.compositing import DRAW
from dala.gpu.compute.engines.webgpu.device import NativeDevice
from dala.gpu.compute.engines.webgpu.pipelines import ComputePipeline
from dala.gpu.compute.engines.webgpu.pool import DeviceBuffer
from dala.gpu.compute.engines.webgpu.wgsl.helpers import read_wgsl
from dala.gpu.compute.engines.webgpu.wgsl.names import bindings

#: The bytes of a draw, with its positions in integers, and of a rectangle.
RECORD: Final = DRAW.itemsize + 64

#: The uniform blocks of ``compose.wgsl`` and ``compose_unpack.wgsl``.
BLOCK: Final = struct.Struct("<8I")
UNPACK: Final = struct.Struct("<4I")


class UploadRing:
    """A ring buffer for data that is read once."""

    __slots__ = ("_at", "buffer", "nbytes")

    def __init__(self, storage: Storage) -> None:
        self.buffer: DeviceBuffer = storage.handle
        self.nbytes = storage.nbytes
        # Start as full: recorded commands may still read this memory for its previous owner.
        self._at = storage.nbytes

    def write(self, device: NativeDevice, data: bytes) -> int:
        """Write data at a multiple of the record size; return its offset."""
        if self._at + len(data) > self.nbytes:
            device.flush()  # submit the commands that read the data to overwrite
            self._at = 0
        at = self._at
        device.write_unordered(self.buffer, data, at)
        self._at = -(-(at + len(data)) // RECORD) * RECORD
        return at


class ComposeDispatch(NamedTuple):
    """The rectangles and draws of a dispatch, their numbers for the block, and its arenas."""

    data: bytes
    numbers: tuple[int, ...]
    arenas: tuple[DeviceBuffer, ...]


class PictureTarget(NamedTuple):
    """The destination of a picture's pixels in an arena, and their conversion."""

    buffer: DeviceBuffer
    start: int
    pixels: int
    channels: int
    unpack: ComputePipeline | None


def put_pixels(
    device: NativeDevice, source: DeviceBuffer, at: int, destination: PictureTarget
) -> None:
    """Copy pixels from a byte of a buffer to their place in an arena."""
    if destination.unpack is None:
        device.copy(source, destination.buffer, destination.pixels * 4, at, destination.start * 4)
        return
    quads = -(-destination.pixels // 4)
    block = UNPACK.pack(quads, destination.channels, at // 4, destination.start // 4)
    device.dispatch(destination.unpack, (source, destination.buffer), block, -(-quads // 128))


def put_through_ring(
    device: NativeDevice, ring: UploadRing, data: bytes, destination: PictureTarget
) -> None:
    """Write pixels to the ring, and copy them from there."""
    put_pixels(device, ring.buffer, ring.write(device, data), destination)


def move_pictures(
    device: NativeDevice, source: DeviceBuffer, target: DeviceBuffer, moves: list[list[int]]
) -> None:
    """Copy ranges of one arena to another: from, to and length in units of 4 bytes."""
    for start, to, words in moves:
        device.copy(source, target, words * 4, start * 4, to * 4)


def compose_frame(
    device: NativeDevice,
    ring: UploadRing,
    pipeline: ComputePipeline,
    target: DeviceBuffer,
    dispatches: list[ComposeDispatch],
    tables: bytes,
) -> None:
    """Record the dispatches of a frame."""
    for data, (rects, count, *numbers), arenas in dispatches:
        first = ring.write(device, data) // RECORD
        block = BLOCK.pack(first + rects, count, first, *numbers) + tables
        device.dispatch(pipeline, (*arenas, ring.buffer, target), block, numbers[1])


#: What stands for blends.wgsl where no draw needs it.
_NO_BLENDS: Final = """\
fn blended(mode: u32, linear: bool, back: vec3<u32>, source: vec3<u32>, above: u32, below: u32,
        total: u32, result: u32, full: bool) -> u32 {
    return 0u;
}

"""


@cache
def shader_text(arenas: int, shadows: bool, blends: bool) -> str:
    """Return the shader for a number of arenas, with or without shadows and blend modes."""
    reads = [*(f"arena_{i}: array<u32>" for i in range(arenas)), "draws: array<Draw>"]
    lines = [
        *bindings(reads, ["result: array<u32>"]),
        "",
        "fn word(arena: u32, i: u32) -> u32 {",
        *(f"    if (arena == {i}u) {{ return arena_{i}[i]; }}" for i in range(1, arenas)),
        "    return arena_0[i];",
        "}",
        "",
        f"const HAS_SHADOWS = {str(shadows).lower()};",
        f"const HAS_BLENDS = {str(blends).lower()};",
    ]
    tables = f"    tables: array<vec4<u32>, {TABLES.nbytes // 16}>,\n" if blends else ""
    modes = read_wgsl("blends.wgsl", __package__) if blends else _NO_BLENDS
    text = read_wgsl("compose.wgsl", __package__).replace("WORDS\n", "\n".join(lines))
    return text.replace("TABLES}", tables + "}").replace("BLENDS\n", modes, 1)
