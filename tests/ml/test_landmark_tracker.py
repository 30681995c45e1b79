"""Faces and hands through a video: regions from frame to frame, ids, and runs of the detector."""

import numpy as np
import pytest
from PIL import Image

import dala
from dala.ml.landmarks.follow import LandmarkTracker
from dala.ml.landmarks.steps import Region, RegionResult
from dala.ml.models import find_model
from dala.ml.results import Face, Faces, Keypoint

SIZE = (64, 64)


class Dots:
    """A model of bright dots: the same steps as a real one, on pictures of a few pixels.

    The detector finds the dots of a picture. The second step finds the brightest pixel of a region.
    """

    name = "dots"
    spec = find_model("facemesh")
    gathered = staticmethod(Faces)

    def __init__(self):
        self.searched, self.looked = [], 0

    def detect(self, picture, options):
        pixels = picture.pixels.numpy()[..., 0]
        self.searched.append(picture)
        spots = sorted(np.argwhere(pixels > 0).tolist(), key=lambda at: -int(pixels[tuple(at)]))
        return [Region(x, y, 16, 0, SIZE) for y, x in spots][: int(options["most"])]

    def find(self, picture, region, options, *, fresh=False):
        self.looked += 1
        pixels = picture.pixels.numpy()[..., 0]
        left, top = max(0, round(region.x) - 4), max(0, round(region.y) - 4)
        part = pixels[top : round(region.y) + 5, left : round(region.x) + 5]
        if part.max(initial=0) == 0:
            return None
        y, x = np.unravel_index(part.argmax(), part.shape)
        x, y = float(x + left), float(y + top)
        points = (Keypoint("nose", x, y), Keypoint("chin", x, y + 8))
        face = Face((x - 4, y - 4, x + 4, y + 4), "face", 0.9, 0, points)
        return RegionResult(face, Region(x, y, 16, 0, SIZE))


def picture(*dots, size=(60, 80)):
    made = np.zeros((*size, 3), np.uint8)
    for k, (x, y) in enumerate(dots):
        made[y, x] = 250 - 10 * k
    return made


def seen(tracker, *dots):
    found = tracker.update(picture(*dots))
    return {face.id: (face.keypoints[0].x, face.keypoints[0].y) for face in found}


def test_the_detector_runs_once_while_all_are_followed():
    model = Dots()
    tracker = LandmarkTracker(model, refresh=100)
    for k in range(20):
        assert seen(tracker, (10 + k, 20), (60 - k, 40)) == {1: (10 + k, 20), 2: (60 - k, 40)}
    assert (tracker.frames, tracker.detections, len(model.searched)) == (20, 1, 1)
    assert model.looked == 2 * 20  # one region of each a frame


def test_lost_and_found_again():
    tracker = LandmarkTracker(Dots(), refresh=100)
    assert seen(tracker, (10, 20), (60, 40)) == {1: (10, 20), 2: (60, 40)}
    assert seen(tracker, (10, 20)) == {1: (10, 20)}  # the second is covered: the detector runs
    assert seen(tracker, (10, 20)) == {1: (10, 20)}
    assert seen(tracker, (10, 20), (65, 45)) == {1: (10, 20), 2: (65, 45)}
    assert tracker.detections == 4
    assert seen(tracker, (10, 20), (65, 45)) == {1: (10, 20), 2: (65, 45)}
    assert tracker.detections == 4
    assert seen(tracker) == {}
    assert seen(tracker, (65, 45), (10, 20)) == {1: (10, 20), 2: (65, 45)}  # ids by place


def test_lost_for_too_long_or_too_far():
    tracker = LandmarkTracker(Dots(), refresh=100, keep=2)
    seen(tracker, (10, 20))
    for _ in range(3):
        assert seen(tracker) == {}
    assert seen(tracker, (10, 20)) == {2: (10, 20)}
    seen(tracker)
    assert seen(tracker, (60, 20)) == {3: (60, 20)}
    assert tracker.detections == 7  # while nothing is found, on every frame


def test_the_detector_rests_after_a_while():
    """A face that left is no reason to run it forever; new ones are found at a refresh."""
    tracker = LandmarkTracker(Dots(), refresh=10, keep=3)
    seen(tracker, (10, 20), (60, 40))
    runs = []
    for _ in range(8):
        seen(tracker, (10, 20))
        runs.append(tracker.detections)
    assert runs == [2, 3, 4, 4, 4, 4, 4, 4]
    found = [len(seen(tracker, (10, 20), (60, 40))) for _ in range(6)]
    assert found == [1, 1, 1, 1, 2, 2]  # ten frames after the last run
    assert tracker.detections == 5


def test_as_many_as_asked_for():
    tracker = LandmarkTracker(Dots(), {"most": 1}, refresh=2)
    for _ in range(6):
        assert seen(tracker, (10, 20), (60, 40)) == {1: (10, 20)}
    assert tracker.detections == 1


def test_two_that_become_one():
    tracker = LandmarkTracker(Dots(), refresh=100)
    seen(tracker, (30, 20), (40, 20))
    assert seen(tracker, (35, 20)) == {1: (35, 20)}
    assert seen(tracker, (35, 20)) == {1: (35, 20)}


def test_a_cut_to_another_size():
    tracker = LandmarkTracker(Dots(), refresh=100)
    seen(tracker, (10, 20))
    (face,) = tracker.update(picture((12, 20), size=(61, 80)))
    assert face.id == 1  # near the place where it was
    assert tracker.detections == 2


def test_reset():
    tracker = LandmarkTracker(Dots())
    seen(tracker, (10, 20))
    seen(tracker, (60, 40))
    tracker.reset()
    assert (tracker.frames, tracker.detections) == (0, 0)
    assert seen(tracker, (60, 40)) == {1: (60, 40)}
    assert repr(tracker) == "<LandmarkTracker of 1 dots, frame 1>"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"refresh": 0}, "tracker: refresh must be an int of at least 1, got 0"),
        ({"refresh": True}, "refresh must be an int of at least 1, got True"),
        ({"keep": -1}, "keep must be an int of at least 0, got -1"),
        ({"options": {"most": 0}}, "most must be an int of at least 1, got 0"),
        ({"options": {"moist": 1}}, "facemesh has no option 'moist'"),
    ],
)
def test_bad_trackers(options, text):
    with pytest.raises(dala.DalaError, match=text):
        LandmarkTracker(Dots(), **options)


# with the real weights ----------------------------------------------------------------------------
@pytest.fixture(scope="module")
def small(photo):
    return np.asarray(Image.fromarray(photo("astronaut")).crop((90, 0, 390, 300)))


def moved(still, x, y):
    return np.roll(still, (y, x), (0, 1))


def test_a_face_in_a_stream(real, small):
    """Faces move by up to ten pixels a frame; the detector runs on the first one only."""
    model = real("facemesh")
    (first,) = model.predict(small)
    frames = [moved(small, 6 * k, 3 * k) for k in range(5)]
    tracker = model.tracker()
    for k, frame in enumerate(frames):
        (face,) = tracker.update(frame)
        assert face.id == 1
        wanted = first.mesh[:, :2] + (6 * k, 3 * k)
        assert np.hypot(*(face.mesh[:, :2] - wanted).T).mean() < 1.5
    assert (tracker.frames, tracker.detections) == (5, 1)
    streamed = [one.result for one in model.stream(frames, policy="every")]
    assert [len(found) for found in streamed] == [1] * 5
    assert np.allclose(streamed[-1][0].mesh, face.mesh)
    assert list(model.stream([], policy="every")) == []
    assert list(model.stream([])) == []


def test_a_face_that_is_lost(real, small):
    model = real("facemesh")
    tracker = model.tracker()
    empty = np.full_like(small, 90)
    ids = [[face.id for face in tracker.update(f)] for f in (small, empty, empty, small, small)]
    assert ids == [[1], [], [], [1], [1]]
    assert tracker.detections == 4


def test_two_hands_in_a_stream(real, photo):
    model = real("hands")
    tracker = model.tracker()
    sides = []
    for k in range(3):
        found = tracker.update(moved(photo("hands"), 4 * k, 2 * k))
        sides.append({hand.id: hand.side for hand in found})
    assert sides[0] == sides[1] == sides[2]
    assert sorted(sides[0].values()) == ["left", "right"]
    assert tracker.detections == 1


def test_a_person_in_a_stream(real, photo):
    model = real("blazepose")
    tracker = model.tracker()
    found = [tracker.update(moved(photo("astronaut"), 5 * k, 0))[0] for k in range(3)]
    assert [person.id for person in found] == [1, 1, 1]
    assert tracker.detections == 1
    assert 3 < found[2]["nose"].x - found[0]["nose"].x < 20
