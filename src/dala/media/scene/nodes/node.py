"""What all nodes of a scene share: properties, an id, a place in the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from dala.errors import ParameterError, UnknownParameter, did_you_mean
from dala.gpu.compute.composite import BLENDS
from dala.media.scene import boxes as layout
from dala.media.scene.nodes import properties as p
from dala.media.scene.nodes.properties import Parts, Place, Property

if TYPE_CHECKING:
    from dala.gpu.compute.composite import Picture
    from dala.media.scene.compositor.display import Item
    from dala.media.scene.nodes.effect import EffectNode
    from dala.media.scene.nodes.group import GroupNode
    from dala.media.scene.scene import Scene

#: Numbers that are within a property's bounds, or not.
_PLAIN: Final = (float, int)
FITS: Final = ("fill", "contain", "cover", "none")


class Content:
    """What a node shows before it is placed: a picture or a colour."""

    __slots__ = (
        "color", "finished", "height", "margin", "opaque", "picture", "version", "width",
    )  # fmt: skip

    def __init__(
        self,
        width: float,
        height: float,
        picture: Picture | None = None,
        version: int = 0,
        *,
        color: tuple[int, int, int, int] = (0, 0, 0, 0),
        opaque: bool = False,
        margin: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0),
        finished: bool = False,
    ) -> None:
        #: Of the box: the picture's own size, less its margin.
        self.width = width
        self.height = height
        self.picture = picture
        #: Changes exactly when the picture's pixels do.
        self.version = version
        self.color = color
        #: True where nothing shines through.
        self.opaque = opaque
        #: How far the picture reaches beyond the box: left, top, right, bottom, in its pixels.
        self.margin = margin
        #: True where round corners and the border are in the picture already.
        self.finished = finished


class Node:
    """Something in a scene. ``node.opacity = 0.5`` and ``node.set("opacity", 0.5)`` are the same.

    ``position`` (x, y) is where the anchor comes to lie in the scene (or group), in pixels from the
    top left. ``size`` (width, height) is that of the box; what is left out comes from the content,
    its shape kept. ``scale`` and ``rotation`` (degrees, clockwise) are about the anchor. ``fit``
    says how content of another shape lies in the box: "fill" stretches it, "contain" shows all of
    it, "cover" fills the box and cuts off what is beyond, "none" keeps its size. ``crop`` is (left,
    top, width, height) in pixels of the content. Nodes with a higher ``z_index`` are drawn later;
    of equal ones, those added later. ``radius`` rounds the corners, a border lies inside the box,
    ``shadow`` is (dx, dy, blur, color).
    """

    type: ClassVar[str] = "node"
    #: All properties of the class by name.
    PROPERTIES: ClassVar[dict[str, Property]] = {}

    __slots__ = (
        "__weakref__", "_item", "_values", "effects", "id", "margin", "parent", "scene", "serial",
    )  # fmt: skip

    x = Property(0.0, p.number(), moves=True)
    y = Property(0.0, p.number(), moves=True)
    width = Property(None, p.number(0.0, optional=True))
    height = Property(None, p.number(0.0, optional=True))
    position = Place("x", "y", words="(x, y) or a name such as 'top-right'")
    size = Parts("width", "height", words="(width, height)")
    anchor = Property((0.0, 0.0), p.anchor)
    scale = Property(1.0, p.number(0.0, 10_000.0))
    rotation = Property(0.0, p.number())
    opacity = Property(1.0, p.number(0.0, 1.0))
    z_index = Property(0.0, p.number(), order=True)
    visible = Property(True, p.truth, order=True)
    fit = Property("fill", p.one_of(FITS))
    crop = Property(None, p.crop)
    blend = Property("over", p.one_of(BLENDS), order=True)
    radius = Property(0.0, p.number(0.0))
    border_width = Property(0.0, p.number(0.0))
    border_color = Property((255, 255, 255, 255), p.color)
    border = Parts("border_width", "border_color", words="(width, color)")
    shadow = Property(None, p.shadow)

    def __init_subclass__(cls) -> None:
        found: dict[str, Property] = {}
        for kind in reversed(cls.__mro__):
            found |= {k: v for k, v in vars(kind).items() if isinstance(v, Property)}
            found = {k: v for k, v in found.items() if k not in vars(kind).get("WITHOUT", ())}
        cls.PROPERTIES = found

    def __init__(self, scene: Scene, parent: GroupNode | None, given: dict[str, Any]) -> None:
        self.scene = scene
        self.parent = parent
        self.serial = scene._next_serial()
        self.effects: list[EffectNode] = []
        self._item: Item | None = None
        #: From the edges, where a position is given by name.
        self.margin = p.number()(given.pop("margin", 0.0), f"add_{self.type}: margin")
        self.id = scene._checked_id(given.pop("id", None), self.type, self.serial)
        self._values = {
            name: item.default
            for name, item in self.PROPERTIES.items()
            if not isinstance(item, Parts)
        }
        place = given.pop("position", None)
        self._values.update(self._checked(given, f"add_{self.type}"))
        if place is not None:
            self._values.update(self._placed_at(place, f"add_{self.type}"))

    # properties -------------------------------------------------------------------------------
    def has(self, name: str) -> bool:
        """Whether there is such a property."""
        return name in self.PROPERTIES

    def get(self, name: str) -> Any:
        """The value of a property."""
        item = self.PROPERTIES.get(name)
        if item is None:
            raise self._unknown(name, f"{self.id}: get")
        return item.read(self)

    def set(self, name: str, value: Any) -> None:
        """Changes a property, checked; the next frame shows it."""
        item = self.PROPERTIES.get(name)
        if item is None:
            raise self._unknown(name, self.id)
        if isinstance(item, Parts):
            item.assign(self, value)
            return
        if type(value) in _PLAIN and item.low <= value <= item.high:
            value = float(value)
        else:
            value = item.check(value, f"{self.id}: {name}")
        values = self._values
        if value != values[name]:
            values[name] = value
            self._changed(item)

    def _move(self, x: Any, y: Any) -> None:
        """As ``set("position", (x, y))``, which most frames do to most nodes that change."""
        across = self.PROPERTIES["x"]
        low, high = across.low, across.high
        if type(x) in _PLAIN and low <= x <= high and type(y) in _PLAIN and low <= y <= high:
            x, y = float(x), float(y)
        else:
            call = f"{self.id}: position"
            x, y = across.check(x, call), self.PROPERTIES["y"].check(y, call)
        values = self._values
        if x != values["x"] or y != values["y"]:
            values["x"], values["y"] = x, y
            self._changed(across)

    def update(self, **properties: Any) -> None:
        """Changes several properties: all of them, or none if one is refused."""
        place = properties.pop("position", None)
        changes = self._checked(properties, self.id)
        if place is not None:
            changes |= self._placed_at(place, self.id)
        for name, value in changes.items():
            if value != self._values[name]:
                self._values[name] = value
                self._changed(self.PROPERTIES[name])

    def check(self, name: str, value: Any) -> None:
        """Refuses what the property would not take, as animations ask before they begin."""
        self._checked({name: value}, f"add_animation: {self.id!r}")

    def _checked(self, given: dict[str, Any], call: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, value in given.items():
            item = self.PROPERTIES.get(name)
            if item is None:
                raise self._unknown(name, call)
            if isinstance(item, Parts):
                for part, piece in item.split(value, f"{call}: {name}").items():
                    made[part] = self.PROPERTIES[part].check(piece, f"{call}: {name}")
            else:
                made[name] = item.check(value, f"{call}: {name}")
        return made

    def _placed_at(self, place: Any, call: str) -> dict[str, float]:
        """x and y of a position, which may be a name: then the box lies there, by its margin."""
        if isinstance(place, str):
            x, y = layout.named_place(self, place, f"{call}: position")
            return {"x": x, "y": y}
        item = self.PROPERTIES["position"]
        assert isinstance(item, Parts)
        parts = item.split(place, f"{call}: position")
        return {k: self.PROPERTIES[k].check(v, f"{call}: position") for k, v in parts.items()}

    def _unknown(self, name: str, call: str) -> UnknownParameter:
        hint = did_you_mean(str(name), self.PROPERTIES)
        listed = f"It has: {', '.join(sorted(self.PROPERTIES))}."
        return UnknownParameter(
            f"{call}: a node of type {self.type!r} has no property {name!r}. {hint or listed}"
        )

    # what follows from a change ---------------------------------------------------------------
    def _changed(self, item: Property | None = None) -> None:
        """Tells the scene that this node looks different, or that the order of drawing does."""
        own = self._item
        if own is None:
            self.scene._reorder()
        elif item is None or item.order:
            own.touch()
            if item is not None:
                self.scene._reorder()
        elif item.moves and own.stale:
            return  # it is known already that it moved, or that more happened
        else:
            own.touch(item.moves)

    # for rendering ----------------------------------------------------------------------------
    def content(self) -> Content | None:
        """What is shown now; None for nothing."""
        raise NotImplementedError

    def sides(self, width: float, height: float) -> tuple[float, float]:
        """Width and height of the box, of content of this size."""
        return layout.sides(self._values, width, height)

    def natural(self) -> tuple[float, float]:
        """The content's own size, as far as it is known."""
        found = self.content()
        return (0.0, 0.0) if found is None else (found.width, found.height)

    def release(self) -> None:
        """Gives back what the node holds; it is out of the tree."""

    # showing ----------------------------------------------------------------------------------
    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, width and height in the scene (or group) before rotation."""
        return layout.box(self, *self.natural())

    def remove(self) -> None:
        """Takes the node out of its scene."""
        self.scene.remove_node(self)

    def place(self, left: float, top: float, width: float, height: float) -> None:
        """Lays the box there, whatever the anchor; for layouts."""
        if width < 0 or height < 0:
            raise ParameterError(
                f"{self.id}: no room is left for it ({width:g} x {height:g}). Make gaps smaller."
            )
        across, down = self.anchor
        self.update(size=(width, height), scale=1.0)
        self.update(position=(left + across * width, top + down * height))

    def __repr__(self) -> str:
        x, y = self._values.get("x", 0), self._values.get("y", 0)
        return f"<{type(self).__name__} {self.id} at ({x:g}, {y:g})>"
