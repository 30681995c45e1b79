"""The source of a tab: a picture for every time."""

from __future__ import annotations

import os
from abc import abstractmethod
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from dala.resources import Closing
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.typing import ImageLike, NDArray, PathLike

if TYPE_CHECKING:
    from dala.media.sources.types import Source
    from dala.media.video.reader import Reader
    from dala.untrusted.opened import Opened


#: What the state says about a source.
_FACTS: Final = (
    "kind", "title", "path", "width", "height", "duration", "rate", "live", "seekable",
)  # fmt: skip


class StudioSource(Closing):
    """A source of pictures; ``at`` is called on the render thread only.

    Attributes:
        kind: "picture", "video", "camera", "scene" or "kernel".
        title: the name that the tab shows.
        path: the file, or "" if there is none.
        width: of its pictures, in pixels.
        height: of its pictures, in pixels.
        duration: seconds, or None.
        rate: pictures per second, or None for a still one.
        live: whether time cannot be chosen.
    """

    kind: ClassVar[str] = "picture"
    title = ""
    path = ""
    #: The number or name of a camera, as ``camera.open`` takes it.
    camera: str | int = ""
    width = height = 0
    duration: Fraction | None = None
    rate: Fraction | None = None
    live = False

    @property
    def dirty(self) -> bool:
        """Whether it has changes that its file does not have."""
        return False

    @property
    def seekable(self) -> bool:
        """Whether it has a time line."""
        return self.rate is not None and not self.live

    @abstractmethod
    def at(self, time: Fraction) -> ImageLike | None:
        """Return the picture of a time; None if there is none (yet)."""

    def facts(self) -> JsonObject:
        """Return the source as the state lists it."""
        found = {name: getattr(self, name) for name in _FACTS}
        return {n: float(v) if isinstance(v, Fraction) else v for n, v in found.items()}

    def tree(self) -> Json:
        """Return the nodes of a scene; None for other sources."""
        return None

    def restore(self, contents: object) -> None:
        """Show the source's own contents that undo or redo returned."""

    def close(self) -> None:
        """Close the file. Closing twice is allowed."""


class StillPicture(StudioSource):
    """One picture.

    >>> import numpy as np
    >>> StillPicture(np.zeros((2, 3, 4), np.uint8), "dot").facts()["width"]
    3
    """

    def __init__(self, pixels: NDArray, title: str, path: str = "") -> None:
        self._pixels = pixels
        self.title, self.path = title, path
        self.height, self.width = pixels.shape[:2]

    @classmethod
    def open(cls, file: PathLike, max_pixels: int, path: str = "") -> StillPicture:
        """Open a file: upright, in sRGB, gray, RGB or RGBA of eight bits; ``path`` is its name.

        Raises:
            OSError, DalaError: it cannot be read.
        """
        from dala.media.files import load

        image = load(file, max_pixels)
        if image.mode == "I;16":  # sixteen bits of gray
            pixels = (np.asarray(image) // 257).astype(np.uint8)
        else:
            pixels = np.asarray(image)
        path = path or os.fspath(file)
        return cls(np.ascontiguousarray(pixels), Path(path).name, path)

    def at(self, time: Fraction) -> ImageLike:
        """Return the picture."""
        return self._pixels


class KernelPicture(StillPicture):
    """A sample picture under the kernel of a file."""

    kind: ClassVar[str] = "kernel"


class ReaderSource(StudioSource):
    """The pictures of a reader."""

    def __init__(self, reader: Reader, rate: Fraction, title: str, device: str | None) -> None:
        from dala.media.sources.open import open_source

        self._reader, self.rate, self.title = reader, rate, title
        self.width, self.height = reader.width, reader.height
        try:
            self._source: Source = open_source(reader, device=device)
        except BaseException:
            reader.close()
            raise

    def at(self, time: Fraction) -> ImageLike | None:
        """Return the newest picture not later than a time."""
        found = self._source.at(time)
        if found is None and self._source.error is not None and not self.live:
            raise self._source.error
        return found

    def close(self) -> None:
        """Close the reader."""
        self._source.close()
        self._reader.close()


class MovingFile(ReaderSource):
    """A video, or an animated picture."""

    kind: ClassVar[str] = "video"

    def __init__(self, file: Opened | Path, device: str | None) -> None:
        from dala.media import video

        name = file if isinstance(file, Path) else file.name
        #: What is opened: the file that was checked, or a sample.
        self.file: PathLike = file
        reader = video.open(file, device=device)
        super().__init__(reader, reader.fps or Fraction(25), name.name, device)
        self.path = str(name)
        if reader.duration is not None:
            self.duration = Fraction(reader.duration).limit_denominator(10**6)


class CameraFeed(ReaderSource):
    """A camera; always its newest picture."""

    kind: ClassVar[str] = "camera"
    live = True

    def __init__(self, camera: str | int, device: str | None) -> None:
        from dala.media import camera as cameras

        self.camera = camera
        reader = cameras.open(camera, device=device)
        title = "Test camera" if camera == "test" else reader.name
        super().__init__(reader, min(reader.fps or Fraction(30), Fraction(60)), title, device)
