"""dala.toml: defaults of the command line."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from dala.cli import main, parse
from dala.cli.common import settings
from dala.png import encode_png


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder of a project, with an empty home folder beside it."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in settings._VARIABLES.values():
        monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(name, "")  # restored at the end
        del os.environ[name]
    return folder


def user_file(tmp_path):
    path = settings.files()[-1] if settings.files() else None
    assert path is None
    for place in (tmp_path / "config", tmp_path / "Library" / "Application Support"):
        (place / "dala").mkdir(parents=True)
        (place / "dala" / "dala.toml").write_text('device = "null"\ncrf = 30\n')


def test_a_command_has_the_settings(project, tmp_path, capsys):
    (project / "dala.toml").write_text('device = "reference"\nquality = 50\nfonts = ["f", "/g"]\n')
    pixels = np.random.default_rng(1).integers(0, 256, (5, 6, 3), np.uint8)
    (project / "in.png").write_bytes(encode_png(pixels))
    assert main(["filter", "in.png", "out.png", "--invert", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["device"] == "reference"
    assert os.environ["DALA_FONT_PATH"] == os.pathsep.join([str(project / "f"), "/g"])
    assert main(["filter", "in.png", "out.png", "--invert", "--json", "--device", "cpu"]) == 0
    assert json.loads(capsys.readouterr().out)["device"] == "cpu"


def test_the_environment_and_the_project_come_before_the_user(project, tmp_path, monkeypatch):
    user_file(tmp_path)
    if not settings.files():
        pytest.skip("the folder of settings is elsewhere on this system")
    assert settings.all_settings()["device"][0] == "null"
    (project / "dala.toml").write_text('device = "reference"\n')
    found = settings.all_settings()
    assert (found["device"][0], found["crf"][0]) == ("reference", 30)
    assert found["device"][1].name == "dala.toml"

    _, _, args = parse(["filter", "a.mp4", "b.mp4", "--invert"])
    monkeypatch.setenv("DALA_DEVICE", "cpu")
    settings.apply(args)
    assert (os.environ["DALA_DEVICE"], args.crf, args.codec) == ("cpu", 30, None)


def test_settings_of_videos_are_for_files_that_hold_any_codec(project):
    (project / "dala.toml").write_text('codec = "hevc"\nquality = 50\n')
    for line, expected in (
        ("filter in.mp4 out.mp4 --invert", ("hevc", 50)),
        ("filter in.mp4 out.mp4 --invert --codec av1", ("av1", 50)),
        ("filter in.mp4 out.webm --invert", (None, 50)),
        ("filter in.png out.png --invert", (None, 50)),
        ("concat a.mp4 b.mp4 -o out.webm", (None, 0)),
        ("concat a.webm b.webm -o out.mkv", ("hevc", 0)),
        ("batch images a.png out/ --invert", (None, None)),
        ("batch videos a.mp4 out.mp4 --invert", (None, None)),
    ):
        _, _, args = parse(line.split())
        settings.apply(args)
        assert (args.codec, getattr(args, "quality", 0)) == expected, line


def test_the_doctor_shows_them(project, capsys):
    (project / "dala.toml").write_text('device = "cpu"\ncrf = 20\n')
    main(["doctor", "--json"])
    assert json.loads(capsys.readouterr().out)["settings"] == {"device": "cpu", "crf": 20}
    main(["doctor"])
    assert "crf = 20 (dala.toml)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("crf = ", "dala.toml: this is not TOML"),
        ("crt = 3", "there is no setting 'crt'. Did you mean 'crf'?"),
        ("[dala]\ncrf = 3", "there is no such table. Settings have no table: remove the line"),
        ("nonsense = 3", "There are: device, fonts, models,"),
        ('crf = "20"', "crf must be an int, got '20'"),
        ("crf = true", "crf must be an int, got True"),
        ("device = 3", "device must be a string, got 3"),
        ("fonts = []", "fonts must be a folder or a list of folders, got []"),
        ("models = [3]", "models must be a folder or a list of folders, got [3]"),
        ("a = " + "[" * 5000, "dala.toml:"),
        ("#" * 70_000, "at most 65,536 bytes"),
    ],
    ids=range(11),
)
def test_errors_are_one_line(project, capsys, text, message):
    (project / "dala.toml").write_text(text)
    assert main(["info"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err
    assert said.err.count("\n") == 1


def test_bytes_that_are_no_text(project, capsys):
    (project / "dala.toml").write_bytes(b"\xff\xfe\x00")
    assert main(["info"]) == 2
    assert "dala.toml: this is not TOML" in capsys.readouterr().err
