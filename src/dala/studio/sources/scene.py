"""Scenes as sources: the file, and the scene it makes."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import ClassVar

from dala.media.scene.file.load import load_scene, read
from dala.studio.sources.source import StudioSource
from dala.typing import ImageLike


class SceneTab(StudioSource):
    """A scene of a file."""

    kind: ClassVar[str] = "scene"

    def __init__(self, path: Path, device: str | None) -> None:
        self.title, self.path = path.name, str(path)
        self.document = read(path)
        self._scene = load_scene(path, device)
        self.width, self.height = self._scene.width, self._scene.height
        self.rate = self._scene.frame_rate
        seconds = self._scene.duration
        self.duration = None if seconds is None else Fraction(seconds).limit_denominator(10**6)

    def at(self, time: Fraction) -> ImageLike:
        """Return the frame of a time."""
        return self._scene.render(time)

    def close(self) -> None:
        """Close the scene."""
        self._scene.close()
