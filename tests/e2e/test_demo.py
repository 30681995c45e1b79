"""``dala demo``, whole."""

import numpy as np
import pytest
from PIL import Image

import dala
from dala.cli import main
from dala.cli.demo import draw

SMALL = ["--size", "64x48", "--seconds", "0"]


@pytest.fixture(scope="module")
def defined():
    """The picture as the reference engine defines it."""
    with dala.device("reference"):
        return draw(64, 48)


def test_the_picture(defined):
    assert (defined.shape, defined.dtype) == ((48, 64, 4), np.uint8)
    assert (defined[..., 3] == 255).all()
    assert len(np.unique(defined[..., :3].reshape(-1, 3), axis=0)) > 500
    blue, red = defined[2, 2], defined[-8, -8]
    assert blue[2] > blue[0]
    assert red[0] > red[2]


@pytest.mark.parametrize("device", [d.id for d in dala.devices() if d.backend in ("cpu", "webgpu")])
def test_every_device_draws_the_same(tmp_path, capsys, device, defined):
    assert main(["demo", "--out", str(tmp_path / "new"), "--device", device, *SMALL]) == 0
    with Image.open(tmp_path / "new" / "demo.png") as picture:
        pixels = np.asarray(picture).astype(int)
    # Each of the three stages rounds to u8, and engines may differ in the last bit of a sine.
    assert np.abs(pixels - defined).max() <= 2
    out = capsys.readouterr().out
    assert "kernels  generate_gradient -> rings -> vignette\n" in out
    assert str(tmp_path / "new" / "demo.png") in out


def test_a_folder_that_is_a_file(tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    assert main(["demo", "--out", str(tmp_path / "taken"), "--device", "reference", *SMALL]) == 2
    err = capsys.readouterr().err
    assert err.startswith("dala demo: ")
    assert err.count("\n") == 1
