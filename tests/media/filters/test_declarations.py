"""Filters are declared once: calls, options, lists, scenes, stubs and tables are derived."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from dala.cli import main
from dala.gpu.compute import kernels
from dala.gpu.compute.kernels.filter import CATEGORIES, FILTERS
from dala.media import FramePipeline, Scene, effects, gpu
from dala.media.filters.declarations import declared
from tests.support import filter_stubs

NEW = '''
from dala.gpu.compute.kernels.filter import picture_filter
from dala.gpu.compute.lang.markers import Pixel, Within

__all__ = ["fade_to_white"]


@picture_filter("Color", example="amount=0.3")
def fade_to_white(px: Pixel, *, amount: Within[float, 0.0, 1.0] = 0.5):
    """Mix every color with white.

    Args:
        amount (share): 1 gives white.
    """
    return rgba(mix(px.rgb, (1.0, 1.0, 1.0), amount), px.a)
'''


@pytest.fixture
def new_filter(tmp_path, monkeypatch):
    (tmp_path / "new_filters.py").write_text(NEW)
    monkeypatch.syspath_prepend(tmp_path)
    declared()
    importlib.import_module("new_filters")
    yield "fade_to_white"
    del FILTERS["fade_to_white"]
    vars(gpu).pop("fade_to_white", None)
    sys.modules.pop("new_filters")


def test_a_new_filter_is_everywhere(new_filter, tmp_path, capsys):
    picture = np.full((4, 6, 3), 55, np.uint8)
    assert new_filter in kernels()
    assert new_filter in gpu.filters()
    assert new_filter in gpu.__all__
    assert new_filter in dir(gpu)
    # the call
    assert (gpu.fade_to_white(picture, amount=1.0, device="cpu") == 255).all()
    assert (gpu.fade_to_white(picture, 6, 4, 0.5, device="cpu") == 155).all()
    plain = "(img, width=None, height=None, amount=0.5, *, out=None, device=None)"
    found = inspect.signature(gpu.fade_to_white)
    unannotated = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    assert str(inspect.Signature(unannotated)) == plain
    assert "amount (share, 0 to 1): 1 gives white." in gpu.fade_to_white.__doc__
    # filter lists
    with FramePipeline(6, 4, device="cpu") as p:
        assert (p.process(picture, [(new_filter, {"amount": 1.0})]) == 255).all()
    # the command line
    with pytest.raises(SystemExit):
        main(["filter", "--help"])
    assert "--fade_to_white [AMOUNT]" in capsys.readouterr().out
    assert main(["kernels", new_filter, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["filter"]
    assert facts["params"][0]["range"] == "0 to 1"
    # scenes
    with Scene(6, 4, device="cpu", background="black") as scene:
        scene.add_effect(new_filter, amount=1.0)
        assert (np.asarray(scene.render())[..., :3] == 255).all()
    # stubs and docs
    assert "def fade_to_white(\n    img: Frame,\n" in filter_stubs.stub("gpu")
    page = "\n".join(filter_stubs.reference(("filter",), "filters"))
    assert "### fade_to_white\n\nMix every color with white." in page
    assert "| `amount` | 0.5 | 0 to 1 | share; 1 gives white. |" in page


def test_a_new_filter_is_in_the_scene_schema(new_filter, capsys):
    assert main(["compose", "--schema"]) == 0
    assert new_filter in capsys.readouterr().out


@pytest.mark.parametrize("path", filter_stubs.files(), ids=lambda path: path.name)
def test_generated_files_are_current(path):
    """Run python -m tests.support.filter_stubs after changing a declaration."""
    current = filter_stubs.files()[path](path.read_text(encoding="utf-8"))
    assert path.read_text(encoding="utf-8") == current


@pytest.mark.parametrize("name", declared())
def test_declarations_are_complete(name):
    spec = declared()[name]
    assert spec.summary.endswith(".")
    assert len(spec.summary) < 90
    assert spec.category in CATEGORIES
    assert set(spec._arguments) == spec.names  # every parameter has a description, and no other
    for p in spec.parameters:
        assert p.doc.endswith("."), p.name
    call = getattr(effects if spec.kind == "effect" else gpu, name)
    named = set(inspect.signature(call).parameters) - {"img", "width", "height", "out", "device"}
    assert named == spec.names | ({"scale"} if spec.sides else set())
    assert "Example::" in call.__doc__


def test_threads_see_all_filters_on_first_use():
    code = """
        import threading
        from dala.media.filters.declarations import declared
        found = []
        threads = [threading.Thread(target=lambda: found.append(len(declared()))) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert len(set(found)) == 1, found
    """
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environ, check=True)
