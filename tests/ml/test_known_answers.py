"""The models with their real weights, on photographs with known results."""

import asyncio

import numpy as np
import pytest
from PIL import Image

import dala
from dala.gpu.compute import Pipeline, buffer_zeros, from_array
from dala.media.frame import Frame
from dala.ml.gpu import available_models, predict_async, top_k
from tests.ml.answers import CHECKS, check, near


def test_available_models():
    assert {"mobilenet_v2", "yolo_v5", "blazeface", "posenet", "deeplab"} <= set(available_models())


def test_every_model_has_known_answers():
    assert sorted(CHECKS) == available_models()


@pytest.mark.parametrize("name", CHECKS)
def test_known_answers(real, name):
    """On the CPU; ``test_gpu_provider.py`` has the same of WebGPU."""
    check(name, real(name, provider="cpu"))


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


def test_detections_by_score(real, photo):
    model = real("yolo_v5")
    nothing = model.predict(photo("astronaut"), score=0.4)
    assert nothing == []
    assert nothing.raw["output0"].shape == (25200, 85)
    assert str(nothing) == "nothing found"
    assert model.predict(photo("astronaut"))[0].label == "person"


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


def test_poses(real, photo):
    model = real("posenet")
    (person,) = model.predict(photo("astronaut"))
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


def test_segmentations(real, photo):
    seen = real("deeplab").predict(photo("astronaut"))
    assert seen.classes.shape == (512, 512)
    mask = seen.mask("person")
    assert mask.dtype == np.float32
    assert mask.shape == (512, 512)
    assert 0 <= mask.min() <= mask.max() <= 1
    near((mask > 0.5).mean(), seen.share("person"), 0.01)
    assert not seen.mask("sheep").any()
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


def test_two_networks_find_the_same_cat(real, photo):
    matte = real("u2netp").predict(photo("chelsea"))
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
