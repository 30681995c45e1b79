"""``dala faces`` that hides faces, in pictures, folders and videos."""

import json

import numpy as np
import pytest
from PIL import Image

from dala.cli import main
from dala.cli.faces import Persons
from dala.media import video
from dala.ml.hide import HiddenFace
from tests.ml.conftest import ROOT

ASTRONAUT = ROOT / "tests" / "photos" / "astronaut.png"


@pytest.fixture(autouse=True)
def cpu(monkeypatch):
    monkeypatch.setenv("DALA_DEVICE", "cpu")


def run(capsys, *arguments, code=0):
    assert main([str(a) for a in arguments]) == code
    return capsys.readouterr()


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(int)


@pytest.mark.parametrize("how", [["--blur"], ["--blur", 30], ["--pixelate", 20], ["--box"]])
def test_a_picture(capsys, tmp_path, how):
    out = tmp_path / "hidden.png"
    text = run(capsys, "faces", ASTRONAUT, out, *how).out
    assert text == f"{out}: 1 face hidden\n"
    before, after = pixels(ASTRONAUT), pixels(out)
    assert (before[300:] == after[300:]).all()
    eyes = np.s_[95:120, 195:255]
    assert np.abs(before[eyes] - after[eyes]).mean() > 10
    again = json.loads(run(capsys, "faces", out, "--json", "--score", 0.6).out)
    assert again["results"][0]["found"] == []


def test_options_before_the_files(capsys, tmp_path):
    out = tmp_path / "hidden.png"
    found = json.loads(run(capsys, "faces", "--blur", ASTRONAUT, out, "--json").out)
    (face,) = found["results"][0]["found"]
    assert face["score"] > 0.8
    assert face["box"] == pytest.approx([177, 81, 272, 175], abs=3)
    assert out.exists()


@pytest.mark.parametrize(
    "form", ["IN --blur OUT", "--blur IN OUT", "IN OUT --blur", "IN --blur=OUT"]
)
def test_the_input_comes_first_in_every_form(capsys, tmp_path, form):
    """Also where OUT exists: the input is never overwritten."""
    source, out = tmp_path / "in.png", tmp_path / "out.png"
    source.write_bytes(ASTRONAUT.read_bytes())
    Image.new("RGB", (8, 8), "red").save(out)
    words = form.replace("IN", str(source)).replace("OUT", str(out)).split()
    assert run(capsys, "faces", *words).out == f"{out}: 1 face hidden\n"
    assert source.read_bytes() == ASTRONAUT.read_bytes()
    assert pixels(out).shape == pixels(source).shape


def test_a_folder(capsys, tmp_path):
    out = tmp_path / "hidden"
    text = run(capsys, "faces", ROOT / "tests" / "photos", out, "--box", "--color", "red").out
    assert "astronaut.png: 1 face hidden" in text
    assert (pixels(out / "astronaut.png")[128, 224] == (255, 0, 0)).all()
    assert (pixels(out / "coffee.png") == pixels(ROOT / "tests/photos/coffee.png")).all()


def test_a_video(capsys, tmp_path):
    source, out = tmp_path / "in.mp4", tmp_path / "out.mp4"
    with Image.open(ASTRONAUT) as image:
        picture = np.asarray(image.convert("RGB").resize((256, 256)))
    with video.write(source, fps=10) as sink:
        for k in range(8):
            frame = picture.copy()
            if k in (0, 4, 5):  # the face cannot be found
                frame[20:110, 70:150] = 90
            sink.write(frame)
    told = json.loads(
        run(capsys, "faces", source, out, "--box", "--ahead", 2, "--score", 0.6, "--json").out
    )
    carried = [any("carried" in face for face in frame["found"]) for frame in told["frames"]]
    assert len(carried) == 8
    assert [carried[k] for k in (0, 4, 5)] == [True] * 3
    assert not any(carried[6:])
    with video.open(out, policy="every") as reader:
        frames = [frame.numpy()[..., :3] for frame in reader]
    assert [int(frame[64, 112].max()) < 30 for frame in frames] == [True] * 8
    text = run(capsys, "faces", source, out, "--blur").out
    assert "8 frames" in text
    assert "1 person hidden in 0.8 of 0.8 s" in text
    assert "s of it with a face that the model did not find" in text
    assert text.endswith("and 15 after; --fast looks at one in 3.\n")
    assert told["persons"] == [{"ids": [1], "from": 0.2, "to": 0.8, "seconds": 0.6}]
    assert (told["seconds"], told["every"]) == (0.8, 1)
    fast = run(capsys, "faces", source, out, "--blur", "--fast").out
    assert "It looks at one frame in 3, follows faces between" in fast


def test_persons_are_counted_by_their_tracks():
    def at(x, id, found=True):
        return HiddenFace((x, 0, x + 40, 40), 0.9, id, found)

    frames = [[at(0, 1)]] * 3 + [[at(2, 1, False), at(200, 2)]] * 2 + [[]] * 5 + [[at(6, 3)]] * 4
    persons = Persons()
    for faces in frames:
        persons.add(faces)
    persons.add([at(400, 4), at(6, 3)])
    assert persons.text(10.0) == (
        "3 persons hidden in 1.0 of 1.5 s, 0.2 s of it with a face that the model did not find"
    )
    assert persons.facts(10.0) == [
        {"ids": [1, 3], "from": 0.0, "to": 1.5, "seconds": 1.0},
        {"ids": [2], "from": 0.3, "to": 0.5, "seconds": 0.2},
        {"ids": [4], "from": 1.4, "to": 1.5, "seconds": 0.1},
    ]
    assert Persons().text(25.0) == "no face found"


def test_two_at_a_time_are_two_persons():
    persons = Persons()
    for ids in ([1], [1, 2], [2, 3]):
        persons.add([HiddenFace((0, 0, 40, 40), 0.9, id) for id in ids])
    assert [person.ids for person in persons.found] == [{1, 3}, {2}]


def test_refusals(capsys, tmp_path):
    out = tmp_path / "out.png"
    for arguments, text in (
        ([ASTRONAUT, "--blur"], "--blur needs IN and OUT"),
        ([ASTRONAUT, out, "--blur", "0"], "--blur must be an int from 1 to 200, got '0'"),
        ([ASTRONAUT, out, "--blur", "wide"], "--blur must be an int from 1 to 200, got 'wide'"),
        ([ASTRONAUT, out, "--blur", "--color", "red"], "--color is for --box"),
        ([ASTRONAUT, "--fast"], "--fast is for hidden faces. Add --blur"),
        ([ASTRONAUT, "--keep", "3"], "--keep is for hidden faces. Add --blur"),
        ([ASTRONAUT, tmp_path / "out.mp4", "--blur"], "OUT must be a picture"),
        ([ASTRONAUT, ASTRONAUT, "--blur"], "astronaut.png"),
    ):
        run_result = run(capsys, "faces", *arguments, code=2)
        assert text in run_result.err
    assert not out.exists()
