"""Named points and bones of results, and their descriptions before there is a result."""

import numpy as np
import pytest

import dala
from dala.ml import Subject
from dala.ml.results import (
    Bone,
    Detection,
    Face,
    FaceMesh,
    Faces,
    Hand,
    Hands,
    Keypoint,
    Pose,
    Poses,
    TrackedObject,
    TrackedObjects,
)
from dala.ml.results.names import (
    BODY_BONES,
    FACE_PATHS,
    HAND_BONES,
    HAND_POINTS,
    IRIS_PATHS,
    MESH_POINTS,
    POSE_BONES,
    POSE_POINTS,
)


def mesh_face(id=1, count=468, score=0.9):
    mesh = np.arange(count * 3, dtype=np.float64).reshape(count, 3)
    return FaceMesh(
        (0, 0, 9, 9), "face", score, keypoints=(Keypoint("chin", 5, 8),), id=id, mesh=mesh
    )


def hand(side, id=0):
    points = tuple(Keypoint(name, k, 2 * k, 0.9) for k, name in enumerate(HAND_POINTS))
    return Hand((0, 0, 20, 40), "hand", 0.9, keypoints=points, side=side, id=id)


def test_points_and_bones_of_results():
    face = mesh_face()
    assert (face.point("chin").x, face.point("chin").y) == (5, 8)
    assert face.point(10) == Keypoint("10", 30, 31, 0.9, 32)
    bone = face.bone(0, 10)
    assert bone == Bone(Keypoint("0", 0, 1, 0.9, 2), Keypoint("10", 30, 31, 0.9, 32))
    assert np.allclose([*bone.center, bone.length, bone.angle], [15, 16, 30 * 2**0.5, 45])
    assert (
        hand("left").point(8)
        == hand("left").point("index_tip")
        == Keypoint("index_tip", 8, 16, 0.9)
    )
    up = Bone(Keypoint("a", 0, 10), Keypoint("b", 0, 0, 0.5))
    assert (up.angle, up.score) == (-90, 0.5)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("chinn", r"FaceMesh.point: name must be the name of a point, got 'chinn'. .*'chin'\?"),
        (468, "FaceMesh.point: name must be a number from 0 to 467, got 468."),
        (-1, "FaceMesh.point: name must be a number from 0 to 467, got -1."),
        (True, "FaceMesh.point: name must be the name or the number of a point, got True."),
        (1.0, "FaceMesh.point: name must be the name or the number of a point, got 1.0."),
    ],
)  # fmt: skip
def test_points_that_do_not_exist(name, text):
    with pytest.raises(dala.ParameterError, match=text):
        mesh_face().point(name)
    with pytest.raises(dala.ParameterError, match=text.replace("point:", "bone:")):
        mesh_face().bone("chin", name)


def test_texts():
    assert str(mesh_face()) == "#1 face 0.90 at x 0..9, y 0..9"
    assert str(hand("left", 3)) == "#3 left hand 0.90 at x 0..20, y 0..40"
    assert str(Pose((Keypoint("nose", 1, 2),), 0.9, id=2)).startswith("#2 person 0.90, 1 of 1")
    assert "#2" not in repr(Hands([hand("left")]))
    assert "left hand" in str(Hands([hand("left")]))


def test_targets_find_their_part():
    faces = Faces([mesh_face(1), mesh_face(2, 478)])
    assert dala.ml.face.point("chin").find(faces) == Keypoint("chin", 5, 8)
    assert dala.ml.face.numbered(2).point(470).find(faces).x == 1410
    assert dala.ml.face.point(470).find(faces) is None  # the first face has no irises
    assert dala.ml.face.numbered(3).point("chin").find(faces) is None
    assert dala.ml.face.point("nose").find(faces) is None  # named, but not in this result
    assert dala.ml.face.box.find(faces) == (0, 0, 9, 9)
    assert dala.ml.face.bone("chin", 0).find(faces).end.name == "0"
    both = Hands([hand("right"), hand("left")])
    assert dala.ml.hand.sided("left").select(both) is both[1]
    assert dala.ml.hand.point("wrist").find(both[0]) == both[0].keypoints[0]
    assert dala.ml.hand.point("wrist").find(faces) is None
    poses = Poses([Pose((Keypoint("left_wrist", 1, 2, 0.2), Keypoint("left_elbow", 3, 4)), 0.9)])
    bone = dala.ml.pose.bone("left_wrist", "left_elbow")
    assert bone.find(poses) is None  # the wrist is not sure
    assert bone.find(poses, least=0.1).end.x == 3
    people = TrackedObjects(
        [
            TrackedObject((0, 0, 1, 1), "dog", 0.9, id=1),
            TrackedObject((2, 2, 3, 3), "person", 0.8, id=2),
        ]
    )
    assert Subject("object", label="person").box.find(people) == (2, 2, 3, 3)
    assert Subject("object").numbered(1).box.find(people) == (0, 0, 1, 1)
    assert Subject("object").box.find(people[1], least=0.85) is None
    nowhere = Detection((0, 0, float("nan"), 1), "dog", 0.9)
    assert Subject("object").box.find(nowhere) is None
    plain = Face((0, 0, 9, 9), "face", 0.9, keypoints=(Keypoint("nose", 4, 5),))
    assert dala.ml.face.point(0).find(Faces([plain])) is None  # it has no mesh


def test_models_of_targets():
    assert dala.ml.face.point("nose").model == "blazeface"
    assert dala.ml.face.bone("nose", "chin").model == "facemesh"
    assert dala.ml.face.point("left_iris").options == {"iris": True}
    assert dala.ml.face.bone(1, 470).options == {"iris": True}
    assert dala.ml.face.point("chin").options == dala.ml.face.box.options == {}
    assert dala.ml.pose.point("left_heel").model == "blazepose"
    assert dala.ml.pose.box.model == "movenet"
    assert dala.ml.hand.box.model == "hands"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: dala.ml.face.point("noze"), r"point: name must be .* point of a face, .*'nose'\?"),
        (lambda: dala.ml.hand.point(21), "a number from 0 to 20, got 21"),
        (lambda: dala.ml.pose.point(3), "the name of a point of a pose, got 3"),
        (lambda: dala.ml.pose.bone("nose", "wrist"), "bone: name must be the name of a point"),
        (lambda: Subject("object").point("nose"), "an object has no points"),
        (lambda: Subject("cat"), "kind must be one of 'face'"),
        (lambda: dala.ml.face.sided("left"), "side must be left out for a face"),
        (lambda: dala.ml.hand.sided("up"), "side must be 'left' or 'right'"),
        (lambda: dala.ml.face.numbered(0), "id must be an int of at least 1, got 0"),
        (lambda: dala.ml.face.numbered(True), "id must be an int of at least 1, got True"),
        (lambda: dala.ml.face.box.find([1]), "result must be Faces, Hands, Poses"),
    ],
)  # fmt: skip
def test_bad_targets(make, text):
    with pytest.raises(dala.ParameterError, match=text):
        make()


def test_names_and_lines_fit():
    assert len(HAND_POINTS) == 21
    assert len(POSE_POINTS) == 33
    assert len(HAND_BONES) == 21
    assert all(a in HAND_POINTS and b in HAND_POINTS for a, b in HAND_BONES)
    assert all(a in POSE_POINTS and b in POSE_POINTS for a, b in POSE_BONES)
    assert POSE_BONES[: len(BODY_BONES)] == BODY_BONES
    assert all(0 <= k < 468 for path in (*FACE_PATHS, *MESH_POINTS.values()) for k in path)
    assert {k for path in IRIS_PATHS for k in path} == {*range(469, 473), *range(474, 478)}


def test_hands_and_meshes_draw_themselves():
    picture = np.zeros((50, 40, 3), np.uint8)
    drawn = Hands([hand("left")]).draw(picture, color="red", labels=False)
    assert (drawn[16, 8] == 255).all()  # a joint
    two = (Keypoint("wrist", 5, 5), Keypoint("thumb_cmc", 35, 5))
    bone = Hands([Hand((0, 0, 9, 9), "hand", 0.9, keypoints=two)])
    assert bone.draw(picture, color="red", labels=False)[5, 20].tolist() == [255, 0, 0]
    assert drawn[34, 30].tolist() == [0, 0, 0]
    mesh = np.zeros((468, 3))
    mesh[:, :2] = 20
    mesh[[10, 338], :2] = (5, 5), (15, 5)
    face = FaceMesh((0, 0, 40, 40), "face", 0.9, mesh=mesh)
    drawn = Faces([face]).draw(picture, color="red", labels=False)
    assert drawn[5, 10].tolist() == [255, 255, 255]  # the oval of the face
    assert drawn[30, 30].tolist() == [0, 0, 0]
