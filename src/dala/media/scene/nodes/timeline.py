"""Timelines: nodes one after another, with transitions between them."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import islice
from typing import ClassVar, Final, NamedTuple

import numpy as np

from dala.errors import ParameterError
from dala.gpu.compute.kernel import find
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.effect import EffectNode
from dala.media.scene.nodes.group import GroupNode
from dala.media.scene.nodes.json_types import JsonType
from dala.media.scene.nodes.node import Node
from dala.media.scene.nodes.properties import Argument
from dala.media.sources.clip import POLICIES
from dala.media.sources.seconds import Moment, seconds_of
from dala.media.transitions.spec import Transition
from dala.media.video.suffixes import is_still

#: Types whose content is fitted into the timeline's picture, unless the call says where it is.
_FITTED: Final = ("video", "image", "scene")
_PLACED: Final = frozenset(
    ("position", "x", "y", "size", "width", "height", "scale", "anchor", "pip", "pip_size",
     "pip_position", "crop", "margin")
)  # fmt: skip


class TimelineClip(NamedTuple):
    """The record of a timeline about one of its nodes."""

    #: Its duration as it was given; None for that of its content.
    duration: Fraction | None
    #: How it comes in after the one before.
    transition: Transition


class Mixing(NamedTuple):
    """The transition that a timeline is in."""

    #: The node that leaves; None at the beginning.
    first: Node | None
    second: Node
    transition: Transition
    #: From 0 to 1, eased.
    progress: float


class TimelineNode(GroupNode):
    """Nodes one after another, each from the end of the one before, with transitions in between.

    Every node that is added plays after the ones before: videos, images and colors with a
    ``duration``, text, scenes, groups, other timelines. ``transition`` of a node says how it comes
    in; the two nodes overlap for so long. The transition of the first node begins with nothing.
    A ``Timeline`` that was made before is added as a whole.

    >>> import dala
    >>> with dala.media.Scene(64, 36, device="cpu") as scene:
    ...     line = scene.add_timeline()
    ...     red = line.add_overlay(color="red", duration=2)
    ...     blue = line.add_overlay(color="blue", duration=2, transition=("dissolve", 1))
    ...     scene.render(1.5).numpy()[0, 0].tolist(), float(line.length())
    ([128, 0, 128, 255], 3.0)
    """

    type = "timeline"
    OWN_ARGUMENTS: ClassVar[dict[str, Argument]] = {
        "timeline": Argument(
            t.PropertyType(JsonType(), "Timeline", optional=True),
            "A ``Timeline``, whose clips are added.",
            key="",
        ),
        "fill": Argument(
            t.ChoiceType(("contain", "cover", "stretch", "none")),
            "How videos, images and scenes fill the timeline's picture, unless they are placed.",
            default="contain",
        ),
    }
    POSITIONAL = ("timeline",)
    WITHOUT = ("scene",)
    __slots__ = (
        "_borders", "_growing", "_pending", "_places", "_scenes", "clips", "fill", "mixing",
    )  # fmt: skip

    def prepare(self, given: t.Values) -> None:
        """Take the arguments that are not properties."""
        made = given.pop("timeline", None)
        #: How videos, images and scenes fill the picture.
        self.fill: str = self.take(given, "fill")
        #: The nodes that play one after another, and how they come in.
        self.clips: dict[Node, TimelineClip] = {}
        self._borders: list[tuple[Fraction, Fraction, Node]] = []
        self._places: dict[Node, int] = {}
        #: The lengths of scenes, which can change, when the times were found.
        self._scenes: dict[Node, Fraction | None] = {}
        #: Whether a timeline is inside, which may still grow.
        self._growing = False
        #: The transition at the current time.
        self.mixing: Mixing | None = None
        self._pending = made
        super().prepare(given)

    def entered(self) -> None:
        """Add the clips of the Timeline that was given."""
        from dala.media.scene.timeline import Timeline

        made, self._pending = self._pending, None
        if made is None:
            return
        if not isinstance(made, Timeline):
            raise ParameterError.invalid("add_timeline", "timeline", "a Timeline", made)
        for clip in made.clips:
            clip.add_to(self)

    # nodes ------------------------------------------------------------------------------------
    def take_clip(self, type: str, given: t.Values, call: str) -> TimelineClip | None:
        """Take the arguments that concern the timeline from those of a builder call."""
        if type == "effect":
            if given.get("input") is None:
                raise ParameterError(
                    f"{call}: an effect in a timeline is on a node of it. Give input=node."
                )
            return super().take_clip(type, given, call)
        policy = given.get("end") in POLICIES
        duration = clip_duration({**given, "end": None} if policy else given, call, "nodes")
        transition = Transition.of(given.pop("transition", None), call)
        given.pop("duration", None)
        if type in _FITTED and self.fill != "none" and not _PLACED & given.keys():
            given |= {"size": self.canvas, "fit": given.get("fit", self.fill)}
        elif type == "text" and not (_PLACED - {"size", "width", "height"}) & given.keys():
            given |= {"anchor": "center", "position": (self.canvas[0] / 2, self.canvas[1] / 2)}
        return TimelineClip(duration, transition)

    def adopt(self, node: Node, clip: TimelineClip | None) -> None:
        """Put a new node at the end, and find its time."""
        if clip is None or isinstance(node, EffectNode):
            super().adopt(node, None)
            return
        self.clips[node] = clip
        self._places[node] = len(self._places)
        try:
            self.lay_out(self._changed())
        except BaseException:
            del self.clips[node], self._places[node]
            self._scenes.pop(node, None)
            self.lay_out(len(self.clips))
            raise
        super().adopt(node, None)
        node.approach(False)

    def disown(self, node: Node) -> None:
        """Remove a node; those after it play earlier."""
        super().disown(node)
        if self.clips.pop(node, None) is not None:
            self._places = {node: place for place, node in enumerate(self.clips)}
            self._scenes.pop(node, None)
            self._growing = False
            self.lay_out()

    def lay_out(self, first: int = 0) -> None:
        """Find the times of all nodes from the first one that is new or may have changed."""
        count = len(self.clips) - first
        nodes = [*islice(reversed(self.clips), count)][::-1]
        rows = [
            (duration_of(node, clip), clip.transition.duration, f"add_{node.type}")
            for node, clip in ((node, self.clips[node]) for node in nodes)
        ]
        self._growing = self._growing or any(isinstance(node, TimelineNode) for node in nodes)
        times = sequence(rows, fits=self._growing, before=self._before(first))
        del self._borders[first:]
        for node, (start, end) in zip(nodes, times, strict=True):
            node.retime(start, end)
            self._borders.append((start, end, node))
            if node.HOLDS == "scene":
                self._scenes[node] = node.length()
        self.scene._retime()
        outer = self.parent
        if isinstance(outer, TimelineNode) and self in outer.clips:
            outer.grown(self)

    def grown(self, node: Node) -> None:
        """Find the times again of a timeline inside that changed, and of the nodes after it."""
        self.lay_out(self._places[node])

    def _changed(self) -> int:
        """Return the place of the first node whose times are not known, or have changed."""
        scenes = (node for node, known in self._scenes.items() if node.length() != known)
        return min((self._places[node] for node in scenes), default=len(self._borders))

    def _before(self, place: int) -> tuple[Fraction, Fraction] | None:
        """Return where the clip before a place ends, and for how long it is shown alone."""
        if not place:
            return None
        _, end, node = self._borders[place - 1]
        if place > 1:
            return end, end - self._borders[place - 2][1]
        return end, end - min(self.clips[node].transition.duration, end)

    def add(self, clip: t.NodeArgument, **arguments: t.NodeArgument) -> Node:
        """Add a clip of any kind after the others; its type chooses the builder method.

        Paths of pictures and pictures become images, colors overlays, scenes and timelines what
        they are, and everything else videos. ``add_text`` adds text, ``add_group`` a group.

        >>> import dala
        >>> with dala.media.Scene(64, 36, device="cpu") as scene:
        ...     scene.add_timeline().add("navy", duration=2)
        <OverlayNode overlay-2 at (0, 0)>
        """
        kind, name = kind_of(clip)
        made: Node = getattr(self, f"add_{kind}")(**{name: clip}, **arguments)
        return made

    def length(self) -> Fraction | None:
        """Return the time from the first node's start to the last one's end, exact."""
        return self._borders[-1][1] if self._borders else Fraction(0)

    def sound_fades(self, node: Node) -> tuple[Fraction, Fraction]:
        """Return the seconds in which the sound of a node fades in and out, by its transitions."""
        if node not in self.clips:
            return Fraction(0), Fraction(0)
        after = self._borders[self._places[node] + 1 :][:1]
        leaves = self.clips[after[0][2]].transition.duration if after else Fraction(0)
        return self.clips[node].transition.duration, leaves

    # time -------------------------------------------------------------------------------------
    def advance(self, moment: Moment) -> None:
        """Find the transition at a time."""
        local = self.local_time(moment)
        found = None if local is None else self._mixing_at(local.exact)
        before, self.mixing = self.mixing, found
        if (before and before[:3]) != (found and found[:3]):
            self.scene._reorder()
        if found is not None and before != found and self.display_item is not None:
            self.display_item.touch()

    def _mixing_at(self, time: Fraction) -> Mixing | None:
        number = bisect_right(self._borders, time, key=lambda border: border[0]) - 1
        if number < 0:
            return None
        start, _, node = self._borders[number]
        transition = self.clips[node].transition
        first, takes = None, transition.duration
        if number:
            _, until, first = self._borders[number - 1]
            takes = until - start
        if transition.is_cut or time >= start + takes:
            return None
        return Mixing(first, node, transition, transition.progress((time - start) / takes))

    # drawing ----------------------------------------------------------------------------------
    @property
    def flat(self) -> bool:
        """True if the current node can be drawn as if it were not in a timeline."""
        return self.mixing is None and super().flat

    def layers(self) -> tuple[list[Node], ...]:
        """Return the nodes to draw: in a transition, those before and after it."""
        if self.mixing is None:
            return super().layers()
        first = self.mixing.first
        return ([] if first is None else [first]), [self.mixing.second]

    # scene files ------------------------------------------------------------------------------
    def saved_arguments(self) -> t.Values:
        """Return the canvas, the times and how clips fill the picture."""
        made = super().saved_arguments()
        return made if self.fill == "contain" else {**made, "fill": self.fill}

    def saved_clip(self, node: Node) -> tuple[t.Values, list[str]]:
        """Return duration and transition of a node in file form, and the parts no file can hold."""
        clip = self.clips.get(node)
        made: t.Values = {}
        problems: list[str] = []
        if clip is not None and clip.duration is not None:
            made["duration"] = t.TimeType().dump(clip.duration)
        if clip is not None and not clip.transition.is_cut:
            made["transition"], problems = _saved(clip.transition)
        return made, problems


def _saved(transition: Transition) -> tuple[t.Values, list[str]]:
    """Return a transition in file form, and its parts that no file can hold."""
    made: t.Values = {"type": transition.name, "duration": t.TimeType().dump(transition.duration)}
    problems: list[str] = []
    if transition.kernel is not None and find(transition.name) is not transition.kernel:
        problems.append(f"the kernel {transition.name!r} of its transition is not registered.")
    if callable(transition.easing):
        problems.append("the easing of its transition is a function. Give it by name.")
    elif transition.easing != "linear":
        made["easing"] = t.plain_json(transition.easing)
    for name, value in transition.params.items():
        if name == "color":
            made[name] = t.hex_color(value)
        elif isinstance(value, bool | int | float | str | tuple | list | os.PathLike):
            made[name] = t.plain_json(value)
        else:
            what = f"{name!r} of its transition is a {type(value).__name__}"
            problems.append(f"{what}, which no file can name. Use a path.")
    return made, problems


def clip_duration(given: t.Values, call: str, before: str) -> Fraction | None:
    """Return the duration of a clip as it was given; its other times follow from those before."""
    for name in ("start", "end", "offset"):
        if given.get(name) is not None:
            raise ParameterError(
                f"{call}: {name} follows from the {before} before it in a timeline. Give duration, "
                "or trim."
            )
    return length_of(given.get("duration"), call)


def length_of(duration: t.Value, call: str) -> Fraction | None:
    """Return a duration that was given, which must be above 0; None for none."""
    found = None if duration is None else seconds_of(duration, call, "duration")
    if found is not None and found <= 0:
        raise ParameterError.invalid(call, "duration", "above 0", duration)
    return found


def duration_of(node: Node, clip: TimelineClip) -> Fraction:
    """Return the seconds for which a node of a timeline plays."""
    if clip.duration is not None:
        return clip.duration
    call = f"add_{node.type}"
    found = node.clip.with_times(None, None).natural_end(node.length())
    if isinstance(node, TimelineNode) and found is not None:
        return found  # its clips come later
    if found is None or found <= 0:
        advice = " Or set the scene's duration." if node.type == "scene" else ""
        raise ParameterError(
            f"{call}: in a timeline {node.id!r} needs a duration, because its content has no end. "
            f"Give duration=seconds.{advice}"
        )
    return found


def sequence(
    rows: Iterable[tuple[Fraction, Fraction, str]],
    *,
    fits: bool = False,
    before: tuple[Fraction, Fraction] | None = None,
) -> list[tuple[Fraction, Fraction]]:
    """Return start and end of clips by their lengths and overlaps with the one before.

    The rows have the name of the call that adds the clip too, for errors.

    With ``fits``, an overlap that is too long is shortened: a timeline inside may still grow.
    ``before`` is the end of a clip before these, and the seconds for which it is shown alone.

    >>> sequence([(Fraction(3), Fraction(0), "add_video"), (Fraction(2), Fraction(1), "add_video")])
    [(Fraction(0, 1), Fraction(3, 1)), (Fraction(2, 1), Fraction(4, 1))]
    """
    made: list[tuple[Fraction, Fraction]] = []
    ends = before
    for length, overlap, call in rows:
        end, free = ends or (Fraction(0), length)
        room = min(length, free)
        if overlap > room and fits:
            overlap = room
        if overlap > room:
            which = "the clip before" if free < length else "its clip"
            raise ParameterError(
                f"{call}: the transition of {float(overlap):g} s is longer than {which}, of which "
                f"{float(room):g} s are free."
            )
        start = end - overlap if ends else end
        made.append((start, start + length))
        ends = start + length, length - overlap
    return made


def kind_of(clip: t.NodeArgument) -> tuple[str, str]:
    """Return the node type that shows a clip, and the argument of its builder method.

    >>> kind_of("tomato"), kind_of("photo.jpg"), kind_of("talk.mp4")
    (('overlay', 'color'), ('image', 'image'), ('video', 'stream'))
    """
    from dala.media.frame import Frame
    from dala.media.scene.scene import Scene
    from dala.media.scene.timeline import Timeline
    from dala.media.texture import Texture

    if isinstance(clip, Scene):
        return "scene", "scene"
    if isinstance(clip, Timeline):
        return "timeline", "timeline"
    if clip is None or isinstance(clip, bool | Mapping | Node):
        advice = "Nodes are added by the methods of the timeline's node: add_group, add_text, ..."
        raise ParameterError.invalid(
            "Timeline.add", "clip", "a file, a picture, a color, a Scene or a Timeline", clip,
            advice if isinstance(clip, Node) else "",
        )  # fmt: skip
    numbers = isinstance(clip, tuple) and all(isinstance(n, int | float) for n in clip)
    color = isinstance(clip, str) and t.is_color_name(clip) and not os.path.exists(clip)
    if color or (isinstance(clip, tuple) and numbers and len(clip) in (3, 4)):
        return "overlay", "color"
    named = isinstance(clip, str | os.PathLike) and is_still(clip)
    array = isinstance(clip, np.ndarray) and clip.ndim in (2, 3)
    if named or array or isinstance(clip, Texture | Frame) or hasattr(clip, "getbands"):
        return "image", "image"
    return "video", "stream"
