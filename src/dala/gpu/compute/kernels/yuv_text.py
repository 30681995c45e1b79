"""Kernel source text for the conversions in ``yuv``, for each layout of the planes.

Bytes are summed as integers before scaling, so that chroma averages are exact. Each kernel has a
form for floats and a *fixed* form from bytes to bytes, in integers.
"""

from __future__ import annotations

from functools import cache

_DECODE_PIXELS = """
def yuv_to_rgb(px: Pixel, *, black: float, gain: float, middle: float,
               rv: float, gu: float, gv: float, bu: float):
    luma = (px.r - black) * gain
    u = px.g - middle
    v = px.b - middle
    return rgba(luma + rv * v, luma + gu * u + gv * v, luma + bu * u)
"""

#: The byte of a pixel's number. Rounding hides how the engine scaled it.
_BYTE = "floor({} * 255.0 + 0.5)"

#: In floats, which are faster than integers and exact.
_DECODE_FIXED_PIXELS = f"""
def yuv_to_rgb(px: Pixel, *, gain: float, bias: float, rv: float, gu: float, gv: float, bu: float):
    luma = ({_BYTE.format("px.r")} - 128.0) * gain + bias
    u = {_BYTE.format("px.g")} - 128.0
    v = {_BYTE.format("px.b")} - 128.0
    r = floor((luma + v * rv) * (1.0 / 32768.0)) + 128.0
    g = floor((luma + u * gu + v * gv) * (1.0 / 32768.0)) + 128.0
    b = floor((luma + u * bu) * (1.0 / 32768.0)) + 128.0
    return rgba(r * (1.0 / 255.0), g * (1.0 / 255.0), b * (1.0 / 255.0))
"""

_SHARE = "float(clamp({}, 0, 255)) * (1.0 / 255.0)"

_DECODE_FIXED_PLANES = f"""
def yuv_to_rgb({{inputs}}, *, gain: int, bias: int, rv: int, gu: int, gv: int, bu: int):
    y, x = position()
    height, width = shape()[0], shape()[1]
    rows, columns = height // 2, width // 2
    j, i = y // 2, x // 2
{{chroma}}
    wide = {{y}} * 128
    luma = wide + (wide * gain + 16384 >> 15) + bias
    u = us * {{scale}} - 32768
    v = vs * {{scale}} - 32768
    r = (luma + (v * rv + 16384 >> 15) >> 7) + 128
    g = (luma + (u * gu + 16384 >> 15) + (v * gv + 16384 >> 15) >> 7) + 128
    b = (luma + (u * bu + 16384 >> 15) * 2 >> 7) + 128
    return rgba({_SHARE.format("r")}, {_SHARE.format("g")}, {_SHARE.format("b")})
"""

_DECODE_PLANES = """
def yuv_to_rgb({inputs}, *, black: float, gain: float, middle: float,
               rv: float, gu: float, gv: float, bu: float):
    y, x = position()
    height, width = shape()[0], shape()[1]
    rows, columns = height // 2, width // 2
    j, i = y // 2, x // 2
{chroma}
    luma = (float({y}) * (1.0 / 255.0) - black) * gain
    u = float(us) * {scale} - middle
    v = float(vs) * {scale} - middle
    return rgba(luma + rv * v, luma + gu * u + gv * v, luma + bu * u)
"""

#: By siting: the column of the second chroma sample, and the weights of the four nearest samples.
_BESIDE = {
    "left": ("min(i + x % 2, columns - 1)", (3, 3, 1, 1)),
    "center": ("clamp(i + x % 2 * 2 - 1, 0, columns - 1)", (9, 3, 3, 1)),
}

_ENCODE_PIXELS = """
def rgb_to_yuv(px: Pixel, *, y: vec3, u: vec3, v: vec3, black: float, middle: float):
    return rgba(dot(px.rgb, y) + black, dot(px.rgb, u) + middle, dot(px.rgb, v) + middle)
"""

_ENCODE_FIXED_PIXELS = f"""
def rgb_to_yuv(px: Pixel, *, {{weights}}):
    r = {_BYTE.format("px.r")}
    g = {_BYTE.format("px.g")}
    b = {_BYTE.format("px.b")}
    y = floor((r * yr + g * yg + b * yb + black) * (1.0 / 65536.0))
    u = floor((r * ur + g * ug + b * ub + 8421376.0) * (1.0 / 65536.0))
    v = floor((r * vr + g * vg + b * vb + 8421376.0) * (1.0 / 65536.0))
    return rgba(y * (1.0 / 255.0), u * (1.0 / 255.0), v * (1.0 / 255.0))
"""

_WEIGHTS = ", ".join(f"{name}: {{0}}" for name in ("black", *(p + c for p in "yuv" for c in "rgb")))

_ENCODE_FIXED_PLANES = """
def rgb_to_yuv(rgb: Array, *, {weights}):
    row, column = position()
    height, width = rgb.shape[0], rgb.shape[1]
    result = black
    if row < height:
        r, g, b = rgb[row, column, 0] * 128, rgb[row, column, 1] * 128, rgb[row, column, 2] * 128
        result += (r * yr + 16384 >> 15) + (g * yg + 16384 >> 15) + (b * yb + 16384 >> 15)
    else:
{place}
        r = ({r}) * {scale}
        g = ({g}) * {scale}
        b = ({b}) * {scale}
        result = 64 + 128 * 128
        if second:
            result += (r * vr + 16384 >> 15) + (g * vg + 16384 >> 15) + (b * vb + 16384 >> 15)
        else:
            result += (r * ur + 16384 >> 15) + (g * ug + 16384 >> 15) + (b * ub + 16384 >> 15)
    return result >> 7
"""

_ENCODE_PLANES = """
def rgb_to_yuv(rgb: Array, *, y: vec3, u: vec3, v: vec3, black: float, middle: float):
    row, column = position()
    height, width = rgb.shape[0], rgb.shape[1]
    result = black
    if row < height:
        r, g, b = float(rgb[row, column, 0]), float(rgb[row, column, 1]), float(rgb[row, column, 2])
        result += r * y.r + g * y.g + b * y.b
    else:
{place}
        r = float({r}) * {scale}
        g = float({g}) * {scale}
        b = float({b}) * {scale}
        if second:
            result = middle + r * v.r + g * v.g + b * v.b
        else:
            result = middle + r * u.r + g * u.g + b * u.b
    return result
"""

_PLACE = {
    "nv12": """\
        second = column % 2 == 1
        j = (row - height) * 2
        i = column - column % 2""",
    # Chroma rows have half the width, so that two fill a row of the picture; Cb first.
    "i420": """\
        half = width // 2
        line = (row - height) * 2 + (1 if column >= half else 0)
        second = line >= height // 2
        j = (line - height // 2 if second else line) * 2
        i = (column - half if column >= half else column) * 2""",
}


@cache
def decode(form: str, ranks: tuple[int, ...], siting: str, chroma: str, fixed: bool) -> str:
    """Return the kernel from a format to RGB; ``ranks`` are the numbers of axes of the inputs."""
    if form == "yuv444":
        return (_DECODE_FIXED_PIXELS if fixed else _DECODE_PIXELS).strip()
    names = ("a", "b", "c")[: len(ranks)]
    at = _samples(form, ranks)
    lines = []
    if chroma == "bilinear":
        beside, weights = _BESIDE[siting]
        lines.append(f"    i1 = {beside}")
        lines.append("    j1 = clamp(j + y % 2 * 2 - 1, 0, rows - 1)")
        near = (("j", "i"), ("j", "i1"), ("j1", "i"), ("j1", "i1"))
        for name, sample in zip("uv", at, strict=True):
            terms = [
                f"{sample.format(j=j, i=i)} * {w}" for w, (j, i) in zip(weights, near, strict=True)
            ]
            lines.append(f"    {name}s = {' + '.join(terms)}")
        total = sum(weights)
    else:
        lines += [f"    {n}s = {s.format(j='j', i='i')}" for n, s in zip("uv", at, strict=True)]
        total = 1
    text = _DECODE_FIXED_PLANES if fixed else _DECODE_PLANES
    return text.format(
        inputs=", ".join(f"{n}: Array" for n in names),
        chroma="\n".join(lines),
        y="a[y, x]",
        scale=256 // total if fixed else f"(1.0 / {255.0 * total})",
    ).strip()


def _samples(form: str, ranks: tuple[int, ...]) -> tuple[str, str]:
    """Return the expressions for Cb and Cr in row j, column i."""
    if len(ranks) == 3:
        return "b[{j}, {i}]", "c[{j}, {i}]"
    if len(ranks) == 2:
        if ranks[1] == 3:
            return "b[{j}, {i}, 0]", "b[{j}, {i}, 1]"
        return "b[{j}, {i} * 2]", "b[{j}, {i} * 2 + 1]"
    if form == "nv12":
        return "a[height + {j}, {i} * 2]", "a[height + {j}, {i} * 2 + 1]"
    # Chroma rows have half the width, so that two fill a row; all of Cb, then all of Cr.
    return (
        "a[height + {j} // 2, {j} % 2 * columns + {i}]",
        "a[height + (rows + {j}) // 2, (rows + {j}) % 2 * columns + {i}]",
    )


@cache
def encode(form: str, siting: str, fixed: bool) -> str:
    """Return the kernel from RGB to a format."""
    if form == "yuv444":
        text = _ENCODE_FIXED_PIXELS if fixed else _ENCODE_PIXELS
        return text.format(weights=_WEIGHTS.format("float")).strip()
    place = _PLACE[form]
    taps = [("i", 1), ("i + 1", 1)]
    if siting == "left":
        place += "\n        before = max(i - 1, 0)"
        taps = [("before", 1), ("i", 2), ("i + 1", 1)]
    total = 2 * sum(w for _, w in taps)
    sums = []
    for channel in range(3):
        terms = [
            f"rgb[{row}, {column}, {channel}]" + (f" * {w}" if w > 1 else "")
            for row in ("j", "j + 1")
            for column, w in taps
        ]
        sums.append(" + ".join(terms))
    text, scale = _ENCODE_PLANES, f"(1.0 / {total}.0)"
    if fixed:
        text, scale = _ENCODE_FIXED_PLANES, str(128 // total)
    r, g, b = sums
    weights = _WEIGHTS.format("int")
    return text.format(place=place, r=r, g=g, b=b, scale=scale, weights=weights).strip()
