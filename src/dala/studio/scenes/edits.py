"""Edits of scene documents. Each returns a new document; the old one is for undo."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Final

from dala.errors import ParameterError
from dala.media.scene.nodes.properties import PIP_ARGUMENTS
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.studio.scenes import tree

#: Keys of a node that decide where it is, and how large.
POSITION: Final = ("position", "x", "y", "margin", *PIP_ARGUMENTS)
SIZE: Final = ("size", "width", "height")
#: Types of rows among nodes that refer to another node, and the key with its id.
_REFERS: Final = {"animation": "node", "effect": "input"}
#: Key frames closer than this are the same, in seconds.
_CLOSE: Final = 1e-4


def _copied(document: JsonObject, handle: Json, call: str) -> tuple[JsonObject, tree.NodePlace]:
    """Return a copy of a document, and the place of a node in it."""
    made = copy.deepcopy(document)
    return made, tree.find(made, handle, call)


def add_node(
    document: JsonObject, item: JsonObject, parent: Json, at: int | None, handle: str
) -> JsonObject:
    """Return a document with a new node, at the end of its list or at an index."""
    made = copy.deepcopy(document)
    siblings = _list_of(made, parent, "node_add")
    index = len(siblings) if at is None else min(at, len(siblings))
    siblings.insert(index, {**item, tree.HANDLE: handle})
    return made


def remove_node(document: JsonObject, handle: Json) -> JsonObject:
    """Return a document without a node, and without references to it."""
    made, place = _copied(document, handle, "node_remove")
    gone = {p.item.get("id") for p in tree.places({"nodes": [place.item]})} - {None}
    del place.siblings[place.index]
    _drop_references(place.scene, gone)
    return made


def _drop_references(scene: JsonObject, gone: set[Json]) -> None:
    """Remove animations, layouts, effects and rules that name nodes that are gone."""
    _keep(scene, "animations", lambda row: row.get("node") not in gone)
    _keep(scene, "follows", lambda row: row.get("node") not in gone)
    _keep(scene, "ducks", lambda row: row.get("music") not in gone)
    for row in tree.rows_of(scene, "layouts"):
        if isinstance(inside := row.get("nodes"), list):
            row["nodes"] = [id for id in inside if id not in gone]
    _keep(scene, "layouts", lambda row: row.get("nodes") != [])
    _keep(scene, "nodes", lambda row: row.get(_REFERS.get(str(row.get("type")), "")) not in gone)


def _keep(holder: JsonObject, key: str, wanted: Callable[[JsonObject], bool]) -> None:
    """Keep the rows of a list that are wanted; of nodes, also those inside. An empty list goes."""
    rows = holder.get(key)
    if not isinstance(rows, list):
        return
    rows[:] = [row for row in rows if not isinstance(row, dict) or wanted(row)]
    if key == "nodes":
        for row in tree.rows_of(holder, key):
            _keep(row, key, wanted)
    elif not rows:
        del holder[key]


def move_node(document: JsonObject, handle: Json, parent: Json, to: int) -> JsonObject:
    """Return a document with a node at another place."""
    made, place = _copied(document, handle, "node_move")
    inside = {p.handle for p in tree.places({"nodes": [place.item]})}
    if parent in inside:
        raise ParameterError.invalid("node_move", "parent", "a group outside of the node", parent)
    target = _list_of(made, parent, "node_move")
    item = place.siblings.pop(place.index)
    rows = [
        number
        for number, row in enumerate(target)
        if not (isinstance(row, dict) and row.get("type") == "animation")
    ]
    target.insert(rows[to] if to < len(rows) else len(target), item)
    return made


def _list_of(document: JsonObject, parent: Json, call: str) -> list[Json]:
    """Return the list of nodes of a group, an inner scene, or of the document."""
    if parent is None:
        holder = document
    else:
        holder = tree.find(document, parent, call, "parent").item
        inner = holder.get("scene")
        if isinstance(inner, dict):
            holder = inner
        elif holder.get("type") not in ("group", "timeline"):
            raise ParameterError.invalid(call, "parent", "a group", holder.get("type"))
    nodes = holder.setdefault("nodes", [])
    if not isinstance(nodes, list):
        raise ParameterError.invalid(call, "parent", "a group", parent)
    return nodes


def set_property(document: JsonObject, handle: Json, name: str, value: Json) -> JsonObject:
    """Return a document with a property of a node; None removes it."""
    made, place = _copied(document, handle, "node_set")
    item = place.item
    if name in (tree.HANDLE, "type", "nodes", "scene"):
        raise ParameterError.invalid("node_set", "property", "a property of the node", name)
    head, dot, rest = name.partition(".")
    if dot:  # a parameter of an effect: params.radius
        inner = item.setdefault(head, {})
        if head != "params" or not isinstance(inner, dict):
            raise ParameterError.invalid("node_set", "property", "a property of the node", name)
        _put(inner, rest, value)
        return made
    if name == "id":
        _rename(place, value)
        return made
    if name in ("x", "y", "position"):
        _only(item, POSITION, name, keep=("x", "y") if name in ("x", "y") else ())
    elif name in ("width", "height", "size") and item.get("type") not in ("text", "subtitles"):
        _only(item, SIZE, name, keep=("width", "height") if name != "size" else ())
    _put(item, name, value)
    return made


def _put(item: JsonObject, name: str, value: Json) -> None:
    if value is None:
        item.pop(name, None)
    else:
        item[name] = value


def _only(item: JsonObject, keys: tuple[str, ...], name: str, keep: tuple[str, ...]) -> None:
    """Remove the other keys that say the same thing."""
    for key in keys:
        if key != name and key not in keep:
            item.pop(key, None)


def _rename(place: tree.NodePlace, value: Json) -> None:
    if not isinstance(value, str) or not value or len(value) > 200:
        raise ParameterError.invalid("node_set", "id", "a name", value)
    old = place.item.get("id")
    place.item["id"] = value
    if not isinstance(old, str):
        return
    for key in ("animations", "follows", "ducks", "layouts"):
        for row in tree.rows_of(place.scene, key):
            _rename_in(row, old, value)
    for other in tree.places(place.scene):
        if other.scene is place.scene and other.item.get("input") == old:
            other.item["input"] = value


def _rename_in(row: JsonObject, old: str, new: str) -> None:
    for key in ("node", "music", "under", "nodes"):
        found = row.get(key)
        if found == old:
            row[key] = new
        elif isinstance(found, list):
            row[key] = [new if item == old else item for item in found]
    for key, name in (("level", "audio"), ("target", "video")):
        inner = row.get(key)
        if isinstance(inner, dict) and inner.get(name) == old:
            inner[name] = new


def place_all(
    document: JsonObject, boxes: dict[str, tuple[list[Json], list[Json]]], layout: int
) -> JsonObject:
    """Return a document without a layout, whose nodes have the given positions and sizes."""
    made = copy.deepcopy(document)
    for place in tree.places(made):
        found = boxes.get(place.handle)
        if found is not None:
            _only(place.item, (*POSITION, *SIZE, "scale"), "", ())
            place.item["position"], place.item["size"] = found
    layouts = made.get("layouts")
    if isinstance(layouts, list):
        del layouts[layout]
        if not layouts:
            del made["layouts"]
    return made


# key frames ---------------------------------------------------------------------------------------
def set_key(
    document: JsonObject, handle: Json, name: str, time: float, value: Json, easing: Json
) -> JsonObject:
    """Return a document with a key frame; one at the same time is replaced."""
    made, place = _copied(document, handle, "key_set")
    animation = _editable(place, name, "key_set")
    if animation is None:
        rows = place.scene.setdefault("animations", [])
        assert isinstance(rows, list)
        animation = {"node": tree.id_of(made, place), "property": name, "keyframes": []}
        rows.append(animation)
    begin = tree.offset(animation)
    if time < begin - _CLOSE:  # key frames cannot be before the beginning
        for row in _rows(animation):
            row[0] = _round(_time(row) + begin - time)
        animation.pop("delay", None)
        animation["start"] = begin = time
    frame: list[Json] = [_round(max(time - begin, 0.0)), value]
    if easing is not None and easing != "linear":
        frame.append(easing)
    kept = [row for row in _rows(animation) if abs(_time(row) - (time - begin)) > _CLOSE]
    frames = [*kept, frame]
    frames.sort(key=_time)
    animation["keyframes"] = list[Json](frames)
    return made


def remove_key(document: JsonObject, handle: Json, name: str, time: float) -> JsonObject:
    """Return a document without a key frame; an animation without any is removed."""
    made, place = _copied(document, handle, "key_remove")
    animation = _editable(place, name, "key_remove")
    rows = [] if animation is None else _rows(animation)
    begin = 0.0 if animation is None else tree.offset(animation)
    kept = [row for row in rows if abs(_time(row) + begin - time) > _CLOSE]
    if animation is None or len(kept) == len(rows):
        raise ParameterError.invalid("key_remove", "time", "that of a key frame", time)
    animation["keyframes"] = list[Json](kept)
    if not kept:
        listed = any(row is animation for row in tree.rows_of(place.scene, "animations"))
        _keep(place.scene, "animations" if listed else "nodes", lambda row: row is not animation)
    return made


def _editable(place: tree.NodePlace, name: str, call: str) -> JsonObject | None:
    """Return the animation of a property as key frames; None if it has none."""
    for animation in tree.animations_of(place):
        if animation.get("property") != name:
            continue
        rows, editable = tree.keyframes(animation)
        if not editable:
            raise ParameterError(
                f"{call}: the animation of {name!r} repeats, follows a sound or starts from the "
                "present value. Change it in the scene file.",
                argument="property",
            )
        if "keyframes" not in animation:
            begin = tree.offset(animation)
            frames: list[Json] = []
            for row in rows:
                assert isinstance(row, list)
                eased = [] if row[2] in (None, "linear") else [row[2]]
                frames.append([_round(_time(row) - begin), row[1], *eased])
            for key in ("from", "to", "duration", "easing"):
                animation.pop(key, None)
            animation["keyframes"] = frames
        return animation
    return None


def _rows(animation: JsonObject) -> list[list[Json]]:
    found = animation.get("keyframes")
    return [row for row in (found if isinstance(found, list) else []) if isinstance(row, list)]


def _time(row: list[Json]) -> float:
    return float(row[0]) if isinstance(row[0], int | float) else 0.0


def _round(time: float) -> float | int:
    short = round(time, 4)
    return int(short) if short == int(short) else short
