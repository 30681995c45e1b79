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

from dala.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
