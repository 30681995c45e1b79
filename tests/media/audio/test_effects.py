"""Effects from libavfilter: what they do, that they are aligned, their parameters and errors."""

import math
import tracemalloc
import warnings

import numpy as np
import pytest

import dala
from dala.media import audio
from dala.media.audio import Audio
from dala.media.audio.effects import EFFECTS, effect_stream
from dala.media.audio.loudness import LoudnessMeter, measure
from dala.media.notices import MediaNotice

RATE = 48000


def decibels(value):
    return 20 * math.log10(value)


def level_at(sound, frequency):
    """The amplitude of a frequency, by a projection on a sine and a cosine."""
    count = len(sound)
    at = 2 * np.pi * frequency * np.arange(count) / sound.rate
    x = sound.samples[:, 0].astype(np.float64)
    return 2 / count * math.hypot(x @ np.sin(at), x @ np.cos(at))


@pytest.mark.parametrize("name", EFFECTS)
def test_every_number_is_checked_against_its_range(name):
    made = audio.tone(440, 0.01)
    for option in EFFECTS[name].specs().values():
        if option.name == "bands":
            continue
        highest = option.kind.high if math.isfinite(option.kind.high) else made.rate / 2
        for wrong in (option.kind.low - 1, 2 * abs(highest) + 1, "x", math.nan):
            with pytest.raises(dala.ParameterError, match=f"{option.name} must be a number"):
                getattr(made, name)(**{option.name: wrong})


def test_an_unknown_parameter_is_refused_with_the_nearest():
    made = audio.tone(440, 0.01)
    with pytest.raises(
        dala.ParameterError,
        match=r"Audio\.echo: there is no option 'dellay'\. Did you mean 'delay'",
    ):
        made.echo(dellay=0.1)
    with pytest.raises(dala.ParameterError, match=r"no option 'dellay'\. Did you mean 'delay'"):
        audio.Mixer(effects=[("echo", {"dellay": 0.1})])


@pytest.mark.parametrize("rate", [8000, 22050, 44100, 48000, 96000, 192000])
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("limiter", {}),
        ("compressor", {}),
        ("eq", {"bands": [(1000, 0.5)]}),
        ("denoise", {"reduction": 0.01}),
    ],
)
def test_output_is_aligned_and_as_long(rate, name, given):
    click = np.zeros((rate // 4, 2), np.float32)
    click[rate // 8] = 0.5
    made = getattr(Audio(click, rate), name)(**given)
    assert len(made) == rate // 4
    assert np.abs(made.samples[:, 0]).argmax() == rate // 8


def test_blocks_of_any_size_give_the_same_samples():
    made = audio.noise(0.3, layout="stereo")
    effects = [("eq", {"bass": 4, "bands": [(900, -5, 2)]}), ("compressor", {}), ("denoise", {})]
    found = []
    for counts in ((10**6,), (1, 7, 4097, 5000, 10**6), (1000,) * 15):
        stream = effect_stream("test", effects, RATE, "stereo")
        parts, at = [], 0
        for count in counts:
            parts.append(stream.process(made.samples[at : at + count]))
            at += count
        found.append(np.concatenate([*parts, stream.finish()]))
    assert found[0].shape == made.samples.shape
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_the_limiter_leaves_alone_what_is_below():
    made = audio.noise(0.2, amplitude=0.8, layout="stereo")
    assert np.array_equal(made.limiter(limit=-1).samples, made.samples)
    loud = made.gain(factor=4)
    assert loud.limiter(limit=-6).peak <= 10 ** (-6 / 20) + 1e-4


def test_eq_raises_its_band_only():
    made = audio.mix(*(audio.tone(f, 1, amplitude=0.1) for f in (100, 1000, 8000)))
    found = made.eq([(1000, 6, 2)])
    change = [decibels(level_at(found, f) / level_at(made, f)) for f in (100, 1000, 8000)]
    assert change == pytest.approx([0, 6, 0], abs=0.3)
    cut = made.eq(highpass=700, lowpass=2000)
    assert level_at(cut, 100) < 0.01
    assert level_at(cut, 8000) < 0.01
    shelves = made.eq(bass=-12, treble=9)
    assert decibels(level_at(shelves, 100) / 0.1) == pytest.approx(-6, abs=1)
    assert decibels(level_at(shelves, 8000) / 0.1) == pytest.approx(8.5, abs=1)
    assert made.eq() == made


def test_the_compressor_reduces_by_its_ratio():
    loud, quiet = (audio.tone(1000, 1, amplitude=a) for a in (1.0, 0.01))
    found = loud.compressor(threshold=-20, ratio=4, knee=0, attack=0.005)[0.5:]
    # 20 dB above the threshold become a quarter of that
    assert decibels(level_at(found, 1000)) == pytest.approx(-15, abs=0.5)
    assert decibels(level_at(quiet.compressor(threshold=-20)[0.5:], 1000)) == pytest.approx(
        -40, abs=0.1
    )


def test_echoes_come_at_their_times():
    click = Audio(np.eye(1, 100, dtype=np.float32).T, 1000)
    made = click.echo(delay=0.2, decay=0.5, repeats=2).samples[:, 0]
    assert len(made) == 500
    assert np.flatnonzero(np.abs(made) > 1e-3).tolist() == [0, 200, 400]
    assert made[[0, 200, 400]].tolist() == pytest.approx([1, 0.5, 0.25], abs=1e-4)


def test_reverb_is_a_convolution():
    generator = np.random.default_rng(0)
    dry = generator.uniform(-0.1, 0.1, (5000, 2)).astype(np.float32)
    room = generator.uniform(-1, 1, (3001, 2)) * np.exp(-np.arange(3001) / 400)[:, None] * 0.1
    made = Audio(dry, RATE).reverb(Audio(room, RATE), wet=0.7, dry=0.5)
    expected = 0.7 * np.stack([np.convolve(dry[:, c], room[:, c]) for c in (0, 1)], 1)
    expected[:5000] += 0.5 * dry
    assert made.samples.shape == expected.shape
    assert np.allclose(made.samples, expected, atol=1e-6)
    with pytest.raises(dala.ParameterError, match="impulse must be an Audio"):
        Audio(dry, RATE).reverb("room.wav")


@pytest.mark.parametrize("speed", [0.3, 0.5, 0.8, 1.25, 2, 3])
def test_tempo_keeps_the_pitch_and_the_time(speed):
    made = audio.tone(1000, 2).fade_in(0.1).fade_out(0.1)
    found = made.tempo(speed)
    assert len(found) == round(len(made) / speed)
    spectrum = np.abs(np.fft.rfft(found.samples[:, 0]))
    assert np.argmax(spectrum) / float(found.duration) == pytest.approx(1000, abs=3)
    clicks = np.zeros((RATE * 2, 1), np.float32)
    for second in (0.5, 1.0, 1.5):
        clicks[round(second * RATE) - 1500 :][:3000, 0] = np.hanning(3000)
    times = Audio(clicks, RATE).tempo(speed)
    for second in (0.5, 1.0, 1.5):
        near = times[second / speed - 0.15 : second / speed + 0.15]
        weights = near.samples[:, 0] ** 2
        at = float(near.start) + weights @ np.arange(len(near)) / weights.sum() / RATE
        assert at == pytest.approx(second / speed, abs=0.02 / min(speed, 1))


def test_denoise_keeps_what_is_louder():
    hiss = audio.noise(1, amplitude=0.01)
    made = audio.mix(hiss, audio.tone(1000, 1, amplitude=0.5))
    found = made.denoise(reduction=20, floor=decibels(hiss.rms))
    assert decibels(level_at(found[0.3:0.8], 1000) / 0.5) == pytest.approx(0, abs=0.3)
    rest = found.samples - audio.tone(1000, 1, amplitude=0.5).samples
    assert decibels(float(np.sqrt(np.mean(rest[15000:40000] ** 2))) / hiss.rms) < -8


def test_resampling_keeps_time_and_level():
    for rate in (8000, 11025, 44100, 96000, 192000):
        made = audio.tone(1000, 0.4, amplitude=0.5, rate=rate)
        found = made.resample(48000)
        assert len(found) == 19200
        expected = audio.tone(1000, 0.4, amplitude=0.5).samples
        assert np.abs(found.samples - expected)[2000:-2000].max() < 2e-3
        back = found.resample(rate)
        assert len(back) == len(made)


def test_layouts():
    mono = audio.tone(100, 0.1)
    stereo = mono.resample(layout="stereo")
    assert np.array_equal(stereo.samples, np.repeat(mono.samples, 2, 1))
    assert np.allclose(stereo.resample(layout="mono").samples, mono.samples, atol=1e-7)
    center = np.zeros((1000, 6), np.float32)
    center[:, 2] = 0.5
    down = Audio(center, RATE).resample(layout="stereo")
    assert np.allclose(down.samples, 0.5 * 0.7071, atol=1e-4)
    assert Audio(np.zeros((10, 8)), RATE).resample(layout="stereo").channels == 2


# loudness -----------------------------------------------------------------------------------------
def parts(*levels, layout="stereo"):
    """A stereo sine of 1 kHz with (seconds, dBFS) one after another."""
    total = sum(s for s, _ in levels)
    gains = np.concatenate([np.full(round(s * RATE), 10 ** (d / 20)) for s, d in levels])
    made = audio.tone(1000, total, layout=layout)
    return made.gain(factor=gains)


def loudness(sound):
    return measure("test", [sound.samples], sound.rate, sound.layout, true_peak=False)


#: EBU Tech 3341, table 1: minimum requirements, cases 1 to 5.
INTEGRATED = {
    "1": (((20, -23),), -23.0),
    "2": (((20, -33),), -33.0),
    "3": (((10, -36), (60, -23), (10, -36)), -23.0),
    "4": (((10, -72), (10, -36), (60, -23), (10, -36), (10, -72)), -23.0),
    "5": (((20, -26), (20.1, -20), (20, -26)), -23.0),
}


@pytest.mark.parametrize("case", INTEGRATED)
def test_ebu_3341_integrated(case):
    levels, expected = INTEGRATED[case]
    found = loudness(parts(*levels))
    assert found.integrated == pytest.approx(expected, abs=0.1)
    if len(levels) == 1:
        assert found.momentary == pytest.approx(expected, abs=0.1)
        assert found.short_term == pytest.approx(expected, abs=0.1)


def test_a_long_sound_is_measured_in_little_memory():
    sound = audio.tone(500, 100, rate=8000, amplitude=0.1)
    tracemalloc.start()
    try:
        found = sound.loudness()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < sound.samples.nbytes
    assert found == sound[:50].loudness()


def test_ebu_3341_case_6_with_five_channels():
    gains = [10 ** (d / 20) for d in (-28, -28, -24, -30, -30)]
    made = np.repeat(audio.tone(1000, 20).samples, 5, axis=1) * np.array(gains, np.float32)
    found = loudness(Audio(made, RATE, layout="5.0"))
    assert found.integrated == pytest.approx(-23.0, abs=0.1)


def test_ebu_3341_case_9_short_term_and_12_momentary():
    short = parts(*((1.34, -20), (1.66, -30)) * 5)
    short = loudness(short)
    assert short.short_term == pytest.approx(-23.0, abs=0.1)
    momentary = parts(*((0.18, -20), (0.22, -30)) * 25)
    momentary = loudness(momentary)
    assert momentary.momentary == pytest.approx(-23.0, abs=0.1)


@pytest.mark.parametrize(
    ("divisor", "amplitude", "phase", "expected"),
    [(4, 0.5, 0, -6), (4, 0.5, 45, -6), (6, 0.5, 60, -6), (8, 0.5, 67.5, -6), (4, 1.41, 45, 3)],
)
def test_ebu_3341_cases_15_to_19_true_peak(divisor, amplitude, phase, expected):
    made = audio.tone(RATE / divisor, 0.5, amplitude=amplitude, phase=phase, layout="stereo")
    found = made.fade_in(0.05).fade_out(0.05).loudness().true_peak
    assert expected - 0.4 <= found <= expected + 0.2


#: The signals of the cases 10, 11, 13 and 14, which differ by where a tone begins.
STEPS = range(20)


@pytest.mark.parametrize("step", STEPS)
def test_ebu_3341_cases_10_and_13_wherever_the_tone_begins(step):
    short = loudness(parts((0.15 * step, -200), (3, -23), (1, -200)))
    assert short.short_term == pytest.approx(-23.0, abs=0.1)
    momentary = loudness(parts((0.02 * step, -200), (0.4, -23), (1, -200)))
    assert momentary.momentary == pytest.approx(-23.0, abs=0.1)


def largest(blocks):
    """The largest short-term and momentary loudness after each block, as a live meter shows them.

    The meter is not started anew, and a block is louder than all before it.
    """
    meter = LoudnessMeter("test", RATE, "stereo", true_peak=False)
    found = []
    for block in blocks:
        meter.feed(block.samples)
        found.append((meter.short_term, meter.momentary))
    return found


def test_ebu_3341_case_11_and_14_one_after_another():
    tones = (parts((0.15 * n, -200), (3, -38 + n), (3 - 0.15 * n, -200)) for n in STEPS)
    assert [s for s, _ in largest(tones)] == pytest.approx([-38 + n for n in STEPS], abs=0.1)
    tones = (parts((0.02 * n, -200), (0.4, -38 + n), (0.4 - 0.02 * n, -200)) for n in STEPS)
    assert [m for _, m in largest(tones)] == pytest.approx([-38 + n for n in STEPS], abs=0.1)


@pytest.mark.parametrize("offset", range(4))
def test_ebu_3341_cases_20_to_23_true_peak_between_samples(offset):
    """A tone of fs/6 at half of full scale with one period of fs/4 at full scale, made at 4 fs.

    Of the four samples between two, each of the cases keeps another one, so that the largest value
    of the sound is on a sample, or a quarter or half a sample beside one.
    """
    fine, count = 4 * RATE, RATE
    time = np.arange(count) / fine
    step = np.full(count, 2 * np.pi / (4 * 6))
    made = np.full(count, 0.5)
    # The tone begins with 0, so that the period begins and ends where the wave crosses 0.
    first = count // 2 // 24 * 24
    step[first : first + 16] = 2 * np.pi / (4 * 4)
    made[first : first + 16] = 1.0
    phase = np.concatenate([[0.0], np.cumsum(step)[:-1]])
    wave = made * np.sin(phase) * np.clip(np.minimum(time, time[::-1]) / 0.02, 0, 1)
    spectrum = np.fft.rfft(wave)
    spectrum[np.fft.rfftfreq(count, 1 / fine) >= RATE / 2] = 0  # what fs cannot hold
    wave = np.fft.irfft(spectrum, count)
    kept = wave[offset::4].astype(np.float32)
    found = Audio(np.repeat(kept[:, None], 2, axis=1), RATE).loudness().true_peak
    assert -0.4 <= found <= 0.2
    assert 20 * np.log10(np.abs(wave).max()) == pytest.approx(found, abs=0.25)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (((20, -20), (20, -30)), 10),
        (((20, -20), (20, -15)), 5),
        (((20, -40), (20, -20)), 20),
        (((20, -50), (20, -35), (20, -20), (20, -35), (20, -50)), 15),
    ],
)
def test_ebu_3342_loudness_range(levels, expected):
    assert loudness(parts(*levels)).range == pytest.approx(expected, abs=1)


def test_normalize():
    made = audio.tone(1000, 2, amplitude=0.02, layout="stereo")
    assert made.normalize(peak=-3).peak == pytest.approx(10 ** (-3 / 20), abs=1e-6)
    assert made.normalize().peak == pytest.approx(10 ** (-1 / 20), abs=1e-6)
    assert made.normalize(loudness=-16).loudness().integrated == pytest.approx(-16, abs=0.05)
    with pytest.raises(dala.ParameterError, match="peak or loudness, not both"):
        made.normalize(peak=-1, loudness=-16)
    with pytest.warns(MediaNotice, match="is silent"):
        audio.silence(1).normalize(loudness=-16)
    clicks = np.zeros((RATE, 2), np.float32)
    clicks[::4800] = 0.9
    with pytest.warns(MediaNotice, match="peaks above -1 dB are limited"):
        found = Audio(clicks, RATE).normalize(loudness=-10)
    assert found.peak <= 10 ** (-1 / 20) + 1e-4


# pictures -----------------------------------------------------------------------------------------
def test_the_waveform_shows_smallest_and_largest_samples():
    made = np.zeros((400, 2), np.float32)
    made[200:300, 0] = 1.0
    made[200:300, 1] = -1.0
    picture = np.asarray(Audio(made, RATE).waveform(4, 22, color="red", background="black"))
    red = picture[..., 0] == 255
    assert [np.flatnonzero(red[:, c]).tolist() for c in range(4)][:2] == [[5, 16], [5, 16]]
    assert np.flatnonzero(red[:, 2]).tolist() == [0, 21]
    with pytest.raises(dala.ParameterError, match="width must be an int"):
        audio.tone(440, 0.1).waveform(0)


def test_the_spectrogram_shows_frequency_and_time(engine_id):
    rising = audio.concat(*(audio.tone(f, 0.25, rate=8000) for f in (500, 1000, 2000, 3000)))
    picture = np.asarray(rising.spectrogram(40, 81, window=512)).astype(int)
    for part, frequency in enumerate((500, 1000, 2000, 3000)):
        column = picture[:, part * 10 + 5, :3].sum(axis=1)
        assert 4000 * (1 - np.argmax(column) / 80) == pytest.approx(frequency, abs=60)


def test_warnings_are_notices():
    assert issubclass(MediaNotice, UserWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        audio.tone(440, 0.1).normalize()
