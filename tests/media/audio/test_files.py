"""Sound files: written and read again, sought, in blocks; damaged, empty and strange ones."""

import io
import struct
from fractions import Fraction

import av
import numpy as np
import pytest

import dala
from dala.media import audio
from dala.media.audio import Audio
from dala.media.notices import MediaNotice, collected

RATE = 44100
FORMATS = ("wav", "flac", "mp3", "m4a", "ogg", "mka")


def chirp(rate=RATE, channels=2, seconds=2.0):
    at = np.arange(round(rate * seconds)) / rate
    voices = [
        0.3
        * np.sin(2 * np.pi * (200 * (c + 1) * at + 300 * at * at))
        * (0.6 + 0.4 * np.sin(8 * at))
        for c in range(channels)
    ]
    return Audio(np.stack(voices, 1), rate)


def lag(a, b):
    """Samples by which b is later than a."""
    count = 1 << (len(a) + len(b)).bit_length()
    spectra = (np.fft.rfft(x.samples[:, 0].astype(np.float64), count) for x in (a, b))
    first, second = spectra
    at = int(np.argmax(np.fft.irfft(second * np.conj(first), count)))
    return at - count if at > count // 2 else at


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sounds")
    made = chirp()
    for suffix in FORMATS:
        target = made.resample(48000) if suffix == "ogg" else made
        target.save(folder / f"chirp.{suffix}")
    return folder


@pytest.mark.parametrize("suffix", FORMATS)
def test_written_and_read_again(files, suffix):
    expected = chirp().resample(48000) if suffix == "ogg" else chirp()
    with audio.open(files / f"chirp.{suffix}") as reader:
        assert (reader.rate, reader.layout) == (expected.rate, "stereo")
        assert float(reader.duration) == pytest.approx(2, abs=0.01)
        found = reader.read()
    assert found.start == 0
    assert len(found) == len(expected)
    assert lag(expected, found) == 0
    error = np.sqrt(np.mean((found.samples - expected.samples) ** 2)) / expected.rms
    assert error < {"wav": 1e-4, "flac": 1e-6, "mka": 1e-6}.get(suffix, 0.05)


@pytest.mark.parametrize("suffix", FORMATS)
def test_seeking_is_exact(files, suffix):
    with audio.open(files / f"chirp.{suffix}") as reader:
        whole = reader.read()
        for second in (1.5, 0.25, 0.0, 1.234567, 1.9):
            reader.seek(second)
            part = reader.read(0.03)
            first = round(second * reader.rate)
            assert part.start == Fraction(first, reader.rate)
            assert np.array_equal(part.samples, whole.samples[first : first + len(part)])
        reader.seek(99)
        assert len(reader.read()) == 0
        assert list(reader) == []


def test_seeking_with_conversion_is_as_without(files):
    with audio.open(files / "chirp.flac", rate=48000, layout="mono") as reader:
        whole = reader.read()
        reader.seek(1.1)
        part = reader.read(0.1)
    first = round(1.1 * 48000)
    assert np.allclose(part.samples, whole.samples[first : first + len(part)], atol=1e-6)
    assert np.allclose(whole.samples, chirp().resample(48000, layout="mono").samples, atol=1e-6)


def test_blocks(files):
    with audio.open(files / "chirp.flac", block=1000) as reader:
        blocks = list(reader)
    assert [len(b) for b in blocks[:-1]] == [1000] * (len(blocks) - 1)
    assert [b.start for b in blocks] == [Fraction(1000 * n, RATE) for n in range(len(blocks))]
    joined = np.concatenate([b.samples for b in blocks])
    assert np.allclose(joined, chirp().samples, atol=1e-6)


def test_bytes_and_file_objects(files):
    data = (files / "chirp.flac").read_bytes()
    with audio.open(data) as reader, audio.open(io.BytesIO(data)) as other:
        assert reader.read() == other.read()
    target = io.BytesIO()
    audio.tone(440, 0.1, rate=8000).save(target, format="wav")
    with audio.open(target.getvalue()) as reader:
        assert len(reader.read()) == 800


@pytest.mark.parametrize("rate", [8000, 11025, 16000, 32000, 96000, 192000])
def test_rates(tmp_path, rate):
    audio.tone(440, 0.2, amplitude=0.5, rate=rate).save(tmp_path / "t.wav")
    with audio.open(tmp_path / "t.wav", rate=48000) as reader:
        found = reader.read()
    assert len(found) == 9600
    expected = audio.tone(440, 0.2, amplitude=0.5).samples
    assert np.abs(found.samples - expected)[1000:-1000].max() < 3e-3


@pytest.mark.parametrize("layout", ["mono", "stereo", "5.1", "7.1"])
def test_layouts(tmp_path, layout):
    made = chirp(48000, {"mono": 1, "stereo": 2, "5.1": 6, "7.1": 8}[layout], 0.2)
    for codec in ("flac", "pcm24", "pcm_float"):
        made.save(tmp_path / "t.mka", codec=codec)
        with audio.open(tmp_path / "t.mka") as reader:
            assert reader.layout == layout
            assert np.allclose(reader.read().samples, made.samples, atol=2e-7)


def test_float_files_keep_what_is_above_full_scale(tmp_path):
    audio.tone(440, 0.1, amplitude=3).save(tmp_path / "t.wav", codec="pcm_float")
    with audio.open(tmp_path / "t.wav") as reader:
        assert reader.read().peak == pytest.approx(3, abs=1e-3)


def test_conversions_are_reported(tmp_path):
    with pytest.warns(
        MediaNotice, match="mp3 does not hold 96000 Hz 5.1; it is converted to 48000 Hz stereo"
    ):
        audio.silence(0.1, rate=96000, layout="5.1").save(tmp_path / "t.mp3")


# strange and damaged files ------------------------------------------------------------------------
def tracks(path, count, rate=48000, languages=()):
    """A file with several tracks, the nth a tone of 200 * (n + 1) Hz."""
    with av.open(str(path), "w") as output:
        streams = [output.add_stream("pcm_s16le", rate=rate, layout="mono") for _ in range(count)]
        for stream, language in zip(streams, languages, strict=False):
            stream.metadata["language"] = language
        for number, stream in enumerate(streams):
            tone = audio.tone(200 * (number + 1), 0.5, amplitude=0.5, rate=rate).samples.T
            frame = av.AudioFrame.from_ndarray(
                np.ascontiguousarray(tone), format="fltp", layout="mono"
            )
            frame.sample_rate, frame.pts = rate, 0
            for packet in [*stream.encode(frame), *stream.encode(None)]:
                output.mux(packet)


def pitch(sound):
    return np.argmax(np.abs(np.fft.rfft(sound.samples[:, 0]))) / float(sound.duration)


def test_eight_tracks(tmp_path):
    tracks(tmp_path / "eight.mkv", 8, languages=("eng", "deu"))
    with audio.open(tmp_path / "eight.mkv") as reader:
        assert [t.number for t in reader.tracks] == list(range(8))
        assert [t.language for t in reader.tracks][:2] == ["eng", "deu"]
    for number in range(8):
        with audio.open(tmp_path / "eight.mkv", track=number) as reader:
            assert pitch(reader.read()) == pytest.approx(200 * (number + 1), abs=2)
    with audio.open(tmp_path / "eight.mkv", track="deu") as reader:
        assert pitch(reader.read()) == pytest.approx(400, abs=2)
    with pytest.raises(dala.ParameterError, match="track must be an int from 0 to 7, got 8"):
        audio.open(tmp_path / "eight.mkv", track=8)
    with pytest.raises(dala.ParameterError, match=r"got 'fra'. The file has: deu, eng"):
        audio.open(tmp_path / "eight.mkv", track="fra")


def test_no_sound(tmp_path):
    dala.media.video.write(tmp_path / "mute.mp4", [np.zeros((16, 16, 3), np.uint8)] * 2, fps=10)
    with pytest.raises(
        dala.AudioError, match=r"audio\.open: .*mute.mp4' has no sound. It has: video"
    ):
        audio.open(tmp_path / "mute.mp4")


def test_missing_and_wrong_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"audio\.open: no such file"):
        audio.open(tmp_path / "none.wav")
    (tmp_path / "text.wav").write_text("not a sound" * 100)
    (tmp_path / "empty.wav").touch()
    for name in ("text.wav", "empty.wav", ""):
        with pytest.raises(dala.AudioError, match=r"audio\.open"):
            audio.open(tmp_path / name)
    with pytest.raises(dala.ParameterError, match="source must be a path"):
        audio.open(3.5)


def test_nan_in_a_file_is_silence(tmp_path):
    made = audio.tone(440, 0.1, amplitude=0.5, rate=8000).numpy()
    made[100], made[200] = np.nan, np.inf
    data = made.astype("<f4").tobytes()
    header = b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt "
    header += struct.pack("<IHHIIHH", 16, 3, 1, 8000, 32000, 4, 32) + b"data"
    (tmp_path / "nan.wav").write_bytes(header + struct.pack("<I", len(data)) + data)
    with (
        audio.open(tmp_path / "nan.wav") as reader,
        pytest.warns(MediaNotice, match="2 samples of NaN or infinity"),
    ):
        blocks = list(reader)
    found = np.concatenate([b.samples for b in blocks])
    assert found[100] == found[200] == 0
    assert np.array_equal(np.delete(found, [100, 200]), np.delete(made, [100, 200]))


def test_an_empty_track(tmp_path):
    Audio(np.zeros((0, 2)), 48000).save(tmp_path / "none.wav")
    with audio.open(tmp_path / "none.wav") as reader:
        assert len(reader.read()) == 0
        assert list(reader) == []


def test_a_broken_track_stays_in_time(files, tmp_path):
    data = bytearray((files / "chirp.mp3").read_bytes())
    middle = len(data) // 2
    data[middle : middle + 3000] = b"\x00" * 3000
    (tmp_path / "broken.mp3").write_bytes(data)
    with audio.open(files / "chirp.mp3") as reader:
        whole = reader.read()
    with collected(), audio.open(tmp_path / "broken.mp3") as reader:
        found = reader.read()
    assert abs(len(found) - len(whole)) < RATE // 10
    assert np.allclose(found.samples[:20000], whole.samples[:20000])


def test_a_truncated_file_gives_what_it_has(files, tmp_path):
    data = (files / "chirp.flac").read_bytes()
    (tmp_path / "cut.flac").write_bytes(data[: len(data) // 2])
    with audio.open(tmp_path / "cut.flac") as reader:
        found = reader.read()
    assert 0.3 < float(found.duration) < 1.8
    assert np.allclose(found.samples[:20000], chirp().samples[:20000], atol=1e-6)


def test_damaged_packets_are_silence_and_reported(tmp_path):
    path = tmp_path / "t.mka"
    audio.tone(440, 1, amplitude=0.5).save(path, codec="flac")
    data = bytearray(path.read_bytes())
    place = len(data) // 2
    for at in range(place, place + 2000):
        data[at] ^= 0x5A
    path.write_bytes(data)
    with (
        audio.open(path) as reader,
        pytest.warns(MediaNotice, match="damaged packets of its sound are silence"),
    ):
        blocks = list(reader)
    found = np.concatenate([b.samples for b in blocks])
    assert len(found) == 48000
    expected = audio.tone(440, 1, amplitude=0.5).samples
    same = np.abs(found - expected)[:, 0] < 1e-6
    assert same[:8000].all()
    assert same[-8000:].all()
    assert not same.all()


def test_a_gap_between_stamps_is_silence(tmp_path):
    path = tmp_path / "gap.mka"
    rate = 48000
    with av.open(str(path), "w") as output:
        stream = output.add_stream("pcm_s16le", rate=rate)
        stream.layout = "mono"
        for at in (0, 24000, 33600):  # half a second missing, then an overlap
            tone = np.full((1, 9600), 0.5, np.float32)
            frame = av.AudioFrame.from_ndarray(tone, format="fltp", layout="mono")
            frame.sample_rate, frame.pts = rate, at
            for packet in stream.encode(frame):
                output.mux(packet)
        for packet in stream.encode(None):
            output.mux(packet)
    with audio.open(path) as reader:
        found = reader.read().samples[:, 0]
    assert len(found) == 43200
    assert (found[:9600] > 0.4).all()
    assert (found[9600:24000] == 0).all()
    assert (found[24000:] > 0.4).all()


def test_save_leaves_no_file_on_errors(tmp_path):
    made = audio.tone(440, 0.1)
    for path, text in (
        (tmp_path / "x.xyz", "there is no container 'xyz'"),
        (tmp_path / "x", "has no suffix"),
        (tmp_path / "none" / "x.wav", "no such folder"),
        (tmp_path, "is a folder"),
        (io.BytesIO(), "Give format"),
        (7, "the name of a file to write"),
    ):
        with pytest.raises(dala.DalaError, match=text):
            made.save(path)
    for options, text in (
        ({"codec": "acc"}, "Did you mean 'aac' or 'ac3'"),
        ({"bit_rate": 3}, "bit_rate must be an int"),
        ({"codec": "opus"}, "cannot"),
    ):
        with pytest.raises(dala.DalaError, match=text):
            made.save(tmp_path / "x.wav", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_closed_reader(files):
    reader = audio.open(files / "chirp.wav")
    before = dala.diagnostics()["objects"]["audio reader"]["count"]
    reader.close()
    reader.close()
    assert dala.diagnostics()["objects"]["audio reader"]["count"] == before - 1
    with pytest.raises(dala.FreedError, match="is closed"):
        reader.read()
    with pytest.raises(dala.FreedError, match="is closed"):
        next(reader)


def test_reading_a_long_file_respects_the_memory_limit(files):
    with (
        audio.open(files / "chirp.wav") as reader,
        dala.limits(memory=1000),
        pytest.raises(dala.LimitExceeded, match=r"AudioReader\.read"),
    ):
        reader.read()
