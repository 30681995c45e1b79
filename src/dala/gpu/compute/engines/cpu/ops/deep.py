"""Planes with more than eight bits per sample to RGB on the CPU, with the tone curve of HDR.

A row is decoded in blocks that stay in the nearest cache: chroma is interpolated between two rows,
then between columns; then each step of the color conversion runs over the block. Powers are
polynomials in f32, so that all loops vectorize.
"""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.shared import *
from dala.gpu.compute.engines.sampling import light

#: Pixels of a block, and the room that a block needs; samples around it included.
BLOCK: Final = 512
_ROOM: Final = BLOCK + 8
#: Pixels of a tile, roughly.
TILE: Final = 1 << 15

#: log2(1 + f) / f on [sqrt(1/2) - 1, sqrt(2) - 1], from the highest power down: 2^-25 for floats,
#: 2^-19 for bytes.
_LOG2: Final = (
    0.1261484661197051, -0.20742103504962955, 0.21566985900252664, -0.2389203398197369,
    0.28791832447173227, -0.3607048280965929, 0.4809106099451724, -0.7213473333598954,
    1.4426950037647301,
)  # fmt: skip
_LOG2_BYTES: Final = (
    0.17212873065608472, -0.2695062744385924, 0.29563360026508917, -0.3593506528384601,
    0.48062914692402076, -0.7213640398472528, 1.4426964322205809,
)  # fmt: skip
#: 2^r on [-1/2, 1/2]: 2^-28 for floats, 2^-18 for bytes.
_EXP2: Final = (
    0.0001546973198152048, 0.0013400432165829137, 0.009618025602947586, 0.05550327214207754,
    0.24022651213595086, 0.6931472067106216, 0.9999999999595485,
)  # fmt: skip
_EXP2_BYTES: Final = (
    0.009676037097870927, 0.055922035647260525, 0.24022107355830416, 0.6931210339915471,
    1.000000075495349,
)  # fmt: skip
#: The bits of sqrt(1/2), and the smallest number whose logarithm is taken.
_ROOT_BITS: Final = 0x3F3504F3
_TINY: Final = 1e-30

#: The table of the tone curve, for bytes: 64 steps for each doubling of light, from 1/16 of white,
#: below the knee of every peak, to the most that PQ can code. The error is below 0.01 of 255.
_STEP_BITS: Final = 17
_STEP_MASK: Final = (1 << _STEP_BITS) - 1
_FIRST_BITS: Final = 0x3D800000
_STEPS: Final = 64 * 10 + 2
_LAST: Final = (64 * 10 << _STEP_BITS) + _STEP_MASK - 1

_SCENE: Final = 1.0 / light.HLG_A / 0.6931471805599453
_SCENE_BIAS: Final = -light.HLG_C * _SCENE
_B12: Final = light.HLG_B / 12.0
_HLG_GAIN: Final = light.HLG_PEAK / light.WHITE
_PQ_GAIN: Final = light.PQ_PEAK / light.WHITE
_KR, _KG, _KB = light.LUMA
_DARK: Final = light.DARK
_SYSTEM: Final = light.SYSTEM_GAMMA
_M1, _M2, _C1, _C2, _C3 = light.PQ_M1, light.PQ_M2, light.PQ_C1, light.PQ_C2, light.PQ_C3
_INVERSE_M1: Final = 1.0 / light.PQ_M1
_INVERSE_M2: Final = 1.0 / light.PQ_M2
_GAMMA: Final = 1.0 / light.DISPLAY_GAMMA
(_RR, _RG, _RB), (_GR, _GG, _GB), (_BR, _BG, _BB) = light.TO_BT709


# powers ---------------------------------------------------------------------------------------
@native(fast=True)
def horner(x: f32, *, numbers: tuple[float, ...]) -> Vector:
    """Return a polynomial, given from the highest power down."""
    made = f32(0)
    for number in static(numbers):
        made = made * x + number
    return made


@native(fast=True)
def exp2_quick(t: f32, *, coarse: bool) -> Vector:
    """Return 2^t for t within -126 and 127."""
    whole = floor(t + 0.5)
    r = t - whole
    scale = bits(f32, (in_range(i32, whole) + 127) << 23)
    return horner(r, numbers=static(_EXP2_BYTES if coarse else _EXP2)) * scale


@native(fast=True)
def power_quick(x: f32, y: f32, *, coarse: bool) -> Vector:
    """Return x^y for x of 0 or more; 0 counts as 1e-30."""
    word = bits(i32, max(x, f32(_TINY)))
    exponent = (word - _ROOT_BITS) >> 23
    f = bits(f32, word - (exponent << 23)) - 1.0
    whole = f32(exponent) + horner(f, numbers=static(_LOG2_BYTES if coarse else _LOG2)) * f
    return exp2_quick(max(whole * y, f32(-126)))


@native(fast=True)
def scene_of(x: f32, *, coarse: bool) -> Vector:
    """Return the scene light of an HLG value."""
    high = exp2_quick(min(x, f32(4)) * _SCENE + _SCENE_BIAS) * f32(1.0 / 12.0) + _B12
    return select(x > 0.5, high, x * abs(x) * f32(1.0 / 3.0))


@native(fast=True)
def light_of_pq(x: f32) -> Vector:
    """Return the light of a PQ value of 0 or more, where 1.0 is 10,000 cd/m2."""
    q = power_quick(min(x, f32(1)), f32(_INVERSE_M2), coarse=False)
    ratio = max(q - f32(_C1), f32(0)) / (f32(_C2) - f32(_C3) * q)
    light = power_quick(ratio, f32(_INVERSE_M1), coarse=False)
    return select(q > f32(_C1), light, f32(0))


@native(fast=True)
def pq_of_light(x: f32) -> Vector:
    """Return the PQ value of light of 0 or more."""
    p = power_quick(x, f32(_M1), coarse=False)
    ratio = (f32(_C1) + f32(_C2) * p) / (f32(1) + f32(_C3) * p)
    return power_quick(ratio, f32(_M2), coarse=False)


@native
def within(x: f32) -> Vector:
    """Return a number clamped to 0 and 1."""
    return min(max(x, f32(0)), f32(1))


@native(fast=True)
def signed(of: f32, value: f32) -> Vector:
    """Return a value with the sign of another number, which is 0 for 0."""
    return select(of > 0.0, value, select(of < 0.0, -value, f32(0)))


# colors of a block ----------------------------------------------------------------------------
@native(fast=True)
def to_light(
    r: Array[f32], g: Array[f32], b: Array[f32], count: i64, *, hlg: bool, coarse: bool
) -> None:
    """Replace coded values with light; 1.0 is reference white."""
    for k in independent(range(count)):
        if hlg:
            sr = scene_of(r[k])
            sg = scene_of(g[k])
            sb = scene_of(b[k])
            luma = max(sr * _KR + sg * _KG + sb * _KB, f32(_DARK))
            gain = power_quick(luma, f32(_SYSTEM)) * f32(_HLG_GAIN)
            r[k], g[k], b[k] = sr * gain, sg * gain, sb * gain
        else:
            for p in static((r, g, b)):
                p[k] = signed(p[k], light_of_pq(abs(p[k])) * f32(_PQ_GAIN))


@native(fast=True)
def curve_at(light: f32, knee: f32, top: f32, code: f32) -> Vector:
    """Return the factor by which the tone curve scales light."""
    e = pq_of_light(light * f32(1.0 / _PQ_GAIN)) / code
    t = within((e - knee) / (f32(1) - knee))
    t2 = t * t
    t3 = t2 * t
    curve = (t3 * 2.0 - t2 * 3.0 + 1.0) * knee + (t3 - t2 * 2.0 + t) * (f32(1) - knee)
    curve += (t2 * 3.0 - t3 * 2.0) * top
    target = light_of_pq(curve * code) * f32(_PQ_GAIN)
    return select(e > knee, target / max(light, f32(_TINY)), f32(1))


@native
def fill_curve(factors: Array[f32], knee: f32, top: f32, code: f32) -> None:
    """Write the factors of the tone curve at the steps of its table."""
    for k in independent(range(_STEPS)):
        light = bits(f32, i32(_FIRST_BITS) + (i32(k) << _STEP_BITS))
        factors[k] = curve_at(light, knee, top, code)


@native(fast=True)
def looked_up(factors: Array[f32], light: f32) -> Vector:
    """Return the factor of the tone curve between two steps of its table."""
    word = min(max(bits(i32, light) - _FIRST_BITS, i32(0)), i32(_LAST))
    k = i64(word >> _STEP_BITS)
    part = f32(word & _STEP_MASK) * f32(1.0 / (1 << _STEP_BITS))
    return factors[k] + (factors[k + 1] - factors[k]) * part


@native(fast=True)
def to_sdr(
    r: Array[f32], g: Array[f32], b: Array[f32], factors: Array[f32],
    knee: f32, top: f32, code: f32, count: i64, *, coarse: bool,
) -> None:  # fmt: skip
    """Compress light to white, and convert it to BT.709 within 0 and 1."""
    for k in independent(range(count)):
        most = max(max(r[k], g[k]), max(b[k], f32(0)))
        scale = looked_up(factors, most) if coarse else curve_at(most, knee, top, code)
        x, y, z = r[k] * scale, g[k] * scale, b[k] * scale
        r[k] = within(x * _RR + y * _RG + z * _RB)
        g[k] = within(x * _GR + y * _GG + z * _GB)
        b[k] = within(x * _BR + y * _BG + z * _BB)


@native(fast=True)
def to_display(r: Array[f32], g: Array[f32], b: Array[f32], count: i64, *, coarse: bool) -> None:
    """Replace light with display values."""
    for k in independent(range(count)):
        for p in static((r, g, b)):
            p[k] = signed(p[k], power_quick(abs(p[k]), f32(_GAMMA)))


@native(fast=True)
def byte_of(x: f32) -> Vector:
    """Return a value from 0 to 1 as a byte."""
    return in_range(i32, within(x) * 255.0 + 0.5)


@native(fast=True)
def store_pixels(
    r: Array[f32], g: Array[f32], b: Array[f32], out: Array[S], count: i64,
    *, S: type, stored: int,  # noqa: N803
) -> None:  # fmt: skip
    """Store a block of pixels of three or four channels."""
    for k in independent(range(count)):
        if u8 == S and stored == 4:
            word = byte_of(r[k]) | (byte_of(g[k]) << 8) | (byte_of(b[k]) << 16)
            view(out, u32)[k] = u32(word) | u32(0xFF000000)
        elif u8 == S:
            out[3 * k] = u8(byte_of(r[k]))
            out[3 * k + 1] = u8(byte_of(g[k]))
            out[3 * k + 2] = u8(byte_of(b[k]))
        else:
            out[stored * k], out[stored * k + 1], out[stored * k + 2] = r[k], g[k], b[k]
            if stored == 4:
                out[stored * k + 3] = f32(1)


# planes ---------------------------------------------------------------------------------------
@native(fast=True)
def read_row(
    plane: Array[u16], into: Array[f32], bias: f32, count: i64, *, step: int, shift: int
) -> None:
    """Read samples, less a bias."""
    for k in independent(range(count)):
        into[k] = f32(i32(plane[k * step]) >> shift) - bias


@native(fast=True)
def between(a: u16, b: u16, share: f32, *, shift: int) -> Vector:
    """Interpolate two samples."""
    x, y = f32(i32(a) >> shift), f32(i32(b) >> shift)
    return x + (y - x) * share


@native(fast=True)
def read_chroma(
    plane: Array[u16], near: i64, far: i64, share: f32, into: Array[f32], middle: f32,
    at: i64, count: i64, columns: i64, *, step: int, shift: int, across: int, centered: bool,
) -> None:  # fmt: skip
    """Read chroma between two rows, and interpolate it between columns."""
    # With a sample on either side, repeated at the edges.
    c = local(f32, _ROOM)
    before, after = min(at, 1), min(columns - at - count, 1)
    a, b = plane[(near + at - before) * step :], plane[(far + at - before) * step :]
    read = c[1 - before :]
    for k in independent(range(count + before + after)):
        read[k] = between(a[k * step], b[k * step], share) - middle
    if before == 0:
        c[0] = c[1]
    if after == 0:
        c[count + 1] = c[count]
    for k in independent(range(count)):
        if across == 1:
            into[k] = c[k + 1]
        elif centered:
            into[2 * k] = c[k + 1] * 0.75 + c[k] * 0.25
            into[2 * k + 1] = c[k + 1] * 0.75 + c[k + 2] * 0.25
        else:
            into[2 * k] = c[k + 1]
            into[2 * k + 1] = (c[k + 1] + c[k + 2]) * 0.5


@native(fast=True)
def to_rgb(
    r: Array[f32], g: Array[f32], b: Array[f32], gain: f32, rv: f32, gu: f32, gv: f32, bu: f32,
    count: i64,
) -> None:  # fmt: skip
    """Replace Y, Cb and Cr (in g, b and r) with red, green and blue."""
    for k in independent(range(count)):
        y, u, v = g[k] * gain, b[k], r[k]
        r[k], g[k], b[k] = y + v * rv, y + u * gu + v * gv, y + u * bu


@native
def decode(
    luma: Array[u16], u: Array[u16], v: Array[u16], out: Array[S], width: i64, columns: i64,
    rows: i64, black: f32, gain: f32, middle: f32, rv: f32, gu: f32, gv: f32, bu: f32,
    knee: f32, top: f32, code: f32, start: i64, end: i64,
    *, S: type, stored: int, step: int, shift: int, across: int, down: int,  # noqa: N803
    centered: bool, topped: bool, planes: int, transfer: int, sdr: bool,
) -> None:  # fmt: skip
    """Decode rows [start, end).

    ``planes`` is 1 for gray, 3 for green, blue and red, 2 for Y, Cb and Cr. ``transfer`` is 0 for
    none, 1 for HLG, 2 for PQ.
    """
    r, g, b = local(f32, _ROOM), local(f32, _ROOM), local(f32, _ROOM)
    factors = local(f32, _STEPS)
    if u8 == S and transfer > 0 and sdr:
        fill_curve(factors, knee, top, code)
    for y in range(start, end):
        j = y // down
        other, share = j, f32(0)
        if down == 2 and topped:
            other, share = min(j + y % 2, rows - 1), f32(0.5)
        elif down == 2:
            other, share = max(min(j + y % 2 * 2 - 1, rows - 1), 0), f32(0.25)
        for at in range(0, width, BLOCK):
            count = min(width - at, BLOCK)
            samples = (count + across - 1) // across
            read_row(luma[y * width + at :], g, black, count, step=1)
            if planes == 2:
                first = at // across
                near, far = j * columns, other * columns
                read_chroma(u, near, far, share, b, middle, first, samples, columns)
                read_chroma(v, near, far, share, r, middle, first, samples, columns)
                to_rgb(r, g, b, gain, rv, gu, gv, bu, count)
            else:
                if planes == 3:
                    read_row(u[y * width + at :], b, black, count, step=1)
                    read_row(v[y * width + at :], r, black, count, step=1)
                for k in independent(range(count)):
                    g[k] = g[k] * gain
                    r[k] = r[k] * gain if planes == 3 else g[k]
                    b[k] = b[k] * gain if planes == 3 else g[k]
            if transfer > 0:
                to_light(r, g, b, count, hlg=transfer == 1, coarse=u8 == S)
                if sdr:
                    to_sdr(r, g, b, factors, knee, top, code, count, coarse=u8 == S)
                to_display(r, g, b, count, coarse=u8 == S)
            store_pixels(r, g, b, out[(y * width + at) * stored :], count)


@implements("yuv16_to_rgb")
def make_yuv16_to_rgb(engine: Engine, task: Task) -> Runner | None:
    """Return the runner that decodes planes of samples of two bytes."""
    height, width, stored = task.output.shape
    rows, columns = task.inputs[-1].shape[:2]
    across, down = task["ratio"]
    pairs = len(task.inputs) == 2
    planes = {"gray": 1, "yuv": 2, "rgb": 3}[task["planes"]]
    code = compile_native(
        decode,
        S=u8 if task.output.dtype == "u8" else f32,
        stored=stored,
        step=2 if pairs else 1,
        shift=task["shift"],
        across=across,
        down=down,
        centered=task["siting"] == "center",
        topped=task["siting"] == "topleft",
        planes=planes,
        transfer={"none": 0, "hlg": 1, "pq": 2}[task["transfer"]],
        sdr=task["light"] == "sdr",
    )
    run_all = code.parallel(height, max(1, TILE // width))
    area, small = height * width, rows * columns * (2 if pairs else 1)
    numbers = (*task["numbers"], *[0.0] * (7 - len(task["numbers"])), *task["curve"])

    def run(*held: Memory) -> None:
        at = [m.address for m in held[:-1]]
        if len(at) == 1:
            chroma = [(at[0], area), (at[0], area)]
        elif pairs:
            chroma = [(at[1], small), (at[1] + 2, small - 1)]
        else:
            chroma = [(at[1], small), (at[2], small)]
        run_all((at[0], area), *chroma, held[-1], width, columns, rows, *numbers)

    return array_runner(run)
