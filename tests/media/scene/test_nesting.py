"""Scenes inside scenes: work in proportion, memory counted once, and limits before any work."""

import contextlib
import itertools
import json

import numpy as np
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


# the size of inner scenes -------------------------------------------------------------------------
def filled(scene):
    """Add nodes of every kind of draw: fill, corners, border, shadow, text, picture, rotation."""
    ramp = np.arange(64 * 64 * 4, dtype=np.uint32).reshape(64, 64, 4) // 64
    scene.add_overlay(color="red", position=(16, 16), size=(64, 32))
    scene.add_overlay(
        color="#00ff00a0", position=(96, 16), size=(48, 48), radius=16, border_width=4,
        border_color="white", shadow=(2, 2, 8, "blue"),
    )  # fmt: skip
    scene.add_text("Size", size=40, position=(16, 80))
    scene.add_image(ramp.astype(np.uint8), position=(128, 112), size=(96, 96), rotation=30)
    return scene


def shown(device, size, *, whole=False, **more):
    """The frame of a scene that shows one of 256 x 256 at a size, and the size it was drawn at."""
    with Scene(256, 256, device=device) as outer, Scene(256, 256, device=device) as inner:
        filled(inner)
        if whole:
            inner.render()
        outer.add_scene(inner, size=size, **more)
        made = outer.render().numpy().copy()
        return made, inner._pool.front.surface.rect[2:]


@pytest.mark.parametrize(
    ("size", "drawn"),
    [((256, 256), 256), ((129, 129), 256), ((128, 128), 128), ((100, 64), 128), ((64, 64), 64),
     ((20, 20), 32), ((2, 2), 4), ((512, 512), 256)],
)  # fmt: skip
def test_inner_scenes_are_drawn_about_as_large_as_they_are_shown(size, drawn):
    made, found = shown("cpu", size)
    assert found == (drawn, drawn)
    reference, full = shown("cpu", size, whole=True)
    assert full == (256, 256)
    # Smaller pixels are samples of the same shapes: alike, but for their edges.
    w, h = (min(side, 256) for side in size)
    apart = np.abs(made[:h, :w].astype(int) - reference[:h, :w]).mean()
    assert apart < 6
    assert not made[h:, w:, :3].any()
    if drawn == 256:
        assert apart == 0


def test_sharp_edges_stay_where_they_are():
    with Scene(64, 64, device="cpu") as outer, Scene(256, 256, device="cpu") as inner:
        inner.add_overlay(color="red", position=(32, 64), size=(64, 128))
        outer.add_scene(inner, size=(64, 64))
        made = outer.render().numpy()
        wanted = np.zeros((64, 64, 4), np.uint8)
        wanted[..., 3] = 255
        wanted[16:48, 8:24, 0] = 255
        assert np.array_equal(made, wanted)


def test_small_inner_scenes_are_the_same_on_every_device(engine_id):
    wanted, _ = shown("reference", (64, 48), crop=(10, 20, 200, 180), rotation=10)
    made, _ = shown(None, (64, 48), crop=(10, 20, 200, 180), rotation=10)
    assert np.array_equal(made, wanted)


def test_the_largest_showing_decides_and_changes_are_followed(make):
    outer = make()
    with Scene(64, 64, device="cpu") as inner:
        box = inner.add_overlay(color="red", size=(64, 64))
        small = outer.add_scene(inner, size=(8, 8))
        outer.render()
        assert inner._pool.width // inner._pool.reduction == 8
        large = outer.add_scene(inner, position=(8, 0), size=(8, 8), scale=4)
        outer.render()
        assert inner._pool.reduction == 2
        frames = inner.frame_count - inner.frames_skipped
        for _ in range(3):
            assert outer.render().numpy()[4, 4].tolist() == [255, 0, 0, 255]
        assert inner.frame_count - inner.frames_skipped == frames  # nothing changed
        outer.remove_node(large)
        box.color = "blue"
        assert outer.render().numpy()[4, 4].tolist() == [0, 0, 255, 255]
        assert inner._pool.reduction == 8
        small.crop = (0, 0, 8, 8)
        outer.render()
        assert inner._pool.reduction == 1
        small.crop = None
        outer.render()
        # Frames of its own are whole, and it stays so: else each frame would be drawn twice.
        assert inner.render().shape == (64, 64, 4)
        assert outer.render().numpy()[4, 4].tolist() == [0, 0, 255, 255]
        assert inner._pool.reduction == 1


def test_levels_of_inner_scenes_are_reduced_together(make):
    outer = make()
    with Scene(64, 64, device="cpu") as middle, Scene(64, 64, device="cpu") as inner:
        inner.add_overlay(color="red", size=(64, 64))
        middle.add_scene(inner, size=(32, 32))
        outer.add_scene(middle, size=(16, 16))
        assert outer.render().numpy()[4, 4].tolist() == [255, 0, 0, 255]
        assert (middle._pool.reduction, inner._pool.reduction) == (4, 8)


def test_effects_on_everything_below_keep_the_size(make):
    outer = make()
    with Scene(64, 64, device="cpu") as inner:
        inner.add_overlay(color="red", size=(64, 64))
        outer.add_scene(inner, size=(16, 16))
        outer.render()
        assert inner._pool.reduction == 4
        effect = inner.add_effect("sepia")
        outer.render()
        assert inner._pool.reduction == 1
        inner.remove_node(effect)
        outer.render()
        assert inner._pool.reduction == 4
