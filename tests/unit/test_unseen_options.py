"""Declared once: a line that the code has never seen is found wherever its group is used.

Every group of options, a filter and a node get an option of their own in copies of their modules.
One process runs with these, and tells where it finds them.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("av")
pytest.importorskip("pyarrow")
pytest.importorskip("onnxruntime")

ROOT = Path(__file__).parents[2]
#: The groups of each module, and the calls that take each.
CALLS = {
    "dala.media.video.options": {
        "EncoderOptions": ["video.write", "Scene.render_to", "batch.videos", "batch.scenes"],
        "EncodeOptions": ["video.write"],
        "DecoderOptions": ["video.open", "batch.videos"],
        "DecodeOptions": ["video.open"],
        "FilterOptions": ["batch.videos"],
    },
    "dala.media.live.output": {"StreamOptions": ["live.open", "live.send", "Scene.live"]},
    "dala.media.pictures.options": {"PictureOptions": ["batch.images"]},
    "dala.media.scene.options": {
        "RenderOptions": ["Scene.render_to"],
        "FollowOptions": ["Scene.follow"],
        "LayoutOptions": ["Scene.side_by_side", "Scene.stack", "Scene.grid"],
        "DuckOptions": ["Scene.duck"],
        "LevelOptions": ["Scene.level"],
    },
    "dala.ml.options": {
        "ModelOptions": ["load_model", "load_model_async"],
        "DrawOptions": ["draw"],
        "WatchOptions": ["watch"],
        "HideOptions": ["FaceHider"],
    },
    "dala.batch.options": {
        "RunOptions": ["Job.run"],
        "JobOptions": ["batch.videos", "batch.scenes"],
        "VideoJobOptions": ["batch.videos"],
        "SceneJobOptions": ["batch.scenes"],
        "PictureJobOptions": ["batch.images"],
        "ModelJobOptions": ["batch.detect", "batch.classify", "batch.faces"],
        "ClassifyJobOptions": ["batch.classify"],
    },
    "dala.media.audio.effects": {
        f"{name.capitalize()}Options": [f"Audio.{name}"]
        for name in ("compressor", "limiter", "eq", "echo", "denoise")
    },
    "dala.studio.home.rendering": {"StudioOptions": []},
}
GROUPS = {group: calls for groups in CALLS.values() for group, calls in groups.items()}
#: The commands that have the options of each group.
COMMANDS = {
    "EncoderOptions": ["filter", "batch", "cut", "concat", "compose", "render"],
    **dict.fromkeys(("DecoderOptions", "FilterOptions", "PictureOptions"), ("filter", "batch")),
    "StreamOptions": ["live"],
    "RenderOptions": ["compose"],
    "ModelOptions": ["detect", "faces", "hands", "poses", "classify", "segment", "background"],
    "HideOptions": ["faces"],
    **dict.fromkeys(CALLS["dala.batch.options"], ("batch",)),
}
#: The groups whose options are keys of scene files.
KEYS = {
    "FollowOptions": "follows", "DuckOptions": "ducks", "LevelOptions": "animations",
    "LayoutOptions": "layouts",
}  # fmt: skip
#: A parameter of a filter and a property of a node: texts of their modules, and what replaces them.
OTHERS = {
    "dala.gpu.compute.kernels.color": {
        "def sepia(px: Pixel, *, ": "def sepia(px: Pixel, *, patina: Within[int, 0, 9] = 3, ",
        "    r = dot(px.rgb, (0.393": "    r = float(patina) * 0.0 + dot(px.rgb, (0.393",
    },
    "dala.media.scene.nodes.shape": {
        "    def prepare(": '    patina = Property(3.0, t.NumberType(0.0, 9.0), "Patina.")\n\n'
        "    def prepare("
    },
}


def named(group):
    return f"patina_{group.removesuffix('Options').lower()}"


def line(group):
    kind = "t.NumberType(0, 9)" if group in KEYS else "_Integer(0, 9)"
    facts = f'option({kind}, 3, "film patina", command=True, page=True)'
    return f"    {named(group)}: int = {facts}\n"


def source_of(module):
    return (ROOT / "src" / (module.replace(".", "/") + ".py")).read_text(encoding="utf-8")


def edited(module):
    text = source_of(module)
    lines = text.splitlines(keepends=True)
    for node in reversed(ast.parse(text).body):
        if isinstance(node, ast.ClassDef) and node.name in CALLS[module]:
            lines.insert(node.body[0].end_lineno, line(node.name))
        elif isinstance(node, ast.ImportFrom) and node.module == "__future__":
            lines.insert(node.end_lineno, "from dala.arguments import Integer as _Integer\n")
    return "".join(lines)


def widened(module):
    text = source_of(module)
    for before, after in OTHERS[module].items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


#: Imports the copies in the place of modules.
PROGRAM = """
import importlib.util, json, sys
from importlib.abc import MetaPathFinder

PLACES = json.loads(sys.argv[1])[0]

class Copies(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in PLACES:
            return importlib.util.spec_from_file_location(name, PLACES[name])

sys.meta_path.insert(0, Copies())
from tests.support import unseen
unseen.main(*json.loads(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("declared")
    places = {}
    texts = {module: edited(module) for module in CALLS}
    texts |= {module: widened(module) for module in OTHERS}
    for module, text in texts.items():
        places[module] = str(folder / f"{module}.py")
        Path(places[module]).write_text(text, encoding="utf-8")
    groups = {g: (named(g), calls, COMMANDS.get(g, [])) for g, calls in GROUPS.items()}
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([places, groups, KEYS])],
        capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_every_group_of_the_package_is_one_of_these():
    sources = (ROOT / "src" / "dala").rglob("*.py")
    found = {
        node.name
        for path in sources
        if "= option(" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
        for row in node.body
        if isinstance(row, ast.AnnAssign) and isinstance(row.value, ast.Call)
        if ast.unparse(row.value.func) == "option"
    }
    assert found - set(GROUPS) == {"DeviceOptions"}


@pytest.mark.parametrize("group", GROUPS)
def test_a_new_option_is_one_line(found, group):
    calls, name, got = GROUPS[group], named(group), found["groups"][group]
    assert got["signatures"] == [f"{name}: 'int' = 3"] * len(calls)
    assert got["docs"] == [True] * len(calls)
    kind = "a number" if group in KEYS else "an int"
    ends = f": {name} must be {kind} from 0 to 9, got 12."
    assert [error[-len(ends) :] for error in got["errors"]] == [ends] * len(calls)
    assert got["stub"]
    assert got["help"] == ["film patina"] * len(COMMANDS.get(group, ()))
    assert len(got["card"]) == (group in ("EncoderOptions", "StudioOptions"))
    assert got["key"] == (group in KEYS)


def test_records_of_jobs_hold_new_options(found):
    assert found["records"] == [[5] * 5, [5] * 3, [5] * 2, [5]]
    assert found["worker"] == 5
    assert found["misspelled"].startswith("video.write: there is no option 'pattina'. ")


def test_a_new_parameter_of_a_filter_is_found_everywhere(found):
    assert found["filter"] == {
        "signature": "patina: 'int' = 3",
        "stub": True,
        "help": ["patina", "amount"],
        "card": [[0, 9, 1]],
        "key": 9,
        "record": [{"filter": "sepia", "params": {"patina": 5}}],
        "error": "sepia: patina must be an int from 0 to 9, got 12.",
    }


def test_a_new_property_of_a_node_is_found_everywhere(found):
    assert found["node"] == {
        "signature": "patina: 'float' = 3.0",
        "stub": True,
        "card": [3.0],
        "key": 9.0,
        "record": 5,
        "error": "add_shape: patina must be a number from 0 to 9, got 12.",
    }
