"""``--device`` of the commands that tell about devices."""

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
def test_the_doctor_tries_a_device(capsys, device):
    assert main(["doctor", "--device", device, "--json"]) == 0
    tried = json.loads(capsys.readouterr().out)["tried"]
    assert (tried["device"], tried["ok"]) == (device, True)
    assert tried["what"].startswith("filters as it should")


def test_the_doctor_says_what_is_wrong(capsys, monkeypatch):
    from dala.media import FramePipeline

    process = FramePipeline.process

    def wrong(self, frame, filters):
        return process(self, frame, filters if self.device == "reference" else ["invert"])

    monkeypatch.setattr(FramePipeline, "process", wrong)
    assert main(["doctor", "--device", "cpu", "--strict"]) == 1
    assert "cpu: filters WRONGLY" in capsys.readouterr().out
    monkeypatch.undo()
    assert main(["doctor", "--device", "webgpu:99", "--strict"]) == 1
    assert "webgpu:99: " in capsys.readouterr().out.splitlines()[-1]


def test_code_as_a_device_gets_it(capsys):
    for device, mark in (("cpu", "define "), ("reference", "store")):
        assert main(["kernels", "sepia", "--device", device]) == 0
        assert mark in capsys.readouterr().out
    if any(d.backend == "webgpu" for d in dala.devices()):
        assert main(["kernels", "sepia", "--device", "webgpu"]) == 0
        assert "@compute" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "said"), [
    (["info", "--device", "nope"], "no device is called 'nope'"),
    (["kernels", "--device", "cpu"], "--device needs the name of a kernel"),
    (["kernels", "sepia", "--device", "cpu", "--source", "ir"], "give one of them"),
    (["kernels", "blur", "--device", "cpu"], "'blur' has code of its own"),
    (["kernels", "sepia", "--device", "nope"], "no device is called 'nope'"),
])  # fmt: skip
def test_wrong(capsys, arguments, said):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err
