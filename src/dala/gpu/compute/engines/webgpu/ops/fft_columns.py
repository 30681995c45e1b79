"""Passes of Fourier transforms across lines, for powers of two: numbers stay in registers."""

from __future__ import annotations

from functools import cache
from math import cos, pi, sin
from typing import Final, Literal

from dala.gpu.compute.engines.webgpu.ops.dispatches import shader_text
from dala.gpu.compute.engines.webgpu.wgsl.names import text_of

#: The most complex f32 numbers of a workgroup: they fit in 16 KiB.
ROOM: Final = 2048

#: Transforms per workgroup: neighbors read 64 bytes at least, 128 if the length allows.
MIN_ABREAST: Final = 8
MAX_ABREAST: Final = 16

#: Numbers that an invocation keeps in registers.
EACH: Final = 16

#: The longest and shortest transform of a pass.
LONGEST: Final = ROOM // MIN_ABREAST
SHORTEST: Final = 16


#: Length of the fine part of the twiddle factor table.
FINE: Final = 1024

#: Complex pairs, pairs with real and imaginary part swapped, or real parts only. An inverse
#: transform is a forward transform with swapped input and output.
Form = Literal["pair", "exchanged", "real"]


def buffers(dtype: str, source: Form, target: Form) -> dict[str, str]:
    """Return the types of both buffers, and how numbers are loaded and stored.

    In a swapped pair the real part is second.
    """
    pair, scaled = f"vec2<{dtype}>", "* p.scale" if dtype == "f32" else "/ f64(p.divisor)"
    return {
        "T": dtype,
        "SOURCE": dtype if source == "real" else pair,
        "TARGET": dtype if target == "real" else pair,
        "LOAD": {"pair": "read", "exchanged": "read.yx", "real": f"{pair}(read, 0)"}[source],
        "STORE": {"pair": "v", "exchanged": f"v.yx {scaled}", "real": f"v.y {scaled}"}[target],
    }


def abreast_of(length: int, room: int) -> int:
    """Return how many transforms a workgroup computes side by side, in ``room`` bytes.

    >>> abreast_of(128, 16384), abreast_of(256, 16384), abreast_of(256, 16352)
    (16, 8, 4)
    """
    most = min(MAX_ABREAST, min(ROOM, room // 8) // length)
    return 1 << (most.bit_length() - 1)


def radices_of(length: int) -> list[int]:
    """Return the radices of the stages, at most 16.

    >>> radices_of(256), radices_of(128), radices_of(32)
    ([16, 16], [16, 8], [8, 4])
    """
    bits = length.bit_length() - 1
    stages = -(-bits // 4)
    return [1 << (bits // stages + (n < bits % stages)) for n in range(stages)]


@cache
def columns_text(
    length: int, abreast: int, source: Form, target: Form, to_line: bool, far: bool
) -> str:
    """Return the shader of a pass.

    ``to_line`` says that the results of a transform are neighbors in memory; ``far`` that twiddle
    factors follow.
    """
    each = min(EACH, length)
    return shader_text(
        "fft_buffers.wgsl", "fft_columns.wgsl", **buffers("f32", source, target), LENGTH=length,
        ABREAST=abreast, EACH=each, SIZE=length * abreast, THREADS=length * abreast // each,
        FINE=FINE, STAGES=text_of(_stages(length, abreast, each, to_line, far)),
    )  # fmt: skip


def _stages(length: int, abreast: int, each: int, to_line: bool, far: bool) -> list[str]:
    text: list[str] = []
    radices = radices_of(length)
    rows = length // each  # invocations of one transform
    step = 1
    for s, radix in enumerate(radices):
        last = s == len(radices) - 1
        apart = length // radix
        butterflies = each // radix
        for b in range(butterflies):
            u = f"(u0 + {b * rows}u)" if b else "u0"
            for i in range(radix):
                at = f"{u} + {apart * i}u"
                name = f"x{s}_{b}_{i}"
                if s == 0:
                    text.append(f"let {name} = load(line + within + p.count * ({at}), inside);")
                else:
                    text.append(f"let {name} = exchanged[({at}) * {abreast}u + c];")
        if s:
            text.append("workgroupBarrier();")
        for b in range(butterflies):
            u = f"(u0 + {b * rows}u)" if b else "u0"
            given = [f"x{s}_{b}_{i}" for i in range(radix)]
            lines, names = butterfly(given, f"s{s}_{b}")
            text += lines
            if last:
                text += _results(names, b, u, apart, length, abreast, to_line, far)
                continue
            text.append(f"let m{s}_{b} = {u} / {step}u;")
            text += _turned(names, f"turns[m{s}_{b} * {step}u * {{i}}u]", f"w{s}_{b}")
            to = f"({u} % {step}u + m{s}_{b} * {step * radix}u)"
            for i, name in enumerate(names):
                text.append(f"exchanged[({to} + {i * step}u) * {abreast}u + c] = {name};")
        if not last:
            text.append("workgroupBarrier();")
        step *= radix
    if to_line:
        text += _along_lines(length, abreast, each)
    return text


def _results(
    names: list[str],
    b: int,
    u: str,
    apart: int,
    length: int,
    abreast: int,
    to_line: bool,
    far: bool,
) -> list[str]:
    """Return the end of the last stage: twiddle factors for later passes, and the stores."""
    text = []
    along = "within" if to_line else "within / p.step"
    if b == 0:
        text.append(f"let n = {along};")
        if far:
            for i in range(1, len(names)):
                text.append(f"let g{i} = {_power(i, 'g', f'twiddle(n * {i * apart}u * p.turn)')};")
    if far:
        text.append(f"let f{b} = twiddle(n * {u} * p.turn);")
    for i, name in enumerate(names):
        value = f"times({name}, {f'times(f{b}, g{i})' if i else f'f{b}'})" if far else name
        place = f"{u} + {i * apart}u"
        if to_line:
            # Lines are a little longer, so that their columns use different banks.
            text.append(f"exchanged[{_spread(f'c * {length}u + {place}')}] = {value};")
        else:
            at = f"line + within % p.step + p.step * ({length}u * n + {place})"
            text.append(f"store({at}, inside, {value});")
    return text


def _along_lines(length: int, abreast: int, each: int) -> list[str]:
    threads = length * abreast // each
    text = ["workgroupBarrier();"]
    for i in range(each):
        e = f"(id + {i * threads}u)"
        text += [
            f"let t{i} = number * {abreast}u + {e} / {length}u;",
            f"store(t{i} / p.count * p.line + t{i} % p.count * {length}u + {e} % {length}u, "
            f"t{i} < p.transforms, exchanged[{_spread(e)}]);",
        ]
    return text


def _spread(index: str) -> str:
    """Return the place of an entry of [transform][number]: turned within blocks of 16."""
    return f"(({index}) ^ ((({index}) >> 4u) & 15u))"


def _power(i: int, name: str, looked_up: str) -> str:
    """Return factor i: looked up for powers of two, else the product of two others."""
    high = 1 << (i.bit_length() - 1)
    return looked_up if i == high else f"times({name}{high}, {name}{i - high})"


def _turned(names: list[str], table: str, prefix: str) -> list[str]:
    """Multiply all but the first by twiddle factors, in place; ``table`` has {i}."""
    text = []
    for i in range(1, len(names)):
        text.append(f"let {prefix}_{i} = {_power(i, f'{prefix}_', table.format(i=i))};")
        text.append(f"let {prefix}_v{i} = times({names[i]}, {prefix}_{i});")
        names[i] = f"{prefix}_v{i}"
    return text


def butterfly(given: list[str], prefix: str, dtype: str = "f32") -> tuple[list[str], list[str]]:
    """Return lines that transform 2, 4, 8 or 16 numbers, and the names of the results."""
    radix = len(given)
    if radix == 1:
        return [], list(given)
    even_lines, even = butterfly(given[::2], f"{prefix}e", dtype)
    odd_lines, odd = butterfly(given[1::2], f"{prefix}o", dtype)
    text = even_lines + odd_lines
    low, high = [], []
    for k in range(radix // 2):
        turned = _rotated(odd[k], k, radix, dtype)
        text.append(f"let {prefix}t{k} = {turned};")
        text.append(f"let {prefix}a{k} = {even[k]} + {prefix}t{k};")
        text.append(f"let {prefix}b{k} = {even[k]} - {prefix}t{k};")
        low.append(f"{prefix}a{k}")
        high.append(f"{prefix}b{k}")
    return text, low + high


def _rotated(name: str, k: int, radix: int, dtype: str) -> str:
    """Return the product of a number and exp(-2 pi i k / radix)."""
    if k == 0:
        return name
    if 4 * k == radix:
        return f"vec2<{dtype}>({name}.y, -{name}.x)"
    angle = -2 * pi * k / radix
    return f"times({name}, vec2<f32>({cos(angle)!r}f, {sin(angle)!r}f))"
