"""Images drawn at any size: nearest, or bilinear with half-pixel centers.

Resampling is that of ``cpu/pixels``: opaque images in fixed point, others in f32 weighted by alpha.
A result differs from the exact one by at most one step. Large images are drawn in strips of rows,
in parallel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.engines.cpu.memory import ArraySpan, span_of
from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.pixels.fixed_rows import LINE_CAPACITY, sum_across, sum_down
from dala.gpu.compute.engines.cpu.pixels.float_rows import premultiplied_row, straight_row
from dala.gpu.compute.engines.cpu.pixels.gather import nearest_row
from dala.gpu.compute.engines.cpu.pixels.over import OPAQUE, copy_row, over_row
from dala.gpu.compute.engines.cpu.pixels.taps import *
from dala.gpu.raster.frame import FrameRecord, damaged
from dala.typing import NDArray

#: Columns that are resampled together at most.
BLOCK: Final = 1024
#: Strips of an image at most, and the rows and pixels of one at least.
STRIPS: Final = 8
STRIP_ROWS: Final = 32
STRIP_PIXELS: Final = 1 << 15
#: Prepared parallel calls that are cached.
CACHED_CALLS: Final = 64


class StoredImage(NamedTuple):
    """Pixels that can be drawn at any size."""

    #: One word for each pixel, and its address and length.
    words: npt.NDArray[np.uint32]
    place: ArraySpan
    opaque: bool
    width: int
    height: int


def make_image(words: npt.NDArray[np.uint32], width: int, height: int) -> StoredImage:
    """Return an image with a copy of the words."""
    words = words.copy()
    return StoredImage(words, span_of(words), bool((words >= OPAQUE).all()), width, height)


class Scratch:
    """Tap tables and compiled code for drawing images on a canvas of a given width."""

    def __init__(self, width: int, checked: bool) -> None:
        self.width, self.checked = width, checked
        room = width + 64
        self._arrays: tuple[NDArray, ...] = (
            np.empty(room, np.int32),
            np.empty(2 * room, np.float32),
            np.empty(8 * room, np.int16),
        )
        #: First texels, f32 weights and fixed-point weights of columns.
        self._tables = tuple(span_of(array) for array in self._arrays)
        self._place = compile_native(place_columns, checked=checked)
        #: Prepared calls: a small image is drawn in less time than one is prepared in.
        self._calls: dict[tuple[NativeFunction, int, int], Callable[..., None]] = {}

    def draw(
        self,
        image: StoredImage,
        target: tuple[ArraySpan, ...],
        width: int,
        place: tuple[int, int, int, int],
        *,
        nearest: bool,
    ) -> None:
        """Draw an image into x, y, w, h of a target, given by its pixels, frame and damage."""
        y, w, h = place[1:]
        sw, sh = image.width, image.height
        if not (sw and sh and w and h):
            return
        pixels, frame, damage = target
        nearest = nearest or (w == sw and h == sh)
        x0, y0, count, height = self._place(frame, damage, *self._tables, *place, sw, nearest)
        if count == 0:
            return
        strip = max(STRIP_ROWS, -(-STRIP_PIXELS // count), -(-height // STRIPS))
        function = opaque_rows if image.opaque else translucent_rows
        key = nearest_rows if nearest else function, height, strip
        call = self._calls.get(key)
        if call is None:
            if len(self._calls) >= CACHED_CALLS:
                self._calls.clear()
            code = compile_native(key[0], checked=self.checked)
            call = self._calls[key] = code.parallel(height, strip)
        call(pixels, image.place, *self._tables, width, x0, y0, count, y0 - y, h, sw, sh)


@native
def place_columns(
    frame: FrameRecord, damage: Array[i32], columns: Array[i32], weights: Array[f32],
    fixed: Array[i16], x: i64, y: i64, w: i64, h: i64, source: i64, nearest: bool,
) -> tuple[i64, i64, i64, i64]:  # fmt: skip
    """Return the corner and size of the visible part (0 if none), and fill the column tables."""
    x0, y0, x1, y1 = damaged(frame, damage, x, y, x + w, y + h, True)
    count = x1 - x0
    if nearest:
        # In integers, each column from the one before: exact, and without a division.
        place = (2 * (x0 - x) + 1) * source
        i = place // (2 * w)
        rest = place - i * 2 * w
        step = source // w
        more = 2 * (source - step * w)
        for k in serial(count):
            columns[k] = i32(i)
            i += step
            rest += more
            if rest >= 2 * w:
                rest -= 2 * w
                i += 1
    else:
        padded = (count + 15) & ~15
        scale = f64(source) / f64(w)
        start = (f64(x0 - x) + 0.5) * scale
        linear_taps(columns, weights, count, padded, start, scale, source)
        pack_linear_columns(weights, padded, fixed)
    return x0, y0, count, y1 - y0


@native
def row_tap(row: i64, drawn: i64, source: i64) -> tuple[i64, f32]:
    """Return the first source row of a drawn row, and the weight of the second."""
    position = (f64(row) + 0.5) * f64(source) / f64(drawn)
    first, part = linear_tap(position, source)
    return first, part


@native
def opaque_rows(
    pixels: Array[u32], source: Array[u32], columns: Array[i32], weights: Array[f32],
    fixed: Array[i16], width: i64, x0: i64, y0: i64, count: i64, top: i64, h: i64, sw: i64, sh: i64,
    start: i64, end: i64,
) -> None:  # fmt: skip
    """Draw rows [start, end) of an opaque image, bilinear."""
    line, places = local(i16, LINE_CAPACITY), local(i32, BLOCK)
    made, rows = local(u32, BLOCK), local(i16, 2)
    texels, bytes_made = view(source, u8, 0), view(made, u8, 0)
    pitch = 4 * sw if sh > 1 else 0
    begin = 0
    while begin < count:
        stop = min(begin + BLOCK, count)
        many, low, high = line_block(columns, begin, stop, 2, 4, places)
        length = 4 * (min(high, sw) - low)
        for y in serial(start, end):
            first, part = row_tap(top + y, h, sh)
            lower = i32(part * FIXED_ONE + 0.5)
            rows[0], rows[1] = i16(min(FIXED_ONE - lower, 32767)), i16(min(lower, 32767))
            sum_down(texels[4 * (first * sw + low) :], line, rows, pitch, length)
            sum_across(line, places, fixed[8 * begin :], bytes_made, many)
            copy_row(pixels, (y0 + y) * width + x0 + begin, made, 0, many)
        begin += many


@native
def translucent_rows(
    pixels: Array[u32], source: Array[u32], columns: Array[i32], weights: Array[f32],
    fixed: Array[i16], width: i64, x0: i64, y0: i64, count: i64, top: i64, h: i64, sw: i64, sh: i64,
    start: i64, end: i64,
) -> None:  # fmt: skip
    """Draw rows [start, end) of an image with alpha, bilinear, colors weighted by alpha.

    Source rows are summed across once and kept, even and odd ones apart, while drawn rows need
    them: enlarged images are drawn a quarter faster than with sums down first.
    """
    line, places = local(f32, LINE_CAPACITY), local(i32, BLOCK)
    made, sums = local(u32, BLOCK), local(f32, static(4 * BLOCK))
    kept, held = local(f32, static(8 * BLOCK)), local(i64, 2)
    texels, begin = view(source, u8, 0), 0
    while begin < count:
        stop = min(begin + BLOCK, count)
        many, low, high = line_block(columns, begin, stop, 2, 4, places)
        length = 4 * (min(high, sw) - low)
        held[0], held[1] = -1, -1
        for y in serial(start, end):
            first, part = row_tap(top + y, h, sh)
            last = first + 1 if part > 0 else first
            for row in serial(first, last + 1):
                if held[row & 1] != row:
                    held[row & 1] = row
                    premultiplied_row(
                        texels[4 * (row * sw + low) :], line, length, places,
                        weights[2 * begin :], kept[(row & 1) * 4 * BLOCK :], many,
                    )  # fmt: skip
            upper, lower = kept[(first & 1) * 4 * BLOCK :], kept[(last & 1) * 4 * BLOCK :]
            for k in independent(range(4 * many)):
                sums[k] = upper[k] + (lower[k] - upper[k]) * part
            straight_row(sums, made, many)
            over_row(pixels, (y0 + y) * width + x0 + begin, made, 0, many)
        begin += many


@native
def nearest_rows(
    pixels: Array[u32], source: Array[u32], columns: Array[i32], weights: Array[f32],
    fixed: Array[i16], width: i64, x0: i64, y0: i64, count: i64, top: i64, h: i64, sw: i64, sh: i64,
    start: i64, end: i64,
) -> None:  # fmt: skip
    """Draw rows [start, end) of an image, each pixel the texel that contains its center."""
    made = local(u32, BLOCK)
    begin = 0
    while begin < count:
        many = min(BLOCK, count - begin)
        drawn = -1
        for y in serial(start, end):
            i = (2 * (top + y) + 1) * sh // (2 * h)
            if i != drawn:
                nearest_row(source[i * sw :], columns[begin:], made, many, channels=1)
                drawn = i
            over_row(pixels, (y0 + y) * width + x0 + begin, made, 0, many)
        begin += many
