"""The WebGPU provider on SwiftShader, Chromium's software Vulkan driver, in a process of its own.

The driver and the permission to use it must be in the environment before the plugin starts.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ml.answers import CHECKS

DRIVERS = [
    Path(p) / "vk_swiftshader_icd.json"
    for p in ("/usr/lib/chromium", "/usr/lib64/chromium-browser", "/opt/google/chrome")
]


def on_swiftshader(module, *arguments, timeout=300, **variables):
    """Run a module on SwiftShader, and return the JSON that it prints."""
    pytest.importorskip("onnxruntime_ep_webgpu")
    driver = next((path for path in DRIVERS if path.is_file()), None)
    if driver is None:
        pytest.skip("SwiftShader is not on this machine (Debian: apt-get install chromium)")
    environment = {
        **os.environ, "VK_DRIVER_FILES": str(driver), "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": "1",
        "DALA_DEVICE": "cpu", **variables,
    }  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        env=environment, capture_output=True, text=True, cwd=Path(__file__).parents[2],
        timeout=timeout,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-4000:]
    result = json.loads(ran.stdout.splitlines()[-1])
    if "missing" in result:
        pytest.skip(result["missing"])
    return result


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return on_swiftshader("tests.ml.gpu_provider", tmp_path_factory.mktemp("models"))


@pytest.mark.long
def test_captured_graphs_of_several_batches(found):
    assert max(found["conv"]) < 1e-4
    assert found["conv captured"] == 3
    assert found["conv notes"] == {}
    wanted = {"provider": "webgpu", "reason": "it was asked for", "capture": "yes"}
    assert found["conv info"] == wanted


def test_graphs_that_replay_wrongly_are_not_used(found):
    """The plugin leaves a last copy out of the captured graph; version 0.4 does."""
    assert max(found["flat"]) < 1e-4
    if found["flat captured"] == 0:
        assert found["flat notes"]["(1, 3, 4, 6)"] == "a replay gives another 'y' than a plain run"


def test_shapes_are_kept_up_to_a_limit(found):
    assert max(found["conv many"] + found["flat many"]) < 1e-4
    assert found["conv shapes"] == 8


def test_outputs_of_unknown_size(found):
    assert found["uneven"] == [[[0], [1], [2], [3]], [4, 0]]
    assert found["uneven capture"].startswith("no: This session cannot use the graph capture")


def test_several_outputs_are_read_as_one(found):
    """Also captured where one is a copy, and right where the file declares a wrong shape."""
    joined = found["joined"]
    assert joined["right packed"]
    assert joined["right packed after"]
    assert joined["right ports"]
    assert joined["right"] < 1e-4
    assert joined["right captured"] == 3
    for name in ("wrong", "swapped"):
        assert joined[name] < 1e-4
        assert not joined[f"{name} packed after"]


def test_several_models_in_one_process(found):
    assert found["two models"] < 1e-4


def test_a_provider_that_fails_in_the_middle(found):
    right, text = found["the device was lost"]
    assert right
    assert text.startswith("predict: the GPU of 'conv.onnx' was lost (the device was lost). Load")
    right, text = found["out of luck"]
    assert right
    assert "failed on provider 'webgpu': out of luck. If it keeps failing, load" in text
    assert found["the device was lost, after"] < 1e-4
    assert found["out of luck, after"] < 1e-4
    assert found["loaded again"] < 1e-4


def test_streams(found):
    stream = found["stream"]
    assert stream["every"] < 1e-4
    assert stream["latest"] < 1e-4
    seen, text = stream["lost"]
    assert seen == 2
    assert text.startswith("predict: the GPU of 'conv.onnx' was lost (the device was lost). Load")
    assert stream["again"] < 1e-4


def test_backgrounds(found):
    assert found["background"]["most"] <= 2
    assert found["background"]["changed"] > 1


#: Models that SwiftShader does not finish in three minutes of processor time, and what was seen.
#: ``benchmarks.gpu.models`` compares them on a GPU.
TOO_SLOW = {
    "u2netp": "had not ended after 631 seconds",
    "yolo_v5": "had not ended after 392 seconds",
}


def test_models_that_are_too_slow_exist():
    assert set(TOO_SLOW) < set(CHECKS)


@pytest.mark.long  # up to three minutes each
@pytest.mark.parametrize("name", [name for name in CHECKS if name not in TOO_SLOW])
def test_known_answers(here, name):
    """As on the CPU (``test_known_answers.py``), and the same numbers."""
    here(name)
    found = on_swiftshader("tests.ml.gpu_models", name, timeout=1800)
    assert found["apart"]
    assert max(found["apart"].values()) < 1e-3
