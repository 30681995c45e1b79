"""The cost of a frame of a scene file, known from the file alone, before anything is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Self

from dala import budget, memory
from dala.budget import checked
from dala.errors import did_you_mean
from dala.errors.describing import counted
from dala.media.scene.nodes.json_types import JsonItem, JsonValue, join, refusal
from dala.media.scene.nodes.nested import nesting, too_nested

#: Where the nodes of a file, and its other lists, have the ids of nodes.
_IN_NODES: Final = {"effect": "input", "animation": "node"}
_REFERENCES: Final = {
    "animations": ("node", "level.audio"), "follows": ("node", "target.video"),
    "ducks": ("music", "under"), "layouts": ("nodes",),
}  # fmt: skip
#: So many mistakes have a suggestion; to find one, an id is compared with all others.
_HINTED: Final = 20


def check_ids(data: JsonValue, problems: list[str], home: str = "") -> None:
    """Report ids that occur twice, and references to ids that do not exist.

    An inner scene, whose location is ``home``, has ids of its own.

    >>> problems: list[str] = []
    >>> check_ids({"nodes": [{"id": "a"}, {"id": "a"}]}, problems)
    >>> problems
    ["nodes[1].id: 'a' is already the id of nodes[0]."]
    """
    places: dict[str, str] = {}
    uses = list(_references(data, home))
    for at, item in walk(data, home):
        if isinstance(id := item.get("id"), str):
            if id in places:
                problems.append(f"{at}.id: {id!r} is already the id of {places[id]}.")
            places.setdefault(id, at)
        if item.get("type") == "scene":
            check_ids(item.get("scene"), problems, f"{at}.scene")
        for kind, key in _IN_NODES.items():
            if item.get("type") == kind:
                uses.append((f"{at}.{key}", item.get(key)))
    _check_layouts(data, problems, home)
    for at, id in uses:
        if isinstance(id, str) and id and id not in places:
            hint = did_you_mean(id, places) if len(problems) < _HINTED else ""
            problems.append(f"{at}: there is no node with the id {id!r}. {hint}".strip())


def walk(data: JsonValue, home: str = "") -> Iterator[tuple[str, JsonItem]]:
    """Yield the nodes in a scene or group with their locations, also those in groups."""
    for at, item in _items(data, "nodes", home):
        yield at, item
        yield from walk(item, at)


def _items(data: JsonValue, name: str, home: str) -> Iterator[tuple[str, JsonItem]]:
    """Yield the objects of a list of a scene, with their locations."""
    found = data.get(name) if isinstance(data, dict) else None
    items = found if isinstance(found, list) else ()
    for i, item in checked(enumerate(items), "load_scene"):
        if isinstance(item, dict):
            yield f"{join(home, name)}[{i}]", item


def _references(data: JsonValue, home: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield the references to nodes outside the lists of nodes, with their locations."""
    for name, paths in _REFERENCES.items():
        for at, item in _items(data, name, home):
            for path in paths:
                found: JsonValue = item
                for key in path.split("."):
                    found = found.get(key) if isinstance(found, dict) else None
                many = isinstance(found, list)
                for n, id in enumerate(found if many else [found]):
                    yield f"{at}.{path}[{n}]" if many else f"{at}.{path}", id


def _check_layouts(data: JsonValue, problems: list[str], home: str) -> None:
    """Report keys of grids in layouts that are not grids."""
    for at, item in _items(data, "layouts", home):
        if item.get("type") != "grid":
            if isinstance(inside := item.get("nodes"), int):
                problems.append(refusal(f"{at}.nodes", "a list of ids", inside))
            if "columns" in item:
                problems.append(f"{at}.columns: only a grid has columns.")


#: Bytes of memory that the object of a node takes, about.
NODE_BYTES: Final = 4096


class SceneCost(NamedTuple):
    """The scenes of a file, and the pixels of a frame: those of its scenes, together.

    A scene that is shown twice counts twice, with all inside it.

    >>> inner = {"width": 4, "height": 2, "nodes": []}
    >>> outer = {"width": 8, "height": 8, "nodes": [{"type": "scene", "scene": inner}] * 2}
    >>> SceneCost.of(outer)
    SceneCost(nodes=2, depth=2, scenes=3, pixels=80)
    """

    nodes: int
    #: Scenes inside each other, the outermost included.
    depth: int
    scenes: int
    pixels: int

    @classmethod
    def of(cls, data: JsonValue, found: dict[int, Self] | None = None) -> Self:
        """Return the cost of a file; ``found`` has that of inner scenes already."""
        found = {} if found is None else found
        if id(data) not in found:
            nodes = [item for _, item in walk(data)]
            inside = [cls.of(item["scene"], found) for item in nodes if "scene" in item]
            depth, scenes = nesting([(each.depth, each.scenes) for each in inside])
            pixels = _side(data, "width") * _side(data, "height")
            found[id(data)] = cls(
                len(nodes) + sum(each.nodes for each in inside), depth, scenes,
                pixels + sum(each.pixels for each in inside),
            )  # fmt: skip
        return found[id(data)]

    @property
    def nbytes(self) -> int:
        """The least memory that the frames of all scenes need."""
        return 4 * self.pixels

    def problem(self, given: int | str | None) -> str:
        """Return the limit that the file exceeds, as text; an empty text if it exceeds none."""
        most = limit(given)
        if found := too_nested((self.depth, self.scenes)):
            return found
        if self.scenes == 1 or self.nbytes <= most:
            return ""  # one scene is refused when it is rendered
        return (
            f"a frame of its {self.scenes} scenes has {self.pixels:,} pixels, at least "
            f"{memory.human(self.nbytes)}, and the scene may use {memory.human(most)}. "
            "Make inner scenes smaller, or allow more: load_scene(..., memory='8 GiB')."
        )

    def __str__(self) -> str:
        return (
            f"{counted(self.nodes, 'nodes')}, {counted(self.scenes, 'scenes')} in "
            f"{counted(self.depth, 'levels')}; {self.pixels:,} pixels a frame, at least "
            f"{memory.human(self.nbytes)} of memory"
        )


def limit(given: int | str | None) -> int:
    """Return the memory that a scene with such an argument may use, in bytes.

    >>> limit(1000)
    1000
    """
    found, block = memory.object_limit("load_scene", given), budget.current().memory
    return found if block is None else min(found, block)


def _side(data: JsonValue, key: str) -> int:
    """Return the width or height of a scene; 0 if it is none, which is a mistake of its own."""
    side = data.get(key) if isinstance(data, dict) else None
    return int(side) if isinstance(side, int | float) and 1 <= side <= 16384 else 0
