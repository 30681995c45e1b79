"""Scenes inside scenes: work in proportion, memory counted once, and limits before any work."""

import contextlib
import itertools
import json

import pytest

import dala
from dala.budget import Charging, accounts
from dala.errors import LimitExceeded, ParameterError, SceneFileError
from dala.media import Scene, load_scene
from dala.media.scene.file.load import plan_scene
from dala.media.scene.nodes.nested import MAX_DEPTH, MAX_SCENES


@pytest.fixture
def make():
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(Scene(16, 16, device="cpu"))


def nested(depth, times=1):
    """The file of so many scenes inside each other."""
    data = {"width": 16, "height": 16, "nodes": [{"type": "overlay", "color": "red"}]}
    for _ in range(depth - 1):
        inner = [{"type": "scene", "scene": data} for _ in range(times)]
        data = {"width": 16, "height": 16, "nodes": inner}
    return {"dala": 2, **data}


def test_each_budget_is_charged_once(monkeypatch):
    """Each level doubled them: 2^26 budgets for 26 scenes, and memory counted 2^26 times."""
    charged = []
    found = dala.memory.check
    monkeypatch.setattr(
        dala.memory, "check", lambda n, call, accounts, **k: (
            charged.append(accounts), found(n, call, accounts, **k)
        )
    )  # fmt: skip
    with load_scene(nested(MAX_DEPTH), "cpu") as scene:
        assert scene.render().numpy()[8, 8].tolist() == [255, 0, 0, 255]
        pixels = 16 * 16 * 4
        assert pixels * MAX_DEPTH <= scene.accounts[0].used <= 100 * pixels * MAX_DEPTH
    assert max(map(len, charged)) >= MAX_DEPTH  # each scene has one
    assert all(len(set(each)) == len(each) for each in charged)


def test_charging_twice_counts_once():
    one, two = (dala.resources.Account(name, 100, "") for name in ("one", "two"))
    with Charging((one,)), Charging((two, one)), Charging((two,)):
        assert accounts() == (two, one)
    assert accounts() == ()


def test_depth_is_bounded_in_every_order(make):
    bottom_up = [make() for _ in range(MAX_DEPTH + 1)]
    for inner, outer in itertools.pairwise(bottom_up[:-1]):
        outer.add_scene(inner)
    bottom_up[-2].render()
    with pytest.raises(LimitExceeded, match=f"at most {MAX_DEPTH} scenes .*, got {MAX_DEPTH + 1}"):
        bottom_up[-1].add_scene(bottom_up[-2])
    assert not bottom_up[-1].nodes

    top_down = [make() for _ in range(MAX_DEPTH + 1)]
    for outer, inner in itertools.pairwise(top_down[:-1]):
        node = outer.add_scene(inner)
    with pytest.raises(LimitExceeded, match=f"at most {MAX_DEPTH} scenes .*, got {MAX_DEPTH + 1}"):
        top_down[-2].add_scene(top_down[-1])
    # Two halves that are joined, and a node that is removed, count as what they are.
    with pytest.raises(LimitExceeded, match=f"at most {MAX_DEPTH} scenes"):
        top_down[MAX_DEPTH // 2].add_scene(bottom_up[MAX_DEPTH // 2])
    top_down[-3].remove_node(node)
    top_down[-3].add_scene(top_down[-1])


def test_scenes_that_show_one_scene_twice_are_bounded(make):
    """Thirty lines would be a billion scenes."""
    scene = make()
    with pytest.raises(LimitExceeded, match=f"at most {MAX_SCENES} scenes, .*, got 2047"):
        for _ in range(MAX_DEPTH):
            outer = make()
            outer.add_scene(scene)
            outer.add_scene(scene)
            scene = outer
    assert scene.render() is not None


def test_a_scene_cannot_contain_itself(make):
    a, b, c = make(), make(), make()
    a.add_scene(b)
    b.add_scene(c)
    for outer, inner in ((a, a), (c, a), (c, b), (b, a)):
        with pytest.raises(ParameterError, match="contain itself"):
            outer.add_scene(inner)
    a.add_scene(c)  # twice is not a circle


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (nested(MAX_DEPTH + 1), f"at most {MAX_DEPTH} scenes can be inside each other, got 33"),
        (nested(150), f"at most {MAX_DEPTH} scenes can be inside each other, got 150"),
        (
            nested(30, times=2),
            f"at most {MAX_SCENES} scenes, each as often as it is there, got 1073",
        ),
    ],
)
def test_files_are_refused_before_anything_is_made(data, problem, monkeypatch, tmp_path):
    monkeypatch.setattr(Scene, "__init__", lambda *args, **given: pytest.fail("a scene was made"))
    with pytest.raises(SceneFileError, match=f"nodes: .*{problem}"):
        load_scene(data, "cpu")
    if "each other" in problem:
        (tmp_path / "scene.json").write_text(json.dumps(data))
        with pytest.raises(SceneFileError, match=problem):
            load_scene(tmp_path / "scene.json", "cpu")


def test_circular_data_is_refused():
    data = nested(2)
    data["nodes"].append({"type": "group", "nodes": data["nodes"]})
    with pytest.raises(SceneFileError, match="nested too deep"):
        load_scene(data, "cpu")
    data = nested(2)
    data["nodes"][0]["scene"] = data
    with pytest.raises(SceneFileError, match="nested too deep"):
        load_scene(data, "cpu")


def test_pixels_are_bounded_before_anything_is_made(monkeypatch):
    data = nested(3)
    data["nodes"][0]["scene"] |= {"width": 16384, "height": 16384}
    monkeypatch.setattr(Scene, "__init__", lambda *args, **given: pytest.fail("a scene was made"))
    match = (
        r"nodes: a frame of its 3 scenes has 268,435,968 pixels, at least 1 GiB, and the scene may "
        r"use 512 MiB\. Make .* or allow more: load_scene\(\.\.\., memory="
    )
    with pytest.raises(SceneFileError, match=match):
        load_scene(data, "cpu", memory="512 MiB")
    with (
        pytest.raises(SceneFileError, match="may use 1000 bytes"),
        dala.limits(memory=1000),
    ):
        load_scene(nested(2), "cpu")
    assert plan_scene(data, memory="2 GiB").nbytes == 4 * (16384 * 16384 + 2 * 16 * 16)


def test_more_memory_allows_more_pixels():
    with load_scene(nested(3), "cpu", memory=64_000) as scene:
        assert scene.render().numpy()[8, 8].tolist() == [255, 0, 0, 255]
    with pytest.raises(SceneFileError, match=r"768 pixels, at least 3 KiB, and .* 2 KiB"):
        load_scene(nested(3), "cpu", memory=2048)


def test_inner_scenes_render_when_they_change_and_are_shown(make):
    outer, inner = make(), make()
    box = inner.add_overlay(color="red")
    once, twice = outer.add_scene(inner), outer.add_scene(inner, position=(8, 8))
    for time in range(3):
        outer.render(time)
    assert (inner.frame_count, inner.frames_skipped) == (6, 5)  # drawn once, for both
    once.visible = twice.visible = False
    outer.render(3)
    assert inner.frame_count == 6
    box.color = "blue"
    once.visible = True
    assert outer.render(4).numpy()[1, 1].tolist() == [0, 0, 255, 255]
