"""Fields of numbers and paths in commands: checks, and their bytes."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, cast

from dala.arguments import items_of
from dala.errors import CommandError

_LENGTH: Final = struct.Struct("<I")
_PATH: Final = struct.Struct("<II")
#: An id and a place.
PLACE: Final = struct.Struct("<Qii")

#: The number of points of each verb, and the largest numbers of verbs and of dashes.
VERB_POINTS: Final = (1, 1, 2, 3, 0)
MOVE, CLOSE = 0, 4
MAX_VERBS: Final = 1 << 20
MAX_NUMBERS: Final = 1 << 12


class PathData(NamedTuple):
    """A path as it is in a stream: one byte for each verb, and little-endian f64 coordinates.

    Verbs are 0 move, 1 line, 2 quad, 3 cubic and 4 close, with 1, 1, 2, 3 and 0 points. The first
    is a move, and after a close comes a move.
    """

    verbs: bytes
    points: bytes


def as_float(call: str, name: str, value: object) -> float:
    """Return a finite number as a float; an error names the call and its argument."""
    try:
        number = float(value)  # type: ignore[arg-type]
        if math.isfinite(number) and not isinstance(value, str):
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise CommandError.invalid(call, name, "a finite number", value)


def encode_numbers(call: str, name: str, value: object) -> bytes:
    """Return the bytes of a list of numbers."""
    found: list[object] | None = items_of(cast("Iterable[object]", value))
    if found is None or len(found) > MAX_NUMBERS:
        raise CommandError.invalid(call, name, f"a list of at most {MAX_NUMBERS} numbers", value)
    made = [as_float(call, f"{name}[{n}]", each) for n, each in enumerate(found)]
    return _LENGTH.pack(len(made)) + struct.pack(f"<{len(made)}d", *made)


def encode_places(call: str, name: str, value: object) -> bytes:
    """Return ids and places: tuples, or their bytes."""
    if not isinstance(value, bytes):
        found: list[Any] | None = items_of(cast("Iterable[Any]", value))
        try:
            value = b"".join(PLACE.pack(*map(int, each)) for each in found or ())
        except (TypeError, ValueError, struct.error):
            found = None
        if found is None:
            raise CommandError.invalid(call, name, "a list of (id, x, y)", value)
    assert isinstance(value, bytes)
    if len(value) % PLACE.size:
        raise CommandError.invalid(call, name, "16 bytes for each place", len(value))
    return _LENGTH.pack(len(value) // PLACE.size) + value


def encode_path(call: str, name: str, value: object) -> bytes:
    """Return the bytes of a path: anything with ``verbs`` and ``points``."""
    verbs: object = getattr(value, "verbs", None)
    points: Any = getattr(value, "points", None)
    if hasattr(points, "astype"):
        points = points.astype("<f8").tobytes()
    if isinstance(verbs, bytes) and isinstance(points, bytes):
        found = _PATH.pack(len(verbs), len(points) // 16) + verbs + points
        problem = path_problem(PathData(verbs, points))
        if not problem:
            return found
        raise CommandError(f"{call}: {name} is no valid path: {problem}.", call=call, argument=name)
    raise CommandError.invalid(call, name, "a Path", value)


def path_problem(data: PathData) -> str:
    """Return the error in a path; "" if there is none."""
    import numpy as np  # after the first drawing call, not with dala.gpu

    verbs = np.frombuffer(data.verbs, np.uint8)
    if len(verbs) > MAX_VERBS:
        return f"it has more than {MAX_VERBS} verbs"
    if len(verbs) and verbs.max() > CLOSE:
        return f"verbs are 0 to {CLOSE}"
    starts = np.concatenate(([CLOSE], verbs[:-1])) == CLOSE
    if len(verbs) and (starts & (verbs != MOVE)).any():
        return "a move must come first, and after each close"
    if len(data.points) != 16 * int(np.take(VERB_POINTS, verbs).sum()):
        return "the number of points is not that of the verbs"
    return "" if np.isfinite(np.frombuffer(data.points, "<f8")).all() else "points must be finite"
