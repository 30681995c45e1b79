"""Texts and SVG files on surfaces, and where they are: the transform as calls have set it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from dala import extensions
from dala.errors import CommandError
from dala.gpu import command as encode
from dala.gpu.path.numbers import Matrix, matrix_of, multiplied, numbers
from dala.gpu.vector import calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dala.gpu.paint import Paint
    from dala.gpu.surface import Surface
    from dala.typing import PathLike

#: A font, or several: the first that has a letter is used.
Font: TypeAlias = "str | Sequence[str] | None"


# state ----------------------------------------------------------------------------------------
def push(s: Surface) -> None:
    """Save the transform and the clips, until :func:`pop`.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     s.push()
    ...     s.transform(1, 0, 0, 1, 1, 0)
    ...     s.pop()
    ...     s.rect(0, 0, 1, 1, "white")
    ...     s.to_array()[0, :, 3].tolist()
    [255, 0]
    """
    calls.put(s, "push", encode.encode_push())
    s._matrices.append(s._matrices[-1])
    s._note_push()


def pop(s: Surface) -> None:
    """Restore the transform and the clips of the last :func:`push`.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     s.push()
    ...     s.pop()
    """
    calls.put(s, "pop", encode.encode_pop())
    if len(s._matrices) > 1:
        s._matrices.pop()
        s._note_push()


def transform(s: Surface, a: float, b: float, c: float, d: float, e: float, f: float) -> None:
    """Change the coordinates of later drawing: x, y become a*x + c*y + e, b*x + d*y + f.

    >>> from dala import gpu
    >>> with gpu.create_surface(2, 1) as s:
    ...     s.transform(1, 0, 0, 1, 1, 0)
    ...     s.rect(0, 0, 1, 1, "white")
    ...     s.to_array()[0, :, 3].tolist()
    [0, 255]
    """
    matrix = matrix_of("transform", matrix=(a, b, c, d, e, f))
    calls.put(s, "transform", encode.encode_transform(*matrix))
    s._matrices[-1] = multiplied(s._matrices[-1], matrix)
    s._note_push()


def _scale(matrix: Matrix) -> float:
    """Return how many pixels a matrix makes of one coordinate, on average."""
    a, b, c, d, _, _ = matrix
    return math.sqrt(abs(a * d - b * c))


# text -----------------------------------------------------------------------------------------
def text(
    s: Surface,
    text: str,
    x: float,
    y: float,
    paint: Paint,
    size: float = 16,
    font: Font = None,
    weight: str | int = "regular",
    align: str = "left",
    width: float | None = None,
    italic: bool = False,
    line_height: float = 1.2,
) -> None:
    """Draw text: any script, ligatures, emoji, several lines, as the text of scenes.

    In a color, and moved but not turned or scaled, it has the very pixels of a scene's text, with
    letters at quarters of a pixel. Otherwise the outlines of the letters are filled.

    >>> from dala import gpu
    >>> with gpu.create_surface(80, 24) as s:
    ...     s.text("Hello", 4, 2, "white")
    ...     bool(s.to_array()[..., 3].any())
    True

    Args:
        s: The surface.
        text: The text. Newlines start lines.
        x: The left edge of the text; without ``width``, its middle or right edge where ``align``
            is "center" or "right".
        y: The top of the first line, whose height is ``size * line_height``.
        paint: A color, gradient or pattern.
        size: The size of the font in pixels.
        font: A family, a .ttf or .otf file, or a list of them.
        weight: A name such as "bold", or 1 to 1000.
        align: "left", "center", "right", "justify", "start" or "end".
        width: The width to wrap lines to.
        italic: Whether letters are slanted.
        line_height: The distance of baselines, as a factor of the size.
    """
    x, y = numbers("text", "x y", (x, y))
    if not isinstance(text, str):
        raise CommandError.invalid("text", "text", "a str", text, "Use str(value).")
    letters = extensions.letters
    style = letters.style_of(
        "text", size=size, font=font, weight=weight, align=align, width=width, italic=italic,
        line_height=line_height,
    )  # fmt: skip
    id, rgba = calls.paint_of(s, "text", paint)
    if width is None and align in ("center", "right"):
        x -= letters.size_of_text(text, style)[0] * (0.5 if align == "center" else 1.0)
    a, b, c, d, e, f = matrix = s._matrices[-1]
    if (a, b, c, d) == (1, 0, 0, 1) and not id:
        whole, quarter = divmod(math.floor((x + e) * 4 + 0.5), 4)
        made = letters.picture_of_text(text, letters.with_color(style, rgba), quarter)
        left, top = made.offset
        at = whole + left - e, math.floor(y + f + 0.5) + top - f
        calls.image(s, made.pixels, *at, filter="nearest")  # whole pixels, no other sizes
        return
    path = letters.outline_of_text(text, style)
    if path is not None:
        calls.fill(s, path.transform((x, y)), paint)
        return
    scale = max(_scale(matrix), 1e-3)  # letters in color are pictures
    made = letters.picture_of_text(text, letters.with_color(style, rgba, scale), 0)
    height, across = (side / scale for side in made.pixels.shape[:2])
    dx, dy = (side / scale for side in made.offset)
    calls.image(s, made.pixels, x + dx, y + dy, across, height)


def measure_text(
    s: Surface,
    text: str,
    size: float = 16,
    font: Font = None,
    weight: str | int = "regular",
    width: float | None = None,
    italic: bool = False,
    line_height: float = 1.2,
) -> tuple[float, float]:
    """Return the width and height that :func:`text` takes with the same arguments.

    >>> from dala import gpu
    >>> with gpu.create_surface(8, 8) as s:
    ...     s.measure_text("Hello", size=40)[1]
    48.0
    """
    if not isinstance(text, str):
        raise CommandError.invalid("measure_text", "text", "a str", text, "Use str(value).")
    letters = extensions.letters
    style = letters.style_of(
        "measure_text", size=size, font=font, weight=weight, width=width, italic=italic,
        line_height=line_height,
    )  # fmt: skip
    return letters.size_of_text(text, style)


# SVG ------------------------------------------------------------------------------------------
def svg(
    s: Surface, svg: PathLike, x: float, y: float, w: float | None = None, h: float | None = None
) -> None:
    """Draw an SVG file, or the text of one, in the size that it is shown at.

    What it looks like is kept: the same file in the same size is drawn once.

    >>> from dala import gpu
    >>> disk = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2 2"><circle r="9"/></svg>'
    >>> with gpu.create_surface(3, 1) as s:
    ...     s.svg(disk, 1, 0, 2)
    ...     s.to_array()[0, :, 3].tolist()
    [0, 255, 255]

    Args:
        s: The surface.
        svg: The file, or the text of the document.
        x: The left edge.
        y: The top edge.
        w: The width; without it, its own, or what keeps its shape.
        h: The height; with the width, the box that it is fitted into.
    """
    x, y = numbers("svg", "x y", (x, y))
    for name, side in (("w", w), ("h", h)):
        if side is not None and not numbers("svg", name, (side,))[0] > 0:
            raise CommandError.invalid("svg", name, "a number above 0, or None", side)
    scale = _scale(s._matrices[-1])
    if scale:
        pixels, width, height = extensions.letters.svg_pixels(svg, "svg", scale, w, h)
        calls.image(s, pixels, x, y, width, height)


__all__ = ["measure_text", "pop", "push", "svg", "text", "transform"]
