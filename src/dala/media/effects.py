"""Realtime effects: grading, virtual backgrounds, overlays.

They take and return the same kinds of pictures as the filters of ``dala.media.gpu``, and lists for
``FramePipeline`` may hold them by the same names. ``beauty``, look-up tables and chroma keys are
plain filters.

>>> import numpy as np
>>> from dala.media import effects
>>> effects.grade(np.full((1, 1, 3), 100, np.uint8), gain=0.5, device="cpu").tolist()
[[[50, 50, 50]]]
"""

from __future__ import annotations

from dala.media.filters.calls import lazy_calls

__getattr__, __dir__ = lazy_calls("effects", globals())
