"""Runs in a process of its own, on SwiftShader, for test_gpu_provider.py: prints a JSON line.

The argument is the name of a model. It must give its known answers on the WebGPU provider, and
then its outputs for a photograph are compared with those of the CPU provider.
"""

import json
import sys
import time

import numpy as np

from dala.ml.gpu import load_model
from dala.ml.prepare import preprocess
from dala.ml.runtime import providers
from tests.ml.answers import check, read_photo


def apart(gpu, cpu):
    """The largest difference of each output, relative to its largest value."""
    given = preprocess(read_photo("astronaut"), model=cpu).numpy()
    got, wanted = gpu.run(given), cpu.run(given)
    assert set(got) == set(wanted)
    return {k: float(np.abs(got[k] - v).max() / np.abs(v).max()) for k, v in wanted.items()}


def main(name):
    if not providers.plugin()[0]:
        sys.stdout.write(json.dumps({"missing": providers.plugin()[1]}) + "\n")
        return
    start = time.monotonic()
    with load_model(name, "webgpu", pull=False) as gpu, load_model(name, "cpu", pull=False) as cpu:
        assert gpu.provider == "webgpu"
        check(name, gpu)
        found = {"apart": apart(gpu, cpu), "capture": gpu.info["capture"]}
    found["seconds"] = round(time.monotonic() - start, 1)
    found["processor seconds"] = round(time.process_time(), 1)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
