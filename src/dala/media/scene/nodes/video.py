"""Video nodes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, cast

from dala.errors import DalaError, ParameterError
from dala.media.scene.compositor.pictures import LivePicture
from dala.media.scene.follow.follower import ShownPicture
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.audio import PAN, VOLUME
from dala.media.scene.nodes.json_types import JsonNumber, JsonString, OneOf, ParsedString
from dala.media.scene.nodes.node import Content, Node, NotNamed
from dala.media.scene.nodes.properties import PIP_ARGUMENTS, REQUIRED, Argument, Property, apply_pip
from dala.media.scene.nodes.times import PLAY_ARGUMENTS, whole
from dala.media.scene.options import frame_rate
from dala.media.sources.clip import POLICIES, ClipTimes
from dala.media.sources.open import open_source
from dala.media.sources.seconds import to_fraction

if TYPE_CHECKING:
    from dala.media.sources import Source
    from dala.media.sources.open import VideoInput
    from dala.media.sources.seconds import Moment
    from dala.media.video.reader import Reader

RATE: Final = OneOf(
    JsonNumber(0.001, 1000.0), ParsedString("a rate such as '30000/1001'", (), frame_rate)
)
_SHOWN_THEN: Final = t.ChoiceType(POLICIES)

#: Arguments that ``open_source`` takes.
SOURCE_ARGUMENTS: Final[dict[str, Argument]] = {
    "fps": Argument(
        t.PropertyType(RATE, "float | str | Fraction"),
        "Frame rate of frames that have no time of their own.",
    ),
    "offset": Argument(t.NumberType(), "Another name of ``start``, in seconds."),
    **PLAY_ARGUMENTS,
    "stall": Argument(_SHOWN_THEN, "What to show while a live frame is late: 'freeze' or 'hide'."),
    "hwaccel": Argument(
        t.StringType("the name of decoding hardware, or 'auto'", shortest=1),
        "Hardware that decodes the video, such as 'cuda', or 'auto'.",
    ),
}


@dataclass(eq=False, slots=True)
class OpenedStream:
    """A stream that ``add_video_async`` has opened, with the options of the node."""

    given: VideoInput
    source: Source


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
        "audio": Argument(t.BooleanType(), "Whether its own sound is heard.", default=True),
        **PIP_ARGUMENTS,
        **SOURCE_ARGUMENTS,
    }
    POSITIONAL = ("stream",)
    __slots__ = (
        "_hidden", "_length", "_live", "_seen", "_size", "_source", "audio", "options", "stream",
    )  # fmt: skip

    volume = Property(1.0, VOLUME, "Factor of its sound; 1 leaves it as it is.", drawn=False)
    pan = Property(
        0.0, PAN, "Where its sound is: from -1, left, to 1, right; 0 leaves it as it is.",
        drawn=False,
    )  # fmt: skip

    end = Property(
        None, t.TimeType(optional=True, words=POLICIES),
        "Time at which the node is gone; 'freeze' and 'hide' mean freeze=True and False.",
        unit="seconds", order=True,
    )  # fmt: skip

    def prepare(self, given: t.Values) -> None:
        """Take the arguments that are not properties."""
        apply_pip(given, "add_video", (self.scene.width, self.scene.height))
        #: The source as it was given, and the options it was opened with.
        self.stream = given.pop("stream", None)
        #: Whether its own sound is heard.
        self.audio: bool = self.take(given, "audio")
        self.options = {name: given.pop(name) for name in SOURCE_ARGUMENTS if name in given}
        if isinstance(given.get("end"), str) and given["end"] in POLICIES:
            self.options["end"] = given.pop("end")
        if "loop" in self.options:
            self.options["loop"] = whole(self.options["loop"])
        self.clip = self._clip(given)
        self._source: Source | None = None
        self._size: tuple[int, int] | None = None
        self._length: Fraction | None = None
        if isinstance(self.stream, OpenedStream):
            self.stream, self._source = self.stream.given, self.stream.source
        else:
            self._source = self._open()
        self._live = LivePicture(self.scene._compositor)
        self._seen: int | None = None
        self._hidden = True

    def take_times(self, given: t.Values) -> tuple[ClipTimes, t.Values]:
        """Return the times, which the source has; ``end`` follows from a duration."""
        given.pop("duration", None)
        given["end"] = self.clip.end
        return self.clip, {}

    def ready(self) -> None:
        """Close the source until its time."""
        self.approach(self.clip.is_near(self.scene._clock.moment()))

    def _clip(self, given: t.Values) -> ClipTimes:
        """Return the times in the arguments of the builder call."""
        names = ("offset", *PLAY_ARGUMENTS)
        played = {name: self.options[name] for name in names if name in self.options}
        policy = {"end": self.options["end"]} if "end" in self.options else {}
        times = {name: given[name] for name in ("start", "end", "duration") if name in given}
        if policy and ("end" in times or "freeze" in played):
            raise ParameterError(f"add_video: give freeze or end={policy['end']!r}, not both.")
        return ClipTimes.of("add_video", **policy, **played, **times, policies=True)

    def _open(self) -> Source:
        """Return the opened source; scene files have names for its options."""
        given = {k: v for k, v in self.options.items() if k not in ("offset", "end")}
        if "end" in self.options:
            given["freeze"] = self.options["end"] == "freeze"
        given |= {"start": self.clip.start, "end": self.clip.end}
        return open_source(self.stream, device=self.scene.device, **given)

    @property
    def source(self) -> Source:
        """The source; it is opened again if the node is out of its time."""
        if self._source is None:
            self._source = self._open()
            self._seen = None
        return self._source

    @property
    def live_reader(self) -> Reader | None:
        """The open video of a live source; None for all others, and out of its time."""
        return None if self._source is None else self._source.live_reader

    def changed(self, item: Property | None = None) -> None:
        """Mark the node as changed; its source follows its times."""
        super().changed(item)
        if item is not None and item.name in ("start", "end") and self._source is not None:
            if item.name == "start":
                self.options.pop("offset", None)
            self._source.clip = self.clip

    def retime(self, start: Fraction | None, end: Fraction | None) -> None:
        """Set the times that a timeline finds, of the source too."""
        super().retime(start, end)
        if self._source is not None:
            self._source.clip = self.clip

    def approach(self, near: bool) -> None:
        """Open the source shortly before its time, and close it after."""
        if near or not _reopens(self.stream):
            if near and self._source is None:
                try:
                    _ = self.source
                except (DalaError, OSError) as error:
                    self.scene._report(self, error)
            return
        self._close()

    def _close(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            self._size = self._size or source.size
            self._length = self._length or source.length
            source.close()

    def length(self) -> Fraction | None:
        """Return the seconds of the whole video, as far as they are known."""
        if self._length is None and self._source is not None:
            self._length = self._source.length
        if self._length is None:
            self._length = duration_of(self.stream)
        return self._length

    def saved_arguments(self) -> t.Values:
        """Return the source and its options."""
        named = isinstance(self.stream, str | int | os.PathLike) and not isinstance(
            self.stream, bool
        )
        source = self.stream if named else NotNamed(f"a {type(self.stream).__name__}")
        options = dict(self.options)
        if self.property_values["end"] is not None and "end" in options:
            options["freeze"] = options.pop("end") == "freeze"
        sound = {} if self.audio else {"audio": False}
        return {"source": source, **sound, **options}

    def advance(self, moment: Moment) -> None:
        """Show the frame of a time. The scene keeps errors of the source."""
        try:
            source = self.source
        except (DalaError, OSError) as error:  # the file is gone since it was added
            self.scene._report(self, error)
            return
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

    def shown(self, moment: Moment) -> ShownPicture | None:
        """Return the picture that the node shows at a time, as its source gave it."""
        source, picture = self.source, self.source.picture
        if self._hidden or picture is None or not all(n.present for n in (self, *self.around())):
            return None
        time = getattr(picture, "time", None)
        seconds = moment.seconds if time is None else float(time)
        return ShownPicture(picture, source.version, seconds, source.key)

    def content(self) -> Content | None:
        """Return the current frame."""
        return None if self._hidden else self._live.content()

    def natural(self) -> tuple[float, float]:
        """Return the video's size; (0, 0) before the first frame if the source does not know."""
        if self._live.picture is not None:
            return self._live.picture.width, self._live.picture.height
        if self._size is None:
            self._size = self.source.size
        size = self._size
        return (0.0, 0.0) if size is None else (float(size[0]), float(size[1]))

    def release(self) -> None:
        """Close the source."""
        self._close()


def _reopens(stream: object) -> bool:
    """Return True if a stream can be closed and opened again: a file, not a camera or generator."""
    if isinstance(stream, bool | int):
        return False
    if isinstance(stream, str):
        return "://" not in stream
    return isinstance(stream, os.PathLike | bytes)


def duration_of(stream: object) -> Fraction | None:
    """Return the duration of a video by its header; None if it is unknown, or not a video."""
    from dala.media import video
    from dala.media.video.reader import Reader

    if isinstance(stream, Reader):
        found = stream.duration
    elif _reopens(stream):
        with video.open(cast("str", stream)) as reader:
            found = reader.duration
    else:
        return None
    return None if not found else to_fraction("duration", found)
