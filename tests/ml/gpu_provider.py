"""Runs in a process of its own, on SwiftShader, for test_gpu_provider.py: prints a JSON line."""

import json
import sys

import numpy as np

from dala.errors import DalaError, DeviceLostError, ModelError
from dala.ml.convert.onnx_file import Graph
from dala.ml.gpu import load_model
from dala.ml.runtime import providers


def small(flat, folder, name):
    """A network of a few pixels whose last node is a convolution, or a copy (Flatten)."""
    rng = np.random.default_rng(0)
    graph = Graph("small")
    x = graph.input("pixels", ("batch", 3, 4, 6))
    weights = rng.normal(size=(5, 3, 3, 3)).astype(np.float32)
    bias = rng.normal(size=5).astype(np.float32)
    y = graph.node(
        "Conv", x, graph.constant(weights), graph.constant(bias), kernel_shape=(3, 3),
        pads=(1, 1, 1, 1),
    )  # fmt: skip
    y = graph.node("Relu", y)
    if flat:
        y = graph.node("Flatten", y, axis=1)
    graph.output(y, ("batch", 120) if flat else ("batch", 5, 4, 6), name="y")
    path = f"{folder}/{name}.onnx"
    with open(path, "wb") as file:
        file.write(graph.save())
    return path


def uneven(folder):
    """A network with an output of unknown size."""
    graph = Graph("uneven")
    x = graph.input("pixels", (1, 3, 4, 6))
    graph.output(graph.node("NonZero", graph.node("Relu", x)), (4, "n"), name="y", dtype="int64")
    path = f"{folder}/uneven.onnx"
    with open(path, "wb") as file:
        file.write(graph.save())
    return path


def difference(model, reference, batch, rng):
    x = rng.normal(size=(batch, 3, 4, 6)).astype(np.float32)
    got, want = model.run(x)["y"], reference.run(x)["y"]
    return float(np.abs(got.astype(np.float64) - want).max()) if got.shape == want.shape else 99.0


def main(folder):
    found = {}
    rng = np.random.default_rng(1)
    if not providers.plugin()[0]:
        sys.stdout.write(json.dumps({"missing": providers.plugin()[1]}) + "\n")
        return
    for name, flat in (("conv", False), ("flat", True)):
        path = small(flat, folder, name)
        with (
            load_model(path, "webgpu", task="raw") as gpu,
            load_model(path, "cpu", task="raw") as cpu,
        ):
            order = [1, 1, 2, 3, 1, 2, 1]
            found[name] = [difference(gpu, cpu, n, rng) for n in order]
            runs = gpu._session._runs
            found[f"{name} captured"] = runs.captured
            found[f"{name} notes"] = runs.notes
            found[f"{name} info"] = {k: gpu.info[k] for k in ("provider", "reason", "capture")}
            found[f"{name} many"] = [difference(gpu, cpu, n, rng) for n in range(1, 11)]
            found[f"{name} shapes"] = len(runs._bound)
    with load_model(uneven(folder), "webgpu", task="raw") as gpu:
        x = np.zeros((1, 3, 4, 6), np.float32)
        x[0, 1, 2, 3] = 4
        found["uneven"] = [gpu.run(x)["y"].tolist(), gpu.run(x * 0)["y"].shape]
        found["uneven capture"] = gpu.info["capture"]
    # Two models at once, then a provider that fails in the middle.
    path = f"{folder}/conv.onnx"
    with load_model(path, "webgpu", task="raw") as one, load_model(path, "cpu", task="raw") as cpu:
        with load_model(f"{folder}/flat.onnx", "webgpu", task="raw") as two:
            x = rng.normal(size=(1, 3, 4, 6)).astype(np.float32)
            same = np.abs(one.run(x)["y"].reshape(-1) - two.run(x)["y"].reshape(-1)).max()
            found["two models"] = float(same)
        session = one._session._runs._session
        works = session.run_with_iobinding
        for text, kind in (("the device was lost", DeviceLostError), ("out of luck", ModelError)):

            def fail(*args, text=text):
                raise RuntimeError(text)

            session.run_with_iobinding = fail
            try:
                one.run(x)
                found[text] = "nothing was raised"
            except DalaError as error:
                found[text] = [type(error) is kind, str(error)]
            session.run_with_iobinding = works
            found[f"{text}, after"] = difference(one, cpu, 1, rng)
    with (
        load_model(path, "webgpu", task="raw") as again,
        load_model(path, "cpu", task="raw") as cpu,
    ):
        found["loaded again"] = difference(again, cpu, 1, rng)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
