"""``dala kernels``: the list, and the explanation of one kernel."""

import json

import pytest

from dala.cli import main
from dala.gpu.compute import kernels
from dala.media import gpu


def test_list(capsys):
    assert main(["kernels"]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = {line.split()[0] for line in lines if line.startswith("  ")}
    assert listed == {*kernels(), *gpu.filters()}
    assert all(len(line.split()) > 1 for line in lines if line.startswith("  "))


def test_list_as_json(capsys):
    assert main(["kernels", "--json"]) == 0
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert [name for name, one in listed.items() if one["filter"]] == gpu.filters()
    assert listed["invert"]["doc"] == "Invert every color."


def test_explanation(capsys):
    assert main(["kernels", "blur"]) == 0
    out = capsys.readouterr().out
    assert "radius       int  = 3  0 to 200  pixels\n" in out
    assert "dala filter in.png out.png --blur [RADIUS,sigma=.." in out
    assert main(["kernels", "blur", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["inputs"] == ["img"]
    assert facts["params"][0] == {
        "name": "radius", "type": "int", "range": "0 to 200", "unit": "pixels",
        "doc": "0 changes nothing.", "required": False, "default": 3,
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted({*kernels(), *gpu.filters(), "lut"}))
def test_every_kernel_has_an_explanation(capsys, name):
    assert main(["kernels", name]) == 0
    assert "inputs      " in capsys.readouterr().out


def test_required_parameters(capsys):
    assert main(["kernels", "overlay_alpha"]) == 0
    out = capsys.readouterr().out
    assert "over         picture  required\n" in out
    assert "--overlay_alpha FILE,opacity=..\n" in out


def test_source(capsys):
    assert main(["kernels", "sepia", "--source", "wgsl"]) == 0
    assert "@compute" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "message"), [
    (["gaussian_blurr"], "there is no kernel 'gaussian_blurr'. Did you mean 'gaussian_blur'"),
    (["--source", "wgsl"], "--source needs the name of a kernel"),
    (["grade", "--source", "wgsl"], "consists of several kernels"),
    (["fft", "--source", "wgsl"], "has separate code for each engine"),
])  # fmt: skip
def test_errors(capsys, arguments, message):
    assert main(["kernels", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("dala kernels: ")
    assert message in err
    assert err.count("\n") == 1
