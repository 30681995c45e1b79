"""The examples with nodes that follow, for a few frames each."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from dala.media import video
from dala.ml.weights.find import find_weights
from tests.ml.conftest import ROOT, weights

__all__ = ["weights"]
EXAMPLES = ROOT / "examples"


@pytest.fixture(autouse=True)
def cpu(monkeypatch):
    monkeypatch.setenv("DALA_DEVICE", "cpu")


def load(name):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def frames(path: Path):
    with video.open(path, policy="every") as reader:
        return [frame.numpy()[..., :3].astype(int) for frame in reader]


def test_face_hat(tmp_path):
    made = load("face_hat")
    for frame in frames(made["main"](None, tmp_path, 0.2)):
        ribbon = np.abs(frame - (0xF2, 0xC1, 0x4E)).max(axis=2) < 40
        rims = np.abs(frame - (0x10, 0x14, 0x18)).max(axis=2) < 30
        assert ribbon[:120].sum() > 500
        assert rims[120:240, 200:420].sum() > 300  # around the eyes


def test_face_crop(tmp_path):
    made = load("face_crop")
    first, *_, last = frames(made["main"](None, tmp_path, 0.2))
    for frame in (first, last):
        skin = frame[60:220, 60:210]
        assert skin[..., 0].mean() > skin[..., 2].mean() + 20  # the face, not the gray wall


def test_name_tags(tmp_path, weights):
    if find_weights("nanodet") is None:
        pytest.skip("the weights of nanodet are not on this machine")
    made = load("name_tags")
    frame = frames(made["main"](None, tmp_path, 0.12))[-1]
    colors = [tuple(int(c[k : k + 2], 16) for k in (1, 3, 5)) for c in made["COLORS"][1:3]]
    for color in colors:
        assert (np.abs(frame - color).max(axis=2) < 40).sum() > 400


def test_hand_pointer(weights):
    from PIL import Image

    if find_weights("hands") is None or find_weights("palms") is None:
        pytest.skip("the weights of hands are not on this machine")
    with Image.open(ROOT / "tests" / "ml" / "known" / "hands.png") as image:
        picture = np.asarray(image.convert("RGB"))
    with load("hand_pointer")["build"](lambda seconds: picture) as scene:
        scene.render(0)
        beam, dot = (link for link in scene.followers)
        assert dot.found
        hand = dot.target.watch.seen(scene["video-1"].shown(scene._clock.moment(0)), True).largest
        tip = hand.points["index_tip"]
        assert (dot.sighting.x, dot.sighting.y) == (tip.x, tip.y)
        assert hand.side in ("left", "right")
        assert beam.sighting.angle == pytest.approx(-90, abs=40)  # the finger points up
        numbered = dot.target.watch.point(8)
        scene.follow(dot.node, numbered)
        scene.render(0)
        again = scene.followers.links[dot.node.id]
        assert (again.sighting.x, again.sighting.y) == pytest.approx((tip.x, tip.y), abs=0.5)
