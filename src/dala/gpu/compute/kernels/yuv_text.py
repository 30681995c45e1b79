"""Kernel source text for the conversions in ``yuv``, for each layout of the planes.

Bytes are summed as integers before scaling, so that chroma averages are exact.
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


def decode_pixels() -> str:
    """Return the kernel from yuv444 to RGB."""
    return _DECODE_PIXELS.strip()


@cache
def decode_planes(form: str, ranks: tuple[int, ...], siting: str, chroma: str) -> str:
    """Return the kernel from 4:2:0 to RGB; ``ranks`` are the numbers of axes of the inputs."""
    names = ("a", "b", "c")[: len(ranks)]
    at = _samples(form, ranks)
    lines = []
    if chroma == "bilinear":
        beside, weights = _BESIDE[siting]
        lines.append(f"    i1 = {beside}")
        lines.append("    j1 = clamp(j + y % 2 * 2 - 1, 0, rows - 1)")
        for name, sample in zip("uv", at, strict=True):
            terms = []
            for w, (row, column) in zip(
                weights, (("j", "i"), ("j", "i1"), ("j1", "i"), ("j1", "i1")), strict=True
            ):
                terms.append(f"{sample.format(j=row, i=column)} * {w}")
            lines.append(f"    {name}s = {' + '.join(terms)}")
        total = sum(weights)
    else:
        lines += [f"    {n}s = {s.format(j='j', i='i')}" for n, s in zip("uv", at, strict=True)]
        total = 1
    return _DECODE_PLANES.format(
        inputs=", ".join(f"{n}: Array" for n in names),
        chroma="\n".join(lines),
        y="a[y, x]",
        scale=f"(1.0 / {255.0 * total})",
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


def encode_pixels() -> str:
    """Return the kernel from RGB to yuv444."""
    return _ENCODE_PIXELS.strip()


@cache
def encode_planes(form: str, siting: str) -> str:
    """Return the kernel from RGB to 4:2:0."""
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
    return _ENCODE_PLANES.format(
        place=place, r=sums[0], g=sums[1], b=sums[2], scale=f"(1.0 / {total}.0)"
    ).strip()
