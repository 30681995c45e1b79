"""Loading, inputs, options, providers and errors, with a model of a few bytes."""

import threading

import numpy as np
import pytest

import dala
from dala.gpu.compute import from_array
from dala.ml.convert.onnx_file import Graph
from dala.ml.gpu import load_model, predict, top_k
from dala.ml.runtime import providers, session

RED = np.zeros((8, 12, 3), np.uint8) + np.array([255, 0, 0], np.uint8)


def unit(path, **options):
    return load_model(path, preprocess={"normalize": "unit"}, **options)


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
        assert model.preprocess["size"] == (4, 6)


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


@pytest.fixture(params=["bound", "plain"])
def outputs(request, monkeypatch):
    """Run with memory bound to the outputs, as for large ones, and without."""
    monkeypatch.setattr(session, "BIND_FROM", 1 if request.param == "bound" else 1 << 30)


@pytest.mark.usefixtures("outputs")
def test_results_are_not_overwritten(tiny):
    model = unit(tiny, task="raw")
    first = model.predict(RED)
    kept = first["scores"].copy()
    second = model.predict(RED[..., ::-1].copy())
    assert np.array_equal(first["scores"], kept)
    assert np.allclose(second["scores"], kept[[2, 1, 0, 5, 4, 3]])


@pytest.mark.usefixtures("outputs")
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


@pytest.mark.usefixtures("outputs")
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


# custom ONNX files -----------------------------------------------------------------------------
def saved(tmp_path, name, shape, build, out, dtype="float32"):
    """Save a model with one input x and one output y."""
    graph = Graph(name)
    graph.output(build(graph, graph.input("x", shape, dtype)), out, name="y", dtype=dtype)
    path = tmp_path / f"{name}.onnx"
    path.write_bytes(graph.save())
    return path


def rows_of_six(graph, x):
    flat = graph.node("Flatten", x, axis=1)
    return graph.node("Reshape", flat, graph.constant(np.array([-1, 6], np.int64)))


@pytest.mark.parametrize("axis", ["found", "batch"])
@pytest.mark.usefixtures("outputs")
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


# streams ----------------------------------------------------------------------------------------
def frames(count, gate=None):
    from dala.media.frame import Frame

    for k in range(count):
        if gate is not None:
            gate(k)
        yield Frame.from_array(np.full((4, 6, 3), k, np.uint8), pts=k, time_base="1/10")


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


# errors --------------------------------------------------------------------------------------
def check_error(error, words, call, *args, **options):
    with pytest.raises(error) as caught:
        call(*args, **options)
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text, (word, text)
    return text


def test_unknown_models(tmp_path):
    check_error(dala.UnknownModel, ["mobilenet_v2"], load_model, "mobilenet")
    check_error(dala.UnknownModel, ["yolo_v5", "deeplab"], load_model, "nothing-like-it")
    check_error(dala.ModelNotFound, ["missing.onnx"], load_model, tmp_path / "missing.onnx")
    check_error(dala.UnknownModel, ["int"], load_model, 3)
    with pytest.raises(KeyError):
        load_model("mobilenet")


@pytest.mark.parametrize("data", [b"", b"not a model", b"\x08\x07" * 40, bytes(1000)])
def test_invalid_files(tmp_path, data):
    path = tmp_path / "bad.onnx"
    path.write_bytes(data)
    check_error(dala.ModelError, ["bad.onnx"], load_model, path)


def test_truncated_models(tiny):
    whole = tiny.read_bytes()
    for end in range(0, len(whole) - 1, 37):
        tiny.write_bytes(whole[:end])
        with pytest.raises(dala.DalaError):
            load_model(tiny)


def test_unsupported_operators(tmp_path):
    graph = Graph("odd")
    x = graph.input("x", (1, 3, 4, 4))
    graph.output(graph.node("FlyToTheMoon", x), (1, 3, 4, 4), name="y")
    path = tmp_path / "odd.onnx"
    path.write_bytes(graph.save())
    check_error(dala.ModelError, ["odd.onnx", "FlyToTheMoon", "does not support"], load_model, path)


def test_shape_errors_name_both_shapes(tiny):
    model = unit(tiny)
    words = ["(any, 3, 4, 6)", "(1, 3, 5, 6)"]
    check_error(dala.ShapeMismatch, words, model.predict, np.zeros((1, 3, 5, 6), np.float32))
    words = ["float32", "float64"]
    check_error(dala.DtypeMismatch, words, model.predict, np.zeros((1, 3, 4, 6)))
    check_error(dala.ModelError, ["pixels", "'x'"], model.run, {"x": np.zeros(3, np.float32)})


def test_invalid_pictures(tiny):
    model = unit(tiny)
    check_error(dala.ShapeError, ["empty"], model.predict, np.zeros((0, 6, 3), np.uint8))
    check_error(dala.ShapeError, ["(4, 6, 2)"], model.predict, np.zeros((4, 6, 2), np.uint8))
    check_error(dala.DtypeError, ["int64"], model.predict, np.zeros((4, 6, 3), np.int64))
    check_error(dala.DtypeError, ["str", "Frame.open"], model.predict, "cat.jpg")
    nan = np.full((1, 3, 4, 6), np.nan, np.float32)
    check_error(dala.ModelError, ["NaN"], model.predict, nan)
    for bad in (np.nan, np.inf, -np.inf):
        one = np.zeros((1, 3, 4, 6), np.float32)
        one[0, 2, 3, 5] = bad
        check_error(dala.ModelError, ["NaN"], model.predict, one)
    both = np.zeros((1, 3, 4, 6), np.float32)
    both[0, 0, 0, :2] = np.inf, -np.inf
    check_error(dala.ModelError, ["NaN"], model.predict, both)
    assert model.predict(np.full((1, 3, 4, 6), 3e38, np.float32)).shape == (6,)
    check_error(dala.ModelError, ["NaN"], model.predict, np.full((4, 6, 3), np.nan, np.float32))
    gray = model.predict(np.full((4, 6), 128, np.uint8))
    assert gray.shape == (6,)


def test_pillow_modes(tiny):
    from PIL import Image

    model = unit(tiny, task="raw")
    base = Image.fromarray(RED)
    for mode in ("RGBA", "P", "CMYK", "L", "1"):
        assert model.predict(base.convert(mode))["scores"].shape == (6,)
    assert abs(model.predict(base.convert("P"))["scores"][0] - 10) < 0.1


def test_top_k_out_of_range():
    check_error(dala.ParameterError, ["1 to 6", "7"], top_k, np.zeros(6), 7)
    check_error(dala.ParameterError, ["1 to 6", "0"], top_k, np.zeros(6), 0)
    check_error(dala.ParameterError, ["True"], top_k, np.zeros(6), True)
    check_error(dala.ShapeError, ["(2, 3)"], top_k, np.zeros((2, 3)))
    check_error(dala.ModelError, ["NaN"], top_k, np.full(6, np.nan))
    assert len(top_k(np.zeros((1, 6)), 6)) == 6


def test_top_k_takes_logits_and_probabilities():
    logits = np.array([1.0, 3.0, 2.0])
    shares = np.exp(logits) / np.exp(logits).sum()
    one, two = top_k(logits, 3), top_k(shares, 3)
    assert [i for _, i, _ in one] == [1, 2, 0]
    assert np.allclose([p for *_, p in one], [p for *_, p in two])
    assert top_k(shares, 1, labels=["a", "b", "c"])[0][0] == "b"


def test_unavailable_providers(tiny):
    check_error(dala.DeviceUnavailable, ["'cuda'", "onnxruntime-gpu"], unit, tiny, provider="cuda")
    check_error(dala.ModelError, ["'cpu'", "'cpuu'"], unit, tiny, provider="cpuu")
    assert unit(tiny, provider="CPUExecutionProvider").provider == "cpu"


def test_auto_skips_providers_that_do_not_start(tiny, monkeypatch, caplog):
    """CUDA is listed but does not start: the next provider is used, and the reason reported."""
    auto = providers.Candidates(["cuda", "cpu"], "the test says so")
    monkeypatch.setattr(providers, "_for_device", lambda: auto)
    model = unit(tiny)
    assert model.provider == "cpu"
    assert model.info["providers"]["cuda"].startswith("did not start: ")
    assert model.info["providers"]["cpu"] == "runs the model"
    assert "provider 'cuda' for 'tiny.onnx' did not start: " in caplog.text
    check_error(dala.DeviceUnavailable, ["'cuda'"], unit, tiny, provider="cuda")


def test_warmup_measures_all_providers(tiny, monkeypatch):
    """Two names for the CPU provider act as two providers: both are timed, one is kept."""
    monkeypatch.setitem(providers.PROVIDERS, "webgpu", "CPUExecutionProvider")
    auto = providers.Candidates(["webgpu", "cpu"], "the test says so")
    monkeypatch.setattr(providers, "_for_device", lambda: auto)
    monkeypatch.setattr(session.Session, "_device_runs", lambda self, opened: None)
    model = unit(tiny)
    assert model.provider == "webgpu"
    before = model.predict(RED)
    times = model.warmup().info["providers"]
    assert all(text.endswith("ms per run") for text in times.values())
    assert list(times) == ["webgpu", "cpu"]
    fastest = min(times, key=lambda name: float(times[name].split()[0]))
    assert float(times[model.provider].split()[0]) == float(times[fastest].split()[0])
    assert np.allclose(model.predict(RED), before)


def test_options_are_checked(tiny, tmp_path):
    model = unit(tiny)
    check_error(dala.UnknownParameter, ["'score'", "none"], model.predict, RED, score=0.5)
    check_error(dala.ParameterError, ["'classify'"], unit, tiny, task="clasify")
    check_error(dala.ShapeError, ["(5, 5)"], unit, tiny, size=(5, 5))
    check_error(dala.ModelError, ["load_model"], predict, "mobilenet_v2", RED)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"size": 4}, "4"), ({"size": (0, 6)}, "(0, 6)"), ({"size": (4.5, 6)}, "4.5"),
        ({"layout": "chw"}, "'chw'"), ({"labels": 5}, "5"), ({"labels": "cocoa"}, "'cocoa'"),
        ({"decode": 3}, "int"), ({"threads": 0}, "0"), ({"threads": "x"}, "'x'"),
        ({"task": ["raw"]}, "['raw']"), ({"preprocess": 5}, "int"),
        ({"preprocess": {"means": 1}}, "'mean'"), ({"preprocess": {"mean": "x"}}, "'x'"),
        ({"preprocess": {"size": (4, 6)}}, "pass size to load_model, not in preprocess"),
    ],
)  # fmt: skip
def test_arguments_of_load_model(tiny, options, word):
    check_error(dala.ParameterError, ["load_model", word], load_model, tiny, **options)


def test_values_of_options(tmp_path):
    graph = Graph("rows")
    x = graph.input("x", (1, 3, 4, 4))
    graph.output(graph.node("Reshape", x, graph.constant(np.array([1, 8, 6]))), (1, 8, 6), name="y")
    path = tmp_path / "rows.onnx"
    path.write_bytes(graph.save())
    model = load_model(path, task="detect")
    for name, value in (
        ("score", "a"), ("score", -0.1), ("score", 2), ("score", float("nan")), ("score", True),
        ("overlap", None), ("most", 0), ("most", 2.5),
    ):  # fmt: skip
        check_error(dala.ParameterError, [name, repr(value)], model.predict, RED, **{name: value})
    check_error(dala.ParameterError, ["score"], model.stream, [RED], score=7)


def test_bytes_have_no_size(tiny):
    check_error(dala.DtypeError, ["predict", "reshape"], unit(tiny).predict, RED.tobytes())


def test_invalid_stream_sources(tiny):
    model = unit(tiny)
    for source in (5, None, RED, "clip.mp4"):
        check_error(dala.ParameterError, ["stream"], model.stream, source)
    several = np.stack([RED, RED])
    assert len(list(model.stream(several, policy="every"))) == 2


def test_top_k_of_raw_outputs_and_invalid_values(tiny):
    scores = unit(tiny, labels=list("abcdef")).predict(RED)
    assert top_k(scores.raw, 1)[0][1] == 0
    assert top_k(scores[None], 2)[0][0] == "a"
    assert top_k([0.0, 5.0], 1, labels=("x", "y"))[0][0] == "y"
    assert top_k(np.eye(1000)[1] * 9, 1, labels="imagenet")[0][0] == "goldfish"
    for odd in ("x", None, [object()], np.array([1j, 2])):
        check_error(dala.ParameterError, ["top_k"], top_k, odd)
    check_error(dala.ParameterError, ["labels", "5"], top_k, [1.0], 1, labels=5)
    check_error(dala.ParameterError, ["k", "0"], scores.top, 0)


def test_scores_can_be_pickled(tiny):
    import pickle

    scores = unit(tiny, labels=list("abcdef")).predict(RED)
    again = pickle.loads(pickle.dumps(scores))
    assert again.labels == tuple("abcdef")
    assert np.array_equal(again, scores)
    assert np.array_equal(again.raw["scores"], scores.raw["scores"])


def test_nothing_is_downloaded_for_an_unavailable_provider(tmp_path, monkeypatch):
    monkeypatch.delenv("DALA_MODELS", raising=False)
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path))
    check_error(dala.DeviceUnavailable, ["'cuda'"], load_model, "posenet", provider="cuda")
    assert list(tmp_path.iterdir()) == []


def test_without_onnx_runtime(tiny, monkeypatch, capsys):
    """Listing models and preprocessing work; loading raises MissingPackage."""
    import sys

    from dala.cli import main

    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    check_error(dala.MissingPackage, ["pip install", "dala-gpu[ml]"], load_model, tiny)
    check_error(dala.MissingPackage, ["pip install"], load_model, "mobilenet_v2")
    assert main(["models", "list"]) == 0
    assert "mobilenet_v2" in capsys.readouterr().out
    assert dala.ml.preprocess(RED, device="cpu").shape == (1, 3, 224, 224)


def test_missing_weights(tmp_path, monkeypatch):
    monkeypatch.setenv("DALA_MODELS", str(tmp_path))
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path / "cache"))
    words = [str(tmp_path), "dala models pull posenet"]
    with pytest.raises(dala.ModelNotFound) as caught:
        load_model("posenet", pull=False)
    assert all(w in str(caught.value) for w in words)


# labels and facts -----------------------------------------------------------------------------
@pytest.mark.parametrize("labels", [["r", "g", "b"], list("abcdefg"), "imagenet", []])
def test_labels_of_a_wrong_length(tiny, labels):
    count = 1000 if labels == "imagenet" else len(labels)
    words = ["load_model: labels must be 6 names", f"got '{count} names'"]
    check_error(dala.ParameterError, words, load_model, tiny, labels=labels)


def test_labels_where_the_file_does_not_say_how_many(tmp_path):
    path = saved(
        tmp_path, "any", (1, 3, "h", "w"), lambda g, x: g.node("Flatten", x, axis=1), (1, "classes")
    )
    model = load_model(path, task="classify", size=(4, 6), labels=["a", "b"])
    check_error(dala.ParameterError, ["labels must be 72 names", "2"], model.predict, RED)
    named = load_model(path, task="classify", size=(4, 6), labels=[str(k) for k in range(72)])
    assert named.predict(RED).shape == (72,)


def test_labels_of_segments_and_boxes(tmp_path):
    planes = saved(
        tmp_path, "planes", (1, 3, 4, 6), lambda g, x: g.node("Identity", x), (1, 3, 4, 6)
    )
    words = ["labels must be 3 names", "2 names"]
    check_error(dala.ParameterError, words, load_model, planes, task="segment", labels=["a", "b"])
    assert load_model(planes, task="segment", labels=["a", "b", "c"]).labels == ("a", "b", "c")
    rows = saved(
        tmp_path,
        "rows",
        (1, 1, 40, 8),
        lambda g, x: g.node("Reshape", x, g.constant(np.array([1, 40, 8], np.int64))),
        (1, 40, 8),
    )
    check_error(dala.ParameterError, words, load_model, rows, task="detect", labels=["a", "b"])


def test_labels_of_top_k():
    words = ["top_k: labels must be 2 names, one for each score", "3 names"]
    check_error(dala.ParameterError, words, top_k, [0.0, 5.0], 1, labels=("x", "y", "z"))


def test_info_prints_short(real, tiny):
    info = real("mobilenet_v2", provider="cpu").info
    assert len(info["labels"]) == 1000
    assert info["labels"][285] == "Egyptian cat"
    assert len(str(info)) < 1000
    assert "('tench', 'goldfish', 'great white shark', ... 1000 in all)" in str(info)
    assert str(unit(tiny, labels=list("abcdef")).labels) == str(tuple("abcdef"))


# providers that follow the device ---------------------------------------------------------------
class _Device:
    def __init__(self, id, name, gpu):
        self.id, self.name, self.gpu = id, name, gpu


def test_auto_follows_the_device(monkeypatch):
    found = [_Device("webgpu:0", "NVIDIA H200", True), _Device("webgpu:1", "llvmpipe", False)]
    monkeypatch.setattr(dala, "devices", lambda: found)
    monkeypatch.setattr(providers, "available", lambda: ["cuda", "webgpu", "cpu"])
    assert providers.following("cpu") == (["cpu"], "the device is cpu")
    wanted = (["cuda", "webgpu", "cpu"], "the device is webgpu:0 (NVIDIA H200)")
    assert providers.following("webgpu:0") == wanted
    names, reason = providers.following("webgpu:1")
    assert (names, reason) == (["cpu"], "the device webgpu:1 (llvmpipe) is a software adapter")
    monkeypatch.setattr(providers, "available", lambda: ["cpu"])
    monkeypatch.setattr(providers, "plugin", lambda: ([], "onnxruntime-ep-webgpu finds no GPU"))
    names, reason = providers.following("webgpu:0")
    assert names == ["cpu"]
    assert reason.endswith("(NVIDIA H200), but onnxruntime-ep-webgpu finds no GPU")


def test_the_choice_is_reported_once(tiny, monkeypatch, caplog):
    auto = providers.Candidates(["cpu"], "the device is webgpu:0 (X), but there is no plugin")
    monkeypatch.setattr(providers, "_for_device", lambda: auto)
    for _ in range(2):
        with unit(tiny) as model:
            assert model.info["reason"] == auto.reason
    assert caplog.text.count("models run on provider 'cpu': the device is webgpu:0 (X)") == 1


def test_streams_prepare_ahead_on_other_providers(tiny, monkeypatch):
    """Results, order, times and errors are those of a stream on the CPU."""
    rng = np.random.default_rng(3)
    frames = [rng.integers(0, 256, (4, 6, 3), np.uint8) for _ in range(5)]
    closed = []

    def source(fails=False):
        try:
            yield from frames
            if fails:
                raise OSError("unplugged")
        finally:
            closed.append(True)

    with unit(tiny) as model:
        wanted = [np.asarray(one.result) for one in model.stream(source(), policy="every")]
        monkeypatch.setattr(type(model), "provider", "webgpu")
        got = [np.asarray(one.result) for one in model.stream(source(), policy="every")]
        np.testing.assert_array_equal(got, wanted)
        seen = []
        with pytest.raises(OSError, match="unplugged"):
            seen.extend(model.stream(source(True), policy="every"))
        for one in model.stream(source(), policy="every"):
            np.testing.assert_array_equal(one.frame, frames[0])
            break
        del one
    assert len(closed) == 4


def test_the_newest_frame_is_prepared_while_the_model_runs(tiny, monkeypatch):
    """With "latest" on another provider: the model waits here until frames after its own are ready.

    Of those, the newest is next; the last frame is never lost, and errors are raised.
    """
    ready = [threading.Event() for _ in range(6)]
    begun = threading.Event()

    def gate(k):
        if k == 1:
            assert begun.wait(300)  # until the model runs on the first frame

    with unit(tiny, task="raw") as model:
        monkeypatch.setattr(type(model), "provider", "webgpu")
        prepare, together = model._prepared, model._together

        def prepared(frame):
            made = prepare(frame)
            ready[frame.pts].set()
            return made

        def run(tensors, options):
            begun.set()
            assert ready[5].wait(300)  # while the model "runs", the others are prepared
            return together(tensors, options)

        monkeypatch.setattr(model, "_prepared", prepared)
        monkeypatch.setattr(model, "_together", run)
        seen = list(model.stream(frames(6, gate), policy="latest"))
        assert seen[0].frame.pts == 0
        assert seen[-1].frame.pts == 5
        assert np.allclose(seen[-1].result["scores"][0], 5 / 25.5, atol=1e-5)
        monkeypatch.setattr(model, "_together", together)
        monkeypatch.setattr(model, "_prepared", prepare)

        def broken():
            yield from frames(1)
            raise OSError("unplugged")

        with pytest.raises(OSError, match="unplugged"):
            list(model.stream(broken(), policy="latest"))
        walk = model.stream(frames(10**6), policy="latest")
        next(walk)
        walk.close()
    assert not [t for t in threading.enumerate() if t.name == "dala-model-stream"]
