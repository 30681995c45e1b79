"""Live sound: one clock, microphones and streams."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np
import pytest

import dala
from dala.errors import AudioError, AudioNotFound, FreedError, ParameterError
from dala.media import audio, camera, live, microphone, video
from dala.media.audio.arriving import PATIENCE, LiveSound, sound_of_reader
from dala.media.microphone.functions import SoundCapture
from dala.media.notices import MediaNotice, collected
from dala.media.video.decoding import devices
from dala.media.video.decoding.devices import Microphone, linux_microphones
from dala.media.video.source import VideoSource
from tests.media.live.heard import RATE, both, clicks, frame, generated, in_sync, play
from tests.media.live.receivers import av, until


@pytest.fixture(autouse=True)
def on_cpu():
    with dala.device("cpu"):
        yield


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
