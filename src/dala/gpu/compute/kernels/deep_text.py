"""Kernel text of the conversions of ``deep``, for each layout of the planes."""

from __future__ import annotations

from functools import cache
from typing import Final

from dala.gpu.compute.kernels import hdr

#: Width and height of a picture per chroma sample.
LAYOUTS: Final = {"444": (1, 1), "422": (2, 1), "420": (2, 2), "440": (1, 2)}

_DECODE = """
def yuv16_to_rgb({inputs}, *, {params}):
    y, x = position()
{chroma}
{color}
{light}
    return rgba(r, g, b)
"""

_COLOR = {
    "gray": "    r = ({a} - black) * gain\n    g, b = r, r",
    "rgb": "    g, b, r = ({a} - black) * gain, ({b} - black) * gain, ({c} - black) * gain",
    "yuv": """\
    luma = ({a} - black) * gain
    u = us - middle
    v = vs - middle
    r, g, b = luma + rv * v, luma + gu * u + gv * v, luma + bu * u""",
}


def _sample(plane: str, row: str, column: str, first: int, shift: int) -> str:
    """Return the text of one sample, a float."""
    at = f"{plane}[{row}, {column}, "
    whole = f"{at}{first}] + {at}{first + 1}] * 256"
    return f"float(({whole}) >> {shift})" if shift else f"float({whole})"


def _axis(ratio: int, middle: bool, name: str, cell: str, size: str) -> tuple[list[str], str]:
    """Return lines that set the two chroma positions around a pixel, and the share of the second.

    Positions are clamped by the array itself.
    """
    if ratio == 1:
        return [f"    {cell}0, {cell}1 = {name}, {name}"], "0.0"
    if middle:
        return [
            f"    {cell}0 = {name} // 2",
            f"    {cell}1 = clamp({cell}0 + {name} % 2 * 2 - 1, 0, {size} - 1)",
        ], "0.25"
    return [
        f"    {cell}0 = {name} // 2",
        f"    {cell}1 = min({cell}0 + {name} % 2, {size} - 1)",
    ], "0.5"


@cache
def decoding_text(
    planes: str,
    count: int,
    ratios: tuple[int, int],
    siting: str,
    shift: int,
    transfer: str,
    light: str,
) -> str:
    """Return the kernel that decodes planes."""
    lines: list[str] = []
    params = ["black: float", "gain: float"]
    if planes == "yuv":
        params += [f"{n}: float" for n in ("middle", "rv", "gu", "gv", "bu")]
        across, part = _axis(ratios[0], siting == "center", "x", "i", "b.shape[1]")
        down, part_down = _axis(ratios[1], siting != "topleft", "y", "j", "b.shape[0]")
        lines += across + down
        for name, plane, first in (("u", "b", 0), ("v", "bc"[count - 2], 2 * (count == 2))):
            near, far = (
                " + ".join(
                    f"{_sample(plane, row, f'i{k}', first, shift)} * {weight}"
                    for k, weight in enumerate((f"(1.0 - {part})", part))
                    if weight != "0.0"
                )
                for row in ("j0", "j1")
            )
            lines.append(f"    {name}s = {near}")
            if part_down != "0.0":
                lines.append(f"    {name}s = {name}s * (1.0 - {part_down}) + ({far}) * {part_down}")
    names = "abc"[:count]
    color = _COLOR[planes].format(**{n: _sample(n, "y", "x", 0, shift) for n in names})
    helpers, body = "", ""
    if transfer != "none":
        helpers, body = hdr.decoding_text(transfer, light)
        if light == "sdr":
            params += ["knee: float", "top: float", "code: float"]
    return (helpers + _DECODE).format(
        inputs=", ".join(f"{n}: Array" for n in names),
        params=", ".join(params),
        chroma="\n".join(lines),
        color=color,
        light=body,
    )


_ENCODE = """
def rgb_to_yuv16(rgb: Array, *, y: vec3, u: vec3, v: vec3,
                 y_bias: float, u_bias: float, v_bias: float, top: float):
    height, width = rgb.shape[0], rgb.shape[1]
    rows, columns = (height + {down} - 1) // {down}, (width + {across} - 1) // {across}
    area, small = height * width, rows * columns
    word = u32(0)
    for half in range(2):
        k = position() * 2 + half
        inside = k < area + 2 * small
        luma = k < area
        place = k if luma else k - area
        second = not luma and place >= small
        place = place - small if second else place
        line = place // width if luma else place // columns
        column = place - line * width if luma else place - line * columns
        r, g, b = 0.0, 0.0, 0.0
        if luma:
            r = float(rgb[line, column, 0])
            g = float(rgb[line, column, 1])
            b = float(rgb[line, column, 2])
        else:
            line, column = line * {down}, column * {across}
{sums}
        share = v if second else u
        bias = v_bias if second else u_bias
        if luma:
            share, bias = y, y_bias
        made = floor((r * share.r + g * share.g + b * share.b) * {scale} + bias + 0.5)
        made = clamp(made, 0.0, top) if made >= 0.0 else 0.0
        code = u32(made) if inside else u32(0)
        word = word + (code << (16 * half))
    return word
"""


def _taps(step: int, middle: bool) -> tuple[tuple[int, float], ...]:
    if step == 1:
        return ((0, 1.0),)
    return ((0, 0.5), (1, 0.5)) if middle else ((-1, 0.25), (0, 0.5), (1, 0.25))


@cache
def encoding_text(layout: str, siting: str, scale: float) -> str:
    """Return the kernel that encodes planes; ``scale`` is of the input's numbers."""
    across, down = LAYOUTS[layout]
    sums = []
    for channel, name in enumerate("rgb"):
        terms = [
            f"float(rgb[{_near('line', i, 'height')}, {_near('column', j, 'width')}, {channel}])"
            f" * {a * b}"
            for i, a in _taps(down, siting != "topleft")
            for j, b in _taps(across, siting == "center")
        ]
        sums.append(f"            {name} = {' + '.join(terms)}")
    return _ENCODE.format(across=across, down=down, sums="\n".join(sums), scale=scale)


def _near(name: str, offset: int, size: str) -> str:
    if offset == 0:
        return name
    return f"max({name} - 1, 0)" if offset < 0 else f"min({name} + 1, {size} - 1)"
