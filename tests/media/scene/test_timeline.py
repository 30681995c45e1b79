"""Timelines: clips one after another, exact times, transitions, nesting, files, few decoders."""

from __future__ import annotations

import threading
from fractions import Fraction

import numpy as np
import pytest

from dala.errors import ParameterError, SceneFileError
from dala.gpu.compute import kernel
from dala.gpu.compute.language import Image, mix, rgba
from dala.media import Scene, Timeline, Transition, load_scene
from dala.media.scene import scene_to_dict
from tests.media.video.clips import encode, number_of, numbered


def at(scene, time, y=2, x=2):
    return np.asarray(scene.render(Fraction(time)))[y, x].tolist()


def reds(scene, times):
    return [at(scene, t)[0] for t in times]


def plain(value, size=(8, 6)):
    return np.full((size[1], size[0], 3), value, np.uint8)


def test_times_are_exact():
    show = Timeline(transition=("dissolve", Fraction(1, 3)), duration=2)
    show.add("red").add(plain(9), duration="0:01.5").add_text("Hi").add([plain(1)] * 10, fps=4)
    assert show.times == [
        (0, 2), (Fraction(5, 3), Fraction(19, 6)), (Fraction(17, 6), Fraction(29, 6)),
        (Fraction(9, 2), 7),
    ]  # fmt: skip
    assert (show.duration, len(show)) == (7, 4)
    with Scene(8, 6, device="cpu") as scene:
        node = scene.add_timeline(show)
        assert node.length() == 7
        assert [(c.clip.start, c.clip.end) for c in node.children] == show.times


def test_a_transition_mixes_two_clips(engine_id):
    with Scene(8, 6, fps=10, background="transparent") as scene:
        line = scene.add_timeline(start=1)
        line.add_overlay(color="#c80000", duration=2)
        line.add_overlay(color="#00640080", duration=2, transition=("dissolve", 1))
        assert reds(scene, (0.9, 1, 1.9, 2)) == [0, 200, 200, 200]
        r, g, _, a = at(scene, 2.5)  # alpha is mixed, colors premultiplied
        assert a == pytest.approx((255 + 128) / 2, abs=1)
        assert r == pytest.approx(200 * 255 / (255 + 128), abs=1)
        assert g == pytest.approx(100 * 128 / (255 + 128), abs=1)
        assert at(scene, 3) == [0, 100, 0, 128]
        assert at(scene, 4) == [0, 0, 0, 0]
        assert at(scene, 2.5)[3] == a  # back again


@kernel
def checks(a: Image, b: Image, *, t: float):
    y, x = position()  # noqa: F821 - a name of the kernel language
    new = (x + y) % 2 == 0 and t > 0.25
    return rgba(mix(a[0, 0].rgb, b[0, 0].rgb, 1.0 if new else 0.0), 1.0)


def test_a_kernel_of_the_user_is_a_transition(engine_id):
    with Scene(8, 6) as scene:
        line = scene.add_timeline()
        line.add("#100000", duration=2)
        line.add("#300000", duration=2, transition=(checks, 1))
        assert [at(scene, t, 2, x)[0] for t in (1.2, 1.5) for x in (2, 3)] == [16, 16, 48, 16]


def test_moving_pictures_move_in_a_transition():
    with Scene(8, 6, fps=10, device="cpu") as scene:
        line = scene.add_timeline()
        line.add([plain(n) for n in range(10)], fps=10)
        line.add([plain(100 + n) for n in range(10)], fps=10, transition=("wipe", 0.5))
        found = [[at(scene, Fraction(n, 10), 2, x)[0] for x in (0, 7)] for n in range(16)]
        assert found[:5] == [[n, n] for n in range(5)]
        assert found[5] == [5, 5]
        assert found[7] == [102, 7]
        assert found[9] == [104, 9]
        assert found[10:15] == [[n, n] for n in range(105, 110)]
        assert found[15] == [0, 0]


def test_timelines_in_timelines_and_groups():
    inner = Timeline().add("#0a0000", duration=1).add("#140000", duration=1)
    show = Timeline().add("#640000", duration=1).add(inner, speed=2, loop=2)
    assert show.duration == 3
    with Scene(8, 6, device="cpu") as scene:
        group = scene.add_group(start=1, opacity=1)
        node = group.add_timeline(show)
        times = [1, 2, 2.5, 3, 3.5, 4]
        assert reds(scene, times) == [100, 10, 20, 10, 20, 0]
        group.clip = group.clip.with_times(Fraction(0), None)
        nested = node.children[1]
        nested.add_overlay(color="#1e0000", duration=2)  # the outer one grows with it
        assert node.length() == 5
        assert scene.render_to.__self__ is scene


def test_texts_scenes_and_effects_are_clips():
    with Scene(64, 36, device="cpu") as scene, Scene(32, 36, background="#5a0000") as inner:
        line = scene.add_timeline()
        line.add_text("HH", size=30, duration=1)
        inner.duration = 1
        shown = line.add(inner)
        line.add_effect("invert", shown, start=1.5)
        assert np.asarray(scene.render(0.5))[18].max() == 255
        assert at(scene, 1, 18, 32) == [90, 0, 0, 255]
        assert at(scene, 1, 18, 2) == [0, 0, 0, 255]  # contained: bars at both sides
        assert at(scene, 1.5, 18, 32) == [165, 255, 255, 255]
        with pytest.raises(ParameterError, match="Give input=node"):
            line.add_effect("invert")
        shown.remove()
        assert line.length() == 1


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return encode(tmp_path_factory.mktemp("clip") / "a.mp4", numbered(20), rate=10)


@pytest.mark.long
def test_two_hundred_videos_have_a_few_decoders(clip):
    with Scene(64, 48, fps=10, device="cpu") as scene:
        before = threading.active_count()
        line = scene.add_timeline()
        for _ in range(200):
            line.add(clip, trim=(0, 1), transition=("dissolve", 0.5))
        assert line.length() == Fraction(201, 2)
        assert sum(node._source is not None for node in line.children) == 0
        for t in (0, 10, 50.2, 99):
            scene.render(Fraction(t))
            assert 1 <= sum(node._source is not None for node in line.children) <= 5
            assert threading.active_count() - before <= 15
        assert number_of(scene.render(Fraction(0))) == 0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda t: t.add("red"), "needs a duration"),
        (lambda t: t.add("red", duration=0), "duration must be above 0"),
        (lambda t: t.add("red", duration=1, start=3), "start follows from the"),
        (lambda t: t.add("red", duration=1).add("blue", duration=1, transition=("dissolve", 2)),
         "transition of 2 s is longer than"),
        (lambda t: t.add("red", duration=2).add("blue", duration=2, transition=("fade", 1.5))
         .add("red", duration=2, transition=("fade", 1)), "of which 0.5 s are free"),
        (lambda t: t.add("red", duration=1, transition="disolve"), "Did you mean 'dissolve'"),
        (lambda t: t.add(None, duration=1), "clip must be a file"),
        (lambda t: t.add(lambda s: plain(1)), "needs a duration"),
    ],
)  # fmt: skip
def test_refused(build, message):
    show = Timeline()
    with pytest.raises(ParameterError, match=message):
        build(show)
    with Scene(8, 6, device="cpu") as scene:
        line = scene.add_timeline()

        class Both:
            def add(self, *args, **arguments):
                line.add(*args, **arguments)
                return self

        with pytest.raises(ParameterError, match=message):
            build(Both())
        assert len(scene.nodes) == 1 + len(line.children) == 1 + len(line.clips)


def test_refused_as_a_whole():
    with Scene(8, 6, device="cpu") as scene:
        with pytest.raises(ParameterError, match="for the nodes of a timeline"):
            scene.add_overlay(color="red", transition="dissolve")
        with pytest.raises(ParameterError, match="timeline must be a Timeline"):
            scene.add_timeline(["a.mp4"])
        assert scene.nodes == {}


def test_scene_files_hold_timelines(clip, tmp_path):
    from PIL import Image as Pictures

    Pictures.fromarray(np.tile(np.arange(64, dtype=np.uint8) * 4, (48, 1))).save(
        clip.parent / "matte.png"
    )
    with Scene(64, 48, fps=10, device="cpu") as scene:
        line = scene.add_timeline(start=0.5, loop=2, fill="cover")
        line.add(clip, trim=(0.5, 1.5))
        line.add(
            "red", duration=1, transition=("luma", 0.5, {"picture": clip.parent / "matte.png"})
        )
        wipe = Transition("wipe", 0.4, angle=30, softness=0.5, easing="ease-out")
        inner = line.add_timeline(transition=wipe)
        inner.add("blue", duration=0.8)
        inner.add_text("x", duration=1, transition={"type": "fade", "color": "white",
                                                    "duration": 0.2})  # fmt: skip
        scene.save(clip.parent / "show.json")
        with load_scene(clip.parent / "show.json", "cpu") as again:
            for t in (0.6, 1.2, 1.3, 1.9, 2.3, 3.0, 3.2, 4.6):
                assert np.array_equal(scene.render(Fraction(t)), again.render(Fraction(t))), t
            assert scene_to_dict(again, base=tmp_path)["nodes"][0]["nodes"][1]["transition"][
                "picture"
            ].endswith("matte.png")
    bad = {"dala": 2, "width": 8, "height": 8, "nodes": [{"type": "timeline", "nodes": [
        {"type": "overlay", "color": "red", "duration": 1, "transition": ["wip", 1]},
        {"type": "overlay", "color": "red"},
    ]}]}  # fmt: skip
    with pytest.raises(SceneFileError, match="transition: type must be one of"):
        load_scene(bad, "cpu")
    del bad["nodes"][0]["nodes"][0]["transition"]
    with pytest.raises(SceneFileError, match="needs a duration"):
        load_scene(bad, "cpu")


def test_sound_cross_fades_at_equal_power():
    from dala.media.audio import Audio
    from dala.media.scene.sound.voices import SceneSound

    with Scene(8, 6, device="cpu") as scene:
        line = scene.add_timeline(start=1)
        line.add_audio(Audio([0.2] * 48000, 48000))
        line.add_audio(Audio([0.1] * 48000, 48000), transition=("dissolve", 0.5))
        assert line.length() == Fraction(3, 2)
        with SceneSound(scene) as sound:
            heard = sound.render(0, 3 * 48000)[:, 0]
    scale = heard[48000 + 12000] / 0.2  # mono in the middle of stereo
    want = {0.9: 0.0, 1.25: 0.2, 1.75: (0.2 + 0.1) * np.sqrt(0.5), 2.2: 0.1, 2.6: 0.0}
    for time, level in want.items():
        assert heard[round(time * 48000)] == pytest.approx(level * scale, abs=1e-3), time
    power = heard[72000:96000]  # in between, sin and cos of the same angle
    angle = (np.arange(24000) / 24000) * np.pi / 2
    assert np.abs(power - scale * (0.2 * np.cos(angle) + 0.1 * np.sin(angle))).max() < 1e-3
