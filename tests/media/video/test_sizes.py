"""Every size modulo eight, written and decoded again: no plane is displaced."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import dala
from dala.media import Frame, video
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
        made = []
        for plane in frame.planes:
            rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
            made.append(rows[:, : plane.width].copy())
        return frame.format.name, made


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
