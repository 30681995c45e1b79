"""The base of all nodes: properties, an id, a place in the scene's tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, NoReturn

from dala.errors import ParameterError, UnknownParameter, did_you_mean
from dala.gpu.compute.composite import BLENDS
from dala.media.scene import boxes as layout
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.properties import Argument, PairProperty, PositionProperty, Property
from dala.media.scene.nodes.registry import register_node
from dala.media.scene.nodes.times import TransitionArgument, take_clip
from dala.media.sources.clip import ClipTimes, check_order
from dala.media.sources.seconds import Moment
from dala.resources import refuse_pickle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dala.gpu.compute.composite import Picture
    from dala.media.scene.compositor.display_list import DisplayItem
    from dala.media.scene.nodes.effect import EffectNode
    from dala.media.scene.nodes.group import GroupNode
    from dala.media.scene.scene import Scene

#: Types of numbers that need only a check of their bounds.
_PLAIN: Final = (float, int)
#: The properties that say when a node is there.
_TIMES: Final = ("start", "end")
#: What runs backwards shows the moment just before its time; no two frames are that close. The
#: clocks of inner scenes move shorter times to the next frame.
_JUST: Final = Fraction(1, 10**6)


@dataclass(eq=False, slots=True)
class Content:
    """The picture or color that a node shows, before it is placed in the scene."""

    #: Size of the box: the picture's size without its margin.
    width: float
    height: float
    picture: Picture | None = None
    #: Changes exactly when the picture's pixels do.
    version: int = 0
    _: KW_ONLY
    color: tuple[int, int, int, int] = (0, 0, 0, 0)
    #: Whether every pixel is opaque.
    opaque: bool = False
    #: Pixels of the picture beyond the box: left, top, right, bottom.
    margin: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    #: Whether the picture already has rounded corners and the border.
    finished: bool = False
    #: How many times smaller than the content the picture is.
    reduction: int = 1


class NotNamed(NamedTuple):
    """The source of a node that a scene file cannot name, such as an array."""

    #: What it is, for the error message.
    kind: str


class Node(ABC):
    """Something in a scene. ``node.opacity = 0.5`` and ``node.set("opacity", 0.5)`` are the same.

    ``position`` is where the anchor of the node's box is, in pixels from the top left of the
    scene (or group). ``size`` is the size of the box; what is left out follows from the content,
    in its proportions. ``scale`` and ``rotation`` are about the anchor. ``fit`` says how content
    of other proportions fills the box: "stretch" stretches it, "contain" shows all of it, "cover"
    fills the box and cuts off the rest, "none" keeps its size.

    A subclass that sets ``type`` is a node type. It declares its properties as class attributes
    and the other arguments of its builder method in ``OWN_ARGUMENTS``; everything else (the
    builder method, checks, animation, scene files, the schema) follows from the declarations.
    """

    type: ClassVar[str] = "node"
    #: All properties of the class by name, and those of its base classes that it does not have.
    PROPERTIES: ClassVar[dict[str, Property]] = {}
    WITHOUT: ClassVar[tuple[str, ...]] = ()
    #: Arguments of the builder method that are not properties; ``ARGUMENTS`` has inherited ones.
    OWN_ARGUMENTS: ClassVar[dict[str, Argument]] = {
        "id": Argument(
            t.StringType("a string of at least one character", shortest=1, optional=True),
            "Name of the node, unique in the scene.",
        ),
        "margin": Argument(
            t.NumberType(),
            "Distance from the edges if the position is a name, in pixels.",
            default=0.0,
        ),
        "duration": Argument(
            t.TimeType(positive=True),
            "Seconds after its start at which the node ends, instead of ``end``.",
        ),
        "transition": Argument(
            TransitionArgument(),
            "In a timeline, how the node comes in: a name such as 'dissolve', (name, seconds), "
            "(name, seconds, parameters) or a kernel.",
        ),
    }
    ARGUMENTS: ClassVar[dict[str, Argument]] = {}
    #: Arguments and properties that may be given by position, in order.
    POSITIONAL: ClassVar[tuple[str, ...]] = ()
    #: Name of the keyword arguments beyond the declared ones, if the class takes any.
    EXTRA: ClassVar[str] = ""
    EXTRA_DESCRIPTION: ClassVar[str] = ""
    #: The key under which scene files hold what is inside the node: "nodes", "scene", or none.
    HOLDS: ClassVar[str] = ""
    #: Whether it is drawn; sound is not.
    DRAWN: ClassVar[bool] = True
    #: Properties that scene files always have, because the builder method chooses the default.
    ALWAYS_SAVED: ClassVar[frozenset[str]] = frozenset()

    __slots__ = (
        "__weakref__", "clip", "display_item", "effects", "id", "margin", "parent", "played",
        "present", "property_values", "scene", "serial",
    )  # fmt: skip

    x = Property(0.0, t.NumberType(), "Horizontal position of the anchor.", unit="pixels",
                 moves=True)  # fmt: skip
    y = Property(0.0, t.NumberType(), "Vertical position of the anchor.", unit="pixels",
                 moves=True)  # fmt: skip
    width = Property(
        None, t.NumberType(0.0, optional=True), "Width of the box; by default that of the content.",
        unit="pixels",
    )  # fmt: skip
    height = Property(
        None, t.NumberType(0.0, optional=True),
        "Height of the box; by default that of the content.", unit="pixels",
    )  # fmt: skip
    position = PositionProperty(
        "x", "y", t.PlaceType(), "(x, y), or a corner, an edge or the center by name."
    )
    size = PairProperty("width", "height", t.SIZE, "(width, height) of the box.")
    anchor = Property(
        (0.0, 0.0), t.AnchorType(),
        "The point of the box that is at the position: fractions of its size, or a name.",
    )  # fmt: skip
    scale = Property(1.0, t.NumberType(0.0, 10_000.0), "Scale factor about the anchor.")
    rotation = Property(0.0, t.NumberType(), "Clockwise rotation about the anchor.", unit="degrees")
    opacity = Property(1.0, t.NumberType(0.0, 1.0), "0 is invisible, 1 opaque.")
    z_index = Property(
        0.0, t.NumberType(),
        "Nodes with a higher value are drawn later; equal ones in the order they were added.",
        order=True,
    )  # fmt: skip
    visible = Property(True, t.BooleanType(), "Whether the node is drawn.", order=True)
    start = Property(
        None, t.TimeType(optional=True),
        "Time at which the node appears and begins; by default it is there from the beginning.",
        unit="seconds", order=True,
    )  # fmt: skip
    end = Property(
        None, t.TimeType(optional=True),
        "Time at which the node is gone, and before which it is there.",
        unit="seconds", order=True,
    )  # fmt: skip
    fit = Property(
        "stretch", t.ChoiceType(t.FITS), "How content of other proportions fills the box."
    )
    crop = Property(
        None, t.CropType(), "The part of the content to show: (left, top, width, height).",
        unit="pixels of the content",
    )  # fmt: skip
    blend = Property("over", t.ChoiceType(BLENDS), "Blend mode.", order=True)
    radius = Property(0.0, t.NumberType(0.0), "Radius of the corners.", unit="pixels")
    border_width = Property(
        0.0, t.NumberType(0.0), "Width of the border, which is inside the box.", unit="pixels"
    )
    border_color = Property((255, 255, 255, 255), t.ColorType(), "Color of the border.")
    border = PairProperty(
        "border_width", "border_color",
        t.PairType("width, color", t.NumberType(0.0), t.ColorType()),
        "(width, color) of the border.",
    )  # fmt: skip
    shadow = Property(
        None, t.ShadowType(), "(dx, dy, blur, color) of the shadow, or True for a default one."
    )

    def __init_subclass__(cls) -> None:
        found: dict[str, Property] = {}
        arguments: dict[str, Argument] = {}
        for base in reversed(cls.__mro__):
            own = vars(base)
            found |= {k: v for k, v in own.items() if isinstance(v, Property)}
            found = {k: v for k, v in found.items() if k not in own.get("WITHOUT", ())}
            arguments |= own.get("OWN_ARGUMENTS", {})
            arguments = {k: v for k, v in arguments.items() if k not in own.get("WITHOUT", ())}
        cls.PROPERTIES = found
        cls.ARGUMENTS = arguments
        if "type" in vars(cls):
            register_node(cls)

    @classmethod
    def create(cls, scene: Scene, parent: GroupNode, given: t.Values) -> Node:
        """Return a new node; ``given`` holds the arguments and properties of the builder call."""
        return cls(scene, parent, given)

    def __init__(self, scene: Scene, parent: GroupNode | None, given: t.Values) -> None:
        self.scene = scene
        self.parent = parent
        self.prepare(given)
        try:
            self._begin(given)
            self.ready()
        except BaseException:
            self.release()
            raise

    def _begin(self, given: t.Values) -> None:
        scene, call = self.scene, f"add_{self.type}"
        self.serial = next(scene._serials)
        self.effects: list[EffectNode] = []
        #: The node's entry in the display list; None if it is not drawn.
        self.display_item: DisplayItem | None = None
        #: Distance from the edges if the position is a name.
        self.margin: float = self.take(given, "margin") if "margin" in self.ARGUMENTS else 0.0
        self.id = scene._checked_id(given.pop("id", None), self.type, self.serial)
        #: The values of all properties by name, pairs by their parts.
        self.property_values: t.Values = {
            name: item.default
            for name, item in self.PROPERTIES.items()
            if not isinstance(item, PairProperty)
        }
        #: Whether the node is there at the scene's time.
        self.present = True
        place = given.pop("position", None) if "position" in self.PROPERTIES else None
        #: When the node is there, and what it plays then; and the arguments that say so.
        self.clip, self.played = self.take_times(given)
        self.property_values.update(self._checked(given, call))
        if place is not None:
            self.property_values.update(self._position(place, call))

    def prepare(self, given: t.Values) -> None:  # noqa: B027 - most nodes need nothing
        """Take the arguments that are not properties from those of the builder call.

        Only the scene and the group are known yet. What is opened here, ``release`` closes.
        """

    def ready(self) -> None:  # noqa: B027 - most nodes need nothing
        """Check arguments against the properties and the times of the node, which are known now."""

    def take_times(self, given: t.Values) -> tuple[ClipTimes, t.Values]:
        """Take the times from the arguments of the builder call."""
        return take_clip(given, self.ARGUMENTS, f"add_{self.type}")

    def take(self, given: t.Values, name: str) -> t.Value:
        """Take an argument from those of the builder call, checked by its declaration."""
        argument = self.ARGUMENTS[name]
        value = given.pop(name, argument.default)
        return None if value is None else argument.type.check(f"add_{self.type}", name, value)

    # properties -------------------------------------------------------------------------------
    def has(self, name: str) -> bool:
        """Return True if the node has a property of that name."""
        return name in self.PROPERTIES

    def get(self, name: str) -> t.Value:
        """Return the value of a property."""
        item = self.PROPERTIES.get(name)
        if item is None:
            raise self.unknown_property(name, f"{self.id}: get")
        return item.read(self)

    def set(self, name: str, value: t.Value) -> None:
        """Set a property, checked; the next frame shows it."""
        item = self.PROPERTIES.get(name)
        if item is None:
            raise self.unknown_property(name, self.id)
        if isinstance(item, PairProperty):
            item.assign(self, value)
            return
        if name in _TIMES:
            self.update(**{name: value})
            return
        if type(value) in _PLAIN and item.low <= value <= item.high:
            value = float(value)
        else:
            value = item.type.check(self.id, name, value)
        values = self.property_values
        with self.scene._lock:  # not while a frame is drawn
            if value != values[name]:
                values[name] = value
                self.changed(item)

    def move_to(self, x: float, y: float) -> None:
        """Set the position. The same as ``set("position", (x, y))``, and quicker."""
        across = self.PROPERTIES["x"]
        low, high = across.low, across.high
        if type(x) in _PLAIN and low <= x <= high and type(y) in _PLAIN and low <= y <= high:
            x, y = float(x), float(y)
        else:
            self.update(position=(x, y))
            return
        values = self.property_values
        with self.scene._lock:
            if x != values["x"] or y != values["y"]:
                values["x"], values["y"] = x, y
                self.changed(across)

    def update(self, **properties: t.Value) -> None:
        """Set several properties: all of them, or none if one is refused."""
        place = properties.pop("position", None)
        changes = self._checked(properties, self.id)
        if place is not None:
            changes |= self._position(place, self.id)
        with self.scene._lock:
            for name, value in changes.items():
                if value != self.property_values[name]:
                    self.property_values[name] = value
                    self.changed(self.PROPERTIES[name])

    def check(self, name: str, value: t.Value) -> None:
        """Raise the error that setting a property to a value would raise."""
        self._checked({name: value}, f"add_animation: {self.id!r}")

    def check_animatable(self, name: str) -> None:
        """Raise an error unless the node has a property of that name that can be animated."""
        if not self.has(name):
            raise self.unknown_property(name, "add_animation")
        item = self.PROPERTIES.get(name)
        if item is not None and not item.animatable:
            known = ", ".join(n for n, p in self.PROPERTIES.items() if p.animatable)
            expected, advice = "one that can be animated", f"Those are: {known}."
            raise ParameterError.invalid("add_animation", "property", expected, name, advice)

    def as_usual(self, *names: str) -> bool:
        """Return True if properties have their default values."""
        return all(self.property_values[n] == self.PROPERTIES[n].default for n in names)

    def is_held(self, name: str) -> bool:
        """Return True if animations of a property jump from value to value, as those of text."""
        item = self.PROPERTIES.get(name)
        return item is not None and bool(item.animatable) and not item.type.animatable

    def is_color(self, name: str) -> bool:
        """Return True if the values of a property are colors."""
        item = self.PROPERTIES.get(name)
        return name.endswith("color") if item is None else isinstance(item.type, t.ColorType)

    def _checked(self, given: t.Values, call: str) -> t.Values:
        made: t.Values = {}
        for name, value in given.items():
            item = self.PROPERTIES.get(name)
            if item is None:
                raise self.unknown_property(name, call)
            if isinstance(item, PairProperty):
                made |= self._pair(item, value, call)
            else:
                made[name] = item.type.check(call, name, value)
        if "start" in made or "end" in made:
            now = self.property_values
            check_order(made.get("start", now["start"]), made.get("end", now["end"]), call)
        return made

    def _position(self, place: t.Value, call: str) -> dict[str, float]:
        """Return x and y of a position, which may be a name."""
        if isinstance(place, str):
            x, y = layout.named_position(self, place, call)
            return {"x": x, "y": y}
        item = self.PROPERTIES["position"]
        assert isinstance(item, PairProperty)
        return self._pair(item, place, call)

    def _pair(self, item: PairProperty, value: t.Value, call: str) -> t.Values:
        """Return the checked parts of a pair by name."""
        pieces = zip(item.names, item.type.split(call, item.name, value), strict=True)
        return {n: self.PROPERTIES[n].type.check(call, item.name, piece) for n, piece in pieces}

    def unknown_property(self, name: str, call: str) -> UnknownParameter:
        """Return the error about a property that the node does not have."""
        hint = did_you_mean(str(name), self.PROPERTIES)
        if name in ("fade_in", "fade_out"):  # which sounds have
            hint = "Animate it: scene.add_animation(node, 'opacity', 0, 1, duration=1)."
        listed = f"It has: {', '.join(sorted(self.PROPERTIES))}."
        return UnknownParameter(
            f"{call}: a node of type {self.type!r} has no property {name!r}. {hint or listed}",
            argument=name,
        )

    def saved_arguments(self) -> t.Values:
        """Return the arguments that a scene file needs to make this node, by their keys."""
        return dict(self.played)

    def saved_state(self) -> t.Values:
        """Return the values that can change and that scene files hold, by name."""
        saved = self.PROPERTIES
        return {k: v for k, v in self.property_values.items() if saved[k].saved}

    def changed(self, item: Property | None = None) -> None:
        """Mark the node (and, if the property asks for it, the drawing order) as changed."""
        if item is not None and not item.drawn:
            return
        if item is not None and item.name in _TIMES:
            self.clip = self.clip.with_times(*(self.property_values[name] for name in _TIMES))
            self.scene._retime()
        own = self.display_item
        if own is None:
            self.scene._reorder()
        elif item is None or item.order:
            own.touch()
            if item is not None:
                self.scene._reorder()
        elif item.moves and own.stale:
            return  # already marked as moved, or as changed in more than its position
        else:
            own.touch(item.moves)

    # time -------------------------------------------------------------------------------------
    def retime(self, start: Fraction | None, end: Fraction | None) -> None:
        """Set the times that a timeline computes; the properties stay as they are."""
        self.clip = self.clip.with_times(start, end)

    def entered(self) -> None:  # noqa: B027 - most nodes need nothing
        """Finish a new node, now that it is in the scene."""

    def approach(self, near: bool) -> None:  # noqa: B027 - most nodes need nothing
        """Prepare for the node's time, or release resources until then; see ``ClipTimes``."""

    def local_time(self, moment: Moment) -> Moment | None:
        """Return the time of the nodes inside at a time of this node; None if there is none."""
        clip = self.clip
        if not clip.exists(moment):
            return None
        if clip.plain:
            return moment if not clip.start else Moment.of(moment.exact - clip.start)
        place = clip.place(moment.exact, self.length())
        if place is None:
            return None
        return Moment.of(place.time - _JUST if place.backward else place.time)

    def length(self) -> Fraction | None:
        """Return the seconds of the node's content, exact; None if it has no end, or not yet."""
        return None

    # rendering --------------------------------------------------------------------------------
    @abstractmethod
    def content(self) -> Content | None:
        """Return the node's current content; None for nothing."""

    def box_size(self, width: float, height: float) -> tuple[float, float]:
        """Return width and height of the box around content of this size."""
        return layout.box_size(self.property_values, width, height)

    @property
    def anchor_point(self) -> tuple[float, float]:
        """The anchor as fractions of the box."""
        across, down = self.property_values["anchor"]
        return across, down

    def placed(self, content: Content) -> layout.PlacedBox | None:
        """Return where the content is; None if nothing of it is visible."""
        return layout.place_content(self, content)

    def natural(self) -> tuple[float, float]:
        """Return the content's own size, as far as it is known."""
        found = self.content()
        return (0.0, 0.0) if found is None else (found.width, found.height)

    def release(self) -> None:  # noqa: B027 - most nodes have none
        """Free the node's resources after it was removed from the scene."""

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, width and height in the scene (or group) before rotation."""
        return layout.box(self, *self.natural())

    def remove(self) -> None:
        """Remove the node from its scene."""
        self.scene.remove_node(self)

    def place(self, left: float, top: float, width: float, height: float) -> None:
        """Move the box to a rectangle, with any anchor; layouts use this."""
        if width < 0 or height < 0:
            raise ParameterError(
                f"{self.id}: there is no room for it ({width:g} x {height:g}). Use smaller gaps."
            )
        across, down = self.anchor
        self.update(width=width, height=height, scale=1.0)
        self.update(position=(left + across * width, top + down * height))

    def around(self) -> Iterator[GroupNode]:
        """Yield the groups around the node, innermost first; the scene itself is none."""
        at = self.parent
        while at is not None and at.parent is not None:
            yield at
            at = at.parent

    def __reduce__(self) -> NoReturn:
        refuse_pickle(self, "Save the scene with scene.save(path).")

    def __repr__(self) -> str:
        x, y = self.property_values.get("x", 0), self.property_values.get("y", 0)
        return f"<{type(self).__name__} {self.id} at ({x:g}, {y:g})>"
