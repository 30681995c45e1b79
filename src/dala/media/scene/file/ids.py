"""Checks of the ids in a scene file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dala.budget import checked
from dala.errors import did_you_mean
from dala.media.scene.nodes.json_types import JsonItem, JsonValue, join, refusal

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
    """Yield what should be ids of nodes, besides those in the nodes, with their locations."""
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
