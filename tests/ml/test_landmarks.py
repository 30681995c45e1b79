"""Faces, hands and bodies by several models: regions, known answers, pictures that are hard."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import dala
from dala.gpu.compute import from_array
from dala.media.frame import Frame
from dala.ml.landmarks.steps import Region, RegionSource, around, direction
from dala.ml.models import blazepose, facemesh, hands
from dala.ml.prepare import kernel
from dala.ml.results import Face, Faces, Hand, Hands, Keypoint
from dala.ml.results.names import MESH_POINTS
from dala.ml.runtime.session import Session
from dala.ml.spec import RawResult
from dala.ml.weights.find import ensure_weights
from tests.ml.answers import KNOWN


def xy(points):
    return np.array([tuple(p) for p in points])


def apart(some, others):
    """The mean distance of points."""
    return float(np.hypot(*(np.asarray(some)[:, :2] - np.asarray(others)[:, :2]).T).mean())


# regions ------------------------------------------------------------------------------------------
def test_regions_by_hand():
    region = Region(100, 60, 40, np.pi / 2, (20, 20))  # the x axis of the input points down
    assert np.allclose(
        region.back([(10, 10), (20, 10), (10, 20)]), [(100, 60), (100, 80), (80, 60)]
    )
    assert np.allclose(region.box, (80, 40, 120, 80))
    flipped = Region(100, 60, 40, 0, (20, 20), mirrored=True)
    assert np.allclose(flipped.back([(0, 0), (20, 10)]), [(120, 40), (80, 60)])
    assert np.isclose(direction((0, 0), (0, -5)), -np.pi / 2)


def test_the_matrix_maps_pixel_centers():
    region = Region(31.5, 20.25, 17, 0.4, (8, 8), mirrored=True)
    for times in (1, 3):
        a, b, c, d, e, f = region.matrix(times)
        pixel = np.array([(0, 0), (5, 2), (8 * times - 1, 3)])
        got = pixel @ np.array([(a, d), (b, e)]) + (c, f) + 0.5
        assert np.allclose(got, region.back((pixel + 0.5) / times))


def test_squares_around_points():
    points = np.array([(10.0, 10.0), (30.0, 20.0)])
    level = around(points, 0, (8, 8), scale=1.5, shift=-0.5)
    assert np.allclose((level.x, level.y, level.side), (20, 10, 30))
    angle = 0.7
    turn = np.array([(np.cos(angle), np.sin(angle)), (-np.sin(angle), np.cos(angle))])
    turned = around(points @ turn, angle, (8, 8), scale=1.5, shift=-0.5)
    assert np.allclose((turned.x, turned.y), np.array((20, 10)) @ turn)
    assert np.isclose(turned.side, 30)
    assert around(points[:1], 0, (8, 8), scale=2.0).side == 2  # one point has some size too


@pytest.mark.parametrize("channels", [0, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_rotated_crops(engine_id, channels, dtype):
    """A quarter turn of whole pixels is exact: the same as by NumPy."""
    rng = np.random.default_rng(2)
    shape = (12, 16, channels) if channels else (12, 16)
    picture = rng.integers(0, 256, shape, np.uint8)
    given = picture if dtype == np.uint8 else (picture / np.float32(255)).astype(np.float32)
    params = kernel().settle({"normalize": "unit", "size": (6, 6), "layout": "nhwc"})
    source = RegionSource(given, "predict")
    got = source.tensor(Region(8, 6, 6, np.pi / 2, (6, 6)), params)[0]
    rgb = np.broadcast_to(picture.reshape(12, 16, -1), (12, 16, max(channels, 3)))[..., :3]
    wanted = np.rot90(rgb[3:9, 5:11], 1) / 255  # its right is the picture's down
    assert np.allclose(got, wanted, atol=1.1 / 255)


def test_crops_outside_the_picture_and_of_large_ones(engine_id):
    picture = np.zeros((40, 40, 3), np.uint8)
    picture[:, :20] = 200
    params = kernel().settle({"normalize": "unit", "size": (4, 4), "layout": "nhwc"})
    source = RegionSource(picture, "predict")
    outside = Region(0, 20, 20, 0, (4, 4))
    assert np.allclose(source.tensor(outside, params), 200 / 255, atol=1e-3)
    black = source.tensor(outside, params, "constant")[0, :, :, 0]
    assert np.allclose(black[1, :1], 0, atol=0.02)
    assert np.allclose(black[1, 3], 200 / 255, atol=1e-3)
    # Stripes of one pixel become gray: a reduction by area, not a sample of every tenth pixel.
    striped = np.zeros((40, 40, 3), np.uint8)
    striped[:, ::2] = 255
    whole = RegionSource(striped, "predict").tensor(Region(20, 20, 16, 0, (4, 4)), params)
    assert np.allclose(whole, 0.5, atol=0.05)
    assert not source.holds(Region(41, 20, 20, 0, (4, 4)))
    assert not source.holds(Region(float("nan"), 20, 20, 0, (4, 4)))
    assert not source.holds(Region(20, 20, 0.5, 0, (4, 4)))


# decoding by hand ---------------------------------------------------------------------------------
def test_a_mesh_by_hand():
    rows = np.tile(np.array([96.0, 96, 4]), 468)
    rows[:3] = 0, 192, -8  # point 0
    outputs = {"output_mesh": rows, "output_faceflag": np.array([0.9])}
    region = Region(50, 40, 96, 0, (192, 192))  # half a pixel per pixel of the input
    (face,) = facemesh.decode(RawResult(outputs, region, (), {"score": 0.5}))
    assert np.allclose(face.mesh[0], (2, 88, -4))
    assert np.allclose(face.mesh[1:], (50, 40, 2))
    assert face.box == (2, 40, 50, 88)
    assert [p.name for p in face.keypoints] == list(MESH_POINTS)
    assert facemesh.decode(RawResult(outputs, region, (), {"score": 0.95})) == []


def test_hands_by_hand():
    rows = np.tile(np.array([112.0, 112, 0]), 21)
    rows[3:6] = 224, 0, 10
    outputs = {
        "Identity:0": rows, "Identity_1:0": np.array([0.8]), "Identity_2:0": np.array([0.3])
    }  # fmt: skip
    region = Region(100, 100, 448, np.pi / 2, (224, 224))
    (hand,) = hands.decode(RawResult(outputs, region, (), {"score": 0.5}))
    assert np.allclose(tuple(hand.point("thumb_cmc")), (324, 324))
    assert np.isclose(hand.point("thumb_cmc").z, 20)
    assert (hand.side, round(hand.side_score, 6), hand.score) == ("left", 0.7, 0.8)


def test_regions_of_detections():
    points = (Keypoint("right_eye", 40, 50), Keypoint("left_eye", 50, 60))
    (region,) = facemesh.regions(
        Faces([Face((20, 40, 60, 70), "face", 1.0, 0, points)]), (192, 192)
    )
    assert np.allclose((region.x, region.y, region.side, region.angle), (40, 55, 60, np.pi / 4))
    palm = (Keypoint("wrist", 40, 60), Keypoint("middle_mcp", 40, 40))
    (up,) = hands.regions(Hands([Hand((30, 40, 50, 60), "palm", 1.0, 0, palm)]), (224, 224))
    assert np.allclose((up.x, up.y, up.side, up.angle), (40, 40, 52, 0))


def test_heatmaps_refine_points():
    maps = np.zeros((64, 64, 39), np.float32)
    maps[10, 20, 0], maps[10, 22, 0], maps[12, 20, 1] = 0.6, 0.2, 0.4
    rows = np.tile(np.array([80.0, 40, 0, 9, 9]), (39, 1))
    outputs = {
        "ld_3d": rows, "activation_heatmap": maps, "output_poseflag": np.array([0.9])
    }  # fmt: skip
    whole = Region(128, 128, 256, 0, (256, 256))
    (person,) = blazepose.decode(RawResult(outputs, whole, (), {"score": 0.5}))
    assert np.allclose(tuple(person["nose"]), (20.5 * 4, 10 * 4))
    assert np.allclose(tuple(person["left_eye_inner"]), (80, 40))  # its heatmap is not sure


# known answers ------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def mediapipe():
    """Results of MediaPipe 0.10.14's own face mesh, hands and pose on whole photographs."""
    with np.load(KNOWN / "landmarks_mediapipe.npz") as known:
        return dict(known)


def test_a_face_as_in_mediapipe(real, photo, mediapipe):
    model = real("facemesh")
    (face,) = model.predict(photo("astronaut"), iris=True)
    assert face.score > 0.99
    assert face.mesh.shape == (478, 3)
    assert apart(face.mesh[:468], mediapipe["mesh"]) < 1.2
    assert np.hypot(*(face.mesh[:468, :2] - mediapipe["mesh"][:, :2]).T).max() < 3.5
    assert np.abs(face.mesh[:468, 2] - mediapipe["mesh"][:, 2]).mean() < 1.5
    assert apart(face.mesh[468:], mediapipe["iris"]) < 0.7
    assert np.allclose(tuple(face.point("left_iris")), (246.6, 103.4), atol=1)
    assert face.point("nose").x == face.mesh[1, 0]
    (plain,) = model.predict(photo("astronaut"))
    assert np.array_equal(plain.mesh, face.mesh[:468])
    assert plain.box == face.box
    assert model.predict(photo("chelsea")) == model.predict(photo("coffee")) == []


def test_hands_as_in_mediapipe(real, photo, mediapipe):
    """Rendered hands, so that the sides and the joints are known too."""
    found = real("hands").predict(photo("hands"))
    assert len(found) == 2
    by_side = {hand.side: hand for hand in found}
    for side, hand in by_side.items():
        assert hand.score > 0.9
        assert hand.side_score > 0.7
        assert len(hand.keypoints) == 21
        assert apart(xy(hand.keypoints), mediapipe[f"{side}_hand"]) < 3
        assert apart(xy(hand.keypoints), mediapipe[f"{side}_joints"]) < 8
    assert by_side["left"].point("thumb_tip").x < by_side["left"].point("pinky_tip").x
    assert real("hands").predict(photo("coffee")) == []
    mirrored = real("hands").predict(photo("hands")[:, ::-1].copy())
    assert sorted(h.side for h in mirrored) == ["left", "right"]
    (first,) = [h for h in mirrored if h.side == "right"]  # the left hand, mirrored
    assert apart((447, 0) + xy(first.keypoints) * (-1, 1), xy(by_side["left"].keypoints)) < 4


def test_a_person_as_in_mediapipe(real, photo, mediapipe):
    """MediaPipe's larger model, and its newer detector: the face is close."""
    (person,) = real("blazepose").predict(photo("astronaut"))
    assert person.score > 0.9
    assert len(person.keypoints) == 33
    assert apart(xy(person.keypoints)[:11], mediapipe["pose"][:11]) < 10
    assert min(p.score for p in person.keypoints[:13]) > 0.9
    assert person.bone("left_shoulder", "right_shoulder").length > 100
    assert person["nose"].z < person["left_ear"].z  # toward the camera
    assert real("blazepose").predict(photo("coffee")) == []


def test_a_person_is_looked_at_again_where_the_detector_was_wrong(real, photo, mediapipe):
    model = real("blazepose")
    source, options = RegionSource(photo("astronaut"), "predict"), model.spec.chosen({})
    (given,) = model.detect(source, options)
    wrong = replace(given, side=given.side * 2)

    def error(seen):
        return apart(xy(seen.found.keypoints)[:11], mediapipe["pose"][:11])

    once = model.find(source, wrong, options)
    again = model.find(source, wrong, options, fresh=True)
    assert error(once) > 10
    assert error(again) < 7
    assert again.region.side < 1.5 * given.side


# hard pictures ------------------------------------------------------------------------------------
@pytest.mark.parametrize("angle", [-40, 25, 90])
def test_rotated_faces(real, photo, mediapipe, angle):
    image = Image.fromarray(photo("astronaut"))
    turned = np.asarray(image.rotate(angle, Image.Resampling.BICUBIC, center=(225, 125)))
    (face,) = real("facemesh").predict(turned)
    back = np.radians(angle)
    turn = np.array([(np.cos(back), np.sin(back)), (-np.sin(back), np.cos(back))])
    wanted = (mediapipe["mesh"][:, :2] - (225, 125)) @ turn.T + (225, 125)
    assert apart(face.mesh, wanted) < 3


def test_kinds_of_pictures(real, photo, mediapipe):
    model, rgb = real("facemesh"), photo("astronaut")
    alpha = np.dstack([rgb, np.full(rgb.shape[:2], 255, np.uint8)])
    gray = np.asarray(Image.fromarray(rgb).convert("L"))
    for given, within in (
        (alpha, 1.2), (rgb.astype(np.float32) / 255, 1.2), (Image.fromarray(rgb), 1.2),
        (Frame.from_array(rgb), 1.2), (Frame.from_array(rgb).to("nv12"), 1.8),
        (from_array(rgb), 1.2), (gray, 4),
    ):  # fmt: skip
        (face,) = model.predict(given)
        assert apart(face.mesh, mediapipe["mesh"]) < within
    both = model.predict([rgb, photo("coffee")])
    assert [len(found) for found in both] == [1, 0]
    large = np.asarray(Image.fromarray(rgb).resize((3840, 2160), Image.Resampling.BICUBIC))
    (face,) = model.predict(large)
    assert apart(face.mesh[:, :2] / (7.5, 2160 / 512), mediapipe["mesh"]) < 8  # squeezed


def test_faces_at_the_border(real, photo, mediapipe):
    cut = photo("astronaut")[:, 215:].copy()  # half of the face
    for face in real("facemesh").predict(cut):
        assert np.isfinite(face.mesh).all()
    (face,) = real("facemesh").predict(photo("astronaut")[95:, :].copy())  # without forehead
    assert apart(face.mesh[:, :2] + (0, 95), mediapipe["mesh"]) < 8


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 3, 3), (1, 900, 3), (5, 4)])
@pytest.mark.parametrize("name", ["facemesh", "hands"])
def test_tiny_pictures(real, name, shape):
    for value in (0, 255):
        assert real(name).predict(np.full(shape, value, np.uint8)) == []


def test_bad_input(real, photo):
    model = real("facemesh")
    with pytest.raises(dala.ShapeError, match=r"predict: the picture is empty"):
        model.predict(np.zeros((0, 5, 3), np.uint8))
    with pytest.raises(dala.ModelError, match="NaN or infinity"):
        model.predict(np.full((64, 64, 3), np.nan, np.float32))
    with pytest.raises(dala.ParameterError, match="iris must be True or False, got 1"):
        model.predict(photo("astronaut"), iris=1)
    with pytest.raises(dala.UnknownParameter, match=r"facemesh has no option 'irsi'.*'iris'"):
        model.predict(photo("astronaut"), irsi=True)
    with pytest.raises(dala.ParameterError, match="most must be an int of at least 1"):
        model.predict(photo("astronaut"), most=0)
    with pytest.raises(dala.DalaError, match="path"):
        model.predict("astronaut.png")


def test_tensors_are_the_last_step(real, photo, mediapipe):
    part = photo("astronaut")[30:222, 130:322].astype(np.float32) / 255
    (face,) = real("facemesh").predict(part[None])
    assert apart(face.mesh[:, :2] + (130, 30), mediapipe["mesh"]) < 3


def test_closing_closes_all_steps(real, photo):
    model = real("facemesh")
    detector = model.part("blazeface_back")
    model.close()
    model.close()
    for closed in (model, detector):
        with pytest.raises(dala.FreedError):
            closed.predict(photo("astronaut"))


def test_weights_of_a_step_that_are_missing(real, monkeypatch):
    """Nothing stays open, and the error names the step."""
    real("hands").close()
    closed, close = [], Session.close
    monkeypatch.setattr(Session, "close", lambda self: (closed.append(self), close(self)))
    monkeypatch.setattr(
        "dala.ml.gpu.ensure_weights",
        lambda name, pull, ensure=ensure_weights: ensure(name if name == "hands" else "gone", pull),
    )
    with pytest.raises(dala.ModelNotFound, match="'gone'"):
        real("hands")
    assert len(closed) == 1


def test_several_faces(real, photo):
    two = np.concatenate([photo("astronaut"), photo("astronaut")[:, ::-1]], axis=1)
    found = real("facemesh").predict(two)
    assert len(found) == 2
    noses = sorted(face.point("nose").x for face in found)
    assert np.allclose(noses, [noses[0], 1023 - noses[0]], atol=3)
    assert len(real("facemesh").predict(two, most=1)) == 1
