"""Import every built-in node type, which registers it."""

from __future__ import annotations

from dala.media.scene.nodes.audio import AudioNode
from dala.media.scene.nodes.effect import EffectNode
from dala.media.scene.nodes.group import GroupNode
from dala.media.scene.nodes.image import ImageNode, OverlayNode
from dala.media.scene.nodes.nested import SceneNode
from dala.media.scene.nodes.text import SubtitlesNode, TextNode
from dala.media.scene.nodes.timeline import TimelineNode
from dala.media.scene.nodes.video import VideoNode

__all__ = [
    "AudioNode",
    "EffectNode",
    "GroupNode",
    "ImageNode",
    "OverlayNode",
    "SceneNode",
    "SubtitlesNode",
    "TextNode",
    "TimelineNode",
    "VideoNode",
]
