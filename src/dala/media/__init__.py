"""Pictures, video, filters, effects and scenes.

- ``dala.media.gpu``: filters
- ``dala.media.effects``: grading, virtual backgrounds, overlays
- ``dala.media.video``: video files
- ``dala.media.audio``: sound
- ``dala.media.camera``, ``dala.media.microphone``, ``dala.media.screen``, ``dala.media.live``: live
  pictures and sound in and out
- ``dala.media.scene``: ``Scene`` composes video, pictures, text and effects into frames
- ``Frame``: a picture with its time and color coding; ``FramePipeline``: filters on many frames
- ``TexturePool``: pictures, ``Texture``, that are loaded once and drawn many times

>>> import numpy as np
>>> import dala
>>> picture = np.full((4, 4, 3), 100, np.uint8)
>>> int(dala.media.gpu.brightness(picture, value=0.2, device="cpu")[0, 0, 0])
151
"""

from __future__ import annotations

from dala.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, renamed={"scene_file": "scene"})
