"""Effects of scenes as pages: which chain, what is refused by name, and the same answers."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

import dala.web
from dala.cli import main
from dala.errors import ParameterError, SceneFileError
from dala.gpu.compute import kernel
from dala.media import Scene, load_scene
from tests.support.tolerances import assert_close
from tests.support.web import WebPage

BOX = {"type": "overlay", "id": "box", "color": "#c86428", "size": [32, 24]}
BLUR = {"type": "effect", "id": "soft", "filter": "blur", "params": {"radius": 2}, "input": "box"}
SEPIA = {"type": "effect", "id": "brown", "filter": "sepia", "input": "box"}
DARK = {"type": "effect", "id": "dark", "filter": "vignette", "params": {"amount": 0.8}}
GRAY = {"type": "effect", "id": "gray", "filter": "grayscale", "z_index": -1}


def scene(*nodes: dict, **extra: object) -> dict:
    return {"dala": 2, "width": 64, "height": 36, "background": "#405060",
            "nodes": list(nodes), **extra}  # fmt: skip


@pytest.fixture
def written(tmp_path: Path):
    def write(*nodes: dict, **extra: object) -> Path:
        path = tmp_path / "scene.json"
        path.write_text(json.dumps(scene(*nodes, **extra)))
        return path

    return write


# which chain --------------------------------------------------------------------------------------
def test_effects_of_a_node_are_a_chain(written):
    assert dala.web.plan(written(BOX, BLUR, SEPIA)).name == "blur + sepia"


def test_effects_of_everything_are_a_chain_in_the_order_of_drawing(written):
    made = dala.web.plan(written(BOX, DARK, GRAY))
    assert made.name == "grayscale + vignette"


def test_several_places_need_a_node(written):
    path = written(BOX, BLUR, SEPIA, DARK)
    message = r"'box' \(blur, sepia\); the whole scene \(vignette\)"
    with pytest.raises(ParameterError, match=message):
        dala.web.plan(path)
    assert dala.web.plan(path, node="box").name == "blur + sepia"
    assert dala.web.plan(path, node="brown").name == "sepia"
    assert dala.web.plan(path, node="dark").name == "vignette"
    with pytest.raises(ParameterError, match="Did you mean 'brown'"):
        dala.web.plan(path, node="bron")


def test_effects_in_a_group(written):
    group = {"type": "group", "id": "pair", "nodes": [BOX, DARK]}
    after = {"type": "effect", "filter": "invert", "input": "pair"}
    assert dala.web.plan(written(group, after)).name == "vignette + invert"


def test_objects_of_a_program():
    warm = kernel("def warm(px: Pixel, *, k=0.5): return rgba(px.r, px.g * k, px.b, px.a)")
    with Scene(64, 36, device="cpu") as made:
        box = made.add_overlay(color="red", size=(20, 20))
        first = made.add_effect(warm, box, k=0.25)
        made.add_effect("invert", box)
        assert dala.web.plan(made).name == "warm + invert"
        alone = dala.web.plan(first)
        assert alone.name == "warm"
        assert [(c.name, list(c.numbers.values())) for c in alone.live] == [("k", [0.25])]
        with pytest.raises(ParameterError, match="None, as an effect was given"):
            dala.web.plan(first, node="x")


# what is different, and what is refused -----------------------------------------------------------
def test_what_a_page_lacks_is_noted(written):
    title = {"type": "text", "id": "title", "text": "A", "size": 12}
    late = DARK | {"start": 1, "end": 2}
    hidden = {"type": "effect", "id": "off", "filter": "invert", "visible": False}
    path = written(
        BOX, late, title, hidden,
        animations=[{"node": "dark", "property": "amount", "from": 0, "to": 1, "duration": 1}],
    )  # fmt: skip
    made = dala.web.plan(path)
    assert made.name == "vignette"
    for note in (
        "'off' is not visible, and left out",
        "'dark' has a start or an end in the scene, and none here",
        "amount of 'dark' is animated in the scene, and not here",
        "drawn over the first effect, and not part of the page: 'title'",
    ):
        assert note in made.notes


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([BOX], "the scene has no effects"),
        ([BOX, DARK | {"opacity": 0.5}], r"'dark' has an opacity \(opacity=0.5\)"),
        ([BOX, DARK | {"blend": "multiply"}], "'dark' has a blend mode"),
        ([BOX, DARK | {"position": [4, 4], "size": [20, 20]}], "'dark' covers a part of the scene"),
        ([BOX, DARK | {"visible": False}], "no effect is visible"),
    ],
)
def test_refusals(written, tmp_path, nodes, message):
    with pytest.raises(ParameterError, match=message):
        dala.web.export(written(*nodes), tmp_path / "page")
    assert not (tmp_path / "page").exists()


@pytest.mark.parametrize(
    ("property", "values", "message"),
    [
        ("opacity", (1, 0.5), r"'dark' has an opacity \(animated\)"),
        ("corner_radius", (0, 4), r"'dark' has round corners \(animated\)"),
        ("x", (0, 9), "'dark' covers a part of the scene"),
        ("position", ([0, 0], [9, 9]), "'dark' covers a part of the scene"),
        ("width", (40, 9), "'dark' covers a part of the scene"),
        ("size", ([40, 30], [9, 9]), "'dark' covers a part of the scene"),
    ],
)
def test_animations_of_what_a_page_lacks_are_refused(written, property, values, message):
    first, last = values
    move = {"node": "dark", "property": property, "from": first, "to": last, "duration": 1}
    with pytest.raises(ParameterError, match=message):
        dala.web.plan(written(BOX, DARK, animations=[move]))


def test_a_scene_is_rendered_only_for_the_first_picture(written, tmp_path, monkeypatch):
    path, rendered = written(BOX, DARK), []
    monkeypatch.setattr(Scene, "render", lambda self, time=None: rendered.append(time))
    assert dala.web.plan(path).name == "vignette"
    dala.web.export(path, tmp_path / "page", picture=np.zeros((8, 8, 3), np.uint8))
    assert rendered == []


def test_mistakes_of_the_file_and_of_the_call(written, tmp_path):
    with pytest.raises(SceneFileError, match="Did you mean"):
        dala.web.plan(written(BOX | {"colour": "red"}))
    with pytest.raises(ParameterError, match="Only scenes have nodes"):
        dala.web.plan(["invert"], node="a")
    with pytest.raises(ParameterError, match="the id of a node"):
        dala.web.plan(written(BOX, DARK), node=3)


# pages --------------------------------------------------------------------------------------------
def test_the_command_line(written, tmp_path, capsys):
    from PIL import Image

    path = written(BOX, BLUR, DARK)
    assert main(["export", str(path), "-o", str(tmp_path / "page")]) == 2
    assert "effects in several places" in capsys.readouterr().err
    words = ["export", str(path), "--node", "dark", "-o", str(tmp_path / "page"), "--json"]
    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["controls"] == ["amount", "radius", "softness"]
    # The page begins with the scene as it is without the effect.
    shown = next((tmp_path / "page").glob("picture.*"))
    pixels = np.asarray(Image.open(io.BytesIO(shown.read_bytes())).convert("RGB")).astype(int)
    assert pixels.shape == (36, 64, 3)
    with load_scene(scene(BOX, BLUR), "cpu") as made:
        expected = np.asarray(made.render())[..., :3].astype(int)
    assert np.abs(pixels - expected).mean() < 4


def test_same_answers_in_a_browser(web: WebPage, written):
    """A page of a scene's effects gives what the scene draws."""
    path = written(BOX, DARK, GRAY | {"z_index": 5})
    dala.web.export(path, web.folder / "effects")
    with load_scene(scene(BOX), "cpu") as plain:
        source = np.array(plain.render())
    with load_scene(path, "webgpu") as whole:
        want = np.array(whole.render())
    assert_close(web.run("effects", source), want, "webgpu", "program")
