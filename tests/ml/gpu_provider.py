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


def several(folder, name, flat=120, means=5):
    """A network of three outputs, one of them a copy, of two of which the file may lie."""
    rng = np.random.default_rng(3)
    graph = Graph("several")
    x = graph.input("pixels", ("batch", 3, 4, 6))
    weights = graph.constant(rng.normal(size=(5, 3, 3, 3)).astype(np.float32))
    y = graph.node("Conv", x, weights, kernel_shape=(3, 3), pads=(1, 1, 1, 1))
    graph.output(graph.node("Flatten", y, axis=1), ("batch", flat), name="flat")
    graph.output(graph.node("Relu", y), ("batch", 5, 4, 6), name="maps")
    graph.output(graph.node("GlobalAveragePool", y), ("batch", means, 1, 1), name="means")
    path = f"{folder}/{name}.onnx"
    with open(path, "wb") as file:
        file.write(graph.save())
    return path


def joined(folder, rng):
    """Runs of networks whose outputs are joined, beside the CPU's."""
    made = {}
    for name, flat, means in (("right", 120, 5), ("wrong", 60, 5), ("swapped", 5, 120)):
        path = several(folder, name, flat, means)
        with (
            load_model(path, "webgpu", task="raw") as gpu,
            load_model(path, "cpu", task="raw") as cpu,
        ):
            made[f"{name} packed"] = gpu._session._packed
            made[f"{name} ports"] = [str(p) for p in gpu.output_ports] == [
                str(p) for p in cpu.output_ports
            ]
            worst = 0.0
            for batch in (1, 2, 1, 3):
                x = rng.normal(size=(batch, 3, 4, 6)).astype(np.float32)
                got, want = gpu.run(x), cpu.run(x)
                assert list(got) == list(want)
                worst = max(worst, *(float(np.abs(got[k] - want[k]).max()) for k in want))
            made[name] = worst
            made[f"{name} captured"] = gpu._session._runs.captured
            made[f"{name} packed after"] = gpu._session._packed
    return made


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
        session = one._session._runs.session
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
    found["joined"] = joined(folder, rng)
    found["stream"] = streams(path, rng)
    found["background"] = background(folder)
    sys.stdout.write(json.dumps(found) + "\n")


def streams(path, rng):
    """``model.stream`` by both policies, and with a provider that fails in the middle."""
    frames = [rng.integers(0, 256, (4, 6, 3)).astype(np.uint8) for _ in range(5)]
    with load_model(path, "webgpu", task="raw") as gpu, load_model(path, "cpu", task="raw") as cpu:
        wanted = [cpu.predict(frame)["y"] for frame in frames]
        every = [seen.result["y"] for seen in gpu.stream(iter(frames), "every")]
        (*_, last) = gpu.stream(iter(frames), "latest")
        apart = max(float(np.abs(a - b).max()) for a, b in zip(every, wanted, strict=True))
        made = {"every": apart, "latest": float(np.abs(last.result["y"] - wanted[-1]).max())}
        session = gpu._session._runs.session
        works, seen = session.run_with_iobinding, 0

        def fail(*args):
            raise RuntimeError("the device was lost")

        try:
            for _ in gpu.stream(iter(frames), "every"):
                seen += 1
                if seen == 2:
                    session.run_with_iobinding = fail
            made["lost"] = [seen, "nothing was raised"]
        except DeviceLostError as error:
            made["lost"] = [seen, str(error)]
        session.run_with_iobinding = works
    with load_model(path, "webgpu", task="raw") as again:
        made["again"] = max(
            float(np.abs(one.result["y"] - want).max())
            for one, want in zip(again.stream(iter(frames), "every"), wanted, strict=True)
        )
    return made


def background(folder):
    """A virtual background whose small model runs on the GPU, beside one on the CPU."""
    from dala.ml import Background

    graph = Graph("bright")  # the foreground is what is bright
    x = graph.input("pixels", (1, 3, 16, 16))
    weights = np.full((1, 3, 1, 1), 2.0, np.float32)
    y = graph.node("Conv", x, graph.constant(weights), graph.constant(np.float32([-3.0])))
    graph.output(graph.node("Sigmoid", y), (1, 1, 16, 16), name="y")
    path = f"{folder}/bright.onnx"
    with open(path, "wb") as file:
        file.write(graph.save())
    rng = np.random.default_rng(2)
    frames = [rng.integers(0, 256, (24, 32, 3)).astype(np.uint8) for _ in range(3)]
    results = []
    for provider in ("webgpu", "cpu"):
        loaded = load_model(path, provider, task="matte", preprocess={"normalize": "unit"})
        with loaded as model, Background(model, radius=4) as work:
            results.append([np.asarray(frame).astype(int) for frame in work.stream(iter(frames))])
    apart = [np.abs(a - b) for a, b in zip(*results, strict=True)]
    changed = float(np.abs(results[0][0] - frames[0]).mean())
    return {"most": int(max(a.max() for a in apart)), "changed": changed}


if __name__ == "__main__":
    main(sys.argv[1])
