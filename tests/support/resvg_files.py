"""Compare drawing with resvg, on the SVG files of resvg's own tests (not part of this repository).

    git clone https://github.com/linebender/resvg
    python -m tests.support.resvg_files resvg/crates/resvg/tests/tests

Each file that has only shapes in plain colors is read here, drawn by ``Surface.fill`` and
``Surface.stroke`` in 400 pixels, and compared with the picture of ``resvg_py``. Everything else is
left out, and counted with its reason.
"""

from __future__ import annotations

import math
import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping
from pathlib import Path as File

import numpy as np

from dala.errors import DalaError
from dala.gpu import Path, Surface, create_surface
from dala.gpu.color import color_to_rgba
from dala.media import Frame

SIZE = 400
SVG = "{http://www.w3.org/2000/svg}"
GEOMETRY = {"d", "x", "y", "width", "height", "rx", "ry", "cx", "cy", "r", "x1", "y1", "x2", "y2",
            "points", "id", "transform"}  # fmt: skip
STYLE = {"fill": "black", "stroke": "none", "fill-rule": "nonzero", "stroke-width": "1",
         "stroke-linecap": "butt", "stroke-linejoin": "miter", "stroke-miterlimit": "4",
         "stroke-dasharray": "none", "stroke-dashoffset": "0", "fill-opacity": "1",
         "stroke-opacity": "1"}  # fmt: skip
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


class Unread(Exception):
    """What a file has that is not drawn here."""


def numbers(text: str, what: str) -> list[float]:
    if NUMBER.sub("", text).replace(",", " ").strip():
        raise Unread(f"units or words in {what}")
    return [float(n) for n in NUMBER.findall(text)]


def number(shape: Mapping[str, str], name: str, otherwise: float = 0.0) -> float:
    if name not in shape:
        return otherwise
    found = numbers(shape[name], name)
    if len(found) != 1:
        raise Unread(f"no number in {name}")
    return found[0]


def color(text: str, opacity: float) -> tuple[int, int, int, int] | None:
    if text == "none":
        return None
    try:
        r, g, b, a = color_to_rgba(text)
    except DalaError as error:
        raise Unread("colors of other kinds") from error
    return r, g, b, round(a * min(max(opacity, 0.0), 1.0))


def matrix(text: str) -> np.ndarray:
    """Return a transform attribute as a matrix of 3x3."""
    found = np.eye(3)
    rest = re.sub(r"(\w+)\s*\(([^()]*)\)", "", text)
    if rest.replace(",", "").strip():
        raise Unread("damaged transforms")
    for name, inner in re.findall(r"(\w+)\s*\(([^()]*)\)", text):
        v = numbers(inner, "transform")
        t = np.eye(3)
        if name == "matrix" and len(v) == 6:
            t[:2] = np.array(v).reshape(3, 2).T
        elif name == "translate" and v:
            t[:2, 2] = v if len(v) == 2 else (v[0], 0)
        elif name == "scale" and v:
            t[0, 0], t[1, 1] = v if len(v) == 2 else v * 2
        elif name == "rotate" and len(v) in (1, 3):
            c, s = math.cos(math.radians(v[0])), math.sin(math.radians(v[0]))
            t[:2, :2] = [[c, -s], [s, c]]
            if len(v) == 3:
                at, back = np.eye(3), np.eye(3)
                at[:2, 2], back[:2, 2] = v[1:], [-v[1], -v[2]]
                t = at @ t @ back
        elif name in ("skewX", "skewY") and len(v) == 1:
            t[(0, 1) if name == "skewX" else (1, 0)] = math.tan(math.radians(v[0]))
        else:
            raise Unread("damaged transforms")
        found = found @ t
    return found


def outline(tag: str, shape: Mapping[str, str]) -> Path:
    """Return the path of a shape."""
    n = lambda name, otherwise=0.0: number(shape, name, otherwise)  # noqa: E731
    if tag == "path":
        return Path.svg(shape.get("d", ""))
    if tag == "rect":
        w, h = n("width"), n("height")
        if w <= 0 or h <= 0:
            raise Unread("sizes that are not positive")
        rx, ry = n("rx", n("ry")), n("ry", n("rx"))
        if rx < 0 or ry < 0 or rx != ry or rx > min(w, h) / 2:
            raise Unread("corners of two radii")
        x, y = n("x"), n("y")
        return Path.round_rect(x, y, w, h, rx) if rx else Path.rect(x, y, w, h)
    if tag in ("circle", "ellipse"):
        rx, ry = (n("r"),) * 2 if tag == "circle" else (n("rx", n("ry")), n("ry", n("rx")))
        if rx <= 0 or ry <= 0:
            raise Unread("sizes that are not positive")
        return Path.ellipse(n("cx"), n("cy"), rx, ry)
    if tag == "line":
        return Path.polyline([(n("x1"), n("y1")), (n("x2"), n("y2"))])
    places = numbers(shape.get("points", ""), "points")
    if len(places) % 2 or len(places) < 4:
        raise Unread("damaged points")
    make = Path.polygon if tag == "polygon" else Path.polyline
    return make(list(zip(places[::2], places[1::2], strict=True)))


def draw(s: Surface, node: ET.Element, outer: Mapping[str, str]) -> None:
    """Draw an element and what is in it."""
    tag = node.tag.removeprefix(SVG)
    if tag in ("title", "desc") or not isinstance(node.tag, str):
        return
    if tag not in ("svg", "g", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon"):
        raise Unread(f"<{tag}>")
    if (tag == "svg" and outer is not STYLE) or (tag not in ("svg", "g") and len(node)):
        raise Unread("elements in elements")
    own = {key: value for key, value in node.attrib.items() if key in STYLE}
    if unknown := set(node.attrib) - set(STYLE) - GEOMETRY - {"viewBox"}:
        raise Unread(f"attribute {min(unknown)}")
    style = {**outer, **{k: v for k, v in own.items() if v != "inherit"}}
    m = matrix(node.attrib.get("transform", ""))
    if abs(np.linalg.det(m)) < 1e-12:
        raise Unread("transforms without area")
    with s.transformed(matrix=[float(v) for v in m[:2].T.ravel()]):
        if tag not in ("svg", "g"):
            paint(s, outline(tag, node.attrib), style)
        for child in node:
            draw(s, child, style)


def paint(s: Surface, path: Path, style: Mapping[str, str]) -> None:
    fill = color(style["fill"], number(style, "fill-opacity"))
    line = color(style["stroke"], number(style, "stroke-opacity"))
    if fill:
        s.fill(path, fill, rule=style["fill-rule"])
    width = number(style, "stroke-width")
    if not line or width == 0:  # a width of 0 is a hairline here
        return
    dash = style["stroke-dasharray"]
    s.stroke(
        path, line, width,
        cap=style["stroke-linecap"], join=style["stroke-linejoin"],
        miter=number(style, "stroke-miterlimit"), offset=number(style, "stroke-dashoffset"),
        dash=() if dash == "none" else numbers(dash, "stroke-dasharray"),
    )  # fmt: skip


def drawn(root: ET.Element) -> np.ndarray:
    """Return our picture."""
    box = numbers(root.attrib.get("viewBox", ""), "viewBox")
    if len(box) != 4 or box[2] != box[3] or box[2] <= 0:
        raise Unread("no square viewBox")
    with create_surface(SIZE, SIZE) as s:
        scale = SIZE / box[2]
        with s.transformed(matrix=(scale, 0, 0, scale, -box[0] * scale, -box[1] * scale)):
            draw(s, root, STYLE)
        return s.to_array()


def main(folder: File) -> int:
    left_out: Counter[str] = Counter()
    rows = []
    for file in sorted(folder.rglob("*.svg")):
        try:
            found = drawn(ET.fromstring(file.read_bytes()))
            wanted = np.asarray(Frame.open(str(file), width=SIZE, device="cpu"))
        except Unread as why:
            left_out[str(why)] += 1
            continue
        except (DalaError, ET.ParseError) as error:
            left_out[type(error).__name__ + (": path" if "Path.svg" in str(error) else "")] += 1
            continue
        # on white, as people see them
        over = [p[..., :3] * (p[..., 3:] / 255) + 255.0 - p[..., 3:] for p in (found, wanted)]
        apart = np.abs(over[0] - over[1]).max(axis=2)
        rows.append((float(apart.mean()), float((apart > 64).sum()), apart.max(), file))
    rows.sort(key=lambda row: row[:3], reverse=True)
    lines = [
        f"mean {mean:7.4f}  most {most:5.1f}  beyond 64: {far:4.0f}  {file.relative_to(folder)}"
        for mean, far, most, file in rows[:25]
    ]
    means = np.array([row[0] for row in rows])
    near = sum(row[1] == 0 for row in rows)
    lines.append(
        f"{len(rows)} files drawn: mean difference {means.mean():.4f} steps, largest mean "
        f"{means.max():.3f}; {near} have no pixel beyond 64 steps"
    )
    sys.stdout.write("\n".join([*lines, f"left out: {dict(left_out.most_common())}", ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main(File(sys.argv[1])))
