"""The nodes of a scene file, each with a handle that stays the same through edits and undo.

A document is the contents of a scene file. Nodes have their handle under a key of their own, which
is removed before the document is loaded or written.
"""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dala.errors import ParameterError
from dala.media.scene.file.record import names_file
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.untrusted.address import scheme_of

#: The key of handles. No property of a node has such a name.
HANDLE: Final = "@"


@dataclass
class NodePlace:
    """A node of a document: its entry, the list it is in, and the scene that has it."""

    item: JsonObject
    siblings: list[Json]
    index: int
    #: The contents of the scene, or inner scene, whose animations may name the node.
    scene: JsonObject
    #: The handle of the group or inner scene around it; None at the top.
    parent: str | None

    @property
    def handle(self) -> str:
        """The handle of the node."""
        return str(self.item[HANDLE])


def places(scene: JsonObject, parent: str | None = None) -> Iterator[NodePlace]:
    """Yield every node of a document, outer ones first; animations in lists are left out.

    >>> [p.item["type"] for p in places({"nodes": [{"type": "text"}, {"type": "animation"}]})]
    ['text']
    """
    yield from _in_list(scene, scene.get("nodes"), parent)


def _in_list(scene: JsonObject, nodes: Json, parent: str | None) -> Iterator[NodePlace]:
    if not isinstance(nodes, list):
        return
    for index, item in enumerate(nodes):
        if not isinstance(item, dict) or item.get("type") == "animation":
            continue
        yield NodePlace(item, nodes, index, scene, parent)
        handle = item.get(HANDLE)
        inside = handle if isinstance(handle, str) else None
        yield from _in_list(scene, item.get("nodes"), inside)
        inner = item.get("scene")
        if isinstance(inner, dict):
            yield from places(inner, inside)


def rows_of(holder: JsonObject, key: str) -> list[JsonObject]:
    """Return the objects of a list; none if there is no such list.

    >>> rows_of({"layouts": [{"gap": 8}, 1]}, "layouts"), rows_of({}, "layouts")
    ([{'gap': 8}], [])
    """
    found = holder.get(key)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def find(document: JsonObject, handle: Json, call: str, argument: str = "node") -> NodePlace:
    """Return a node by its handle.

    Raises:
        ParameterError: there is no such node.
    """
    for place in places(document):
        if isinstance(handle, str) and place.item.get(HANDLE) == handle:
            return place
    raise ParameterError.invalid(call, argument, "the handle of a node", handle)


def with_handles(document: JsonObject, serial: int) -> tuple[JsonObject, int]:
    """Return a copy of a document whose nodes all have handles, and the next free number.

    >>> with_handles({"nodes": [{"type": "text"}]}, 1)
    ({'nodes': [{'type': 'text', '@': 'n1'}]}, 2)
    """
    made = copy.deepcopy(document)
    for place in places(made):
        if HANDLE not in place.item:
            place.item[HANDLE] = f"n{serial}"
            serial += 1
    return made, serial


def without_handles(document: JsonObject) -> JsonObject:
    """Return a copy of a document as files have it.

    >>> without_handles({"nodes": [{"type": "text", "@": "n1"}]})
    {'nodes': [{'type': 'text'}]}
    """
    made = copy.deepcopy(document)
    for place in places(made):
        place.item.pop(HANDLE, None)
    return made


def to_load(document: JsonObject) -> tuple[JsonObject, dict[str, str]]:
    """Return a document for loading, in which every node has an id, and the ids by handle.

    Ids of nodes of inner scenes are left out: those scenes have ids of their own.
    """
    made = copy.deepcopy(document)
    ids: dict[str, str] = {}
    for place in places(made):
        handle = str(place.item.pop(HANDLE, ""))
        if not isinstance(place.item.get("id"), str):
            place.item["id"] = f"@{handle}"
        if place.scene is made and handle:
            ids[handle] = str(place.item["id"])
    return made, ids


def id_of(document: JsonObject, place: NodePlace) -> str:
    """Return the id of a node; one without gets one, as animations name their node by it."""
    found = place.item.get("id")
    if isinstance(found, str) and found:
        return found
    kind, taken = place.item["type"], {p.item.get("id") for p in places(document)}
    made = next(id for n in itertools.count(1) if (id := f"{kind}-{n}") not in taken)
    # After the type, where a reader expects it.
    rest = dict(place.item)
    place.item.clear()
    place.item.update({"type": kind, "id": made, **rest})
    return made


def tree(document: JsonObject) -> list[Json]:
    """Return the nodes as the state lists them."""
    rows: dict[str, JsonObject] = {}
    top: list[Json] = []
    for place in places(document):
        item = place.item
        children: list[Json] = []
        row: JsonObject = {
            "id": place.handle,
            "type": item.get("type"),
            "name": _name(item),
            "properties": {
                k: v for k, v in item.items() if k not in (HANDLE, "type", "nodes", "scene")
            },
            "animations": [_track(a) for a in animations_of(place)],
            "children": children,
        }
        rows[place.handle] = row
        if place.parent is None:
            top.append(row)
        else:
            inside = rows[place.parent]["children"]
            assert isinstance(inside, list)
            inside.append(row)
    return top


def _name(item: JsonObject) -> str:
    for key in ("id", "text", "filter", "source", "color"):
        value = item.get(key)
        if isinstance(value, str) and value:
            line = value.strip().partition("\n")[0].rpartition("/")[2]
            return line[:40]
    return str(item.get("type", "node"))


# animations ---------------------------------------------------------------------------------------
def animations_of(place: NodePlace) -> list[JsonObject]:
    """Return the animations of a node: those of its scene's list, and those among the nodes."""
    id = place.item.get("id")
    if not isinstance(id, str):
        return []
    found = [*rows_of(place.scene, "animations"), *_among_nodes(place.scene)]
    return [a for a in found if a.get("node") == id]


def _among_nodes(holder: JsonObject) -> Iterator[JsonObject]:
    for item in rows_of(holder, "nodes"):
        if item.get("type") == "animation":
            yield item
        yield from _among_nodes(item)


def _track(animation: JsonObject) -> JsonObject:
    rows, editable = keyframes(animation)
    return {
        "property": animation.get("property"),
        "keyframes": list[Json](rows),
        "editable": editable,
    }


def offset(animation: JsonObject) -> float:
    """Return the scene time at which an animation begins."""
    return _number(animation.get("start")) + _number(animation.get("delay"))


def keyframes(animation: JsonObject) -> tuple[list[Json], bool]:
    """Return key frames in scene time, and whether they can be edited.

    >>> keyframes({"from": 0, "to": 1, "duration": 2, "delay": 1})
    ([[1.0, 0, 'linear'], [3.0, 1, 'linear']], True)
    """
    begin = offset(animation)
    plain = not any(animation.get(key) for key in ("repeat", "yoyo", "level"))
    easing = animation.get("easing") or "linear"
    listed = animation.get("keyframes")
    if isinstance(listed, list):
        rows: list[Json] = []
        for row in listed:
            if isinstance(row, list) and len(row) >= 2:
                eased = row[2] if len(row) > 2 and row[2] else easing
                rows.append([_number(row[0]) + begin, row[1], eased])
        return rows, plain
    end = begin + _number(animation.get("duration"), 1.0)
    first = animation.get("from")
    made: list[Json] = [] if first is None else [[begin, first, easing]]
    if "to" in animation:
        made.append([end, animation["to"], easing])
    return made, plain and first is not None


def _number(value: Json, default: float = 0.0) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return default
    return float(value)


def _named(value: Json, key: str, change: Callable[[str], str]) -> Json:
    """Return a value with the names of files changed."""
    if isinstance(value, dict):
        return {name: _named(item, name, change) for name, item in value.items()}
    if isinstance(value, list):
        return [_named(item, key, change) for item in value]
    if isinstance(value, str) and names_file(key, value):
        return change(value)
    return value


def named_in(document: JsonObject) -> Iterator[str]:
    """Yield the files and addresses that a document names, as it writes them.

    >>> list(named_in({"nodes": [{"type": "image", "source": "a.png"}]}))
    ['a.png']
    """
    found: list[str] = []

    def note(name: str) -> str:
        found.append(name)
        return name

    _named(document, "", note)
    yield from found


def rebased(document: JsonObject, old: Path, new: Path) -> JsonObject:
    """Return a document whose relative files are found from another folder.

    >>> rebased({"nodes": [{"source": "a.png"}]}, Path("/x"), Path("/x/y"))
    {'nodes': [{'source': '../a.png'}]}
    """
    if old == new:
        return document

    def change(name: str) -> str:
        if scheme_of(name) is not None or os.path.isabs(name):
            return name
        return Path(os.path.relpath(old / name, new)).as_posix()

    made = _named(copy.deepcopy(document), "", change)
    assert isinstance(made, dict)
    return made
