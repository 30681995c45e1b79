"""``dala kernels``: the list, and one explained."""

import json

import pytest

from dala.cli import main
from dala.gpu.compute import kernels
from dala.media import gpu


def test_the_list_has_all(capsys):
    assert main(["kernels"]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = {line.split()[0] for line in lines if line.startswith("  ")}
    assert listed == {*kernels(), *gpu.filters()}
    assert all(len(line.split()) > 1 for line in lines if line.startswith("  "))


def test_the_list_as_json(capsys):
    assert main(["kernels", "--json"]) == 0
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert [name for name, one in listed.items() if one["filter"]] == gpu.filters()
    assert listed["invert"]["doc"] == "One minus colour."


def test_one(capsys):
    assert main(["kernels", "blur"]) == 0
    out = capsys.readouterr().out
    assert "radius       int  = 3  0 to 200\n" in out
    assert "dala filter in.png out.png --blur\n" in out
    assert main(["kernels", "blur", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["inputs"] == ["img"]
    radius = {"name": "radius", "type": "int", "range": "0 to 200", "required": False, "default": 3}
    assert facts["params"][0] == radius


@pytest.mark.parametrize("name", sorted({*kernels(), *gpu.filters(), "lut"}))
def test_each_can_be_explained(capsys, name):
    assert main(["kernels", name]) == 0
    assert "inputs      " in capsys.readouterr().out


def test_what_a_filter_needs(capsys):
    assert main(["kernels", "overlay_alpha"]) == 0
    out = capsys.readouterr().out
    assert "over         picture  needed\n" in out
    assert "--overlay_alpha over=...\n" in out


def test_source(capsys):
    assert main(["kernels", "sepia", "--source", "wgsl"]) == 0
    assert "@compute" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "said"), [
    (["gaussian_blurr"], "there is no kernel 'gaussian_blurr'. Did you mean 'gaussian_blur'"),
    (["--source", "wgsl"], "--source needs the name of a kernel"),
    (["grade", "--source", "wgsl"], "made of several kernels"),
    (["fft", "--source", "wgsl"], "has code of its own"),
])  # fmt: skip
def test_wrong(capsys, arguments, said):
    assert main(["kernels", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("dala kernels: ")
    assert said in err
    assert err.count("\n") == 1
