"""Times of nodes: a node is there only in its time, and groups have a time of their own."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dala.errors import ParameterError
from dala.media import Scene, load_scene
from dala.media.scene import scene_to_dict
from tests.media.video.clips import encode, number_of, numbered


def plain(value, size=(8, 6)):
    return np.full((size[1], size[0], 3), value, np.uint8)


def reds(scene, times):
    return [int(np.asarray(scene.render(Fraction(t)))[2, 2, 0]) for t in times]


def tenths(*numbers):
    return [Fraction(n, 10) for n in numbers]


def test_every_kind_of_node_is_there_only_in_its_time(engine_id):
    with Scene(8, 6, fps=10) as scene, Scene(8, 6, background="#460000") as inner:
        times = {"start": 0.3, "end": "0:00.6"}
        made = [
            scene.add_overlay(color="#0a0000", **times),
            scene.add_image(plain(20), **times),
            scene.add_video([plain(30)], **times),
            scene.add_video(lambda t: plain(40), start=0.3, duration=0.3),
            scene.add_scene(inner, **times),
        ]
        group = scene.add_group(**times)
        group.add_overlay(color="#500000")
        made.append(group)
        for node, value in zip(reversed(made), (80, 70, 40, 30, 20, 10), strict=True):
            assert reds(scene, tenths(2, 3, 5, 6, 5, 2, 3)) == [0, value, value, 0, value, 0, value]
            node.remove()
        assert reds(scene, tenths(4)) == [0]


def test_effects_have_times(engine_id):
    with Scene(8, 6, background="white") as scene:
        box = scene.add_overlay(color="#640000")
        scene.add_effect("invert", box, end=1)
        scene.add_effect("invert", start=2, end=3)
        assert reds(scene, (0, 1, 2, 3)) == [155, 100, 155, 100]


def test_a_time_can_be_changed(engine_id):
    with Scene(8, 6) as scene:
        box = scene.add_overlay(color="#640000", start=1)
        assert reds(scene, (0, 1)) == [0, 100]
        box.start = 2
        box.end = 2.5
        assert (box.start, box.end) == (2, Fraction(5, 2))
        assert reds(scene, (1, 2, 2.5)) == [0, 100, 0]
        with pytest.raises(ParameterError, match="end must be after the start at 2 s"):
            box.end = 1
        box.update(start=None, end=None)
        assert reds(scene, (0, 9)) == [100, 100]
        with pytest.raises(ParameterError, match="that can be animated"):
            scene.add_animation(box, "start", 0, 1, duration=1)


def test_groups_have_a_time_of_their_own():
    with Scene(8, 6, fps=10, device="cpu") as scene:
        group = scene.add_group(start=1, trim=(0, 1), loop=2, speed=2, freeze=False)
        group.add_video([plain(10 * i) for i in range(1, 11)], fps=10)
        dot = group.add_overlay(color="white", size=(1, 1))
        scene.add_animation(dot, "x", 0, 7, duration=1, easing="steps(7, jump-start)", start=0)
        assert reds(scene, tenths(9, 10, 12, 14, 15, 16, 19, 20)) == [0, 10, 50, 90, 10, 30, 90, 0]
        scene.render(Fraction(14, 10))
        assert dot.x == 6.0
        backwards = scene.add_group(start=3, trim=(0, 1), speed=-1)
        backwards.add_video([plain(10 * i) for i in range(1, 11)], fps=10)
        assert reds(scene, tenths(30, 31, 38, 39, 45)) == [100, 90, 20, 10, 10]


def test_scenes_and_subtitles_play_parts_of_themselves():
    cues = "1\n00:00:00,000 --> 00:00:01,000\nA\n\n2\n00:00:01,000 --> 00:00:02,000\nB\n"
    with (
        Scene(8, 6, fps=10, device="cpu") as scene,
        Scene(8, 6, fps=10, device="cpu") as inner,
    ):
        inner.add_video([plain(10 * i) for i in range(1, 11)], fps=10)
        inner.duration = 1
        scene.add_scene(inner, start=2, speed=-0.5, loop=True)
        assert reds(scene, tenths(19, 20, 22, 38, 40)) == [0, 100, 90, 10, 100]
        words = scene.add_subtitles(cues, start=1, trim=(0.5, None), speed=0.5)
        seen = []
        for t in (1, 1.9, 2, 3.9, 4, 5):
            scene.render(t)
            seen.append(words.text if words.present else None)
        assert seen == ["A", "A", "B", "B", "", ""]
        with pytest.raises(ParameterError, match="needs its length"):
            scene.add_group(loop=True)


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return encode(tmp_path_factory.mktemp("clip") / "a.mp4", numbered(20), rate=10)


def test_only_videos_that_are_near_are_open(clip):
    with Scene(64, 48, fps=10, device="cpu") as scene:
        made = [scene.add_video(clip, start=2 * n, duration=2) for n in range(20)]
        late = scene.add_group(start=30, end=34).add_video(clip, opacity=0)
        assert made[5].natural() == (64.0, 48.0)
        for t in range(40):
            assert number_of(scene.render(Fraction(t))) == t % 2 * 10
            assert sum(node._source is not None for node in made) <= 3
            assert (late._source is not None) == (29 <= t <= 34)
        assert number_of(scene.render(Fraction(7, 2))) == 15  # going back
        assert scene.errors == {}


def test_the_duration_of_a_scene_follows_from_the_times(clip, tmp_path):
    with Scene(64, 48, fps=10, device="cpu") as scene:
        scene.add_video(clip, trim=(0.5, 1), loop=3, start=1)
        assert scene.render_to(tmp_path / "a.mkv", progress=False) == 25
        scene.add_text("Hi", size=8, end=3)
        assert scene.render_to(tmp_path / "b.mkv", progress=False) == 30


def test_scene_files_hold_the_times(clip, tmp_path):
    data = {"dala": 2, "width": 64, "height": 48, "nodes": [
        {"type": "video", "source": "a.mp4", "trim": [0.5, "0:01.5"], "loop": 2, "end": 9,
         "speed": [[0, 1], [2, -0.5, "ease-out"]], "start": "1/3"},
        {"type": "video", "source": "a.mp4", "freeze": 0.25},
        {"type": "group", "start": 1, "duration": 2, "trim": [0, 1], "loop": True,
         "nodes": [{"type": "overlay", "color": "red", "start": 0.5}]},
        {"type": "subtitles", "source": "1\n00:00:00,000 --> 00:00:01,000\nA\n", "speed": -1},
    ]}  # fmt: skip
    with load_scene(data, "cpu", base=clip.parent) as scene:
        assert scene_to_dict(scene) == data
        video, still, group, words = scene.container().children
        assert (video.clip.start, video.clip.end, video.clip.runs) == (Fraction(1, 3), 9, 2)
        assert video.clip.trim == (Fraction(1, 2), Fraction(3, 2))
        assert (group.clip.start, group.clip.end) == (1, 3)
        assert (still.clip.freeze, words.clip.speed.constant) == (Fraction(1, 4), -1)
    with Scene(64, 48, device="cpu") as made:  # the same from Python, saved and loaded
        made.add_video(clip, start=Fraction(1, 3), end=9, trim=(0.5, 1.5), loop=2,
                       speed=[(0, 1), (2, -0.5, "ease-out")])  # fmt: skip
        made.add_group(start=1, duration=2, trim=(0, 1), loop=True)
        made.save(tmp_path / "scene.json")
        with load_scene(tmp_path / "scene.json", "cpu") as again:
            for old, new in zip(made.container().children, again.container().children, strict=True):
                for name in ("start", "end", "trim", "runs", "freeze"):
                    assert getattr(old.clip, name) == getattr(new.clip, name)
                assert old.clip.speed.values == new.clip.speed.values
                assert old.clip.speed.position(Fraction(2)) == new.clip.speed.position(Fraction(2))
