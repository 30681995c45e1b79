"""The filters in Halide, scheduled by hand: the strongest CPU peer we know for most of them.

The schedules treat interleaved RGBA as one flat row of bytes (a neighbor is four bytes away), use
64-byte vectors, distribute strips of rows over the cores, and keep the rows between two stages in a
sliding window in cache. Filters that mix channels read whole pixels as 32-bit words.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import halide as hl
import numpy as np

from dala.machine.processor import cpu_level

VECTOR = 64  # bytes per vector
STRIP = 36  # rows per task

U8, U16, U32 = hl.UInt(8), hl.UInt(16), hl.UInt(32)
I16, I32, F32 = hl.Int(16), hl.Int(32), hl.Float(32)

Run = Callable[[], Any]

warnings.filterwarnings("ignore", message=".*floating-point value.*")


#: What code of a lower level may use.
_FEATURES = {"avx2": "-avx-avx2-f16c-fma-sse41", "sse": ""}


def _target() -> Any:
    """The processor, or a plain one of the level that kernels of this process are compiled for."""
    host = hl.get_jit_target_from_environment()
    if cpu_level() not in _FEATURES:
        return host
    system = "-".join(str(host).split("-")[:3])
    return hl.Target(f"{system}{_FEATURES[cpu_level()]}-jit")


def _whole_weights(radius: int, sigma: float, total: int) -> list[int]:
    """An integer Gaussian that sums to ``total``; the center absorbs the rounding."""
    d = np.arange(-radius, radius + 1)
    w = np.exp(-(d**2) / (2 * sigma * sigma))
    whole = np.round(w / w.sum() * total).astype(int)
    whole[radius] += total - whole.sum()
    return [int(v) for v in whole]


def _byte(v: Any) -> Any:
    return hl.cast(U8, hl.clamp(v, 0, 255))


def _channel(pixel: Any, i: int) -> Any:
    return (pixel >> (8 * i)) & 255


def _luma(pixel: Any) -> Any:
    r, g, b = (_channel(pixel, i) for i in range(3))
    return (r * 77 + g * 150 + b * 29 + 128) >> 8


class Halide:
    """Filters compiled for one frame; each method returns a function that fills ``out``."""

    def __init__(self, frame: Any) -> None:
        self.height, self.width = frame.shape[:2]
        self.row = 4 * self.width
        self.target = _target()
        self.x, self.y, self.strip, self.line = (hl.Var(n) for n in ("x", "y", "strip", "line"))
        self.bytes = hl.Buffer(frame.reshape(self.height, self.row))
        self.words = hl.Buffer(frame.view(np.uint32).reshape(self.height, self.width))
        # Halide borrows this memory; keep it alive as long as the compiled code.
        self._keep: list[Any] = [frame]

    # building blocks ----------------------------------------------------------------------------
    def _edge(self) -> Any:
        """The frame's bytes, clamped at the borders."""
        x, y, e = self.x, self.y, hl.Func("edge")
        line, channel = hl.clamp(y, 0, self.height - 1), x % 4
        # likely() makes Halide peel the ends of the loop along a row.
        inside = hl.likely(self.bytes[hl.clamp(hl.likely(x), 0, self.row - 1), line])
        right = hl.select(x >= self.row, self.bytes[self.row - 4 + channel, line], inside)
        e[x, y] = hl.select(x < 0, self.bytes[channel, line], right)
        return e

    def _blur(self, edge: Any, radius: int, sigma: float) -> tuple[Any, Any]:
        """Vertical sums in 16 bits, then the horizontal pass by 16-bit high multiplies."""
        x, y = self.x, self.y
        down, across = hl.Func("down"), hl.Func("across")
        w = _whole_weights(radius, sigma, 256)
        total = hl.cast(U16, edge[x, y]) * hl.cast(U16, w[radius])
        for d in range(1, radius + 1):
            pair = hl.cast(U16, edge[x, y - d]) + hl.cast(U16, edge[x, y + d])
            total = total + pair * hl.cast(U16, w[radius - d])
        down[x, y] = total

        w = _whole_weights(radius, sigma, 65536)

        def scaled(v: Any, weight: int) -> Any:
            return hl.cast(U16, (hl.cast(U32, v) * hl.cast(U32, weight)) >> 16)

        total = scaled(down[x, y], w[radius])
        for d in range(1, radius + 1):
            left, right = hl.cast(U32, down[x - 4 * d, y]), hl.cast(U32, down[x + 4 * d, y])
            total = total + scaled(hl.cast(U16, (left + right + 1) >> 1), 2 * w[radius - d])
        across[x, y] = hl.cast(U8, (total + hl.cast(U16, 128)) >> 8)
        return down, across

    def _sharpened(self, image: Any, amount: float) -> Any:
        x, y = self.x, self.y

        def at(dx: int, dy: int) -> Any:
            return hl.cast(I16, image[x + 4 * dx, y + dy])

        curve = at(0, 0) * hl.cast(I16, 4) - at(-1, 0) - at(1, 0) - at(0, -1) - at(0, 1)
        return at(0, 0) + hl.cast(I16, (hl.cast(I32, curve) * round(amount * 256) + 128) >> 8)

    def _lift(self, value: float) -> Any:
        """What brightness adds to a byte; nothing to alpha."""
        return hl.select(self.x % 4 == 3, hl.cast(I16, 0), hl.cast(I16, int(value * 255)))

    def _strips(self, f: Any, vector: int = VECTOR) -> Any:
        return (
            f.split(self.y, self.strip, self.line, STRIP)
            .parallel(self.strip)
            .vectorize(self.x, vector)
        )

    def _window(self, f: Any, reader: Any, vector: int = VECTOR) -> None:
        """Compute rows of f as the consumer needs them, and keep them within its strip."""
        f.store_at(reader, self.strip).compute_at(reader, self.line).vectorize(self.x, vector)

    def _ready(self, f: Any, out: Any) -> Run:
        target = hl.Buffer(out)
        f.compile_jit(self.target)
        self._keep.append((f, out, target))
        return lambda: f.realize(target)

    def _flat(self, f: Any, out: Any) -> Run:
        self._strips(f)
        return self._ready(f, out.reshape(self.height, self.row))

    def _packed(self, value: Any, out: Any) -> Run:
        f = hl.Func("packed")
        f[self.x, self.y] = hl.cast(U32, value)
        self._strips(f, 16)
        return self._ready(f, out.view(np.uint32).reshape(self.height, self.width))

    # filters ------------------------------------------------------------------------------------
    def blur(self, out: Any, radius: int, sigma: float) -> Run:
        edge = self._edge()
        down, across = self._blur(edge, radius, sigma)
        self._strips(across)
        down.compute_at(across, self.line).vectorize(self.x, VECTOR)
        self._window(edge, across)
        return self._ready(across, out.reshape(self.height, self.row))

    def sharpen(self, out: Any, amount: float) -> Run:
        edge, f = self._edge(), hl.Func("sharpen")
        f[self.x, self.y] = _byte(self._sharpened(edge, amount))
        self._strips(f)
        self._window(edge, f)
        return self._ready(f, out.reshape(self.height, self.row))

    def chain(self, out: Any, radius: int, sigma: float, amount: float, value: float) -> Run:
        """blur, sharpen and brightness in one pass over strips of rows."""
        edge, f = self._edge(), hl.Func("chain")
        down, across = self._blur(edge, radius, sigma)
        sharp = hl.clamp(self._sharpened(across, amount), 0, 255)
        f[self.x, self.y] = _byte(sharp + self._lift(value))
        self._strips(f)
        self._window(across, f)
        down.compute_at(across, self.y).vectorize(self.x, VECTOR)
        self._window(edge, f)
        return self._ready(f, out.reshape(self.height, self.row))

    def brightness(self, out: Any, value: float) -> Run:
        f = hl.Func("brightness")
        f[self.x, self.y] = _byte(hl.cast(I16, self.bytes[self.x, self.y]) + self._lift(value))
        return self._flat(f, out)

    def contrast(self, out: Any, value: float) -> Run:
        f, b = hl.Func("contrast"), self.bytes[self.x, self.y]
        scaled = (hl.cast(I16, b) - 128) * hl.cast(I16, round((1 + value) * 64)) >> 6
        f[self.x, self.y] = hl.select(self.x % 4 == 3, b, _byte(scaled + 128))
        return self._flat(f, out)

    def gamma(self, out: Any, value: float) -> Run:
        table = np.round((np.arange(256) / 255) ** (1 / value) * 255).astype(np.uint8)
        lut = hl.Buffer(table)
        self._keep.append((table, lut))
        f, b = hl.Func("gamma"), self.bytes[self.x, self.y]
        f[self.x, self.y] = hl.select(self.x % 4 == 3, b, lut[hl.cast(I32, b)])
        return self._flat(f, out)

    def extreme(self, out: Any, least: bool) -> Run:
        """The minimum or maximum of each channel over 3x3, columns first."""
        pick = hl.min if least else hl.max
        x, y, edge = self.x, self.y, self._edge()
        column, f = hl.Func("column"), hl.Func("extreme")
        column[x, y] = pick(pick(edge[x, y - 1], edge[x, y]), edge[x, y + 1])
        f[x, y] = pick(pick(column[x - 4, y], column[x, y]), column[x + 4, y])
        self._strips(f)
        column.compute_at(f, self.line).vectorize(x, VECTOR)
        self._window(edge, f)
        return self._ready(f, out.reshape(self.height, self.row))

    def median(self, out: Any) -> Run:
        """The median of nine: columns of three sorted once, then the median of three candidates."""
        x, y, edge = self.x, self.y, self._edge()
        low, mid, high = (hl.Func(n) for n in ("low", "mid", "high"))
        a, b, c = (edge[x, y + d] for d in (-1, 0, 1))
        low[x, y] = hl.min(hl.min(a, b), c)
        high[x, y] = hl.max(hl.max(a, b), c)

        def middle(a: Any, b: Any, c: Any) -> Any:
            return hl.max(hl.min(a, b), hl.min(hl.max(a, b), c))

        mid[x, y] = middle(a, b, c)
        lows, mids, highs = ([f[x + 4 * d, y] for d in (-1, 0, 1)] for f in (low, mid, high))
        f = hl.Func("median")
        f[x, y] = middle(
            hl.max(hl.max(lows[0], lows[1]), lows[2]),
            middle(*mids),
            hl.min(hl.min(highs[0], highs[1]), highs[2]),
        )
        self._strips(f)
        for column in (low, mid, high):
            column.compute_at(f, self.line).vectorize(x, VECTOR)
        self._window(edge, f)
        return self._ready(f, out.reshape(self.height, self.row))

    def grayscale(self, out: Any) -> Run:
        p = self.words[self.x, self.y]
        kept = p & hl.cast(U32, 0xFF000000)
        return self._packed(kept | (_luma(p) * hl.cast(U32, 0x010101)), out)

    def edge_detect(self, out: Any) -> Run:
        """One channel: ``out`` is (height, width)."""
        x, y, luma, f = self.x, self.y, hl.Func("luma"), hl.Func("sobel")
        p = self.words[hl.clamp(x, 0, self.width - 1), hl.clamp(y, 0, self.height - 1)]
        luma[x, y] = hl.cast(I16, _luma(p))

        def at(dx: int, dy: int, times: int = 1) -> Any:
            return luma[x + dx, y + dy] * hl.cast(I16, times)

        gx = at(1, -1) + at(1, 0, 2) + at(1, 1) - at(-1, -1) - at(-1, 0, 2) - at(-1, 1)
        gy = at(-1, 1) + at(0, 1, 2) + at(1, 1) - at(-1, -1) - at(0, -1, 2) - at(1, -1)
        gx, gy = hl.cast(F32, gx), hl.cast(F32, gy)
        size = hl.min(hl.sqrt(gx * gx + gy * gy) + 0.5, 255.0)
        f[x, y] = hl.cast(U8, hl.cast(I32, size))
        self._strips(f, 32)
        self._window(luma, f, 16)
        return self._ready(f, out)

    def chroma_key(self, out: Any, key: tuple[float, float], low: float, soft: float) -> Run:
        """Alpha from the distance of (Cb, Cr) to the key's, all in units of a byte."""
        p = self.words[self.x, self.y]
        r, g, b = (hl.cast(F32, hl.cast(I32, _channel(p, i))) for i in range(3))
        cb = -0.168736 * r - 0.331264 * g + 0.5 * b - float(key[0])
        cr = 0.5 * r - 0.418688 * g - 0.081312 * b - float(key[1])
        far = (hl.sqrt(cb * cb + cr * cr) - float(low)) * float(4096 / soft)
        # Clamped as an int: Halide 21 loses a float's lower bound on AVX-512.
        t = hl.cast(F32, hl.clamp(hl.cast(I32, far), 0, 4096)) * (1 / 4096)
        alpha = hl.cast(U32, hl.cast(I32, t * t * (3.0 - 2.0 * t) * 255.0 + 0.5))
        kept = p & hl.cast(U32, 0x00FFFFFF)
        return self._packed(kept | (alpha * hl.cast(U32, 1 << 24)), out)

    def lut(self, out: Any, table: Any) -> Run:
        """Trilinear, by gathers from one plane per channel."""
        n = table.shape[0]
        planes = np.ascontiguousarray(table.reshape(-1, 3).T.astype(np.float32))
        lattice = hl.Buffer(planes)
        self._keep.append((planes, lattice))
        p = self.words[self.x, self.y]
        place = [
            hl.cast(F32, hl.cast(I32, _channel(p, i))) * float((n - 1) / 255) for i in range(3)
        ]
        whole = [hl.min(hl.cast(I32, v), n - 2) for v in place]
        part = [v - hl.cast(F32, w) for v, w in zip(place, whole, strict=True)]
        base = (whole[0] * n + whole[1]) * n + whole[2]
        base = hl.clamp(base, 0, n**3 - n * n - n - 2)
        result = p & hl.cast(U32, 0xFF000000)
        for c in range(3):

            def mixed(corner: int, axis: int, c: int = c) -> Any:
                if axis == 3:
                    return lattice[base + corner, c]
                near, far = mixed(corner, axis + 1), mixed(corner + n ** (2 - axis), axis + 1)
                return near + (far - near) * part[axis]

            byte = hl.cast(I32, hl.clamp(mixed(0, 0) * 255.0 + 0.5, 0.0, 255.0))
            result = result | (hl.cast(U32, byte) * hl.cast(U32, 1 << (8 * c)))
        return self._packed(result, out)

    def denoise(self, out: Any, radius: int, near: float, alike: float) -> Run:
        """Our bilateral filter with all taps; color weights from a table."""
        x, y, edge = self.x, self.y, hl.Func("pixels")
        edge[x, y] = self.words[hl.clamp(x, 0, self.width - 1), hl.clamp(y, 0, self.height - 1)]
        squares = np.arange(3 * 255 * 255 // 16 + 1) * 16.0
        table = np.exp(-squares / (6 * (alike * 255) ** 2)).astype(np.float32)
        weights = hl.Buffer(table)
        self._keep.append((table, weights))
        centre = [hl.cast(I32, _channel(edge[x, y], i)) for i in range(3)]
        sums: list[Any] = [None] * 4
        for dy in range(-radius, radius + 1):
            for dx in range(-radius, radius + 1):
                c = [hl.cast(I32, _channel(edge[x + dx, y + dy], i)) for i in range(3)]
                off = [a - b for a, b in zip(c, centre, strict=True)]
                square = off[0] * off[0] + off[1] * off[1] + off[2] * off[2]
                place = float(np.exp(-(dx * dx + dy * dy) / (2 * near * near)))
                w = weights[hl.clamp((square + 8) >> 4, 0, len(table) - 1)] * place
                parts = [w * hl.cast(F32, v) for v in c] + [w]
                sums = [p if s is None else s + p for s, p in zip(sums, parts, strict=True)]
        result = edge[x, y] & hl.cast(U32, 0xFF000000)
        for i in range(3):
            byte = hl.cast(U32, hl.cast(I32, sums[i] / sums[3] + 0.5))
            result = result | (byte * hl.cast(U32, 1 << (8 * i)))
        f = hl.Func("denoise")
        f[x, y] = hl.cast(U32, result)
        self._strips(f, 16)
        self._window(edge, f, 16)
        return self._ready(f, out.view(np.uint32).reshape(self.height, self.width))
