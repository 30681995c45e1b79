"""``--device`` of ``dala info``, ``doctor`` and ``kernels``."""

import json

import pytest

import dala
from dala.cli import main

HERE = [d.id for d in dala.devices() if d.backend in ("cpu", "webgpu", "reference")]


@pytest.mark.parametrize("device", HERE)
def test_info_of_one_device(capsys, device):
    assert main(["info", "--device", device, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    with dala.device(device):
        known = dala.gpu.compute.device_info()
    assert (facts["id"], facts["name"], facts["backend"]) == (
        device,
        known["name"],
        known["backend"],
    )
    assert main(["info", "--device", device]) == 0
    page = capsys.readouterr().out
    assert f"\nname             {known['name']}\n" in page
    assert set(known) <= {line.split()[0] for line in page.splitlines()}


@pytest.mark.parametrize("device", HERE)
def test_doctor_tests_a_device(capsys, device):
    assert main(["doctor", "--device", device, "--json"]) == 0
    tested = json.loads(capsys.readouterr().out)["tried"]
    assert (tested["device"], tested["ok"]) == (device, True)
    assert tested["what"].startswith("filters correctly")


def test_doctor_reports_wrong_results(capsys, monkeypatch):
    from dala.media import FramePipeline

    process = FramePipeline.process

    def wrong(self, frame, filters):
        return process(self, frame, filters if self.device == "reference" else ["invert"])

    monkeypatch.setattr(FramePipeline, "process", wrong)
    assert main(["doctor", "--device", "cpu", "--strict"]) == 1
    assert "cpu: filters INCORRECTLY" in capsys.readouterr().out
    monkeypatch.undo()
    assert main(["doctor", "--device", "webgpu:99", "--strict"]) == 1
    assert "webgpu:99: " in capsys.readouterr().out.splitlines()[-1]


def test_code_of_a_device(capsys):
    for device, mark in (("cpu", "define "), ("reference", "store")):
        assert main(["kernels", "sepia", "--device", device]) == 0
        assert mark in capsys.readouterr().out
    if any(d.backend == "webgpu" for d in dala.devices()):
        assert main(["kernels", "sepia", "--device", "webgpu"]) == 0
        assert "@compute" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "message"), [
    (["info", "--device", "nope"], "got 'nope'. `dala doctor` lists the devices"),
    (["kernels", "--device", "cpu"], "--device needs the name of a kernel"),
    (["kernels", "sepia", "--device", "cpu", "--source", "ir"], "give one of them"),
    (["kernels", "blur", "--device", "cpu"], "'blur' has separate code for each engine"),
    (["kernels", "sepia", "--device", "nope"], "got 'nope'. `dala doctor` lists the devices"),
])  # fmt: skip
def test_errors(capsys, arguments, message):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err
