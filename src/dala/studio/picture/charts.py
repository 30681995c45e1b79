"""Histogram and waveform of a picture, counted on our engine."""

from __future__ import annotations

import base64
from typing import Final

import numpy as np

from dala.gpu.compute import Buffer, buffer
from dala.gpu.compute.kernel import get
from dala.media import gpu
from dala.studio.catalogue.parameters import JsonObject
from dala.typing import NDArray

CHARTS: Final = ("histogram", "waveform")
#: Columns of the waveform: four strips of 64 tiles, which one count can have.
_STRIPS, _TILES = 4, 64
_COLUMNS: Final = _STRIPS * _TILES
#: Pixels of the picture that is counted for the waveform.
_WIDTH, _HEIGHT = 2 * _COLUMNS, 360
#: Levels of luma that the waveform shows.
_LEVELS: Final = 128


def histogram(pixels: NDArray, device: str | None = None) -> JsonObject:
    """Return how many pixels have each level of red, green, blue and luma.

    >>> histogram(np.full((2, 3, 4), 7, np.uint8), "cpu")["r"][7]
    6
    """
    with buffer(pixels, dtype="u8", device=device) as picture:
        colors = _counts(picture, of="channels")[0, 0, :3]
        luma = _counts(picture, of="luma")[0, 0, :1]
    counts = np.concatenate((colors, luma)).tolist()
    return dict(zip(("r", "g", "b", "luma"), counts, strict=True))


def waveform(pixels: NDArray, device: str | None = None) -> JsonObject:
    """Return, for each column of the picture, how many pixels have a luma; bright on top.

    >>> made = waveform(np.full((8, 8, 4), 255, np.uint8), "cpu")
    >>> made["width"], made["height"], base64.b64decode(made["values"])[:2]
    (256, 128, b'\\xff\\xff')
    """
    # The nearest pixels, so that no level appears that the picture does not have.
    small = np.asarray(gpu.resize(pixels, _WIDTH, _HEIGHT, method="nearest", device=device))
    wide = _WIDTH // _STRIPS
    parts = []
    for number in range(_STRIPS):
        part = np.ascontiguousarray(small[:, number * wide : (number + 1) * wide])
        with buffer(part, dtype="u8", device=device) as strip:
            parts.append(_counts(strip, tiles=(1, _TILES), of="luma")[0, :, 0])
    counts = np.concatenate(parts).reshape(_COLUMNS, _LEVELS, -1).sum(2).T[::-1]
    # The square root keeps rare levels visible; all pixels of a column are 255.
    most = _HEIGHT * _WIDTH / _COLUMNS
    values = np.ceil(np.sqrt(counts / most) * 255).astype(np.uint8)
    text = base64.b64encode(values.tobytes()).decode()
    return {"width": _COLUMNS, "height": _LEVELS, "values": text}


def _counts(picture: Buffer, of: str, tiles: tuple[int, int] = (1, 1)) -> NDArray:
    with get("tile_histogram")(picture, of=of, tiles=tiles) as made:
        return made.numpy().copy()
