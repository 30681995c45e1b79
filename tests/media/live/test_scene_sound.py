"""Live sound in scenes."""

from __future__ import annotations

import json
import sys
import threading
import types
from fractions import Fraction
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import dala
from dala.errors import AudioError, AudioNotFound, FreedError, ParameterError
from dala.media import Scene, audio, load_scene, microphone, video
from dala.media.audio.arriving import LiveSound, sound_of_reader
from dala.media.notices import MediaNotice, collected
from dala.media.scene import scene_to_dict
from dala.media.scene.sound.device import open_player
from dala.media.scene.sound.voices import SceneSound
from tests.media.live.heard import RATE, both, clicks, frame, generated, in_sync, play
from tests.media.live.receivers import av, free_port, until


@pytest.fixture(autouse=True)
def on_cpu():
    with dala.device("cpu"):
        yield


def simulated(scene, sound, seconds=3.0, **given):
    """The sound of a scene that runs live, at simulated times; samples, and where they end."""
    parts, at = [], 0
    with SceneSound(scene, begin=lambda: 1000.0) as mixed:
        mixed.arrived(0, 480)
        at = 480
        parts.append(np.zeros((480, 2), np.float32))
        for now in play(sound, seconds, rate=RATE, late=0, **given):
            made = mixed.arrived(at, round((now - 1000) * RATE) - at)
            parts.append(made)
            at += len(made)
    return np.concatenate(parts)


def test_a_microphone_in_a_scene_is_mixed_in_time():
    sound = LiveSound("a microphone")
    with Scene(32, 16, fps=10) as scene:
        music = audio.tone(100, 4, amplitude=0.1)
        scene.add_audio(music, start=0)
        voice = scene.add_audio(
            sound, volume=0.5, start=0.5, end=2.5, effects=[("eq", {"bass": 0})]
        )
        assert repr(voice) == "<AudioNode audio-2>"
        made = simulated(scene, sound)
    low = music.samples[: len(made), 0]
    assert len(made) / RATE == pytest.approx(3.0, abs=0.2)
    rest = made[:, 0] - low
    # Not before its start at 0.5 s nor after its end at 2.5 s.
    assert clicks(rest[2000:], RATE, 0.1) == pytest.approx(
        [1 - 2000 / RATE, 2 - 2000 / RATE], abs=0.003
    )


def test_music_is_ducked_under_a_microphone():
    sound = LiveSound("a microphone")
    with Scene(32, 16, fps=10) as scene:
        music = scene.add_audio(audio.tone(100, 10, amplitude=0.1))
        voice = scene.add_audio(sound, volume=1.0)
        scene.duck(music, under=voice, amount=20)
        parts, at = [], 0
        with SceneSound(scene, begin=lambda: 0.0) as mixed:
            for number in range(150):
                tone = 0.3 * np.sin(2 * np.pi * 3000 * np.arange(960) / RATE)
                block = (tone if number >= 75 else tone * 0).astype(np.float32)
                sound.heard(frame(block, RATE), number / 50, number / 50 + 0.02)
                made = mixed.arrived(at, (number + 1) * 960 - at)
                parts.append(made)
                at += len(made)
    made = np.concatenate(parts)[:, 0].astype(np.float64)

    def level(part):
        at = 2 * np.pi * 100 * np.arange(len(part)) / RATE
        return 2 / len(part) * np.hypot(part @ np.sin(at), part @ np.cos(at))

    assert level(made[48000:67200]) == pytest.approx(0.1, rel=0.05)
    assert level(made[105600:124800]) < 0.02


def test_live_sound_in_groups():
    sound = LiveSound("a microphone")
    with Scene(32, 16, fps=10) as scene:
        group = scene.add_group(start=0.25, volume=0.5)
        group.add_audio(sound)
        slow = scene.add_group(speed=0.5)
        slow.add_audio(sound, id="voice")  # has another time than ours, so it is silent
        with collected() as notices:
            made = simulated(scene, sound)[:, 0]
    (said,) = notices
    assert "runs at another speed, so live sound in it is silent: voice. Add it" in said
    assert clicks(made[4800:], RATE, 0.1) == pytest.approx([0.9, 1.9], abs=0.003)
    assert made.max() == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    "seconds",
    [1, pytest.param(2.6, marks=pytest.mark.long)],  # in sync, perhaps after several attempts
)
def test_a_scene_with_a_live_video_and_a_microphone(tmp_path, seconds):
    with (
        video.open(generated()) as source,
        microphone.open("test") as voice,
        Scene(64, 48, fps=20) as scene,
    ):
        scene.add_video(source)
        scene.add_audio(voice, volume=0.05)

        def sent() -> bool:
            scene.live(tmp_path, seconds=seconds)
            return seconds < 2 or in_sync(tmp_path / "live.m3u8")

        until(sent, "a recording in sync")
        assert sound_of_reader(source) is source.listener
    pictures, heard = both(tmp_path / "live.m3u8")
    assert pictures > 0
    assert 0 < heard < seconds + 1


def test_files_have_no_live_sound(tmp_path):
    """Rendering a file does not wait for what arrives."""
    with microphone.open("test") as voice, Scene(32, 16, fps=10) as scene:
        scene.add_audio(voice, id="voice")
        with pytest.warns(MediaNotice, match="live sound is not rendered: voice. Scene.live"):
            scene.render_to(tmp_path / "a.mp4", 0.3)
    with av.open(str(tmp_path / "a.mp4")) as made:
        assert not made.streams.audio


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """The address of a server with a video of half a second, which has a tone."""
    folder = tmp_path_factory.mktemp("host")
    audio.tone(1000, 0.5, amplitude=0.25, layout="stereo").save(folder / "tone.flac")
    pictures = [np.full((16, 32, 3), 20 * n, np.uint8) for n in range(5)]
    with video.write(folder / "clip.mkv", fps=10, audio_from=folder / "tone.flac") as sink:
        for picture in pictures:
            sink.write(picture)
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


@pytest.mark.parametrize("kind", ["video", "audio"])
def test_urls_in_scenes_are_heard(host, kind, tmp_path):
    expected = audio.tone(1000, 0.5, amplitude=0.25).samples[:, 0]
    with Scene(32, 16, fps=10) as scene:
        if kind == "video":
            scene.add_video(f"{host}/clip.mkv", volume=0.5)
        else:
            node = scene.add_audio(f"{host}/tone.flac", volume=0.5)
            assert node.length() == Fraction(1, 2)
            assert scene_to_dict(scene)["nodes"][0]["source"] == f"{host}/tone.flac"
        scene.render_to(tmp_path / "a.mkv", 0.5)
        assert not scene.errors
    with audio.open(tmp_path / "a.mkv") as reader:
        made = reader.read().samples[:, 0]
    assert np.abs(made[:24000] - 0.5 * expected).max() < 1e-3


def test_urls_without_an_answer(host):
    with Scene(32, 16, fps=10) as scene:
        with pytest.raises(AudioError, match=r"add_audio: cannot open .*404"):
            scene.add_audio(f"{host}/none.flac")
        with pytest.raises(AudioError, match="add_audio: cannot open"):
            scene.add_audio(f"rtsp://127.0.0.1:{free_port()}/none")


def test_playing_leaves_live_sound_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "sounddevice", types.SimpleNamespace())
    with microphone.open("test") as voice, Scene(32, 16, fps=10) as scene:
        scene.add_audio(voice)
        with pytest.warns(MediaNotice, match="live sound is not played: audio-1"):
            assert open_player(scene, Fraction(0)) is None


def test_scene_files_name_microphones(tmp_path):
    with Scene(32, 16, fps=10) as scene:
        node = scene.add_audio("microphone://test", volume=0.5)
        assert isinstance(node.sound, LiveSound)
        data = scene_to_dict(scene)
        assert data["nodes"][0]["source"] == "microphone://test"
        sound = node.sound
        scene.remove_node(node)
        assert sound.closed
        with pytest.raises(ParameterError, match="loop, speed and trim do not apply to live sound"):
            scene.add_audio("microphone://test", loop=True)
        with pytest.raises(AudioNotFound, match=r"add_audio: no microphone 'nothing like it'"):
            scene.add_audio("microphone://nothing like it")
        with microphone.open("test") as voice:
            scene.add_audio(voice)
            with pytest.raises(dala.DalaError, match="an open microphone"):
                scene_to_dict(scene)
        with pytest.raises(FreedError, match="is closed"):
            scene.add_audio(voice)
    (tmp_path / "scene.json").write_text(json.dumps(data))
    with load_scene(tmp_path / "scene.json") as again:
        assert isinstance(next(iter(again.nodes.values())).sound, LiveSound)
    assert not [t for t in threading.enumerate() if t.name == "dala microphone"]
