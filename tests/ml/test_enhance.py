"""Own models from pictures to pictures and of keypoints: known answers, tiles without seams."""

import numpy as np
import pytest
from PIL import Image

from dala.errors import ModelError, ParameterError
from dala.ml.convert.onnx_file import Graph
from dala.ml.gpu import load_model
from dala.ml.results import Enhanced

RNG = np.random.default_rng(3)


def write(graph, path):
    path.write_bytes(graph.save())
    return path


def upscaler(path, *, channels=3, size=("height", "width"), radius=1):
    """A convolution and DepthToSpace: each pixel becomes 2 x 2 of the mean of its neighbors.

    The four are the mean times 1, 3/4, 1/2 and 1/4.
    """
    graph = Graph("up")
    x = graph.input("picture", (1, channels, *size))
    side = 2 * radius + 1
    weights = np.zeros((4 * channels, channels, side, side), np.float32)
    for block in range(4):
        for channel in range(channels):
            weights[block * channels + channel, channel] = (1 - block / 4) / side**2
    y = graph.node(
        "Conv", x, graph.constant(weights), graph.constant(np.zeros(4 * channels, np.float32)),
        kernel_shape=(side, side), pads=(radius,) * 4,
    )  # fmt: skip
    y = graph.node("DepthToSpace", y, blocksize=2, mode="DCR")
    graph.output(y, (1, channels, "h", "w"), name="large")
    return write(graph, path)


def expected(picture, radius=1):
    """The same by NumPy; zeros around the picture, as the convolution has them."""
    unit = picture.astype(np.float64) / 255
    padded = np.pad(unit, ((radius, radius), (radius, radius), (0, 0)))
    side = 2 * radius + 1
    height, width = unit.shape[:2]
    mean = (
        sum(padded[y : y + height, x : x + width] for y in range(side) for x in range(side))
        / side**2
    )
    made = np.zeros((2 * height, 2 * width, unit.shape[2]))
    for block in range(4):
        made[block // 2 :: 2, block % 2 :: 2] = mean * (1 - block / 4)
    return made


def noise(height, width):
    return RNG.integers(0, 256, (height, width, 3)).astype(np.uint8)


@pytest.mark.parametrize(("height", "width"), [(20, 30), (64, 64), (150, 97), (33, 200)])
def test_known_answers_in_tiles(tmp_path, height, width):
    picture = noise(height, width)
    path = upscaler(tmp_path / "up.onnx")
    with load_model(path, "cpu", task="image", size=(64, 64)) as model:
        found = model.predict(picture, overlap=16)
    assert isinstance(found, Enhanced)
    assert found.scale == 2
    assert found.picture.dtype == np.uint8
    wanted = expected(picture)
    assert found.picture.shape == wanted.shape
    assert np.abs(found.picture - wanted * 255).max() <= 0.51  # no seam anywhere


def test_tiles_that_see_farther_than_the_overlap_still_blend(tmp_path):
    """The error at seams is spread, and not larger than a step of the picture itself."""
    flat = np.full((40, 120, 3), 200, np.uint8)
    path = upscaler(tmp_path / "up.onnx", radius=6)
    with load_model(path, "cpu", task="image", size=(40, 40)) as model:
        row = model.predict(flat, overlap=12).picture[40, ::2, 0].astype(int)
    assert np.abs(np.diff(row[20:-20])).max() < 12


def test_models_of_one_size(tmp_path):
    path = upscaler(tmp_path / "up.onnx", size=(32, 48))
    with load_model(path, "cpu", task="image") as model:
        for height, width in ((32, 48), (70, 60), (10, 11)):
            picture = noise(height, width)
            found = model.predict(picture, overlap=8).picture
            assert found.shape == (2 * height, 2 * width, 3)
            inside = np.abs(found - expected(picture) * 255)[2:-2, 2:-2]
            assert inside.max() <= 0.51


def test_gray_models_keep_the_colors(tmp_path):
    path = upscaler(tmp_path / "up.onnx", channels=1, radius=0)
    red = np.zeros((12, 12, 3), np.uint8)
    red[..., 0] = 180
    with load_model(path, "cpu", task="image") as model:
        found = model.predict(red).picture
    assert found.shape == (24, 24, 3)
    assert np.abs(found[::2, ::2].astype(int) - (180, 0, 0)).max() <= 1


def test_kinds_of_pictures_and_ranges(tmp_path):
    picture = noise(16, 16)
    path = upscaler(tmp_path / "up.onnx", radius=0)
    with load_model(path, "cpu", task="image") as model:
        first = model.predict(picture)
        assert (model.predict(Image.fromarray(picture)).picture == first.picture).all()
        floats = model.predict(picture.astype(np.float32) / 255)
        assert floats.picture.dtype == np.float32
        assert np.abs(floats.picture - expected(picture, 0)).max() < 1e-5
        pair = model.predict([picture, picture])
        assert [(one.picture == first.picture).all() for one in pair] == [True, True]
        assert str(first) == "32x32, 2 times as large"
    with load_model(path, "cpu", task="image", preprocess={"normalize": "raw"}) as model:
        same = model.predict(picture).picture.astype(int) - first.picture
        assert np.abs(same).max() <= 1  # halves may be rounded the other way


def test_refusals(tmp_path, tiny):
    path = upscaler(tmp_path / "up.onnx")
    with pytest.raises(ParameterError, match=r"'unit' \(0 to 1\), 'raw' .* got fit='cover'"):
        load_model(path, "cpu", task="image", preprocess={"fit": "cover"})
    with load_model(path, "cpu", task="image", size=(32, 32)) as model:
        with pytest.raises(ParameterError, match="overlap must be less than the tile, 32, got 40"):
            model.predict(noise(64, 64), overlap=40)
        with pytest.raises(ModelError, match="empty, or contains NaN"):
            model.predict(np.full((8, 8, 3), np.nan, np.float32))
    with load_model(tiny, "cpu", task="image") as model, pytest.raises(ModelError, match="one pic"):
        model.predict(noise(4, 6))


def test_heatmaps_are_keypoints(tmp_path):
    """Each channel is a heatmap: its brightest pixel is the point."""
    graph = Graph("points")
    x = graph.input("picture", (1, 3, 20, 40))
    graph.output(graph.node("Relu", x), (1, 3, 20, 40), name="heat")
    path = write(graph, tmp_path / "points.onnx")
    picture = np.zeros((40, 80, 3), np.uint8)
    for channel, (x, y) in enumerate(((10, 4), (60, 20), (30, 36))):
        picture[y : y + 2, x : x + 2, channel] = 255
    with load_model(
        path, "cpu", task="keypoints", labels=["nose", "tail", "paw"],
        preprocess={"normalize": "unit"},
    ) as model:  # fmt: skip
        (found,) = model.predict(picture)
    assert [p.name for p in found.keypoints] == ["nose", "tail", "paw"]
    places = np.array([(p.x, p.y) for p in found.keypoints])
    assert np.abs(places - [(11, 5), (61, 21), (31, 37)]).max() < 1e-6
    assert found.score == pytest.approx(0.5625)  # of pixels that were averaged


def test_rows_are_keypoints(tmp_path):
    graph = Graph("rows")
    x = graph.input("picture", (1, 3, 20, 40))
    rows = np.array([[[10, 5, 0.9], [20, 10, 0.3]]], np.float32)
    zero = graph.node("Mul", graph.node("ReduceMean", x, keepdims=0), graph.constant(np.float32(0)))
    graph.output(graph.node("Add", graph.constant(rows), zero), (1, 2, 3), name="rows")
    path = write(graph, tmp_path / "rows.onnx")
    with load_model(path, "cpu", task="keypoints") as model:
        (found,) = model.predict(np.zeros((40, 80, 3), np.uint8))
    assert [(p.x, p.y, round(p.score, 3)) for p in found.keypoints] == [
        (20, 10, 0.9),
        (40, 20, 0.3),
    ]
