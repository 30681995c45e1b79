"""Errors of models, their labels, and providers that follow the device."""

import threading

import numpy as np
import pytest

import dala
from dala.ml.convert.onnx_file import Graph
from dala.ml.gpu import load_model, predict, top_k
from dala.ml.runtime import providers, session
from tests.ml.small import RED, check_error, frames, saved, unit

# errors -------------------------------------------------------------------------------------------


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
    monkeypatch.setattr(session.Session, "_device_runs", lambda self, opened, provider: None)
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


# labels and facts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [["r", "g", "b"], list("abcdefg"), "imagenet", []])
def test_labels_of_a_wrong_length(tiny, labels):
    count = 1000 if labels == "imagenet" else len(labels)
    words = ["load_model: labels must be 6 names", f"got '{count} names'"]
    check_error(dala.ParameterError, words, load_model, tiny, labels=labels)


def test_labels_where_the_file_does_not_say_how_many(tmp_path):
    path = saved(
        tmp_path, "any", (1, 3, "h", "w"), lambda g, x: g.node("Flatten", x, axis=1), (1, "classes")
    )
    model = load_model(path, task="classify", size=(6, 4), labels=["a", "b"])
    check_error(dala.ParameterError, ["labels must be 72 names", "2"], model.predict, RED)
    named = load_model(path, task="classify", size=(6, 4), labels=[str(k) for k in range(72)])
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


# providers that follow the device -----------------------------------------------------------------


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
    assert providers.following("cuda:0") == (["cuda", "webgpu", "cpu"], "the device is cuda:0")
    monkeypatch.setattr(providers, "available", lambda: ["cpu"])
    names, reason = providers.following("cuda:0")
    assert names == ["cpu"]
    assert reason == "the device is cuda:0, and onnxruntime-gpu is not installed"
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
