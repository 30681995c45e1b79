"""The One-Euro filter against its formula, and smoothed people and faces."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dala
from dala.ml.results import Face, FaceMesh, Faces, Hand, Hands, Keypoint, Pose, Poses
from dala.ml.smooth import OneEuro, Smoother
from dala.ml.stream import StreamResult


def by_the_formula(values, times, min_cutoff, beta, derivative_cutoff):
    """The filter of one number as in the paper: two exponential smoothings."""

    def alpha(cutoff, period):
        tau = 1 / (2 * math.pi * cutoff)
        return 1 / (1 + tau / period)

    made, speed = [values[0]], 0.0
    for k in range(1, len(values)):
        period = times[k] - times[k - 1]
        a = alpha(derivative_cutoff, period)
        speed = a * (values[k] - made[-1]) / period + (1 - a) * speed
        a = alpha(min_cutoff + beta * abs(speed), period)
        made.append(a * values[k] + (1 - a) * made[-1])
    return made


@given(
    st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(1e-3, 1.0)), min_size=1, max_size=12),
    st.floats(0.01, 30), st.floats(0, 10), st.floats(0.1, 10),
)  # fmt: skip
def test_the_formula(rows, min_cutoff, beta, derivative_cutoff):
    values, times = [v for v, _ in rows], np.cumsum([t for _, t in rows]).tolist()
    smooth = OneEuro(min_cutoff, beta, derivative_cutoff)
    got = [smooth([v, -v], t) for v, t in zip(values, times, strict=True)]
    wanted = by_the_formula(values, times, min_cutoff, beta, derivative_cutoff)
    assert np.allclose(np.array(got), np.array([wanted, np.negative(wanted)]).T, atol=1e-6)


def test_less_jitter_and_little_lag():
    rng = np.random.default_rng(3)
    smooth = OneEuro(1.0, 0.1)
    rest = [float(smooth([50 + rng.normal()], k / 30)[0]) for k in range(90)]
    assert np.std(rest[30:]) < 0.45  # of 1
    fast = [float(smooth([50 + 20 * k], 3 + k / 30)[0]) for k in range(30)]
    assert abs(fast[-1] - (50 + 20 * 29)) < 6  # at 600 pixels a second
    plain = OneEuro(1.0, 0.0)
    slow = [float(plain([50 + 20 * k], k / 30)[0]) for k in range(30)]
    assert abs(slow[-1] - (50 + 20 * 29)) > 60


def test_scale_is_the_unit_of_speed():
    """A picture of twice the size gives twice the values."""
    one, two = OneEuro(1.0, 2.0), OneEuro(1.0, 2.0)
    for k, x in enumerate((0.0, 3.0, 4.0, 9.0)):
        small, large = one([x], k / 30, scale=10), two([2 * x], k / 30, scale=20)
        assert np.allclose(2 * small, large)


def test_results_are_copies():
    smooth, x = OneEuro(), np.array([1.0, 2.0])
    first = smooth(x, 0)
    first[:] = x[:] = 99
    second = smooth([1.0, 2.0], Fraction(1, 30))
    assert second.tolist() == [1, 2]
    second[:] = 99
    assert smooth([1.0, 2.0], 0.1).tolist() == [1, 2]


def pose(x, y, size=80.0, score=0.9):
    points = [("nose", 0, 0), ("left_hip", -0.2, 0.6), ("right_hip", 0.2, 0.6), ("foot", 0, 1)]
    return Pose(tuple(Keypoint(n, x + a * size, y + b * size, 0.7) for n, a, b in points), score)


def test_people_have_filters_of_their_own():
    """Two people, in any order, are each smoothed as they are alone."""
    rng = np.random.default_rng(1)
    both, alone = Smoother(), (Smoother(), Smoother())
    for k in range(20):
        people = [pose(100 + 2 * k + rng.normal(), 50), pose(300 - k, 60 + rng.normal())]
        wanted = [s.update(Poses([p]), k / 30)[0] for s, p in zip(alone, people, strict=True)]
        order = [0, 1] if k % 3 else [1, 0]
        got = both.update(Poses([people[n] for n in order], {"y": np.ones(1)}), k / 30)
        assert [got[order.index(n)] for n in (0, 1)] == wanted
        assert isinstance(got, Poses)
        assert list(got.raw) == ["y"]
    assert got[0].score == 0.9
    assert got[0]["nose"].score == 0.7
    assert got[0] != people[order[0]]


def test_people_who_come_and_go():
    smoother = Smoother()
    smoother.update(Poses([pose(100, 50)]), 0)
    assert smoother.update(Poses(), 0.1) == []
    (near,) = smoother.update(Poses([pose(104, 50)]), 0.2)
    assert 100 < near["nose"].x < 104
    (other,) = smoother.update(Poses([pose(400, 50)]), 0.3)  # too far away to be the same
    assert other == pose(400, 50)
    (late,) = smoother.update(Poses([pose(404, 50)]), 2.0)  # after too long a time
    assert late == pose(404, 50)
    (again,) = smoother.update(Poses([pose(408, 50)]), 1.0)  # back in time: afresh
    assert again == pose(408, 50)
    smoother.reset()
    assert smoother.update(Poses([pose(1, 2)]), 1.0)[0] == pose(1, 2)


def test_faces_and_streams():
    def face(x):
        return Face((x, 10, x + 50, 60), "face", 0.9, 0, (Keypoint("nose", x + 25, 40),))

    frames = [StreamResult(np.zeros(1), Faces([face(10 + 4 * (k % 2))]), None) for k in range(6)]
    seen = list(Smoother(beta=0.0).stream(frames, fps=30))
    spans = [one.result[0].box[0] for one in seen]
    assert spans[0] == 10
    assert all(10 < x < 12.5 for x in spans[1:])
    noses = [one.result[0].keypoints[0].x - 25 for one in seen]
    assert np.allclose(noses, spans)
    assert seen[1].result[0].size == (50, 50)
    assert seen[1].time is None
    assert isinstance(seen[0].result, Faces)


@pytest.mark.parametrize("options", [{"min_cutoff": 0}, {"min_cutoff": "1"}, {"beta": -1},
                                     {"beta": math.nan}, {"beta": True}])  # fmt: skip
def test_bad_options(options):
    (name,) = options
    for kind in (OneEuro, Smoother):
        with pytest.raises(dala.ParameterError, match=f"{kind.__name__}: {name} must be"):
            kind(**options)


def test_bad_input_changes_nothing():
    smooth = OneEuro()
    smooth([1.0], 0.0)
    for values, time in (([math.nan], 1.0), ([2.0], 0.0), ([2.0], -1), ([2.0], math.nan),
                         ([2.0], "soon"), ([2.0], True)):  # fmt: skip
        with pytest.raises(dala.ParameterError):
            smooth(values, time)
    with pytest.raises(dala.ShapeMismatch, match=r"\(1,\)"):
        smooth([1.0, 2.0], 1.0)
    with pytest.raises(dala.ParameterError, match="scale"):
        smooth([2.0], 1.0, scale=0)
    wanted = by_the_formula([1.0, 2.0], [0.0, 1.0], 1.0, 0.0, 1.0)
    assert np.allclose(smooth([2.0], 1.0), wanted[-1:])
    for found, time in (([pose(1, 1)], 0), (None, 0), (Poses(), "soon"), (Poses(), math.inf)):
        with pytest.raises(dala.ParameterError, match=r"Smoother\.update"):
            Smoother().update(found, time)


def test_hands_and_meshes_by_id():
    """Two hands that change places in the list, and come close; each keeps its own filter."""
    smoother = Smoother()

    def hand(id, x):
        points = (Keypoint("wrist", x, 10, 0.9, 2), Keypoint("index_tip", x, 50, 0.9, 4))
        return Hand((x, 10, x + 20, 50), "hand", 0.9, 0, points, id, "left", 0.8)

    smoother.update(Hands([hand(1, 10.0), hand(2, 30.0)]), 0.0)
    second, first = smoother.update(Hands([hand(2, 20.0), hand(1, 12.0)]), 0.1)
    assert (first.id, second.id, first.side) == (1, 2, "left")
    assert 10 < first.point("wrist").x < 12
    assert 20 < second.point("wrist").x < 30
    assert np.isclose(first.box[0], first.point("wrist").x)
    assert first.point("index_tip").z == 4
    mesh = np.tile([[50.0, 60.0, 1.0]], (468, 1))
    mesh[10] = 50, 20, 3
    smoother = Smoother()
    smoother.update(Faces([FaceMesh.of(mesh, 0.9, 7)]), 0.0)
    (face,) = smoother.update(Faces([FaceMesh.of(np.add(mesh, (4, 0, 0)), 0.8, 7)]), 0.1)
    assert (face.id, face.score) == (7, 0.8)
    assert 50 < face.mesh[0, 0] < 54
    assert np.allclose(face.mesh[:, 0], face.mesh[0, 0])
    assert tuple(face.point("forehead")) == tuple(face.mesh[10, :2])
    assert np.allclose(face.box, (face.mesh[0, 0], 20, face.mesh[0, 0], 60))
