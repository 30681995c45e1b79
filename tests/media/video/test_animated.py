"""Animated GIF, APNG and WebP: frames, times, transparency and plays, in and out."""

import io
import struct
import warnings
import zlib
from fractions import Fraction

import numpy as np
import pytest

from dala.errors import DeviceUnavailable, FreedError, ParameterError, ShapeError, VideoError
from dala.media import Frame, Scene, video
from dala.media.notices import MediaNotice
from dala.media.video.reader import Reader

pytest.importorskip("av")
Image = pytest.importorskip("PIL.Image")

#: Colors that survive a palette exactly: few of them.
RED, GREEN, BLUE, NONE = (255, 0, 0, 255), (0, 200, 0, 255), (0, 0, 255, 255), (0, 0, 0, 0)


# GIF files by hand -------------------------------------------------------------------------------
def packed(indices):
    """Return LZW data of indices below 4, with a clear code before each: no compression."""
    bits, count, out = 0, 0, bytearray()
    for code in [c for i in indices for c in (4, i)] + [5]:
        bits |= code << count
        count += 3
        while count >= 8:
            out.append(bits & 255)
            bits, count = bits >> 8, count - 8
    out.append(bits & 255)
    return b"\x02" + bytes([len(out)]) + bytes(out) + b"\0"


def picture(indices, box, delay=10, disposal=0, key=None):
    flags = disposal << 2 | (key is not None)
    control = b"\x21\xf9\x04" + struct.pack("<BHBB", flags, delay, key or 0, 0)
    return control + b"\x2c" + struct.pack("<4HB", *box, 0) + packed(indices)


def gif(width, height, *pictures, repeats=None):
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x81, 0, 0)
    colors = bytes([255, 0, 0, 0, 200, 0, 0, 0, 255, 9, 9, 9])
    loop = b""
    if repeats is not None:
        loop = b"\x21\xff\x0bNETSCAPE2.0\x03\x01" + struct.pack("<H", repeats) + b"\0"
    return head + colors + loop + b"".join(pictures) + b";"


def frames_of(path, **options):
    with video.open(path, device="cpu", **options) as reader:
        return [(f.numpy().copy(), f.time, f.duration * f.time_base) for f in reader]


def pixels(frames):
    return [[tuple(map(int, p)) for p in frame[0].reshape(-1, 4)] for frame in frames]


def write(path, *parts):
    path.write_bytes(parts[0] if len(parts) == 1 else b"".join(parts))
    return path


# reading -----------------------------------------------------------------------------------------
def test_offsets_and_disposal(tmp_path):
    whole = (0, 0, 3, 1)
    path = write(tmp_path / "a.gif", gif(
        3, 1,
        picture([0, 0, 0], whole),
        picture([1], (1, 0, 1, 1), disposal=3),  # shown, then what was there comes back
        picture([2], (2, 0, 1, 1), disposal=2, key=3),  # shown, then cleared
        picture([1], (0, 0, 1, 1)),
    ))  # fmt: skip
    assert pixels(frames_of(path)) == [
        [RED, RED, RED],
        [RED, GREEN, RED],
        [RED, RED, BLUE],
        [GREEN, RED, NONE],
    ]


def test_pictures_beyond_the_canvas(tmp_path):
    path = write(tmp_path / "a.gif", gif(
        2, 1, picture([0, 0], (0, 0, 2, 1)), picture([1, 2], (1, 0, 2, 1)),
        picture([1], (5, 5, 1, 1)),
    ))  # fmt: skip
    assert pixels(frames_of(path)) == [[RED, RED], [RED, GREEN], [RED, GREEN]]


def test_key_color(tmp_path):
    path = write(tmp_path / "a.gif", gif(2, 1, picture([0, 3], (0, 0, 2, 1), key=3)))
    assert [p[3] for p in pixels(frames_of(path))[0]] == [255, 0]


def test_delays_and_plays(tmp_path):
    box = (0, 0, 1, 1)
    pictures = [picture([i % 3], box, delay) for i, delay in enumerate([7, 0, 1, 2, 250])]
    path = write(tmp_path / "a.gif", gif(1, 1, *pictures, repeats=2))
    found = frames_of(path)
    assert [d for _, _, d in found] == [Fraction(n, 100) for n in (7, 10, 10, 2, 250)]
    assert [t for _, t, _ in found] == [Fraction(n, 100) for n in (0, 7, 17, 27, 29)]
    with video.open(path) as reader:
        assert (reader.loop, reader.frames, reader.duration) == (3, 5, 2.79)
        assert reader.fps == Fraction(500, 279)
        reader.seek(0.17)
        assert [f.pts for f in reader] == [17, 27, 29]
        reader.seek(99)
        assert next(reader).pts == 29
        assert [f.pts for f in reader] == []
        assert [f.pts for f in reader] == [0, 7, 17, 27, 29]


@pytest.mark.parametrize(("repeats", "plays"), [(None, 1), (0, 0), (1, 2)])
def test_plays_of_gif(tmp_path, repeats, plays):
    path = write(tmp_path / "a.gif", gif(1, 1, picture([0], (0, 0, 1, 1)), repeats=repeats))
    with video.open(path) as reader:
        assert reader.loop == plays


def test_apng_with_a_picture_for_old_viewers(tmp_path):
    images = [Image.new("RGBA", (2, 2), color) for color in (NONE, RED, GREEN)]
    images[0].save(tmp_path / "a.png", save_all=True, append_images=images[1:], default_image=True,
                   duration=[33, 66], loop=4)  # fmt: skip
    found = frames_of(tmp_path / "a.png")
    assert [p[0] for p in pixels(found)] == [RED, GREEN]
    assert [d for _, _, d in found] == [Fraction(33, 1000), Fraction(66, 1000)]
    with video.open(tmp_path / "a.png") as reader:
        assert (reader.loop, reader.codec) == (4, "apng")


def test_apng_that_promises_nothing(tmp_path):
    """Without a number of frames it is a still picture, as for browsers."""
    images = [Image.new("RGBA", (2, 2), color) for color in (RED, GREEN)]
    images[0].save(tmp_path / "a.png", save_all=True, append_images=images[1:])
    data = (tmp_path / "a.png").read_bytes()
    at = data.index(b"acTL")
    empty = b"acTL" + bytes(8)
    empty += struct.pack(">I", zlib.crc32(empty))
    write(tmp_path / "a.png", data[:at] + empty + data[at + 16 :])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's, about the number
        assert [p[0] for p in pixels(frames_of(tmp_path / "a.png"))] == [RED]


def test_float_frames(tmp_path):
    path = write(tmp_path / "a.gif", gif(1, 1, picture([1], (0, 0, 1, 1))))
    with video.open(path, device="cpu", depth="float") as reader:
        np.testing.assert_allclose(next(reader).numpy()[0, 0], [0, 200 / 255, 0, 1])


def test_single_pictures(tmp_path):
    for name in ("a.gif", "a.webp"):
        Image.new("RGB", (3, 2), RED[:3]).save(tmp_path / name)
        found = frames_of(tmp_path / name)
        assert len(found) == 1
        assert np.abs(found[0][0][0, 0].astype(int) - RED).max() < 4


def test_every_property_of_a_reader(tmp_path):
    path = write(tmp_path / "a.gif", gif(2, 1, picture([0, 1], (0, 0, 2, 1))))
    reader = video.open(path)
    names = [name for name in dir(Reader) if isinstance(getattr(Reader, name), property)]
    for name in names:
        getattr(reader, name)
    assert (reader.width, reader.height, reader.has_audio, reader.rotation) == (2, 1, False, 0)
    assert repr(reader) == f"<Reader {str(path)!r} 2x1 gif, 1 frames>"
    assert [f.format for f in reader] == ["rgba"]
    reader.close()
    reader.close()
    with pytest.raises(FreedError, match="is closed"):
        next(reader)


def test_truncated_files_give_what_they_have(tmp_path):
    data = gif(1, 1, *(picture([i], (0, 0, 1, 1)) for i in range(3)))
    path = write(tmp_path / "a.gif", data[:-8])
    seen = []
    with (
        pytest.raises(VideoError, match=r"a.gif' is damaged after 2 frames \(the file ends"),
        video.open(path, device="cpu") as reader,
    ):
        for frame in reader:
            seen.append(tuple(map(int, frame.numpy()[0, 0])))
    assert seen == [RED, GREEN]


@pytest.mark.parametrize("kind", ["gif", "apng", "webp"])
def test_damaged_files_raise_one_error(tmp_path, kind):
    images = [Image.new("RGBA", (8, 8), color) for color in (RED, GREEN, BLUE)]
    out = io.BytesIO()
    format = "png" if kind == "apng" else kind
    images[0].save(out, format, save_all=True, append_images=images[1:], duration=50)
    whole = out.getvalue()
    rng = np.random.default_rng(3)
    for _ in range(40):
        data = bytearray(whole[: rng.integers(13, len(whole) + 1)])
        data[rng.integers(13, len(data) + 1) - 1] ^= int(rng.integers(1, 256))
        path = write(tmp_path / f"a.{kind}", bytes(data))
        try:
            count = len(frames_of(path))
        except VideoError:
            count = 0
        assert count <= 300


def test_sizes_are_checked_before_decoding(tmp_path):
    path = write(tmp_path / "a.gif", gif(60000, 60000, picture([0], (0, 0, 1, 1))))
    with pytest.raises(VideoError, match=r"60000 x 60000 pixels|exceeds limit"):
        video.open(path)


def test_no_hardware(tmp_path):
    path = write(tmp_path / "a.gif", gif(1, 1, picture([0], (0, 0, 1, 1))))
    with pytest.raises(DeviceUnavailable, match="which no hardware decodes"):
        video.open(path, hwaccel="cuda")


# writing -----------------------------------------------------------------------------------------
def moving(count=4, width=9, height=7, alpha=True):
    """Return frames of a red bar that moves over nothing, or over green."""
    made = []
    for i in range(count):
        frame = np.zeros((height, width, 4), np.uint8)
        frame[:] = NONE if alpha else GREEN
        frame[:, i : i + 2] = RED
        made.append(frame)
    return made


@pytest.mark.parametrize("name", ["a.gif", "a.apng", "a.webp"])
@pytest.mark.parametrize("alpha", [False, True])
def test_round_trip(tmp_path, name, alpha):
    """Odd sizes, unequal delays, transparency, plays and the last delay are kept."""
    frames, times = moving(alpha=alpha), [0, 4, 11, 13]
    options = {"lossless": 1} if name == "a.webp" else None
    with video.write(tmp_path / name, loop=3, options=options) as sink:
        for pixels_, time in zip(frames, times, strict=True):
            sink.write(
                Frame.from_array(pixels_, device="cpu", pts=time, time_base="1/100", duration=70)
            )
    found = frames_of(tmp_path / name)
    assert [t for _, t, _ in found] == [Fraction(t, 100) for t in times]
    assert found[-1][2] == Fraction(70, 100)
    for (got, _, _), wanted in zip(found, frames, strict=True):
        shown = wanted[..., 3] > 0
        np.testing.assert_array_equal(got[..., 3], wanted[..., 3])
        np.testing.assert_array_equal(got[shown], wanted[shown])
    with video.open(tmp_path / name) as reader:
        assert reader.loop == 3
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(("loop", "plays"), [(None, 0), (0, 0), (1, 1), (2, 2)])
def test_plays_are_written(tmp_path, loop, plays):
    for name in ("a.gif", "a.apng", "a.webp"):
        video.write(tmp_path / name, moving(2), fps=10, loop=loop)
        with video.open(tmp_path / name) as reader:
            assert reader.loop == plays


def test_times_are_exact_or_do_not_drift(tmp_path):
    frames = moving(4)
    video.write(tmp_path / "a.apng", frames, fps=30)
    assert [t for _, t, _ in frames_of(tmp_path / "a.apng")] == [Fraction(i, 30) for i in range(4)]
    video.write(tmp_path / "a.gif", frames, fps=30)
    assert [t for _, t, _ in frames_of(tmp_path / "a.gif")] == [
        Fraction(t, 100) for t in (0, 3, 7, 10)
    ]
    with pytest.warns(MediaNotice, match="gif has at most 50 frames per second; 1 of 4 frames"):
        video.write(tmp_path / "b.gif", frames, fps=60)
    assert [t for _, t, _ in frames_of(tmp_path / "b.gif")] == [Fraction(t, 100) for t in (0, 2, 5)]


def test_lossy_webp_is_transparent(tmp_path):
    """Also where every frame is opaque, but smaller than the canvas."""
    frames = moving(2, 24, 16)
    video.write(tmp_path / "a.webp", frames, fps=10, options={"quality": 90})
    for (got, _, _), wanted in zip(frames_of(tmp_path / "a.webp"), frames, strict=True):
        np.testing.assert_array_equal(got[..., 3], wanted[..., 3])
        shown = wanted[..., 3] > 0
        assert np.abs(got[shown].astype(int) - wanted[shown]).max() < 30


def test_many_colors(tmp_path):
    """A gradient keeps its colors closely, with a palette for all frames or one for each."""
    y, x = np.mgrid[0:32, 0:48]
    frames = [np.stack([x * 5, y * 7, (x + y + 30 * i) % 256], -1).astype(np.uint8)
              for i in range(3)]  # fmt: skip
    errors = {}
    for palette in ("global", "frame"):
        video.write(tmp_path / "a.gif", frames, fps=10, options={"palette": palette})
        found = [f[0][..., :3].astype(float) for f in frames_of(tmp_path / "a.gif")]
        errors[palette] = np.mean(
            [np.abs(a - b).mean() for a, b in zip(found, frames, strict=True)]
        )
    assert errors["global"] < 12
    assert errors["frame"] < errors["global"]
    video.write(tmp_path / "b.gif", frames, fps=10, options={"colors": 8, "dither": "none"})
    colors = {tuple(p) for f in frames_of(tmp_path / "b.gif") for p in f[0].reshape(-1, 4)}
    assert len(colors) <= 8


def test_frames_of_all_kinds(tmp_path):
    gray = np.full((4, 6), 200, np.uint8)
    light = np.full((4, 6, 3), 1.0, np.float32)
    planes = Frame.from_array(np.full((6, 6), 128, np.uint8), format="i420", device="cpu")
    video.write(tmp_path / "a.gif", [gray, light, Image.new("RGB", (6, 4), RED[:3]), planes], fps=5)
    found = [tuple(map(int, f[0][0, 0])) for f in frames_of(tmp_path / "a.gif")]
    assert found == [(200, 200, 200, 255), (255, 255, 255, 255), RED, (130, 130, 130, 255)]


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda p: video.write(p / "a.gif", moving(), fps=9, options={"crf": 20}), ParameterError,
     "video.write: gif has no option 'crf'. It has colors, dither"),
    (lambda p: video.write(p / "a.gif", moving(), fps=9, options={"dither": "x"}), ParameterError,
     "video.write: dither must be one of 'none', 'bayer'"),
    (lambda p: video.write(p / "a.gif", moving(), fps=9, options={"colors": 1}), ParameterError,
     "video.write: colors must be an int from 3 to 256, got '1'."),
    (lambda p: video.write(p / "a.gif", moving(), fps=9, loop=-1), ParameterError,
     "video.write: loop must be the number of plays, 0 for forever, got -1."),
    (lambda p: video.write(p / "a.mp4", moving(), fps=9, loop=1), ParameterError,
     "video.write: loop is for animated pictures"),
    (lambda p: video.write(p / "a.gif", moving(), fps=9, audio_from="x.mp4"), ParameterError,
     "video.write: gif has no sound. Leave out audio_from."),
    (lambda p: video.write(p / "a.gif", moving(), fps=9, matrix="bt709"), ParameterError,
     "video.write: gif is coded as RGB. Leave out matrix."),
    (lambda p: video.write(p / "a.webp", moving(), fps=9, range="full"), ParameterError,
     "video.write: webp is coded as RGB. Leave out range."),
    (lambda p: video.write(p / "a.gif", moving()), ParameterError,
     "video.write: the frame has no time (its pts is None). Give fps."),
    (lambda p: video.write(p / "a.gif", [], fps=9), VideoError,
     "video.write: no frame was written"),
    (lambda p: video.write(p / "a.gif", [*moving(1), *moving(1, 4, 4)], fps=9), ShapeError,
     "video.write: frames of"),
    (lambda p: video.write(p / "no" / "a.gif", moving(), fps=9), VideoError,
     "video.write: no such folder"),
])  # fmt: skip
def test_errors(tmp_path, call, error, text):
    with pytest.raises(error) as caught:
        call(tmp_path)
    assert str(caught.value).startswith(text)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["gif", "apng", "webp"])
def test_file_objects(tmp_path, kind):
    out = io.BytesIO()
    video.write(out, moving(3), format=kind, fps=10, loop=2)
    path = write(tmp_path / "a.bin", out.getvalue())
    assert len(frames_of(path)) == 3
    video.write(tmp_path / "b.bin", moving(3), format=kind, fps=10, loop=2)
    assert (tmp_path / "b.bin").read_bytes() == out.getvalue()


def test_abandoned_writers_leave_no_file(tmp_path):
    (tmp_path / "a.gif").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), video.write(tmp_path / "a.gif", fps=9) as sink:
        sink.write(moving()[0])
        raise KeyboardInterrupt
    assert sink.closed
    assert (tmp_path / "a.gif").read_bytes() == b"old"
    with pytest.raises(FreedError, match="is closed"):
        sink.write(moving()[0])


# scenes ------------------------------------------------------------------------------------------
def test_scenes_play_and_render_animations(tmp_path):
    video.write(tmp_path / "in.gif", [np.full((5, 7, 4), c, np.uint8) for c in (RED, GREEN)], fps=5)
    with Scene(7, 5, fps=5, device="cpu") as scene:
        scene.add_video(tmp_path / "in.gif", position=(0, 0), size=(7, 5))
        assert scene.render_to(tmp_path / "out.gif", progress=False) == 2
    assert [p[17] for p in pixels(frames_of(tmp_path / "out.gif"))] == [RED, GREEN]


def test_frame_open_counts(tmp_path):
    video.write(tmp_path / "a.gif", moving(3), fps=5)
    with pytest.warns(MediaNotice, match=r"a.gif has 3 pictures; this is the first. video.open"):
        assert Frame.open(tmp_path / "a.gif", device="cpu").pictures == 3


@pytest.mark.parametrize("kind", ["gif", "apng", "webp"])
@pytest.mark.parametrize("way", ["bytes", "file", "pipe"])
def test_animations_in_memory_are_read_as_those_in_files(tmp_path, kind, way):
    pictures = [np.full((20, 30, 3), 60 * n, np.uint8) for n in range(4)]
    path = tmp_path / f"a.{kind}"
    video.write(path, pictures, fps=10, loop=3)
    data = path.read_bytes()
    given = {"bytes": data, "file": io.BytesIO(data), "pipe": Pipe(data)}[way]
    with video.open(given) as reader, video.open(path) as other:
        assert (reader.loop, reader.width, reader.height) == (3, 30, 20)
        for one, same in zip(reader, other, strict=True):
            assert (one.time, one.duration) == (same.time, same.duration)
            np.testing.assert_array_equal(np.asarray(one), np.asarray(same))


class Pipe:
    """A stream that cannot seek, and returns a few bytes at a time."""

    def __init__(self, data):
        self._data = io.BytesIO(data)

    def read(self, count):
        return self._data.read(min(count, 7))
