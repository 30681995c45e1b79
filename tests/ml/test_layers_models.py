"""TensorFlow.js models of layers: converted when loaded, and equal to TensorFlow.js."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dala.errors import ModelError
from dala.ml.gpu import load_model

KNOWN = Path(__file__).with_name("known") / "layers_tfjs.npz"


def node(kind, name, *reads, **config):
    inbound = [[[read, 0, 0, {}] for read in reads]] if reads else []
    return {"class_name": kind, "name": name, "config": {"name": name, **config},
            "inbound_nodes": inbound}  # fmt: skip


def conv(name, read, count, size, activation="linear", **more):
    given = {"filters": count, "kernel_size": [size, size], "strides": [1, 1]}
    given |= {"padding": "same", "dilation_rate": [1, 1], "activation": activation}
    return node("Conv2D", name, read, **{**given, "use_bias": True, **more})


def example():
    """Return a model that doubles pictures with every supported layer, and its weights."""
    layers = [
        node("InputLayer", "in", batch_input_shape=[None, None, None, 3], dtype="float32"),
        conv("a", "in", 6, 3, "relu"),
        conv("wide", "a", 6, 3, dilation_rate=[2, 2]),
        node("LeakyReLU", "leaky", "wide", alpha=0.3),
        node("DepthwiseConv2D", "alone", "a", kernel_size=[4, 4], strides=[1, 1], padding="same",
             dilation_rate=[1, 1], activation="tanh", use_bias=False, depth_multiplier=1),
        node("Concatenate", "both", "leaky", "alone", axis=-1),
        node("BatchNormalization", "norm", "both", axis=[3], epsilon=0.001, momentum=0.99,
             scale=True, center=True),
        node("PReLU", "slopes", "norm", shared_axes=[1, 2]),
        conv("b", "slopes", 6, 1, padding="valid"),
        node("Add", "sum", "b", "a", "leaky"),
        node("ReLU", "limited", "sum", max_value=1.5),
        node("Multiply", "product", "limited", "a"),
        node("UpSampling2D", "smooth", "product", size=[2, 2], interpolation="bilinear",
             data_format="channels_last"),
        node("UpSampling2D", "repeat", "b", size=[2, 2], interpolation="nearest",
             data_format="channels_last"),
        node("Add", "less", "smooth", "repeat"),
        node("Activation", "soft", "less", activation="sigmoid"),
        conv("out", "soft", 3, 5, use_bias=False),
    ]  # fmt: skip
    shapes = {
        "a/kernel": (3, 3, 3, 6), "a/bias": (6,), "wide/kernel": (3, 3, 6, 6), "wide/bias": (6,),
        "alone/depthwise_kernel": (4, 4, 6, 1), "norm/gamma": (12,), "norm/beta": (12,),
        "norm/moving_mean": (12,), "norm/moving_variance": (12,), "slopes/alpha": (1, 1, 12),
        "b/kernel": (1, 1, 12, 6), "b/bias": (6,), "out/kernel": (5, 5, 6, 3),
    }  # fmt: skip
    at = 0
    weights = {}
    for name, shape in shapes.items():
        count = int(np.prod(shape))
        numbers = np.sin(np.arange(at, at + count) * 0.7) * 0.4
        weights[name] = (abs(numbers) + 0.2 if "variance" in name else numbers).astype(np.float32)
        weights[name] = weights[name].reshape(shape)
        at += count
    config = {"name": "example", "layers": layers, "input_layers": [["in", 0, 0]],
              "output_layers": [["out", 0, 0]]}  # fmt: skip
    return {"model_config": {"class_name": "Functional", "config": config}}, weights


def picture():
    y, x, c = np.mgrid[0:7, 0:9, 0:3]
    return np.sin(x * 0.9 + y * 0.5 + c * 1.3).astype(np.float32)[None] * 0.5 + np.float32(0.5)


def save(folder, topology=None, paths=("one.bin", "two.bin")):
    """Write the model and its weights, in two parts, and return the path of its JSON file."""
    made, weights = example()
    data = b"".join(a.tobytes() for a in weights.values())
    listed = [{"name": n, "shape": a.shape, "dtype": "float32"} for n, a in weights.items()]
    found = {"format": "layers-model", "modelTopology": topology or made,
             "weightsManifest": [{"paths": paths, "weights": listed}]}  # fmt: skip
    (folder / "one.bin").write_bytes(data[:1001])
    (folder / "two.bin").write_bytes(data[1001:])
    (folder / "model.json").write_text(json.dumps(found))
    return folder / "model.json"


def test_equal_to_tensorflow_js(tmp_path):
    model = load_model(save(tmp_path), "cpu", task="raw")
    assert [str(p) for p in model.info["inputs"]] == ["in (1, any, any, 3) float32"]
    expected = np.load(KNOWN)["out"]
    got = model.run({"in": picture()})["out"]
    assert got.shape == expected.shape == (1, 14, 18, 3)
    assert np.abs(got - expected).max() < 2e-5


def test_pictures_of_any_size_in_tiles(tmp_path):
    model = load_model(save(tmp_path), "cpu", task="image", size=(64, 64))
    pixels = np.random.default_rng(0).random((50, 90, 3), np.float32)
    made = model.predict(pixels)
    assert made.scale == 2
    whole = model.run({"in": pixels[None]})["out"][0]
    assert np.abs(made.picture - whole).max() < 1e-4  # no layer looks further than the overlap


def test_a_sequence_of_layers(tmp_path):
    layers = [conv("a", "", 6, 3, "relu", batch_input_shape=[None, 8, None, 3])]
    layers += [node("Dropout", "d"), node("ReLU", "r"), conv("wide", "", 6, 3)]
    topology = {"model_config": {"class_name": "Sequential", "config": {"layers": layers}}}
    model = load_model(save(tmp_path, topology), "cpu", task="raw")
    _, weights = example()
    value = picture()[:, :1].repeat(8, 1)
    for name in ("a", "wide"):
        value = np.maximum(convolved(value, weights[f"{name}/kernel"], weights[f"{name}/bias"]), 0)
    got = np.maximum(next(iter(model.run({"a": picture()[:, :1].repeat(8, 1)}).values())), 0)
    assert np.abs(got - value).max() < 1e-5


def convolved(x, kernel, bias):
    """Return the definition of a 3x3 convolution with zeros around."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    height, width = x.shape[1:3]
    return bias + sum(
        padded[:, j : j + height, i : i + width] @ kernel[j, i] for j in range(3) for i in range(3)
    )


def changed(which, /, **config):
    topology, _ = example()
    layer = next(a for a in topology["model_config"]["config"]["layers"] if a["name"] == which)
    layer["config"].update(config)
    layer["class_name"] = config.get("class_name", layer["class_name"])
    return topology


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        (changed("sum", class_name="Lambda"), "unsupported layer 'Lambda' at 'sum'"),
        (changed("a", activation="swish"), "unsupported activation 'swish'"),
        (changed("a", strides=[2, 2]), "unsupported strides or padding at 'a'"),
        (changed("in", batch_input_shape=[None, 8]), "unsupported input shape"),
        (changed("b", name="c"), "no weights 'c/kernel'"),
        (changed("repeat", interpolation="lanczos"), "unsupported interpolation 'lanczos'"),
        (changed("both", axis=1), "unsupported axis of 'both'"),
        (changed("a", groups="x"), "not a TensorFlow.js model, or damaged"),
        ({"model_config": {"class_name": "Custom", "config": []}}, "unsupported model 'Custom'"),
        ({"model_config": []}, "not a TensorFlow.js model"),
    ],
)
def test_unsupported_models_are_refused(tmp_path, topology, message):
    with pytest.raises(ModelError, match=message) as raised:
        load_model(save(tmp_path, topology), "cpu", task="raw")
    assert str(raised.value).startswith("load_model: 'model.json'")
    assert ("damaged" in str(raised.value)) is ("unsupported" not in str(raised.value))


def test_broken_and_hostile_files(tmp_path):
    path = save(tmp_path, paths=["one.bin", "../two.bin"])
    with pytest.raises(ModelError, match=r"'\.\./two\.bin' .* in an allowed folder"):
        load_model(path)
    path = save(tmp_path, paths=["one.bin", "three.bin"])
    with pytest.raises(ModelError, match=r"'three.bin' of 'model.json' cannot be read"):
        load_model(path)
    path = save(tmp_path)
    (tmp_path / "two.bin").write_bytes(b"short")
    with pytest.raises(ModelError, match="js model, or damaged"):
        load_model(path)
    for text in ("{", "[]", "3", '{"weightsManifest": 3}', '{"weightsManifest": []}'):
        path.write_text(text)
        with pytest.raises(ModelError, match="js model, or damaged"):
            load_model(path)
