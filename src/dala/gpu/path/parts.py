"""Parts of paths, by length, and paths in the other direction."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dala.budget import checked
from dala.gpu.path import curves
from dala.gpu.path.curves import CLOSE, LINE, MOVE, POINTS, Segments
from dala.typing import NDArray


def spot(found: Segments, lengths: NDArray, distance: float) -> tuple[int, float]:
    """Return the segment at a distance from the start, and the parameter on it."""
    ends = np.cumsum(lengths)
    at = min(int(np.searchsorted(ends, distance)), len(ends) - 1)
    rest = distance - (float(ends[at - 1]) if at else 0.0)
    length = float(lengths[at])
    if found.straight[at]:
        return at, min(max(rest / length, 0.0), 1.0) if length else 0.0
    return at, curves.parameter_at(found.cubics[at], rest, length)


def trimmed(
    verbs: bytes, points: NDArray, found: Segments, lengths: NDArray, start: float, end: float
) -> tuple[bytes, NDArray]:
    """Return the part of a path between two fractions of its length.

    Contours that are whole stay closed; of others, the line that closes them is a line.
    """
    total = float(lengths.sum())
    first, from_t = spot(found, lengths, start * total)
    last, to_t = spot(found, lengths, end * total)
    if start == 0:
        first, from_t = 0, 0.0
    if end == 1:
        last, to_t = len(lengths) - 1, 1.0
    kept = bytearray()
    rows: list[NDArray] = []
    contour = -1
    for kind, at, number, whole, controls in _pieces(verbs, points, found):
        if not first <= at <= last:
            continue
        low, high = from_t if at == first else 0.0, to_t if at == last else 1.0
        if low >= high and not (low == 0 and high == 1):
            continue
        if (low, high) != (0.0, 1.0):
            controls = curves.part(controls, low, high)
        if number != contour:
            kept.append(MOVE)
            rows.append(controls[:1])
            contour = number
        begins, ends = whole
        entire = first <= begins and ends <= last and (begins > first or from_t == 0)
        if kind == CLOSE and entire and high == 1:
            kept.append(CLOSE)
            continue
        kept.append(LINE if kind == CLOSE else kind)
        rows.append(controls[1:])
    return bytes(kept), np.concatenate(rows) if rows else np.empty((0, 2))


def _pieces(
    verbs: bytes, points: NDArray, found: Segments
) -> Iterator[tuple[int, int, int, tuple[int, int], NDArray]]:
    """Yield each segment: its kind, index, contour, the segments of that contour, its controls."""
    kinds = np.frombuffer(verbs, np.uint8)
    contours = np.cumsum(kinds == MOVE)[found.verb]
    ends = np.cumsum(np.array(POINTS)[kinds])
    begins = np.searchsorted(contours, contours, "left")
    stops = np.searchsorted(contours, contours, "right") - 1
    for at, verb in checked(enumerate(found.verb.tolist()), "Path.trim"):
        kind = verbs[verb]
        stop = int(ends[verb])
        if kind == CLOSE:
            controls = found.cubics[at][[0, 3]]
        else:
            controls = points[stop - POINTS[kind] - 1 : stop]
        yield kind, at, int(contours[at]), (int(begins[at]), int(stops[at])), controls


def backward(verbs: bytes, points: NDArray) -> tuple[bytes, NDArray]:
    """Return a path in the other direction, its contours in the other order."""
    parts: list[tuple[bytes, NDArray]] = []
    at = 0
    for contour in verbs.split(bytes([MOVE]))[1:]:
        count = 1 + sum(POINTS[verb] for verb in contour)
        rows = points[at : at + count][::-1]
        at += count
        drawn = contour.rstrip(bytes([CLOSE]))[::-1]
        if len(drawn) != len(contour):
            if (rows[0] != rows[-1]).any():  # the closing line comes first now
                drawn, rows = bytes([LINE]) + drawn, np.concatenate([rows[-1:], rows])
                if drawn[-1] == LINE:  # and the first line closes
                    drawn, rows = drawn[:-1], rows[:-1]
            drawn += bytes([CLOSE])
        parts.append((bytes([MOVE]) + drawn, rows))
    parts.reverse()
    joined = [rows for _, rows in parts]
    return b"".join(part for part, _ in parts), np.concatenate(joined) if joined else points
