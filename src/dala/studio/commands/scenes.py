"""Commands that edit the scene of the active tab."""

from __future__ import annotations

from dataclasses import replace

from dala.errors import DalaError, ParameterError, SceneFileError
from dala.media.scene.nodes.registry import NODE_TYPES
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.studio.commands.registry import PageRequest, command
from dala.studio.scenes import edits
from dala.studio.scenes.hits import rounded
from dala.studio.scenes.source import SceneFile, explain
from dala.studio.scenes.tree import find

#: The largest coordinate.
_FAR = 1e6


def _scene(request: PageRequest) -> SceneFile:
    source = request.tab.source
    if not isinstance(source, SceneFile):
        raise ParameterError(f"{request.name}: the active tab is not a scene.")
    return source


def _change(
    request: PageRequest, document: JsonObject, mark: object = None, *, shown: bool = False
) -> None:
    """Make a document the scene's, as one step of undo."""
    source = _scene(request)
    if shown:
        source.accept(document)
    else:
        try:
            with request.session.renderer.busy:
                source.show(document)
        except SceneFileError as error:
            raise explain(error) from error
    request.tab.change_scene(document, mark)


@command
def node_add(request: PageRequest) -> JsonObject:
    """Add a node."""
    source = _scene(request)
    kind = request.text("type", 100)
    if kind not in NODE_TYPES:
        request.fail("type", f"one of {', '.join(sorted(NODE_TYPES))}")
    properties = request.get("properties")
    if properties is not None and not isinstance(properties, dict):
        request.fail("properties", "an object")
    item: JsonObject = {**(properties or {}), "type": kind}
    at = request.integer("at", 0, 100_000) if "at" in request else None
    handle = source.new_handle()
    _change(request, edits.add_node(source.document, item, request.get("parent"), at, handle))
    return {"node": handle}


@command
def node_remove(request: PageRequest) -> None:
    """Remove a node, and all references to it."""
    source = _scene(request)
    _change(request, edits.remove_node(source.document, request.get("node")))


@command
def node_move(request: PageRequest) -> None:
    """Move a node to another place in the tree."""
    source = _scene(request)
    node, parent, to = request.get("node"), request.get("parent"), request.integer("to", 0, 100_000)
    _change(request, edits.move_node(source.document, node, parent, to))


@command
def node_set(request: PageRequest) -> None:
    """Set a property of a node."""
    source = _scene(request)
    handle, name = request.get("node"), request.text("property", 200)
    find(source.document, handle, "node_set")
    _set(request, handle, name, request.get("value"), request.mark(str(handle), name))


def _set(request: PageRequest, handle: Json, name: str, value: Json, mark: object) -> None:
    source = _scene(request)
    document = source.document
    placed = source.layout_of(handle) if name in (*edits.POSITION, *edits.SIZE) else None
    if placed is not None:
        document = _without_layout(source, placed)
    made = edits.set_property(document, handle, name, value)
    shown = False
    if placed is None:
        try:
            with request.session.renderer.busy:
                shown = source.set_in_place(handle, name, value)
        except DalaError as error:
            raise explain(error) from error
    _change(request, made, mark, shown=shown)


def _without_layout(source: SceneFile, placed: tuple[int, list[str]]) -> JsonObject:
    """Return the document with the nodes of a layout where it has put them."""
    boxes: dict[str, tuple[list[Json], list[Json]]] = {}
    for handle in placed[1]:
        node = source.node(handle)
        if node is not None:
            boxes[handle] = list(rounded(node.position)), list(rounded(node.size))
    return edits.place_all(source.document, boxes, placed[0])


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
    _set(request, handle, "position", place, mark)
    return {"position": place}


@command
def key_set(request: PageRequest) -> None:
    """Set a key frame."""
    source = _scene(request)
    handle, name = request.get("node"), request.text("property", 200)
    time = max(float(request.seconds("time")), 0.0)
    if request.get("value") is None:
        request.fail("value", "a value of the property")
    made = edits.set_key(
        source.document, handle, name, time, request.get("value"), request.get("easing")
    )
    _change(request, made, request.mark(str(handle), name))


@command
def key_remove(request: PageRequest) -> None:
    """Remove a key frame."""
    source = _scene(request)
    node, name, time = request.get("node"), request.text("property", 200), request.seconds("time")
    _change(request, edits.remove_key(source.document, node, name, float(time)))


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
