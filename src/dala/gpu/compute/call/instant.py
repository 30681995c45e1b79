"""Values that surroundings give to kernels: time, frame, pointer and date."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from dala.gpu.compute.runnable import Runnable
from dala.typing import ParamValue


class Instant(NamedTuple):
    """A frame of a video, a scene or a surface.

    Attributes:
        time: seconds since its beginning.
        frame: the number of the frame, from 0.
        pointer: the pointer in pixels, and 1 while it is pressed.
    """

    time: float = 0.0
    frame: int = 0
    pointer: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def given(self, kernel: Runnable) -> dict[str, ParamValue]:
        """Return the parameters of a kernel that the moment gives, by name."""
        found: dict[str, ParamValue] = {}
        for name, role in kernel.roles:
            if role == "date":
                now = datetime.now()
                seconds = (now.hour * 60 + now.minute) * 60 + now.second + now.microsecond / 1e6
                found[name] = (now.year, now.month, now.day, seconds)
            elif role != "resolution":  # the program knows its output
                found[name] = getattr(self, role)
        return found


BEGINNING = Instant()
