"""Decoders on made-up outputs: people in maps, classes of pixels, numbers that are not finite."""

from __future__ import annotations

import numpy as np
import pytest

from dala.errors import ModelError
from dala.ml.models import deeplab, posenet
from dala.ml.prepare import Placement
from dala.ml.spec import RawResult

SIDE, STRIDE = 25, 16
OPTIONS = dict(posenet.MODEL.options)


def placement(width, height):
    return Placement((width, height), (1.0, 1.0), (0, 0), (width, height))


def maps(people):
    """Return PoseNet's outputs for people given as lists of 17 (row, column) cells."""
    heat = np.full((SIDE, SIDE, 17), -9.0, np.float32)
    moves = {
        "displacement_fwd": np.zeros((SIDE, SIDE, 2, 16), np.float32),
        "displacement_bwd": np.zeros((SIDE, SIDE, 2, 16), np.float32),
    }
    offsets = np.zeros((SIDE, SIDE, 2, 17), np.float32)
    for cells in people:
        for part, (row, column) in enumerate(cells):
            heat[row, column, part] = 4
            offsets[row, column, :, part] = part / 4, -part / 4
        for edge, (a, b) in enumerate(posenet.EDGES):
            way = (np.array(cells[b]) - cells[a]) * STRIDE
            moves["displacement_fwd"][(*cells[a], slice(None), edge)] = way
            moves["displacement_bwd"][(*cells[b], slice(None), edge)] = -way
    flat = {name: array.reshape(SIDE, SIDE, -1) for name, array in moves.items()}
    return {"heatmap": heat, "offset": offsets.reshape(SIDE, SIDE, -1), **flat}


def person(row, column):
    return [(row + k // 4, column + 2 * (k % 4)) for k in range(17)]


def found(outputs, **options):
    size = (SIDE - 1) * STRIDE + 1
    return posenet.decode(RawResult(outputs, placement(size, size), (), {**OPTIONS, **options}))


def test_people_are_found_where_they_are():
    people = [person(1, 2), person(14, 12)]
    poses = found(maps(people))
    assert len(poses) == 2
    for pose in poses:
        cells = min(people, key=lambda cells: abs(cells[0][0] * STRIDE - pose.keypoints[0].y))
        for k, (point, (row, column)) in enumerate(zip(pose.keypoints, cells, strict=True)):
            assert (point.y, point.x) == (row * STRIDE + k / 4, column * STRIDE - k / 4)
            assert point.score == pytest.approx(1 / (1 + np.exp(-4.0)))
    assert len(found(maps(people), most=1)) == 1
    assert len(found(maps(people), apart=1000.0)) == 1


@pytest.mark.parametrize("name", ["heatmap", "offset", "displacement_fwd", "displacement_bwd"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_people_in_broken_maps(name, value):
    """Points that point nowhere end at the border; nothing fails."""
    outputs = maps([person(3, 3)])
    outputs[name][:] = value
    assert all(len(pose.keypoints) == 17 for pose in found(outputs))


def test_classes_of_pixels():
    logits = np.full((4, 6, 5), -5.0, np.float32)
    logits[1, :, :3] = 3
    logits[3, :, 3:] = 3
    kept = logits.copy()
    seen = deeplab.segment(logits, RawResult({}, placement(5, 6), tuple("abcd"), {}))
    assert np.array_equal(logits, kept)
    assert seen.classes.tolist() == [[1, 1, 1, 3, 3]] * 6
    larger = deeplab.segment(
        logits, RawResult({}, Placement((10, 12), (0.5, 0.5), (0, 0), (5, 6)), (), {})
    )
    assert larger.classes.tolist() == [[1] * 6 + [3] * 4] * 12


def test_many_classes_of_equal_probability():
    """No class of 150 has a probability of 0.05 here."""
    logits = np.zeros((150, 3, 3), np.float32)
    logits[140] += 0.01
    seen = deeplab.segment(logits, RawResult({}, placement(3, 3), (), {}))
    assert seen.classes.tolist() == [[140] * 3] * 3


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_classes_from_nan(value):
    logits = np.zeros((3, 4, 4), np.float32)
    logits[1, 2, 2] = value
    with pytest.raises(ModelError, match="NaN"):
        deeplab.segment(logits, RawResult({}, placement(4, 4), (), {}))
