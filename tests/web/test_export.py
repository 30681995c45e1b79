"""Exporting without a browser: plans as formulas, controls, files, refusals, the runtime."""

import gzip
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

import dala.web
from dala.errors import DalaError, ParameterError, ShapeError
from dala.gpu.compute import Pipeline, buffer_zeros, kernel
from dala.gpu.compute.recording import Recorder, evaluate, holds
from dala.media import FramePipeline
from dala.media.filters.declarations import filter_names
from dala.web.explore import numbers_of, same
from dala.web.exporting import _source
from tests.support.web import example

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "web" / "runtime"
STATIC = ROOT / "src" / "dala" / "web" / "static"


# plans -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "chain",
    [
        [("blur", {"radius": 2, "sigma": 1.5}), ("sharpen", {"amount": 0.3})],
        [("resize", {"size": (None, 90), "method": "lanczos"})],
        [("rotate", {"angle": 33.0})],
        [("clahe", {"clip_limit": 3.0, "tiles": (2, 3)})],
        [("pixelate", {"block": 7})],
        [("thumbnail", {"size": 50})],
        [("chromatic_aberration", {"amount": 3.0})],
        ["equalize", ("posterize", {"bits": 3})],
    ],
    ids=lambda chain: chain[0] if isinstance(chain[0], str) else chain[0][0],
)
def test_formulas_give_the_numbers_of_plain_plans(chain):
    """A plan's formulas at any size are what the planner makes for that size."""
    source = _source(chain, None, False)
    made = dala.web.plan(chain)
    assert made.size is None
    for width, height in ((64, 48), (63, 49), (640, 427), (1, 1), (333, 1000)):
        plain = source.record(numbers_of(made.controls, width, height), ())
        assert same(made.at(width, height), plain), (width, height)


def test_numbers_of_filters_stay_controls():
    """A shader that is chosen by the size of a parameter must note it as a guard."""
    made = dala.web.plan([("blur", {"radius": 2}), ("sharpen", {"amount": 0.3}), "brightness"])
    assert [c.name for c in made.live] == ["radius", "amount", "value"]
    assert made.notes == []


def test_every_filter_is_a_formula_of_the_size():
    """Code between a picture's size and the plan keeps symbols; see docs/design/web.md."""
    lost = []
    for name in filter_names():
        source = _source([(name, example(name))], None, False)
        if source.size is not None:  # it takes the size of a second picture
            continue
        plan = source.record(numbers_of(source.controls, 640, 360), {"w", "h"})
        for width, height in ((320, 240), (1280, 720), (641, 361)):
            numbers = numbers_of(source.controls, width, height)
            plain = source.record(numbers, ())
            if plan.holds(numbers) and not same(plan.at(numbers), plain):
                lost.append((name, width, height))
    assert lost == []


def test_as_few_dispatches_as_on_the_desktop():
    chain = [
        ("brightness", {"value": 0.1}),
        ("blur", {"radius": 3}),
        ("sharpen", {"amount": 0.4}),
        ("vignette", {}),
        "grayscale",
    ]
    with FramePipeline(32, 24, device="webgpu") as pipeline:
        pipeline.process(np.zeros((24, 32, 4), np.uint8), chain)
        passes = pipeline.passes
    assert dala.web.plan(chain).dispatches == passes


def test_symbols_are_numbers_with_formulas():
    recorder = Recorder()
    w, h = recorder.trace.integer("w", 30), recorder.trace.integer("h", 20)
    made = -(-w // 16) * h + 2.5
    assert made == 42.5
    for width, height in ((17, 3), (1, 1), (1000, 9)):
        want = -(-width // 16) * height + 2.5
        assert evaluate(made.expr, {"w": width, "h": height}) == want
    assert min(w, 25) == 25
    guards = recorder.trace.guards
    assert all(holds(g, {"w": 40, "h": 20}) for g in guards[1:])
    assert not all(holds(g, {"w": 4, "h": 20}) for g in guards[1:])


def test_controls_and_what_is_fixed():
    made = dala.web.plan([("blur", {"radius": 3}), ("blur", {"radius": 1, "sigma": 1.0})])
    names = [c.name for c in made.live]
    assert names == ["blur.radius", "blur2.radius", "sigma"]
    fixed = {c.name: c.why for c in made.controls if c.why}
    assert fixed["blur.border"] == "name it in sliders to change it"
    radius = made.live[0]
    assert (radius.low, radius.high, radius.step, radius.values) == (0, 16, 1, (3,))
    chosen = dala.web.plan([("flip", {})], sliders={"direction": None})
    assert chosen.live[0].choices == ("horizontal", "vertical", "both")


def test_sliders_choose_ranges():
    made = dala.web.plan([("blur", {"radius": 3})], sliders={"radius": (2, 5), "border": None})
    radius, border = made.live
    assert (radius.low, radius.high) == (2, 5)
    assert border.choices == ("clamp", "reflect", "wrap", "constant")
    assert made.at(64, 64, radius=5, border=2).steps
    for sliders, message in (
        ({"rad": (1, 2)}, r"export_web: sliders: no parameter 'rad'. Did you mean 'radius'\?"),
        ({"radius": (5, 2)}, r"export_web: sliders\['radius'\] must be \(low, high\) or None, got"),
        ([1], r"export_web: sliders must be a dict of names and \(low, high\), got"),
    ):
        with pytest.raises(ParameterError, match=message):
            dala.web.plan([("blur", {"radius": 3})], sliders=sliders)


# refusals ----------------------------------------------------------------------------------------
def element(x, *, k=2.0):
    return x * k


@pytest.mark.parametrize(
    ("chain", "message"),
    [
        ([], "export_web: chain must be a list with at least one filter"),
        (5, "export_web: chain must be a list of filters, a kernel or a pipeline, got 5"),
        (["blurr"], r"export_web: filters\[0\] \('blurr'\) is not a filter. Did you mean 'blur'"),
        ([("blur", {"radius": -1})], r"\('blur'\): radius must be an int from 0 to 200, got -1"),
        ([("blur", 3)], "export_web: a filter must be a name, or a name and its"),
        (["mobilenet_v2"], "'mobilenet_v2' cannot be exported: models and operations on the host"),
        (["matmul"], r"export_web: filters\[0\] \('matmul'\) is a kernel, but not a filter"),
    ],
)
def test_refused_by_name_before_anything_is_written(tmp_path, chain, message):
    with pytest.raises(DalaError, match=message):
        dala.web.export(chain, tmp_path / "page")
    assert not (tmp_path / "page").exists()


def test_f64_is_refused(tmp_path):
    made = kernel("def deep(px: Pixel): return px * f64(0.5)")
    with pytest.raises(DalaError, match="f64"):
        made.export_web(tmp_path / "page")
    assert not (tmp_path / "page").exists()


def test_pipelines_without_a_picture_are_refused(tmp_path):
    a, out = buffer_zeros((4, 4), device="cpu"), buffer_zeros((4, 4), device="cpu")
    stage = {"op": "run_kernel", "kernel": "relu", "inputs": [a], "output": out}
    with Pipeline().add(stage) as pipeline, pytest.raises(ShapeError, match="no stage reads a pic"):
        pipeline.export_web(tmp_path / "page")
    with Pipeline() as pipeline, pytest.raises(ParameterError, match="the pipeline has no stages"):
        pipeline.export_web(tmp_path / "page")
    assert not (tmp_path / "page").exists()


def test_folders_and_files_are_checked(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match="folder must be a folder, got"):
        dala.web.export(["invert"], tmp_path / "file")
    with pytest.raises(ParameterError, match="folder must be a str or Path, got 3"):
        dala.web.export(["invert"], 3)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        dala.web.export(["invert"], tmp_path / "page", picture=tmp_path / "none.jpg")
    assert not (tmp_path / "page").exists()


# documents ---------------------------------------------------------------------------------------
def test_files_of_a_folder(tmp_path):
    table = np.linspace(0, 1, 3 * 17**3, dtype=np.float32).reshape(17, 17, 17, 3)
    made = dala.web.export([("lut_apply", {"lut": table}), "invert"], tmp_path / "a" / "page")
    assert set(made.files) == {
        "chain.json", "dala.d.ts", "dala.js", "data/0.bin", "index.html", "picture.jpg",
        "shaders/0.wgsl", "shaders/1.wgsl", "shaders/2.wgsl", "still.jpg",
    }  # fmt: skip
    folder = made.path
    assert (folder / "data/0.bin").read_bytes() == table.tobytes()
    document = json.loads((folder / "chain.json").read_text())
    assert (document["format"], document["version"]) == ("dala-chain", 1)
    assert document["name"] == "lut_apply + invert"
    steps = document["plans"]["rgba"][0]["steps"]
    assert [s["shader"] for s in steps] == [0, 1, 2]  # the table's entries, the colors, invert
    assert "fn main" in (folder / "shaders/0.wgsl").read_text()
    assert not list(folder.rglob("*.part*"))


def test_one_file_has_everything(tmp_path):
    made = dala.web.export(["invert"], tmp_path / "page.html", title="</script><b>")
    text = made.path.read_text()
    assert list(tmp_path.iterdir()) == [made.path]
    assert text.count("</script") == 2  # those of the document and of the runtime
    assert "<title>&lt;/script&gt;&lt;b&gt;</title>" in text
    found = re.search(r'id="chain">(.*)</script>', text)
    assert found is not None
    document = json.loads(found[1])
    assert document["title"] == "</script><b>"
    assert "text" in document["shaders"][0]
    assert document["picture"].startswith("data:image/jpeg;base64,")


def test_export_is_the_same_every_time(tmp_path):
    chain = [("blur", {"radius": 2}), ("sharpen", {"amount": 0.3})]
    for name in ("a", "b"):
        dala.web.export(chain, tmp_path / name)
    for path in (tmp_path / "a").rglob("*"):
        if path.is_file():
            other = tmp_path / "b" / path.relative_to(tmp_path / "a")
            assert path.read_bytes() == other.read_bytes(), path


def test_chain_files(tmp_path):
    path = tmp_path / "chain.json"
    path.write_text('{"filters": ["invert", ["blur", {"radius": 2}], {"filter": "flip"}]}')
    assert dala.web.read_chain(path) == ["invert", ("blur", {"radius": 2}), ("flip", {})]
    assert dala.web.export(path, tmp_path / "page").plan.name == "invert + blur + flip"
    for text, message in (
        ("nonsense", "is not JSON"),
        ('{"a": 1}', "chain must be a list of filters in the file"),
        ("[3]", "chain must be filters such as"),
        ('{"format": "dala-chain"}', "is an exported chain"),
    ):
        path.write_text(text)
        with pytest.raises(ParameterError, match=message):
            dala.web.read_chain(path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        dala.web.read_chain(tmp_path / "none.json")


def test_chain_files_that_are_nested_too_deep(tmp_path):
    (tmp_path / "deep.json").write_text("[" * 200_000)
    with pytest.raises(ParameterError, match=r"deep\.json' is not JSON"):
        dala.web.export(tmp_path / "deep.json", tmp_path / "page")


def test_a_new_folder_appears_whole(tmp_path, monkeypatch):
    def full(self, target):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr("os.replace", full)
        dala.web.export(["invert"], tmp_path / "page")
    assert list(tmp_path.iterdir()) == []
    for _ in range(2):
        made = dala.web.export(["invert"], tmp_path / "page")
        assert {str(p.relative_to(made.path)) for p in made.path.rglob("*.*")} == set(made.files)


def test_frame_pipelines_export_their_last_filters(tmp_path):
    with FramePipeline(8, 8, device="cpu") as pipeline:
        with pytest.raises(ParameterError, match="at least one filter"):
            pipeline.export_web(tmp_path / "page")
        pipeline.process(np.zeros((4, 4, 4), np.uint8), [("gamma", {"value": 2.0})])
        assert pipeline.export_web(tmp_path / "page").plan.name == "gamma"
        assert pipeline.export_web(tmp_path / "other", ["sepia"]).plan.name == "sepia"


# the built runtime -------------------------------------------------------------------------------
def test_runtime_is_built_from_its_sources():
    """``npm run build`` in web/runtime was run after the last change."""
    digest = hashlib.sha256()
    names = [f"src/{p.name}" for p in sorted((RUNTIME / "src").iterdir())]
    for name in [*names, "build.mjs", "tsconfig.json", "package.json"]:
        digest.update(name.encode() + b"\0" + (RUNTIME / name).read_bytes() + b"\0")
    assert (STATIC / "sources.sha256").read_text().strip() == digest.hexdigest()


def test_runtime_is_small_and_has_types():
    assert len(gzip.compress((STATIC / "dala.js").read_bytes())) < 30_000
    types = (STATIC / "dala.d.ts").read_text()
    for name in (
        "class Chain",
        "class Result",
        "function mount",
        "const Dala",
        "interface Control",
    ):
        assert name in types
    exported = re.search(r"^export \{(.*?)\};$", types, re.M)
    built = re.search(r"export\s*\{([^}]*)\};?\s*$", (STATIC / "dala.js").read_text())
    assert exported is not None
    assert built is not None
    names = [{n.split()[-1] for n in found[1].split(",")} for found in (exported, built)]
    assert names[0] == names[1]
