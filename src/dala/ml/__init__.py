"""Models: classification, detection, faces, poses, segmentation.

- ``dala.ml.gpu``: ``load_model``, ``predict``, ``top_k``, ``available_models``; for asyncio
  ``load_model_async`` and ``predict_async``
- ``dala.ml.preprocess``: convert a picture to a model's input tensor, in one pass on any device
- ``dala.ml.results``: the types of results, with coordinates in pixels of the picture
- ``dala.ml.face``, ``hand``, ``pose``: descriptions of what a model will find, such as
  ``dala.ml.face.point("nose")``, ``dala.ml.pose.bone("left_wrist", "left_elbow")``
- ``dala.ml.smooth``: ``Smoother`` and the One-Euro filter, for points of videos that do not jitter
- ``dala.ml.track``: ``Tracker``, which gives objects the same id from frame to frame
- ``dala.ml.watch``: what nodes of a scene follow in one of its videos

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
    from dala.ml import smooth as smooth
    from dala.ml import track as track
    from dala.ml.background import Background as Background
    from dala.ml.follow.watch import Watcher as Watcher
    from dala.ml.follow.watch import watch as watch
    from dala.ml.hide import FaceHider as FaceHider
    from dala.ml.landmarks.targets import Subject as Subject
    from dala.ml.landmarks.targets import face as face
    from dala.ml.landmarks.targets import hand as hand
    from dala.ml.landmarks.targets import pose as pose
    from dala.ml.model import Model as Model
    from dala.ml.prepare import preprocess as preprocess

#: Modules, imported on first use.
_ROOMS = ("gpu", "results", "smooth", "track")

#: The module of each name.
_HOMES = {
    "Background": "dala.ml.background",
    "FaceHider": "dala.ml.hide",
    "Model": "dala.ml.model",
    "Subject": "dala.ml.landmarks.targets",
    "face": "dala.ml.landmarks.targets",
    "hand": "dala.ml.landmarks.targets",
    "pose": "dala.ml.landmarks.targets",
    "Watcher": "dala.ml.follow.watch",
    "preprocess": "dala.ml.prepare",
    "watch": "dala.ml.follow.watch",
}

__all__ = [
    "Background",
    "FaceHider",
    "Model",
    "Subject",
    "Watcher",
    "face",
    "gpu",
    "hand",
    "pose",
    "preprocess",
    "results",
    "smooth",
    "track",
    "watch",
]

if not TYPE_CHECKING:  # so that type checkers reject a misspelled name, as Python does
    __getattr__, __dir__ = attach(__name__, _HOMES, _ROOMS)
