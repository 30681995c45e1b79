"""Rich representations for notebooks: pictures as PNG, values and plans as HTML, of bounded size.

Objects have ``_repr_png_`` or ``_repr_html_`` methods, which notebooks call to show a value. They
return None where there is nothing to show, for example once an object was freed; the notebook then
shows its ``repr``. They change nothing, and all text in HTML is escaped.
"""

from __future__ import annotations

import base64
import html
import itertools
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from dala.png import encode_png
from dala.typing import NDArray

#: The largest width and height of a picture; larger ones are shrunk.
MAX_SIDE: Final = 1024
#: The largest number of characters of a text, and of rows of a table.
MAX_TEXT: Final = 20_000
MAX_ROWS: Final = 50
#: Bytes up to which pixels and numbers are read from a device.
MAX_BYTES: Final = 64 << 20
#: The least height and width of an array that counts as a picture.
LEAST_SIDE: Final = 8


def is_picture(shape: Sequence[int], dtype: str) -> bool:
    """Return True if an array is shown as a picture: gray u8, or RGB and RGBA of u8 and f32.

    >>> is_picture((48, 64, 3), "f32"), is_picture((48, 64), "f32"), is_picture((2, 2, 3), "u8")
    (True, False, False)
    """
    if len(shape) not in (2, 3) or min(shape[:2]) < LEAST_SIDE:
        return False
    if len(shape) == 2:
        return dtype == "u8"
    return shape[2] in (1, 3, 4) and dtype in ("u8", "f32")


def shrunk(pixels: NDArray) -> NDArray:
    """Return a picture of at most ``MAX_SIDE`` pixels a side: means of square blocks.

    >>> shrunk(np.zeros((3000, 10, 3), np.uint8)).shape
    (1000, 3, 3)
    """
    height, width = pixels.shape[:2]
    step = -(-max(height, width) // MAX_SIDE)
    if step <= 1:
        return pixels
    down, across = min(step, height), min(step, width)
    high, wide = height // down, width // across
    blocks = pixels[: high * down, : wide * across].reshape(
        high, down, wide, across, *pixels.shape[2:]
    )
    means: NDArray = blocks.mean(axis=(1, 3), dtype=np.float32)
    return (means + 0.5).astype(np.uint8) if pixels.dtype == np.uint8 else means


def picture_png(pixels: NDArray) -> bytes:
    """Return a picture as a PNG file; floats are 0 to 1, and large pictures are shrunk.

    >>> picture_png(np.zeros((8, 8, 3), np.float32))[:4]
    b'\\x89PNG'
    """
    small = shrunk(pixels)
    if small.dtype != np.uint8:
        finite = np.nan_to_num(small.astype(np.float32), nan=0.0, posinf=1.0, neginf=0.0)
        small = (np.clip(finite, 0.0, 1.0) * 255.0 + 0.5).astype(np.uint8)
    return encode_png(small)


def html_text(text: str) -> str:
    """Return text as preformatted HTML.

    >>> html_text("a < b")
    '<pre>a &lt; b</pre>'
    """
    if len(text) > MAX_TEXT:
        text = f"{text[:MAX_TEXT]}\n... {len(text) - MAX_TEXT} more characters"
    return f"<pre>{html.escape(text)}</pre>"


def html_picture(pixels: NDArray) -> str:
    """Return a picture as an HTML element that contains its PNG file.

    >>> html_picture(np.zeros((8, 8), np.uint8))[:32]
    '<img src="data:image/png;base64,'
    """
    data = base64.b64encode(picture_png(pixels)).decode("ascii")
    return f'<img src="data:image/png;base64,{data}">'


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]], count: int) -> str:
    """Return an HTML table of the first rows; ``count`` is the number of all.

    >>> html_table(["a"], [["<"]], 1)
    '<table><tr><th>a</th></tr><tr><td>&lt;</td></tr></table>'
    """
    lines = [_row("th", header)]
    lines += [_row("td", row) for row in itertools.islice(rows, MAX_ROWS)]
    if count > MAX_ROWS:
        lines.append(_row("td", [f"... {count - MAX_ROWS} more"]))
    return f"<table>{''.join(lines)}</table>"


def numbers_text(array: NDArray) -> str:
    """Return an array as text; large ones are abridged.

    >>> numbers_text(np.arange(3))
    '[0 1 2]'
    """
    return np.array2string(array, threshold=200, edgeitems=4, max_line_width=96)


def _row(tag: str, cells: Sequence[str]) -> str:
    inside = "".join(f"<{tag}>{html.escape(cell[:200])}</{tag}>" for cell in cells)
    return f"<tr>{inside}</tr>"
