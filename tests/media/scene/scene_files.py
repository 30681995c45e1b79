"""Random scene files: every node type, with any of its properties."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from dala.media.scene.file.schema import node_object
from dala.media.scene.nodes.json_types import (
    FixedList,
    JsonBoolean,
    JsonChoice,
    JsonColor,
    JsonNull,
    JsonNumber,
    JsonString,
    JsonType,
    ListOf,
    OneOf,
    ParsedString,
    PositiveNumber,
)

#: Keys that have a meaning beyond their kind, and are made by hand below.
_BY_HAND = {
    "type", "id", "source", "input", "filter", "params", "nodes", "scene", "font", "text",
    "transition",
}  # fmt: skip
#: Keys of which a node has only one of each row, or they would contradict each other.
_ROWS = (
    {"position", "x", "pip_position"}, {"position", "y", "pip_position"},
    {"size", "width", "pip_size"}, {"size", "height", "pip_size"}, {"padding", "width"},
    {"padding", "height"}, {"border", "border_width"}, {"border", "border_color"}, {"pip", "size"},
    {"pip", "position"}, {"pip", "pip_size", "pip_position"}, {"end", "duration"},
    {"start", "offset"}, {"freeze", "trim"}, {"freeze", "speed"}, {"freeze", "loop"},
)  # fmt: skip
#: Times that go together.
_TIMES: dict[str, list[Any]] = {
    "start": [-1, 0, 0.25, "0:00.5"], "end": [1, 2.5, "1:00"], "duration": [1, "1/3"],
    "trim": [[0, 1], [0.25, "0:02"]], "loop": [True, 2], "freeze": [True, False, 0.5],
    "speed": [2, -1, [[0, 1], [1, 0.5, "ease-out"]]],
}  # fmt: skip
CUES = "1\n00:00:00,000 --> 00:00:01,500\nHello\n"
FILTERS: dict[str, dict[str, Any]] = {
    "blur": {"radius": st.integers(0, 5)},
    "brightness": {"value": st.sampled_from([-0.5, 0, 0.25])},
    "invert": {},
    "vignette": {"amount": st.sampled_from([0.1, 0.5, 1]), "radius": st.just(0.5)},
    "chroma_key": {"key": st.builds(lambda: [0, 0.5, 0]), "threshold": st.just(0.2)},
}


def numbers(low: float, high: float) -> st.SearchStrategy[Any]:
    """Small ones, whole and broken."""
    low, high = max(low, -50.0), min(high, 50.0)
    return st.integers(int(low) + (low > int(low)), int(high)) | st.floats(low, high).map(
        lambda n: round(n, 3)
    ).filter(lambda n: low <= n <= high)


def values(kind: JsonType) -> st.SearchStrategy[Any]:
    """Any value of a kind."""
    match kind:
        case PositiveNumber():
            return st.sampled_from([1, 0.5, 2, 7.25])
        case JsonNumber():
            return st.integers(int(kind.low), 5) if kind.integer else numbers(kind.low, kind.high)
        case JsonBoolean():
            return st.booleans()
        case JsonNull():
            return st.none()
        case JsonChoice():
            return st.sampled_from(kind.choices)
        case ParsedString():
            return st.sampled_from(kind.examples or ("30000/1001",))
        case JsonString():
            return st.text(min_size=max(kind.shortest, 1), max_size=5)
        case JsonColor():
            return st.sampled_from(["red", "#12345678", "#abc", [1, 2, 3], [9, 8, 7, 128]])
        case FixedList():
            return st.tuples(*map(values, kind.items)).map(list)
        case ListOf():
            return st.lists(values(kind.item), min_size=max(kind.shortest, 1), max_size=2)
        case OneOf():
            return st.one_of([values(k) for k in kind.options if not isinstance(k, JsonNull)])
    raise AssertionError(kind)


@st.composite
def node(draw: Any, type: str, id: str, before: list[str], depth: int) -> dict[str, Any]:
    """A node of a type; ``before`` are ids that it may name."""
    made: dict[str, Any] = {"type": type, "id": id}
    fields = node_object(type).fields
    free = sorted(set(fields) - _BY_HAND)
    for name in draw(st.lists(st.sampled_from(free), max_size=4, unique=True)):
        if not any(name in row and row & made.keys() for row in _ROWS):
            kind = values(fields[name].kind)
            made[name] = draw(st.sampled_from(_TIMES[name]) if name in _TIMES else kind)
    if {"loop", "speed"} & made.keys():  # groups and scenes have no end of their own
        made["trim"] = [0, 1]
    if "shadow" in made and type in ("text", "subtitles"):
        made["shadow"] = [1, 2, 3, "black"]
    if "canvas" in made:
        made["canvas"] = draw(st.sampled_from([[12, 9], [40, 20.5]]))
    if "padding" in made:  # there is little room
        made["padding"] = draw(st.sampled_from([1, [1, 2], [0, 1, 2, 0.5]]))
    if not {"pip", "pip_size", "pip_position"}.isdisjoint(made):
        made["pip"] = True
    if type == "image" or (type == "overlay" and "color" not in made):
        made["source"] = draw(st.sampled_from(["stamp.png", "deep/photo.png"]))
    if type == "text":
        made["text"] = draw(st.sampled_from(["Hi", "Two\nlines", "é"]))
    if type == "subtitles":
        made["source"] = draw(st.sampled_from([CUES, "words.srt"]))
    if type == "effect":
        made["filter"] = draw(st.sampled_from(sorted(FILTERS)))
        own = FILTERS[made["filter"]]
        made = {k: v for k, v in made.items() if k not in own}
        made["params"] = {name: draw(of) for name, of in own.items()}
        if before and draw(st.booleans()):
            made["input"] = draw(st.sampled_from(before))
    if type == "group":
        made["nodes"] = draw(nodes(depth + 1, f"{id}-"))
    if type == "scene":
        made["scene"] = draw(inside(depth + 1))
    return made


@st.composite
def nodes(draw: Any, depth: int = 0, prefix: str = "n") -> list[dict[str, Any]]:
    """A list of nodes."""
    types = ["image", "overlay", "text", "subtitles", "effect"] + ["group", "scene"] * (depth < 2)
    made: list[dict[str, Any]] = []
    for i, type in enumerate(draw(st.lists(st.sampled_from(types), min_size=1, max_size=4))):
        before = [n["id"] for n in made if n["type"] not in ("effect", "animation")]
        made.append(draw(node(type, f"{prefix}{i}", before, depth)))
        if draw(st.integers(0, 3)) == 0:
            made.append({"type": "animation", **draw(motion(f"{prefix}{i}"))})
    return made


@st.composite
def motion(draw: Any, id: str) -> dict[str, Any]:
    """An animation of a node's opacity or place."""
    made: dict[str, Any] = {"node": id, "property": draw(st.sampled_from(["opacity", "x", "y"]))}
    if draw(st.booleans()):
        made |= {"from": 0, "to": draw(st.sampled_from([1, 0.5])), "duration": 1}
    else:
        made["keyframes"] = [[0, 0], [0.5, 1, "ease-out"], [1, 0.25]]
    if draw(st.booleans()):
        made |= {"repeat": -1, "yoyo": True, "easing": draw(st.sampled_from(["sine", "quad-in"]))}
    return made


def _ids(found: list[dict[str, Any]]) -> list[str]:
    here = [n["id"] for n in found if n["type"] in ("image", "overlay", "group")]
    return here + [id for n in found for id in _ids(n.get("nodes", []))]


@st.composite
def files(draw: Any) -> dict[str, Any]:
    """A whole file."""
    made = {"dala": 2, **draw(inside())}
    if draw(st.booleans()):
        made["$schema"] = "scene.schema.json"
    return made


@st.composite
def inside(draw: Any, depth: int = 0) -> dict[str, Any]:
    """What is in a scene; ids are its own, also inside another."""
    made: dict[str, Any] = {"width": 24, "height": 16}
    extra = {
        "fps": st.sampled_from([25, 29.97, "24000/1001"]),
        "background": st.sampled_from(["navy", "#102030", "transparent", [1, 2, 3]]),
        "blend_space": st.sampled_from(["srgb", "linear"]),
        "duration": st.sampled_from([2, 0.5]),
    }
    for name in draw(st.lists(st.sampled_from(sorted(extra)), max_size=3, unique=True)):
        made[name] = draw(extra[name])
    made["nodes"] = draw(nodes(depth))
    ids = _ids(made["nodes"])
    if ids and draw(st.booleans()):
        made["animations"] = [draw(motion(draw(st.sampled_from(ids))))]
    if ids and draw(st.booleans()):
        some = draw(st.lists(st.sampled_from(ids), min_size=1, unique=True))
        type = draw(st.sampled_from(["side_by_side", "stack", "grid"]))
        made["layouts"] = [{"type": type, "nodes": some}]
    return made
