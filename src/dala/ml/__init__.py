"""The models room: classify, detect, find faces and poses, segment.

- ``dala.ml.gpu``: ``load_model``, ``predict``, ``top_k``, ``available_models``
- ``dala.ml.preprocess``: a picture as the tensor that a model takes, in one pass on any device
- ``dala.ml.results``: what models find, in pixels of the picture they were given

>>> import numpy as np
>>> import dala
>>> dala.ml.preprocess(np.zeros((480, 640, 3), np.uint8), size=(224, 224), device="cpu").shape
(1, 3, 224, 224)
"""

from __future__ import annotations

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.ml import gpu as gpu
    from dala.ml import results as results
    from dala.ml.background import Background as Background
    from dala.ml.model import Model as Model
    from dala.ml.prepare import preprocess as preprocess

#: Modules that are imported when their name is first used.
_ROOMS = ("gpu", "results")

#: The module that holds each name.
_HOMES = {
    "Background": "dala.ml.background",
    "Model": "dala.ml.model",
    "preprocess": "dala.ml.prepare",
}

__all__ = ["Background", "Model", "gpu", "preprocess", "results"]

if not TYPE_CHECKING:  # so that type checkers refuse a misspelt name, as Python does
    __getattr__, __dir__ = attach(__name__, _HOMES, _ROOMS)
