"""Commands that edit the scene of the active tab.

An edit changes a copy of the scene's document; the old one is for undo.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from dala.errors import DalaError, ParameterError, SceneFileError
from dala.media.scene.nodes.properties import PIP_ARGUMENTS
from dala.media.scene.nodes.registry import NODE_TYPES
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.studio.commands.registry import PageRequest, command
from dala.studio.scenes import tree
from dala.studio.scenes.hits import rounded
from dala.studio.scenes.source import SceneFile, explain

#: The largest coordinate.
_FAR: Final = 1e6
#: Keys of a node that decide where it is, and how large.
_POSITION: Final = ("position", "x", "y", "margin", *PIP_ARGUMENTS)
_SIZE: Final = ("size", "width", "height")
#: Types of rows among nodes that refer to another node, and the key with its id.
_REFERS: Final = {"animation": "node", "effect": "input"}
#: Key frames closer than this are the same, in seconds.
_CLOSE: Final = 1e-4


def _scene(request: PageRequest) -> SceneFile:
    source = request.tab.source
    if not isinstance(source, SceneFile):
        raise ParameterError(f"{request.name}: the active tab is not a scene.")
    return source


def _find(request: PageRequest, document: JsonObject) -> tree.NodePlace:
    """Return the node of a document that the message names."""
    return tree.find(document, request.get("node"), request.name)


@contextmanager
def _edited(request: PageRequest, *marks: str) -> Iterator[JsonObject]:
    """Yield a copy of the scene's document, which is the scene's after the block."""
    source = _scene(request)
    made = copy.deepcopy(source.document)
    yield made
    _show(request, made, request.mark(*marks) if marks else None)


def _show(request: PageRequest, document: JsonObject, mark: object) -> None:
    """Make a document the scene's, as one step of undo."""
    try:
        with request.session.renderer.busy:
            _scene(request).show(document)
    except SceneFileError as error:
        raise explain(error) from error
    request.tab.change_scene(document, mark)


# nodes --------------------------------------------------------------------------------------------
@command
def node_add(request: PageRequest) -> JsonObject:
    """Add a node, at the end of its list or at an index."""
    source = _scene(request)
    kind = request.text("type", 100)
    if kind not in NODE_TYPES:
        request.fail("type", f"one of {', '.join(sorted(NODE_TYPES))}")
    properties = request.get("properties")
    if properties is not None and not isinstance(properties, dict):
        request.fail("properties", "an object")
    at = request.integer("at", 0, 100_000) if "at" in request else None
    handle = source.new_handle()
    with _edited(request) as made:
        siblings = _list_of(made, request)
        index = len(siblings) if at is None else min(at, len(siblings))
        siblings.insert(index, {**(properties or {}), "type": kind, tree.HANDLE: handle})
    return {"node": handle}


@command
def node_remove(request: PageRequest) -> None:
    """Remove a node, and all references to it."""
    with _edited(request) as made:
        place = _find(request, made)
        gone = {p.item.get("id") for p in tree.places({"nodes": [place.item]})} - {None}
        del place.siblings[place.index]
        _drop_references(place.scene, gone)


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


@command
def node_move(request: PageRequest) -> None:
    """Move a node to another place in the tree."""
    parent, to = request.get("parent"), request.integer("to", 0, 100_000)
    with _edited(request) as made:
        place = _find(request, made)
        if parent in {p.handle for p in tree.places({"nodes": [place.item]})}:
            request.fail("parent", "a group outside of the node")
        target = _list_of(made, request)
        item = place.siblings.pop(place.index)
        rows = [
            number
            for number, row in enumerate(target)
            if not (isinstance(row, dict) and row.get("type") == "animation")
        ]
        target.insert(rows[to] if to < len(rows) else len(target), item)


def _list_of(document: JsonObject, request: PageRequest) -> list[Json]:
    """Return the list of nodes of a group, an inner scene, or of the document."""
    parent, call = request.get("parent"), request.name
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


# properties ---------------------------------------------------------------------------------------
@command
def node_set(request: PageRequest) -> None:
    """Set a property of a node."""
    name = request.text("property", 200)
    handle = _find(request, _scene(request).document).handle
    _set(request, name, request.get("value"), request.mark(handle, name))


def _set(request: PageRequest, name: str, value: Json, mark: object) -> None:
    source, handle = _scene(request), request.get("node")
    made = copy.deepcopy(source.document)
    placed = source.layout_of(handle) if name in (*_POSITION, *_SIZE) else None
    if placed is not None:
        _drop_layout(source, made, *placed)
    _put(_find(request, made), name, value)
    if placed is None:
        try:
            with request.session.renderer.busy:
                shown = source.set_in_place(handle, name, value)
        except DalaError as error:
            raise explain(error) from error
        if shown:
            source.accept(made)
            request.tab.change_scene(made, mark)
            return
    _show(request, made, mark)


def _drop_layout(source: SceneFile, made: JsonObject, layout: int, handles: list[str]) -> None:
    """Give the nodes of a layout the positions and sizes that it has given them."""
    for place in tree.places(made):
        node = source.node(place.handle) if place.handle in handles else None
        if node is not None:
            _only(place.item, (*_POSITION, *_SIZE, "scale"), "", ())
            place.item["position"] = list[Json](rounded(node.position))
            place.item["size"] = list[Json](rounded(node.size))
    layouts = made.get("layouts")
    if isinstance(layouts, list):
        del layouts[layout]
        if not layouts:
            del made["layouts"]


def _put(place: tree.NodePlace, name: str, value: Json) -> None:
    """Set a property of a node; None removes it."""
    item = place.item
    if name in (tree.HANDLE, "type", "nodes", "scene"):
        raise ParameterError.invalid("node_set", "property", "a property of the node", name)
    head, dot, rest = name.partition(".")
    if dot:  # a parameter of an effect: params.radius
        inner = item.setdefault(head, {})
        if head != "params" or not isinstance(inner, dict):
            raise ParameterError.invalid("node_set", "property", "a property of the node", name)
        item, name = inner, rest
    elif name == "id":
        _rename(place, value)
        return
    elif name in ("x", "y", "position"):
        _only(item, _POSITION, name, keep=("x", "y") if name in ("x", "y") else ())
    elif name in ("width", "height", "size") and item.get("type") not in ("text", "subtitles"):
        _only(item, _SIZE, name, keep=("width", "height") if name != "size" else ())
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


@command
def node_drag(request: PageRequest) -> JsonObject:
    """Move a node by a distance on the picture, counted from the start of the gesture."""
    source, tab = _scene(request), request.tab
    handle = request.get("node")
    mark = request.mark(str(handle), "position")
    node, dx, dy = source.local(
        handle, request.number("dx", -_FAR, _FAR), request.number("dy", -_FAR, _FAR), "node_drag"
    )
    if mark is None or tab.gesture is None or tab.gesture[0] != mark:
        tab.gesture = mark, node.position
    x, y = tab.gesture[1]
    place: list[Json] = list(rounded((x + dx, y + dy)))
    _set(request, "position", place, mark)
    return {"position": place}


# key frames ---------------------------------------------------------------------------------------
@command
def key_set(request: PageRequest) -> None:
    """Set a key frame; one at the same time is replaced."""
    name, value, easing = request.text("property", 200), request.get("value"), request.get("easing")
    time = max(float(request.seconds("time")), 0.0)
    if value is None:
        request.fail("value", "a value of the property")
    with _edited(request, str(request.get("node")), name) as made:
        place = _find(request, made)
        animation = _editable(place, name, request.name)
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


@command
def key_remove(request: PageRequest) -> None:
    """Remove a key frame, and an animation without any."""
    name, time = request.text("property", 200), float(request.seconds("time"))
    with _edited(request) as made:
        place = _find(request, made)
        animation = _editable(place, name, request.name)
        rows = [] if animation is None else _rows(animation)
        begin = 0.0 if animation is None else tree.offset(animation)
        kept = [row for row in rows if abs(_time(row) + begin - time) > _CLOSE]
        if animation is None or len(kept) == len(rows):
            raise ParameterError.invalid("key_remove", "time", "that of a key frame", time)
        animation["keyframes"] = list[Json](kept)
        if not kept:
            listed = any(row is animation for row in tree.rows_of(place.scene, "animations"))
            _keep(
                place.scene, "animations" if listed else "nodes", lambda row: row is not animation
            )


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


# the picture --------------------------------------------------------------------------------------
@command
def hit(request: PageRequest) -> JsonObject:
    """Find the node under a point of the picture."""
    source = _scene(request)
    x, y = request.number("x", -_FAR, _FAR), request.number("y", -_FAR, _FAR)
    with request.session.renderer.busy:
        found = source.hit(x, y)
        if found is None:
            return {"node": None, "box": None, "corners": None}
        return {"node": found, **source.box(found, "hit")}


@command
def box(request: PageRequest) -> JsonObject:
    """Return where a node is on the picture."""
    source = _scene(request)
    with request.session.renderer.busy:
        return source.box(request.get("node"), "box")


@command
def scene_save(request: PageRequest) -> JsonObject:
    """Write the scene file."""
    source, tab = _scene(request), request.tab
    target = request.target(source.path)
    if target.name.suffix.lower() != ".json":
        request.fail("path", "the name of a .json file")
    source.save(target)
    request.session.own(target.name)
    tab.contents = replace(tab.contents, scene=source.document)
    return {"path": str(target.name)}
