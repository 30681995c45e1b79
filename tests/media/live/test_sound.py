"""Sound of live sources and microphones: placed by our clock, never drifting from the pictures."""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
import types
from fractions import Fraction
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import dala
from dala.errors import AudioError, AudioNotFound, FreedError, ParameterError
from dala.media import Scene, audio, camera, live, load_scene, microphone, video
from dala.media.audio.arriving import PATIENCE, LiveSound, sound_of_reader
from dala.media.microphone.capture import SoundCapture
from dala.media.notices import MediaNotice, collected
from dala.media.scene import scene_to_dict
from dala.media.scene.sound.device import open_player
from dala.media.scene.sound.voices import SceneSound
from dala.media.video.decoding import devices
from dala.media.video.decoding.devices import Microphone, linux_microphones
from dala.media.video.source import VideoSource
from tests.media.live.receivers import av, free_port, until

RATE = 48000


@pytest.fixture(autouse=True)
def on_cpu():
    with dala.device("cpu"):
        yield


def frame(samples: np.ndarray, rate: int) -> av.AudioFrame:
    """A decoded frame of stereo or mono samples."""
    flat = np.ascontiguousarray(samples, np.float32).reshape(1, -1)
    layout = "mono" if samples.ndim == 1 else "stereo"
    made = av.AudioFrame.from_ndarray(flat, format="flt", layout=layout)
    made.sample_rate = rate
    return made


def clicks(samples: np.ndarray, rate: int, level: float = 0.3) -> list[float]:
    """The times of clicks in seconds: of the largest sample of each."""
    found: list[float] = []
    for at in np.flatnonzero(np.abs(samples) > level):
        if not found or at / rate - found[-1] > 0.1:
            found.append(at / rate)
    return found


def play(sound: LiveSound, seconds: float, *, rate=16000, fast=0.0, jitter=0.0, late=0.05):
    """Let a source give clicks, one a second by its own clock, to a voice at simulated times.

    The source's clock is fast by a share; blocks arrive ``late`` seconds after their end, and up to
    ``jitter`` later. Yields our time after each block.
    """
    rng = np.random.default_rng(0)
    block = rate // 50
    for number in range(round(seconds * 50)):
        samples = np.zeros(block, np.float32)
        if number % 50 == 0:
            samples[0] = 1.0
        own = number * block / rate  # by the source's clock
        ours = 1000.0 + own / (1 + fast)
        arrival = ours + block / rate + late + rng.uniform(0, jitter)
        sound.heard(frame(samples, rate), 77.0 + own, arrival)
        yield arrival


# one clock ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("fast", [-0.001, 0.0, 0.0005])
def test_a_clock_that_is_fast_or_slow_never_drifts(fast):
    """Half a minute with ten times the drift that devices have: within 5 ms throughout."""
    sound = LiveSound("a device")
    voice = sound.voice(lambda: 1000.0, 8000)
    parts, at = [], 0
    for now in play(sound, 30, fast=fast, jitter=0.01, rate=8000):
        parts.append(voice.arrived(at, round((now - 1000) * 8000) - at))
        at += len(parts[-1])
    made = np.concatenate(parts)[:, 0]
    found = np.array(clicks(made, 8000))
    expected = np.arange(len(found)) / (1 + fast)
    assert len(found) >= 29
    # Blocks are 50 ms late, and up to 10 ms more: the time of arrival is all that is known.
    assert np.abs(found - expected - 0.055).max() < 0.02
    assert np.ptp(found[10:] - expected[10:]) < 0.005


@pytest.mark.long
def test_an_hour_never_drifts():
    for fast in (-0.0002, 0.0002):
        sound = LiveSound("a device")
        voice = sound.voice(lambda: 1000.0, 8000)
        at, worst = 0, 0.0
        for now in play(sound, 3600, fast=fast, jitter=0.01, rate=8000):
            made = voice.arrived(at, round((now - 1000) * 8000) - at)[:, 0]
            for click in np.flatnonzero(made > 0.3):
                place = (at + click) / 8000 * (1 + fast)
                worst = max(worst, abs(place - 0.055 - round(place - 0.055)))
            at += len(made)
        assert at / 8000 == pytest.approx(3600, abs=1.5)
        assert worst < 0.02


def test_sound_goes_with_the_pictures_of_its_source():
    """Pictures that take 0.2 s from capture to here have their sound 0.2 s later, too."""
    sound = LiveSound("a camera", pictures=True)
    voice = sound.voice(lambda: 1000.0)
    for number, _ in enumerate(play(sound, 2, late=0.01)):
        own = 77 + number / 50
        sound.seen(own, 1000 + own - 77 + 0.2)
    found = clicks(voice.render(0, 2 * RATE)[:, 0], RATE)
    # The first blocks came before any picture, and are dropped.
    assert found == pytest.approx([1.2], abs=0.002)


def test_what_a_source_has_gathered_before_does_not_shift_its_sound():
    """A stream gives the second that it has gathered at once, and is in time from then on."""
    sound = LiveSound("a stream", pictures=True)
    voice = sound.voice(lambda: 1000.0, 8000)
    for number in range(200):
        own = number / 50  # both tracks, one after another, as in a container
        arrival = 1000 + max(own + 0.05, 1.0)
        sound.seen(77 + own, arrival)
        samples = np.zeros(160, np.float32)
        samples[0] = float(number % 50 == 0)
        sound.heard(frame(samples, 8000), 77 + own, arrival)
    found = clicks(voice.render(0, 4 * 8000)[:, 0], 8000)
    assert found == pytest.approx([2.05, 3.05], abs=0.005)


def test_silence_in_place_of_what_does_not_arrive():
    sound = LiveSound("a device")
    voice = sound.voice(lambda: 1000.0, 8000)
    assert len(voice.arrived(0, 800)) == 0  # it may still arrive
    waited = voice.arrived(0, 8000)
    assert len(waited) == 8000 - PATIENCE * 8000
    assert not waited.any()
    list(play(sound, 1, rate=8000, late=0))
    assert voice.ready(80000) == 80000 - PATIENCE * 8000
    made = voice.render(0, 8000)
    assert clicks(made[:, 0], 8000) == pytest.approx([0.0], abs=0.001)
    # A source that is lost for a minute continues where its time is, in little memory.
    samples = np.full(800, 0.5, np.float32)
    for number in range(10):
        at = 61 + number / 10
        sound.heard(frame(samples, 8000), 500.0 + number / 10, 1000 + at + 0.1)
    made = voice.render(8000 * 60, 2 * 8000)[:, 0]
    assert np.flatnonzero(made > 0.4)[0] == pytest.approx(8000, abs=80)
    assert not made[:7900].any()


def test_rates_layouts_and_bad_samples():
    for rate, channels in ((8000, 1), (44100, 2), (96000, 2)):
        sound = LiveSound("a device")
        voice = sound.voice(lambda: 0.0)
        wave = 0.5 * np.sin(2 * np.pi * 440 * np.arange(rate) / rate)
        samples = wave if channels == 1 else np.repeat(wave[:, None], 2, 1)
        for at in range(0, rate, rate // 10):
            part = samples[at : at + rate // 10].copy()
            part[0] = np.nan  # is silence
            sound.heard(frame(part, rate), at / rate, at / rate + 0.1)
        made = voice.render(0, RATE)
        middle = made[4800:43200, 0]
        assert np.abs(np.fft.rfft(middle)).argmax() == pytest.approx(440 * 0.8, abs=1)
        assert np.sqrt((middle**2).mean()) == pytest.approx(0.5 / 2**0.5, rel=0.02)
        assert np.array_equal(made[:, 0], made[:, 1])


# microphones --------------------------------------------------------------------------------------
def test_microphones_that_alsa_lists(tmp_path):
    listing = tmp_path / "pcm"
    listing.write_text(
        "00-00: ALC257 Analog : ALC257 Analog : playback 1 : capture 1\n"
        "00-03: HDMI 0 : HDMI 0 : playback 1\n"
        "01-00: USB Audio : USB Audio : capture 1\n"
        "nonsense\n"
    )
    assert linux_microphones(listing) == [
        Microphone(0, "default", "default"),
        Microphone(1, "ALC257 Analog", "plughw:0,0"),
        Microphone(2, "USB Audio", "plughw:1,0"),
    ]
    assert linux_microphones(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("platform", "format", "name"),
    [
        ("linux", "alsa", "mic"),
        ("win32", "dshow", "audio=mic"),
        ("darwin", "avfoundation", "none:mic"),
    ],
)
def test_microphones_of_each_platform(monkeypatch, platform, format, name):
    monkeypatch.setattr("sys.platform", platform)
    made = devices.microphone_source(Microphone(3, "USB", "mic"), {})
    assert (made.format, made.name, made.live, made.label) == (
        format, name, True, "microphone 3 (USB)",
    )  # fmt: skip


def test_a_rate_that_the_platform_decides(monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.warns(MediaNotice, match="macOS decides its rate"):
        devices.microphone_source(Microphone(3, "USB", "mic"), {"sample_rate": "8000"})


def test_which_microphone(monkeypatch):
    monkeypatch.setattr(devices, "microphones", lambda: [Microphone(1, "USB Audio", "plughw:77,0")])
    for given in ("usb", 1, "plughw:77,0", "default"):
        with pytest.raises(AudioError, match=r"cannot open 'microphone 1 \(USB Audio\)'"):
            microphone.open(given)
    with pytest.raises(AudioNotFound, match=r"no microphone 4\. This machine has 1: 'USB Audio'"):
        microphone.open(4)
    with pytest.raises(ParameterError, match="microphone must be 'default', a number or a name"):
        microphone.open(None)
    monkeypatch.setattr(devices, "microphones", list)
    with pytest.raises(AudioNotFound, match=r"has no microphone\. microphone.open\('test'\)"):
        microphone.open()


def test_a_microphone_in_use(monkeypatch):
    def busy(*args, **kwargs):
        raise av.error.OSError(16, "Device or resource busy")

    monkeypatch.setattr(devices, "microphones", lambda: [Microphone(0, "USB", "plughw:77,0")])
    monkeypatch.setattr(av, "open", busy)
    with pytest.raises(AudioError, match="another program uses it"):
        microphone.open(0)


def test_the_generated_microphone():
    begin = time.monotonic()
    with microphone.open("test", rate=16000) as voice:
        heard = voice.voice(lambda: begin)
        until(lambda: (heard.ready(10**9), heard.end or 0)[1] > 0.5 * RATE, "sound")

        def is_tone() -> bool:
            """Whether the last of what was heard is the tone; a busy machine has gaps."""
            heard.ready(10**9)
            made = heard.render(heard.end - RATE // 4, RATE // 4)[:, 0]
            return abs(np.abs(np.fft.rfft(made)).argmax() * 4 - 440) <= 8

        until(is_tone, "the tone")
        assert heard.end / RATE <= time.monotonic() - begin + 0.1  # it is never ahead
    assert voice.closed
    with pytest.raises(FreedError, match="it is closed"):
        voice.voice(lambda: 0.0)


def test_a_microphone_that_is_dropped_stops():
    microphone.open("test")
    gc.collect()
    until(lambda: not [t for t in threading.enumerate() if t.name == "dala microphone"], "the end")


def test_a_microphone_that_is_lost_is_found_again():
    """A device that ends after a moment, which is what unplugging is, and comes back."""
    source = VideoSource("sine=440:duration=0.1,arealtime", "a device", True, "lavfi", reconnect=60)
    with collected() as notices, SoundCapture(source, 10, "microphone.open").start() as sound:
        until(lambda: sound.seconds > 0.25, "sound after it was lost")
    assert notices == ["a device: it was lost (it ended) and is tried again."]


# streams ------------------------------------------------------------------------------------------
def generated(size=(64, 48), fps=20) -> VideoSource:
    """A live source with pictures that flash, and a beep with each flash, once a second."""
    flash = "geq=lum='if(lt(mod(T,1),0.1),235,16)':cb=128:cr=128"
    pictures = f"color=size={size[0]}x{size[1]}:rate={fps},{flash},realtime[out0]"
    beep = "aevalsrc='0.5*sin(2*PI*1000*t)*lt(mod(t,1),0.1)':s=48000,arealtime[out1]"
    return VideoSource(f"{pictures};{beep}", "a camera with sound", True, "lavfi")


def together(path) -> tuple[list[float], list[float]]:
    """The times of flashes and of beeps in a stream."""
    with av.open(str(path)) as source:
        found = [(f.time, f.to_ndarray(format="gray").mean()) for f in source.decode(video=0)]
    light = [t for (t, v), (_, before) in zip(found[1:], found, strict=False) if v > 120 > before]
    with av.open(str(path)) as source:
        frames = list(source.decode(audio=0)) if source.streams.audio else []
    if not frames:
        return light, []
    sound = np.concatenate([f.to_ndarray() for f in frames], 1)[0]
    loud, first = np.abs(sound) > 0.2, frames[0].time
    starts = [n for n in np.flatnonzero(loud) if not loud[max(n - 4800, 0) : n].any()]
    return light, [first + n / RATE for n in starts if n > 4800]


def both(path) -> tuple[int, float]:
    """The number of pictures of a stream, and its seconds of sound."""
    with av.open(str(path)) as source:
        pictures = sum(1 for _ in source.decode(video=0))
    with av.open(str(path)) as source:
        return pictures, sum(f.samples for f in source.decode(audio=0)) / RATE


def in_sync(path) -> bool:
    """Whether two flashes or more have a beep each, at the same time.

    A busy machine drops pictures, and has silence in place of sound that is late: then the
    recording proves nothing, and is made again. One that is never in sync fails.
    """
    light, beeps = together(path)
    near = [min((abs(beep - flash) for beep in beeps), default=9.0) for flash in light]
    return len(light) >= 2 and bool(max(near) < 0.16)  # a frame has 50 ms


@pytest.mark.parametrize(
    ("late", "flashes", "fine"),
    [(0.0, 2, True), (0.1, 2, True), (0.25, 2, False), (-0.25, 2, False), (0.0, 1, False)],
)
def test_recordings_out_of_sync_are_told(tmp_path, late, flashes, fine):
    """Those that the tests below repeat until they are in sync: sound that is late never is."""
    begins = [0.5 + n for n in range(flashes)]
    pictures = [
        np.full((16, 32, 3), 235 if any(b <= n / 20 < b + 0.1 for b in begins) else 16, np.uint8)
        for n in range(20 * (flashes + 1))
    ]
    times = np.arange((flashes + 1) * RATE) / RATE
    loud = np.any([(b + late <= times) & (times < b + late + 0.1) for b in begins], axis=0)
    beeps = audio.tone(1000, flashes + 1, amplitude=0.5).samples * loud[:, None]
    audio.Audio(beeps.astype(np.float32), RATE).save(tmp_path / "beeps.wav")
    made = tmp_path / "made.mkv"
    video.write(made, pictures, fps=20, audio_from=tmp_path / "beeps.wav")
    assert in_sync(made) is fine


def test_a_live_source_is_sent_with_its_sound(tmp_path):
    run = live.send(video.open(generated()), tmp_path, seconds=1)
    pictures, seconds = both(tmp_path / "live.m3u8")
    assert pictures == run.stats["shown"] > 0
    assert 0 < seconds < 2


@pytest.mark.long  # a busy machine needs several attempts
def test_a_live_source_and_its_sound_are_in_sync(tmp_path):
    def sent() -> bool:
        live.send(video.open(generated()), tmp_path, seconds=2.6)
        return in_sync(tmp_path / "live.m3u8")

    until(sent, "a recording in sync")


def test_a_camera_with_a_microphone(tmp_path):
    def heard() -> bool:
        """Whether a part of what was recorded is the tone; a busy machine may miss it."""
        source = camera.open("test", size=(64, 48), fps=20)
        live.send(source, tmp_path / "both", seconds=1, audio=voice)
        assert not voice.closed
        with av.open(str(tmp_path / "both" / "live.m3u8")) as stream:
            made = np.concatenate([f.to_ndarray() for f in stream.decode(audio=0)], 1)[0]
        part = made[len(made) // 2 :][: RATE // 4]
        return len(part) == RATE // 4 and abs(np.abs(np.fft.rfft(part)).argmax() * 4 - 440) <= 8

    with microphone.open("test") as voice:
        until(heard, "the tone")
    with pytest.raises(FreedError, match="test microphone is closed"):
        live.send(camera.open("test", size=(64, 48)), tmp_path / "late", audio=voice)
    with pytest.raises(ParameterError, match="audio must be True, False or an open microphone"):
        live.send(camera.open("test", size=(64, 48)), tmp_path / "odd", audio="yes")


def test_sound_is_left_out_where_it_is_not_wanted(tmp_path):
    live.send(video.open(generated()), tmp_path, seconds=0.3, audio=False)
    with av.open(str(tmp_path / "live.m3u8")) as stream:
        assert not stream.streams.audio


def test_a_lost_source_is_not_asked_for_its_sound(monkeypatch):
    """While it is opened again the stream goes on: what has no sound is known from the start."""
    with camera.open("test", size=(64, 48)) as silent, video.open(generated()) as heard:
        assert sound_of_reader(silent) is None
        found = sound_of_reader(heard)
        monkeypatch.setattr(type(silent), "has_audio", property(lambda reader: 1 / 0))
        assert sound_of_reader(silent) is None
        assert sound_of_reader(heard) is found is heard.listener


def test_a_thread_that_cannot_start_leaves_nothing(monkeypatch):
    before = dala.diagnostics()

    def refused(*words, **given):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("dala.forks._Thread.start", refused)
    with pytest.raises(RuntimeError, match="new thread"):
        microphone.open("test")
    assert dala.diagnostics() == before


# scenes -------------------------------------------------------------------------------------------
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
