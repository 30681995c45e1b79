"""Models as cards: what they draw, what they found, and what is missing."""

from __future__ import annotations

import numpy as np
import pytest

from dala import samples
from dala.media import gpu
from tests.studio.server.conftest import result
from tests.support.weights import missing_reason, weights_folder


def test_models_without_weights_say_what_to_run(page, folder, monkeypatch):
    from dala.ml.weights import find

    monkeypatch.setattr(find, "find_weights", lambda name: None)
    page.ask("open", path=str(folder / "quarters.png"))
    page.ask("view", width=64, height=48, codec="rgba")
    page.ask("add", kind="model", name="boxes")
    page.until(lambda: page.state["chain"] and page.state["chain"][0]["error"])
    assert "dala models pull nanodet" in page.state["chain"][0]["error"]


def test_faces_are_found_and_drawn(session):
    pytest.importorskip("onnxruntime")
    from dala.ml.gpu import load_model

    session.do({"do": "open", "sample": "astronaut"})
    session.do({"do": "add", "kind": "model", "name": "faces", "params": {"score": 0.6}})
    session.do({"do": "add", "kind": "filter", "name": "invert"})
    links, problems = session._runner.prepare(session.active.contents.cards)
    assert problems == []
    picture = np.asarray(samples.photo("astronaut", device="cpu"))
    made = np.asarray(session._runner.run(picture, links))
    with load_model("blazeface") as model:
        drawn = model.predict(picture, score=0.6).draw(picture)
    assert not np.array_equal(drawn, picture)
    np.testing.assert_array_equal(made, gpu.invert(np.asarray(drawn), device="cpu"))


def test_what_models_found_is_told(page):
    pytest.importorskip("onnxruntime")
    page.ask("open", sample="astronaut")
    page.ask("view", width=64, height=48, codec="rgba")
    boxes = page.ask("add", kind="model", name="faces")["card"]
    hidden = page.ask("add", kind="model", name="faces", params={"show": "box"})["card"]
    none = page.ask("add", kind="model", name="faces", params={"score": 0.9})["card"]
    stats = page.message("stats", lambda s: len(s["results"]) == 3)
    found = stats["results"][boxes]
    assert found["text"] == "1 face"
    ((name, score),) = found["rows"]
    assert name == "face"
    assert 0.5 < score <= 1
    assert stats["results"][hidden]["text"] == "1 face"
    assert stats["results"][none] == {"text": "no faces", "rows": []}
    page.ask("switch", card=boxes, on=False)
    page.message("stats", lambda s: boxes not in s["results"])


def test_objects_and_classes_as_findings():
    from dala.ml.results import Detection, Detections
    from dala.studio.cards.models import Findings, found_in

    box = (0, 0, 4, 4)
    found = found_in(
        Detections([Detection(box, *one) for one in (("dog", 0.5), ("cat", 0.9), ("dog", 0.7))])
    )
    assert found.text == "cat, dog \N{MULTIPLICATION SIGN} 2"
    assert found.rows == (("cat", 0.9), ("dog", 0.7), ("dog", 0.5))
    assert found_in(Detections()).text == "nothing found"
    many = Findings("many", tuple(("dog", 1 / n) for n in range(1, 50)))
    assert len(many.json()["rows"]) == 10


def test_classes_are_named(session, monkeypatch):
    pytest.importorskip("onnxruntime")
    place = weights_folder()
    if place is None:
        pytest.skip(missing_reason("mobilenet_v2"))
    monkeypatch.setenv("DALA_MODELS", str(place))
    session.do({"do": "open", "sample": "coffee"})
    card = session.do({"do": "add", "kind": "model", "name": "classes"})["card"]
    result(session)
    found = session._runner.found[card]
    assert found.text == "espresso"
    assert len(found.rows) == 5


def test_the_background_of_a_person_is_replaced(session):
    """The packaged weights: the person stays, what is behind becomes green."""
    pytest.importorskip("onnxruntime")
    session.do({"do": "open", "sample": "astronaut"})
    params = {"replace": "color", "color": [0, 1, 0]}
    card = session.do({"do": "add", "kind": "model", "name": "background", "params": params})
    picture = np.asarray(samples.photo("astronaut", device="cpu")).astype(int)
    made = result(session)[..., :3].astype(int)
    green = np.abs(made - (0, 255, 0)).max(-1) < 8
    assert green[20:120, 300:360].mean() > 0.95  # the wall on the right of her head
    face, suit = np.s_[90:170, 190:250], np.s_[300:420, 150:260]
    for part in (face, suit):
        assert np.abs(made[part] - picture[part]).mean() < 4
    assert 0.25 < green.mean() < 0.75
    share = session._runner.found[card["card"]].text
    assert share.endswith(" % of the picture is in front")
    assert abs(int(share.split()[0]) - 100 * (1 - green.mean())) < 8
