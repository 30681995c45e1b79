"""``dala demo``, end to end."""

import json

import numpy as np
import pytest
from PIL import Image

import dala
from dala.cli import main
from dala.cli.demo import MOMENT, draw, view_command
from dala.cli.scenes import demo_scene

SIZE = (160, 90)
SMALL = ["--size", "160x90", "--seconds", "0"]


@pytest.fixture(scope="module")
def defined():
    """The picture of the reference engine."""
    with dala.device("reference"):
        return draw(*SIZE)


def test_picture_has_filtered_bands(defined):
    assert (defined.shape, defined.dtype) == ((90, 160, 4), np.uint8)
    assert (defined[..., 3] == 255).all()
    with demo_scene.Drawing(*SIZE) as drawing:
        drawing.start(MOMENT)
        plain = drawing.take().astype(int)
    row = np.abs(defined[40].astype(int) - plain[40]).max(axis=1)
    assert (row[2:28] == 0).all()  # the first band is as it is drawn
    assert (row[40:] > 0).mean() > 0.9
    edges = defined[40, 136:158]
    assert (edges[:, 0] == edges[:, 1]).all()  # the last one is gray
    assert (edges[:, 0] == edges[:, 2]).all()


@pytest.mark.parametrize("device", [d.id for d in dala.devices() if d.backend in ("cpu", "webgpu")])
def test_devices_agree(tmp_path, capsys, device, defined):
    assert main(["demo", "--out", str(tmp_path / "new"), "--device", device, *SMALL]) == 0
    with Image.open(tmp_path / "new" / "demo.png") as picture:
        apart = np.abs(np.asarray(picture).astype(int) - defined)
    # Each stage rounds to u8; edge_detect makes a step of the sharpened picture up to eight.
    assert apart.max() <= 12
    assert apart.mean() < 0.1
    out = capsys.readouterr().out
    assert f"picture  {tmp_path / 'new' / 'demo.png'}: 160x90" in out
    assert f"look     {view_command(str(tmp_path / 'new' / 'demo.png'))}\n" in out


def test_json(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path), "--device", "cpu", "--json", *SMALL]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["picture"]["path"] == str(tmp_path / "demo.png")
    assert (found["picture"]["width"], found["picture"]["height"]) == SIZE
    assert found["device"]["backend"] == "cpu"


def test_out_is_a_file(tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    assert main(["demo", "--out", str(tmp_path / "taken"), "--device", "reference", *SMALL]) == 2
    err = capsys.readouterr().err
    assert err.startswith("dala demo: ")
    assert err.count("\n") == 1
