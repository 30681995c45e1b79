"""Gain, fades, panning, mixing and slicing: exact to the sample, against NumPy."""

from fractions import Fraction

import numpy as np
import pytest

import dala
from dala.media import audio
from dala.media.audio import Audio

RATE = 8000


def sound(count=1000, channels=2, seed=0, **facts):
    made = np.random.default_rng(seed).uniform(-1, 1, (count, channels)).astype(np.float32)
    return Audio(made, RATE, **facts)


def test_samples_are_read_only_views():
    given = np.zeros((4, 2), np.float32)
    made = Audio(given, RATE)
    assert np.shares_memory(made.samples, given)
    assert given.flags.writeable
    assert not np.asarray(made).flags.writeable
    given[0] = 1
    copy = made.numpy()
    copy[0] = 2
    assert made.samples[0, 0] == 1
    assert np.asarray(made, np.float64).dtype == np.float64


@pytest.mark.parametrize(
    ("dtype", "given", "value"),
    [
        ("u1", 192, 0.5),
        ("i1", 64, 0.5),
        ("i2", -16384, -0.5),
        ("i4", 1 << 30, 0.5),
        ("f8", 0.5, 0.5),
    ],
)
def test_integers_are_scaled_by_their_range(dtype, given, value):
    assert Audio(np.array([given], dtype), RATE).samples[0, 0] == value


def test_slices_by_seconds_keep_their_time():
    made = sound(8000, start=Fraction(1, 3))
    part = made[0.25:0.5]
    assert np.array_equal(part.samples, made.samples[2000:4000])
    assert part.start == Fraction(1, 3) + Fraction(1, 4)
    assert np.array_equal(made[-0.5:].samples, made.samples[4000:])
    assert len(made[0.5:0.25]) == 0
    assert made[:99].end == made.end
    with pytest.raises(dala.ParameterError, match="a slice of seconds"):
        made[3]


def test_gain():
    made = sound()
    assert np.array_equal(made.gain(factor=0.3).samples, made.samples * np.float32(0.3))
    assert np.allclose(made.gain(-20).samples, made.samples * 0.1, atol=1e-7)
    curve = np.linspace(0, 1, len(made))
    expected = made.samples * curve.astype(np.float32)[:, None]
    assert np.array_equal(made.gain(factor=curve).samples, expected)


@pytest.mark.parametrize("curve", ["linear", "equal_power"])
def test_fades(curve):
    made, count = Audio(np.ones((1000, 1)), RATE), 333
    steps = np.arange(count) / count
    rising = steps if curve == "linear" else np.sin(steps * np.pi / 2)
    into = made.fade_in(Fraction(count, RATE), curve).samples[:, 0]
    assert np.array_equal(into[:count], rising.astype(np.float32))
    assert (into[count:] == 1).all()
    out = made.fade_out(Fraction(count, RATE), curve).samples[:, 0]
    assert (out[: 1000 - count] == 1).all()
    together = into[:count] ** (1 if curve == "linear" else 2)
    together = together + out[1000 - count :] ** (1 if curve == "linear" else 2)
    assert np.allclose(together, 1, atol=1e-6)  # two that fade into each other
    assert np.array_equal(made.fade_in(0).samples, made.samples)


def test_a_fade_longer_than_the_sound():
    made = Audio(np.ones((4, 1)), RATE)
    assert made.fade_in(8 / RATE).samples[:, 0].tolist() == [0, 0.125, 0.25, 0.375]


def test_pan_of_mono_has_equal_power():
    made = Audio(np.ones((1, 1)), RATE)
    for position in np.linspace(-1, 1, 9):
        left, right = made.pan(position).samples[0].astype(np.float64)
        angle = (position + 1) * np.pi / 4
        assert (left, right) == pytest.approx((np.cos(angle), np.sin(angle)), abs=1e-7)
        assert left**2 + right**2 == pytest.approx(1)


def test_pan_of_stereo():
    made = sound()
    left, right = made.samples.T
    assert np.array_equal(made.pan(0).samples, made.samples)
    assert np.allclose(made.pan(-1).samples, np.stack((left + right, 0 * left), 1), atol=1e-6)
    assert np.allclose(made.pan(1).samples, np.stack((0 * left, left + right), 1), atol=1e-6)
    path = np.linspace(-1, 1, len(made))
    panned = made.pan(path).samples
    for at in (0, 100, 499, 700, 999):
        assert np.allclose(panned[at], made.pan(float(path[at])).samples[at], atol=1e-6)


def test_mix_adds_at_start_times():
    a, b = sound(100, seed=1), sound(50, seed=2, start=Fraction(70, RATE))
    made = audio.mix(a, b, gains=[1, 0.5])
    expected = np.zeros((120, 2), np.float32)
    expected[:100] += a.samples
    expected[70:] += b.samples * np.float32(0.5)
    assert np.array_equal(made.samples, expected)
    assert audio.mix(b, a).start == 0
    assert audio.mix(b).start == b.start


def test_concat_and_cross_fade():
    a, b = Audio(np.ones((100, 1)), RATE), Audio(np.ones((50, 1)) * 0.5, RATE)
    assert np.array_equal(audio.concat(a, b).samples, np.concatenate([a.samples, b.samples]))
    made = audio.concat(a, b, fade=10 / RATE, curve="linear").samples[:, 0]
    assert len(made) == 140
    k = np.arange(10) / 10
    assert np.allclose(made[90:100], (1 - k) + 0.5 * k, atol=1e-6)
    with pytest.raises(dala.ParameterError, match=r"fade must fit into every sound"):
        audio.concat(a, b, a, fade=30 / RATE)


def test_rates_and_layouts_must_match():
    a, b = audio.tone(440, 0.1, rate=8000), audio.tone(440, 0.1, rate=16000)
    with pytest.raises(dala.ParameterError, match=r"got 16000 Hz mono. Pass rate=8000"):
        audio.mix(a, b)
    assert audio.mix(a, b, rate=16000, layout="stereo").layout == "stereo"
    assert audio.concat(a, b, rate=16000).duration == Fraction(1, 5)


def test_generated_sounds():
    made = audio.tone(1000, 0.5, amplitude=0.5, phase=90, rate=RATE)
    at = np.arange(4000) / RATE
    assert np.allclose(made.samples[:, 0], 0.5 * np.cos(2 * np.pi * 1000 * at), atol=1e-6)
    square = audio.tone(1000, 0.001, shape="square", rate=RATE).samples[:, 0]
    assert square.tolist() == [1] * 4 + [-1] * 4
    assert audio.silence(0.5, rate=RATE, layout="5.1").samples.shape == (4000, 6)
    together = audio.concat(audio.silence(0.5), audio.tone(440, 0.5), audio.noise(0.5))
    assert (together.layout, float(together.duration)) == ("mono", 1.5)
    white = audio.noise(1, rate=RATE, seed=3, layout="stereo")
    assert white == audio.noise(1, rate=RATE, seed=3, layout="stereo")
    assert white != audio.noise(1, rate=RATE, seed=4, layout="stereo")
    assert abs(np.corrcoef(white.samples.T)[0, 1]) < 0.05
    pink = np.abs(np.fft.rfft(audio.noise(4, rate=RATE, color="pink").samples[:, 0])) ** 2
    octaves = [pink[n : 2 * n].sum() for n in (400, 800, 1600, 3200)]
    assert max(octaves) / min(octaves) < 1.3


def test_a_long_tone_stays_exact():
    made = audio.tone(441, 300, rate=RATE)
    assert np.allclose(made.samples[-8000:], made.samples[:8000], atol=1e-6)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Audio(np.zeros((20, 9)), RATE), "1 to 8 channels are supported"),
        (lambda: Audio(np.zeros((2, 900)), RATE), r"Channels are the last axis: pass array\.T"),
        (lambda: Audio([np.nan, 1.0], RATE), "samples must be finite, got 1 of NaN"),
        (lambda: Audio([1e300], RATE), "samples must be finite"),
        (lambda: Audio(["a"], RATE), "samples must be floats"),
        (lambda: Audio([0.0], 100), "rate must be a sampling rate from 1000"),
        (lambda: Audio([0.0], True), "rate must be a sampling rate"),
        (lambda: Audio([0.0], RATE, layout="stereo"), "layout must be one of 1 channels"),
        (lambda: Audio([0.0], RATE, layout="sterio"), "Did you mean 'stereo'"),
        (lambda: Audio([0.0], RATE, start=float("nan")), "start must be a number"),
        (lambda: sound().gain(), "give decibels or factor"),
        (lambda: sound().gain("loud"), "decibels must be a number"),
        (lambda: sound().fade_in(-1), "seconds must be a number from 0"),
        (lambda: sound().fade_in(1, "linar"), "Did you mean 'linear'"),
        (lambda: sound().pan(2), "position must be a number from -1 to 1"),
        (lambda: sound(channels=6).pan(0), "must be mono or stereo, got 5.1"),
        (lambda: audio.mix(), "give at least one Audio"),
        (lambda: audio.mix([sound()]), "Pass them one by one"),
        (lambda: audio.mix(sound(), gains=[1, 2]), "gains must be 1 numbers"),
        (lambda: audio.tone(5000, 1, rate=RATE), "frequency must be a number from 0.001 to 4000"),
        (lambda: audio.tone(440, -1), "seconds must be a number from 0"),
        (lambda: audio.noise(1, seed=-1), "seed must be an int"),
        (lambda: sound().resample(7), "rate must be a sampling rate"),
        (lambda: sound().resample(layout="9.9"), "layout must be a layout such as"),
    ],
)
def test_mistakes(call, text):
    with pytest.raises(dala.ParameterError, match=text):
        call()


def test_huge_sounds_are_refused_before_memory_is_taken():
    with pytest.raises(dala.MemoryLimitExceeded, match=r"audio\.silence: needs"):
        audio.silence(10**8)


def test_empty_sounds():
    nothing = Audio(np.zeros((0, 2)), RATE)
    assert nothing.duration == 0
    assert nothing.peak == nothing.rms == 0
    for made in (
        nothing.gain(3), nothing.fade_in(1), nothing.pan(0.5), nothing.resample(48000),
        nothing.limiter(), nothing.eq([(1000, 3)]), nothing.tempo(2), nothing.normalize(),
        nothing.reverse(), audio.mix(nothing, nothing), audio.concat(nothing, nothing),
        nothing.denoise(),
    ):  # fmt: skip
        assert len(made) == 0
    assert nothing.loudness().integrated == -np.inf
    assert nothing.waveform(8, 8).shape == (8, 8, 4)
