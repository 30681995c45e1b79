"""Commands that run models, on photographs and a generated video, with the real weights."""

import json

import numpy as np
import pytest
from PIL import Image

from dala.cli import main
from dala.media import video
from dala.ml.background import BETTER_MODEL, DEFAULT_MODEL
from dala.ml.weights.find import find_weights
from tests.ml.conftest import ROOT, photo, tiny, weights

__all__ = ["photo", "tiny", "weights"]
PHOTOS = ROOT / "tests" / "photos"


@pytest.fixture
def here(weights, monkeypatch):
    monkeypatch.setenv("DALA_DEVICE", "cpu")


def said(capsys, *arguments):
    assert main([str(a) for a in arguments]) == 0
    return capsys.readouterr().out


def test_classify(here, capsys):
    text = said(capsys, "classify", PHOTOS / "chelsea.png")
    assert text.startswith("Egyptian cat 0.7")
    for k in (1, 3, 7):
        some = said(capsys, "classify", PHOTOS / "chelsea.png", "--top", k)
        assert some.count("\n") == k
        assert some.splitlines()[:5] == text.splitlines()[:k]
    found = json.loads(said(capsys, "classify", PHOTOS, "--top", 1, "--json"))
    labels = [one["found"][0]["label"] for one in found["results"]]
    assert labels[1:] == ["Egyptian cat", "espresso"]
    assert found["provider"] == "cpu"


def test_detect_draws(here, capsys, tmp_path):
    out = tmp_path / "boxes.png"
    yolo = ("--model", "yolo_v5", "--score", 0.4)
    text = said(capsys, "detect", PHOTOS / "coffee.png", *yolo, "--out", out)
    assert text.startswith("cup 0.5")
    with Image.open(out) as image, Image.open(PHOTOS / "coffee.png") as before:
        assert image.size == before.size
        assert (np.asarray(image) != np.asarray(before.convert("RGB"))).any()


def test_faces_poses_segment(here, capsys, tmp_path):
    astronaut = PHOTOS / "astronaut.png"
    faces = json.loads(said(capsys, "faces", astronaut, "--json"))
    assert len(faces["results"][0]["found"][0]["keypoints"]) == 6
    poses = json.loads(said(capsys, "poses", astronaut, "--json", "--out", tmp_path / "p.png"))
    assert poses["results"][0]["found"][0]["keypoints"][0]["name"] == "nose"
    shares = json.loads(said(capsys, "segment", astronaut, "--json"))["results"][0]["found"]
    assert abs(shares["person"] - 0.465) < 0.01
    front = json.loads(said(capsys, "segment", astronaut, "--model", "u2netp", "--json"))
    assert front["results"][0]["found"]["foreground"] > 0.3


def test_hands_and_meshes(here, capsys, tmp_path):
    if any(find_weights(name) is None for name in ("hands", "palms", "facemesh", "blazeface_back")):
        pytest.skip("the weights of hands and facemesh are not on this machine")
    out, hands = tmp_path / "h.png", ROOT / "tests" / "ml" / "known" / "hands.png"
    text = said(capsys, "hands", hands, "--out", out)
    assert sorted(line.split(" 0.")[0] for line in text.splitlines()) == ["left hand", "right hand"]
    with Image.open(out) as drawn, Image.open(hands) as before:
        assert (np.asarray(drawn) != np.asarray(before.convert("RGB"))).any()
    found = json.loads(said(capsys, "hands", hands, "--most", 1, "--json"))["results"][0]["found"]
    assert [(len(one["keypoints"]), one["side"] in ("left", "right")) for one in found] == [
        (21, True)
    ]
    faces = said(capsys, "faces", PHOTOS / "astronaut.png", "--model", "facemesh", "--json")
    (face,) = json.loads(faces)["results"][0]["found"]
    assert {"chin", "forehead", "nose"} <= {p["name"] for p in face["keypoints"]}
    assert "id" not in face  # a picture
    clip(tmp_path / "in.mp4", [np.asarray(Image.open(hands).convert("RGB"))] * 2)
    seen = json.loads(said(capsys, "hands", tmp_path / "in.mp4", "--smooth", "--json"))
    assert [[one["id"] for one in f["found"]] for f in seen["frames"]] == [[1, 2]] * 2
    assert main(["hands", str(hands), "--smooth"]) == 2
    assert "--smooth needs one video" in capsys.readouterr().err


def test_custom_model_files(tiny, here, capsys, tmp_path):
    """Model files take the command's task: a classifier, and a model that outputs a matte."""
    from dala.ml.convert.onnx_file import Graph

    red = tmp_path / "red.png"
    Image.fromarray(np.full((8, 12, 3), [255, 0, 0], np.uint8)).save(red)
    found = json.loads(said(capsys, "classify", red, "--model", tiny, "--top", 1, "--json"))
    assert found["results"][0]["found"][0]["index"] == 0
    graph = Graph("front")
    x = graph.input("x", (1, 1, 8, 12))
    graph.output(graph.node("Identity", x), (1, 1, 8, 12), name="alpha")
    front = tmp_path / "front.onnx"
    front.write_bytes(graph.save())
    half = np.zeros((8, 12, 3), np.uint8)
    half[:, 6:] = 255
    Image.fromarray(half).save(tmp_path / "half.png")
    shares = json.loads(said(capsys, "segment", tmp_path / "half.png", "--model", front, "--json"))
    assert shares["results"][0]["found"]["foreground"] == 0.5
    out = tmp_path / "o.png"
    said(capsys, "background", tmp_path / "half.png", out, "--model", front, "--color", "blue")
    with Image.open(out) as made:
        assert np.asarray(made)[4, [0, 11]].tolist() == [[0, 0, 255], [255, 255, 255]]


def clip(path, pictures):
    with video.write(path, fps=10) as sink:
        for one in pictures:
            sink.write(one)


@pytest.mark.slow
def test_videos(here, capsys, tmp_path, photo):
    base = photo("astronaut")[::2, ::2]
    clip(tmp_path / "in.mp4", [np.roll(base, 4 * k, axis=1) for k in range(4)])
    out = tmp_path / "out.mp4"
    found = json.loads(said(capsys, "faces", tmp_path / "in.mp4", "--out", out, "--json"))
    assert [round(f["time"], 3) for f in found["frames"]] == [0, 0.1, 0.2, 0.3]
    left = [f["found"][0]["box"][0] for f in found["frames"]]
    assert 6 < left[3] - left[0] < 18  # the face moved by 12
    with video.open(out) as made:
        assert len(list(made)) == 4
    text = said(capsys, "background", tmp_path / "in.mp4", tmp_path / "b.mp4", "--color", "lime")
    assert "4 frames" in text
    with video.open(tmp_path / "b.mp4") as made:
        frame = next(iter(made)).numpy()
    assert frame[:20, 200:, 1].mean() > 200
    assert frame[:20, 200:, 0].mean() < 60


def test_detect_tracks(here, capsys, tmp_path):
    """A detector of one box that the brightness moves; its score sinks below the threshold."""
    from dala.ml.convert.onnx_file import Graph

    graph = Graph("mover")
    x = graph.input("x", (1, 3, 16, 32))
    mean = graph.node("Flatten", graph.node("GlobalAveragePool", x), axis=1)
    gain, base = np.zeros((3, 6), np.float32), np.zeros((1, 6), np.float32)
    # x = 8 + 10 v and score = 0.9 - v, for red v, which ImageNet's mean and deviation normalize
    gain[0, [0, 4]] = 10 * 0.229, -0.229
    base[0] = [8 + 4.85, 8, 8, 8, 0.9 - 0.485, 1]
    rows = graph.node("MatMul", mean, graph.constant(gain))
    rows = graph.node("Add", rows, graph.constant(base))
    shape = graph.constant(np.array([1, 9, 6], np.int64))  # nine times the same box
    graph.output(graph.node("Expand", rows, shape), (1, 9, 6), name="rows")
    model, source = tmp_path / "mover.onnx", tmp_path / "in.mp4"
    model.write_bytes(graph.save())
    clip(source, [np.full((16, 32, 3), 26 * k, np.uint8) for k in range(7)])
    found = json.loads(said(capsys, "detect", source, "--model", model, "--track", "--json"))
    frames = [f["found"] for f in found["frames"]]
    assert [[d["id"] for d in f] for f in frames] == [[1]] * 7
    assert frames[6][0]["score"] < 0.4 < frames[0][0]["score"]
    assert 4 < frames[6][0]["box"][0] - frames[0][0]["box"][0] < 7
    plain = json.loads(said(capsys, "detect", source, "--model", model, "--json", "--score", 0.4))
    assert [len(f["found"]) for f in plain["frames"]] == [1] * 5 + [0] * 2
    out = tmp_path / "out.mp4"
    assert "7 frames" in said(capsys, "detect", source, "--model", model, "--track", "--out", out)
    assert main(["poses", "a.png", "--smooth"]) == 2
    assert "--smooth needs one video such as in.mp4" in capsys.readouterr().err
    assert main(["detect", "a.png", "--track"]) == 2
    assert "--track needs one video such as in.mp4, got 'a.png'" in capsys.readouterr().err


def test_background_of_a_picture(here, capsys, tmp_path):
    out = tmp_path / "out.png"
    image = PHOTOS / "coffee.png"
    said(capsys, "background", PHOTOS / "astronaut.png", out, "--image", image)
    with Image.open(out) as made, Image.open(image) as coffee:
        got = np.asarray(made)[:60, :60].astype(int)
        wanted = np.asarray(coffee.convert("RGB").resize((512, 512)))[:60, :60]
    assert np.abs(got - wanted).mean() < 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["classify", "missing.png"], "there is no file 'missing.png'"),
        (["detect", "{p}", "--model", "yolo_v5", "--out", "out.mp4"], "--out must be a picture"),
        (
            ["detect", "{p}", "--model", "yolo_v5", "--out", "{p}"],
            "is an input and is not overwritten",
        ),
        (
            ["classify", "{p}", "--model", "mobilnet"],
            "got 'mobilnet'. Did you mean 'mobilenet_v2'?",
        ),
        (["classify", "{p}", "--provider", "cuda"], "onnxruntime-gpu"),
        (["classify", "{p}", "--top", "0"], "--top: must be an int from 1 to 100000, got '0'"),
        (["classify", "{p}", "--model", "blazeface"], "got 'blazeface', which is for `dala faces`"),
        (
            ["segment", "{p}", "--model", "yolo_v5", "--json"],
            "got 'yolo_v5', which is for",
        ),
        (["faces", "{p}", "--model", "in.png"], "--model must be the name of a model"),
        (["detect", "{p}", "--score", "7"], "--score: must be a number from 0 to 1, got '7'"),
        (["background", "{p}", "o.png", "--model", "deeplab", "--label", "x"], "aeroplane"),
        (["background", "{p}", "out.mp4"], "OUT must be a picture"),
        (["background", "{p}", "o.png", "--image", "no.png"], "there is no file 'no.png'"),
        (
            ["background", "{p}", "o.png", "--model", "mobilenet_v2"],
            "got 'mobilenet_v2', which is for `dala classify`",
        ),
    ],
)
def test_errors_are_one_line(here, capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save("in.png")
    given = [a.format(p="in.png") for a in arguments]
    try:
        code = main(given)
    except SystemExit as end:  # refused before the command runs
        code = end.code
    assert code == 2
    _, err = capsys.readouterr()
    assert message in err
    errors = [line for line in err.splitlines() if "whose license is" not in line]
    assert len(errors) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.png"]


def test_a_copyleft_license_is_said(here, capsys):
    picture = str(PHOTOS / "coffee.png")
    assert main(["detect", picture, "--model", "yolo_v5", "--json"]) == 0
    found = capsys.readouterr()
    assert "dala detect: uses yolo_v5, whose license is AGPL-3.0 (Ultralytics" in found.err
    assert json.loads(found.out)["model"] == "yolo_v5"
    assert main(["classify", picture]) == 0
    assert "license" not in capsys.readouterr().err


def test_the_default_of_detect_is_permissive(here, capsys):
    with pytest.raises(SystemExit):
        main(["detect", "--help"])
    assert "ONNX file (nanodet)" in " ".join(capsys.readouterr().out.split())
    if find_weights("nanodet") is None:
        pytest.skip("the weights of nanodet are not on this machine")
    assert main(["detect", str(PHOTOS / "chelsea.png")]) == 0
    found = capsys.readouterr()
    assert found.out.startswith("cat 0.5")
    assert "license" not in found.err


def test_the_default_of_background(here, capsys, tmp_path):
    out, other = tmp_path / "a.png", tmp_path / "b.png"
    text = said(capsys, "background", PHOTOS / "astronaut.png", out)
    assert "(--quality best has softer edges, and is slower)" in text
    text = said(capsys, "background", PHOTOS / "astronaut.png", other, "--model", "selfie")
    assert "quality" not in text
    assert out.read_bytes() == other.read_bytes()
    assert main(["background", "a.png", "b.png", "--model", "selfie", "--quality", "best"]) != 0
    assert "--model and --quality choose the same thing" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["background", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert f"fast (the default): {DEFAULT_MODEL}" in shown
    assert f"best: {BETTER_MODEL}" in shown


def test_check_of_a_file(capsys):
    text = said(capsys, "models", "check", "blazeface")
    assert "input     input (1, 128, 128, 3) float32" in text
    assert "operators Conv 37, Relu 17, Add 16" in text
    assert " ms a run" in text
    assert main(["models", "check", "blazeface", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["opsets"] == {"ai.onnx": 13}
    assert found["providers"]["cpu"]["status"] == "runs"
    assert main(["models", "check", "missing.onnx"]) != 0
    assert "there is no file 'missing.onnx'" in capsys.readouterr().err
    assert main(["models", "check"]) != 0
