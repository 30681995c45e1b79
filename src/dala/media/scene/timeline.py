"""Timelines to be: clips one after another, before they are added to a scene."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Self

from dala.errors import ParameterError, masked
from dala.media.scene.nodes.property_types import NodeArgument, Values
from dala.media.scene.nodes.timeline import (
    TimelineNode,
    clip_duration,
    kind_of,
    length_of,
    sequence,
)
from dala.media.scene.nodes.video import duration_of
from dala.media.sources.clip import ClipTimes
from dala.media.sources.seconds import TimeLike, to_fraction
from dala.media.transitions.spec import Transition, TransitionLike

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node


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
        self._given = clip_duration(arguments, call, "clips")
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
        self._duration = length_of(duration, "Timeline")
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
        kind, name = kind_of(clip)
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
        return sequence(
            (clip.duration, clip.transition.duration, f"add_{clip.kind}") for clip in self.clips
        )

    def __len__(self) -> int:
        return len(self.clips)

    def __repr__(self) -> str:
        return f"<Timeline of {len(self.clips)} clips, {float(self.duration):g} s>"


def _shown(content: object) -> str:
    return masked(repr(content)) if isinstance(content, str) else f"a {type(content).__name__}"
