"""Tracking on synthetic motion: stable ids, covered and missed objects, crossings, assignment."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dala
from dala.ml.boxes import assign
from dala.ml.results import (
    Detection,
    Detections,
    Face,
    Faces,
    Keypoint,
    TrackedObject,
    TrackedObjects,
)
from dala.ml.stream import StreamResult
from dala.ml.track import Motion, Tracker


def box(x, y, wide=40, high=30, score=0.8, label="dog", index=16):
    """A detection around a center."""
    at = (x - wide / 2, y - high / 2, x + wide / 2, y + high / 2)
    return Detection(at, label, score, index)


def followed(tracker, frames):
    """Return the ids of each frame's detections, 0 where there is none; nearest centers."""
    seen = []
    for found in frames:
        tracks = tracker.update(found)
        ids = []
        for d in found:
            near = [t.id for t in tracks if np.allclose(t.box, d.box, atol=12)]
            ids.append(near[0] if len(near) == 1 else 0)
        seen.append(ids)
    return seen


# assignment ---------------------------------------------------------------------------------------
@settings(max_examples=80, deadline=None)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 10**6), st.booleans())
def test_assignment_is_optimal(rows, columns, seed, ties):
    """The total of all permutations' best; each row and column once."""
    rng = np.random.default_rng(seed)
    cost = rng.integers(-3, 4, (rows, columns)) * 1.0 if ties else rng.normal(size=(rows, columns))
    pairs = assign(cost)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    assert len(pairs) == min(rows, columns)
    wide = cost if rows <= columns else cost.T
    best = min(
        sum(wide[i, j] for i, j in enumerate(order))
        for order in permutations(range(max(rows, columns)), min(rows, columns))
    )
    assert np.isclose(sum(cost[i, j] for i, j in pairs), best)


def test_empty_assignments():
    assert assign(np.zeros((0, 3))) == assign(np.zeros((3, 0))) == []


# the filter ---------------------------------------------------------------------------------------
def test_motion_is_the_kalman_filter():
    """The same as the filter with matrices of 8 x 8, written from its equations."""
    rng = np.random.default_rng(2)
    step = np.eye(8)
    step[:4, 4:] = np.eye(4)
    watch = np.eye(4, 8)
    motion = Motion((0, 0, 40, 30))

    def noise(mean, place, speed):
        size = mean[[2, 3, 2, 3]]
        return np.diag(np.concatenate([place * size, speed * size]) ** 2)

    mean = np.array([20, 15, 40, 30, 0, 0, 0, 0], np.float64)
    cov = noise(mean, 2 / 20, 10 / 160)
    for k in range(12):
        q = noise(mean, 1 / 20, 1 / 160)
        mean, cov = step @ mean, step @ cov @ step.T + q
        motion.predict()
        if k % 4 == 3:  # missed
            continue
        x, y = 20 + 3 * k + rng.normal(), 15 - k + rng.normal()
        wide, high = 40 + k, 30 + rng.normal()
        s = watch @ cov @ watch.T + noise(mean, 1 / 20, 0)[:4, :4]
        gain = cov @ watch.T @ np.linalg.inv(s)
        mean = mean + gain @ (np.array([x, y, wide, high]) - watch @ mean)
        cov = (np.eye(8) - gain @ watch) @ cov
        motion.correct((x - wide / 2, y - high / 2, x + wide / 2, y + high / 2))
    assert np.allclose(motion.at, mean[:4])
    assert np.allclose(motion.velocity, mean[4:])
    assert np.allclose(motion.place, np.diag(cov)[:4])
    assert np.allclose(motion.mixed, np.diag(cov[:4, 4:]))
    assert np.allclose(motion.speed, np.diag(cov)[4:])


def test_velocity_is_learned():
    tracker = Tracker()
    for k in range(30):
        (track,) = tracker.update([box(50 + 3 * k, 200 - 2 * k)])
    assert np.allclose(track.velocity, (3, -2), atol=0.05)
    assert (track.id, track.age, track.missed) == (1, 30, 0)
    assert np.allclose(track.box, box(50 + 3 * 29, 200 - 2 * 29).box, atol=0.5)


# ids ----------------------------------------------------------------------------------------------
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.floats(0, 0.3))
def test_separate_objects_keep_their_ids(seed, count, misses):
    """Objects in rows of their own, each with its velocity, jitter and missed detections."""
    rng = np.random.default_rng(seed)
    start, speed = rng.uniform(0, 300, count), rng.uniform(-4, 4, count)
    tracker, owners = Tracker(), {}
    for k in range(40):
        found = []
        for n in range(count):
            if k == 0 or rng.random() >= misses:
                x, y = start[n] + speed[n] * k, 100 * n
                found.append(box(x + rng.normal(0, 0.5), y + rng.normal(0, 0.5)))
        rng.shuffle(found)
        for track in tracker.update(found):
            row = round((track.box[1] + track.box[3]) / 2 / 100)
            assert owners.setdefault(track.id, row) == row
    assert sorted(owners) == list(range(1, count + 1))


def test_crossing():
    """Two objects of one class pass through each other and keep their ids."""
    frames = [[box(50 + 6 * k, 100), box(350 - 6 * k, 112)] for k in range(51)]
    tracker = Tracker()
    for found in frames:
        tracks = tracker.update(found)
        assert [t.id for t in tracks] == [1, 2]
    first, second = tracks
    assert np.allclose(first.box, frames[-1][0].box, atol=6)
    assert np.allclose(second.box, frames[-1][1].box, atol=6)
    assert first.velocity[0] > 5 > -5 > second.velocity[0]


def test_an_object_behind_another_comes_back():
    """It moves on while it is not seen, and gets its id back where it is expected."""
    tracker = Tracker()
    seen = followed(tracker, [[box(50 + 4 * k, 100)] for k in range(15)])
    assert seen == [[1]] * 15
    for k in range(15, 30):
        assert tracker.update([]) == []
        (gone,) = tracker.lost
        assert (gone.id, gone.missed) == (1, k - 14)
        assert abs(gone.box[0] - box(50 + 4 * k, 100).box[0]) < 8
        assert np.isclose(gone.size[0], 40, atol=1)
    (back,) = tracker.update([box(50 + 4 * 30, 100)])
    assert (back.id, back.age, back.missed) == (1, 31, 0)
    assert tracker.lost == []


@pytest.mark.parametrize("keep", [0, 1, 5])
def test_lost_tracks_are_kept_for_some_frames(keep):
    for gap in (keep, keep + 1):
        tracker = Tracker(keep=keep)
        tracker.update([box(50, 50)])
        for _ in range(gap):
            tracker.update([])
        assert len(tracker.lost) == (1 if 0 < gap <= keep else 0)
        tracker.update([box(50, 50)])
        (track,) = tracker.update([box(50, 50)])
        assert track.id == (1 if gap <= keep else 2)


def test_unsure_detections_continue_tracks_but_begin_none():
    tracker = Tracker()
    assert tracker.update([box(50, 50, score=0.3)]) == []
    tracker = Tracker()
    seen = followed(tracker, [[box(50 + k, 50, score=s)] for k, s in enumerate((0.8, 0.2, 0.15))])
    assert seen == [[1], [1], [1]]
    assert followed(tracker, [[box(53, 50, score=0.05)]]) == [[0]]  # below low
    assert followed(tracker, [[box(54, 50, score=0.2)]]) == [[0]]  # it is lost now
    assert followed(tracker, [[box(55, 50, score=0.5)]]) == [[1]]


def test_sure_detections_come_first():
    """The unsure box fits better, but the sure one continues the track."""
    tracker = Tracker()
    tracker.update([box(50, 50)])
    (track,) = tracker.update([box(50, 50, score=0.2), box(58, 50, score=0.9)])
    assert track.score == 0.9


def test_single_false_detections_are_not_reported():
    tracker = Tracker()
    assert len(tracker.update([box(50, 50)])) == 1
    assert [t.id for t in tracker.update([box(50, 50), box(300, 300)])] == [1]
    assert [t.id for t in tracker.update([box(50, 50)])] == [1]
    assert tracker.lost == []
    tracker.update([box(50, 50), box(200, 200)])
    assert [t.id for t in tracker.update([box(50, 50), box(200, 200)])] == [1, 3]


def test_classes():
    cat = box(50, 50, label="cat", index=15)
    tracker = Tracker()
    tracker.update([box(50, 50)])
    assert tracker.update([cat]) == []
    assert [(t.id, t.label) for t in tracker.update([cat])] == [(2, "cat")]
    loose = Tracker(by_class=False)
    loose.update([box(50, 50)])
    assert [(t.id, t.label) for t in loose.update([cat])] == [(1, "cat")]


def test_faces_streams_and_reset():
    face = Face((10, 10, 50, 60), "face", 0.9, keypoints=(Keypoint("nose", 30, 40),))
    tracker = Tracker()
    raw = {"y": np.zeros(1)}
    frames = [StreamResult(np.zeros((2, 2, 3)), Faces([face], raw), Fraction(k)) for k in range(3)]
    seen = list(tracker.stream(frames))
    assert [[t.id for t in one.result] for one in seen] == [[1]] * 3
    assert [one.time for one in seen] == [0, 1, 2]
    assert seen[0].frame is frames[0].frame
    assert seen[0].result.raw is raw
    assert isinstance(seen[0].result, TrackedObjects)
    tracker.reset()
    assert tracker.update(Detections()) == []
    assert repr(tracker) == "<Tracker of 0 objects, frame 1>"
    tracker.update([face])
    assert tracker.update([face])[0].id == 1


def test_odd_boxes():
    """Boxes without an area, of one pixel, and the same box twice."""
    tracker = Tracker()
    flat = Detection((5, 5, 5, 5), "dog", 0.9)
    for _ in range(3):
        tracker.update([flat, box(50, 50), box(50, 50)])
    assert len(tracker.update([box(50, 50), box(50, 50)])) == 2


def test_drawing():
    tracks = TrackedObjects([TrackedObject((10, 10, 50, 40), "dog", 0.8, 16, id=2)])
    plain = np.zeros((60, 80, 3), np.uint8)
    made = tracks.draw(plain, labels=False)
    other = TrackedObjects([TrackedObject((10, 10, 50, 40), "dog", 0.8, 16, id=3)]).draw(
        plain, labels=False
    )
    assert made[10:12, 10:50].any(axis=2).all()
    assert not made[20:30, 20:40].any()
    assert (made[10, 20] != other[10, 20]).any()  # a color for each id
    assert "#2 dog" in tracks._repr_html_()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"high": 2}, "high must be a number from 0 to 1, got 2"),
        ({"low": True}, "low"),
        ({"low": 0.5, "high": 0.3}, "low must be at most high"),
        ({"overlap": "much"}, "overlap"),
        ({"keep": -1}, "keep must be an int of at least 0"),
        ({"keep": 2.5}, "keep"),
        ({"by_class": 1}, "by_class"),
    ],
)
def test_bad_options(options, word):
    with pytest.raises(dala.ParameterError, match=word):
        Tracker(**options)


@pytest.mark.parametrize("bad", ["dogs", 7, None, [(0, 0, 1, 1)], [box(float("nan"), 5)],
                                 [box(1, 1, score=float("inf"))]])  # fmt: skip
def test_bad_detections_change_nothing(bad):
    tracker = Tracker()
    tracker.update([box(50, 50)])
    with pytest.raises(dala.ParameterError, match=r"Tracker\.update"):
        tracker.update(bad)
    assert [(t.id, t.age) for t in tracker.update([box(50, 50)])] == [(1, 2)]
