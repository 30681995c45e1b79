"""4:2:0 pictures of bytes on the CPU, rows over the threads.

Each row goes in blocks that stay in the nearest cache: what chroma adds to red, green and blue is
worked out a sample at a time, then spread over the pixels. Pixels of three bytes pass through words
of four. All else is left to the kernels of the language.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dala.errors import FreedError
from dala.gpu.compute.engines.base import Engine, Runner, Storage, Task
from dala.gpu.compute.engines.cpu_native import Native, compile_native, native
from dala.gpu.compute.engines.cpu_native.words import (
    Array,
    S,
    f32,
    i32,
    i64,
    in_range,
    independent,
    load,
    local,
    shuffle,
    store,
    u8,
    u16,
    u32,
    view,
)

#: Chroma samples of a block.
BLOCK: Final = 512
#: Pixels of a tile, roughly.
TILE: Final = 1 << 15

#: 64 pixels of four bytes without the fourth: three vectors out of four, each out of two.
_KEPT: Final = tuple(4 * (k // 3) + k % 3 for k in range(192))
_CLOSE_1: Final = _KEPT[:64]
_CLOSE_2: Final = tuple(b - 64 for b in _KEPT[64:128])
_CLOSE_3: Final = tuple(b - 128 for b in _KEPT[128:])
#: Sixteen pixels of three bytes as words.
_APART: Final = tuple(3 * (k // 4) + min(k % 4, 2) for k in range(64))


# to RGB -------------------------------------------------------------------------------------------
@native
def sample(u: Array[u8], v: Array[u8], at: i64, *, step: int) -> tuple[i32, i32]:
    """Cb and Cr; where they lie side by side, both are read at once."""
    if step == 2:
        both = i32(view(u, u16)[at])
        return both & 255, both >> 8
    else:
        return i32(u[at]), i32(v[at])


@native(fast=True)
def share(
    u: Array[u8],
    v: Array[u8],
    near: i64,
    far: i64,
    middle: f32,
    rv: f32,
    gu: f32,
    gv: f32,
    bu: f32,
    *,
    step: int,
    bilinear: bool,
) -> tuple[f32, f32, f32]:
    """What a sample adds to r, g and b, three quarters of it from the nearer row."""
    cu, cv = sample(u, v, near, step=step)
    if bilinear:
        further_u, further_v = sample(u, v, far, step=step)
        x = f32(3 * cu + further_u) * 0.25 - middle
        y = f32(3 * cv + further_v) * 0.25 - middle
    else:
        x, y = f32(cu) - middle, f32(cv) - middle
    return y * rv, x * gu + y * gv, x * bu


@native
def byte(x: f32) -> u32:
    """A number, its half added, as a byte."""
    return u32(in_range(i32, min(max(x, 0.0), 255.0)))


@native(fast=True)
def pair(c: Array[f32], k: i64, *, bilinear: bool, centered: bool) -> tuple[f32, f32]:
    """What the two pixels of sample k get; the one before the block's is there first."""
    near = c[k + 1]
    if bilinear and centered:
        return near * 0.75 + c[k] * 0.25, near * 0.75 + c[k + 2] * 0.25
    elif bilinear:
        return near, (near + c[k + 2]) * 0.5
    else:
        return near, near


@native(fast=True)
def pixels(
    luma: Array[u8],
    r: Array[f32],
    g: Array[f32],
    b: Array[f32],
    out: Array[S],
    gain: f32,
    bias: f32,
    count: i64,
    *,
    S: type,  # noqa: N803
    stored: int,
    bilinear: bool,
    centered: bool,
) -> None:
    """Two pixels a sample, as words of four bytes or as floats."""
    for k in independent(range(count)):
        y0, y1 = f32(luma[2 * k]) * gain + bias, f32(luma[2 * k + 1]) * gain + bias
        r0, r1 = pair(r, k, bilinear=bilinear, centered=centered)
        g0, g1 = pair(g, k, bilinear=bilinear, centered=centered)
        b0, b1 = pair(b, k, bilinear=bilinear, centered=centered)
        if f32 == S:
            at = 2 * k * stored
            out[at], out[at + 1], out[at + 2] = y0 + r0, y0 + g0, y0 + b0
            out[at + stored], out[at + stored + 1] = y1 + r1, y1 + g1
            out[at + stored + 2] = y1 + b1
            if stored == 4:
                out[at + 3], out[at + 7] = f32(1), f32(1)
        else:
            first = byte(y0 + r0) | byte(y0 + g0) << 8 | byte(y0 + b0) << 16
            second = byte(y1 + r1) | byte(y1 + g1) << 8 | byte(y1 + b1) << 16
            out[2 * k] = first | 0xFF000000
            out[2 * k + 1] = second | 0xFF000000


@native
def close_up(words: Array[u32], out: Array[u8], count: i64) -> None:
    """Pixels of four bytes as pixels of three."""
    source = view(words, u8)
    k = 0
    while k + 64 <= count:
        a, b = load(source, 4 * k, 64), load(source, 4 * k + 64, 64)
        c, d = load(source, 4 * k + 128, 64), load(source, 4 * k + 192, 64)
        store(out, 3 * k, shuffle(a, b, _CLOSE_1))
        store(out, 3 * k + 64, shuffle(b, c, _CLOSE_2))
        store(out, 3 * k + 128, shuffle(c, d, _CLOSE_3))
        k += 64
    while k < count:
        out[3 * k], out[3 * k + 1] = source[4 * k], source[4 * k + 1]
        out[3 * k + 2] = source[4 * k + 2]
        k += 1


@native
def line(
    luma: Array[u8],
    u: Array[u8],
    v: Array[u8],
    out: Array[S],
    y: i64,
    width: i64,
    height: i64,
    gain: f32,
    bias: f32,
    middle: f32,
    rv: f32,
    gu: f32,
    gv: f32,
    bu: f32,
    *,
    S: type,  # noqa: N803
    step: int,
    stored: int,
    bilinear: bool,
    centered: bool,
) -> None:
    """A row of 4:2:0 as RGB; samples of chroma are ``step`` bytes apart."""
    r, g, b = local(f32, BLOCK + 2), local(f32, BLOCK + 2), local(f32, BLOCK + 2)
    words = local(u32, 2 * BLOCK)
    half, rows = width // 2, height // 2
    j = y // 2
    other = max(min(j + y % 2 * 2 - 1, rows - 1), 0)
    at = 0
    while at < half:
        count = min(half - at, BLOCK)
        near, far = j * half + at, other * half + at
        for k in independent(range(count)):
            r[k + 1], g[k + 1], b[k + 1] = share(
                u, v, near + k, far + k, middle, rv, gu, gv, bu,
                step=step, bilinear=bilinear,
            )  # fmt: skip
        if bilinear:
            before = 0 if at == 0 else -1
            after = count - 1 if at + count == half else count
            r[0], g[0], b[0] = share(
                u, v, near + before, far + before, middle, rv, gu, gv, bu,
                step=step, bilinear=bilinear,
            )  # fmt: skip
            r[count + 1], g[count + 1], b[count + 1] = share(
                u, v, near + after, far + after, middle, rv, gu, gv, bu,
                step=step, bilinear=bilinear,
            )  # fmt: skip
        part = luma[y * width + 2 * at : y * width + 2 * at + 2 * count]
        if f32 == S:
            pixels(
                part, r, g, b, out[2 * at * stored :], gain, bias, count,
                S=f32, stored=stored, bilinear=bilinear, centered=centered,
            )  # fmt: skip
        elif stored == 4:
            pixels(
                part, r, g, b, view(out, u32, 8 * at), gain, bias, count,
                S=u32, stored=stored, bilinear=bilinear, centered=centered,
            )  # fmt: skip
        else:
            pixels(
                part, r, g, b, words, gain, bias, count,
                S=u32, stored=stored, bilinear=bilinear, centered=centered,
            )  # fmt: skip
            close_up(words, out[6 * at :], 2 * count)
        at += count


@native
def decode(
    luma: Array[u8],
    u: Array[u8],
    v: Array[u8],
    out: Array[S],
    width: i64,
    height: i64,
    gain: f32,
    bias: f32,
    middle: f32,
    rv: f32,
    gu: f32,
    gv: f32,
    bu: f32,
    start: i64,
    end: i64,
    *,
    S: type,  # noqa: N803
    step: int,
    stored: int,
    bilinear: bool,
    centered: bool,
    rows: bool,
) -> None:
    """Rows of 4:2:0 as RGB; with ``rows`` the output begins at the first that is asked for."""
    first = start if rows else 0
    for y in range(start, end):
        line(
            luma, u, v, out[(y - first) * width * stored :], y, width, height,
            gain, bias, middle, rv, gu, gv, bu,
            S=S, step=step, stored=stored, bilinear=bilinear, centered=centered,
        )  # fmt: skip


# from RGB -----------------------------------------------------------------------------------------
@native
def fetch(rgb: Array[u8], at: i64, words: Array[u32], count: i64, *, channels: int) -> None:
    """Pixels from one on, as words, after the one before (which the caller puts there)."""
    k = 0
    if channels == 4:
        source = view(rgb, u32, 4 * at)
        for n in independent(range(count)):
            words[n + 1] = source[n]
    else:
        part = rgb[3 * at :]
        target = view(words, u8, 4)
        while k + 16 <= count:
            v = load(part, 3 * k, 48)
            store(target, 4 * k, shuffle(v, v, _APART))
            k += 16
        while k < count:
            target[4 * k], target[4 * k + 1] = part[3 * k], part[3 * k + 1]
            target[4 * k + 2] = part[3 * k + 2]
            k += 1


@native(fast=True)
def lumas(
    words: Array[u32], out: Array[u8], bias: f32, yr: f32, yg: f32, yb: f32, count: i64
) -> None:
    """Luma of pixels."""
    for k in independent(range(count)):
        px = words[k + 1]
        r, g, b = f32(i32(px & 255)), f32(i32((px >> 8) & 255)), f32(i32((px >> 16) & 255))
        out[k] = u8(in_range(i32, r * yr + g * yg + b * yb + bias))


@native(fast=True)
def chromas(
    p: Array[u32],
    q: Array[u32],
    u: Array[u8],
    v: Array[u8],
    bias: f32,
    ur: f32,
    ug: f32,
    ub: f32,
    vr: f32,
    vg: f32,
    vb: f32,
    count: i64,
    *,
    step: int,
    centered: bool,
) -> None:
    """Chroma of two rows, the sums of red and blue side by side in one word."""
    for k in independent(range(count)):
        p1, p2, q1, q2 = p[2 * k + 1], p[2 * k + 2], q[2 * k + 1], q[2 * k + 2]
        rb = (p1 & 0xFF00FF) + (p2 & 0xFF00FF) + (q1 & 0xFF00FF) + (q2 & 0xFF00FF)
        gs = (p1 >> 8 & 255) + (p2 >> 8 & 255) + (q1 >> 8 & 255) + (q2 >> 8 & 255)
        if not centered:
            p0, q0 = p[2 * k], q[2 * k]
            rb += (p0 & 0xFF00FF) + (q0 & 0xFF00FF) + (p1 & 0xFF00FF) + (q1 & 0xFF00FF)
            gs += (p0 >> 8 & 255) + (q0 >> 8 & 255) + (p1 >> 8 & 255) + (q1 >> 8 & 255)
        r, g, b = f32(i32(rb & 0xFFFF)), f32(i32(gs)), f32(i32(rb >> 16))
        cu, cv = r * ur + g * ug + b * ub + bias, r * vr + g * vg + b * vb + bias
        if step == 2:
            view(u, u16)[k] = u16(byte(cu) | byte(cv) << 8)
        else:
            u[k], v[k] = u8(byte(cu)), u8(byte(cv))


@native
def encode(
    upper: Array[u8],
    lower: Array[u8],
    luma: Array[u8],
    u: Array[u8],
    v: Array[u8],
    width: i64,
    black: f32,
    middle: f32,
    yr: f32,
    yg: f32,
    yb: f32,
    ur: f32,
    ug: f32,
    ub: f32,
    vr: f32,
    vg: f32,
    vb: f32,
    start: i64,
    end: i64,
    *,
    step: int,
    channels: int,
    centered: bool,
    rows: bool,
) -> None:
    """Pairs of rows of RGB as 4:2:0; with ``rows`` the first pair is that which is asked for."""
    p, q = local(u32, 2 * BLOCK + 1), local(u32, 2 * BLOCK + 1)
    half = width // 2
    first = start if rows else 0
    for j in range(start, end):
        at = 0
        while at < half:
            count = min(half - at, BLOCK)
            above = 2 * (j - first) * width + 2 * at
            if at > 0:
                p[0], q[0] = p[2 * BLOCK], q[2 * BLOCK]
            fetch(upper, above, p, 2 * count, channels=channels)
            fetch(lower, above, q, 2 * count, channels=channels)
            if at == 0:
                p[0], q[0] = p[1], q[1]
            place = 2 * j * width + 2 * at
            lumas(p, luma[place:], black, yr, yg, yb, 2 * count)
            lumas(q, luma[place + width :], black, yr, yg, yb, 2 * count)
            to = (j * half + at) * step
            chromas(
                p, q, u[to:], v[to:], middle, ur, ug, ub, vr, vg, vb, count,
                step=step, centered=centered,
            )  # fmt: skip
            at += count


# runners ------------------------------------------------------------------------------------------
def make_yuv_to_rgb(engine: Engine, task: Task) -> Runner | None:
    """4:2:0 bytes to bytes or floats."""
    if task["format"] == "yuv444":
        return None
    height, width, _ = task.output.shape
    native, numbers = _decoder(task, rows=False)
    run_all = native.parallel(height, max(1, TILE // width))
    pairs = task["format"] == "nv12"

    def run(inputs: Sequence[Storage], output: Storage, params: tuple[Any, ...]) -> None:
        *held, out = _held(*inputs, output)
        run_all(*_planes([m.address for m in held], height, width, pairs), out, *numbers)

    return run


def decode_rows(task: Task) -> tuple[Native, tuple[Any, ...]]:
    """What makes a row of bytes out of planes, and its arguments: planes by where they begin.

    They begin so far behind the buffers that hold them; the row is told for each call.
    """
    height, width, stored = task.output.shape
    native, numbers = _decoder(task, rows=True)
    planes = _planes([0] * len(task.inputs), height, width, task["format"] == "nv12")
    return native, (*planes, (0, width * stored), *numbers)


def _decoder(task: Task, *, rows: bool) -> tuple[Native, tuple[Any, ...]]:
    floats = task.output.dtype == "f32"
    unit = 1.0 if floats else 255.0
    height, width, stored = task.output.shape
    black, gain, middle, *shares = task["numbers"]
    native = compile_native(
        decode,
        S=f32 if floats else u8,
        step=2 if task["format"] == "nv12" else 1,
        stored=stored,
        bilinear=task["chroma"] == "bilinear",
        centered=task["siting"] == "center",
        rows=rows,
    )
    numbers = (
        width,
        height,
        gain * unit / 255.0,
        (0.0 if floats else 0.5) - black * gain * unit,
        middle * 255.0,
        *(s * unit / 255.0 for s in shares),
    )
    return native, numbers


def make_rgb_to_yuv(engine: Engine, task: Task) -> Runner | None:
    """Bytes to 4:2:0."""
    if task["format"] == "yuv444" or task.inputs[0].dtype != "u8":
        return None
    height, width, channels = task.inputs[0].shape
    native, numbers = _encoder(task, rows=False)
    run_all = native.parallel(height // 2, max(1, TILE // width // 2))
    pairs, row = task["format"] == "nv12", width * channels

    def run(inputs: Sequence[Storage], output: Storage, params: tuple[Any, ...]) -> None:
        rgb, out = _held(*inputs, output)
        size = height * row
        both = (rgb.address, size), (rgb.address + row, size - row)
        run_all(*both, *_planes([out.address], height, width, pairs), *numbers)

    return run


def encode_rows(task: Task) -> tuple[Native, tuple[Any, ...]]:
    """What makes planes of two rows, and its arguments; see :func:`decode_rows`."""
    height, width, channels = task.inputs[0].shape
    native, numbers = _encoder(task, rows=True)
    row = (0, width * channels)
    return native, (row, row, *_planes([0], height, width, task["format"] == "nv12"), *numbers)


def _encoder(task: Task, *, rows: bool) -> tuple[Native, tuple[Any, ...]]:
    _, width, channels = task.inputs[0].shape
    centered = task["siting"] == "center"
    black, middle, *shares = task["numbers"]
    native = compile_native(
        encode,
        step=2 if task["format"] == "nv12" else 1,
        channels=channels,
        centered=centered,
        rows=rows,
    )
    samples = 4 if centered else 8
    numbers = (
        width,
        black * 255.0 + 0.5,
        middle * 255.0 + 0.5,
        *shares[:3],
        *(s / samples for s in shares[3:]),
    )
    return native, numbers


def _planes(held: list[int], height: int, width: int, pairs: bool) -> list[tuple[int, int]]:
    """Address and length of Y, Cb and Cr; those of pairs begin a byte apart."""
    area, quarter = height * width, height * width // 4
    first = held[0]
    if len(held) == 3:
        return [(first, area), (held[1], quarter), (held[2], quarter)]
    chroma = held[1] if len(held) == 2 else first + area
    if pairs:
        return [(first, area), (chroma, 2 * quarter), (chroma + 1, 2 * quarter - 1)]
    return [(first, area), (chroma, quarter), (chroma + quarter, quarter)]


def _held(*storages: Storage) -> list[Any]:
    """The storages' memory, which lives as long as it is held."""
    held = [storage.handle for storage in storages]
    if None in held:
        raise FreedError("a buffer was freed by one thread while another was about to use it")
    return held


MAKERS = {"rgb_to_yuv": make_rgb_to_yuv, "yuv_to_rgb": make_yuv_to_rgb}
