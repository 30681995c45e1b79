"""Models: custom files, batches and streams."""

import threading

import numpy as np
import pytest

import dala
from dala.gpu.compute import from_array
from dala.ml.gpu import load_model, top_k
from tests.ml.small import RED, check_error, frames, saved, unit


def test_custom_file_as_classifier(tiny):
    with unit(tiny, labels=["r", "g", "b", "-r", "-g", "-b"]) as model:
        scores = model.predict(RED)
        e = np.exp([10, 0, 0, -10, 0, 0])
        assert np.allclose(scores, e / e.sum(), atol=1e-5)
        assert top_k(scores, 1)[0][:2] == ("r", 0)
        info = model.info
        assert info["task"] == "classify"
        assert info["provider"] == "cpu"
        assert info["inputs"] == ["pixels (any, 3, 4, 6) float32"]
        assert info["size"] == tiny.stat().st_size
        assert model.preprocess["size"] == (6, 4)


def test_preprocess_parameters(tiny):
    bgr = load_model(tiny, preprocess={"normalize": "unit", "order": "bgr"}, task="raw")
    assert np.allclose(bgr.predict(RED)["scores"], [0, 0, 10, 0, 0, -10], atol=1e-4)
    mean = load_model(tiny, preprocess={"mean": 0.5, "std": 0.25}, task="raw")
    assert np.allclose(mean.predict(RED)["scores"][:3], [20, -20, -20], atol=1e-4)


def test_custom_decode(tiny):
    model = unit(tiny, decode=lambda outputs: outputs["scores"].argmax())
    assert model.predict(RED) == 0


def test_tensors_are_not_preprocessed(tiny):
    model = unit(tiny, task="raw")
    tensor = np.zeros((1, 3, 4, 6), np.float32)
    tensor[:, 1] = 1
    wanted = [0, 10, 0, 0, -10, 0]
    for given in (tensor, from_array(tensor), tensor[0]):
        assert np.allclose(model.predict(given)["scores"], wanted)
    assert len(model.predict(np.concatenate([tensor] * 3))) == 3
    assert np.allclose(model.run(tensor)["scores"], [wanted])
    assert np.allclose(model.run({"pixels": tensor})["scores"], [wanted])


def test_batches_of_pictures(tiny):
    model = unit(tiny)
    green = RED[..., [1, 0, 2]]
    assert [int(s.argmax()) for s in model.predict([RED, green, RED])] == [0, 1, 0]
    assert model.predict([]) == []


def test_warmup_reports_the_provider(tiny):
    model = unit(tiny).warmup()
    assert list(model.info["providers"]) == ["cpu"]
    assert model.provider == "cpu"


def test_a_closed_model_raises(tiny):
    model = unit(tiny)
    model.close()
    model.close()
    with pytest.raises(dala.FreedError, match="closed"):
        model.predict(RED)


def test_results_are_not_overwritten(tiny):
    model = unit(tiny, task="raw")
    first = model.predict(RED)
    kept = first["scores"].copy()
    second = model.predict(RED[..., ::-1].copy())
    assert np.array_equal(first["scores"], kept)
    assert np.allclose(second["scores"], kept[[2, 1, 0, 5, 4, 3]])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused(tiny, bad):
    model = unit(tiny, task="raw")
    tensor = np.zeros((1, 3, 4, 6), np.float32)
    floats = np.zeros((8, 12, 3), np.float32)
    wanted = model.predict(tensor)["scores"]
    tensor[0, 2, 3, 5] = floats[3, 3, 1] = bad
    for _ in range(2):
        check_error(dala.ModelError, ["tensor", "NaN or infinity"], model.predict, tensor)
        check_error(dala.ModelError, ["picture", "NaN or infinity"], model.predict, floats)
    assert np.array_equal(model.predict(np.zeros_like(tensor))["scores"], wanted)


def test_threads_share_a_model(tiny):
    model, wrong = unit(tiny, task="raw"), []

    def work(k):
        for n in range(30):
            value = (k * 30 + n) % 256
            picture = np.full((4, 6, 3), value, np.uint8)
            got = model.predict(picture)["scores"][0]
            if abs(got - value / 25.5) > 1e-3:
                wrong.append((value, got))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert wrong == []


# custom ONNX files --------------------------------------------------------------------------------


def rows_of_six(graph, x):
    flat = graph.node("Flatten", x, axis=1)
    return graph.node("Reshape", flat, graph.constant(np.array([-1, 6], np.int64)))


@pytest.mark.parametrize("axis", ["found", "batch"])
def test_outputs_of_variable_length(tmp_path, axis):
    """Lists of boxes are not a batch, even if the file declares them as one."""
    path = saved(tmp_path, "boxes", ("batch", 3, 4, 6), rows_of_six, (axis, 6))
    model = unit(path, task="raw")
    tensor = np.arange(72, dtype=np.float32).reshape(1, 3, 4, 6)
    for _ in range(2):
        assert np.array_equal(model.predict(tensor)["y"], tensor.reshape(12, 6))
    first, second = model.predict([tensor, tensor + 1])[:2] if axis == "found" else (
        model.predict(tensor), model.predict(tensor + 1)
    )  # fmt: skip
    assert np.array_equal(second["y"], first["y"] + 1)
    assert first["y"].shape == (12, 6)


def test_gray_input(tmp_path):
    path = saved(tmp_path, "gray", (1, 1, 4, 6), lambda g, x: g.node("Identity", x), (1, 1, 4, 6))
    model = load_model(path, task="raw")
    assert model.preprocess["normalize"] == "unit"
    gray = np.random.default_rng(0).integers(0, 256, (4, 6), np.uint8)
    assert np.allclose(model.predict(gray)["y"][0], gray / 255, atol=1e-6)
    assert np.allclose(model.predict(RED[:4, :6])["y"], 0.299, atol=1e-6)
    model.warmup()


@pytest.mark.parametrize(("dtype", "wanted"), [("uint8", 255), ("float16", 1), ("int32", 255)])
def test_input_dtypes(tmp_path, dtype, wanted):
    """Integer inputs get the values of the picture; float16 is converted from f32."""
    path = saved(
        tmp_path, dtype, (1, 4, 6, 3), lambda g, x: g.node("Identity", x), (1, 4, 6, 3), dtype
    )
    model = load_model(path, task="raw", preprocess={"normalize": "unit"} if wanted == 1 else None)
    got = model.predict(RED[:4, :6])["y"]
    assert got.dtype == dtype
    assert got[1, 1].tolist() == [wanted, 0, 0]


def test_models_without_picture_input(tmp_path):
    path = saved(tmp_path, "rows", ("n", 2), lambda g, x: g.node("Neg", x), ("n", 2))
    model = load_model(path, task="raw")
    rows = np.array([[1, 2], [3, 4]], np.float32)
    assert [r["y"].tolist() for r in model.predict(rows)] == [[-1, -2], [-3, -4]]
    assert model.preprocess == {}
    check_error(dala.ModelError, ["(any, 2)", "not a single picture"], model.predict, [1, 2])
    five = saved(tmp_path, "five", (1, 5, 4, 4), lambda g, x: g.node("Neg", x), (1, 5, 4, 4))
    words = ["(1, 5, 4, 4)", "(8, 12, 3)"]
    check_error(dala.ShapeMismatch, words, load_model(five).predict, RED)


def test_fixed_batch_size_runs_one_by_one(tmp_path):
    path = saved(tmp_path, "one", (1, 3, 4, 6), lambda g, x: g.node("Neg", x), (1, 3, 4, 6))
    model = load_model(path, task="raw")
    batch = np.random.default_rng(1).random((3, 3, 4, 6)).astype(np.float32)
    got = model.predict(batch)
    assert np.array_equal(np.stack([r["y"] for r in got]), -batch)
    check_error(dala.ShapeMismatch, ["(2, 3, 5, 6)"], model.predict, np.zeros((2, 3, 5, 6), "f4"))


def test_lists_of_any_length(tiny):
    model = unit(tiny, task="raw")
    pictures = [np.full((4, 6, 3), k, np.uint8) for k in range(37)]
    got = [r["scores"][0] for r in model.predict(pictures)]
    assert np.allclose(got, np.arange(37) / 25.5, atol=1e-4)
    assert model.predict(np.zeros((0, 3, 4, 6), np.float32)) == []


def test_detections_as_columns(tmp_path):
    """Columns without objectness, as of YOLOv8: (1, 4 + classes, boxes)."""
    columns = np.zeros((1, 7, 40), np.float32)
    columns[0, :, 3] = [2, 2, 2, 2, 0.1, 0.8, 0.1]
    turned = np.zeros((1, 40, 8), np.float32)
    turned[0, 3] = [2, 2, 2, 2, 1, 0.1, 0.8, 0.1]
    for k, (array, labels) in enumerate([(columns, None), (columns, "abc"), (turned, "abc")]):
        fixed = lambda g, x, a=array: g.node("Add", g.constant(a), g.node(  # noqa: E731
            "ReduceMean", g.node("Sub", x, x), axes=(0, 1, 2, 3), keepdims=0))  # fmt: skip
        path = saved(tmp_path, f"v{k}", (1, 3, 4, 4), fixed, array.shape)
        model = load_model(path, task="detect", labels=list(labels) if labels else None)
        (found,) = model.predict(np.zeros((8, 8, 3), np.uint8))
        assert np.allclose(found.box, (2, 2, 6, 6))
        assert (found.index, found.label) == (1, "b" if labels else "1")
        assert found.score == pytest.approx(0.8)


@pytest.mark.parametrize("task", ["detect", "segment", "matte"])
def test_task_that_does_not_match_the_outputs(tmp_path, task):
    path = saved(tmp_path, "flat", (1, 3, 4, 6), lambda g, x: g.node("Flatten", x, axis=1), (1, 72))
    model = load_model(path, task=task)
    check_error(dala.ModelError, [task, "(72,)", "task='raw'"], model.predict, RED)


# streams ------------------------------------------------------------------------------------------


def test_stream_policy_every(tiny):
    seen = list(unit(tiny, task="raw").stream(frames(5), policy="every"))
    assert [s.frame.pts for s in seen] == [0, 1, 2, 3, 4]
    assert [float(s.time) for s in seen] == [0, 0.1, 0.2, 0.3, 0.4]
    assert np.allclose([s.result["scores"][0] for s in seen], np.arange(5) / 25.5, atol=1e-5)


def test_stream_policy_latest(tiny):
    """Frames that arrive while the first result is held are dropped."""
    first, ended = threading.Event(), threading.Event()

    def gate(k):
        if k == 1:
            first.wait(300)  # until the first frame is consumed

    def source():
        yield from frames(6, gate)
        ended.set()

    stream = unit(tiny, task="raw").stream(source(), policy="latest")
    assert next(stream).frame.pts == 0
    first.set()
    assert ended.wait(300)
    assert [s.frame.pts for s in stream] == [5]


def test_closing_a_stream_closes_its_source(tiny):
    closed = threading.Event()

    def source():
        try:
            yield from frames(10**6)
        finally:
            closed.set()

    stream = unit(tiny).stream(source())
    next(stream)
    stream.close()
    assert closed.wait(300)
    assert not [t for t in threading.enumerate() if t.name == "dala-model-stream"]


def test_errors_of_the_source_are_raised(tiny):
    def source():
        yield from frames(1)
        raise OSError("the camera is gone")

    with pytest.raises(OSError, match="camera is gone"):
        list(unit(tiny).stream(source(), policy="latest"))
