"""Watchers of video nodes: ids, smoothing, results by frame, real faces."""

import json
import math

import numpy as np
import pytest

import dala
from dala.errors import (
    FreedError,
    ModelError,
    ParameterError,
    SceneFileError,
    UnknownParameter,
)
from dala.media.scene import Scene, load_scene, scene_to_dict
from dala.media.scene.follow.follower import ShownPicture
from dala.ml.follow.elements import Element, Identities, Seen, elements_of
from dala.ml.gpu import load_model
from dala.ml.results import Detection, Detections, Face, Keypoint, Pose
from tests.ml.conftest import ROOT

ASTRONAUT = ROOT / "tests" / "photos" / "astronaut.png"


def thing(x, y=0.0, side=10.0, label="thing"):
    return Element((x, y, x + side, y + side), label, 0.9)


def test_elements_of_results():
    face = Face((1, 2, 5, 8), "face", 0.9, keypoints=(Keypoint("nose", 3, 4, 0.9),))
    pose = Pose((Keypoint("nose", 4, 5, 0.9), Keypoint("left_eye", 6, 3, 0.7)), 0.8)
    (one,) = elements_of([face], None)
    assert (one.box, one.size, one.points["nose"].x) == ((1, 2, 5, 8), 6, 3)
    (two,) = elements_of([pose], "person")
    assert two.box == (4, 3, 6, 5)
    found = [Detection((0, 0, 1, 1), "dog", 0.5), Detection((0, 0, 2, 1), "cat", 0.5)]
    assert [e.label for e in elements_of(found, "cat")] == ["cat"]
    broken = Detection((0, 0, math.nan, 1), "dog", 0.5)
    assert elements_of([broken], None) == []


def points(**places):
    return {name: Keypoint(name, *place) for name, place in places.items()}


@pytest.mark.parametrize(
    ("found", "name", "angle"),
    [
        (points(right_eye=(0, 0), left_eye=(10, 10)), "nose", 45),
        (points(right_eye=(0, 0, 0.1), left_eye=(10, 10)), "nose", 0),
        (points(right_eye=(0, 0), left_eye=(9, 0), right_shoulder=(0, 9), left_shoulder=(0, 19)),
         "left_wrist", 90),
        (points(right_eye=(0, 0), left_eye=(9, 0), right_shoulder=(0, 9), left_shoulder=(0, 19)),
         "nose", 0),
        (points(wrist=(0, 10), middle_mcp=(0, 0)), "wrist", 0),
        ({}, "", 0),
    ],
)  # fmt: skip
def test_angles(found, name, angle):
    assert Element((0, 0, 1, 1), "x", 1.0, found).angle(0.3, name) == pytest.approx(angle)


def test_ids_and_the_largest():
    known = Identities(None, 10.0)
    first = known.update([thing(0), thing(50, side=12)], 0.0)
    assert [e.id for e in first.elements] == [1, 2]
    assert first.largest.id == 2
    then = known.update([thing(51, side=10), thing(1, side=12), thing(90, side=11)], 0.1)
    assert [e.id for e in then.elements] == [2, 1, None]
    assert then.largest.id == 2  # another is larger, but not by much
    later = known.update([thing(51, side=10), thing(1, side=20), thing(90, side=11)], 0.2)
    assert [e.id for e in later.elements] == [2, 1, 3]
    assert later.largest.id == 1
    again = known.update([thing(1)], 0.1)  # a jump back: nothing is known, and no id comes twice
    assert [e.id for e in again.elements] == [4]
    assert later.pick(3).box[0] == 90
    assert later.pick(9) is None
    assert Seen().pick("surest") is None


def test_smoothing_is_steady_and_follows():
    rng = np.random.default_rng(0)
    plain, smooth = Identities(None, 10.0), Identities(1.0, 10.0)
    rough, steady, fast = [], [], []
    for k in range(60):
        noisy = [thing(100 + 0.3 * rng.normal(), side=40)]
        rough.append(plain.update(noisy, k / 30).largest.box[0])
        steady.append(smooth.update(noisy, k / 30).largest.box[0])
    assert np.std(steady[20:]) < 0.5 * np.std(rough[20:])
    moving = Identities(1.0, 10.0)
    for k in range(60):
        fast.append(moving.update([thing(8.0 * k, side=80)], k / 30).largest.box[0])
    assert abs(fast[-1] - 8 * 59) < 8  # less than a frame behind


@pytest.fixture
def square(tmp_path):
    """A model of 4 x 6 pictures whose result is a box at the brightest channel's mean."""
    from dala.ml.convert.onnx_file import Graph

    graph = Graph("square")
    x = graph.input("pixels", ("batch", 3, 4, 6))
    graph.output(graph.node("GlobalAveragePool", x), ("batch", 3, 1, 1), name="mean")
    path = tmp_path / "square.onnx"
    path.write_bytes(graph.save())

    def decode(outputs):
        red, green, blue = (round(255 * float(v)) for v in outputs["mean"].reshape(-1))
        found = [] if not red else [Detection((red, green, red + 20, green + 10), "box", 0.9)]
        if blue:
            found.append(Detection((blue, 60, blue + 8, 68), "box", 0.9))
        return Detections(found)

    with load_model(
        path, "cpu", task="detect", preprocess={"normalize": "unit"}, decode=decode
    ) as model:
        yield model


def flat(*color):
    return np.full((80, 120, 3), color, np.uint8)


@pytest.fixture
def scene():
    with Scene(120, 80, device="cpu", fps=10) as made:
        yield made


def test_one_run_a_frame(scene, square):
    video = scene.add_video([flat(10 * k, 5, 0) for k in range(1, 5)], fps=10)
    seen = dala.ml.watch(video, square, smooth=False)
    assert dala.ml.watch(video, square, smooth=False) is seen
    dots = [scene.add_overlay(color="red", size=(2, 2)) for _ in range(3)]
    for dot, place in zip(dots, ("top-left", "center", "bottom-right"), strict=True):
        scene.follow(dot, seen.box(at=place))
    for k in (0, 1, 2, 3, 1, 0):
        scene.render(k / 10)
        places = [dot.position for dot in dots]
        x = 10.0 * (k + 1)
        assert places == [(x, 5.0), (x + 10, 10.0), (x + 20, 15.0)]
    assert seen.runs == 4
    scene.render(0.02)  # the same frame
    assert seen.runs == 4


def test_frames_of_a_file_are_known_again(scene, square, tmp_path):
    from dala.media import video as videos

    path = tmp_path / "steps.mkv"
    with videos.write(path, fps=10, codec="ffv1") as sink:
        for k in range(4):
            sink.write(flat(20 + 20 * k, 8, 0))
    node = scene.add_video(path, loop=True)
    seen = dala.ml.watch(node, square, smooth=False)
    dot = scene.add_overlay(color="red", size=(2, 2))
    scene.follow(dot, seen.box(at="top-left"))
    first = [scene.render(k / 10) and dot.x for k in range(4)]
    assert first == pytest.approx([20, 40, 60, 80], abs=2)
    again = [scene.render(k / 10) and dot.x for k in (5, 2, 0, 7)]
    assert again == [first[1], first[2], first[0], first[3]]
    assert seen.runs == 4


def test_a_presentation_uses_the_last_result(scene, square):
    shown = [ShownPicture(flat(10 * k, 5, 0), k, k / 10) for k in range(1, 4)]
    node = scene.add_video([flat(10, 5, 0)])
    with dala.ml.watch(node, square, smooth=False) as seen:
        assert seen.seen(shown[0], wait=False).elements == ()
        seen._running[0].result()
        assert seen.seen(shown[0], wait=False).largest.box[0] == 10
        assert seen.seen(shown[1], wait=False).largest.box[0] == 10  # not yet
        assert seen.seen(shown[2], wait=True).largest.box[0] == 30  # in order: the second, too
        assert seen.runs == 3
    with pytest.raises(FreedError, match="watch: it is closed"):
        seen.seen(shown[0], wait=True)
    with dala.ml.watch(node, square, smooth=False, wait=True) as exact:
        assert exact.seen(shown[1], wait=False).largest.box[0] == 20


def test_errors_of_the_thread_arrive(scene, square):
    node = scene.add_video([flat(10, 5, 0)])
    seen = dala.ml.watch(node, square)
    seen.model.close()
    shown = ShownPicture(flat(1, 2, 3), 1, 0.0)
    seen.seen(shown, wait=False)
    with pytest.raises(FreedError, match=r"square.onnx. is closed. Load it again"):
        seen.seen(shown._replace(version=2), wait=True)


def test_a_name_tag_over_each(scene, square):
    frames = [flat(20 + k, 5, 80 if k > 1 else 0) for k in range(6)]
    people = dala.ml.watch(scene.add_video(frames, fps=10), square, smooth=False)
    tags = scene.follow_each(
        people.boxes(at="top"), lambda id: scene.add_text(f"#{id}", size=8), anchor="bottom"
    )
    scene.render(0)
    assert {id: node.text for id, node in tags.nodes.items()} == {1: "#1"}
    for k in range(1, 6):
        scene.render(k / 10)
    assert tags.nodes[1].position == (25 + 10, 5)
    assert tags.nodes[2].position == (84, 60)
    assert len(tags.nodes) == 2


def test_refusals(scene, square, tiny):
    node = scene.add_video([flat(1, 2, 3)])
    with pytest.raises(ParameterError, match=r"video must be a node of scene.add_video, got 3"):
        dala.ml.watch(3, square)
    with load_model(tiny, "cpu") as classifier, pytest.raises(ModelError, match="faces, people or"):
        dala.ml.watch(node, classifier)
    for options, text in (
        ({"least": 2}, "least must be a number from 0 to 1, got 2"),
        ({"smooth": -1}, "smooth must be a bool, or a cutoff above 0 Hz, got -1"),
        ({"label": 3}, "label must be the name of a class"),
        ({"wait": "no"}, "wait must be True, False or None"),
    ):
        with pytest.raises(ParameterError, match=f"^watch: {text}"):
            dala.ml.watch(node, square, **options)
    with pytest.raises(UnknownParameter, match=r"no option 'scor'. Did you mean 'score'"):
        dala.ml.watch(node, "blazeface", scor=0.5)
    face = dala.ml.watch(node, "blazeface")
    with pytest.raises(ParameterError, match=r"finds no point 'nos'. Did you mean 'nose'"):
        face.point("nos")
    with pytest.raises(ParameterError, match=r"finds no point 'nose'. It finds boxes only"):
        dala.ml.watch(node, square).point("nose")
    with pytest.raises(ParameterError, match="which must be 'largest', 'surest' or an id"):
        face.box(0)
    with pytest.raises(ParameterError, match="at must be"):
        face.box(at="middle")


def test_a_real_face(scene, photo):
    """The eyes of the photograph, by hand: right about (205, 113), left about (247, 103)."""
    picture = photo("astronaut")
    video = scene.add_video([picture], size=(120, 80), fit="cover", rotation=10)
    face = dala.ml.watch(video, "blazeface", provider="cpu")
    glasses = scene.add_overlay(color="red", size=(20, 6))
    link = scene.follow(glasses, face.bone("right_eye", "left_eye"), scale=2)
    scene.render(0)
    assert link.sighting.x == pytest.approx(226, abs=6)
    assert link.sighting.y == pytest.approx(108, abs=6)
    assert glasses.rotation == pytest.approx((link.sighting.angle + 10) % 360)
    assert glasses.scale * 20 == pytest.approx(2 * link.sighting.width * 120 / 512)


def test_scene_files(tmp_path, photo):
    with Scene(120, 80, device="cpu", fps=10) as scene:
        video = scene.add_video(ASTRONAUT, id="cam", size=(80, 80))
        face = dala.ml.watch(video, "blazeface", smooth=2.0, score=0.6, provider="cpu")
        hat = scene.add_overlay(color="red", size=(20, 6), id="hat", position=(3, 4))
        scene.follow(hat, face.bone("right_eye", "left_eye", at=0.25), offset=(0, -1), lost="fade")
        frame = scene.add_overlay(color="red", size=(20, 6))
        scene.follow(frame, face.box(at="top"), fit=True, anchor=None)
        wanted = np.asarray(scene.render(0)).copy()
        places = hat.position, hat.scale, hat.rotation, frame.box
        scene.save(tmp_path / "ar.json")
    data = json.loads((tmp_path / "ar.json").read_text())
    shared = {
        "video": "cam", "model": "blazeface", "smooth": 2, "provider": "cpu",
        "options": {"score": 0.6},
    }  # fmt: skip
    assert data["follows"] == [
        {"node": "hat", "target": {**shared, "bone": ["right_eye", "left_eye"], "at": 0.25},
         "offset": [0, -1], "lost": "fade"},
        {"node": frame.id, "target": {**shared, "box": True, "at": [0.5, 0]}, "fit": True,
         "anchor": None},
    ]  # fmt: skip
    assert data["nodes"][1]["position"] == [3, 4]  # as before it followed
    with load_scene(tmp_path / "ar.json", "cpu") as again:
        again.render(0)
        hat, frame = again["hat"], again[frame.id]
        assert (hat.position, hat.scale, hat.rotation, frame.box) == places
        assert (np.asarray(again.render(0)) == wanted).all()
        links = list(again.followers)
        assert links[0].target.watch is links[1].target.watch
        assert scene_to_dict(again) == data
    data["follows"][0]["target"]["bone"] = ["right_eye", "tail"]
    with pytest.raises(SceneFileError) as caught:
        load_scene(data, "cpu", base=tmp_path)
    assert caught.value.problems == [
        "follows[0]: watch: 'blazeface' finds no point 'tail'. It finds right_eye, left_eye, nose, "
        "mouth, right_ear, left_ear."
    ]


def test_descriptions_find_their_video(scene, photo):
    video = scene.add_video([photo("astronaut")], size=(120, 80))
    dot, other = (scene.add_overlay(color="red", size=(2, 2)) for _ in "ab")
    link = scene.follow(dot, dala.ml.face.point("nose"))
    scene.follow(other, dala.ml.face.bone("right_eye", "left_eye"), video=video)
    scene.render(0)
    assert link.sighting.x == pytest.approx(227, abs=8)
    assert link.target.watch.runs == 1
    assert link.target.watch is scene.followers.links[other.id].target.watch
    assert scene.follow(dot, dala.ml.face.numbered(3).box).target.which == 3
    with pytest.raises(ParameterError, match="leave video out"):
        scene.follow(dot, link.target, video=video)
    with pytest.raises(ParameterError, match="video must be a video node, got"):
        scene.follow(dot, dala.ml.face.point("nose"), video=dot)
    scene.add_video([photo("astronaut")])
    with pytest.raises(ParameterError, match="video is required, as the scene has 2 videos"):
        scene.follow(dot, dala.ml.face.point("nose"))
