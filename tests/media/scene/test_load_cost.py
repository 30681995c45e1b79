"""Loading scene files costs in proportion to their nodes: lines of Python are counted, not time."""

import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from dala.errors import SceneFileError, did_you_mean
from dala.media import Scene
from dala.media.scene.file.load import load_scene

Item = dict[str, Any]


def box(**more: Any) -> Item:
    return {"type": "overlay", "color": "red", "size": [8, 8], **more}


def named(n: int) -> list[Item]:
    return [box(id=f"box-{i}") for i in range(n)]


def moved(node: str) -> Item:
    return {"node": node, "property": "x", "from": 0, "to": 9, "duration": 1}


def line(nodes: list[Item]) -> Item:
    return {"type": "timeline", "nodes": nodes}


def blur(**more: Any) -> Item:
    return {"type": "effect", "filter": "blur", **more}


FILES: dict[str, Callable[[int], Item]] = {
    "nodes without ids": lambda n: {"nodes": [box() for _ in range(n)]},
    "nodes with ids": lambda n: {"nodes": named(n)},
    "a group": lambda n: {"nodes": [{"type": "group", "nodes": [box() for _ in range(n)]}]},
    "shapes": lambda n: {
        "nodes": [{"type": "shape", "path": "M0 0L8 8", "stroke": "red"} for _ in range(n)],
    },
    "groups": lambda n: {"nodes": [{"type": "group", "nodes": [box()]} for _ in range(n)]},
    "a timeline": lambda n: {"nodes": [line([box(duration=1) for _ in range(n)])]},
    "timelines": lambda n: {"nodes": [line([line([box(duration=1)]) for _ in range(n)])]},
    "effects of a node": lambda n: {"nodes": [box(id="a"), *(blur(input="a") for _ in range(n))]},
    "effects before it": lambda n: {"nodes": [*(blur(input="a") for _ in range(n)), box(id="a")]},
    "animations": lambda n: {
        "nodes": named(n), "animations": [moved(f"box-{i}") for i in range(n)],
    },
    "layouts": lambda n: {
        "nodes": named(n), "layouts": [{"type": "grid", "nodes": [f"box-{i}"]} for i in range(n)],
    },
    "mistakes": lambda n: {"nodes": [blur(radius=3) for _ in range(n)]},
    "wrong ids": lambda n: {
        "nodes": [box(id="a")], "animations": [moved(f"box-{i}") for i in range(n)],
    },
    "missing files": lambda n: {"nodes": [{"type": "image", "source": "no.png"} for _ in range(n)]},
}  # fmt: skip


def lines_of(data: Item) -> int:
    """Return the lines of Python that loading a file runs."""
    count = 0

    def tick(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return tick

    before = sys.gettrace()
    sys.settrace(tick)
    try:
        with suppress(SceneFileError):
            load_scene({"dala": 1, "width": 64, "height": 36, **data}, "cpu").close()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("name", FILES)
def test_twice_the_nodes_run_twice_the_lines(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def copied(scene: Scene) -> None:
        raise AssertionError("scene.nodes copies all nodes: not for each of them")

    monkeypatch.setattr(Scene, "nodes", property(copied))
    make = FILES[name]
    lines_of(make(30))  # what the first load of a process makes
    few, some, many = (lines_of(make(n)) for n in (30, 130, 230))
    assert many - some < 1.2 * (some - few), (few, some, many)


@pytest.mark.long
@pytest.mark.parametrize("name", ["nodes without ids", "a timeline"])
def test_a_hundred_thousand_nodes(name: str) -> None:
    make = FILES[name]
    lines_of(make(30))
    assert lines_of(make(100_000)) < 105 * lines_of(make(1000))


def test_suggestions_compare_few_and_short_names() -> None:
    assert did_you_mean("a" * 100_000, ["a" * 100_001]) == ""
    assert did_you_mean("blurr", ["x" * 1_000_000, "blur"]) == "Did you mean 'blur'?"
