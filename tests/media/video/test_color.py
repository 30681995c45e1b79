"""Colours of videos, against FFmpeg's own conversion (swscale) and against what was put in.

swscale mixes chroma at edges in another way, so pictures are compared where they are flat: there
ours must be within 2 of 255 of what was put in (two roundings, of which one is to limited range)
and within 3 of swscale's, which works with whole numbers and is itself up to 2 off.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from dala.errors import ParameterError
from dala.media import Frame, video
from tests.media.video.clips import TAGS, av, encode, source

RANGES = {"limited": 1, "full": 2}
NEAR = 2
NEAR_SWSCALE = 3


def bars(path, matrix, range, pixels="yuv420p", codec="ffv1", name="smptebars", size="192x128"):
    """A lossless clip of color bars, converted by swscale; and the bars as RGB."""
    (rgb,) = islice(source(name, size), 1)
    yuv = rgb.reformat(
        format=pixels,
        dst_colorspace=TAGS[matrix],
        dst_color_range=RANGES[range],
        src_color_range=2,
    )
    encode(path, [yuv], codec=codec, pixels=pixels, tags=(RANGES[range], TAGS[matrix]))
    return rgb.to_ndarray()


def swscale(path, matrix, range):
    with av.open(str(path)) as file:
        frame = next(file.decode(video=0))
        made = frame.reformat(
            format="rgb24",
            src_colorspace=TAGS[matrix],
            dst_colorspace=TAGS[matrix],
            src_color_range=RANGES[range],
            dst_color_range=2,
        )
        return made.to_ndarray()


def ours(path, **options):
    with video.open(path, **options) as reader:
        return np.array(next(iter(reader)))


def flat(picture, margin=4):
    """Where a picture is the same for some pixels on all sides."""
    p = picture.astype(int)
    same = np.ones(p.shape[:2], bool)
    for axis in (0, 1):
        step = np.abs(np.diff(p, axis=axis)).max(axis=2) > 0
        for shift in range(-margin, margin):
            moved = np.roll(step, shift, axis=axis)
            cut = [slice(None), slice(None)]
            cut[axis] = slice(0, step.shape[axis])
            same[tuple(cut)] &= ~moved
    assert same.mean() > 0.3
    return same


def worst(a, b, where):
    return int(np.abs(a[..., :3].astype(int) - b[..., :3].astype(int))[where].max())


@pytest.mark.parametrize("range", ["limited", "full"])
@pytest.mark.parametrize("matrix", ["bt601", "bt709", "bt2020"])
def test_matrix_and_range(tmp_path, engine_id, matrix, range):
    put_in = bars(tmp_path / "a.mkv", matrix, range)
    where = flat(put_in)
    made = ours(tmp_path / "a.mkv")
    assert worst(made, put_in, where) <= NEAR
    assert worst(made, swscale(tmp_path / "a.mkv", matrix, range), where) <= NEAR_SWSCALE
    assert (made[..., 3] == 255).all()


def test_wrong_matrix_is_detectable(tmp_path):
    put_in = bars(tmp_path / "a.mkv", "bt601", "limited")
    where = flat(put_in)
    assert worst(ours(tmp_path / "a.mkv", matrix="bt709"), put_in, where) > 10
    assert worst(ours(tmp_path / "a.mkv", range="full"), put_in, where) > 10


@pytest.mark.parametrize(
    "pixels",
    [
        "yuv420p10le",
        "yuv422p",
        "yuv422p10le",
        "yuv444p",
        "yuv444p10le",
        "yuv420p16le",
        "yuv411p",
        "yuva420p",
    ],
)
@pytest.mark.parametrize("range", ["limited", "full"])
def test_other_depths_and_chromas(tmp_path, pixels, range):
    put_in = bars(tmp_path / "a.mkv", "bt709", range, pixels)
    made = ours(tmp_path / "a.mkv", device="cpu")
    assert worst(made, put_in, flat(put_in, 8 if pixels == "yuv411p" else 4)) <= NEAR


@pytest.mark.parametrize(("pixels", "codec"), [("bgr0", "ffv1"), ("gbrp", "utvideo")])
def test_rgb_is_unchanged(tmp_path, pixels, codec):
    (rgb,) = islice(source("testsrc2"), 1)
    encode(tmp_path / "a.avi", [rgb.reformat(format=pixels)], codec=codec, pixels=pixels)
    assert np.array_equal(ours(tmp_path / "a.avi", device="cpu")[..., :3], rgb.to_ndarray())


def test_ten_bits_are_rounded(tmp_path):
    ramp = np.tile(np.arange(64, 64 + 192, dtype=np.uint16) * 3, (128, 1))
    ten = av.VideoFrame(192, 128, "yuv420p10le")
    for plane, fill in zip(ten.planes, (ramp, 512, 512), strict=True):
        rows = np.frombuffer(plane, np.uint16).reshape(plane.height, -1)
        rows[:, : plane.width] = fill
    path = encode(tmp_path / "a.mkv", [ten], codec="ffv1", pixels="yuv420p10le", tags=(1, 1))
    with video.open(path, format="native", device="cpu") as reader:
        frame = next(reader)
        assert frame.format == "i420"
        luma = np.asarray(frame)[:128]
    expected = np.floor(ramp / 4 + 0.5).clip(0, 255)
    assert np.array_equal(luma, expected)


def test_gray_is_gray(tmp_path):
    ramp = np.tile(np.arange(128, dtype=np.uint8), (64, 1))
    frame = av.VideoFrame.from_ndarray(ramp, "gray")
    encode(tmp_path / "a.mkv", [frame], codec="ffv1", pixels="gray", tags=(2, 2))
    assert np.array_equal(ours(tmp_path / "a.mkv", device="cpu")[..., 1], ramp)


@pytest.mark.parametrize("size", ["193x128", "192x129", "193x129"])
def test_odd_sizes(tmp_path, size):
    put_in = bars(tmp_path / "a.mkv", "bt601", "limited", size=size)
    made = ours(tmp_path / "a.mkv", device="cpu")
    assert made.shape == (*put_in.shape[:2], 4)
    assert worst(made, put_in, flat(put_in)) <= NEAR


def test_untagged_matrix_follows_size(tmp_path):
    for size, matrix in (("192x128", "bt601"), ("1280x720", "bt709")):
        (rgb,) = islice(source("smptebars", size), 1)
        yuv = rgb.reformat(
            format="yuv420p",
            dst_colorspace=TAGS[matrix],
            src_color_range=2,
            dst_color_range=1,
        )
        plain = av.VideoFrame.from_ndarray(yuv.to_ndarray(), "yuv420p")
        path = encode(tmp_path / f"{size}.mkv", [plain], codec="ffv1")
        with video.open(path, device="cpu") as reader:
            frame = next(reader)
        assert (frame.matrix, frame.range) == (matrix, "full")
        assert worst(np.asarray(frame), rgb.to_ndarray(), flat(rgb.to_ndarray())) <= NEAR


def test_motion_jpeg_is_full_range(tmp_path):
    (rgb,) = islice(source("smptebars", "192x128"), 1)
    yuv = rgb.reformat(format="yuvj420p", dst_colorspace=6, src_color_range=2, dst_color_range=2)
    options = {"qmin": "1", "qmax": "1"}
    encode(tmp_path / "a.avi", [yuv], codec="mjpeg", pixels="yuvj420p", options=options)
    where = flat(rgb.to_ndarray())
    assert worst(ours(tmp_path / "a.avi", device="cpu"), rgb.to_ndarray(), where) <= 6


# writing --------------------------------------------------------------------------------------
@pytest.mark.parametrize("range", ["limited", "full"])
@pytest.mark.parametrize("matrix", ["bt601", "bt709", "bt2020"])
def test_written_colors_and_tags(tmp_path, engine_id, matrix, range):
    (rgb,) = islice(source("smptebars", "192x128"), 1)
    picture = rgb.to_ndarray()
    path = tmp_path / "a.mkv"
    with video.write(path, fps=25, matrix=matrix, range=range, options={"crf": 0}) as writer:
        writer.write(picture)
        writer.write(picture)
    with av.open(str(path)) as file:
        frame = next(file.decode(video=0))
        assert int(frame.color_range) == RANGES[range]
        assert int(frame.colorspace) == TAGS[matrix]
        assert int(frame.color_primaries) == 1
        assert int(frame.color_trc) == 1
    assert worst(swscale(path, matrix, range), picture, flat(picture)) <= NEAR_SWSCALE
    assert worst(ours(path), picture, flat(picture)) <= NEAR


def test_planes_are_written_unchanged(tmp_path):
    bars(tmp_path / "a.mkv", "bt709", "limited", name="testsrc2")
    with (
        video.open(tmp_path / "a.mkv", format="native", device="cpu") as reader,
        video.write(tmp_path / "b.mkv", codec="ffv1") as writer,
    ):
        before = [np.array(frame) for frame in reader if writer.write(frame) is None]
    with video.open(tmp_path / "b.mkv", format="native", device="cpu") as reader:
        after = [np.array(frame) for frame in reader]
    assert len(before) == len(after) == 1
    assert np.array_equal(before[0], after[0])


def test_planes_of_another_matrix_are_converted(tmp_path):
    put_in = bars(tmp_path / "a.mkv", "bt601", "full")
    with (
        video.open(tmp_path / "a.mkv", format="native", device="cpu") as reader,
        video.write(tmp_path / "b.mkv", codec="ffv1", matrix="bt709") as writer,
    ):
        for frame in reader:
            assert (frame.matrix, frame.range) == ("bt601", "full")
            writer.write(frame)
    with video.open(tmp_path / "b.mkv", device="cpu") as reader:
        frame = next(reader)
    assert frame.matrix == "bt709"
    assert worst(np.asarray(frame), put_in, flat(put_in)) <= 2 * NEAR  # it was rounded twice


def test_hdr_tags_are_kept(tmp_path):
    frame = Frame.from_array(
        np.full((64, 64, 3), 100, np.uint8),
        matrix="bt2020",
        primaries="bt2020",
        transfer="pq",
        pts=0,
        time_base="1/25",
        device="cpu",
    )
    with video.write(tmp_path / "a.mp4") as writer:
        writer.write(frame)
    with av.open(str(tmp_path / "a.mp4")) as read:
        context = read.streams.video[0].codec_context
        assert (context.colorspace, context.color_primaries, context.color_trc) == (9, 9, 16)


def test_bad_color_arguments(tmp_path):
    bars(tmp_path / "a.mkv", "bt601", "full")
    with pytest.raises(ParameterError, match="'bt601', 'bt2020'"):
        video.open(tmp_path / "a.mkv", matrix="ntsc")
    with pytest.raises(ParameterError, match="'limited', 'full'"):
        video.write(tmp_path / "b.mkv", fps=1, range="tv")
    with pytest.raises(ParameterError, match="'native'"):
        video.open(tmp_path / "a.mkv", format="bgr")
