"""Cards, undo, presets and kernels."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

from dala.errors import DalaError, ParameterError
from dala.studio.catalogue.catalogue import catalogue
from dala.studio.limits import StudioLimits
from tests.studio.server.client import Refused
from tests.studio.server.conftest import quarters

VERSIONS = pathlib.Path(__file__).parents[2] / "support" / "versions"


def chain(session):
    return [(c["name"], c["params"]) for c in session.state()["chain"]]


# the catalogue ------------------------------------------------------------------------------------
def test_the_catalogue_has_every_filter_with_its_declared_parameters():
    from dala.media.filters.declarations import declared, filter_names

    made = catalogue(StudioLimits())
    json.dumps(made, allow_nan=False)
    assert [f["name"] for f in made["filters"]] == filter_names()
    for listed in made["filters"]:
        spec = declared()[listed["name"]]
        assert [p["name"] for p in listed["params"]] == [p.name for p in spec.parameters]
        for shown, p in zip(listed["params"], spec.parameters, strict=True):
            assert shown["required"] == p.required
            if shown["type"] in ("number", "int"):
                low, high, step = shown["slider"]
                assert low < high
                assert 0 < step <= high - low
                assert shown.get("low", low) <= low
                assert shown.get("high", high) >= high
    types = {p["type"] for f in made["filters"] for p in f["params"]}
    assert types == {
        "bool", "choice", "color", "curve", "int", "lut", "map", "number", "numbers", "picture",
        "point", "size",
    }  # fmt: skip


@pytest.mark.parametrize("template", catalogue(StudioLimits())["kernels"], ids=lambda t: t["name"])
def test_templates_compile(session, template):
    session.do({"do": "open", "sample": "coffee"})
    card = session.do({"do": "add", "kind": "kernel", "name": template["name"]})["card"]
    reply = session.do({"do": "kernel", "card": card, "text": template["text"], "code": True})
    assert reply["diagnostics"] == []
    assert "fn main" in reply["wgsl"]
    assert "define" in reply["llvm"]
    assert all("slider" in p for p in reply["params"])


# cards --------------------------------------------------------------------------------------------
def test_cards_are_added_moved_and_removed(session, folder):
    session.do({"do": "open", "path": "quarters.png"})
    for name in ("blur", "invert", "sepia"):
        session.do({"do": "add", "kind": "filter", "name": name})
    session.do({"do": "move", "card": "c3", "to": 0})
    assert [name for name, _ in chain(session)] == ["sepia", "blur", "invert"]
    session.do({"do": "add", "kind": "filter", "name": "hue", "at": 1, "params": {"degrees": 30}})
    session.do({"do": "remove", "card": "c1"})
    session.do({"do": "switch", "card": "c2", "on": False})
    assert chain(session) == [("sepia", {}), ("hue", {"degrees": 30}), ("invert", {})]
    assert session.state()["chain"][2]["on"] is False


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"do": "add", "kind": "filter", "name": "blurr"}, "Did you mean 'blur'"),
        ({"do": "add", "kind": "shader", "name": "blur"}, "kind must be one of filter"),
        ({"do": "add", "kind": "filter", "name": "preprocess"}, "name must be the name of a"),
        (
            {"do": "add", "kind": "filter", "name": "blur", "params": {"radius": -1}},
            "from 0 to 200",
        ),
        ({"do": "add", "kind": "filter", "name": "blur", "params": [1]}, "an object of"),
        ({"do": "add", "kind": "filter", "name": "blur", "at": 9}, "at must be an int from 0 to 1"),
        ({"do": "set", "card": "c1", "param": "radios", "value": 1}, "Did you mean 'radius'"),
        ({"do": "set", "card": "c1", "param": "radius", "value": "much"}, "numbers"),
        ({"do": "set", "card": "c1", "param": "radius", "value": True}, "a number"),
        ({"do": "set", "card": "c1", "param": "radius", "value": 10**400}, "a number"),
        ({"do": "set", "card": "c1", "param": "border", "value": "mirror"}, "border"),
        ({"do": "set", "card": "c9", "param": "radius", "value": 1}, "card must be the id"),
        ({"do": "set", "card": ["c1"], "param": "radius", "value": 1}, "card must be the id"),
        ({"do": "switch", "card": "c1", "on": "yes"}, "true or false"),
        ({"do": "move", "card": "c1", "to": 1}, "to must be an int from 0 to 0"),
        ({"do": "kernel", "card": "c1", "text": "x"}, "a kernel card"),
        ({"do": "preset", "value": {"chain": [{"filter": "blur", "model": "faces"}]}}, "chain.0."),
        ({"do": "preset", "value": {"chain": 3}}, "an object with a chain"),
        ({"do": "redo"}, "nothing"),
        ({"do": "jump"}, "the name of a command"),
        ({"do": 3}, "the name of a command"),
        ({}, "the name of a command"),
    ],
)
def test_refused_commands_change_nothing(session, message, error):
    session.do({"do": "open", "path": "quarters.png"})
    session.do({"do": "add", "kind": "filter", "name": "blur", "params": {"radius": 3}})
    before = session.state()
    with pytest.raises(DalaError, match=error):
        session.do(message)
    assert session.state() == before


def test_values_become_what_filters_take(session, folder):
    session.do({"do": "open", "path": "quarters.png"})
    cards = {
        "resize": {"size": [32, None]},
        "chroma_key": {"key": [0.1, 0.6, 0.2]},
        "curves": {"master": [[0, 0], [0.5, 0.7], [1, 1]]},
        "lut_apply": {"lut": str(folder / "swap.cube")},
        "overlay": {"picture": "quarters.png", "position": [3, 4]},
        "levels": {"gamma": 1.5},
        "flip": {"direction": "both"},
    }
    for name, params in cards.items():
        session.do({"do": "add", "kind": "filter", "name": name, "params": params})
    links, problems = session._runner.prepare(session.active.contents.cards)
    assert problems == []
    made = np.asarray(session._runner.run(quarters(), links))
    assert made.shape[:2] == (24, 32)


def test_cards_without_what_they_need_are_left_out(page, folder):
    page.ask("open", path=str(folder / "quarters.png"))
    page.ask("view", width=64, height=48, codec="rgba")
    card = page.ask("add", kind="filter", name="lut_apply")["card"]
    page.until(lambda: page.state["chain"] and page.state["chain"][0]["error"])
    assert page.state["chain"][0]["error"] == "lut_apply: lut must be set."
    page.ask("set", card=card, param="lut", value=str(folder / "swap.cube"))
    page.until(lambda: page.state["chain"][0]["error"] is None)
    expected = quarters()[..., ::-1]
    page.picture(lambda p: np.array_equal(p.pixels[..., :3], expected))


def test_a_chain_is_bounded(session):
    session.do({"do": "open", "path": "quarters.png"})
    for _ in range(session.limits.cards):
        session.do({"do": "add", "kind": "filter", "name": "invert"})
    with pytest.raises(ParameterError, match="at most 64 cards"):
        session.do({"do": "add", "kind": "filter", "name": "invert"})


# undo ---------------------------------------------------------------------------------------------
def test_a_drag_is_one_step_of_undo(session):
    session.do({"do": "open", "path": "quarters.png"})
    session.do({"do": "add", "kind": "filter", "name": "blur"})

    def drag(value, token):
        message = {"do": "set", "card": "c1", "param": "radius", "value": value, "drag": token}
        session.do(message)

    for value in range(1, 8):
        drag(value, 1)
    for value in range(8, 12):
        drag(value, 2)
    session.do({"do": "set", "card": "c1", "param": "sigma", "value": 2, "drag": 2})
    seen = [chain(session)[0][1]]
    for _ in range(3):
        session.do({"do": "undo"})
        seen.append(chain(session)[0][1])
    assert seen == [{"radius": 11, "sigma": 2}, {"radius": 11}, {"radius": 7}, {}]
    session.do({"do": "undo"})
    assert chain(session) == []
    assert session.state()["undo"] is False
    for _ in range(4):
        session.do({"do": "redo"})
    assert chain(session) == [("blur", {"radius": 11, "sigma": 2})]
    session.do({"do": "undo"})
    session.do({"do": "set", "card": "c1", "param": "radius", "value": 3})
    assert session.state()["redo"] is False


def test_tabs_have_chains_of_their_own(session):
    session.do({"do": "open", "path": "quarters.png"})
    session.do({"do": "add", "kind": "filter", "name": "blur"})
    session.do({"do": "open", "sample": "coffee"})
    assert chain(session) == []
    session.do({"do": "add", "kind": "filter", "name": "sepia"})
    session.do({"do": "tab", "tab": "t1"})
    assert chain(session) == [("blur", {})]
    session.do({"do": "undo"})
    session.do({"do": "close", "tab": "t1"})
    assert chain(session) == [("sepia", {})]
    session.do({"do": "close", "tab": "t2"})
    assert session.state()["active"] is None
    with pytest.raises(ParameterError, match="nothing is open"):
        session.do({"do": "undo"})


def test_a_preset_of_version_1_has_its_sizes_turned(session, folder):
    """It had sizes as [height, width]."""
    text = (VERSIONS / "preset-1.json").read_text()
    (folder / "old.json").write_text(text)
    session.do({"do": "open", "path": "quarters.png"})
    for message in (
        {"do": "preset", "value": json.loads(text)},
        {"do": "open", "path": str(folder / "old.json")},
    ):
        session.do(message)
        params = [card["params"] for card in session.state()["chain"]]
        assert [given["size"] for given in params] == [[48, 24], [40, None], 2]
    made = json.loads(session.do({"do": "copy", "as": "preset"})["text"])
    assert made["dala"] == 2
    session.do({"do": "preset", "value": made})
    assert [card["params"] for card in session.state()["chain"]] == params


def test_presets_go_around(session):
    session.do({"do": "open", "path": "quarters.png"})
    session.do({"do": "add", "kind": "filter", "name": "blur", "params": {"radius": 4}})
    session.do({"do": "add", "kind": "kernel", "name": "color"})
    session.do({"do": "add", "kind": "model", "name": "faces", "params": {"score": 0.7}})
    session.do({"do": "switch", "card": "c1", "on": False})
    text = session.do({"do": "copy", "as": "preset"})["text"]
    before = [{**c, "id": ""} for c in session.state()["chain"]]
    session.do({"do": "preset", "value": {"chain": []}})
    assert chain(session) == []
    session.do({"do": "preset", "value": json.loads(text)})
    assert [{**c, "id": ""} for c in session.state()["chain"]] == before


# kernels ------------------------------------------------------------------------------------------
def test_kernel_files_open_with_their_parameters(session, folder):
    session.do({"do": "open", "path": "half.py"})
    (card,) = session.state()["chain"]
    assert card["name"] == "half"
    assert card["diagnostics"] == []
    assert card["declared"] == [
        {"name": "amount", "type": "number", "required": False, "default": 0.5, "low": 0.0,
         "high": 1.0, "slider": [0.0, 1.0, 0.01]}
    ]  # fmt: skip
    session.do({"do": "set", "card": "c1", "param": "amount", "value": 0.25})
    text = card["text"].replace("px.rgb * amount", "px.rgb * amount + 0.1")
    session.do({"do": "kernel", "card": "c1", "text": text})
    assert session.state()["tabs"][0]["dirty"] is True
    session.do({"do": "kernel_save", "card": "c1", "path": str(folder / "saved.py")})
    assert (folder / "saved.py").read_text() == text
    assert session.state()["tabs"][0]["dirty"] is False
    with pytest.raises(ParameterError, match=r"a \.py file"):
        session.do({"do": "kernel_save", "card": "c1", "path": str(folder / "saved.sh")})


ISF = """/*{"INPUTS": [{"NAME": "inputImage", "TYPE": "image"},
    {"NAME": "gain", "TYPE": "float", "MIN": 0.0, "MAX": 2.0, "DEFAULT": 0.5}]}*/
void main() {
    gl_FragColor = vec4(IMG_THIS_PIXEL(inputImage).rgb * gain, 1.0);
}
"""


def test_shaders_are_edited_as_kernels_are(session, folder):
    (folder / "gain.fs").write_text(ISF)
    session.do({"do": "open", "path": "gain.fs"})
    (card,) = session.state()["chain"]
    assert (card["diagnostics"], [p["name"] for p in card["declared"]]) == ([], ["gain"])
    reply = session.do({"do": "kernel", "card": "c1", "text": ISF.replace("* gain", "* gian")})
    (wrong,) = reply["diagnostics"]
    assert (wrong["line"], "'gian' is not defined" in wrong["message"]) == (4, True)
    session.do({"do": "kernel", "card": "c1", "text": ISF.replace("1.0)", "0.5)")})
    session.do({"do": "kernel_save", "card": "c1", "path": str(folder / "saved.fs")})
    with pytest.raises(ParameterError, match=r"a \.fs file"):
        session.do({"do": "kernel_save", "card": "c1", "path": str(folder / "shader.py")})
    toy = "void mainImage(out vec4 c, vec2 p) { c = vec4(1.0); }"
    assert session.do({"do": "kernel", "card": "c1", "text": toy})["diagnostics"] == []
    with pytest.raises(ParameterError, match=r"a \.glsl file"):
        session.do({"do": "kernel_save", "card": "c1", "path": str(folder / "shader.py")})
    script = session.do({"do": "copy", "as": "python"})["text"]
    assert "from dala.shaders import shadertoy" in script


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("def f(px: Pixel):\n    return rgba(px.rgb * amont, px.a)", (2, 26, 2, 31), "not defined"),
        ("def f(px: Pixel):\n    return rgba(px.rgb, px.rgb)", (2, 12, 2, 32), "rgba takes 4"),
        ("def f(px: Pixel):\n    return rgba(px.rgb", (2, 16, 2, 17), "never closed"),
        ("\n\n\nimport os\ndef f(px: Pixel): return px", (4, 1, 4, 7), "cannot import"),
        (
            "from dala.gpu.compute.language import *\n\n@kernel\ndef f(px: Pixel):\n    return q",
            (5, 12, 5, 13), "'q'",
        ),
        ("", (1, 1, 1, 1), "no kernel yet"),
        ("def f(a: Pixel, b: Pixel): return a", (1, 1, 1, 4), "one input"),
        ("def f(px: Pixel, *, k): return px", (1, 1, 1, 4), "needs a default"),
        ("def f(): return 1", (1, 1, 1, 4), "the picture"),
        ("x = 1", (1, 1, 1, 2), "functions"),
        ("def f(px: Pixel):\n    while True: pass", None, ""),
    ],
)  # fmt: skip
def test_mistakes_in_kernels_have_a_place(session, text, place, message):
    session.do({"do": "open", "path": "quarters.png"})
    session.do({"do": "add", "kind": "kernel", "name": "color"})
    reply = session.do({"do": "kernel", "card": "c1", "text": text})
    (found,) = reply["diagnostics"]
    assert message in found["message"]
    if place is not None:
        assert (
            found["line"], found["column"], found["end_line"], found["end_column"]
        ) == place  # fmt: skip
    # What worked before is still shown, and its controls stay.
    assert [p["name"] for p in reply["params"]] == ["amount", "warmth"]
    links, problems = session._runner.prepare(session.active.contents.cards)
    assert len(links) == 1
    assert problems == []


def test_a_runaway_kernel_is_stopped_and_reported(page, folder):
    page.ask("open", path=str(folder / "quarters.png"))
    page.ask("view", width=64, height=48, codec="rgba")
    text = (
        "def spin(px: Pixel, *, turns: Within[int, 0, 1000000000] = 1000000000):\n"
        "    x = 0.0\n    for i in range(turns):\n        x = x + sin(x + i)\n"
        "    return rgba(px.rgb + x * 0.0, px.a)\n"
    )
    card = page.ask("add", kind="kernel", text=text)["card"]
    page.until(lambda: page.state["chain"] and page.state["chain"][0]["error"])
    assert "iterations" in page.state["chain"][0]["error"]
    # The picture goes on without it, and a change brings it back.
    page.picture(lambda p: np.array_equal(p.pixels[..., :3], quarters()))
    page.ask("set", card=card, param="turns", value=1)
    page.until(lambda: page.state["chain"][0]["error"] is None)


@pytest.mark.parametrize(
    ("text", "fused"),
    [
        ("def f(px: Pixel, *, k=0.5): return rgba(px.rgb * k, px.a)", True),
        ("def f(img: Image):\n    x = vec3(0.0)\n    for i in range(-1, 2):\n"
         "        x = x + img[i, 0].rgb / 3.0\n    return rgba(x, 1.0)", True),
        ("def half(x): return x * 0.5\ndef f(px: Pixel): return rgba(half(px.rgb), px.a)", True),
        ("def f(px: Pixel, *, n=3):\n    x = 0.0\n    for i in range(n):\n        x = x + 0.01\n"
         "    return rgba(px.rgb + x, px.a)", False),
        ("def f(px: Pixel):\n    x = 0.0\n    for i in range(2000):\n        x = x + 0.00001\n"
         "    return rgba(px.rgb + x, px.a)", False),
    ],
)  # fmt: skip
def test_kernels_that_cannot_run_away_are_fused(session, folder, text, fused):
    session.do({"do": "open", "path": "quarters.png"})
    for card in ({"kind": "filter", "name": "invert"}, {"kind": "kernel", "text": text},
                 {"kind": "filter", "name": "contrast", "params": {"value": 0.2}}):  # fmt: skip
        session.do({"do": "add", **card})
    links, problems = session._runner.prepare(session.active.contents.cards)
    assert problems == []
    made = np.asarray(session._runner.run(quarters(), links)).copy()
    assert (session._runner.passes == 1) is fused
    assert (session.active.contents.cards[1].kernel.kernel.limits is None) is fused
    picture = quarters()
    for link in links:
        picture = np.asarray(session._runner._alone(picture, link)).copy()
    assert np.abs(made.astype(int) - picture).max() <= 1


def test_pictures_are_bounded(folder):
    from dala.studio.session import StudioSession

    limits = StudioLimits(chain_memory=1 << 20)
    with StudioSession([folder], device="cpu", limits=limits) as session:
        session.do({"do": "open", "path": "quarters.png"})
        session.do(
            {"do": "add", "kind": "filter", "name": "resize", "params": {"size": [2000, 2000]}}
        )
        links, problems = session._runner.prepare(session.active.contents.cards)
        assert problems == []
        with pytest.raises(DalaError, match="memory"):
            session._runner.run(quarters(), links)
        found = session._runner.culprit(quarters(), links)
        assert found.card == "c1"
        session.do({"do": "set", "card": "c1", "param": "size", "value": [20, 20]})
        links, _ = session._runner.prepare(session.active.contents.cards)
        assert np.asarray(session._runner.run(quarters(), links)).shape == (20, 20, 3)


def test_text_is_never_executed(session, tmp_path):
    session.do({"do": "open", "path": "quarters.png"})
    session.do({"do": "add", "kind": "kernel", "name": "color"})
    target = tmp_path / "made"
    for text in (
        f"open({str(target)!r}, 'w')",
        f"def f(px: Pixel, *, a=open({str(target)!r}, 'w')): return px",
        f"@open({str(target)!r}, 'w')\ndef f(px: Pixel): return px",
        f"def f(px: Pixel): return __import__('os').mkdir({str(target)!r})",
    ):
        session.do({"do": "kernel", "card": "c1", "text": text})
    assert not target.exists()


def test_errors_of_pages_name_the_argument(page, folder):
    page.ask("open", path=str(folder / "quarters.png"))
    page.ask("add", kind="filter", name="blur")
    with pytest.raises(Refused) as refused:
        page.ask("set", card=page.state["chain"][0]["id"], param="radius", value=1000)
    assert refused.value.error == {
        "text": "blur: radius must be an int from 0 to 200, got 1000.",
        "argument": "radius",
    }
