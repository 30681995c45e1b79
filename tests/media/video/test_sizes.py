"""Every size modulo eight, written and decoded again: no plane is displaced."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import dala
from dala.media import Frame, video
from dala.media.notices import MediaNotice
from dala.media.video.output.layouts import DEEP_LAYOUTS, LAYOUTS, encoded_picture
from tests.media.video.clips import av

EVEN = [(w, h) for w, h in product(range(16, 24, 2), range(16, 24, 2))]


@pytest.fixture(autouse=True)
def on_cpu():
    with dala.device("cpu"):
        yield


def decoded_planes(path, index=0):
    """Copies of the planes of a frame, as FFmpeg decodes it."""
    with av.open(str(path)) as file:
        frame = list(file.decode(video=0))[index]
        return frame.format.name, planes_of(frame)


def planes_of(frame):
    made = []
    for plane in frame.planes:
        rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
        made.append(rows[:, : plane.width].copy())
    return made


@pytest.mark.parametrize(
    ("width", "height", "copy"),
    [*((*size, False) for size in [*EVEN, (480, 270), (2, 2), (2, 6)]), (18, 22, True)],
)
def test_planes_stay_in_place(tmp_path, width, height, copy):
    noise = np.random.default_rng(width * 100 + height)
    given = [noise.integers(16, 235, (height * 3 // 2, width), np.uint8) for _ in range(2)]
    with video.write(tmp_path / "a.mkv", codec="ffv1") as writer:
        for i, planes in enumerate(given):
            frame = Frame.from_array(planes, format="i420", pts=i, time_base="1/25")
            writer.write(frame, copy=copy)
    for i, planes in enumerate(given):
        name, (y, u, v) = decoded_planes(tmp_path / "a.mkv", i)
        assert name == "yuv420p"
        flat = np.concatenate([y.reshape(-1), u.reshape(-1), v.reshape(-1)])
        assert np.array_equal(flat, planes.reshape(-1))


@pytest.mark.parametrize(("width", "height"), [(18, 18), (16, 22), (22, 16), (2, 2)])
@pytest.mark.parametrize("codec", ["h264", "vp9"])
def test_lossless_codecs_keep_every_sample(tmp_path, codec, width, height):
    options = {
        "h264": {"qp": 0, "crf": -1},
        "vp9": {"lossless": 1, "crf": 0},
    }[codec]
    planes = np.random.default_rng(3).integers(16, 235, (height * 3 // 2, width), np.uint8)
    frame = Frame.from_array(planes, format="i420", pts=0, time_base="1/25")
    video.write(tmp_path / "a.mkv", [frame], codec=codec, options=options)
    _, found = decoded_planes(tmp_path / "a.mkv")
    assert np.array_equal(np.concatenate([p.reshape(-1) for p in found]), planes.reshape(-1))


@pytest.mark.parametrize("height", [18, 20, 22])
def test_colors_of_pictures_stay_in_place(tmp_path, height):
    # Red above, blue below: displaced chroma would mix them.
    picture = np.zeros((height, 16, 3), np.uint8)
    picture[: height // 2] = 255, 0, 0
    picture[height // 2 :] = 0, 0, 255
    video.write(tmp_path / "a.mkv", [picture], fps=25, codec="ffv1")
    with video.open(tmp_path / "a.mkv") as reader:
        seen = np.asarray(next(reader))[..., :3].astype(int)
    far = np.abs(np.arange(height) - height // 2 + 0.5) > 2
    assert np.abs(seen - picture)[far].max() <= 3


# odd sizes --------------------------------------------------------------------------------------
ODD = [(17, 16), (16, 17), (19, 21), (23, 18), (1, 1), (3, 2), (2, 5)]


def quarters(width, height):
    """A picture of four flat colors, and the corners of each."""
    picture = np.zeros((height, width, 3), np.uint8)
    picture[..., 0], picture[..., 2] = 40, 200
    picture[height // 2 :, :, 0], picture[:, width // 2 :, 1] = 220, 180
    return picture


@pytest.mark.parametrize(("width", "height"), ODD)
@pytest.mark.parametrize(("suffix", "codec"), [("mkv", "ffv1"), ("webm", "vp9"), ("avi", "mpeg4")])
def test_odd_sizes_are_kept_by_codecs_that_can(tmp_path, suffix, codec, width, height):
    options = {"vp9": {"lossless": 1, "crf": 0}, "mpeg4": {"qscale": 1}}.get(codec, {})
    picture = quarters(width, height)
    path = tmp_path / f"a.{suffix}"
    video.write(path, [picture], fps=25, codec=codec, options=options)
    with av.open(str(path)) as file:
        frame = next(file.decode(video=0))
        assert (frame.width, frame.height) == (width, height)
        found = planes_of(frame)[0].astype(int)
    even = np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    wanted = Frame.from_array(even).to("i420").numpy()[:height, :width].astype(int)
    assert np.abs(found - wanted).max() <= (0 if codec != "mpeg4" else 4)


@pytest.mark.parametrize(("width", "height"), ODD)
def test_odd_sizes_are_padded_for_h264(tmp_path, width, height):
    picture = quarters(width, height)
    even = np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    options = {"qp": 0, "crf": -1}
    with pytest.warns(MediaNotice, match="needs even sizes, so the last row or column is"):
        video.write(tmp_path / "a.mp4", [picture], fps=25, options=options)
    video.write(tmp_path / "b.mp4", [even], fps=25, options=options)
    a, b = (decoded_planes(tmp_path / name) for name in ("a.mp4", "b.mp4"))
    assert a[0] == b[0] == "yuv420p"
    assert all(np.array_equal(x, y) for x, y in zip(a[1], b[1], strict=True))


def deep_planes(color, layout):
    """Planes of more than eight bits: chroma to the left, over columns 1 2 1 and two rows."""
    bits = int(layout[-4:-2])
    unit = 1 << (bits - 8)
    if layout.startswith("gbrp"):
        top = (1 << bits) - 1
        return [np.floor(color[..., i] * top + 0.5).astype(np.uint16) for i in (1, 2, 0)]
    near = color
    if "444" not in layout:
        wide = np.pad(color, ((0, 0), (1, 1), (0, 0)), mode="edge")
        near = (wide[:, :-2] + 2 * wide[:, 1:-1] + wide[:, 2:])[:, ::2] / 4
    if "420" in layout:
        tall = np.pad(near, ((0, len(near) % 2), (0, 0), (0, 0)), mode="edge")
        near = (tall[::2] + tall[1::2]) / 2
    y, small = color @ (0.299, 0.587, 0.114), near @ (0.299, 0.587, 0.114)
    u, v = (near[..., 2] - small) / 1.772, (near[..., 0] - small) / 1.402
    codes = [16 + 219 * y, 128 + 224 * u, 128 + 224 * v]
    return [np.floor(c * unit + 0.5).astype(np.uint16) for c in codes]


def expected(picture, layout):
    """The planes of a layout, with BT.601: 4:2:0 by ``Frame.to``, 4:4:4 by the formulas."""
    height, width = picture.shape[:2]
    if layout in ("rgb24", "rgba", "bgra"):
        order = {"rgb24": [0, 1, 2], "rgba": [0, 1, 2, 3], "bgra": [2, 1, 0, 3]}[layout]
        return [picture[..., order].reshape(height, -1)]
    alpha = picture[..., 3]
    if layout in DEEP_LAYOUTS and layout != "yuv444p10le":
        return deep_planes(picture[..., :3] / 255.0, layout)
    if "444" in layout:
        r, g, b = np.moveaxis(picture[..., :3] / 255.0, -1, 0)
        y = 0.299 * r + 0.587 * g + 0.114 * b
        codes = [16 + 219 * y, 128 + 224 * (b - y) / 1.772, 128 + 224 * (r - y) / 1.402]
        if layout.endswith("10le"):
            made = [np.floor(c * 4 + 0.5).astype(np.uint16) for c in codes]
            deep = np.floor(alpha / 255 * 1023 + 0.5).astype(np.uint16)
            return [*made, deep] if "a" in layout[:4] else made
        return [np.floor(c + 0.5).astype(np.uint8) for c in codes]
    even = np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    full = "full" if "j" in layout else "limited"
    frame = Frame.from_array(even).to("i420", matrix="bt601", range=full)
    rows, columns = even.shape[0] // 2, even.shape[1] // 2
    flat = frame.numpy().reshape(-1)
    y = flat[: 4 * rows * columns].reshape(2 * rows, 2 * columns)
    u, v = flat[y.size :].reshape(2, rows, columns)
    if layout == "nv12":
        return [y, np.stack([u, v], axis=-1).reshape(rows, -1)]
    y = y[:height, :width]
    return [y, u, v, alpha] if layout == "yuva420p" else [y, u, v]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_has_its_samples_in_place(layout):
    for width, height in [*EVEN, *((w + 1, h + 1) for w, h in EVEN), (2, 2), (1, 1), (3, 2)]:
        noise = np.random.default_rng(width * height)
        picture = noise.integers(0, 256, (height, width, 4), np.uint8)
        size = (width + width % 2, height + height % 2) if layout == "nv12" else (width, height)
        full = "full" if "j" in layout else "limited"
        made = encoded_picture(
            Frame.from_array(picture), layout, size, matrix="bt601", range=full, copy=True
        )
        assert (made.format.name, made.width, made.height) == (layout, *size)
        wanted = expected(picture, layout)
        for plane, right in zip(made.planes, wanted, strict=True):
            row = plane.line_size // right.itemsize
            found = np.frombuffer(plane, right.dtype).reshape(-1, row)[:, : right.shape[1]]
            assert found.shape == right.shape
            near = 1 if "444" in layout or layout in DEEP_LAYOUTS else 0
            assert np.abs(found.astype(int) - right).max() <= near


def test_444_keeps_odd_sizes_in_h264(tmp_path):
    picture = quarters(19, 21)
    video.write(tmp_path / "a.mkv", [picture], fps=25, pixel_format="yuv444p",
                options={"qp": 0, "crf": -1})  # fmt: skip
    name, planes = decoded_planes(tmp_path / "a.mkv")
    assert (name, planes[0].shape, planes[1].shape) == ("yuv444p", (21, 19), (21, 19))
    with video.open(tmp_path / "a.mkv") as reader:
        seen = np.asarray(next(reader))[..., :3].astype(int)
    assert np.abs(seen - picture).max() <= 2


def test_narrow_hevc_does_not_harm_memory(tmp_path):
    # x265's macroblock tree writes past its memory below 64 columns, which ends the process later.
    for width in (16, 34):
        video.write(tmp_path / "a.mkv", [quarters(width, 32)] * 4, fps=25, codec="hevc")
        with video.open(tmp_path / "a.mkv") as reader:
            assert [f.shape for f in reader] == [(32, width, 4)] * 4


#: Layouts that FFV1 stores, and lossless codecs for the others.
LOSSLESS = {
    "nv12": ("a.mp4", "h264", {"qp": 0, "crf": -1}),
    "yuvj420p": ("a.avi", "mjpeg", {"qscale": 1}),
    "rgb24": ("a.mov", "png", {}),
    "rgba": ("a.mov", "png", {}),
}


def samples_of(frame):
    """Copies of the rows of all planes, without the bytes between them."""
    made = []
    for i, plane in enumerate(frame.planes):
        rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
        component = frame.format.components[min(i, len(frame.format.components) - 1)]
        step = max(1, (component.bits + 7) // 8)
        if len(frame.planes) == 1:
            step = frame.format.padded_bits_per_pixel // 8
        made.append(rows[:, : plane.width * step].copy())
    return made


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_decoded_as_it_was_encoded(tmp_path, layout):
    name, codec, options = LOSSLESS.get(layout, ("a.mkv", "ffv1", {}))
    noise = np.random.default_rng(5)
    alpha = layout in ("bgra", "rgba", "yuva420p", "yuva444p10le")
    for width, height in [(16, 18), (18, 16), (20, 22), (22, 20), (18, 18), (22, 22), (16, 20)]:
        picture = noise.integers(0, 256, (height, width, 4 if alpha else 3), np.uint8)
        frame = Frame.from_array(picture, pts=0, time_base="1/25")
        given = encoded_picture(
            frame, layout, (width, height), matrix="bt601", range="limited", copy=True
        )
        wanted = samples_of(given)
        video.write(
            tmp_path / name, [frame], codec=codec, options=options, pixel_format=layout,
            alpha=alpha, matrix="bt601",
        )  # fmt: skip
        with av.open(str(tmp_path / name)) as file:
            found = next(file.decode(video=0))
        assert (found.width, found.height) == (width, height)
        if found.format.name == given.format.name:
            seen = samples_of(found)
        else:  # x264 stores nv12 as yuv420p, PNG has its own order
            seen = samples_of(found.reformat(format=given.format.name))
        within = 12 if codec == "mjpeg" else 0  # displaced noise differs by far more
        for one, other in zip(seen, wanted, strict=True):
            assert np.abs(one.astype(int) - other.astype(int)).max() <= within
