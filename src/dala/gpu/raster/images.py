"""Images at any size: by the nearest pixel, or bilinear with half-pixel centres.

What is seen of an image is made row by row. For each column seen, the pixel of the source and how
far it is to the next one are worked out once; a row of the source is stretched once and kept while
the rows below still need it, the odd rows in one place and the even ones in another. Opaque images
are computed in 8.8 fixed point, two channels to a word, all others weighted by alpha in f32; a
result is at most one away from the exact one. Large pictures are shared out in strips of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from dala.gpu.compute.engines.cpu.memory import Place, place_of
from dala.gpu.compute.engines.cpu.native import Native, NativeFunction, compile_native, native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    f32,
    hinted,
    i32,
    i64,
    in_range,
    load,
    local,
    select,
    shuffle,
    splat,
    store,
    table,
    u8,
    u16,
    u32,
    u64,
    view,
)
from dala.gpu.compute.engines.cpu.pixels.over import CHANNEL_PAIR, over_row
from dala.gpu.raster.frame import AT, X0, X1, Y0, Y1, mark

#: Lanes that spread the alphas of four pixels over their channels.
ALPHAS: Final = tuple(4 * (k // 4) + 3 for k in range(16))
#: Which of them are colours.
COLOURS: Final = (1, 1, 1, 0) * 4


#: Lanes of the first and of the second pixels of sixteen pairs.
FIRSTS: Final = tuple(range(0, 32, 2))
SECONDS: Final = tuple(range(1, 32, 2))
#: Strips that a picture is shared out in at most, the rows and the pixels of one at least.
STRIPS: Final = 8
STRIP_ROWS: Final = 32
STRIP_PIXELS: Final = 1 << 15
#: Ways of sharing out that are kept.
KEPT: Final = 64


class Image(NamedTuple):
    """Pixels to be drawn at any size."""

    #: One word for each pixel.
    words: np.ndarray[Any, Any]
    #: Four u16 for each: colours times alpha, and alpha times 255; None if all are opaque.
    weighted: np.ndarray[Any, Any] | None
    width: int
    height: int
    #: Where the two are; the first one twice if there is no second.
    places: tuple[Place, Place]


def make_image(words: np.ndarray[Any, Any], width: int, height: int) -> Image:
    """An image of a copy of words."""
    words = np.append(words, np.uint32(0))  # pixels are read in pairs, the last one too
    pixels = words.view(np.uint8).reshape(-1, 4)
    alpha = pixels[:, 3:]
    if alpha[:-1].min(initial=255) == 255:
        return Image(words, None, width, height, (place_of(words), place_of(words)))
    weighted = pixels.astype(np.uint16)
    weighted[:, 3] = 255
    weighted *= alpha
    flat = weighted.reshape(-1)
    return Image(words, flat, width, height, (place_of(words), place_of(flat)))


class Scratch:
    """Room for the columns and rows of one image while it is drawn."""

    def __init__(self, width: int) -> None:
        self.width = width
        room = width + 64
        self._kept = [
            np.empty(size, kind)
            for size, kind in (
                (room, np.int32),
                (room, np.float32),
                (8 * room * STRIPS, np.float32),
                (room * STRIPS, np.uint32),
                (room * STRIPS, np.uint64),
            )
        ]
        self.columns, self.parts, self.rows, self.words, self.pairs = map(place_of, self._kept)
        self._code: dict[tuple[NativeFunction, bool], Native] = {}
        self._shared: dict[tuple[Any, ...], Callable[..., None]] = {}

    def ready(self, function: NativeFunction, checked: bool) -> bool:
        """Whether nothing would have to be compiled to draw with a function."""
        return (function, checked) in self._code and (lay_out, checked) in self._code

    def code(self, function: NativeFunction, checked: bool) -> Native:
        """Compiled code, at hand: a small image takes less time than to ask for it."""
        found = self._code.get((function, checked))
        if found is None:
            found = self._code[function, checked] = compile_native(function, checked=checked)
        return found

    def shared(
        self, function: NativeFunction, checked: bool, height: int, strip: int
    ) -> Callable[..., None]:
        """Code for a picture of so many rows, shared out in strips."""
        key = function, checked, height, strip
        found = self._shared.get(key)
        if found is None:
            if len(self._shared) >= KEPT:
                self._shared.clear()
            found = self._shared[key] = self.code(function, checked).parallel(height, strip)
        return found


def draw_image(
    image: Image,
    scratch: Scratch,
    target: tuple[Place, Place, Place],
    width: int,
    place: tuple[int, int, int, int],
    after: int,
    *,
    nearest: bool,
    checked: bool,
    ready: bool = False,
) -> bool:
    """Draws an image into x, y, w, h of a target: its pixels, frame and dirty bands.

    Whatever draws also notes in the frame that commands are done up to the byte ``after``. False,
    and nothing is drawn, where ``ready`` wants the code to be at hand and it has to be made.
    """
    y, w, h = place[1:]
    sw, sh = image.width, image.height
    if not (sw and sh and w and h):
        return True
    pixels, frame, dirty = target
    nearest = nearest or (w == sw and h == sh)
    function, source = plain_rows, image.places[0]
    if nearest:
        function = near_rows
    elif image.weighted is not None:
        function, source = weighted_rows, image.places[1]
    if ready and not scratch.ready(function, checked):
        return False
    columns, parts = scratch.columns, scratch.parts
    see = scratch.code(lay_out, checked)
    x0, y0, count, height = see(frame, dirty, columns, parts, *place, sw, nearest)
    if count <= 0:
        return True
    strip = max(STRIP_ROWS, -(-STRIP_PIXELS // count), -(-height // STRIPS))
    scratch.shared(function, checked, height, strip)(
        pixels, source, columns, parts, scratch.rows, scratch.words, scratch.pairs, frame,
        width, x0, y0, count, y0 - y, h, sw, sh, strip, after,
    )  # fmt: skip
    return True


# places ---------------------------------------------------------------------------------------
@native
def sample(at: i64, drawn: i64, source: i64) -> tuple[i64, f32]:
    """The pixel of the source before a pixel's centre, and how far behind it that is."""
    place = (2 * at + 1) * source - drawn
    if place <= 0:
        return 0, f32(0)
    first = i64(u64(place) // u64(2 * drawn))
    if first >= source - 1:
        return source - 1, f32(0)
    return first, f32(place - first * 2 * drawn) / f32(2 * drawn)


@native
def lay_out(
    frame: Array[i64],
    dirty: Array[i32],
    columns: Array[i32],
    parts: Array[f32],
    x: i64,
    y: i64,
    w: i64,
    h: i64,
    source: i64,
    nearest: bool,
) -> tuple[i64, i64, i64, i64]:
    """What is seen of x, y, w, h: its corner and size (0 if nothing is), and its columns.

    They are filled up to whole vectors.
    """
    x0, y0 = max(x, frame[X0]), max(y, frame[Y0])
    x1, y1 = min(x + w, frame[X1]), min(y + h, frame[Y1])
    if x0 >= x1 or y0 >= y1:
        return x0, y0, 0, 0
    mark(dirty, x0, y0, x1, y1)
    # As `sample`, but that a column is found from the one before, without a division.
    place = (2 * (x0 - x) + 1) * source - (0 if nearest else w)
    i = place // (2 * w)
    rest = place - i * 2 * w
    step = source // w
    more = 2 * (source - step * w)
    for k in hinted(range((x1 - x0 + 15) & ~15), scalar=True):
        inside = 0 <= i < source - 1 or nearest
        columns[k] = i32(i if inside else (0 if i < 0 else source - 1))
        parts[k] = f32(rest) / f32(2 * w) if inside and not nearest else f32(0)
        if k < x1 - x0 - 1:
            i += step
            rest += more
            if rest >= 2 * w:
                rest -= 2 * w
                i += 1
    return x0, y0, x1 - x0, y1 - y0


# opaque images --------------------------------------------------------------------------------
@native(inline=False)
def stretch(
    row: Array[u32],
    columns: Array[i32],
    parts: Array[f32],
    pairs: Array[u64],
    out: Array[u32],
    count: i64,
) -> None:
    """A row of the source as wide as it is drawn: 16 words of red and blue, 16 of the others."""
    for k in hinted(range(count), unroll=8):
        pairs[k] = view(row, u64, 4 * i64(columns[k]))[0]
    words = view(pairs, u32, 0)
    for k in hinted(range(0, count, 16), scalar=True):
        both = load(words, 2 * k, 32)
        p, q = shuffle(both, both, FIRSTS), shuffle(both, both, SECONDS)
        f = in_range(u32, load(parts, k, 16) * f32(256) + f32(0.5))
        even, odd = p & CHANNEL_PAIR, (p >> 8) & CHANNEL_PAIR
        store(out, 2 * k, (even << 8) + ((q & CHANNEL_PAIR) - even) * f)
        store(out, 2 * k + 16, (odd << 8) + (((q >> 8) & CHANNEL_PAIR) - odd) * f)


@native
def between(upper: Array[u16], lower: Array[u16], at: i64, weights: Array[u16]) -> Any:
    """Part of the way from one row to another, in 8.8, rounded to whole numbers."""
    a = u32(load(upper, at, 32)) * u32(load(weights, 0, 32))
    b = u32(load(lower, at, 32)) * u32(load(weights, 32, 32))
    return (u16(a >> 16) + u16(b >> 16) + 128) >> 8


@native(inline=False)
def settle(
    pixels: Array[u32],
    at: i64,
    upper: Array[u16],
    lower: Array[u16],
    weights: Array[u16],
    words: Array[u32],
    count: i64,
) -> None:
    """A row of pixels from two stretched ones.

    Apart, since for all that is known here pixels may lie over the weights: so these stay where
    they are used, and the upper halves of products are seen to be that.
    """
    out = view(pixels, u16, at * 4)
    for k in hinted(range(0, count - 15, 16), scalar=True):
        even = between(upper, lower, 4 * k, weights)
        odd = between(upper, lower, 4 * k + 32, weights)
        store(out, 2 * k, even | (odd << 8))
    rest = count & 15
    if rest != 0:
        k = count - rest
        even = between(upper, lower, 4 * k, weights)
        odd = between(upper, lower, 4 * k + 32, weights)
        store(view(words, u16, 0), 0, even | (odd << 8))
        store(pixels, at + k, load(words, 0, 16), rest)


@native
def plain_rows(
    pixels: Array[u32],
    source: Array[u32],
    columns: Array[i32],
    parts: Array[f32],
    rows: Array[u32],
    words: Array[u32],
    pairs: Array[u64],
    frame: Array[i64],
    width: i64,
    x0: i64,
    y0: i64,
    count: i64,
    top: i64,
    h: i64,
    sw: i64,
    sh: i64,
    strip: i64,
    after: i64,
    start: i64,
    end: i64,
) -> None:
    """An opaque image, bilinear."""
    full = (count + 15) & ~15
    number = start // strip
    room = len(rows) // (2 * STRIPS)
    rows = rows[2 * number * room :]
    words = words[number * (len(words) // STRIPS) :]
    pairs = pairs[number * (len(pairs) // STRIPS) :]
    weights = local(u16, 64)
    held = local(i64, 2)
    held[0], held[1] = -1, -1
    for line in hinted(range(start, end), scalar=True):
        i, g = sample(top + line, h, sh)
        j = i + 1 if g > f32(0) else i
        if held[i & 1] != i:
            stretch(source[i * sw :], columns, parts, pairs, rows[(i & 1) * room :], full)
            held[i & 1] = i
        if held[j & 1] != j:
            stretch(source[j * sw :], columns, parts, pairs, rows[(j & 1) * room :], full)
            held[j & 1] = j
        part = u16(in_range(u32, g * f32(65535) + f32(0.5)))
        upper = view(rows, u16, (i & 1) * room * 4)
        lower = view(rows, u16, (j & 1) * room * 4)
        store(weights, 0, splat(65535 - part, 32))
        store(weights, 32, splat(part, 32))
        settle(pixels, (y0 + line) * width + x0, upper, lower, weights, words, count)
    frame[AT] = after


# images with alpha ----------------------------------------------------------------------------
@native(inline=False)
def stretch_weighted(
    row: Array[u16], columns: Array[i32], parts: Array[f32], out: Array[f32], count: i64
) -> None:
    """A row of the source as wide as it is drawn, four numbers a pixel."""
    for k in hinted(range(count), scalar=True):
        both = f32(load(row, 4 * i64(columns[k]), 8))
        p, q = shuffle(both, both, (0, 1, 2, 3)), shuffle(both, both, (4, 5, 6, 7))
        store(out, 4 * k, p + (q - p) * parts[k])


@native
def weighted_rows(
    pixels: Array[u32],
    source: Array[u16],
    columns: Array[i32],
    parts: Array[f32],
    rows: Array[f32],
    words: Array[u32],
    pairs: Array[u64],
    frame: Array[i64],
    width: i64,
    x0: i64,
    y0: i64,
    count: i64,
    top: i64,
    h: i64,
    sw: i64,
    sh: i64,
    strip: i64,
    after: i64,
    start: i64,
    end: i64,
) -> None:
    """An image with alpha, bilinear, colours weighted by it."""
    full = (count + 15) & ~15
    number = start // strip
    room = len(rows) // (2 * STRIPS)
    rows = rows[2 * number * room :]
    words = words[number * (len(words) // STRIPS) :]
    made = view(words, u8, 0)
    colour = load(table(u8, COLOURS), 0, 16) != 0
    held = local(i64, 2)
    held[0], held[1] = -1, -1
    for line in hinted(range(start, end), scalar=True):
        i, g = sample(top + line, h, sh)
        j = i + 1 if g > f32(0) else i
        if held[i & 1] != i:
            stretch_weighted(source[4 * i * sw :], columns, parts, rows[(i & 1) * room :], full)
            held[i & 1] = i
        if held[j & 1] != j:
            stretch_weighted(source[4 * j * sw :], columns, parts, rows[(j & 1) * room :], full)
            held[j & 1] = j
        upper, lower = rows[(i & 1) * room :], rows[(j & 1) * room :]
        for k in hinted(range(0, 4 * full, 16), scalar=True):
            v = load(upper, k, 16)
            v = v + (load(lower, k, 16) - v) * g
            alpha = max(shuffle(v, v, ALPHAS), splat(f32(0.5), 16))
            v = select(colour, v * f32(255) / alpha, v / f32(255))
            store(made, k, u8(in_range(i32, v + f32(0.5))))
        over_row(pixels, (y0 + line) * width + x0, words, 0, count)
    frame[AT] = after


# the nearest pixel ----------------------------------------------------------------------------
@native
def near_rows(
    pixels: Array[u32],
    source: Array[u32],
    columns: Array[i32],
    parts: Array[f32],
    rows: Array[u32],
    words: Array[u32],
    pairs: Array[u64],
    frame: Array[i64],
    width: i64,
    x0: i64,
    y0: i64,
    count: i64,
    top: i64,
    h: i64,
    sw: i64,
    sh: i64,
    strip: i64,
    after: i64,
    start: i64,
    end: i64,
) -> None:
    """Any image, each pixel the one of the source that its centre is in."""
    words = words[(start // strip) * (len(words) // STRIPS) :]
    held = -1
    for line in hinted(range(start, end), scalar=True):
        i = (2 * (top + line) + 1) * sh // (2 * h)
        if i != held:
            row = source[i * sw :]
            for k in hinted(range(count), scalar=True):
                words[k] = row[columns[k]]
            held = i
        over_row(pixels, (y0 + line) * width + x0, words, 0, count)
    frame[AT] = after
