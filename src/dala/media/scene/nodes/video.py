"""Video nodes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar, Final

from dala.media.scene.clock import frame_rate
from dala.media.scene.compositor.pictures import LivePicture
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.json_types import (
    JsonNumber,
    JsonString,
    OneOf,
    ParsedString,
    PositiveNumber,
)
from dala.media.scene.nodes.node import Content, Node, NotNamed
from dala.media.scene.nodes.pip import PIP_ARGUMENTS, apply_pip
from dala.media.scene.nodes.properties import REQUIRED, Argument

if TYPE_CHECKING:
    from dala.media.scene.nodes.group import GroupNode
    from dala.media.scene.scene import Scene
    from dala.media.sources import Source
    from dala.media.sources.moment import Moment
    from dala.media.sources.open import VideoInput

RATE: Final = OneOf(
    JsonNumber(0.001, 1000.0), ParsedString("a rate such as '30000/1001'", (), frame_rate)
)
_SHOWN_THEN: Final = t.ChoiceType(("freeze", "hide"))

#: Arguments that ``open_source`` takes.
SOURCE_ARGUMENTS: Final[dict[str, Argument]] = {
    "fps": Argument(
        t.ParsedType(RATE, "float | str | Fraction"),
        "Frame rate of frames that have no time of their own.",
    ),
    "offset": Argument(t.NumberType(), "Scene time at which the video starts, in seconds."),
    "speed": Argument(
        t.ParsedType(PositiveNumber(), "float | Fraction"),
        "Seconds of video per second of scene time.",
    ),
    "loop": Argument(t.BooleanType(), "Start over at the end."),
    "end": Argument(_SHOWN_THEN, "What to show after the end: 'freeze' or 'hide'."),
    "stall": Argument(_SHOWN_THEN, "What to show while a live frame is late: 'freeze' or 'hide'."),
    "hwaccel": Argument(
        t.StringType("the name of decoding hardware, or 'auto'", shortest=1),
        "Hardware that decodes the video, such as 'cuda', or 'auto'.",
    ),
}


class OpenedStream:
    """A stream that ``add_video_async`` has opened, with the options of the node."""

    __slots__ = ("given", "source")

    def __init__(self, given: VideoInput, source: Source) -> None:
        self.given = given
        self.source = source


class VideoNode(Node):
    """A video. It shows the newest frame of its source that is not later than the scene's time.

    The source is a path, an open video, an iterator of Frames or arrays, or a live source; see
    ``dala.media.sources.open_source``.

    >>> import dala
    >>> import numpy as np
    >>> with dala.media.Scene(64, 36, device="cpu") as scene:
    ...     frames = [np.full((36, 64, 3), level, np.uint8) for level in (0, 255)]
    ...     video = scene.add_video(iter(frames), fps=1, size=(32, 18))
    ...     np.asarray(scene.render(1.0))[0, 0].tolist()
    [255, 255, 255, 255]
    """

    type = "video"
    OWN_ARGUMENTS: ClassVar[dict[str, Argument]] = {
        "stream": Argument(
            t.PathType(
                "VideoSource",
                OneOf(
                    JsonString("the path of a file", shortest=1),
                    JsonNumber(0, 1000, integer=True),
                ),
            ),
            "A file (relative to the scene file), a URL, or the number of a camera.",
            default=REQUIRED,
            key="source",
        ),
        **PIP_ARGUMENTS,
        **SOURCE_ARGUMENTS,
    }
    POSITIONAL = ("stream",)
    __slots__ = ("_hidden", "_live", "_seen", "options", "source", "stream")

    def __init__(self, scene: Scene, parent: GroupNode, given: t.Values) -> None:
        from dala.media.sources.open import open_source

        given = apply_pip(given, "add_video")
        #: The source as it was given, and the options it was opened with.
        self.stream = given.pop("stream", None)
        self.options = {name: given.pop(name) for name in SOURCE_ARGUMENTS if name in given}
        if isinstance(self.stream, OpenedStream):
            self.stream, self.source = self.stream.given, self.stream.source
        else:
            self.source = open_source(self.stream, device=scene.device, **self.options)
        self._live = LivePicture(scene._compositor)
        self._seen: int | None = None
        self._hidden = True
        try:
            super().__init__(scene, parent, given)
        except BaseException:
            self.source.close()
            raise

    def saved_arguments(self) -> t.Values:
        """Return the source and its options."""
        named = isinstance(self.stream, str | int | os.PathLike) and not isinstance(
            self.stream, bool
        )
        source = self.stream if named else NotNamed(f"a {type(self.stream).__name__}")
        return {"source": source, **self.options}

    def advance(self, moment: Moment) -> None:
        """Show the frame of a time. The scene keeps errors of the source."""
        source = self.source
        frame = source.at(moment)
        if source.error is not None:
            self.scene._report(self, source.error)
        if frame is None:
            if not self._hidden:
                self._hidden = True
                self.changed()
            return
        if self._hidden or source.version != self._seen:
            try:
                self._live.show(frame)
            except Exception as error:  # a frame that cannot be shown must not stop the scene
                self.scene._report(self, error)
                self._seen = source.version
                return
            self._seen = source.version
            if self._hidden or self.display_item is None:
                self._hidden = False
                self.changed()
            else:
                self.display_item.repaint(self._live)

    def content(self) -> Content | None:
        """Return the current frame."""
        live = self._live
        if self._hidden or live.picture is None:
            return None
        picture = live.picture
        return Content(picture.width, picture.height, picture, live.version, opaque=live.opaque)

    def natural(self) -> tuple[float, float]:
        """Return the video's size; (0, 0) before the first frame if the source does not know."""
        if self._live.picture is not None:
            return self._live.picture.width, self._live.picture.height
        size = self.source.size
        return (0.0, 0.0) if size is None else (float(size[0]), float(size[1]))

    def release(self) -> None:
        """Close the source."""
        self.source.close()
