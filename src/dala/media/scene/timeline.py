"""Timelines to be: clips one after another, before they are added to a scene."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Self

from dala.errors import ParameterError, counted, masked
from dala.media.frame import Frame
from dala.media.scene.nodes import timeline as nodes
from dala.media.scene.nodes.property_types import NodeArgument, Values
from dala.media.scene.nodes.timeline import TimelineNode
from dala.media.scene.nodes.video import duration_of
from dala.media.scene.options import RenderOptions
from dala.media.scene.output import render_to
from dala.media.scene.scene import Scene
from dala.media.sources.clip import ClipTimes
from dala.media.sources.seconds import TimeLike, seconds_of, to_fraction
from dala.media.transitions.spec import Transition, TransitionLike
from dala.media.video.joining.cut import JoinReport, check_targets
from dala.media.video.joining.packets import CopiedPart, PacketFile, PacketsRefused, copy_packets
from dala.media.video.options import EncoderOptions
from dala.media.video.suffixes import is_still
from dala.media.video.timing import DEFAULT_RATE

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node
    from dala.typing import PathLike


class Clip:
    """A clip of a timeline: its source, and the arguments of its builder method."""

    def __init__(self, kind: str, name: str, content: NodeArgument, arguments: Values) -> None:
        #: The node type that shows it.
        self.kind = kind
        self.content = content
        self._name = name
        self._arguments = arguments
        call = f"add_{kind}"
        #: How it comes in after the one before.
        self.transition = Transition.of(arguments.get("transition"), call)
        given = {k: arguments[k] for k in ("trim", "speed", "loop", "freeze") if k in arguments}
        self._given = nodes.clip_duration(arguments, call, "clips")
        self._times = ClipTimes.of(call, **given)
        self._found: Fraction | None = None

    @property
    def duration(self) -> Fraction:
        """Its seconds, exact: as given, or those of its content."""
        if self._given is not None:
            return self._given
        if self._found is None:
            self._found = self._times.natural_end(self._content_length())
        if self._found is None:
            raise ParameterError(
                f"add_{self.kind}: in a timeline {_shown(self.content)} needs a duration, because "
                "it has no end. Give duration=seconds."
            )
        return self._found

    def _content_length(self) -> Fraction | None:
        content = self.content
        if isinstance(content, Timeline):
            return content.duration
        if self.kind == "scene":
            found = getattr(content, "duration", None)
            return None if found is None else to_fraction("duration", found)
        if self.kind != "video":
            return None
        if isinstance(content, list | tuple) or getattr(content, "ndim", 0) == 4:
            rate = to_fraction("fps", self._arguments.get("fps", 30))
            return len(content) / rate  # type: ignore[arg-type]
        return duration_of(content)

    def add_to(self, node: TimelineNode) -> Node:
        """Add the clip to the node of a timeline."""
        given = {**self._arguments, "transition": self.transition}
        made: Node = getattr(node, f"add_{self.kind}")(**{self._name: self.content}, **given)
        return made

    def __repr__(self) -> str:
        return f"<Clip {self.kind} {_shown(self.content)}>"


class Timeline:
    """Clips one after another, with transitions; ``scene.add_timeline`` adds it to a scene.

    Args:
        transition: how clips come in that do not say so themselves; the first begins with a cut.
        duration: seconds of pictures, colors and text that do not say so themselves.

    >>> show = Timeline(transition=("dissolve", 1), duration=3)
    >>> show.add("navy").add("tomato").add_text("The end", size=24).duration
    Fraction(7, 1)
    """

    def __init__(
        self, *, transition: TransitionLike = None, duration: TimeLike | None = None
    ) -> None:
        self._transition = Transition.of(transition, "Timeline")
        self._duration = nodes.length_of(duration, "Timeline")
        #: The clips, in order.
        self.clips: list[Clip] = []

    def add(
        self,
        clip: NodeArgument,
        *,
        duration: TimeLike | None = None,
        transition: TransitionLike = None,
        **arguments: NodeArgument,
    ) -> Self:
        """Add a clip after the others; return the timeline, so that calls can follow each other.

        Args:
            clip: a file (a video or a picture), a picture, a color, a Scene, a Timeline, frames.
            duration: its seconds; by default those of its content.
            transition: how it comes in: a name, (name, seconds), (name, seconds, parameters), a
                dict, a kernel of two pictures, or a Transition.
            arguments: those of the builder method: ``trim``, ``speed``, ``loop``, ``opacity``, ...
        """
        kind, name = nodes.kind_of(clip)
        return self._add(kind, name, clip, duration, transition, arguments)

    def add_text(
        self,
        text: str,
        *,
        duration: TimeLike | None = None,
        transition: TransitionLike = None,
        **arguments: NodeArgument,
    ) -> Self:
        """Add text after the other clips, by default in the middle; see ``Scene.add_text``."""
        return self._add("text", "text", text, duration, transition, arguments)

    def _add(
        self,
        kind: str,
        name: str,
        content: NodeArgument,
        duration: TimeLike | None,
        transition: TransitionLike,
        arguments: Values,
    ) -> Self:
        if duration is None and kind in ("image", "overlay", "text"):
            duration = self._duration
        if transition is None and self.clips:
            transition = self._transition
        chosen = {"duration": duration, "transition": transition}
        given = arguments | {k: v for k, v in chosen.items() if v is not None}
        self.clips.append(Clip(kind, name, content, given))
        try:
            _ = self.times
        except BaseException:
            self.clips.pop()
            raise
        return self

    @property
    def duration(self) -> Fraction:
        """The seconds from the first clip's start to the last one's end, exact."""
        times = self.times
        return times[-1][1] if times else Fraction(0)

    @property
    def times(self) -> list[tuple[Fraction, Fraction]]:
        """Start and end of each clip, exact."""
        return nodes.sequence(
            (clip.duration, clip.transition.duration, f"add_{clip.kind}") for clip in self.clips
        )

    def __len__(self) -> int:
        return len(self.clips)

    def __repr__(self) -> str:
        return f"<Timeline of {len(self.clips)} clips, {float(self.duration):g} s>"


def _shown(content: object) -> str:
    return masked(repr(content)) if isinstance(content, str) else f"a {type(content).__name__}"


_CALL: Final = "concat"
#: Seconds of a picture between videos.
STILL: Final = 3.0


def concat_videos(
    paths: Sequence[PathLike],
    out: PathLike,
    *,
    transition: TransitionLike = None,
    still: TimeLike = STILL,
    audio: bool = True,
    encoding: EncoderOptions | None = None,
    device: str | None = None,
    progress: bool | Callable[[int, int], object] = False,
) -> JoinReport:
    """Write videos one after another to a file, with their sound.

    Packets are copied if nothing is in between and the coding of all files agrees. Otherwise the
    videos are fitted into the size and rate of the first, and encoded again.

    Args:
        paths: at least two videos or pictures.
        out: the result.
        transition: how each comes in after the one before; see ``Transition``.
        still: how long each picture is shown.
        audio: keep the sound.
        encoding: how a result is encoded again.
        device: draws the transitions.
        progress: as of ``Scene.render_to``.
    """
    if isinstance(paths, str | os.PathLike) or len(paths) < 2:
        raise ParameterError.invalid(_CALL, "paths", "at least two videos or pictures", paths)
    check_targets(out, list(paths), _CALL)
    made = Transition.of(transition, _CALL)
    length = seconds_of(still, _CALL, "still")
    pictures = [path for path in paths if is_still(path)]
    videos = [path for path in paths if path not in pictures]
    with ExitStack() as stack:
        files = [stack.enter_context(PacketFile(path, _CALL, audio)) for path in videos]
        sizes = [(f.video.codec_context.width, f.video.codec_context.height) for f in files]
        rate = 1 / files[0].step if files else DEFAULT_RATE
        reason = "" if made.is_cut else f"the transition {made.name!r} mixes pictures"
        if pictures:
            many = counted(len(pictures), "pictures")
            reason = f"{many} shown for {float(length):g} s each; --still sets the time"
        reason = reason or difference(videos, files)
        if not reason:
            try:
                parts = [CopiedPart(file, Fraction(0), None) for file in files]
                count = copy_packets(parts, out, _CALL)
                return JoinReport(True, "", count, float(count / rate))
            except PacketsRefused as error:
                reason = f"the container does not take the packets ({error})"
        fitted = [] if pictures else _fitted(videos, sizes, [1 / file.step for file in files])
    line = Timeline()
    for number, path in enumerate(paths):
        duration = length if path in pictures else None
        line.add(path, duration=duration, transition=made if number else None)
    if paths[0] in pictures:
        first = Frame.open(paths[0], device=device)
        size = first.width, first.height
    else:
        size = _shown_size(paths[0], sizes[0])
    width, height = (side + side % 2 for side in size)
    with Scene(width, height, fps=rate, device=device) as scene:
        scene.add_timeline(line)
        scene.duration = float(line.duration)
        options = RenderOptions.of(encoding or EncoderOptions(), progress=progress, audio=audio)
        count = render_to(scene, out, None, options)
        problems = [str(error) for error in scene.errors.values()]
    if problems:
        fitted += [f"reported: {problem}" for problem in problems[:3]]
    return JoinReport(False, "; ".join([reason, *fitted]), count, float(count / rate), count)


def _shown_size(path: PathLike, stored: tuple[int, int]) -> tuple[int, int]:
    """Return the size of the pictures as they are shown: turned upright."""
    from dala.media import video

    with video.open(path) as reader:
        return (reader.width, reader.height) if reader.rotation else stored


def _fitted(
    paths: Sequence[PathLike], sizes: list[tuple[int, int]], rates: list[Fraction]
) -> list[str]:
    """Return the conversion of videos that differ from the first."""
    found = []
    for path, size, rate in zip(paths[1:], sizes[1:], rates[1:], strict=True):
        if size != sizes[0]:
            (w, h), (x, y) = size, sizes[0]
            found.append(f"{os.fspath(path)} ({w}x{h}) is fitted into {x}x{y}")
        if rate != rates[0]:
            found.append(f"{os.fspath(path)} ({float(rate):g} fps) is shown at {float(rates[0]):g}")
    return found


def difference(paths: Sequence[PathLike], files: Sequence[PacketFile]) -> str:
    """Return why the packets of files cannot stand in one file; "" if they can."""
    first = files[0]
    for path, file in zip(paths[1:], files[1:], strict=True):
        name = os.fspath(path)
        for what, one, other in _coding(first, file):
            if one != other:
                return f"{name} differs from {os.fspath(paths[0])} in its {what} ({other}, {one})"
        if first.video.codec_context.extradata != file.video.codec_context.extradata:
            return f"{name} is coded with other settings than {os.fspath(paths[0])}"
        if len(first.sounds) != len(file.sounds):
            return f"{name} has another number of sound tracks than {os.fspath(paths[0])}"
        for one, other in zip(first.sounds, file.sounds, strict=True):
            a, b = one.codec_context, other.codec_context
            sound = [(c.name, c.sample_rate, c.layout.name, c.extradata) for c in (a, b)]
            if sound[0] != sound[1]:
                return f"the sound of {name} is coded otherwise than that of {os.fspath(paths[0])}"
    return ""


def _coding(a: PacketFile, b: PacketFile) -> list[tuple[str, object, object]]:
    one, other = a.video.codec_context, b.video.codec_context
    return [
        ("codec", one.name, other.name),
        ("size", f"{one.width}x{one.height}", f"{other.width}x{other.height}"),
        ("pixel format", one.pix_fmt, other.pix_fmt),
        ("frame rate", f"{float(1 / a.step):g}", f"{float(1 / b.step):g}"),
        ("time base", str(a.video.time_base), str(b.video.time_base)),
    ]
