"""Known answers of every model, whatever provider runs it.

They come from other programs (``known/README.md``) or are what the photographs show. ``check`` is
the one place that compares: ``test_known_answers.py`` calls it on the CPU, and ``gpu_models.py`` on
WebGPU.
"""

from pathlib import Path

import numpy as np
from PIL import Image

import dala
from dala.ml.gpu import top_k

KNOWN = Path(__file__).with_name("known")
PHOTOS = Path(__file__).parents[1] / "photos"


def read_photo(name):
    """Return a photograph by name, as RGB."""
    folder = KNOWN if name == "hands" else PHOTOS
    with Image.open(folder / f"{name}.png") as image:
        return np.asarray(image.convert("RGB"))


def near(got, wanted, within):
    assert np.allclose(got, wanted, atol=within), (got, wanted)


def check(name, model):
    """Compare a loaded model's results with its known answers."""
    CHECKS[name](model)


# TensorFlow.js 4, its CPU backend, for the same input ---------------------------------------------
#: Photograph, the part of it, and whether values are 0 to 1 or -1 to 1.
INPUTS = {
    "facemesh": ("astronaut", np.s_[30:222, 130:322], "unit"),
    "iris": ("astronaut", np.s_[69:133, 171:235], "unit"),
    "hands": ("hands", np.s_[64:288, 10:234], "unit"),
    "palms": ("hands", np.s_[40:296, :256], "signed"),
    "blazepose": ("astronaut", np.s_[::2, ::2], "unit"),
    "blazepose_detector": ("astronaut", np.s_[0:448:2, 0:448:2], "signed"),
}


def landmarks(model):
    name = model.name
    picture, part, scale = INPUTS[name]
    tensor = read_photo(picture)[part].astype(np.float32)
    tensor = tensor / 255 if scale == "unit" else tensor / 127.5 - 1
    found = model.run(tensor[None])
    with np.load(KNOWN / "landmarks_tfjs.npz") as known:
        wanted = {key.partition(" ")[2]: known[key] for key in known if key.split()[0] == name}
    assert set(wanted) == set(found)
    for key, want in wanted.items():
        got = found[key][0]
        if name in ("palms", "blazepose_detector"):  # the forty best
            got = got[np.argsort(-got[:, 0], kind="stable")[: len(want)]]
        elif got.size > want.size:
            got = got.reshape(-1)[::97]
        assert np.allclose(got, want, rtol=1e-4, atol=2e-3), key


#: Halves round either way, as the engine's code adds: a few values of 110,592 are one off.
ROUNDED = 3e-4


def whole(model, picture):
    """Return the output for a picture in whole numbers, as TensorFlow takes it."""
    tensor = dala.ml.preprocess(picture, model=model, device="cpu").numpy()
    (found,) = model.run(np.rint(tensor)).values()
    return found[0]


def movenet(model):
    photo = read_photo("astronaut")
    with np.load(KNOWN / "movenet_tfjs.npz") as known:
        near(whole(model, photo)[0], known["rows"], ROUNDED)
    (person,) = model.predict(photo)
    near(tuple(person["nose"]), (221, 121), 4)
    near(tuple(person["left_eye"]), (246, 101), 4)
    near(tuple(person["right_eye"]), (204, 99), 4)


def movenet_multi(model):
    """The astronaut beside her mirror image."""
    photo = read_photo("astronaut")
    two = np.concatenate([photo, photo[:, ::-1]], axis=1)
    with np.load(KNOWN / "movenet_multi_tfjs.npz") as known:
        near(whole(model, two)[:2], known["rows"][:2], ROUNDED)
    found = model.predict(two)
    assert len(found) == 2
    eyes = sorted((p["left_eye"].x, p["right_eye"].x) for p in found)
    near(eyes, [(246, 204), (1023 - 204, 1023 - 246)], 10)
    near([p["left_eye"].y for p in found], 101, 10)


def nanodet(model):
    """Scores and distances."""
    (person,) = (found := model.predict(read_photo("astronaut")))
    with np.load(KNOWN / "nanodet_tfjs.npz") as known:
        near(found.raw["Identity_2:0"][:, 0], known["person"], 2e-3)
        best = int(known["person"].argmax())
        near(found.raw["Identity_5:0"][best], known["distances"], 0.05)
    assert person.label == "person"
    near(person.score, 0.736, 0.01)
    near(person.box, (16, 15, 365, 507), 4)


def selfie(model):
    """Every eighth pixel of the mask."""
    matte = model.predict(read_photo("astronaut"))
    with np.load(KNOWN / "selfie_tfjs.npz") as known:
        near(next(iter(matte.raw.values()))[::8, ::8, 0], known["mask"], 2e-3)
    assert matte.alpha.shape == (512, 512)
    assert matte.alpha[90:150, 200:250].min() > 0.99  # the face
    assert matte.alpha[:200, :100].mean() < 0.01


# photographs --------------------------------------------------------------------------------------
def mobilenet_v2(model):
    first, second, third = top_k(model.predict(read_photo("chelsea")), k=3)
    assert first[:2] == ("Egyptian cat", 285)
    assert (second[1], third[1]) == (282, 281)
    near([first[2], second[2], third[2]], [0.714, 0.146, 0.132], 0.02)
    ((label, index, share),) = top_k(model.predict(read_photo("coffee")), k=1)
    assert (label, index) == ("espresso", 967)
    near(share, 0.992, 0.01)


def yolo_v5(model):
    (cat,) = model.predict(read_photo("chelsea"), score=0.4)
    assert cat.label == "cat"
    near(cat.score, 0.57, 0.03)
    near(cat.box, (11, 0, 421, 297), 8)
    (cup,) = model.predict(read_photo("coffee"), score=0.4)
    assert cup.label == "cup"
    near(cup.score, 0.54, 0.03)


def blazeface(model):
    (face,) = model.predict(read_photo("astronaut"))
    near(face.score, 0.92, 0.02)
    near(face.box, (179, 81, 273, 176), 5)
    eyes = [p for p in face.keypoints if p.name.endswith("eye")]
    near([tuple(p) for p in eyes], [(203, 101), (247, 103)], 6)
    assert len(face.keypoints) == 6


def blazeface_back(model):
    (far,) = model.predict(read_photo("astronaut"))
    near(far.score, 0.88, 0.03)
    near(far.box, (172, 73, 277, 178), 5)
    # MediaPipe's pose on the same photograph: the eyes and the nose
    spots = [tuple(p) for p in far.keypoints if p.name in ("left_eye", "right_eye", "nose")]
    near(spots, [(205, 103), (249, 112), (223, 128)], 10)


def posenet(model):
    (person,) = model.predict(read_photo("astronaut"))
    near(tuple(person["nose"]), (221, 126), 4)
    assert min(person[k].score for k in ("nose", "left_eye", "right_eye")) > 0.97
    near([person["left_shoulder"].score, person["right_shoulder"].score], [0.95, 0.68], 0.03)
    assert len(person.keypoints) == 17


def deeplab(model):
    near(model.predict(read_photo("astronaut")).share("person"), 0.465, 0.01)
    near(model.predict(read_photo("chelsea")).share("cat"), 0.768, 0.01)


def u2netp(model):
    matte = model.predict(read_photo("chelsea"))
    assert matte.alpha.shape == (300, 451)
    assert matte.alpha[150, 200] > 0.9
    assert matte.alpha[20, 430] < 0.2
    near(matte.alpha.mean(), 0.623, 0.02)


CHECKS = {
    "blazeface": blazeface,
    "blazeface_back": blazeface_back,
    "blazepose": landmarks,
    "blazepose_detector": landmarks,
    "deeplab": deeplab,
    "facemesh": landmarks,
    "hands": landmarks,
    "iris": landmarks,
    "mobilenet_v2": mobilenet_v2,
    "movenet": movenet,
    "movenet_multi": movenet_multi,
    "nanodet": nanodet,
    "palms": landmarks,
    "posenet": posenet,
    "selfie": selfie,
    "u2netp": u2netp,
    "yolo_v5": yolo_v5,
}
