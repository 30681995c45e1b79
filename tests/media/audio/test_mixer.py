"""The mixer: sample by sample against NumPy, with odd borders of blocks, loops and seeks."""

import numpy as np
import pytest

import dala
from dala.media import audio
from dala.media.audio import Audio, Mixer
from dala.media.audio.mixing.mixer import GRID

RATE = 8000


def sound(count, channels=2, seed=0, level=0.2):
    made = np.random.default_rng(seed).uniform(-level, level, (count, channels))
    return Audio(made.astype(np.float32), RATE)


def in_blocks(mixer, total, sizes=(1, 7, 64, 129, 1000, 4097)):
    parts, at, number = [], 0, 0
    while at < total:
        count = min(sizes[number % len(sizes)], total - at)
        parts.append(mixer.render(at, count))
        at, number = at + count, number + 1
    return np.concatenate(parts)


def test_two_sounds_against_numpy():
    a, b = sound(5000, seed=1), sound(3000, 1, seed=2)
    expected = np.zeros((9000, 2), np.float32)
    expected[100:5100] += a.samples * np.float32(0.5)
    rising = (np.minimum(np.arange(2000) / 800, 1)).astype(np.float32)
    falling = (np.minimum((2000 - np.arange(2000)) / 400, 1)).astype(np.float32)
    expected[4000:6000] += b.samples[500:2500] * (rising * falling)[:, None]
    with Mixer(RATE) as mixer:
        mixer.add(a, start=100 / RATE, volume=0.5)
        mixer.add(b, start=0.5, trim=(500 / RATE, 2500 / RATE), fade_in=0.1, fade_out=0.05)
        assert mixer.length == 6000
        found = in_blocks(mixer, 9000)
        assert np.allclose(found, expected, atol=1e-7)
        assert np.array_equal(mixer.render(4321, 777), found[4321:5098])  # after a seek back


def test_loops_have_no_seam():
    a = sound(700, seed=3)
    with Mixer(RATE) as mixer:
        mixer.add(a, start=50 / RATE, trim=(100 / RATE, 433 / RATE), loop=True)
        assert mixer.length is None
        found = in_blocks(mixer, 3000)
    expected = np.tile(a.samples[100:433], (10, 1))[:2950]
    assert not found[:50].any()
    assert np.array_equal(found[50:], expected)


@pytest.mark.parametrize("channels", [1, 2])
def test_volume_and_pan_may_be_functions(channels):
    a = sound(4000, channels, seed=4)
    volume = lambda places: 0.25 + places / 8000  # noqa: E731
    pan = lambda places: places / 2000 - 1  # noqa: E731
    with Mixer(RATE, limit=None) as mixer:
        mixer.add(a, volume=volume, pan=pan)
        found = in_blocks(mixer, 4000)
    places = np.arange(4000)
    moved = a.gain(factor=volume(places)).pan(pan(places))
    factor = np.float32(2**0.5) if channels == 1 else 1  # the middle leaves mono as it is
    assert np.allclose(found, moved.samples * factor, atol=1e-6)
    assert GRID == 64


def test_the_middle_leaves_mono_and_stereo_as_they_are():
    with Mixer(RATE) as mixer:
        mixer.add(sound(100, 1, seed=5))
        assert np.array_equal(mixer.render(0, 100), np.repeat(sound(100, 1, seed=5).samples, 2, 1))


def test_the_limiter_keeps_samples_below_its_limit():
    with Mixer(RATE) as mixer:
        for seed in range(20):
            mixer.add(sound(8000, seed=seed, level=0.5))
        found = in_blocks(mixer, 8000)
    assert 0.9 < np.abs(found).max() <= 1


def test_files_are_streamed_and_sought(tmp_path):
    made = audio.tone(440, 1, amplitude=0.5, rate=44100).fade_in(1)
    made.save(tmp_path / "t.flac")
    with Mixer(48000) as mixer:
        mixer.add(tmp_path / "t.flac", start=0.25)
        whole = in_blocks(mixer, 72000, (4096,))
        expected = made.resample(48000).samples
        assert np.allclose(whole[12000:60000, 0], expected[:, 0], atol=1e-6)
        assert not whole[:12000].any()
        assert not whole[60000:].any()
        for at in (50000, 20000, 0, 71000, 12000):
            assert np.allclose(mixer.render(at, 500), whole[at : at + 500], atol=1e-6)


def test_effects_and_speed(tmp_path):
    made = audio.tone(1000, 1, amplitude=0.5, layout="stereo")
    with Mixer() as mixer:
        mixer.add(made, effects=[("eq", {"bands": [(1000, -6, 1)]})])
        found = in_blocks(mixer, 48000, (4096,))
        assert np.array_equal(found, made.eq([(1000, -6, 1)]).samples)
    with Mixer() as mixer:
        track = mixer.add(made, speed=2)
        assert mixer.length == 24000
        found = Audio(mixer.render(0, 24000), 48000)
        assert np.argmax(np.abs(np.fft.rfft(found.samples[:, 0]))) == 500  # still 1000 Hz
        mixer.remove(track)
        assert not mixer.render(0, 100).any()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"trim": (2, 1)}, "trim must be"),
        ({"trim": 3}, "trim must be"),
        ({"volume": -1}, "volume must be a number from 0"),
        ({"pan": 2}, "pan must be a number from -1 to 1"),
        ({"loop": 1}, "loop must be True or False"),
        ({"fade_in": -1}, "fade_in must be"),
        ({"speed": 0}, "speed must be"),
        ({"effects": [("ech", {})]}, "Did you mean 'echo'"),
        ({"effects": [("echo", {"dely": 1})]}, "Did you mean 'delay'"),
        ({"effects": "echo"}, "effects must be a list such as"),
    ],
)
def test_mistakes(options, text):
    with Mixer(RATE) as mixer:
        with pytest.raises(dala.ParameterError, match=text):
            mixer.add(sound(10), **options)
        assert mixer.tracks == []
    with pytest.raises(dala.FreedError, match="the mixer is closed"):
        mixer.render(0, 1)
    with Mixer(RATE) as mixer, pytest.raises(dala.ParameterError, match="cannot be repeated"):
        mixer.add(Audio(np.zeros((0, 1)), RATE), loop=True)
