"""Hidden faces: which pixels change, faces that are lost for some frames, small faces."""

import numpy as np
import pytest
from PIL import Image

from dala.errors import DtypeError, ModelError, ParameterError
from dala.media import Frame
from dala.media import gpu as filters
from dala.ml import FaceHider
from dala.ml.gpu import load_model
from dala.ml.hide import HiddenFace
from dala.ml.results import Face, Faces


@pytest.fixture(scope="module")
def blazeface():
    with load_model("blazeface", "cpu") as model:
        yield model


@pytest.fixture(scope="module")
def pair(photo):
    """Two faces side by side, 300 x 540."""
    return np.concatenate([photo("astronaut")[:300, 90:360]] * 2, 1)


def noise(*shape):
    return np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)


@pytest.mark.parametrize("how", ["blur", "pixelate", "box"])
def test_pixels(blazeface, how):
    picture = noise(60, 80, 3)
    hider = FaceHider(how, model=blazeface, margin=0.5, color="#102030")
    hidden = hider.hide(picture, [HiddenFace((30, 20, 50, 40), 0.9)])
    changed = (hidden != picture).any(axis=2)
    ys, xs = np.nonzero(changed)
    assert (xs.min(), ys.min(), xs.max() + 1, ys.max() + 1) == (20, 10, 60, 50)
    face = hidden[20:40, 30:50].astype(float)
    assert changed[20:40, 30:50].mean() > 0.97  # equal by chance here and there
    assert (picture == noise(60, 80, 3)).all()  # what was given is not changed
    if how == "box":
        assert (hidden[10:50, 20:60] == (0x10, 0x20, 0x30)).all()
    elif how == "pixelate":
        assert hidden[10:14, 20:24].reshape(-1, 3).tolist() == [hidden[10, 20].tolist()] * 16
        assert np.abs(hidden[10, 20] - picture[10:14, 20:24].mean(axis=(0, 1))).max() <= 0.5
    else:
        assert face.std() < 0.3 * picture[20:40, 30:50].std()


def test_faces_at_the_edge_and_outside(blazeface):
    picture = noise(30, 40, 3)
    hider = FaceHider("box", model=blazeface, margin=0)
    hidden = hider.hide(picture, [HiddenFace((-10, -5, 4.2, 3.1), 0.9)])
    assert (hidden[:4, :5] == 0).all()
    assert (hidden[4:, 5:] == picture[4:, 5:]).all()
    assert (hider.hide(picture, [HiddenFace((50, 50, 60, 60), 0.9)]) == picture).all()
    assert hider.hide(picture, []) is picture


@pytest.mark.parametrize(
    "made",
    [
        lambda p: p,
        lambda p: p[..., 0],
        lambda p: np.dstack([p, p[..., :1]]),
        lambda p: p.astype(np.float32) / 255,
        Image.fromarray,
        Frame.from_array,
    ],
)
def test_kinds_of_pictures(blazeface, made):
    picture = made(noise(40, 40, 3))
    for how in ("blur", "pixelate", "box"):
        hider = FaceHider(how, model=blazeface, margin=0, radius=4)
        hidden = hider.hide(picture, [HiddenFace((10, 10, 30, 30), 0.9)])
        assert type(hidden) is type(picture)
        before, after = np.asarray(picture), np.asarray(hidden)
        assert (before.shape, before.dtype) == (after.shape, after.dtype)
        assert (before[:10] == after[:10]).all()
        assert (before[12:28, 12:28, ...] != after[12:28, 12:28, ...]).mean() > 0.6
        if before.ndim == 3 and before.shape[2] == 4:
            assert (before[..., 3] == after[..., 3]).all()


class Scripted:
    """Finds faces as a script says, in place of a model's predictions."""

    def __init__(self, model, frames):
        self.model, self.frames = model, iter(frames)

    def __enter__(self):
        self.predict = self.model.predict
        self.model.predict = lambda image, score: Faces(
            [Face(box, "face", 0.9) for box in next(self.frames)]
        )
        return self

    def __exit__(self, *_):
        self.model.predict = self.predict


def stream(blazeface, found, **options):
    frames = [np.full((60, 80, 3), k, np.uint8) for k in range(len(found))]
    with Scripted(blazeface, found):
        return list(FaceHider("box", model=blazeface, color="red", **options).stream(frames))


def test_a_lost_face_stays_hidden(blazeface):
    def at(x):
        return (x, 20, x + 20, 40)

    script = [[at(10)], [at(12)], [at(14)], [], [], [at(20)], [], [], [], [], []]
    made = stream(blazeface, script, keep=3, ahead=0)
    hidden = [[(f.id, f.found) for f in one.faces] for one in made]
    seen, kept = [(1, True)], [(1, False)]
    assert hidden == [seen] * 3 + [kept] * 2 + [seen] + [kept] * 3 + [[], []]
    middle = [(one.faces[0].box[0] + one.faces[0].box[2]) / 2 for one in made[:6]]
    assert middle == pytest.approx([20, 22, 24, 26, 28, 30], abs=2.5)  # where it is expected
    assert [int(one.frame[30, 30, 0]) for one in made] == [255] * 9 + [9, 10]


def test_a_face_is_hidden_before_it_is_found(blazeface):
    box = (10, 20, 30, 40)
    made = stream(blazeface, [[], [], [], [box], [box]], ahead=2)
    assert [[f.found for f in one.faces] for one in made] == [[], [False], [False], [True], [True]]
    assert [int(one.frame[30, 20, 0]) for one in made] == [0, 255, 255, 255, 255]
    assert len(made) == 5


def test_one_frame_of_three_is_looked_at(blazeface):
    def at(x):
        return (x, 20.0, x + 20.0, 40.0)

    looked = [[at(10)], [at(16)], [at(22)], []]
    frames = [np.full((60, 80, 3), k, np.uint8) for k in range(11)]
    with Scripted(blazeface, looked) as scripted:
        hider = FaceHider("box", model=blazeface, color="red", every=3, keep=6, ahead=0)
        made = list(hider.stream(frames))
        assert next(scripted.frames, None) is None  # all four were taken, and no more
    assert [one.frame[0, 0, 0] for one in made] == list(range(11))
    assert [[f.found for f in one.faces] for one in made] == [[k in (0, 3, 6)] for k in range(11)]
    lefts = [one.faces[0].box[0] for one in made[:7]]
    assert lefts == pytest.approx([10, 12, 14, 16, 18, 20, 22], abs=0.1)
    assert all(one.frame[30, 30, 0] == 255 for one in made)


def test_a_face_between_two_looks_is_hidden_from_the_look_before(blazeface):
    box = (10, 20, 30, 40)
    made = stream_every(blazeface, [[], [box], [box]], 9, ahead=0)
    assert [len(one.faces) for one in made] == [0, 1, 1, 1, 1, 1, 1, 1, 1]


def stream_every(blazeface, looked, count, **options):
    frames = [np.full((60, 80, 3), k, np.uint8) for k in range(count)]
    with Scripted(blazeface, looked):
        return list(FaceHider("box", model=blazeface, every=3, **options).stream(frames))


def test_the_next_frame_is_looked_at_meanwhile_and_errors_come_through(blazeface):
    def frames():
        yield np.zeros((60, 80, 3), np.uint8)
        yield "no picture"

    hider = FaceHider("box", model=blazeface, ahead=0)
    made = hider.stream(frames())
    assert len(next(made).faces) == 0
    with pytest.raises(DtypeError, match="a picture must be an array"):
        next(made)


def test_the_edge_of_a_blur_is_soft_and_its_middle_is_not_mixed(blazeface):
    for picture in (noise(90, 90, 3), noise(90, 90, 4), noise(90, 90), noise(90, 90, 3) / 255):
        hidden = FaceHider("blur", model=blazeface, margin=0, radius=9).hide(
            picture, [HiddenFace((10, 10, 80, 80), 0.9)]
        )
        colors = picture if picture.ndim == 2 else picture[..., :3]
        blurred = filters.blur(np.ascontiguousarray(colors[10:80, 10:80]), radius=9)
        got = (hidden if picture.ndim == 2 else hidden[..., :3])[10:80, 10:80]
        y, x = np.mgrid[-1 + 1 / 70 : 1 : 1 / 35, -1 + 1 / 70 : 1 : 1 / 35]
        weight = np.clip((1 - (x**4 + y**4) ** 0.25) * 10, 0, 1)
        weight = weight if picture.ndim == 2 else weight[..., None]
        sharp = colors[10:80, 10:80].astype(float)
        wanted = sharp + weight * (blurred - sharp)
        np.testing.assert_allclose(got, wanted, atol=0.51 if picture.dtype == np.uint8 else 1e-5)


def test_real_faces(blazeface, pair):
    hider = FaceHider("blur", model=blazeface)
    faces = hider.find(pair)
    centers = sorted((f.box[0] + f.box[2]) / 2 for f in faces[:2])
    assert centers == pytest.approx([134, 404], abs=6)
    hidden = hider.process(pair)
    assert len(blazeface.predict(hidden, score=0.5)) == 0
    assert (hidden[250:] == pair[250:]).all()


def test_small_faces_need_tiles(blazeface, photo):
    """Faces of 36 pixels in 900 are too small for the model, but not in parts of the picture."""
    small = np.asarray(Image.fromarray(photo("astronaut")).resize((200, 200)))[:150, :150]
    picture = np.full((600, 900, 3), 90, np.uint8)
    for x, y in ((30, 40), (400, 230), (720, 420)):
        picture[y : y + 150, x : x + 150] = small
    found = FaceHider("blur", model=blazeface, tiles=5, score=0.6).find(picture)
    assert len(FaceHider("blur", model=blazeface, score=0.6).find(picture)) == 0
    places = sorted(((f.box[0] + f.box[2]) / 2, (f.box[1] + f.box[3]) / 2) for f in found)
    wanted = [(30 + 88, 40 + 49), (400 + 88, 230 + 49), (720 + 88, 420 + 49)]
    assert np.array(places) == pytest.approx(np.array(wanted), abs=8)


def test_refusals(blazeface, tiny):
    for options, text in (
        ({"how": "smear"}, "how must be one of 'blur', 'pixelate', 'box', got 'smear'"),
        ({"radius": 0}, "radius must be an int from 1 to 200, got 0"),
        ({"margin": -1}, "margin must be a number from 0 to 4, got -1"),
        ({"score": 2}, "score must be a number from 0 to 1, got 2"),
        ({"keep": 1.5}, "keep must be an int from 0 to 10000, got 1.5"),
        ({"tiles": 0}, "tiles must be an int from 1 to 8, got 0"),
    ):
        with pytest.raises(ParameterError, match=f"^FaceHider: {text}"):
            FaceHider(model=blazeface, **options)
    with load_model(tiny, "cpu") as other, pytest.raises(ModelError, match="a model of faces"):
        FaceHider(model=other)
