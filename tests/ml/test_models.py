"""Loading, inputs, options, providers and refusals, on a model of a few bytes."""

import threading

import numpy as np
import pytest

import dala
from dala.gpu.compute import from_array
from dala.ml import providers
from dala.ml.convert.onnx_file import Graph
from dala.ml.gpu import load_model, predict, top_k

RED = np.zeros((8, 12, 3), np.uint8) + np.array([255, 0, 0], np.uint8)


def unit(path, **options):
    return load_model(path, preprocess={"normalize": "unit"}, **options)


def test_any_file_loads_and_classifies(tiny):
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


def test_preprocessing_is_chosen_by_parameters(tiny):
    bgr = load_model(tiny, preprocess={"normalize": "unit", "order": "bgr"}, task="raw")
    assert np.allclose(bgr.predict(RED)["scores"], [0, 0, 10, 0, 0, -10], atol=1e-4)
    mean = load_model(tiny, preprocess={"mean": 0.5, "std": 0.25}, task="raw")
    assert np.allclose(mean.predict(RED)["scores"][:3], [20, -20, -20], atol=1e-4)


def test_a_function_of_ones_own_makes_the_result(tiny):
    model = unit(tiny, decode=lambda outputs: outputs["scores"].argmax())
    assert model.predict(RED) == 0


def test_tensors_go_in_as_they_are(tiny):
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


def test_warmup_says_what_was_chosen(tiny):
    model = unit(tiny).warmup()
    assert list(model.info["providers"]) == ["cpu"]
    assert model.provider == "cpu"


def test_a_closed_model_refuses(tiny):
    model = unit(tiny)
    model.close()
    model.close()
    with pytest.raises(dala.FreedError, match="closed"):
        model.predict(RED)


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


# streams ----------------------------------------------------------------------------------------
def frames(count, gate=None):
    from dala.media.frame import Frame

    for k in range(count):
        if gate is not None:
            gate(k)
        yield Frame.from_array(np.full((4, 6, 3), k, np.uint8), pts=k, time_base="1/10")


def test_every_frame_with_its_time(tiny):
    seen = list(unit(tiny, task="raw").stream(frames(5), policy="every"))
    assert [s.frame.pts for s in seen] == [0, 1, 2, 3, 4]
    assert [float(s.time) for s in seen] == [0, 0.1, 0.2, 0.3, 0.4]
    assert np.allclose([s.result["scores"][0] for s in seen], np.arange(5) / 25.5, atol=1e-5)


def test_the_latest_frame_only(tiny):
    """The source runs ahead while the first result is held: what lies between is left out."""
    first, ended = threading.Event(), threading.Event()

    def gate(k):
        if k == 1:
            first.wait(20)  # until the first frame has been taken

    def source():
        yield from frames(6, gate)
        ended.set()

    stream = unit(tiny, task="raw").stream(source(), policy="latest")
    assert next(stream).frame.pts == 0
    first.set()
    assert ended.wait(20)
    assert [s.frame.pts for s in stream] == [5]


def test_a_stream_that_is_left_stops_its_source(tiny):
    closed = threading.Event()

    def source():
        try:
            yield from frames(10**6)
        finally:
            closed.set()

    stream = unit(tiny).stream(source())
    next(stream)
    stream.close()
    assert closed.wait(20)
    assert not [t for t in threading.enumerate() if t.name == "dala-model-stream"]


def test_what_a_source_raises_arrives(tiny):
    def source():
        yield from frames(1)
        raise OSError("the camera is gone")

    with pytest.raises(OSError, match="camera is gone"):
        list(unit(tiny).stream(source(), policy="latest"))


# bad input --------------------------------------------------------------------------------------
def refused(error, words, call, *args, **options):
    with pytest.raises(error) as caught:
        call(*args, **options)
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text, (word, text)
    return text


def test_unknown_models(tmp_path):
    refused(dala.UnknownModel, ["mobilenet_v2"], load_model, "mobilenet")
    refused(dala.UnknownModel, ["yolo_v5", "deeplab"], load_model, "nothing-like-it")
    refused(dala.ModelNotFound, ["missing.onnx"], load_model, tmp_path / "missing.onnx")
    refused(dala.UnknownModel, ["int"], load_model, 3)
    with pytest.raises(KeyError):
        load_model("mobilenet")


@pytest.mark.parametrize("data", [b"", b"not a model", b"\x08\x07" * 40, bytes(1000)])
def test_files_that_are_no_models(tmp_path, data):
    path = tmp_path / "bad.onnx"
    path.write_bytes(data)
    refused(dala.ModelError, ["bad.onnx"], load_model, path)


def test_truncated_models(tiny):
    whole = tiny.read_bytes()
    for end in range(0, len(whole) - 1, 37):
        tiny.write_bytes(whole[:end])
        with pytest.raises(dala.DalaError):
            load_model(tiny)


def test_operators_the_runtime_lacks(tmp_path):
    graph = Graph("odd")
    x = graph.input("x", (1, 3, 4, 4))
    graph.output(graph.node("FlyToTheMoon", x), (1, 3, 4, 4), name="y")
    path = tmp_path / "odd.onnx"
    path.write_bytes(graph.save())
    refused(dala.ModelError, ["odd.onnx", "FlyToTheMoon", "lacks"], load_model, path)


def test_wrong_shapes_name_both(tiny):
    model = unit(tiny)
    words = ["(any, 3, 4, 6)", "(1, 3, 5, 6)"]
    refused(dala.ShapeMismatch, words, model.predict, np.zeros((1, 3, 5, 6), np.float32))
    words = ["float32", "float64"]
    refused(dala.DtypeMismatch, words, model.predict, np.zeros((1, 3, 4, 6)))
    refused(dala.ModelError, ["pixels", "'x'"], model.run, {"x": np.zeros(3, np.float32)})


def test_odd_pictures(tiny):
    model = unit(tiny)
    refused(dala.ShapeError, ["empty"], model.predict, np.zeros((0, 6, 3), np.uint8))
    refused(dala.ShapeError, ["(4, 6, 2)"], model.predict, np.zeros((4, 6, 2), np.uint8))
    refused(dala.DtypeError, ["int64"], model.predict, np.zeros((4, 6, 3), np.int64))
    refused(dala.DtypeError, ["str", "Frame.open"], model.predict, "cat.jpg")
    nan = np.full((1, 3, 4, 6), np.nan, np.float32)
    refused(dala.ModelError, ["NaN"], model.predict, nan)
    refused(dala.ModelError, ["NaN"], model.predict, np.full((4, 6, 3), np.nan, np.float32))
    gray = model.predict(np.full((4, 6), 128, np.uint8))
    assert gray.shape == (6,)


def test_pillow_modes(tiny):
    from PIL import Image

    model = unit(tiny, task="raw")
    base = Image.fromarray(RED)
    for mode in ("RGBA", "P", "CMYK", "L", "1"):
        assert model.predict(base.convert(mode))["scores"].shape == (6,)
    assert abs(model.predict(base.convert("P"))["scores"][0] - 10) < 0.1


def test_k_out_of_range():
    refused(dala.ParameterError, ["1 to 6", "7"], top_k, np.zeros(6), 7)
    refused(dala.ParameterError, ["1 to 6", "0"], top_k, np.zeros(6), 0)
    refused(dala.ParameterError, ["True"], top_k, np.zeros(6), True)
    refused(dala.ShapeError, ["(2, 3)"], top_k, np.zeros((2, 3)))
    refused(dala.ModelError, ["NaN"], top_k, np.full(6, np.nan))
    assert len(top_k(np.zeros((1, 6)), 6)) == 6


def test_top_k_takes_logits_and_probabilities():
    logits = np.array([1.0, 3.0, 2.0])
    shares = np.exp(logits) / np.exp(logits).sum()
    one, two = top_k(logits, 3), top_k(shares, 3)
    assert [i for _, i, _ in one] == [1, 2, 0]
    assert np.allclose([p for *_, p in one], [p for *_, p in two])
    assert top_k(shares, 1, labels=["a", "b", "c"])[0][0] == "b"


def test_providers_that_cannot_be_had(tiny):
    refused(dala.DeviceUnavailable, ["'cuda'", "onnxruntime-gpu"], unit, tiny, provider="cuda")
    refused(dala.ModelError, ["'cpu'", "'cpuu'"], unit, tiny, provider="cpuu")
    assert unit(tiny, provider="CPUExecutionProvider").provider == "cpu"


def test_auto_goes_on_where_a_provider_does_not_start(tiny, monkeypatch):
    """CUDA is said to be there, and is not: the next one runs, and the words are kept."""
    monkeypatch.setattr(providers, "available", lambda: ["cuda", "cpu"])
    model = unit(tiny)
    assert model.provider == "cpu"
    assert model.info["providers"]["cuda"].startswith("did not start: ")
    assert model.info["providers"]["cpu"] == "runs the model"
    refused(dala.DeviceUnavailable, ["'cuda'"], unit, tiny, provider="cuda")


def test_warmup_measures_where_several_work(tiny, monkeypatch):
    """Two names for the CPU's provider stand for two that work: both are timed, one is kept."""
    monkeypatch.setitem(providers.PROVIDERS, "webgpu", "CPUExecutionProvider")
    monkeypatch.setattr(providers, "available", lambda: ["webgpu", "cpu"])
    model = unit(tiny)
    assert model.provider == "webgpu"
    before = model.predict(RED)
    told = model.warmup().info["providers"]
    assert all(said.endswith("ms a run") for said in told.values())
    assert list(told) == ["webgpu", "cpu"]
    quickest = min(told, key=lambda name: float(told[name].split()[0]))
    assert float(told[model.provider].split()[0]) == float(told[quickest].split()[0])
    assert np.allclose(model.predict(RED), before)


def test_options_are_checked(tiny, tmp_path):
    model = unit(tiny)
    refused(dala.UnknownParameter, ["'score'", "none"], model.predict, RED, score=0.5)
    refused(dala.ParameterError, ["'classify'"], unit, tiny, task="clasify")
    refused(dala.ShapeError, ["(5, 5)"], unit, tiny, size=(5, 5))
    refused(dala.ModelError, ["load_model"], predict, "mobilenet_v2", RED)


def test_weights_that_are_not_here(tmp_path, monkeypatch):
    monkeypatch.setenv("DALA_MODELS", str(tmp_path))
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path / "cache"))
    words = [str(tmp_path), "dala models pull posenet"]
    with pytest.raises(dala.ModelNotFound) as caught:
        load_model("posenet", pull=False)
    assert all(w in str(caught.value) for w in words)
