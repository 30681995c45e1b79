"""Runs in a process of its own, on SwiftShader, for test_gpu_provider.py: prints a JSON line.

The arguments are the names of models. Each runs on the input of its known answers, or on a
photograph, on the WebGPU provider and on the CPU.
"""

import json
import sys

import numpy as np
from PIL import Image

from dala.ml.gpu import load_model
from dala.ml.prepare import preprocess
from dala.ml.runtime import providers
from tests.ml.test_landmarks import INPUTS, KNOWN


def opened(picture):
    path = KNOWN / "hands.png" if picture == "hands" else KNOWN.parents[1] / f"photos/{picture}.png"
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def tensor(name, model):
    if name not in INPUTS:
        return preprocess(opened("astronaut"), model=model).numpy()
    picture, part, scale = INPUTS[name]
    values = opened(picture)[part].astype(np.float32)
    return (values / 255 if scale == "unit" else values / 127.5 - 1)[None]


def apart(name):
    """The largest difference of the two providers, relative to the largest value of an output."""
    with load_model(name, "webgpu", pull=False) as gpu, load_model(name, "cpu", pull=False) as cpu:
        given = tensor(name, cpu)
        got, wanted = gpu.run(given), cpu.run(given)
        assert gpu.provider == "webgpu"
    return {k: float(np.abs(got[k] - v).max() / np.abs(v).max()) for k, v in wanted.items()}


def main(names):
    if not providers.plugin()[0]:
        sys.stdout.write(json.dumps({"missing": providers.plugin()[1]}) + "\n")
        return
    sys.stdout.write(json.dumps({name: apart(name) for name in names}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
