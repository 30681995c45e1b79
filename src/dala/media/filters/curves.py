"""Tone curves: monotone cubics through a few points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dala import memory
from dala.errors import ParameterError

#: Points (x, y) of a curve, from left to right.
Points: TypeAlias = Sequence[tuple[float, float]]

#: Entries of a table; lookups between them are linear.
SIZE = 1024


def table(curves: Mapping[str, Points | None]) -> npt.NDArray[np.float32]:
    """Return a table of (SIZE, 3): each channel's own curve, then the master curve.

    Args:
        curves: points by "red", "green", "blue" and "master"; curves that are left out change
            nothing.

    >>> t = table({"master": [(0, 0), (1, 0.5)], "blue": [(0, 1), (1, 0)]})
    >>> t[-1].tolist(), t[0].tolist()
    ([0.5, 0.5, 0.0], [0.0, 0.0, 0.5])
    """
    at = np.linspace(0.0, 1.0, SIZE)
    master = curves.get("master")
    columns = []
    for name in ("red", "green", "blue"):
        points = curves.get(name)
        own = at if points is None else curve(points, at, name)
        columns.append(own if master is None else curve(master, own, "master"))
    return np.stack(columns, axis=-1).astype(np.float32)


def curve(points: Points, at: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.float64]:
    """Evaluate a monotone cubic through points (x, y), constant beyond the first and the last.

    Slopes are harmonic means of the neighboring chords' slopes (Fritsch and Butland), and 0 where
    the chords change direction: between two points the curve stays between them.

    Args:
        points: two or more, with increasing x.
        at: where to evaluate.
        name: the curve's parameter, for errors.
    """
    if isinstance(points, np.ndarray):
        memory.check_copy(8 * points.size, "curves")
    try:
        x, y = np.array(points, np.float64).T
    except (TypeError, ValueError):
        x = y = np.zeros(0)
    fits = x.ndim == 1 and x.size >= 2 and np.isfinite(x).all() and np.isfinite(y).all()
    if not fits or (np.diff(x) <= 0).any() or x[0] < 0 or x[-1] > 1:
        raise ParameterError.invalid(
            "curves",
            name,
            "two or more points (x, y) with x increasing from 0 to 1",
            points,
            "Write [(0, 0), (0.5, 0.6), (1, 1)].",
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
