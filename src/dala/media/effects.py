"""Realtime effects: grading, virtual backgrounds, overlays.

They take and return the same kinds of pictures as the filters of ``dala.media.gpu``, and lists for
``process_frame`` may hold them by the same names. ``beauty``, look-up tables and chroma keys are
plain filters.

>>> import numpy as np
>>> from dala.media import effects
>>> effects.grade(np.full((1, 1, 3), 100, np.uint8), gain=0.5, device="cpu").tolist()
[[[50, 50, 50]]]
"""

from __future__ import annotations

from dala.media.filters.calls import call, call_names


def __getattr__(name: str) -> object:
    if name == "__all__":
        return call_names("effects")
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    globals()[name] = made = call(name, "effects")
    return made


def __dir__() -> list[str]:
    return call_names("effects")
