"""The file that a scene was loaded from, kept so that saving reproduces what did not change.

A file says "top-right" where a node has coordinates, and a layout where nodes have boxes. Saving
writes the file's own form for everything that still has the value the file gave it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from dala.gpu.color import NAMED
from dala.media.scene.nodes.json_types import JsonValue
from dala.media.text.fonts.scan import SUFFIXES

if TYPE_CHECKING:
    from dala.media.scene.animation.animation import Animation
    from dala.media.scene.follow.follower import Follow
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.nodes.property_types import Values
    from dala.media.scene.scene import Scene


#: Parameters of filters that are pictures, or files of another kind.
PICTURE_PARAMS: Final = ("over", "second", "picture", "mask", "background")
FILE_PARAMS: Final = ("lut", "map", "element")
#: The largest array that is saved as nested lists: a structuring element of 129 by 129.
MAX_LISTED: Final = 129 * 129


class NodeEntry(NamedTuple):
    """The entry of a node in a file."""

    item: dict[str, JsonValue]
    #: The paths in it as they were resolved, by key.
    paths: dict[str, str | int]


class FileRecord:
    """The contents of a scene file, and the nodes and animations it made."""

    def __init__(self, data: dict[str, JsonValue], base: Path) -> None:
        self.data = data
        self.base = base
        #: Files that it names.
        self.files: set[Path] = set()
        self.nodes: WeakKeyDictionary[Node, NodeEntry] = WeakKeyDictionary()
        #: State of the nodes after loading.
        self.states: WeakKeyDictionary[Node, Values] = WeakKeyDictionary()
        self.animations: WeakKeyDictionary[Animation, dict[str, JsonValue]] = WeakKeyDictionary()
        #: For an animation in the list of nodes: the ids of its group and of the node before it.
        self.after: WeakKeyDictionary[Animation, tuple[str | None, str | None]]
        self.after = WeakKeyDictionary()
        self.follows: WeakKeyDictionary[Follow, dict[str, JsonValue]] = WeakKeyDictionary()

    def add_node(self, node: Node, item: dict[str, JsonValue], paths: dict[str, str | int]) -> None:
        """Remember the entry of a node."""
        self.nodes[node] = NodeEntry(item, paths)

    def add_animation(
        self,
        animation: Animation,
        item: dict[str, JsonValue],
        after: tuple[str | None, str | None] | None,
    ) -> None:
        """Remember the entry of an animation."""
        self.animations[animation] = item
        if after is not None:
            self.after[animation] = after


_records: WeakKeyDictionary[Scene, FileRecord] = WeakKeyDictionary()


def remember(scene: Scene, record: FileRecord) -> None:
    """Keep the record of a scene that was just loaded, for as long as the scene exists."""
    for node in record.nodes:
        record.states[node] = node.saved_state()
    _records[scene] = record


def forget(scene: Scene) -> None:
    """Drop the record of a scene: saving then writes all values as they are."""
    _records.pop(scene, None)


def record_of(scene: Scene) -> FileRecord | None:
    """Return the record of a scene; None if it was not loaded from a file."""
    return _records.get(scene)


def animation_arguments(item: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the arguments of ``add_animation`` for an entry of a file."""
    given = {k: v for k, v in item.items() if k not in ("type", "level") and v is not None}
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


def is_font_file(font: JsonValue) -> bool:
    """Return True if a font is the path of a file, not a family.

    >>> is_font_file("fonts/Own.ttf"), is_font_file("Dala Sans")
    (True, False)
    """
    return isinstance(font, str) and (font.lower().endswith(SUFFIXES) or "/" in font)


def is_file_param(name: str, value: JsonValue) -> bool:
    """Return True if a parameter of a filter is the path of a file.

    >>> is_file_param("lut", "warm.cube"), is_file_param("background", "red")
    (True, False)
    """
    if name in FILE_PARAMS:
        return isinstance(value, str)
    color = isinstance(value, str) and (value.startswith("#") or value.strip().lower() in NAMED)
    return name in PICTURE_PARAMS and isinstance(value, str) and not color
