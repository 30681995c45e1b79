"""Output of scenes: files, presentations and surfaces have the same frames."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dala import gpu
from dala.errors import FreedError, ParameterError, VideoError
from dala.media import Scene, video
from dala.media.notices import MediaNotice
from dala.media.scene.output import ScenePlayer
from dala.media.scene.playback import play

av = pytest.importorskip("av")

from tests.media.video.clips import encode, number_of, numbered, packets  # noqa: E402


def moving(fps=10, size=(32, 24), device="cpu"):
    """A box that moves, over a color."""
    made = Scene(*size, fps=fps, background="navy", device=device)
    box = made.add_overlay(color="white", size=(8, 8), position=(0, 4), id="box")
    made.add_animation(box, "x", 0, 20, 1)
    made.add_animation(box, "color", "white", "tomato", 1)
    return made


def frames(path):
    with video.open(path, device="cpu") as source:
        return [np.array(frame)[..., :3].astype(int) for frame in source]


def stamps(path):
    with av.open(str(path)) as file:
        return [p.pts * p.time_base for p in file.demux(video=0) if p.size]


# files ------------------------------------------------------------------------------------------
def test_video_file_has_the_frames_of_the_scene(tmp_path):
    done = []
    with moving() as scene:
        count = scene.render_to(
            tmp_path / "out.mkv", 0.8, codec="ffv1", progress=lambda *n: done.append(n)
        )
        want = [np.array(scene.render(n / 10))[..., :3].astype(int) for n in range(8)]
    assert count == 8
    assert done == [(n, 8) for n in range(1, 9)]
    got = frames(tmp_path / "out.mkv")
    assert len(got) == 8
    for one, other in zip(got, want, strict=True):
        # Chroma has half the resolution: inside the box and away from it colors are right.
        assert np.abs(one - other).mean() < 6
    assert np.abs(want[0] - want[7]).mean() > 12
    assert stamps(tmp_path / "out.mkv") == [Fraction(n, 10) for n in range(8)]


def test_a_function_changes_the_scene_before_each_frame(tmp_path):
    with moving() as scene:
        light = scene.add_overlay(color="black", size=(32, 24))
        scene.render_to(
            tmp_path / "out.mkv", 0.3, codec="ffv1", progress=False,
            on_frame=lambda t: light.update(color=(round(t * 1000), 0, 0)),
        )  # fmt: skip
        with pytest.raises(ParameterError, match="chunk takes no on_frame"):
            scene.render_to(tmp_path / "b.mkv", 0.3, chunk=0.1, on_frame=print)
    assert [frame[12, 16, 0] for frame in frames(tmp_path / "out.mkv")] == pytest.approx(
        [0, 100, 200], abs=4
    )


@pytest.mark.parametrize(("fps", "start", "seconds", "times"), [
    (None, 0, 0.3, [0, 0.1, 0.2]),
    (20, 0.5, 0.2, [0.5, 0.55, 0.6, 0.65]),
    ("30000/1001", 0, 0.1, [0, 1001 / 30000, 2002 / 30000]),
    (None, 0.25, None, [0.25 + n / 10 for n in range(8)]),
])  # fmt: skip
def test_times_of_a_video_file(tmp_path, monkeypatch, fps, start, seconds, times):
    with moving() as scene:
        asked = []
        render = scene.render
        monkeypatch.setattr(
            scene, "render", lambda time: asked.append(float(time)) or render(time), raising=False
        )
        scene.render_to(tmp_path / "out.mp4", seconds, fps=fps, start=start, progress=False)
    assert asked == pytest.approx(times, abs=1e-9)
    rate = float(Fraction(fps or 10))
    shown = [float(stamp) for stamp in sorted(stamps(tmp_path / "out.mp4"))]
    assert shown == pytest.approx([n / rate for n in range(len(times))], abs=1e-4)


def test_duration_is_that_of_the_last_end(tmp_path):
    clip = encode(tmp_path / "clip.mp4", numbered(10), rate=10)
    with Scene(64, 48, fps=10, device="cpu") as scene:
        scene.add_video(clip, offset=0.5)
        assert scene.render_to(tmp_path / "a.mp4", progress=False) == 15
        scene.add_animation(scene.add_overlay("red"), "opacity", 0, 1, 1, repeat=-1)
        assert scene.render_to(tmp_path / "a.mp4", progress=False) == 15
        scene.add_subtitles("1\n00:00:01,000 --> 00:00:02,000\nHi\n")
        assert scene.render_to(tmp_path / "a.mp4", progress=False) == 20
        scene.duration = 0.5
        assert scene.render_to(tmp_path / "a.mp4", progress=False) == 5
        assert scene.render_to(tmp_path / "a.mp4", 0.2, progress=False) == 2


def test_incomplete_file_is_removed(tmp_path):
    (tmp_path / "out.mp4").write_bytes(b"an older one")
    with moving() as scene:

        def stop(done, total):
            if done == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            scene.render_to(tmp_path / "out.mp4", 1, progress=stop)
        assert [path.name for path in tmp_path.iterdir()] == ["out.mp4"]
        assert (tmp_path / "out.mp4").read_bytes() == b"an older one"


# sound ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("offset", "start", "seconds", "first", "last"), [
    (0, 0, 1.0, 0.0, 1.0),
    (0.5, 0, 1.0, 0.5, 1.0),
    (0, 0.5, 1.0, 0.0, 1.0),
    (0, 0, 5.0, 0.0, 2.0),
])  # fmt: skip
def test_sound_is_in_sync(tmp_path, offset, start, seconds, first, last):
    clip = encode(tmp_path / "clip.mp4", numbered(20), rate=10, tone=True)
    own = {data: time for time, _, data in packets(clip, "audio")}
    with Scene(64, 48, fps=10, device="cpu") as scene:
        talk = scene.add_video(clip, offset=offset, id="talk")
        out = tmp_path / "out.mp4"
        for audio in (talk, "talk") if not start else (talk,):
            scene.render_to(out, seconds, start=start, audio_from=audio, progress=False)
    found = packets(out, "audio")
    times = [float(time) for time, _, _ in found]
    assert times[0] == pytest.approx(first, abs=0.03)
    assert times[-1] == pytest.approx(last, abs=0.06)
    for time, _, data in found:  # each is where its picture is
        assert float(time) == pytest.approx(float(own[data]) + offset - start, abs=0.03)
    shown = frames(out)
    assert number_of(shown[int(offset * 10)]) == int(start * 10)


def test_sound_of_another_file(tmp_path):
    clip = encode(tmp_path / "clip.mp4", numbered(20), rate=10, tone=True)
    with moving() as scene:
        scene.render_to(tmp_path / "out.mp4", 1, audio_from=clip, progress=False)
    assert 40 < len(packets(tmp_path / "out.mp4", "audio")) < 50


def test_invalid_sound(tmp_path):
    silent = encode(tmp_path / "silent.mp4", numbered(3))
    loud = encode(tmp_path / "loud.mp4", numbered(3), tone=True)
    with Scene(64, 48, device="cpu") as scene:
        fast = scene.add_video(loud, speed=2)
        for audio, words in (
            (silent, "has no sound"), (fast, "at speed 2"), ("missing.mp4", "no such file"),
            (scene.add_video(numbered_arrays()), "source must be a path"),
        ):  # fmt: skip
            with pytest.raises((ParameterError, VideoError), match=words):
                scene.render_to(tmp_path / "out.mp4", 1, audio_from=audio, progress=False)
    assert not (tmp_path / "out.mp4").exists()


def numbered_arrays():
    return [frame.to_ndarray(format="rgb24") for frame in numbered(3)]


# presentation -----------------------------------------------------------------------------------
class Time:
    """A clock that goes only when a caller waits, or on request."""

    def __init__(self):
        self.now = 100.0

    def clock(self):
        return self.now

    def pause(self, seconds):
        assert seconds > 0
        self.now += seconds


def test_presentation_has_the_frames_of_a_file(tmp_path, engine_id):
    time, seen = Time(), []
    with moving(device=None) as scene, gpu.create_surface(32, 24) as surface:
        stats = play(
            scene, surface, 0.8, clock=time.clock, pause=time.pause,
            on_frame=lambda at: seen.append((at, surface.to_array())),
        )  # fmt: skip
        assert not surface.closed
        assert stats["dropped"] == 0
        assert time.now == pytest.approx(100.7)
        asked = []
        render = scene.render
        scene.render = lambda at: asked.append((float(at), render(at))) or asked[-1][1]
        scene.render_to(tmp_path / "out.mp4", 0.8, progress=False)
    assert [at for at, _ in seen] == pytest.approx([n / 10 for n in range(8)])
    assert [at for at, _ in asked] == [at for at, _ in seen]
    for (_, shown), (_, frame) in zip(seen, asked, strict=True):
        assert np.array_equal(shown, np.asarray(frame))
    assert len({shown.tobytes() for _, shown in seen}) == 8


def test_late_frames_are_dropped():
    time, seen = Time(), []

    def slow(at):
        seen.append(round(at * 10))
        time.now += 0.35 if at < 0.55 else 0.0

    with moving() as scene:
        stats = play(scene, None, 1.0, clock=time.clock, pause=time.pause, on_frame=slow)
        assert seen == [0, 3, 7, 8, 9]
        assert stats["dropped"] == scene.frames_dropped == 5


def test_last_frame_is_always_presented():
    time, seen = Time(), []

    def slow(at):
        seen.append(round(at * 10))
        time.now += 5

    with moving() as scene:
        play(scene, None, 1.0, clock=time.clock, pause=time.pause, on_frame=slow)
    assert seen == [0, 9]


def test_static_scene_is_presented_once():
    time = Time()
    with Scene(8, 8, fps=10, device="cpu") as scene, gpu.create_surface(8, 8) as surface:
        scene.add_overlay(color="red")
        player = ScenePlayer(scene, surface, clock=time.clock, pause=time.pause)
        for _ in range(5):
            assert player.step()
        surface.synchronize()
        assert surface.stats["frames"] == 1
        assert (surface.to_array() == [255, 0, 0, 255]).all()
        assert scene.frames_skipped == 4


def test_presentation_in_real_time():
    with moving(fps=100) as scene:
        stats = scene.play(None, 0.1)
        assert stats["frames"] + stats["dropped"] == 10


def test_presentation_loops():
    time, seen = Time(), []
    with moving() as scene, gpu.create_surface(32, 24) as surface:
        player = ScenePlayer(scene, surface, loop=0.3, clock=time.clock, pause=time.pause)
        for _ in range(5):
            player.step()
            seen.append(round(scene.time * 10))
    assert seen == [0, 1, 2, 0, 1]


def test_draw_on_a_surface(engine_id):
    with moving(device=None) as scene, gpu.create_surface(32, 24) as surface:
        for time in (0.0, 0.5, None):
            frame = scene.to(surface, time)
            surface.present()
            assert (surface.to_array() == np.asarray(frame)).all()
        assert scene.time == pytest.approx(0.6)
        assert (surface.to_array()[6, 13] != surface.to_array()[0, 0]).any()


# errors --------------------------------------------------------------------------------
@pytest.mark.parametrize(("call", "words"), [
    (lambda s: s.render_to("x.mp4", -1), "seconds must be a number above 0, got -1"),
    (lambda s: s.render_to("x.mp4", 1, fps="fast"), "fps must be a number above 0"),
    (lambda s: s.render_to("x.mp4", 1, start="now"), "start must be a number of seconds, got"),
    (lambda s: s.render_to("x.mp4", 1, progress=3), "progress must be True, False or a function"),
    (lambda s: s.play(None), "seconds is required if there is no window to close"),
    (lambda s: s.play(None, 0), "seconds must be a number above 0, got 0"),
    (lambda s: s.to("here"), "surface must be a Surface, got 'here'"),
])  # fmt: skip
def test_invalid_arguments(call, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with moving() as scene, pytest.raises(ParameterError, match=words):
        call(scene)
    assert list(tmp_path.iterdir()) == []


def test_odd_sizes_are_padded_where_the_codec_needs_it(tmp_path):
    with Scene(31, 24, background="red", device="cpu") as scene:
        with pytest.warns(MediaNotice, match="is 32x24 instead of 31x24"):
            scene.render_to(tmp_path / "odd.mp4", seconds=0.1, progress=False)
        scene.render_to(tmp_path / "odd.webm", seconds=0.1, progress=False)
    sizes = []
    for name in ("odd.mp4", "odd.webm"):
        with video.open(tmp_path / name) as reader:
            sizes.append((reader.width, reader.height))
            assert np.abs(np.asarray(next(reader))[..., :3] - np.int64([255, 0, 0])).max() <= 6
    assert sizes == [(32, 24), (31, 24)]


def test_transparent_scene(tmp_path):
    with Scene(16, 16, background="#00000000", device="cpu") as scene:
        scene.add_overlay(color="#ff000080", size=(8, 16))
        scene.render_to(tmp_path / "a.mkv", seconds=0.1, progress=False, alpha=True)
        wanted = scene.render(0).numpy()
    with video.open(tmp_path / "a.mkv") as reader:
        assert np.array_equal(np.asarray(next(reader)), wanted)


def test_surface_of_another_size_is_refused():
    with moving() as scene, gpu.create_surface(8, 8) as surface:
        with pytest.raises(ParameterError, match=r"must be 32x24 like the scene, got 8x8\. Call"):
            scene.to(surface)
        with pytest.raises(ParameterError, match="got 8x8"):
            scene.play(surface, 1)


def test_unknown_duration(tmp_path):
    with Scene(8, 8, device="cpu") as scene:
        scene.add_overlay(color="red")
        with pytest.raises(ParameterError, match="a duration is required: seconds=10"):
            scene.render_to(tmp_path / "x.mp4")


def test_closed_scene(tmp_path):
    scene = moving()
    scene.close()
    for call in (lambda: scene.render_to(tmp_path / "x.mp4", 1), lambda: scene.play(None, 1)):
        with pytest.raises(FreedError, match="the scene is closed"):
            call()
