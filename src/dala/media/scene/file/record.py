"""The file that a scene was loaded from, kept so that saving reproduces unchanged parts.

A file says "top-right" where a node has coordinates, and a layout where nodes have boxes. Saving
writes the file's own form for everything that still has the value the file gave it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from dala.media.scene.nodes.json_types import JsonItem, JsonValue
from dala.media.scene.nodes.property_types import is_color_name
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


@dataclass(eq=False)
class NodeEntry:
    """The entry of a node in a file."""

    item: JsonItem
    #: The paths in it as they were resolved, by key.
    paths: dict[str, str | int]
    #: The state of the node after loading.
    state: Values = field(default_factory=dict)


class AnimationEntry(NamedTuple):
    """The entry of an animation in a file."""

    item: JsonItem
    #: If it is in the list of nodes: the ids of its group and of the node before it.
    after: tuple[str | None, str | None] | None


class FileRecord:
    """The contents of a scene file, and the nodes and animations it made."""

    def __init__(self, data: JsonItem, base: Path) -> None:
        self.data = data
        self.base = base
        #: Files that it names.
        self.files: set[Path] = set()
        #: Open files that are read as long as the scene is there.
        self.held: list[object] = []
        self.nodes: WeakKeyDictionary[Node, NodeEntry] = WeakKeyDictionary()
        self.animations: WeakKeyDictionary[Animation, AnimationEntry] = WeakKeyDictionary()
        self.follows: WeakKeyDictionary[Follow, JsonItem] = WeakKeyDictionary()


_records: WeakKeyDictionary[Scene, FileRecord] = WeakKeyDictionary()


def remember(scene: Scene, record: FileRecord) -> None:
    """Keep the record of a scene that was just loaded, for as long as the scene exists."""
    for node, entry in record.nodes.items():
        entry.state = node.saved_state()
    _records[scene] = record


def forget(scene: Scene) -> None:
    """Drop the record of a scene: saving then writes all values as they are."""
    _records.pop(scene, None)


def record_of(scene: Scene) -> FileRecord | None:
    """Return the record of a scene; None if it was not loaded from a file."""
    return _records.get(scene)


def is_font_file(font: JsonValue) -> bool:
    """Return True if a font is the path of a file, not a family.

    >>> is_font_file("fonts/Own.ttf"), is_font_file("Dala Sans")
    (True, False)
    """
    return isinstance(font, str) and (
        font.lower().endswith(SUFFIXES) or not {"/", "\\"}.isdisjoint(font)
    )


def is_file_param(name: str, value: JsonValue) -> bool:
    """Return True if a parameter of a filter is the path of a file.

    >>> is_file_param("lut", "warm.cube"), is_file_param("background", "red")
    (True, False)
    """
    if name in FILE_PARAMS:
        return isinstance(value, str)
    return name in PICTURE_PARAMS and isinstance(value, str) and not is_color_name(value)


def is_model_file(model: str) -> bool:
    """Return True if a model is the path of a file, not a name.

    >>> is_model_file("models/own.onnx"), is_model_file("own.onnx"), is_model_file("blazeface")
    (True, True, False)
    """
    return not model.replace("-", "_").isidentifier()


def names_file(key: str, value: str) -> bool:
    """Return True if the value of a key, anywhere in a scene file, is the path or URL of a file.

    >>> names_file("source", "a.mp4"), names_file("id", "a.mp4"), names_file("font", "Dala Sans")
    (True, False, False)
    """
    if not value or "\n" in value:
        return False
    if key == "font":
        return is_font_file(value)
    if key == "model":
        return is_model_file(value)
    return key in ("source", "picture") or is_file_param(key, value)
