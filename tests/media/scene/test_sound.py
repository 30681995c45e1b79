"""Sound in scenes: mixed to the sample, animated, ducked, measured, written and read again."""

import json
import sys
import types
from fractions import Fraction

import av
import numpy as np
import pytest

import dala
from dala.media import Scene, audio, load_scene, video
from dala.media.audio import Audio
from dala.media.notices import MediaNotice
from dala.media.scene import scene_to_dict
from dala.media.scene.sound.device import SoundPlayer
from dala.media.scene.sound.voices import SceneSound

RATE = 48000


@pytest.fixture
def scene():
    with Scene(32, 16, fps=10, device="cpu") as made:
        yield made


def noise(seconds, channels="stereo", seed=0, amplitude=0.2):
    return audio.noise(seconds, amplitude=amplitude, seed=seed, layout=channels)


def heard(scene, seconds, sizes=(4096,)):
    """The sound of a scene, rendered in blocks of given sizes."""
    total, parts, at, number = round(seconds * RATE), [], 0, 0
    with SceneSound(scene) as sound:
        while at < total:
            count = min(sizes[number % len(sizes)], total - at)
            parts.append(sound.render(at, count))
            at, number = at + count, number + 1
    return np.concatenate(parts)


def level_at(samples, frequency):
    at = 2 * np.pi * frequency * np.arange(len(samples)) / RATE
    x = samples.astype(np.float64)
    return 2 / len(x) * float(np.hypot(x @ np.sin(at), x @ np.cos(at)))


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """Videos of one second with a tone each, and a sound file."""
    folder = tmp_path_factory.mktemp("clips")
    pictures = [np.full((16, 32, 3), n * 20, np.uint8) for n in range(10)]
    for name, frequency in (("low", 500), ("high", 3000)):
        audio.tone(frequency, 1, amplitude=0.25, layout="stereo").save(folder / f"{name}.m4a")
        with video.write(folder / f"{name}.mp4", fps=10, audio_from=folder / f"{name}.m4a") as sink:
            for picture in pictures:
                sink.write(picture)
    video.write(folder / "mute.mp4", pictures, fps=10)
    noise(1, seed=9).save(folder / "noise.flac")
    return folder


# mixing -------------------------------------------------------------------------------------------
def test_sounds_are_mixed_to_the_sample(scene):
    a, b = noise(0.5, seed=1), noise(0.3, "mono", seed=2)
    scene.add_audio(a, start=Fraction(1, 7), volume=0.5)
    scene.add_audio(b, start=0.2, trim=(0.1, 0.3), fade_in=0.05, fade_out=0.1)
    expected = np.zeros((48000, 2), np.float32)
    first = round(RATE / 7)
    expected[first : first + len(a)] += a.samples * np.float32(0.5)
    part = b.samples[4800:14400]
    into = np.minimum(np.arange(9600) / 2400, 1).astype(np.float32)
    out = np.minimum((9600 - np.arange(9600)) / 4800, 1).astype(np.float32)
    expected[9600:19200] += part * (into * out)[:, None]
    found = heard(scene, 1, (1, 4097, 1000, 333))
    assert np.allclose(found, expected, atol=1e-7)
    assert np.array_equal(found, heard(scene, 1))
    assert scene.render(0.5).shape == (16, 32, 4)


def test_an_audio_begins_at_its_own_time(scene):
    node = scene.add_audio(noise(0.1).at(0.5))
    assert node.start == Fraction(1, 2)
    found = heard(scene, 0.7)
    assert not found[:24000].any()
    assert np.array_equal(found[24000:28800], noise(0.1).samples)


def test_loops_and_ends(scene):
    tone = noise(0.1, seed=3)
    scene.add_audio(tone, loop=True, end=0.35)
    found = heard(scene, 0.5)
    assert np.array_equal(found[:16800], np.tile(tone.samples, (4, 1))[:16800])
    assert not found[16800:].any()


def test_volume_and_pan_are_animated(scene):
    tone = noise(1, "mono", seed=4)
    node = scene.add_audio(tone)
    scene.add_animation(node, "volume", 0, 1, duration=1)
    scene.add_animation(node, "pan", -1, 1, duration=1)
    found = heard(scene, 1, (4096, 77))
    at = np.arange(RATE) / RATE
    expected = tone.gain(factor=at).pan(2 * at - 1).samples * np.float32(2**0.5)
    assert np.allclose(found, expected, atol=2e-4)
    with pytest.raises(dala.ParameterError, match="volume"):
        node.volume = -1
    with pytest.raises(dala.ParameterError, match="one that can be animated"):
        scene.add_animation(node, "fade_in", 0, 1, duration=1)


def test_setting_the_volume_is_heard_and_draws_nothing(scene):
    node = scene.add_audio(noise(2, seed=5))
    scene.render(0)
    with SceneSound(scene) as sound:
        before = sound.render(0, 4096)
        node.volume = 0.5
        # The limiter looks 5 ms ahead, so the change is heard a block later.
        sound.render(4096, 4096)
        after = sound.render(8192, 4096)
    expected = noise(2, seed=5).samples
    assert np.array_equal(before, expected[:4096])
    assert np.allclose(after, expected[8192:12288] * 0.5, atol=1e-7)
    skipped = scene.frames_skipped
    scene.render(0.1)
    assert scene.frames_skipped == skipped + 1


def test_speed_keeps_the_pitch_and_backwards_runs_backwards(scene, clips):
    scene.add_audio(audio.tone(1000, 1, amplitude=0.5), speed=2)
    fast = heard(scene, 0.6)
    assert level_at(fast[4800:19200, 0], 1000) == pytest.approx(0.5, abs=0.05)
    assert np.abs(fast[24500:]).max() == 0
    with Scene(8, 8, device="cpu") as other:
        other.add_audio(clips / "noise.flac", speed=-1)
        found = heard(other, 1)
        assert np.allclose(found, noise(1, seed=9).samples[::-1], atol=1e-6)
    with Scene(8, 8, device="cpu") as other:
        other.add_audio(audio.tone(1000, 1, amplitude=0.5), speed=[(0, 1), (0.5, 1), (0.5, 2)])
        found = heard(other, 0.74)[:, 0]
        assert level_at(found[2400:21600], 1000) == pytest.approx(0.5, abs=0.02)
        assert level_at(found[26400:33600], 2000) == pytest.approx(0.5, abs=0.02)


def test_groups_and_inner_scenes_have_their_own_time(scene):
    tone = noise(0.2, seed=6)
    with Scene(8, 8, device="cpu") as inner:
        inner.add_audio(tone, start=0.1)
        scene.add_scene(inner, start=0.2)
        group = scene.add_group(start=0.5)
        group.add_audio(tone, start=0.1)
        found = heard(scene, 1)
    expected = np.zeros((48000, 2), np.float32)
    expected[14400:24000] += tone.samples
    expected[28800:38400] += tone.samples
    assert np.array_equal(found, expected)


def test_the_volume_of_groups(scene):
    """Groups with and without a time of their own, inside each other, and inner scenes."""
    sound = noise(1)
    samples = sound.samples
    scene.add_audio(sound)
    group = scene.add_group(volume=0.5)
    group.add_audio(sound, volume=0.5)
    late = group.add_group(start=0.25, volume=0.5)
    late.add_audio(sound)
    with Scene(32, 16, device="cpu") as inner:
        inner.add_audio(sound)
        node = scene.add_scene(inner, volume=0.25, start=0.5)
        scene.render()
        drawn = scene.frame_count - scene.frames_skipped
        expected = samples * 1.25
        expected[12000:] += 0.25 * samples[:36000]
        expected[24000:] += 0.25 * samples[:24000]
        assert np.abs(heard(scene, 1, (1000, 333)) - expected).max() < 1e-6
        group.volume = node.volume = late.volume = 0.0
        scene.render()
        assert scene.frame_count - scene.frames_skipped == drawn
        assert np.abs(heard(scene, 1) - samples).max() < 1e-6


def test_the_volume_of_a_group_is_animated_and_saved(scene, tmp_path):
    sound = audio.tone(500, 1, amplitude=0.5)
    sound.save(tmp_path / "tone.flac")
    group = scene.add_group(volume=0.75)
    group.add_audio(tmp_path / "tone.flac", volume=0.5)
    assert scene_to_dict(scene)["nodes"][0]["volume"] == 0.75
    scene.add_animation(group, "volume", 0, 1, duration=1)
    found = heard(scene, 1)[:, 0]
    ramp = np.arange(RATE) / RATE
    assert np.abs(found - sound.samples[:, 0] * 0.5 * ramp).max() < 2e-3
    with pytest.raises(dala.ParameterError, match="volume must be"):
        scene.add_group(volume=-1)


def test_effects(scene):
    tone = noise(0.5, seed=7)
    scene.add_audio(tone, effects=[("eq", {"bass": 6}), ("compressor", {"threshold": -30})])
    whole = tone.eq(bass=6).compressor(threshold=-30)
    assert np.allclose(heard(scene, 0.5), whole.samples, atol=1e-6)


def test_the_sum_is_limited(scene):
    for seed in range(12):
        scene.add_audio(noise(0.2, seed=seed, amplitude=0.9))
    assert 0.9 < np.abs(heard(scene, 0.2)).max() <= 1


# ducking and levels -------------------------------------------------------------------------------
def test_music_is_ducked_by_the_amount_while_the_voice_is_heard(scene):
    music = scene.add_audio(audio.tone(200, 4, amplitude=0.3, layout="stereo"))
    voice = scene.add_audio(audio.tone(3000, 1, amplitude=0.1, layout="stereo"), start=1)
    scene.duck(music, under=voice, amount=12)
    found = heard(scene, 4)
    quiet = level_at(found[int(1.5 * RATE) : int(1.9 * RATE), 0], 200)
    assert 20 * np.log10(quiet / 0.3) == pytest.approx(-12, abs=0.3)
    assert np.array_equal(
        found[: RATE - 1], audio.tone(200, 4, amplitude=0.3, layout="stereo").samples[: RATE - 1]
    )
    late = level_at(found[int(3.5 * RATE) : int(3.9 * RATE), 0], 200)
    assert 20 * np.log10(late / 0.3) == pytest.approx(0, abs=0.2)
    voiced = level_at(found[int(1.5 * RATE) : int(1.9 * RATE), 0], 3000)
    assert voiced == pytest.approx(0.1, abs=0.002)
    scene.remove_node(voice)
    assert scene.ducks == []


def test_the_level_follows_its_band_exactly_in_time(scene):
    beats = audio.silence(2, layout="mono").numpy()
    for second in (0.5, 1.0, 1.5):
        at = round(second * RATE)
        beats[at : at + 4800] += audio.tone(80, 0.1, amplitude=0.5).samples
    beats += audio.tone(5000, 2, amplitude=0.3).samples
    node = scene.add_audio(Audio(beats, RATE), start=1, volume=0.01)
    level = scene.level(node, band=(20, 200), release=0)
    for second in (0.5, 1.0, 1.5):
        assert level.at(1 + second + 0.05) > 0.9
        assert level.at(1 + second - 0.05) < 0.05
        assert level.at(1 + second) == pytest.approx(0.5, abs=0.25)
    assert level.at(0.2) == level.at(9) == 0
    high = scene.level(node, band=(4000, 6000), normalize=False)
    assert high.at(1.3) == pytest.approx(0.3, abs=0.01)
    slow = scene.level(node, band=(20, 200), release=0.2)
    assert slow.at(1.85) == pytest.approx(np.exp(-0.25 / 0.2), abs=0.1)
    again = scene.level(node, band=(20, 200), release=0)
    assert np.array_equal(level.values(), again.values())


def test_a_property_follows_a_level(scene):
    node = scene.add_audio(audio.tone(100, 1).fade_in(1))
    dot = scene.add_overlay(color="red", size=(4, 4))
    level = scene.level(node, band=(20, 200), release=0)
    scene.add_animation(dot, "scale", 1, 3, by=level)
    scene.add_animation(dot, "color", "black", "white", by=level, easing="ease-in")
    for time in (0.9, 0.2, 0.6):
        scene.render(time)
        assert dot.scale == pytest.approx(1 + 2 * level.at(time), abs=1e-6)
    assert 1.3 < dot.scale < 2.6
    with pytest.raises(dala.ParameterError, match="Leave out duration"):
        scene.add_animation(dot, "scale", 1, 2, duration=1, by=level)
    with pytest.raises(dala.ParameterError, match="by must be a level"):
        scene.add_animation(dot, "scale", 1, 2, by=3)


# videos and files ---------------------------------------------------------------------------------
def written(path):
    with audio.open(path) as reader:
        return reader.codec, reader.read()


@pytest.mark.parametrize(
    ("suffix", "codec"), [("mp4", "aac"), ("mkv", "flac"), ("webm", "opus"), ("mov", "aac")]
)
def test_videos_bring_their_sound(scene, clips, tmp_path, suffix, codec):
    scene.add_video(clips / "low.mp4", volume=0.5)
    scene.add_video(clips / "high.mp4", start=0.5)
    scene.add_video(clips / "mute.mp4")
    path = tmp_path / f"out.{suffix}"
    scene.render_to(path, progress=False)
    assert "mixed at 48000 Hz from video-1, video-2" in scene.explain()
    found, sound = written(path)
    assert (found, float(sound.duration)) == (codec, 1.5)
    assert level_at(sound[0.1:0.4].samples[:, 0], 500) == pytest.approx(0.125, abs=0.01)
    assert level_at(sound[0.1:0.4].samples[:, 0], 3000) < 0.005
    assert level_at(sound[1.1:1.4].samples[:, 0], 3000) == pytest.approx(0.25, abs=0.02)
    assert level_at(sound[1.1:1.4].samples[:, 0], 500) < 0.005
    quiet = np.abs(np.diff(sound[0.4:0.6].samples[:, 0], 2))  # where the second tone begins
    assert 0.09 < np.argmax(quiet > 0.02) / RATE < 0.11


def test_lossless_files_have_the_mix_to_the_sample(scene, tmp_path):
    tone = noise(0.73, seed=8)
    scene.add_audio(tone, start=0.2)
    scene.duration = 1
    scene.render_to(tmp_path / "a.mkv", progress=False)
    _, found = written(tmp_path / "a.mkv")
    assert len(found) == RATE
    assert np.abs(found.samples[9600 : 9600 + len(tone)] - tone.samples).max() < 2e-7
    scene.render_to(tmp_path / "b.mkv", 0.5, start=0.3, progress=False)
    _, found = written(tmp_path / "b.mkv")
    assert np.abs(found.samples - tone.samples[4800:28800]).max() < 2e-7


def test_one_video_as_it_is_keeps_its_packets(scene, clips, tmp_path):
    scene.add_video(clips / "low.mp4")
    scene.render_to(tmp_path / "out.mp4", progress=False)
    assert "copied from 'video-1' without a change" in scene.explain()
    packets = []
    for path in (clips / "low.mp4", tmp_path / "out.mp4"):
        with av.open(str(path)) as container:
            packets.append([bytes(p) for p in container.demux(audio=0) if p.size])
    assert packets[0] == packets[1]
    scene["video-1"].volume = 0.5
    scene.render_to(tmp_path / "half.mp4", progress=False)
    assert "mixed" in scene.explain()


def test_sound_can_be_left_out(scene, clips, tmp_path):
    node = scene.add_video(clips / "low.mp4")
    scene.render_to(tmp_path / "none.mp4", progress=False, audio=False)
    with pytest.raises(dala.AudioError, match="has no sound"):
        audio.open(tmp_path / "none.mp4")
    scene.remove_node(node)
    scene.add_video(clips / "low.mp4", audio=False)
    scene.add_video(clips / "mute.mp4")
    scene.render_to(tmp_path / "none.mp4", progress=False)
    with pytest.raises(dala.AudioError, match="has no sound"):
        audio.open(tmp_path / "none.mp4")
    scene.add_audio(clips / "noise.flac")
    with pytest.warns(MediaNotice, match="gif has no sound"):
        scene.render_to(tmp_path / "a.gif", 0.2, progress=False)
    scene.render_to(tmp_path / "b.mkv", 0.5, progress=False, audio_codec="opus")
    assert written(tmp_path / "b.mkv")[0] == "opus"
    with pytest.raises(dala.ParameterError, match="audio_codec must be one of"):
        scene.render_to(tmp_path / "c.mp4", 0.5, progress=False, audio_codec="ogg")


def test_a_broken_file_is_reported_and_the_rest_is_heard(scene, clips, tmp_path):
    data = (clips / "noise.flac").read_bytes()
    broken = tmp_path / "gone.flac"
    broken.write_bytes(data)
    scene.add_audio(broken, id="gone")
    scene.add_audio(noise(0.5, seed=1))
    broken.unlink()
    found = heard(scene, 0.5)
    assert np.array_equal(found, noise(0.5, seed=1).samples)
    assert "no such file" in str(scene.errors["gone"])


# scene files --------------------------------------------------------------------------------------
def test_scene_files_hold_sound(clips, tmp_path):
    with Scene(32, 16, fps=10, device="cpu") as scene:
        music = scene.add_audio(
            clips / "noise.flac", id="music", start=0.1, trim=(0.1, 0.9), loop=2, volume=0.4,
            pan=-0.5, fade_in=0.1, fade_out=0.2, curve="equal_power",
            effects=[("eq", {"bands": [(1000, 3, 2)], "bass": 2}), ("limiter", {})],
        )  # fmt: skip
        voice = scene.add_audio(clips / "low.m4a", start=0.5)
        scene.add_video(clips / "high.mp4", audio=False, volume=0.5)
        dot = scene.add_overlay(color="red", size=(4, 4))
        scene.duck(music, under=voice, amount=9, release=0.2)
        scene.add_animation(music, "volume", 0.4, 0.1, duration=1)
        scene.add_animation(dot, "scale", 1, 2, by=scene.level(music, band=(20, 200)))
        scene.save(tmp_path / "scene.json")
        expected = heard(scene, 1)
        values = scene_to_dict(scene)
    written = json.loads((tmp_path / "scene.json").read_text())
    assert written["nodes"][0]["effects"][0] == ["eq", {"bands": [[1000, 3, 2]], "bass": 2}]
    assert written["ducks"] == [{"music": "music", "under": "audio-2", "amount": 9, "release": 0.2}]
    with load_scene(tmp_path / "scene.json", "cpu") as again:
        assert np.array_equal(heard(again, 1), expected)
        again.save(tmp_path / "again.json")
        assert json.loads((tmp_path / "again.json").read_text()) == written
    assert values["nodes"][2]["audio"] is False
    with load_scene(values, "cpu") as again:
        assert scene_to_dict(again) == values


def test_mistakes_in_scene_files(clips):
    node = {"type": "audio", "id": "a", "source": str(clips / "noise.flac")}
    start = {"dala": 2, "width": 8, "height": 8}
    for nodes, more, text in (
        ([node | {"volume": -1}], {}, "nodes[0].volume"),
        ([node | {"effects": [["ech", {}]]}], {}, "Did you mean 'echo'"),
        ([node | {"position": [1, 2]}], {}, "position"),
        ([node], {"ducks": [{"music": "a", "under": "b"}]}, "there is no node with the id 'b'"),
        ([node], {"ducks": [{"music": "a", "under": "a"}]}, "under itself"),
        ([node | {"source": "none.wav"}], {}, "does not exist"),
    ):
        with pytest.raises(dala.SceneFileError) as caught:
            load_scene(start | {"nodes": nodes} | more, "cpu")
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda s, c: s.add_audio(3), "source must be an Audio, the path of a file"),
        (lambda s, c: s.add_audio("gopher://host/a"), "source must be a path or a URL of"),
        (lambda s, c: s.add_audio(c / "none.wav"), "add_audio: no such file"),
        (lambda s, c: s.add_audio(c / "mute.mp4"), "has no sound"),
        (lambda s, c: s.add_audio(c / "noise.flac", track=1), "track must be 0, as there is one"),
        (lambda s, c: s.add_audio(c / "noise.flac", trim=(2, 1)), "trim must be"),
        (lambda s, c: s.add_audio(c / "noise.flac", position=(1, 2)), "no property 'position'"),
        (lambda s, c: s.add_audio(c / "noise.flac", volum=1), "Did you mean 'volume'"),
        (lambda s, c: s.duck("nope", under="x"), "there is no node 'nope'"),
        (lambda s, c: s.duck(s.add_overlay(color="red"), under="x"), "music must be an audio node"),
        (lambda s, c: s.level(s.add_audio(c / "noise.flac"), band=(200, 20)), "band must be"),
        (lambda s, c: s.add_video(c / "low.mp4", audio="yes"), "audio must be True or False"),
    ],
)
def test_mistakes(scene, clips, call, text):
    with pytest.raises(dala.DalaError, match=text):
        call(scene, clips)
    assert all(node.type != "audio" or node.length() for node in scene.nodes.values())


# playing ------------------------------------------------------------------------------------------
def test_play_without_a_device_says_so_once(scene, monkeypatch):
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    scene.add_audio(noise(1))
    with pytest.warns(MediaNotice, match="sounddevice is not installed"):
        scene.play(None, seconds=0.1)
    scene.play(None, seconds=0.1, audio=False)


def test_what_the_device_gets_is_the_mix(scene):
    scene.add_audio(noise(1, seed=2))
    streams = []

    class Stream:
        """Stands for a sound device: the test asks for blocks in its place."""

        def __init__(self, *, samplerate, channels, dtype, callback):
            assert (samplerate, channels, dtype) == (RATE, 2, "float32")
            self.callback = callback
            streams.append(self)

        def start(self):
            self.started = True

        def close(self):
            self.closed = True

    player = SoundPlayer(SceneSound(scene), 4800, types.SimpleNamespace(OutputStream=Stream))
    player.begin()
    parts = []
    for count in (512, 100, 3000, 1024):
        out = np.empty((count, 2), np.float32)
        streams[0].callback(out, count, None, None)
        parts.append(out)
    assert np.array_equal(np.concatenate(parts), noise(1, seed=2).samples[4800 : 4800 + 4636])
    assert 4636 / RATE <= player.clock() <= 4636 / RATE + 0.1
    assert player.missed == 0
    player.close()
    assert streams[0].closed


def test_sound_of_a_timeline_cross_fades_with_its_transition(scene, clips, tmp_path):
    line = scene.add_timeline()
    line.add_video(clips / "low.mp4")
    line.add_video(clips / "high.mp4", transition=("dissolve", 0.5))
    found = heard(scene, 1.5)[:, 0]
    for first, low, high in ((0.2, 0.25, 0), (0.7, 0.25 * 2**-0.5, 0.25 * 2**-0.5), (1.2, 0, 0.25)):
        part = found[round(first * RATE) : round((first + 0.1) * RATE)]
        assert level_at(part, 500) == pytest.approx(low, abs=0.015)
        assert level_at(part, 3000) == pytest.approx(high, abs=0.015)
