"""Groups: nodes that belong together, moved, faded and filtered as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dala.errors import ParameterError
from dala.media.scene.builder import Adding
from dala.media.scene.nodes.node import Content, Node
from dala.media.scene.nodes.properties import Property, number, sequence

if TYPE_CHECKING:
    from dala.media.scene.scene import Scene


class GroupNode(Node, Adding):
    """Nodes in a picture of their own: positions inside count from its top left.

    ``canvas`` is the size of that picture, the scene's (or outer group's) where left out; what lies
    beyond it is not seen. ``size`` is how large it is shown. Nodes inside blend among themselves,
    and the group as a whole with what is below it.
    """

    type = "group"
    __slots__ = ("canvas", "children")

    def __init__(
        self, scene: Scene, parent: GroupNode | None, canvas: Any, given: dict[str, Any]
    ) -> None:
        self.children: list[Node] = []
        self.canvas = _canvas(canvas, scene, parent)
        super().__init__(scene, parent, given)

    def ordered(self) -> list[Node]:
        """The nodes inside, back to front."""
        return sorted(self.children, key=lambda node: (node._values["z_index"], node.serial))

    @property
    def flat(self) -> bool:
        """True where drawing the nodes one by one looks the same as drawing them as one."""
        v = self._values
        return (
            v["opacity"] == 1.0 and v["blend"] == "over" and not v["rotation"] and not v["radius"]
            and not v["border_width"] and v["shadow"] is None and v["crop"] is None
            and v["scale"] == 1.0 and not self.effects
            and v["width"] in (None, self.canvas[0]) and v["height"] in (None, self.canvas[1])
            and all(_plain(node) for node in self.children)
        )  # fmt: skip

    def content(self) -> Content | None:
        """The size; the picture is made where it is drawn."""
        return Content(*self.canvas)

    def _changed(self, item: Property | None = None) -> None:
        if self._item is not None and (item is None or not item.order) and not self.flat:
            self._item.touch()
        else:
            self.scene._reorder()

    def _into(self) -> GroupNode:
        return self

    def _scene_of(self) -> Scene:
        return self.scene

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {len(self.children)} nodes>"


def _plain(node: Node) -> bool:
    """True for what looks the same however much of the scene is below it."""
    return node._values["blend"] == "over" and not (
        node.type == "effect" and getattr(node, "input", None) is None
    )


def _canvas(canvas: Any, scene: Scene, parent: GroupNode | None) -> tuple[float, float]:
    if canvas is None:
        if parent is None or parent.parent is None:
            return float(scene.width), float(scene.height)
        return parent.canvas
    items = sequence(canvas)
    if items is None or len(items) != 2:
        raise ParameterError(f"add_group: canvas is (width, height), {canvas!r} came.")
    width, height = (number(1.0, 16384.0)(item, "add_group: canvas") for item in items)
    return float(round(width)), float(round(height))
