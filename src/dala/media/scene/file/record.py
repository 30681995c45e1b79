"""What a scene's file said, kept while the scene lives: what has not changed is written as it was.

A file says "top-right" where a node has numbers, and a layout where nodes have boxes. Saving writes
the file's own words for what is still as they made it, and numbers for what is not.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from dala.gpu.color import NAMED
from dala.media.text.fonts.scan import SUFFIXES

if TYPE_CHECKING:
    from dala.media.scene.animation.animation import Animation
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.scene import Scene


#: Parameters of filters that are pictures, or files of another kind.
PICTURES: Final = ("over", "second", "picture", "mask", "background")
FILES: Final = ("lut", "map")


class Said(NamedTuple):
    """What a file said of a node, and what came of it."""

    item: dict[str, Any]
    #: The file it shows, as it was found.
    path: Any


class Record:
    """What a file said of a whole scene."""

    def __init__(self, data: dict[str, Any], base: Path) -> None:
        self.data = data
        self.base = base
        #: Files it names.
        self.files: set[Path] = set()
        self.nodes: WeakKeyDictionary[Node, Said] = WeakKeyDictionary()
        #: Values of nodes when the file had been read.
        self.values: WeakKeyDictionary[Node, dict[str, Any]] = WeakKeyDictionary()
        self.animations: WeakKeyDictionary[Animation, dict[str, Any]] = WeakKeyDictionary()
        #: Where an animation stands that is one of the file's nodes: ids of group and node before.
        self.after: WeakKeyDictionary[Animation, tuple[str | None, str | None]]
        self.after = WeakKeyDictionary()

    def take(self, node: Node, item: dict[str, Any], path: Any) -> None:
        """A node was made as the file says."""
        self.nodes[node] = Said(item, path)

    def animated(self, animation: Animation, item: dict[str, Any], after: Any) -> None:
        """An animation was made as the file says."""
        self.animations[animation] = item
        if after is not None:
            self.after[animation] = after

    def settle(self, scene: Scene) -> None:
        """The file has been read: what nodes are now is what it means."""
        for node in self.nodes:
            self.values[node] = state(node)


_records: WeakKeyDictionary[Scene, Record] = WeakKeyDictionary()


def remember(scene: Scene, record: Record) -> None:
    """Keeps the record of a scene for as long as it lives."""
    record.settle(scene)
    _records[scene] = record


def record_of(scene: Scene) -> Record | None:
    """What a scene's file said; None for one that was made by calls."""
    return _records.get(scene)


def state(node: Node) -> dict[str, Any]:
    """All that can be changed about a node: properties, and the parameters of an effect."""
    params = {f"params.{k}": v for k, v in getattr(node, "params", {}).items()}
    values = {k: v for k, v in node._values.items() if node.type != "subtitles" or k != "text"}
    return values | params


def animation_arguments(item: dict[str, Any]) -> dict[str, Any]:
    """The arguments of add_animation that an entry means."""
    given = {k: v for k, v in item.items() if k != "type" and v is not None}
    if "from" in given:
        given["from_"] = given.pop("from")
    if "easing" in given and isinstance(given["easing"], list):
        given["easing"] = tuple(given["easing"])
    if "repeat" in given:
        given["repeat"] = int(given["repeat"])
    if "keyframes" in given:
        given["keyframes"] = [
            tuple(tuple(v) if isinstance(v, list) and i == 2 else v for i, v in enumerate(frame))
            for frame in given["keyframes"]
        ]
    return given


def is_font_file(font: Any) -> bool:
    """Whether a font is the path of a file, not a family."""
    return isinstance(font, str) and (font.lower().endswith(SUFFIXES) or "/" in font)


def is_file_param(name: str, value: Any) -> bool:
    """Whether a parameter of a filter is the path of a file."""
    if name in FILES:
        return isinstance(value, str)
    color = isinstance(value, str) and (value.startswith("#") or value.strip().lower() in NAMED)
    return name in PICTURES and isinstance(value, str) and not color
