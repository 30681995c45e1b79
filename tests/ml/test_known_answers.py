"""The models with their real weights, on photographs with known results."""

import asyncio
import importlib
import inspect

import numpy as np
import pytest
from PIL import Image

import dala
from dala.gpu.compute import Pipeline, buffer_zeros, from_array
from dala.media.frame import Frame
from dala.ml.gpu import available_models, predict, predict_async, top_k


def near(got, wanted, within):
    assert np.allclose(got, wanted, atol=within), (got, wanted)


def test_available_models():
    assert {"mobilenet_v2", "yolo_v5", "blazeface", "posenet", "deeplab"} <= set(available_models())


#: The test of each model's known answers on the CPU.
TESTED = {
    "blazeface": "known_answers.blazeface",
    "blazeface_back": "known_answers.blazeface",
    "blazepose": "landmarks.as_in_tensorflow_js",
    "blazepose_detector": "landmarks.as_in_tensorflow_js",
    "deeplab": "known_answers.deeplab",
    "facemesh": "landmarks.as_in_tensorflow_js",
    "hands": "landmarks.as_in_tensorflow_js",
    "iris": "landmarks.as_in_tensorflow_js",
    "mobilenet_v2": "known_answers.mobilenet",
    "movenet": "movenet.as_in_tensorflow_js",
    "movenet_multi": "movenet.several_people_as_in_tensorflow_js",
    "nanodet": "nanodet.as_in_tensorflow_js",
    "palms": "landmarks.as_in_tensorflow_js",
    "posenet": "known_answers.posenet",
    "selfie": "known_answers.selfie_as_in_tensorflow_js",
    "u2netp": "known_answers.u2netp",
    "yolo_v5": "known_answers.yolo",
}


def test_every_model_has_known_answers():
    assert sorted(TESTED) == available_models()
    for name, test in TESTED.items():
        module, _, function = test.partition(".")
        found = importlib.import_module(f"tests.ml.test_{module}")
        text = inspect.getsource(getattr(found, f"test_{function}"))
        assert f'"{name}"' in text or name in getattr(found, "INPUTS", ()), name


def test_mobilenet(real, photo):
    model = real("mobilenet_v2")
    first, second, third = top_k(predict(model, photo("chelsea")), k=3)
    assert first[:2] == ("Egyptian cat", 285)
    assert (second[1], third[1]) == (282, 281)
    near([first[2], second[2], third[2]], [0.714, 0.146, 0.132], 0.02)
    ((label, index, share),) = top_k(predict(model, photo("coffee")), k=1)
    assert (label, index) == ("espresso", 967)
    near(share, 0.992, 0.01)


def test_scores_and_raw_logits(real, photo):
    scores = real("mobilenet_v2").predict(photo("chelsea"))
    assert scores.shape == (1000,)
    near(float(scores.sum()), 1, 1e-4)
    logits = scores.raw["output"]
    e = np.exp(logits - logits.max())
    near(scores, e / e.sum(), 1e-6)
    assert str(scores).startswith("Egyptian cat 0.7")


def test_input_types(real, photo, engine_id):
    model, cat = real("mobilenet_v2"), photo("chelsea")
    wanted = model.predict(cat)
    tensor = dala.ml.preprocess(cat, fit="crop", keep=0.875)
    alpha = np.dstack([cat, np.full(cat.shape[:2], 255, np.uint8)])
    floats = cat.astype(np.float32) / 255
    for given in (
        tensor, tensor.numpy(), Frame.from_array(cat), Image.fromarray(cat), alpha, floats,
        from_array(cat),
    ):  # fmt: skip
        near(model.predict(given), wanted, 2e-3)
    batch = model.predict([cat, photo("coffee"), tensor])
    assert [top_k(one, 1)[0][1] for one in batch] == [285, 967, 285]
    both = np.concatenate([tensor.numpy(), tensor.numpy()])
    assert [top_k(one, 1)[0][1] for one in model.predict(both)] == [285, 285]


def test_predict_async(real, photo):
    model = real("mobilenet_v2")

    async def both():
        return await asyncio.gather(
            predict_async(model, photo("chelsea")), predict_async(model, photo("coffee"))
        )

    assert [top_k(one, 1)[0][1] for one in asyncio.run(both())] == [285, 967]


def test_yolo(real, photo):
    model = real("yolo_v5")
    (cat,) = model.predict(photo("chelsea"), score=0.4)
    assert cat.label == "cat"
    near(cat.score, 0.57, 0.03)
    near(cat.box, (11, 0, 421, 297), 8)
    (cup,) = model.predict(photo("coffee"), score=0.4)
    assert cup.label == "cup"
    near(cup.score, 0.54, 0.03)
    nothing = model.predict(photo("astronaut"), score=0.4)
    assert nothing == []
    assert nothing.raw["output0"].shape == (25200, 85)
    assert str(nothing) == "nothing found"
    assert model.predict(photo("astronaut"))[0].label == "person"


def test_blazeface(real, photo):
    (face,) = real("blazeface").predict(photo("astronaut"))
    near(face.score, 0.92, 0.02)
    near(face.box, (179, 81, 273, 176), 5)
    eyes = [p for p in face.keypoints if p.name.endswith("eye")]
    near([tuple(p) for p in eyes], [(203, 101), (247, 103)], 6)
    assert len(face.keypoints) == 6
    (far,) = real("blazeface_back").predict(photo("astronaut"))
    near(far.score, 0.88, 0.03)
    near(far.box, (172, 73, 277, 178), 5)
    # MediaPipe's pose on the same photograph: the eyes and the nose
    spots = [tuple(p) for p in far.keypoints if p.name in ("left_eye", "right_eye", "nose")]
    near(spots, [(205, 103), (249, 112), (223, 128)], 10)


def test_letterboxed_faces(real, photo):
    """The same face in a wide picture, moved to the right."""
    wide = np.zeros((512, 700, 3), np.uint8)
    wide[:, 150:662] = photo("astronaut")
    (face,) = real("blazeface").predict(wide)
    near(face.box, (329, 81, 423, 176), 14)  # the precision of the model


@pytest.mark.parametrize("shape", [(300, 1000), (1100, 330)])
def test_letterbox_matches_manual_padding(real, photo, shape):
    """Results of a letterboxed picture match those of a manually padded one."""
    height, width = shape
    picture = np.full((height, width, 3), 30, np.uint8)
    person = np.asarray(Image.fromarray(photo("astronaut")).resize((300, 300)))
    y, x = (height - 300) // 3, (width - 300) // 3
    picture[y : y + 300, x : x + 300] = person
    side = max(shape)
    top, left = (side - height) // 2, (side - width) // 2
    for name, color in (("yolo_v5", 114), ("blazeface_back", 0), ("posenet", 0)):
        square = np.full((side, side, 3), color, np.uint8)
        square[top : top + height, left : left + width] = picture
        model = real(name)
        options = {"score": 0.5} if name == "yolo_v5" else {}
        ours, padded = (model.predict(p, **options) for p in (picture, square))
        assert len(ours) == len(padded) >= 1, name
        if name == "posenet":
            spots, wanted = ([tuple(p["nose"]) for p in f] for f in (ours, padded))
        else:
            spots, wanted = ([d.box for d in f] for f in (ours, padded))
            assert all(n >= 0 for box in spots for n in box)
            assert all(b[2] <= width and b[3] <= height for b in spots)
        move = np.tile((left, top), len(wanted[0]) // 2)
        limit = np.tile((width, height), len(wanted[0]) // 2)
        near(spots, np.clip(np.subtract(wanted, move), 0, limit), 4)


def test_posenet(real, photo):
    model = real("posenet")
    (person,) = model.predict(photo("astronaut"))
    near(tuple(person["nose"]), (221, 126), 4)
    assert min(person[k].score for k in ("nose", "left_eye", "right_eye")) > 0.97
    near([person["left_shoulder"].score, person["right_shoulder"].score], [0.95, 0.68], 0.03)
    assert len(person.keypoints) == 17
    assert model.predict(photo("chelsea")) == []
    assert model.predict(photo("coffee")) == []
    with pytest.raises(KeyError, match="nose"):
        person["noes"]


def test_posenet_with_two_people(real, photo):
    """Two astronauts side by side."""
    two = np.concatenate([photo("astronaut")] * 2, axis=1)
    people = real("posenet").predict(two)
    assert len(people) == 2
    near(sorted(p["nose"].x for p in people), [221, 733], 12)


def test_deeplab(real, photo):
    model = real("deeplab")
    seen = model.predict(photo("astronaut"))
    near(seen.share("person"), 0.465, 0.01)
    assert seen.classes.shape == (512, 512)
    mask = seen.mask("person")
    assert mask.dtype == np.float32
    assert mask.shape == (512, 512)
    assert 0 <= mask.min() <= mask.max() <= 1
    near((mask > 0.5).mean(), seen.share("person"), 0.01)
    assert not seen.mask("sheep").any()
    near(model.predict(photo("chelsea")).share("cat"), 0.768, 0.01)
    with pytest.raises(dala.ParameterError, match="'person'"):
        seen.mask("persona")


def test_classes_are_the_argmax_of_the_planes(real, photo):
    """Exactly, at every pixel."""
    seen = real("deeplab").predict(photo("chelsea")[:, :200])
    numbers = list(seen.planes)
    planes = np.stack([seen.planes[k] for k in numbers])
    assert np.array_equal(seen.classes, np.array(numbers, np.uint8)[planes.argmax(0)])
    logits = seen.raw["ResizeBilinear_3"]
    e = np.exp(logits - logits.max(-1, keepdims=True))
    cat = (e / e.sum(-1, keepdims=True))[..., 8].astype(np.float32)
    wanted = Image.fromarray(cat).resize((200, 300), Image.Resampling.BILINEAR)
    near(seen.mask("cat"), np.asarray(wanted), 1e-4)
    for odd in (True, 2.5, None, 99, "kat"):
        with pytest.raises(dala.ParameterError, match="Segmentation"):
            seen.mask(odd)


def test_u2netp(real, photo):
    matte = real("u2netp").predict(photo("chelsea"))
    assert matte.alpha.shape == (300, 451)
    assert matte.alpha[150, 200] > 0.9
    assert matte.alpha[20, 430] < 0.2
    near(matte.alpha.mean(), 0.623, 0.02)
    # Another network finds nearly the same cat.
    cat = real("deeplab").predict(photo("chelsea")).mask("cat") > 0.5
    front = matte.alpha > 0.5
    assert (front & cat).sum() > 0.75 * (front | cat).sum()


def test_model_in_a_pipeline(real, photo, weights, engine_id):
    real("mobilenet_v2")
    image, tensor = from_array(photo("chelsea")), buffer_zeros((1, 3, 224, 224))
    logits, shares = buffer_zeros((1, 1000)), buffer_zeros((1, 1000))
    pipeline = Pipeline()
    size = {"size": (224, 224), "fit": "crop", "keep": 0.875}
    for kernel, a, b, params in (
        ("preprocess", image, tensor, size),
        ("mobilenet_v2", tensor, logits, {}),
        ("softmax", logits, shares, {}),
    ):
        pipeline.add(
            {"op": "run_kernel", "kernel": kernel, "inputs": [a], "output": b, "params": params}
        )
    for _ in range(2):
        pipeline.run()
        assert top_k(shares, 1)[0][:2] == ("Egyptian cat", 285)
    near(shares.numpy().sum(), 1, 1e-4)


def test_models_as_kernels(real, photo):
    real("yolo_v5")
    tensor = dala.ml.preprocess(
        photo("coffee"), (640, 640), normalize="unit", fit="letterbox", device="cpu"
    )
    rows = buffer_zeros((1, 25200, 85), device="cpu")
    dala.gpu.compute.run_kernel("yolo_v5", [tensor], rows)
    assert rows.numpy()[0, rows.numpy()[0, :, 4].argmax(), 5:].argmax() == 41  # a cup
    real("blazeface")
    face = dala.ml.preprocess(
        photo("astronaut"), (128, 128), normalize="signed", layout="nhwc", device="cpu"
    )
    logits = buffer_zeros((1, 896, 1), device="cpu")
    dala.gpu.compute.run_kernel("blazeface", [face], logits, {"output": "classificators"})
    near(1 / (1 + np.exp(-logits.numpy().max())), 0.92, 0.03)
    with pytest.raises(dala.ShapeError, match=r"preprocess"):
        dala.gpu.compute.run_kernel("blazeface", [tensor], logits)


def test_selfie_as_in_tensorflow_js(photo):
    """The mask of TensorFlow.js 4 (its CPU backend) for the same input, every eighth pixel."""
    from pathlib import Path

    from dala.ml.gpu import load_model

    with np.load(Path(__file__).with_name("known") / "selfie_tfjs.npz") as known:
        wanted = known["mask"]
    with load_model("selfie", "cpu", pull=False) as model:
        matte = model.predict(photo("astronaut"))
        raw = next(iter(matte.raw.values()))
        near(raw[::8, ::8, 0], wanted, 2e-3)
        assert matte.alpha.shape == (512, 512)
        assert matte.alpha[90:150, 200:250].min() > 0.99  # the face
        assert matte.alpha[:200, :100].mean() < 0.01
