"""Tone curves: through a few points, smooth, and never turning back between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.errors import ParameterError

#: Entries of a table; between them lines are straight.
SIZE = 1024


def table(master: Any, red: Any, green: Any, blue: Any, call: str) -> np.ndarray[Any, Any]:
    """(SIZE, 3) of f32: the channel's own curve, then the master's.

    >>> t = table([(0, 0), (1, 0.5)], None, None, [(0, 1), (1, 0)], "curves")
    >>> t[-1].tolist(), t[0].tolist()
    ([0.5, 0.5, 0.0], [0.0, 0.0, 0.5])
    """
    at = np.linspace(0.0, 1.0, SIZE)
    columns = []
    for name, points in (("red", red), ("green", green), ("blue", blue)):
        own = at if points is None else curve(points, at, name, call)
        columns.append(own if master is None else curve(master, own, "master", call))
    return np.stack(columns, axis=-1).astype(np.float32)


def curve(points: Any, at: Any, name: str, call: str) -> np.ndarray[Any, Any]:
    """A monotone cubic through points (x, y), level beyond the first and the last.

    Slopes are harmonic means of the neighbouring chords' (Fritsch and Butland), 0 where the chords
    turn: between two points the curve stays between them.
    """
    try:
        x, y = np.array(points, np.float64).T
    except (TypeError, ValueError):
        x = y = np.zeros(0)
    fits = x.ndim == 1 and x.size >= 2 and np.isfinite(x).all() and np.isfinite(y).all()
    if not fits or (np.diff(x) <= 0).any() or x[0] < 0 or x[-1] > 1:
        raise ParameterError(
            f"{call}: {name} is two or more points (x, y), x rising within 0..1, such as "
            f"[(0, 0), (0.5, 0.6), (1, 1)]; {points!r} came."
        )
    run, chord = np.diff(x), np.diff(y) / np.diff(x)
    slope = np.zeros_like(x)
    slope[0], slope[-1] = chord[0], chord[-1]
    if x.size > 2:
        before, after = chord[:-1], chord[1:]
        w1, w2 = 2 * run[1:] + run[:-1], run[1:] + 2 * run[:-1]
        same = before * after > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (w1 + w2) / (w1 / before + w2 / after)
        slope[1:-1] = np.where(same, mean, 0.0)
    t = np.clip(np.asarray(at, np.float64), x[0], x[-1])
    i = np.clip(np.searchsorted(x, t, side="right") - 1, 0, x.size - 2)
    h = run[i]
    u = (t - x[i]) / h
    left = (1 + 2 * u) * (1 - u) ** 2 * y[i] + u * (1 - u) ** 2 * h * slope[i]
    right = u**2 * (3 - 2 * u) * y[i + 1] + u**2 * (u - 1) * h * slope[i + 1]
    return np.asarray(left + right)
