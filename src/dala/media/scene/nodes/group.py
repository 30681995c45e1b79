"""Groups: nodes that are moved, faded and filtered as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from dala.errors import ParameterError
from dala.media.scene.boxes import container_size
from dala.media.scene.builder import NodeBuilder
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.audio import VOLUME
from dala.media.scene.nodes.json_types import JsonNumber
from dala.media.scene.nodes.nested import SceneNode
from dala.media.scene.nodes.node import Content, Node
from dala.media.scene.nodes.properties import Argument, Property
from dala.media.scene.nodes.times import PLAY_ARGUMENTS

if TYPE_CHECKING:
    from dala.media.scene.nodes.timeline import TimelineClip
    from dala.media.scene.scene import Scene

_SIDE = t.NumberType(1, 16384)


class GroupNode(Node, NodeBuilder):
    """A group of nodes with a picture of its own; positions inside count from its top left.

    A group has the same ``add_*`` methods as a scene. ``canvas`` is the size of its picture, by
    default that of the scene or outer group; nodes are clipped to it. ``size`` is the size at
    which the picture is shown. Nodes inside blend among themselves, and the group as a whole with
    the nodes below it. Given a scene, ``add_group`` is the same as ``add_scene``.

    The times of the nodes inside, and of their animations, count from the group's start, and run
    with its ``trim``, ``speed`` and ``loop``.

    >>> import dala
    >>> with dala.media.Scene(64, 36, device="cpu") as scene:
    ...     group = scene.add_group(position=(8, 8), opacity=0.5)
    ...     card = group.add_overlay(color="red", size=(16, 16))
    ...     scene.render().numpy()[10, 10].tolist()
    [128, 0, 0, 255]
    """

    type = "group"
    OWN_ARGUMENTS: ClassVar[dict[str, Argument]] = {
        "scene": Argument(
            t.PropertyType(JsonNumber(), "Scene", optional=True),
            "A scene to show instead of new nodes.",
            key="",
        ),
        "canvas": Argument(
            t.TupleType("width, height", _SIDE, _SIDE),
            "(width, height) of the group's picture, in pixels.",
        ),
        **PLAY_ARGUMENTS,
    }
    POSITIONAL = ("scene",)
    HOLDS = "nodes"
    __slots__ = ("canvas", "children")

    volume = Property(1.0, VOLUME, "Factor of the sound of the nodes inside.", drawn=False)

    @classmethod
    def create(cls, scene: Scene, parent: GroupNode, given: t.Values) -> Node:
        """Return a new group, or a SceneNode for a given scene."""
        if "scene" in cls.ARGUMENTS and given.get("scene") is not None:
            return SceneNode(scene, parent, given)
        return cls(scene, parent, given)

    def prepare(self, given: t.Values) -> None:
        """Take the arguments that are not properties."""
        given.pop("scene", None)
        self.children: list[Node] = []
        #: Width and height of the picture.
        self.canvas: tuple[float, float] = container_size(self)
        if (canvas := self.take(given, "canvas")) is not None:
            self.canvas = float(round(canvas[0])), float(round(canvas[1]))

    def ready(self) -> None:
        """Refuse times that need a length."""
        if self.clip.needs_length and type(self) is GroupNode:
            raise ParameterError(
                "add_group: to loop or run backwards a group needs its length. Give trim=(0, "
                "seconds)."
            )

    def saved_arguments(self) -> t.Values:
        """Return the canvas if it is not the default one, and the times."""
        made = super().saved_arguments()
        return made if self.canvas == container_size(self) else {"canvas": self.canvas, **made}

    def take_clip(self, type: str, given: t.Values, call: str) -> TimelineClip | None:
        """Take the arguments that concern a timeline from those of a builder call."""
        if given.pop("transition", None) is not None:
            raise ParameterError(
                f"{call}: transition is for the nodes of a timeline. Add them to "
                "scene.add_timeline()."
            )
        return None

    def adopt(self, node: Node, clip: TimelineClip | None) -> None:
        """Put a new node into the group."""
        self.children.append(node)

    def disown(self, node: Node) -> None:
        """Take a node out of the group."""
        self.children.remove(node)

    def layers(self) -> tuple[list[Node], ...]:
        """Return the nodes of each of the group's pictures; a transition has two."""
        return (self.ordered(),)

    def ordered(self) -> list[Node]:
        """Return the nodes inside, back to front."""
        drawn = [node for node in self.children if node.DRAWN]
        return sorted(drawn, key=lambda node: (node.property_values["z_index"], node.serial))

    @property
    def flat(self) -> bool:
        """True if drawing the nodes one by one gives the same result as drawing the group."""
        usual = self.as_usual(
            "opacity", "blend", "rotation", "radius", "border_width", "shadow", "crop", "scale"
        )
        width, height = self.property_values["width"], self.property_values["height"]
        return (
            usual and not self.effects
            and width in (None, self.canvas[0]) and height in (None, self.canvas[1])
            and all(_independent(node) for node in self.children if node.DRAWN)
        )  # fmt: skip

    def content(self) -> Content | None:
        """Return the size; the compositor draws the picture."""
        return Content(*self.canvas)

    def changed(self, item: Property | None = None) -> None:
        """Mark the group as changed; the display list too, if its nodes are drawn one by one."""
        if item is not None and not item.drawn:
            return
        if self.display_item is not None and (item is None or not item.order) and not self.flat:
            self.display_item.touch()
        else:
            self.scene._reorder()

    def container(self) -> GroupNode:
        """Return this group."""
        return self

    def scene_of(self) -> Scene:
        """Return the group's scene."""
        return self.scene

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {len(self.children)} nodes>"


def _independent(node: Node) -> bool:
    """Return True if a node looks the same over any backdrop."""
    return node.property_values["blend"] == "over" and not (
        node.type == "effect" and getattr(node, "input", None) is None
    )
