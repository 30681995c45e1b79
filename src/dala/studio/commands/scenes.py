"""Commands that edit the scene of the active tab."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dala.errors import DalaError, ParameterError, SceneFileError
from dala.media.scene.nodes.registry import NODE_TYPES
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.studio.commands.registry import command
from dala.studio.document.tab import Tab
from dala.studio.message import Message
from dala.studio.scenes import edits
from dala.studio.scenes.hits import rounded
from dala.studio.scenes.source import SceneFile, explain
from dala.studio.scenes.tree import find

if TYPE_CHECKING:
    from dala.studio.session import StudioSession

#: The largest coordinate.
_FAR = 1e6


def _scene(session: StudioSession, call: str) -> tuple[Tab, SceneFile]:
    tab = session.tab(call)
    if not isinstance(tab.source, SceneFile):
        raise ParameterError(f"{call}: the active tab is not a scene.")
    return tab, tab.source


def _change(
    session: StudioSession,
    tab: Tab,
    document: JsonObject,
    mark: object = None,
    *,
    shown: bool = False,
) -> None:
    """Make a document the scene's, as one step of undo."""
    source = tab.source
    assert isinstance(source, SceneFile)
    if shown:
        source.accept(document)
    else:
        try:
            with session.renderer.busy:
                source.show(document)
        except SceneFileError as error:
            raise explain(error) from error
    tab.change_scene(document, mark)


@command("node_add")
def node_add(session: StudioSession, message: Message) -> JsonObject:
    """Add a node."""
    tab, source = _scene(session, "node_add")
    kind = message.text("type", 100)
    if kind not in NODE_TYPES:
        message.fail("type", f"one of {', '.join(sorted(NODE_TYPES))}")
    properties = message.get("properties")
    if properties is not None and not isinstance(properties, dict):
        message.fail("properties", "an object")
    item: JsonObject = {
        "type": kind,
        **{k: v for k, v in (properties or {}).items() if k != "type"},
    }
    at = message.integer("at", 0, 100_000) if "at" in message else None
    handle = source.new_handle()
    _change(session, tab, edits.add_node(source.document, item, message.get("parent"), at, handle))
    return {"node": handle}


@command("node_remove")
def node_remove(session: StudioSession, message: Message) -> None:
    """Remove a node, and what refers to it."""
    tab, source = _scene(session, "node_remove")
    _change(session, tab, edits.remove_node(source.document, message.get("node")))


@command("node_move")
def node_move(session: StudioSession, message: Message) -> None:
    """Move a node to another place in the tree."""
    tab, source = _scene(session, "node_move")
    made = edits.move_node(
        source.document,
        message.get("node"),
        message.get("parent"),
        message.integer("to", 0, 100_000),
    )
    _change(session, tab, made)


@command("node_set")
def node_set(session: StudioSession, message: Message) -> None:
    """Set a property of a node."""
    tab, source = _scene(session, "node_set")
    handle, name = message.get("node"), message.text("property", 200)
    find(source.document, handle, "node_set")
    _set(session, tab, source, handle, name, message.get("value"), message.mark(str(handle), name))


def _set(
    session: StudioSession,
    tab: Tab,
    source: SceneFile,
    handle: Json,
    name: str,
    value: Json,
    mark: object,
) -> None:
    document = source.document
    placed = source.layout_of(handle) if name in (*edits.POSITION, *edits.SIZE) else None
    if placed is not None:
        document = _without_layout(source, placed)
    made = edits.set_property(document, handle, name, value)
    shown = False
    if placed is None:
        try:
            with session.renderer.busy:
                shown = source.set_in_place(handle, name, value)
        except DalaError as error:
            raise explain(error) from error
    _change(session, tab, made, mark, shown=shown)


def _without_layout(source: SceneFile, placed: tuple[int, list[str]]) -> JsonObject:
    """Return the document with the nodes of a layout where it has put them."""
    boxes: dict[str, tuple[list[Json], list[Json]]] = {}
    for handle in placed[1]:
        node = source.node(handle)
        if node is not None:
            boxes[handle] = (
                list[Json](rounded(node.position)),
                list[Json](rounded(node.size)),
            )
    return edits.place_all(source.document, boxes, placed[0])


@command("node_drag")
def node_drag(session: StudioSession, message: Message) -> JsonObject:
    """Move a node by a distance on the picture, counted from the start of the gesture."""
    tab, source = _scene(session, "node_drag")
    handle = message.get("node")
    mark = message.mark(str(handle), "position")
    node, dx, dy = source.local(
        handle, message.number("dx", -_FAR, _FAR), message.number("dy", -_FAR, _FAR), "node_drag"
    )
    if mark is None or tab.gesture is None or tab.gesture[0] != mark:
        tab.gesture = mark, node.position
    x, y = tab.gesture[1]
    place: list[Json] = list(rounded((x + dx, y + dy)))
    _set(session, tab, source, handle, "position", place, mark)
    return {"position": place}


@command("key_set")
def key_set(session: StudioSession, message: Message) -> None:
    """Set a key frame."""
    tab, source = _scene(session, "key_set")
    handle, name = message.get("node"), message.text("property", 200)
    time = max(float(message.seconds("time")), 0.0)
    if message.get("value") is None:
        message.fail("value", "a value of the property")
    made = edits.set_key(
        source.document, handle, name, time, message.get("value"), message.get("easing")
    )
    _change(session, tab, made, message.mark(str(handle), name))


@command("key_remove")
def key_remove(session: StudioSession, message: Message) -> None:
    """Remove a key frame."""
    tab, source = _scene(session, "key_remove")
    made = edits.remove_key(
        source.document,
        message.get("node"),
        message.text("property", 200),
        float(message.seconds("time")),
    )
    _change(session, tab, made)


@command("hit")
def hit(session: StudioSession, message: Message) -> JsonObject:
    """Find the node under a point of the picture."""
    _, source = _scene(session, "hit")
    x, y = message.number("x", -_FAR, _FAR), message.number("y", -_FAR, _FAR)
    with session.renderer.busy:
        found = source.hit(x, y)
        if found is None:
            return {"node": None, "box": None, "corners": None}
        return {"node": found, **source.box(found, "hit")}


@command("box")
def box(session: StudioSession, message: Message) -> JsonObject:
    """Return where a node is on the picture."""
    _, source = _scene(session, "box")
    with session.renderer.busy:
        return source.box(message.get("node"), "box")


@command("scene_save")
def scene_save(session: StudioSession, message: Message) -> JsonObject:
    """Write the scene file."""
    tab, source = _scene(session, "scene_save")
    target = session.folders.target(message.get("path") or source.path, "scene_save")
    if target.suffix.lower() != ".json":
        raise ParameterError.invalid("scene_save", "path", "the name of a .json file", target.name)
    source.save(target)
    tab.contents = replace(tab.contents, scene=source.document)
    return {"path": str(target)}
