"""A scene file as the source of a tab: its document, and the scene that it makes."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import ClassVar

from dala.budget import Limits
from dala.errors import DalaError, ParameterError
from dala.extensions import write_whole
from dala.media.filters.sizes import with_size
from dala.media.frame import Frame
from dala.media.scene.file.load import MAX_BYTES, load_scene, read
from dala.media.scene.file.schema import newest
from dala.media.scene.nodes.effect import EffectNode
from dala.media.scene.nodes.node import Node
from dala.media.scene.scene import Scene
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.studio.folders import Folders
from dala.studio.scenes.hits import bounds, corners, hit, local, rounded
from dala.studio.scenes.patch import patched
from dala.studio.scenes.tree import find, rebased, to_load, tree, with_handles, without_handles
from dala.studio.sources.source import StudioSource
from dala.typing import ImageLike
from dala.untrusted.opened import Opened
from dala.untrusted.place import NewFile


class SceneFile(StudioSource):
    """A scene of a file. Edits make new documents; :meth:`show` makes the scene of one.

    Args:
        file: the scene file.
        device: the device to draw on.
        folders: the folders whose files it may name.
        memory: bytes that the scene may use.
        seconds: seconds in which it is loaded, and each frame drawn.
    """

    kind: ClassVar[str] = "scene"

    def __init__(
        self, file: Opened, device: str | None, folders: Folders, memory: int | None = None,
        seconds: float | None = None,
    ) -> None:  # fmt: skip
        self._device, self._folders, self._memory = device, folders, memory
        self._bounds = Limits(seconds)
        self._serial = 1
        data = read(file)
        if not isinstance(data, dict):
            raise ParameterError.invalid("open", "path", "a scene file", file.name.name)
        self.title, self.path = file.name.name, str(file.name)
        #: The text of the file, and its contents, that saving starts from.
        self._saved: JsonObject = newest(data)
        self._text = patched(file.content(MAX_BYTES, "open").decode("utf-8-sig"), data, self._saved)
        self._compared: tuple[JsonObject, bool] | None = None
        self.document, self._serial = with_handles(self._saved, self._serial)
        self._scene, self._ids = self.made(device, self.document)
        self._take_facts()

    @property
    def base(self) -> Path:
        """The folder that relative files start from."""
        return Path(self.path).parent

    # the scene --------------------------------------------------------------------------------
    def made(
        self, device: str | None, document: JsonObject | None = None
    ) -> tuple[Scene, dict[str, str]]:
        """Return a new scene of a document, this one by default, and the ids of its handles.

        Raises:
            SceneFileError: it has mistakes, or names files outside of the folders.
        """
        data, ids = to_load(self.document if document is None else document)
        with self._bounds:
            made = load_scene(
                data, device, base=self.base, memory=self._memory, place=self._folders
            )
        return made, ids

    def frame(self, scene: Scene, time: Fraction) -> Frame:
        """Return the frame of a scene that was made of this document."""
        with self._bounds:
            return scene.render(time)

    def _take_facts(self) -> None:
        scene = self._scene
        self.width, self.height, self.rate = scene.width, scene.height, scene.frame_rate
        seconds = scene.duration
        self.duration = None if seconds is None else Fraction(seconds).limit_denominator(10**6)

    def at(self, time: Fraction) -> ImageLike:
        """Return the frame of a time."""
        return self.frame(self._scene, time)

    def show(self, document: JsonObject) -> None:
        """Make the scene of a document, and show it from now on.

        Raises:
            SceneFileError: the document has mistakes; the old scene stays.
        """
        made, ids = self.made(self._device, document)
        old, self._scene, self._ids, self.document = self._scene, made, ids, document
        self._take_facts()
        old.close()

    def accept(self, document: JsonObject) -> None:
        """Note the document of a scene that was changed in place."""
        self.document = document

    def restore(self, contents: object) -> None:
        """Show the document that undo or redo returned."""
        if isinstance(contents, dict) and contents is not self.document:
            self.show(contents)

    def new_handle(self) -> str:
        """Return the handle of a new node."""
        handle = f"n{self._serial}"
        self._serial += 1
        return handle

    def node(self, handle: Json) -> Node | None:
        """Return the node of a handle; None if it is in an inner scene."""
        id = self._ids.get(handle) if isinstance(handle, str) else None
        return None if id is None else self._scene.nodes.get(id)

    def set_in_place(self, handle: Json, name: str, value: Json) -> bool:
        """Set a property of the scene's node without making the scene again, where that works.

        Raises:
            DalaError: the value is refused.
        """
        node = self.node(handle)
        if node is None or value is None:
            return False
        head, dot, rest = name.partition(".")
        own = dot and head == EffectNode.EXTRA and not isinstance(value, str)
        if own and isinstance(node, EffectNode):
            node.set(rest, with_size(node.name, {rest: _tuples(value)})[rest])
            return True
        item = node.PROPERTIES.get(name)
        if item is None or item.order or name in ("font", "id") or isinstance(value, dict):
            return False
        if name in ("x", "y", "position", "width", "height", "size") and self.layout_of(handle):
            return False
        node.set(name, _tuples(value))
        return True

    def layout_of(self, handle: Json) -> tuple[int, list[str]] | None:
        """Return the index of the layout that places a node, and the handles of its nodes."""
        layouts = self.document.get("layouts")
        id = self._ids.get(handle) if isinstance(handle, str) else None
        for index, row in enumerate(layouts if isinstance(layouts, list) else []):
            nodes = row.get("nodes") if isinstance(row, dict) else None
            if isinstance(nodes, list) and id in nodes:
                handles = {own: handle for handle, own in self._ids.items()}
                return index, [handles[n] for n in nodes if isinstance(n, str) and n in handles]
        return None

    # geometry ---------------------------------------------------------------------------------
    def box(self, handle: Json, call: str) -> JsonObject:
        """Return the box of a node in scene pixels: its bounds, and its corners.

        Raises:
            ParameterError: there is no such node.
        """
        find(self.document, handle, call)
        node = self.node(handle)
        if node is None or not node.DRAWN:
            return {"box": None, "corners": None}
        points = corners(node)
        return {
            "box": list[Json](rounded(bounds(points))),
            "corners": [list[Json](rounded(p)) for p in points],
        }

    def hit(self, x: float, y: float) -> str | None:
        """Return the handle of the topmost node under a point."""
        found = hit(self._scene, x, y)
        if found is None:
            return None
        return next((h for h, id in self._ids.items() if id == found.id), None)

    def local(self, handle: Json, dx: float, dy: float, call: str) -> tuple[Node, float, float]:
        """Return a node, and a distance on the picture in the coordinates of its position."""
        find(self.document, handle, call)
        node = self.node(handle)
        if node is None or "x" not in node.PROPERTIES:
            raise ParameterError.invalid(call, "node", "a node that can be moved", handle)
        return node, *local(node, dx, dy)

    # files ------------------------------------------------------------------------------------
    def tree(self) -> Json:
        """Return the scene as the state has it."""
        document = self.document
        return {
            "width": self.width,
            "height": self.height,
            "fps": float(self.rate or 0),
            "duration": document.get("duration"),
            "background": document.get("background"),
            "nodes": tree(document),
            "path": self.path,
        }

    @property
    def dirty(self) -> bool:
        """Whether the file differs from the document."""
        if self._compared is None or self._compared[0] is not self.document:
            self._compared = self.document, without_handles(self.document) != self._saved
        return self._compared[1]

    def text(self) -> str:
        """Return the scene file, as it was written except for the changes."""
        return patched(self._text, self._saved, without_handles(self.document))

    def save(self, target: NewFile) -> None:
        """Write the scene file; one in another folder names its files from there.

        Raises:
            OSError: it cannot be written.
        """
        data, text, old, new = without_handles(self.document), self.text(), self.base, target.name
        if new.parent != old:
            moved = rebased(data, old, new.parent)
            text, data = patched(text, data, moved), moved
        if len(text) > MAX_BYTES:
            raise ParameterError("scene_save: the scene is too large.")
        write_whole(target, text.encode())
        self.title, self.path = new.name, str(new)
        self._text, self._saved, self._compared = text, data, None
        self.document = rebased(self.document, old, new.parent)

    def close(self) -> None:
        """Close the scene."""
        self._scene.close()


def explain(error: DalaError) -> ParameterError:
    """Return the error of a document as one of a command: the first problem, in short."""
    problems = getattr(error, "problems", None)
    text = problems[0] if problems else str(error)
    return ParameterError(f"scene: {text}")


def _tuples(value: Json) -> object:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value
