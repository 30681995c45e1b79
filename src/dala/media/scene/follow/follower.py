"""A node that follows a target: the properties it sets, and the effects of losing the target."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, Self, runtime_checkable

from dala.errors import DalaError, ParameterError
from dala.media.scene.boxes import PlacedBox, place_content
from dala.media.scene.nodes import property_types as t
from dala.media.scene.options import LARGEST_SCALE, FollowOptions

if TYPE_CHECKING:
    from dala.media.scene.nodes.json_types import JsonData
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.nodes.video import VideoNode
    from dala.media.sources.seconds import Moment
    from dala.media.sources.types import Picture


class Sighting(NamedTuple):
    """The place of a target, in pixels of the video's picture.

    >>> Sighting(10.0, 20.0, width=5.0)
    Sighting(x=10.0, y=20.0, width=5.0, height=0.0, angle=0.0)
    """

    x: float
    y: float
    #: Its size along its own axes; a bone has a length, which is the width, and no height.
    width: float = 0.0
    height: float = 0.0
    #: Clockwise rotation, in degrees.
    angle: float = 0.0


class ShownPicture(NamedTuple):
    """The picture that a video node shows."""

    picture: Picture
    #: Changes exactly when the picture does.
    version: int
    #: Seconds in the video if they are known, else in the scene.
    time: float
    #: The same for the same picture of the source, at any time; None if that is not known.
    key: Hashable = None


@runtime_checkable
class FollowTarget(Protocol):
    """Something that a node can follow."""

    @property
    def video(self) -> VideoNode:
        """The video node in whose picture it is found."""

    @property
    def turns(self) -> bool:
        """True if it has an angle and a length of its own, which nodes take by default."""

    def find(self, shown: ShownPicture, wait: bool) -> Sighting | None:
        """Return its place; None if it is not in the picture.

        With ``wait`` the answer is that of this picture. Without, it may be an older one: the call
        must not block.
        """

    def saved(self) -> Mapping[str, JsonData] | None:
        """Return its form in scene files, without the video; None if it cannot be saved."""


@runtime_checkable
class TargetDescription(Protocol):
    """Something that a node can follow once it is known in which video."""

    def on(self, video: VideoNode) -> FollowTarget:
        """Return the target in a video node."""


@runtime_checkable
class FollowTargets(Protocol):
    """Several things that nodes can follow, one node each."""

    @property
    def video(self) -> VideoNode:
        """The video node in whose picture they are found."""

    def ids(self, shown: ShownPicture, wait: bool) -> Sequence[int]:
        """Return the ids of those in the picture."""

    def one(self, id: int) -> FollowTarget:
        """Return the target of an id."""


_realtime: Final[ContextVar[bool]] = ContextVar("dala_scene_realtime", default=False)


@contextmanager
def in_real_time() -> Iterator[None]:
    """Let targets answer with older results inside the block, rather than wait."""
    token = _realtime.set(True)
    try:
        yield
    finally:
        _realtime.reset(token)


def is_real_time() -> bool:
    """Return True while a frame is rendered for a presentation in real time.

    >>> is_real_time()
    False
    """
    return _realtime.get()


class Affine(NamedTuple):
    """The map (x, y) to (a x + c y + e, b x + d y + f).

    >>> double = Affine(2, 0, 0, 2, 1, 0)
    >>> double.point(3, 4)
    (7, 8)
    >>> double.inverse().point(7, 8)
    (3.0, 4.0)
    """

    a: float = 1.0
    b: float = 0.0
    c: float = 0.0
    d: float = 1.0
    e: float = 0.0
    f: float = 0.0

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point goes."""
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f

    def vector(self, x: float, y: float) -> tuple[float, float]:
        """Return where a difference of points goes."""
        return self.a * x + self.c * y, self.b * x + self.d * y

    def after(self, first: Affine) -> Affine:
        """Return the map that applies ``first``, then this one."""
        a, b = self.vector(first.a, first.b)
        c, d = self.vector(first.c, first.d)
        return Affine(a, b, c, d, *self.point(first.e, first.f))

    def inverse(self) -> Affine:
        """Return the map back; the map must not flatten the plane."""
        a, b, c, d, e, f = self
        area = a * d - b * c
        back = Affine(d / area, -b / area, -c / area, a / area)
        x, y = back.vector(e, f)
        return back._replace(e=-x, f=-y)

    @classmethod
    def of(cls, place: PlacedBox) -> Self:
        """Return the map from the texels of placed content to its place."""
        u0, v0, u1, v1 = place.crop
        across, down = 2 * place.hw / (u1 - u0), 2 * place.hh / (v1 - v0)
        a, b = across * place.cos, across * place.sin
        c, d = -down * place.sin, down * place.cos
        u, v = (u0 + u1) / 2, (v0 + v1) / 2
        return cls(a, b, c, d, place.cx - a * u - c * v, place.cy - b * u - d * v)


#: The texels of a picture that are visible: left, top, right, bottom.
Visible = tuple[float, float, float, float]


def picture_map(video: VideoNode) -> tuple[Affine, Visible] | None:
    """Return the map from a video's picture to the scene, and the visible part of the picture.

    None if the node shows nothing.
    """
    content = video.content()
    place = None if content is None else place_content(video, content)
    home = container_map(video)
    if place is None or home is None:
        return None
    return home.after(Affine.of(place)), place.crop


def container_map(node: Node) -> Affine | None:
    """Return the map from the coordinates of a node's position to the scene.

    The node may be in groups, which are placed, scaled and rotated themselves; None if one of them
    has no size.
    """
    made = Affine()
    for group in node.around():
        content = group.content()
        place = None if content is None else place_content(group, content)
        if place is None:
            return None
        made = Affine.of(place).after(made)
    return made


CALL: Final = "Scene.follow"
#: Coordinates and sizes that properties accept.
_MOST: Final = 1e6


class Follow:
    """A node that follows a target, as ``scene.follow`` returns it.

    Attributes:
        node: the node.
        target: what it follows.
        options: how it follows.
        sighting: where the target was found last, in pixels of the video's picture; None before.
        found: whether the target was in the last frame.
    """

    def __init__(self, node: Node, target: FollowTarget, options: FollowOptions) -> None:
        self.node = node
        self.target = target
        self.options = options
        self.sighting: Sighting | None = None
        self.found = False
        self.cancelled = False
        #: The values before the node followed of the properties that are set.
        self.base: dict[str, t.Value] = {n: node.get(n) for n in driven(node, options)}
        self._hidden = False
        #: The scene's time of the last frame, and of the last with the target.
        self._now = -math.inf
        self._seen = -math.inf
        #: The opacity that was set last, and the node's own.
        self._faded: float | None = None
        self._own_opacity = 1.0

    def cancel(self) -> None:
        """Stop following. The node stays where it is, and is visible as it was before."""
        if not self.cancelled:
            self.cancelled = True
            self._show(1.0)

    def __repr__(self) -> str:
        state = "cancelled" if self.cancelled else "found" if self.found else "lost"
        return f"<Follow {self.node.id!r} on {self.target.video.id!r}, {state}>"

    def advance(self, moment: Moment, wait: bool) -> None:
        """Set the node's properties for a frame."""
        now, options = moment.seconds, self.options
        if now < self._now:  # the past is ahead again
            self.sighting, self._seen = None, -math.inf
        self._now = now
        video = self.target.video
        shown = video.shown(moment)
        try:
            sighting = None if shown is None else self.target.find(shown, wait)
        except DalaError as error:
            raise error.within(f"Scene.render: {self.node.id!r} follows {video.id!r}") from error
        placed = sighting is not None and self._place(sighting)
        self.found = placed
        if placed:
            self.sighting, self._seen = sighting, now
        elif self._seen > -math.inf and self.sighting is not None and not options.crop:
            self._place(self.sighting, visible=False)  # the video itself may move
        gone = now - self._seen - options.hold
        if placed or (options.lost == "keep" and (options.crop or self._seen > -math.inf)):
            self._show(1.0)
        elif options.lost == "fade" and options.fade > 0:
            self._show(max(0.0, 1.0 - max(gone, 0.0) / options.fade))
        else:
            self._show(1.0 if gone <= 0 else 0.0)

    # inside -----------------------------------------------------------------------------------
    def _place(self, at: Sighting, visible: bool = True) -> bool:
        """Set position, angle and size; return False if the target is not in the visible part."""
        options, video = self.options, self.target.video
        if options.crop:
            return self._crop(at)
        found, home = picture_map(video), container_map(self.node)
        if found is None or home is None:
            return False
        to_scene, (left, top, right, bottom) = found
        if visible and not (left <= at.x <= right and top <= at.y <= bottom):
            return False
        if abs(home.a * home.d - home.b * home.c) < 1e-12:
            return False
        self._set(at, home.inverse().after(to_scene))
        return True

    def _set(self, at: Sighting, way: Affine) -> None:
        """Set the node's properties for a target, by the map from the picture to its group."""
        options, node = self.options, self.node
        x, y = way.point(at.x, at.y)
        turn = math.radians(at.angle)
        along = way.vector(math.cos(turn), math.sin(turn))
        across = way.vector(-math.sin(turn), math.cos(turn))
        width = math.hypot(*along) * at.width
        height = math.hypot(*across) * at.height
        angle = math.degrees(math.atan2(along[1], along[0]))
        dx, dy = self._offset(width, height)
        if options.rotate:
            rad = math.radians(angle)
            cos, sin = math.cos(rad), math.sin(rad)
            dx, dy = dx * cos - dy * sin, dx * sin + dy * cos
        changes: dict[str, t.Value] = {"x": _within(x + dx), "y": _within(y + dy)}
        if options.rotate:
            changes["rotation"] = (angle + options.angle) % 360.0
        factor = options.scale
        if options.fit:
            changes["width"] = _within((factor or 1.0) * width, 0.0)
            if height:
                changes["height"] = _within((factor or 1.0) * height, 0.0)
        elif factor is not None:
            own = node.box_size(*node.natural())[0]
            if own > 0 and node.get("scale") > 0:
                scale = factor * width / (own / node.get("scale"))
                changes["scale"] = min(max(scale, 1e-6), LARGEST_SCALE)
        node.update(**changes)

    def _crop(self, at: Sighting) -> bool:
        """Show the part of the node's picture around a target, in the node's proportions."""
        options, node = self.options, self.node
        wide, high = node.natural()
        source = self.target.video.natural()
        if min(wide, high, *source) <= 0:
            return False
        width, height = node.get("width"), node.get("height")
        grow_x, grow_y = wide / source[0], high / source[1]
        part_h = (options.scale or 2.0) * max(at.height, at.width) * grow_y
        part_w = part_h * width / height
        shrink = min(1.0, wide / part_w, high / part_h) if part_w > 0 else 0.0
        part_w, part_h = part_w * shrink, part_h * shrink
        if min(part_w, part_h) <= 0:
            return False
        dx, dy = self._offset(at.width, at.height)
        left = min(max((at.x + dx) * grow_x - part_w / 2, 0.0), wide - part_w)
        top = min(max((at.y + dy) * grow_y - part_h / 2, 0.0), high - part_h)
        node.update(crop=(left, top, part_w, part_h))
        return True

    def _offset(self, width: float, height: float) -> tuple[float, float]:
        """Return the offset in pixels, for a target of a size."""
        dx, dy = self.options.offset
        return (dx * width, dy * (height or width)) if self.options.unit == "size" else (dx, dy)

    def own(self, name: str) -> t.Value:
        """Return the node's own value of a property, without that of following."""
        if name not in self.base or (name == "visible" and not self._hidden):
            return self.node.property_values[name]
        if name == "opacity":
            return self.node.get("opacity") if self._faded is None else self._own_opacity
        return self.base[name]

    def _show(self, share: float) -> None:
        """Show the node with a share of its own opacity; 0 hides it."""
        node = self.node
        if not self._hidden or node.get("visible"):  # as it was before, or set by hand since
            self.base["visible"] = node.get("visible")
        if share <= 0 or self._hidden:
            self._hidden = share <= 0
            node.set("visible", share > 0 and self.base["visible"])
        if "opacity" not in self.base or (share >= 1.0 and self._faded is None):
            return
        current = node.get("opacity")
        if current != self._faded:  # set by an animation or by hand
            self._own_opacity = current
        self._faded = None if share >= 1.0 else self._own_opacity * share
        node.set("opacity", self._own_opacity * share)


def driven(node: Node, options: FollowOptions) -> list[str]:
    """Return the names of the properties that following sets."""
    names = [*_placing(options), "visible", *(["opacity"] if options.lost == "fade" else [])]
    return [name for name in names if name in node.PROPERTIES]


def _placing(options: FollowOptions) -> list[str]:
    """Return the names of the properties that place a node."""
    if options.crop:
        return ["crop"]
    names = ["x", "y", *(["rotation"] if options.rotate else [])]
    names += ["width", "height"] if options.fit else []
    return names + (["scale"] if options.scale is not None and not options.fit else [])


def _within(value: float, least: float = -_MOST) -> float:
    return min(max(value, least), _MOST)


def checked_options(
    node: Node, target: FollowTarget, given: Mapping[str, t.Value]
) -> FollowOptions:
    """Return the options of ``follow``, checked; the defaults depend on node and target."""
    specs = FollowOptions.specs()
    chosen = {**{name: spec.default for name, spec in specs.items()}, **given}
    plain = bool(target.turns and not chosen["crop"] and not chosen["fit"])
    for name, property in (("rotate", "rotation"), ("scale", "scale")):
        if chosen[name] is None:
            chosen[name] = plain and property in node.PROPERTIES
    chosen["lost"] = chosen["lost"] or ("keep" if chosen["crop"] else "hide")
    made = FollowOptions.checked(CALL, chosen)
    if made.crop and made.fit:
        raise ParameterError(f"{CALL}: crop and fit exclude each other.")
    _check_node(node, made)
    return made


def _check_node(node: Node, options: FollowOptions) -> None:
    for name in _placing(options):
        if name not in node.PROPERTIES:
            hint = {"scale": "fit=True sets its width and height.", "rotation": "rotate=False."}
            raise ParameterError(
                f"{CALL}: {node.id!r} has no {name}, as it is of type {node.type!r}. "
                f"{hint.get(name, 'Follow with another node.')}",
            )
    sized = node.property_values.get("width") and node.property_values.get("height")
    if options.crop and not sized:
        raise ParameterError(
            f"{CALL}: crop=True needs a node with a size, as its proportions are those of the "
            f"crop. Set one: {node.id!r}.size = (width, height).",
            argument="crop",
        )
