"""Scenes inside scenes: work in proportion, memory counted once, and limits before any work."""

import contextlib
import itertools
import json

import pytest

import dala
from dala.budget import Charging, accounts
from dala.errors import LimitExceeded, ParameterError, SceneFileError
from dala.media import Scene, load_scene
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
