"""Checks of the ids in a scene file."""

from __future__ import annotations

from collections.abc import Iterator

from dala.errors import did_you_mean
from dala.media.scene.nodes.json_types import JsonValue, join, refusal


def check_ids(data: JsonValue, problems: list[str], home: str = "") -> None:
    """Report ids that occur twice, and references to ids that do not exist.

    An inner scene, whose location is ``home``, has ids of its own.

    >>> problems: list[str] = []
    >>> check_ids({"nodes": [{"id": "a"}, {"id": "a"}]}, problems)
    >>> problems
    ["nodes[1].id: 'a' is already the id of nodes[0]."]
    """
    places: dict[str, str] = {}
    uses: list[tuple[str, JsonValue]] = []

    def walk(nodes: JsonValue, at: str) -> None:
        for i, item in enumerate(nodes if isinstance(nodes, list) else ()):
            here = f"{at}[{i}]"
            if not isinstance(item, dict):
                continue
            if isinstance(id := item.get("id"), str):
                if id in places:
                    problems.append(f"{here}.id: {id!r} is already the id of {places[id]}.")
                places.setdefault(id, here)
            if item.get("type") == "effect" and "input" in item:
                uses.append((f"{here}.input", item["input"]))
            elif item.get("type") == "animation":
                uses.append((f"{here}.node", item.get("node")))
            elif item.get("type") in ("group", "timeline"):
                walk(item.get("nodes"), f"{here}.nodes")
            elif item.get("type") == "scene":
                check_ids(item.get("scene"), problems, f"{here}.scene")

    walk(data.get("nodes") if isinstance(data, dict) else None, join(home, "nodes"))
    uses += _references(data, home)
    _check_layouts(data, problems, home)
    for at, id in uses:
        if isinstance(id, str) and id and id not in places:
            problems.append(
                f"{at}: there is no node with the id {id!r}. {did_you_mean(id, places)}".strip()
            )


def _items(data: JsonValue, name: str, home: str) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    """Yield the objects of a list of a scene, with their locations."""
    found = data.get(name) if isinstance(data, dict) else None
    for i, item in enumerate(found if isinstance(found, list) else ()):
        if isinstance(item, dict):
            yield f"{join(home, name)}[{i}]", item


def _references(data: JsonValue, home: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield what should be ids of nodes, besides those in the nodes, with their locations."""
    for at, item in _items(data, "animations", home):
        yield f"{at}.node", item.get("node")
        if isinstance(level := item.get("level"), dict):
            yield f"{at}.level.audio", level.get("audio")
    for at, item in _items(data, "follows", home):
        yield f"{at}.node", item.get("node")
        if isinstance(target := item.get("target"), dict):
            yield f"{at}.target.video", target.get("video")
    for at, item in _items(data, "ducks", home):
        yield f"{at}.music", item.get("music")
        voices = item.get("under")
        for voice in voices if isinstance(voices, list) else [voices]:
            yield f"{at}.under", voice
    for at, item in _items(data, "layouts", home):
        inside = item.get("nodes")
        for n, id in enumerate(inside if isinstance(inside, list) else ()):
            yield f"{at}.nodes[{n}]", id


def _check_layouts(data: JsonValue, problems: list[str], home: str) -> None:
    """Report what only grids have."""
    for at, item in _items(data, "layouts", home):
        if item.get("type") != "grid":
            if isinstance(inside := item.get("nodes"), int):
                problems.append(refusal(f"{at}.nodes", "a list of ids", inside))
            if "columns" in item:
                problems.append(f"{at}.columns: only a grid has columns.")
