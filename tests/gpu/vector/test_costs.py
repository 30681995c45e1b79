"""What bytes from strangers may cost where shapes and layers are drawn."""

import json

import numpy as np
import pytest

import dala
from dala.errors import CommandTimeout, DalaError, FreedError, LimitExceeded
from dala.gpu import command, create_surface
from dala.gpu.raster import Canvas
from dala.gpu.render import thread
from dala.gpu.vector.fields import PathData

RED = (255, 0, 0, 255)
PAGE = [(0, 0), (4096, 0), (4096, 4096), (0, 4096)]


def path(verbs, points):
    return PathData(bytes(verbs), np.array(points, "<f8").tobytes())


def layer(filters):
    return (
        command.encode_begin_layer(1.0, "over", json.dumps(filters))
        + command.encode_clear(RED)
        + command.encode_end_layer()
    )


def refused(s, data):
    s.submit(data)
    with pytest.raises(DalaError) as info:
        s.synchronize()
    return info.value


def test_the_length_of_an_outline_is_bounded():
    """A few thousand bytes would take minutes: long lines, many times over."""
    zigzag = path([0] + [1] * 300_000, [(n % 2 * 4096, n / 80) for n in range(300_001)])
    with create_surface(4096, 4096) as s:
        for data in (
            command.encode_fill_shape("nonzero", 0, RED, zigzag),
            command.encode_clip_shape("nonzero", zigzag),
            command.encode_load_path(1, zigzag) + command.encode_fill_path(1, "nonzero", 0, RED),
        ):
            assert isinstance(refused(s, data), LimitExceeded)
        s.rect(0, 0, 4, 4, "red")  # the surface goes on
        assert s.to_array()[0, 0].tolist() == [*RED]


def test_large_shapes_are_drawn_a_few_at_a_time():
    """Between them is a look at the clock, and at whether the surface was closed."""
    canvas = Canvas(4096, 4096)
    looks = []
    canvas.check_work = looks.append
    canvas.run(command.encode_fill_shape("nonzero", 0, RED, path([0, 1, 1, 1], PAGE)) * 20)
    assert len(looks) >= 5


def test_a_stream_ends_with_the_limits_of_its_surface(monkeypatch):
    with dala.limits(time=1e-9), create_surface(64, 64) as s:
        s.submit(command.encode_fill_shape("nonzero", 0, RED, path([0, 1, 1, 1], PAGE)))
        with pytest.raises(CommandTimeout):
            s.synchronize()


def test_filters_of_a_layer_have_their_time(monkeypatch):
    monkeypatch.setattr(thread, "MAX_SECONDS", 1e-9)
    with create_surface(64, 64) as s:
        assert isinstance(refused(s, layer([["median", {}]])), CommandTimeout)


def test_a_layer_opens_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_text("LUT_1D_SIZE 2\nthe secret\n")
    with create_surface(8, 8) as s:
        for name, given in (
            ("lut_apply", {"lut": "secret"}),
            ("remap", {"map": "secret"}),
            ("overlay_alpha", {"over": "secret"}),
            ("blend", {"over": "secret"}),
            ("morphology", {"element": "secret"}),
        ):
            error = refused(s, layer([[name, given]]))
            assert "take no other picture" in str(error), error
            assert "the secret" not in str(error)


@pytest.mark.parametrize(
    "filters",
    [
        [["virtual_background", {}]],  # it would run a model
        [["pad", {"padding": [9000] * 4}]],
        [["resize", {"size": [9000, 9000]}]],
        [["shadow", {"x": 1}]],
        [["shadow", {"x": 0, "y": 0, "blur": 1, "color": [1]}]],
        [["shadow", {"x": 0, "y": 0, "blur": 1, "color": [1, 2, 3, 256]}]],
        [["shadow", {"x": float("nan"), "y": 0, "blur": 1, "color": [1, 2, 3, 4]}]],
        [["shadow", {"x": 0, "y": float("inf"), "blur": 1, "color": [1, 2, 3, 4]}]],
        [["shadow", {"x": "a", "y": 0, "blur": 1, "color": [1, 2, 3, 4]}]],
        [["shadow", {"x": 0, "y": 0, "blur": None, "color": [1, 2, 3, 4]}]],
        [["shadow", {"x": 0, "y": 0, "blur": 1, "color": None}]],
    ],
)
def test_filters_that_a_layer_refuses(filters):
    with create_surface(8, 8) as s:
        error = refused(s, layer(filters))
        assert str(error).startswith("layer: filters must be "), error
        assert not isinstance(error, FreedError)
