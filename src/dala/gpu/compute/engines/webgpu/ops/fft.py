"""Fourier transforms: passes in workgroup memory, Bluestein's algorithm for large primes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from math import cos, pi, prod, sin
from typing import Final

import numpy as np

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.webgpu.limits import WORKGROUP_MEMORY
from dala.gpu.compute.engines.webgpu.ops import fft_columns
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    BufferRef,
    Dispatches,
    implements,
    shader_text,
)
from dala.gpu.compute.engines.webgpu.ops.fft_columns import FINE, Form, buffers
from dala.gpu.compute.engines.webgpu.wgsl.names import indented, text_of
from dala.typing import NDArray

#: The workgroup memory of a pass, which holds two arrays of complex numbers.
WORKGROUP_BYTES: Final = 16384

#: Transforms per workgroup when reading across lines, so that whole cache lines are read.
LINES_PER_GROUP: Final = 8

#: Transform lengths that a single invocation computes.
RADICES: Final = (4, 2, 3, 5, 7)


@dataclass(frozen=True)
class Lines:
    """The lines to transform; ``inner`` of them are interleaved in memory."""

    count: int
    length: int
    inner: int

    @property
    def numbers(self) -> int:
        return self.count * self.length


@dataclass(frozen=True)
class Forms:
    """The forms of the first pass's input and the last pass's output."""

    source: Form = "pair"
    target: Form = "pair"
    divisor: int = 1

    @property
    def numbers(self) -> tuple[int, float]:
        return self.divisor, 1.0 / self.divisor


@implements("fft", "ifft")
def add_fft(work: Dispatches, task: Task) -> None:
    """Add passes that transform the last axis, or the last two."""
    inverse = task.op == "ifft"
    shape = task.output.shape[:-1] if task["complex"] or not inverse else task.output.shape
    axes = task["axes"]
    total = prod(shape)
    forms = Forms(source="pair" if task["complex"] else "real")
    if inverse:
        last: Form = "exchanged" if task["complex"] else "real"
        forms = Forms("exchanged", last, prod(shape[len(shape) - axes :]))
    lines = Lines(total // shape[-1], shape[-1], 1)
    passes = _Transforms(work, task.output.dtype)
    if axes == 1:
        passes.transform(lines, work.inputs[0], work.output, forms)
    else:
        between = passes.pairs(total)
        columns = Lines(total // shape[-2], shape[-2], shape[-1])
        passes.transform(lines, work.inputs[0], between, Forms(source=forms.source))
        passes.transform(columns, between, work.output, replace(forms, source="pair"))


class _Transforms:
    """Builds the dispatches of transforms of one dtype."""

    def __init__(self, work: Dispatches, dtype: str) -> None:
        self._work = work
        self._dtype = dtype
        self._tables: dict[tuple[int, bool], BufferRef] = {}
        self._room = min(work.engine.limits[WORKGROUP_MEMORY], WORKGROUP_BYTES)
        #: The most complex numbers of a pass.
        self._most = self._room // (4 * ITEMSIZE[dtype])

    def pairs(self, count: int) -> BufferRef:
        """Return temporary memory for complex numbers."""
        return self._work.temporary(count * 2 * ITEMSIZE[self._dtype])

    def transform(self, lines: Lines, source: BufferRef, target: BufferRef, forms: Forms) -> None:
        """Add all passes along one axis."""
        lengths = self._lengths(lines)
        if lengths is None:
            self._bluestein(lines, source, target, forms)
            return
        step = lines.inner
        for i, length in enumerate(lengths):
            last = i == len(lengths) - 1
            here = target if last else self.pairs(lines.numbers)
            form = forms if last else Forms()
            form = replace(form, source=forms.source if i == 0 else "pair")
            self._pass(lines, length, step, source, here, form, far=not last)
            source, step = here, step * length

    def _lengths(self, lines: Lines) -> list[int] | None:
        """Return the lengths of the passes; None if a prime is too large."""
        room = self._most
        across = room // LINES_PER_GROUP
        if self._in_registers(lines.length):
            across = fft_columns.LONGEST
        lengths = split_length(lines.length, room if lines.inner == 1 else across)
        if lengths and len(lengths) > 1:
            lengths = split_length(lines.length, across)
        return lengths

    def _in_registers(self, length: int) -> bool:
        return self._dtype == "f32" and not length & (length - 1)

    def _pass(
        self,
        lines: Lines,
        length: int,
        step: int,
        source: BufferRef,
        target: BufferRef,
        forms: Forms,
        far: bool,
    ) -> None:
        count = lines.length * lines.inner // length
        transforms = lines.numbers // length
        if count > 1 and length >= fft_columns.SHORTEST and self._in_registers(length):
            abreast = fft_columns.abreast_of(length, self._room)
            text = fft_columns.columns_text(
                length, abreast, forms.source, forms.target, step == 1, far
            )
        else:
            abreast = 1
            while abreast * 2 * length <= self._most and abreast < transforms:
                abreast *= 2
            text = pass_text(
                length, abreast, self._dtype, forms.source, forms.target, count == 1, step == 1, far
            )
        groups = -(-transforms // abreast)
        numbers = (
            *(transforms, count, lines.length * lines.inner, step, step // lines.inner, groups),
            *forms.numbers,
        )
        near = self._table(length)
        reads = [source, near, self._table(lines.length, far) if far else near]
        self._work.add(text, reads, target, numbers, groups)

    def _bluestein(self, lines: Lines, source: BufferRef, target: BufferRef, forms: Forms) -> None:
        length = lines.length
        size = 1 << (2 * length - 2).bit_length()
        squares = np.array([n * n % (2 * length) for n in range(length)], np.float64)
        chirp = np.exp(-1j * pi / length * squares)
        around = np.zeros(size, np.complex128)
        around[:length] = chirp.conj()
        around[size - length + 1 :] = chirp[:0:-1].conj()
        spectrum = np.fft.fft(around) / size
        if size * 4 * ITEMSIZE[self._dtype] <= self._work.engine.limits[WORKGROUP_MEMORY]:
            text = bluestein_text(length, size, self._dtype, forms.source, forms.target)
            table = self._constant(np.concatenate([chirp, spectrum]))
            line = length * lines.inner
            numbers = (lines.count, lines.inner, line, 1, 1, lines.count, *forms.numbers)
            reads = [source, self._table(size), table]
            self._work.add(text, reads, target, numbers, lines.count)
            return
        long = Lines(lines.count, size, 1)
        chirps = self._constant(chirp)
        bent, turned, product, back = (self.pairs(long.numbers) for _ in range(4))
        self._chirp(lines, long, source, bent, chirps, length, Forms(source=forms.source))
        self.transform(long, bent, turned, Forms())
        spectra = self._constant(spectrum)
        self._chirp(long, long, turned, product, spectra, size, Forms(target="exchanged"))
        self.transform(long, product, back, Forms(target="exchanged"))
        self._chirp(long, lines, back, target, chirps, length, replace(forms, source="pair"))

    def _chirp(
        self,
        read: Lines,
        write: Lines,
        source: BufferRef,
        target: BufferRef,
        table: BufferRef,
        length: int,
        forms: Forms,
    ) -> None:
        text = shader_text("chirp.wgsl", **buffers(self._dtype, forms.source, forms.target))
        numbers = (
            *(write.count, write.length, length),
            *(read.inner, read.length, write.inner, write.length),
            *forms.numbers,
        )
        self._work.add(text, [source, table], target, numbers, -(-write.numbers // 256))

    def _table(self, length: int, far: bool = False) -> BufferRef:
        """Return twiddle factors; ``far`` ones are those to FINE - 1, then of multiples of FINE."""
        if (length, far) not in self._tables:
            places = np.arange(length)
            if far:
                places = np.concatenate([np.arange(FINE), np.arange(-(-length // FINE)) * FINE])
            self._tables[length, far] = self._constant(np.exp(-2j * pi / length * places))
        return self._tables[length, far]

    def _constant(self, numbers: NDArray) -> BufferRef:
        kind = np.complex64 if self._dtype == "f32" else np.complex128
        return self._work.constant(numbers.astype(kind).view(np.uint8))


def split_length(length: int, most: int) -> list[int] | None:
    """Return factors of a length, about equal and at most ``most``; None if a prime is too large.

    >>> split_length(1024, 1024), split_length(4096, 128), split_length(22, 128)
    ([1024], [64, 64], None)
    """
    primes = []
    rest = length
    for p in (7, 5, 3, 2):
        while rest % p == 0:
            primes.append(p)
            rest //= p
    if rest > 1:
        return None
    parts = 1
    while True:
        found = [1] * parts
        for p in primes:
            found[found.index(min(found))] *= p
        if max(found) <= most:
            return found
        parts += 1


@cache
def pass_text(
    length: int,
    abreast: int,
    dtype: str,
    source: Form,
    target: Form,
    by_line: bool,
    to_line: bool,
    far: bool,
) -> str:
    """Return the shader of a pass. Neighboring invocations access neighboring memory."""
    size = length * abreast
    across = f"e % {abreast}u", f"e / {abreast}u"
    along = f"e / {length}u", f"e % {length}u"
    load_column, load_row = along if by_line else across
    store_column, store_row = along if to_line else across
    threads = min(256, max(32, size // 4))
    stages, result = _stages(length, abreast, threads, dtype)
    turn = (
        "            let turn = n * k * p.turn;\n"
        f"            let near = twiddles[turn % {FINE}u];\n"
        f"            v = times(v, times(near, twiddles[{FINE}u + turn / {FINE}u]));"
    )
    return shader_text(
        "fft_buffers.wgsl",
        "fft.wgsl",
        **buffers(dtype, source, target),
        LENGTH=length,
        ABREAST=abreast,
        SIZE=size,
        THREADS=threads,
        LOAD_COLUMN=load_column,
        LOAD_ROW=load_row,
        STORE_COLUMN=store_column,
        STORE_ROW=store_row,
        STAGES=stages,
        RESULT=result,
        FAR=turn if far else "",
        # Divisions are the slowest part of this shader.
        LINE="t" if by_line else "t / p.count",
        WITHIN="0u" if by_line else "t % p.count",
        BESIDE="0u" if to_line else "within % p.step",
        ALONG="within" if to_line else "within / p.step",
    )


@cache
def bluestein_text(length: int, size: int, dtype: str, source: Form, target: Form) -> str:
    """Return the shader of transforms of any length, by two of ``size`` numbers each."""
    threads = min(256, max(32, size // 4))
    stages, spectrum = _stages(size, 1, threads, dtype)
    back, result = _stages(size, 1, threads, dtype, spectrum)
    return shader_text(
        "fft_buffers.wgsl", "fft_bluestein.wgsl", **buffers(dtype, source, target), LENGTH=length,
        SIZE=size, THREADS=threads, STAGES=stages, SPECTRUM=spectrum, BACK=back, RESULT=result,
    )  # fmt: skip


def _stages(
    length: int, abreast: int, threads: int, dtype: str, source: str = "x"
) -> tuple[str, str]:
    """Return the text of all stages, and the array that holds their result."""
    text: list[str] = []
    target, step, rest = "xy".replace(source, ""), 1, length
    while rest > 1:
        radix = next(r for r in RADICES if rest % r == 0)
        rest //= radix
        apart = length // radix
        text.append(f"for (var e = id; e < {apart * abreast}u; e += {threads}u) {{")
        text.append(f"    let c = e % {abreast}u;")
        text.append(f"    let u = e / {abreast}u;")
        text.append(f"    let m = u / {step}u;")
        for i in range(radix):
            text.append(f"    let x{i} = {source}[(u + {apart * i}u) * {abreast}u + c];")
        text += indented(_butterfly(radix, dtype))
        text.append(f"    let to = (u % {step}u + m * {step * radix}u) * {abreast}u + c;")
        for i in range(radix):
            turned = f"times(y{i}, turns[m * {i * step}u])" if i and rest > 1 else f"y{i}"
            text.append(f"    {target}[to + {i * step * abreast}u] = {turned};")
        text += ["}", "workgroupBarrier();"]
        source, target, step = target, source, step * radix
    return text_of(text), source


def _butterfly(radix: int, dtype: str) -> list[str]:
    """Return lines that transform x0, x1, ... to y0, y1, ..."""
    pair = f"vec2<{dtype}>"
    if radix in (2, 4):
        text, results = fft_columns.butterfly([f"x{i}" for i in range(radix)], "b", dtype)
        return [*text, *(f"let y{i} = {result};" for i, result in enumerate(results))]
    text = []
    half = radix // 2
    for j in range(1, half + 1):
        text.append(f"let s{j} = x{j} + x{radix - j};")
        text.append(f"let d{j} = {pair}(x{j}.y - x{radix - j}.y, x{radix - j}.x - x{j}.x);")
    text.append(f"let y0 = x0 + {' + '.join(f's{j}' for j in range(1, half + 1))};")
    end = "lf" if dtype == "f64" else "f"
    for k in range(1, half + 1):
        angles = [(j, 2 * pi * (j * k % radix) / radix) for j in range(1, half + 1)]
        even = " + ".join(f"s{j} * {cos(angle)!r}{end}" for j, angle in angles)
        odd = " + ".join(f"d{j} * {sin(angle)!r}{end}" for j, angle in angles)
        text.append(f"let e{k} = x0 + {even};")
        text.append(f"let o{k} = {odd};")
        text += [f"let y{k} = e{k} + o{k};", f"let y{radix - k} = e{k} - o{k};"]
    return text
