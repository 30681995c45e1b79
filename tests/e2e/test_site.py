"""The site: built as ``make docs`` does, crawled, and opened in a browser."""

from __future__ import annotations

import json
import math
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import dala
from dala.cli import COMMANDS, parse
from dala.cli.concat import parse_transition
from dala.errors import ParameterError
from dala.gpu.compute import Pipeline, buffer_zeros, from_array, run_kernel
from dala.gpu.compute.kernel import get
from dala.gpu.compute.kernels import BUILTINS
from dala.media import Transition, audio
from dala.media.filters.declarations import declared
from dala.media.scene import load_scene
from dala.media.scene.nodes.registry import NODE_TYPES
from dala.media.sources.easing import EASINGS, easing
from dala.media.transitions.declarations import TRANSITIONS
from dala.ml.models import NAMES, find_model
from tests.media.transitions.transition_pictures import SHOWN
from tests.support.house import public_things
from tests.support.site import LIVE, build, opened, served
from website import crawl, reference, selftest, versions
from website.catalogue import (
    commands,
    easings,
    examples,
    models,
    nodes,
    operations,
    programs,
    transitions,
)


def test_a_crawl_finds_nothing_wrong(site):
    assert list(crawl.problems(site)) == []


def test_the_self_test_has_its_files(site):
    """Which ``tests/web/test_answers.py`` runs in a browser."""
    page = (site / "selftest.html").read_text(encoding="utf-8")
    assert re.search(r'<script type="module" src="\S*assets/selftest\.js"', page)
    cases = json.loads((site / selftest.FOLDER / "cases.json").read_text(encoding="utf-8"))
    assert len(cases["cases"]) == len(selftest.SOME)
    assert (site / "assets" / "selftest.js").is_file()
    assert (site / "assets" / "dala.js").is_file()
    for case in selftest.SOME:
        assert (site / selftest.FOLDER / selftest.file_of(case)).is_file()


def test_every_public_name_has_an_anchor(site):
    anchors = {}
    for name, _ in public_things():
        package = name.rpartition(".")[0]
        if package not in anchors:
            pages = (site / "reference" / package).glob("*.html")
            anchors[package] = {anchor for page in pages for anchor in crawl.read(page).ids}
        assert name in anchors[package]


def test_the_first_page_of_the_reference_has_a_line_for_every_public_name(site):
    text = (site / "reference" / "index.md").read_text(encoding="utf-8")
    rooms = dict(part.split("\n", 1) for part in text.split("\n## ")[1:])
    for name in reference.names():
        row = rf"^\| \[`{re.escape(name.name)}`\]\S* \| \S.* \|$"
        assert re.search(row, rooms[name.module], re.M), name.path


def test_the_reference_has_types_errors_and_examples(site):
    text = (site / "reference" / "dala.media.video" / "index.md").read_text(encoding="utf-8")
    section = text.partition("## open {")[2].partition("\n## ")[0]
    assert "| `source` |" in section
    assert "| raises |" in section
    assert "```python" in section
    assert re.search(r"\[Source\]\(https://\S+/src/dala/media/video/\S+\.py#L\d+\)", section)


def test_the_catalogue_has_everything_that_is_declared(site):
    folder = site / "catalogue"

    def missing(part, names):
        return [name for name in names if not (folder / part / f"{name}.html").is_file()]

    assert missing("filters", declared()) == []
    program = "from dala.gpu.compute import kernels; print(*kernels())"
    fresh = subprocess.run(  # other tests make kernels, too
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert missing("operations", set(fresh) - set(declared()) - set(NAMES)) == []
    assert missing("nodes", NODE_TYPES) == []
    assert missing("models", NAMES) == []
    assert missing("commands", COMMANDS) == []
    easings = (folder / "easings" / "index.html").read_text(encoding="utf-8")
    assert [name for name in EASINGS if f"<code>{name}</code>" not in easings] == []
    assert set(TRANSITIONS) <= set(crawl.read(folder / "transitions" / "index.html").ids)
    assert set(nodes.PROGRAMS) == set(NODE_TYPES)  # each has a picture


@pytest.mark.parametrize("name", sorted(declared()))
def test_the_command_line_of_a_filter_means_its_example(name):
    spec = declared()[name]
    option = programs.command(spec)
    if not option:
        assert spec.kind == "conversion"
        return
    ((found, given),) = parse(["filter", "in.png", "out.png", *option.split(" ", 1)])[2].chain
    assert found == name
    if name not in ("remap", "lut_apply"):  # whose example is a file
        example = eval(f"dict({spec.example})")
        for key, value in example.items():
            flat = np.ravel(value).tolist() if name == "color_matrix" else value
            got = given[key] if isinstance(value, str | list) else np.asarray(given[key]).tolist()
            assert got == (list(flat) if isinstance(flat, tuple) or key == "matrix" else flat) or (
                list(got) == flat
            )


@pytest.mark.parametrize("name", sorted(set(BUILTINS) - set(declared()) - set(NAMES)))
def test_the_calls_of_an_operation_run(name):
    """What its page shows gives what its example gives."""
    kernel = get(name)
    with dala.device("reference"):
        call = examples.call_of(name, kernel)
        if call is None:
            wanted, given = None, {}
            out = buffer_zeros((2, 3, 3), "u8")
        else:
            wanted = np.asarray(kernel(*call.inputs, **call.params))
            taken = zip(kernel.inputs, call.inputs, strict=False)
            given = {name: from_array(array) for name, array in taken}
            out = from_array(np.zeros_like(wanted))
        lines = [line for line in operations.forms(name, kernel) if not line.startswith("await")]
        for left_out in set(kernel.inputs) - set(given):
            lines = [line.replace(f", {left_out}", "") for line in lines]
        names = {"run_kernel": run_kernel, "pipeline": Pipeline(), "out": out, **given}
        exec("\n".join(lines), names)
        names["pipeline"].run()
        got = out.numpy()
    if wanted is None:
        assert got.max() > got.min()
    else:
        assert (got == wanted).all()
        assert examples.results(name, call)


def test_formulas_of_easings():
    for family, formula in easings.FORMULAS.items():
        for t in np.linspace(0, 1, 17):
            wanted = eval(formula, vars(math).copy(), {"t": float(t)})
            assert easing(f"{family}-in")(float(t)) == pytest.approx(wanted, abs=1e-12)
    families = {
        name.partition("-")[0] for name in EASINGS if not name.startswith(("linear", "ease"))
    }
    assert families - set(easings.FORMULAS) == {"bounce"}  # described in words


@pytest.mark.parametrize("name", TRANSITIONS)
def test_examples_of_transitions(name):
    made = eval(transitions.call(name), {"Transition": Transition})
    _, option = transitions.option(name).split(" ", 1)
    assert repr(parse_transition(option)) == repr(made)
    pictured = {k: v for k, v in SHOWN.get(name, {}).items() if k != "picture"}
    assert {k: v for k, v in transitions.EXAMPLES[name].items() if k != "picture"} == pictured


def test_an_easing_on_the_command_line():
    made = parse_transition(easings.OPTION.split(" ", 1)[1])
    assert made.easing == "cubic-out"


def test_scene_files_of_the_catalogue(tmp_path):
    assert set(nodes.FILES) == set(NODE_TYPES)
    dala.samples.photo("coffee").save(tmp_path / "photo.png")
    shutil.copy(dala.samples.video("chelsea"), tmp_path / "talk.mp4")
    (tmp_path / "talk.srt").write_text("1\n00:00:00,000 --> 00:00:02,000\nCoffee?\n")
    audio.tone(220, 0.1).save(tmp_path / "music.wav")
    shutil.copy(
        pathlib.Path(__file__).parents[2] / "website" / "assets" / "favicon.svg",
        tmp_path / "logo.svg",
    )
    for text in [easings.SCENE_FILE, *map(nodes.scene_file, NODE_TYPES)]:
        (tmp_path / "scene.json").write_text(text, encoding="utf-8")
        with load_scene(tmp_path / "scene.json", device="cpu") as scene:
            got = np.asarray(scene.render(0.5))
            drawn = [
                node
                for node in json.loads(text)["nodes"]
                if node["type"] not in ("audio", "effect")
            ]
            assert got[..., :3].any() == bool(drawn), text


def test_options_of_models_are_described():
    for name in NAMES:
        for option, default in find_model(name).options.items():
            assert models.OPTIONS[option]
            above = {"1 or more, int": 0, "0 to 1": 1.5, "0 or more": -1, "True or False": 2}
            with pytest.raises(ParameterError):
                find_model(name).chosen({option: above[models.option_range(default)]})


def test_every_command_names_its_calls():
    assert set(commands.PYTHON) == set(COMMANDS)
    link = reference.linker("catalogue/commands/x.md")
    calls = [call for found in commands.PYTHON.values() for call in found]
    assert [call for call in calls if not link(call).startswith("[")] == []


@pytest.mark.parametrize("task", models.COMMANDS)
def test_the_commands_of_models_are_accepted(task):
    _, *words = models.COMMANDS[task].format(name="selfie").split()
    assert parse(words)[0] == words[0]


def test_no_page_speaks_reST(site):
    found = [
        page.name
        for page in site.rglob("*.md")
        if re.search(r":(func|class|meth|mod|data|attr):`", page.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.long
def test_readers_choose_a_version(site, browser):
    page = browser.new_page()
    with opened(site) as address:
        page.goto(f"{address}how-to/rotate.html")
        page.wait_for_selector(".md-version__link", state="attached")
        offered = page.locator(".md-version__link").all_text_contents()
        assert [text.strip() for text in offered] == ["0.1.0", "dev"]
        assert "dev" in page.locator(".md-version__current").text_content()
        page.locator(".md-version__link", has_text="0.1.0").dispatch_event("click")
        page.wait_for_url("**/0.1.0/how-to/rotate.html")  # the same page
        root = address.removesuffix("dev/")
        page.goto(f"{root}latest/how-to/rotate.html#example")
        page.wait_for_url("**/0.1.0/how-to/rotate.html#example")
        page.goto(root)
        page.wait_for_url("**/0.1.0/index.html")
    page.close()


def test_versions_are_checked(tmp_path, capsys):
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "index.html").write_text("<title>a</title>", encoding="utf-8")
    pages = str(tmp_path / "pages")
    assert versions.main([pages]) == 2
    assert versions.main([pages, f"dev={tmp_path / 'plain'}"]) == 1
    assert "not a site that was built with SITE_VERSION=dev" in capsys.readouterr().err
    assert versions.main([pages, f"../up={tmp_path / 'plain'}"]) == 1
    assert "not a version: '../up'" in capsys.readouterr().err
    assert not (tmp_path / "pages").exists()


# canvases -----------------------------------------------------------------------------------------

#: Runs the chain of a page on its picture; returns how far the result is from the still.
RUN = """async () => {
    await customElements.whenDefined("dala-chain");
    const view = await document.querySelector("dala-chain").ready;
    await view.settled();
    const { chain } = view;
    const load = async name => createImageBitmap(await (await fetch(chain.url(name))).blob());
    const result = await chain.run(await load(chain.document.picture), {}, { fit: true });
    const { width, height } = result;
    const got = await result.pixels();
    const context = new OffscreenCanvas(width, height).getContext("2d");
    context.drawImage(await load(chain.document.still), 0, 0, width, height);
    const still = context.getImageData(0, 0, width, height).data;
    let sum = 0, count = 0;
    for (let i = 0; i < got.length; i += 4) {
        if (got[i + 3] < 255) continue;   // colors below alpha are lost in a file
        for (let k = 0; k < 3; k++, count++) sum += Math.abs(got[i + k] - still[i + k]);
    }
    return { width, height, off: sum / count };
}"""


def check_canvas(page, address, name):
    """The canvas of a filter's page shows what the desktop shows, within a file's losses."""
    page.goto(f"{address}catalogue/filters/{name}.html")
    found = page.evaluate(RUN)
    assert found["width"] > 0
    # The picture of the page has lost details; tests/web compares exactly.
    assert found["off"] < 40, (name, found)


def test_canvases_run_in_a_browser(site, browser):
    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    with opened(site) as address:
        for name in LIVE:
            check_canvas(page, address, name)
    page.close()
    assert errors == []


@pytest.mark.long
def test_all_canvases_run_in_a_browser(tmp_path, browser):
    assert build(tmp_path) == ""
    assert list(crawl.problems(tmp_path)) == []
    page = browser.new_page()
    tried = 0
    with served(tmp_path) as address:
        for name in sorted(declared()):
            text = (tmp_path / "catalogue" / "filters" / f"{name}.html").read_text("utf-8")
            if "<dala-chain" in text:
                check_canvas(page, address, name)
                tried += 1
    page.close()
    assert tried > 50
