"""Incremental rendering: damage, immutable frames, bounded memory."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dala
from dala.errors import ReadOnlyError
from dala.media import Scene
from dala.media.scene.compositor.damage import disjoint

RNG = np.random.default_rng(5)
PHOTO = RNG.integers(0, 256, (18, 24, 3), dtype=np.uint8)
STAMP = RNG.integers(0, 256, (12, 10, 4), dtype=np.uint8)
SIZE = (48, 40)


def scene_of(engine_device=None, **options):
    scene = Scene(*SIZE, device=engine_device, **options)
    scene.add_image(PHOTO, size=SIZE, id="ground")
    scene.add_image(STAMP, position=(5, 6), id="stamp")
    scene.add_overlay(color="orange", position=(20, 10), size=(14, 9), id="box")
    group = scene.add_group(id="group", position=(8, 4))
    group.add_overlay(color="#00ff0080", size=(12, 12), position=(6, 6), id="inside")
    group.add_image(STAMP, position=(12, 10), id="inside stamp")
    return scene


#: Ways to change a scene, by name; each takes a scene and numbers of 0 to 1.
CHANGES = {
    "move": lambda s, a, b: s["stamp"].set("position", (a * 60 - 10, b * 50 - 10)),
    "move far": lambda s, a, b: s["box"].update(x=a * 48, y=b * 40),
    "turn": lambda s, a, b: s["stamp"].update(rotation=a * 360, anchor="center"),
    "scale": lambda s, a, b: s["inside stamp"].set("scale", 0.3 + a * 2),
    "fade": lambda s, a, b: s["box"].set("opacity", a),
    "fade group": lambda s, a, b: s["group"].set("opacity", a),
    "whole group": lambda s, a, b: s["group"].set("opacity", 1),
    "move group": lambda s, a, b: s["group"].set("position", (round(a * 20), round(b * 20))),
    "hide": lambda s, a, b: s["stamp"].set("visible", a > 0.5),
    "raise": lambda s, a, b: s["ground" if b > 0.8 else "box"].set("z_index", round(a * 4 - 2)),
    "raise inside": lambda s, a, b: s["inside"].set("z_index", round(a * 4 - 2)),
    "round": lambda s, a, b: s["box"].set("radius", a * 6),
    "border": lambda s, a, b: s["box"].set("border", (a * 3, "white")),
    "shadow": lambda s, a, b: s["box"].set("shadow", (a * 4, b * 4, 3, "black")),
    "soft shadow": lambda s, a, b: s["stamp"].set("shadow", (a * 4, b * 4, 3, "red")),
    "blend": lambda s, a, b: s["stamp"].set("blend", "multiply" if a > 0.5 else "over"),
    "blend inside": lambda s, a, b: s["inside"].set("blend", "screen" if a > 0.5 else "over"),
    "crop": lambda s, a, b: s["ground"].set("crop", (a * 8, b * 6, 12, 10)),
    "blur below": lambda s, a, b: s.add_effect(
        "blur", radius=1 + round(a * 2), z_index=round(b * 3 - 1)
    ),
    "invert box": lambda s, a, b: s.add_effect(
        "invert", position=(a * 20, b * 20), size=(15, 12), opacity=0.7
    ),
    "effect on node": lambda s, a, b: s.add_effect("brightness", "box", value=a - 0.5),
    "effect on group": lambda s, a, b: s.add_effect("invert", "group"),
    "stronger": None,
    "add": lambda s, a, b: s.add_image(STAMP, position=(a * 40, b * 30), opacity=0.5 + a / 2),
    "remove": lambda s, a, b: s.remove_node([*s.nodes][-1]) if len(s.nodes) > 6 else None,
}


def change(scene, name, a, b):
    if name == "stronger":
        for node in scene.nodes.values():
            if node.type == "effect" and node.name == "blur":
                node.set("radius", 1 + round(a * 2))
        return
    CHANGES[name](scene, a, b)


STEPS = st.lists(
    st.lists(
        st.tuples(st.sampled_from(sorted(CHANGES)), st.floats(0, 1), st.floats(0, 1)), max_size=3
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS, hold=st.booleans())
def test_damage_rendering_equals_full_rendering(steps, hold):
    """Render frame by frame in one scene, and each frame in a new scene."""
    kept = []
    with scene_of("cpu") as scene:
        scene.render()
        done = []
        for step in steps:
            for name, a, b in step:
                change(scene, name, a, b)
                done.append((name, a, b))
            frame = scene.render()
            with scene_of("cpu") as fresh:
                for name, a, b in done:
                    change(fresh, name, a, b)
                want = np.asarray(fresh.render()).copy()
            np.testing.assert_array_equal(np.asarray(frame), want)
            if hold:
                kept.append((frame, want))
        for frame, want in kept:
            np.testing.assert_array_equal(np.asarray(frame), want)


#: Changes that leave a node with its one draw: it is written into its place.
MOVES = {
    "stamp": lambda s, a, b: s["stamp"].set("position", (a * 70 - 15, b * 60 - 15)),
    "stamp by pixels": lambda s, a, b: s["stamp"].update(x=round(a * 48), y=round(b * 40)),
    "box": lambda s, a, b: s["box"].set("x", a * 60 - 10),
    "ground": lambda s, a, b: s["ground"].set("y", round(b * 3)),
    "inside": lambda s, a, b: s["inside stamp"].update(x=a * 30, y=b * 30),
    "pixels": lambda s, a, b: s["stamp"].show(STAMP if a < 0.5 else STAMP[::-1].copy()),
    "away": lambda s, a, b: s["stamp"].update(x=49 + a * 3, y=b * 60 - 15),
    "there and back": lambda s, a, b: (s["box"].set("x", 3), s["box"].set("x", 20)),
    "turned": lambda s, a, b: s["stamp"].set("rotation", round(a * 4) * 45),
    "own group": lambda s, a, b: s["group"].set("opacity", 0.5 if a < 0.5 else 1),
    "hidden": lambda s, a, b: s["stamp"].set("visible", a > 0.3),
    "over it": lambda s, a, b: s["box"].set("z_index", round(a * 2 - 1)),
}
WALKS = st.lists(
    st.lists(st.tuples(st.sampled_from(sorted(MOVES)), st.floats(0, 1), st.floats(0, 1))),
    min_size=2,
    max_size=7,
)


@settings(max_examples=40, deadline=None)
@given(walk=WALKS, held=st.integers(0, 3), effect=st.booleans())
def test_moved_nodes_render_like_new_ones(walk, held, effect):
    """Use framebuffers that are out of date by different numbers of frames."""

    def made():
        scene = scene_of("cpu")
        scene.add_video(lambda t: np.roll(PHOTO, round(t * 30), 1), position=(4, 20), id="film")
        if effect:
            scene.add_effect("invert", position=(10, 5), size=(20, 20))
        return scene

    frames, done = [], []
    with made() as scene:
        for number, step in enumerate(walk):
            for name, a, b in step:
                MOVES[name](scene, a, b)
                done.append((name, a, b))
            scene["film"].x = number % 3
            frames.append(scene.render())
            del frames[: max(0, len(frames) - held)]
            with made() as fresh:
                for name, a, b in done:
                    MOVES[name](fresh, a, b)
                fresh["film"].x = number % 3
                want = np.array(fresh.render(scene.time))
            np.testing.assert_array_equal(np.asarray(scene._pool.front.lend()), want)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(-5, 30), st.integers(-5, 30), st.integers(0, 20), st.integers(0, 20)
        ).map(lambda r: (r[0], r[1], r[0] + r[2], r[1] + r[3])),
        max_size=24,
    ),
    st.sampled_from([1, 11, 40, 150]),
    st.booleans(),
)
def test_disjoint_rectangles_cover_the_same_without_overlap(rects, scale, coarse):
    side = 25 * scale - scale // 3
    rects = [tuple(n * scale for n in rect) for rect in rects]
    want = np.zeros((side, side), bool)
    for x0, y0, x1, y1 in rects:
        want[max(y0, 0) : max(y1, 0), max(x0, 0) : max(x1, 0)] = True
    got = np.zeros((side, side), np.int8)
    for x0, y0, x1, y1 in disjoint(rects, (0, 0, side, side), coarse=coarse):
        assert 0 <= x0 < x1 <= side
        assert 0 <= y0 < y1 <= side
        got[y0:y1, x0:x1] += 1
    assert got.max(initial=0) <= 1
    assert (got[want] == 1).all()


def test_many_large_rectangles_are_merged_for_a_gpu():
    rects = [(10 * k, 5 * k, 10 * k + 400, 5 * k + 300) for k in range(20)]
    assert disjoint(rects, (0, 0, 1000, 600), coarse=True) == [(0, 0, 590, 395)]
    assert len(disjoint(rects, (0, 0, 1000, 600))) > 1
    small = [(10 * k, 5 * k, 10 * k + 4, 5 * k + 3) for k in range(20)]
    whole = (0, 0, 1000, 600)
    assert disjoint(small, whole, coarse=True) == disjoint(small, whole)


# frames -----------------------------------------------------------------------------------------
def test_unchanged_scene_draws_nothing(engine_id):
    with scene_of() as scene:
        first = scene.render()
        assert scene.stats["dirty_pixels"] == SIZE[0] * SIZE[1]
        again = [scene.render() for _ in range(3)]
        assert scene.frames_skipped == 3
        assert scene.stats["dirty_pixels"] == 0
        assert [f.pts for f in again] == [1, 2, 3]
        for frame in again:
            np.testing.assert_array_equal(np.asarray(frame), np.asarray(first))
        scene["stamp"].x = 5  # what it was
        scene.render()
        assert scene.frames_skipped == 4
        scene["stamp"].x = 6
        scene.render()
        assert (scene.frames_skipped, scene.frame_count) == (4, 6)


def test_only_rectangles_that_changed_are_drawn(engine_id):
    with scene_of() as scene:
        held = scene.render()
        scene["box"].x = 21
        scene.render()  # a second framebuffer, whole
        scene["box"].x = 22
        del held
        scene.render()
        assert scene.stats["dirty_pixels"] <= 17 * 9
        scene["box"].opacity = 0.5
        scene.render()
        assert 0 < scene.stats["dirty_pixels"] <= 17 * 9


def test_frames_are_immutable(engine_id):
    """Hold them as a frame, as an array, and as a slice of an array."""
    with scene_of() as scene:
        held = []
        for i in range(6):
            scene["box"].color = (i * 40, 0, 0)
            frame = scene.render()
            array = np.asarray(frame)
            want = array.copy()
            held.append(([frame, array, array[3:, ::2], frame.pixels][i % 4], want))
            del frame, array
        for i, (thing, want) in enumerate(held):
            got = np.asarray(thing)
            np.testing.assert_array_equal(got, want[3:, ::2] if i % 4 == 2 else want)
        scene.close()
        for i, (thing, want) in enumerate(held):
            got = np.asarray(thing)
            np.testing.assert_array_equal(got, want[3:, ::2] if i % 4 == 2 else want)


def test_repeated_frames_of_a_static_scene(engine_id):
    """Frames of one framebuffer, one after the other: released ones are forgotten."""
    with scene_of() as scene:
        first = scene.render()
        for _ in range(500):
            frame = scene.render()
        assert len(scene._pool.front._frames) < 100
        want = np.array(frame)
        del frame
        scene["box"].x = 1
        scene.render()  # the first is still held, however many were released after it
        assert scene.stats["framebuffers"] == 2
        np.testing.assert_array_equal(np.asarray(first), want)


def test_frames_are_read_only(engine_id):
    with scene_of() as scene:
        frame = scene.render()
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(frame)[0, 0] = 1
        with pytest.raises(ReadOnlyError):
            frame.pixels.write(np.zeros((SIZE[1], SIZE[0], 4), np.uint8))
        inverted = dala.media.gpu.invert(frame)  # what a filter makes of it is one's own
        want = np.asarray(frame)[..., :3]
        np.testing.assert_array_equal(np.asarray(inverted)[..., :3], 255 - want)


def test_two_framebuffers_are_enough_for_a_loop(engine_id):
    with scene_of() as scene:
        for i in range(20):
            scene["box"].x = i
            frame = scene.render()
        assert scene.stats["framebuffers"] == 2
        del frame
        kept = []
        for i in range(6):
            scene["box"].x = 30 + i
            kept.append(scene.render())
        assert scene.stats["framebuffers"] == 6
        kept.clear()
        for i in range(70):
            scene["box"].x = i % 11
            scene.render()
        assert scene.stats["framebuffers"] <= 3


def test_closed_frame_releases_its_memory(engine_id):
    with scene_of() as scene:
        for i in range(5):
            scene["box"].x = i
            with scene.render() as frame:
                want = np.array(frame)
        assert scene.stats["framebuffers"] == 1
        np.testing.assert_array_equal(np.asarray(scene.render()), want)


def test_lowest_draws_are_cached_as_one_picture(engine_id):
    def made(lets_go):
        with Scene(40, 30) as scene:
            for i in range(6):
                scene.add_image(PHOTO, size=(40, 30), opacity=0.7, rotation=i)
            dot = scene.add_overlay(color="red", size=(6, 6))
            for i in range(30):
                dot.x = i
                frame = scene.render()
                before = np.array(frame)
                if lets_go:
                    frame.close()
            kept = scene.stats["cached"]
            assert scene.stats["framebuffers"] == (1 if lets_go else 2)
            [*scene.nodes.values()][2].opacity = 0.1
            return kept, before, np.array(scene.render()), scene.stats["cached"]

    kept, before, after, left = made(True)
    none, plain, plain_after, _ = made(False)
    assert (kept, none) == (6, 0)
    assert left < 3  # what changed is not kept, nor what is above it
    np.testing.assert_array_equal(before, plain)
    np.testing.assert_array_equal(after, plain_after)


def test_effects_run_again_only_when_their_input_changes(engine_id):
    with scene_of() as scene:
        scene.add_effect("blur", radius=1, position=(0, 0), size=(24, 24))
        above = scene.add_overlay(color="red", position=(2, 2), size=(4, 4))
        scene.render()
        assert scene.stats["filtered"] == 1
        for x, filtered in ((3, 0), (4, 0)):
            above.x = x  # above the effect
            scene.render()
            assert scene.stats["filtered"] == filtered
        scene["box"].update(x=30, y=30)  # away from it: once more, for what it leaves
        scene.render()
        assert scene.stats["filtered"] == 1
        scene["box"].x = 31  # beside it
        scene.render()
        assert scene.stats["filtered"] == 0


# memory -----------------------------------------------------------------------------------------
def objects():
    gc.collect()
    return {k: (v["count"], v["bytes"]) for k, v in dala.diagnostics()["objects"].items()}


def test_close_releases_everything(engine_id):
    def once():
        with scene_of() as scene:
            scene.add_effect("blur", radius=1)
            scene.add_effect("invert", "group")
            scene["stamp"].shadow = (1, 1, 2, "black")
            scene["box"].update(opacity=0.5, border=(1, "red"))
            for i in range(4):
                scene["box"].x = i
                scene.render()
            scene.remove_node("group")
            scene.render()

    once()
    before = objects()
    once()
    after = objects()
    assert {k: v for k, v in after.items() if v != before.get(k)} == {}


def test_collected_scene_frees_its_memory(engine_id):
    def once():
        scene = scene_of()
        scene.add_video([PHOTO, PHOTO[::-1]], fps=10, loop=True)
        scene.add_video(iter([PHOTO]), fps=10)
        scene.add_effect("blur", radius=1)
        scene["box"].update(opacity=0.5, border=(1, "red"))
        scene.textures.load("photo", PHOTO)
        scene.add_image("photo")
        scene.render()

    once()
    before = objects()
    once()
    after = objects()
    assert {k: v for k, v in after.items() if v != before.get(k)} == {}


def test_memory_is_images_and_two_framebuffers():
    with Scene(320, 200, device="cpu") as scene:
        before = objects()
        for i in range(20):
            scene.add_image(np.full((100, 100, 4), i, np.uint8), position=(i * 10, i * 5))
        for i in range(40):
            [*scene.nodes.values()][19].x = i
            frame = scene.render()
        after = objects()
        del frame
    grown = sum(after[k][1] - before.get(k, (0, 0))[1] for k in after if k in ("buffer", "picture"))
    assert grown <= 20 * 100 * 100 * 4 + 2 * 320 * 200 * 4


@pytest.mark.parametrize("holds", [True, False], ids=["held", "let go"])
def test_at_most_two_framebuffers(holds):
    """One of them may be the cache of the lowest draws."""
    width, height = 320, 200
    rng = np.random.default_rng(1)
    with Scene(width, height, device="cpu") as scene:
        nodes = [
            scene.add_image(
                rng.integers(0, 256, (60, 80, 4), dtype=np.uint8),
                size=(width, height), rotation=i, opacity=0.8,
            )
            for i in range(19)
        ]  # fmt: skip
        nodes.append(scene.add_image(rng.integers(0, 256, (40, 40, 4), dtype=np.uint8)))
        before, kept = objects(), scene._compositor.nbytes
        most = 0
        for i in range(16):
            nodes[-1].x = i
            frame = scene.render()
            grown = objects()["buffer"][1] - before["buffer"][1]
            most = max(most, grown)
            if not holds:
                frame.close()
        assert scene.stats["cached"] == (0 if holds else 19)
        assert scene.stats["framebuffers"] == (2 if holds else 1)
        assert most <= 2 * width * height * 4
        assert scene._compositor.nbytes - kept < width * height  # tables
        if not holds:  # a frame that is held takes the place of the base
            nodes[-1].x, frame = 3, scene.render()
            nodes[-1].x, other = 4, scene.render()
            assert objects()["buffer"][1] - before["buffer"][1] <= 2 * width * height * 4
            assert (scene.stats["cached"], scene.stats["framebuffers"]) == (0, 2)
            del other


def test_memory_does_not_grow(engine_id):
    with scene_of() as scene:
        scene.add_effect("brightness", "box", value=0.1)
        text = scene.add_text("0", size=10)
        before = None
        for i in range(120):
            scene["box"].x = i % 20
            scene["group"].opacity = 1 if i % 3 else 0.5
            text.text = str(i % 10)
            scene.render()
            if i == 40:
                before = objects()
        after = objects()
        assert {k: v for k, v in after.items() if v[0] > before[k][0]} == {}
