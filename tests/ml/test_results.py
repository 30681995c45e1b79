"""Results: box overlap, coordinates, drawing, printing, mask smoothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import dala
from dala.media import effects
from dala.media.frame import Frame
from dala.ml import results as r
from dala.ml.background import Background, TemporalSmoother
from dala.ml.boxes import iou, non_max_suppression
from dala.ml.landmarks.anchors import anchor_centers
from dala.ml.models import blazeface, yolo_v5
from dala.ml.prepare import Placement
from dala.ml.results.draw import palette
from dala.ml.spec import RawResult
from tests.support.guided_filter import refine

LABELS = ("background", "cat", "dog")


# boxes ------------------------------------------------------------------------------------------
def plain_overlap(a, b):
    w = min(a[2], b[2]) - max(a[0], b[0])
    h = min(a[3], b[3]) - max(a[1], b[1])
    common = max(w, 0) * max(h, 0)
    areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    return common / max(sum(areas) - common, 1e-9)


boxes = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(1, 30), st.integers(1, 30)),
    min_size=1, max_size=25,
)  # fmt: skip


@given(boxes, st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_non_max_suppression_against_a_plain_loop(sides, seed):
    rng = np.random.default_rng(seed)
    found = np.array([(x, y, x + w, y + h) for x, y, w, h in sides], float)
    scores = rng.permutation(len(found)) / len(found)
    classes = rng.integers(0, 2, len(found))
    kept = []
    for k in sorted(range(len(found)), key=lambda k: -scores[k]):
        clear = all(
            classes[k] != classes[j] or plain_overlap(found[k], found[j]) <= 0.45 for j in kept
        )
        if clear:
            kept.append(k)
    assert non_max_suppression(found, scores, classes, 0.45, 300).tolist() == kept
    got = iou(found[0], found)
    assert np.allclose(got, [plain_overlap(found[0], b) for b in found])


@given(
    st.integers(1, 3000), st.integers(1, 3000), st.sampled_from(["stretch", "letterbox", "crop"])
)
@settings(max_examples=60, deadline=None)
def test_placement_round_trip(height, width, fit):
    placement = Placement.of(height, width, (640, 512), fit)
    corners = np.array([[0, 0], [width, height], [width / 2, height / 3]])
    there = corners * placement.scale + placement.offset
    assert np.allclose(placement.back(there), corners)
    if fit == "letterbox":
        left, top, right, bottom = placement.window
        assert 0 <= left < right <= 512
        assert 0 <= top < bottom <= 640


def test_placement_matches_the_kernel(engine_id):
    """A white dot is found at its computed position after preprocessing."""
    picture = np.zeros((60, 100, 3), np.uint8)
    picture[20:24, 70:74] = 255
    for fit in ("stretch", "letterbox", "crop"):
        tensor = dala.ml.preprocess(picture, (80, 96), normalize="unit", fit=fit, pad=0.0)
        plane = tensor.numpy()[0, 0].astype(float)
        y, x = np.mgrid[0:96, 0:80] + 0.5
        spot = [(plane * x).sum() / plane.sum(), (plane * y).sum() / plane.sum()]
        back = Placement.of(60, 100, (96, 80), fit).back(spot)
        assert np.allclose(back, (72, 22), atol=0.4), fit


def test_preprocess_matches_pillow(photo, engine_id):
    """Within 1/255, since Pillow rounds intermediate results."""
    cat = photo("chelsea")
    wanted = np.asarray(Image.fromarray(cat).resize((224, 224), Image.Resampling.BILINEAR))
    got = dala.ml.preprocess(cat, normalize="raw", layout="nhwc").numpy()[0]
    assert np.abs(got - wanted).max() <= 1.01
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    normal = dala.ml.preprocess(cat).numpy()[0].transpose(1, 2, 0)
    assert np.allclose(normal, (got / 255 - mean) / std, atol=2e-3)


def test_yolo_rows():
    rows = np.zeros((40, 85), np.float32)
    rows[3] = [100, 100, 40, 20, 0.9] + [0] * 80
    rows[3, 5 + 7] = 0.8
    rows[4] = rows[3]
    rows[4, 0] += 2  # nearly the same box, lower score
    rows[4, 4] = 0.7
    rows[9] = [300, 200, 10, 10, 0.5] + [0] * 80
    rows[9, 5 + 2] = 0.4  # below the minimum score: 0.2
    options = yolo_v5.MODEL.options
    placement = Placement((1280, 1280), (0.5, 0.5), (0, 0), (640, 640))
    (found,) = yolo_v5.decode(RawResult({"out": rows}, placement, ("a",) * 80, options))
    assert np.allclose(found.box, (160, 180, 240, 220))
    assert found.index == 7
    assert found.score == pytest.approx(0.72)


def test_blazeface_anchors():
    anchors = anchor_centers(blazeface.GRIDS)
    assert anchors.shape == (896, 2)
    assert anchors[0].tolist() == [1 / 32, 1 / 32]
    assert anchors[2].tolist() == [3 / 32, 1 / 32]
    assert anchors[512].tolist() == [1 / 16, 1 / 16]


# drawing ----------------------------------------------------------------------------------------
def found():
    return r.Detections([r.Detection((10, 12, 50, 40), "cat", 0.9, 1)])


def test_boxes_are_drawn_in_place():
    base = np.full((64, 96, 3), 40, np.uint8)
    made = found().draw(base, color="red", width=2, labels=False)
    assert base.max() == 40  # the input is unchanged
    wanted = base.copy()
    for part in (
        np.s_[12:14, 10:50],
        np.s_[38:40, 10:50],
        np.s_[12:40, 10:12],
        np.s_[12:40, 48:50],
    ):
        wanted[part] = (255, 0, 0)
    assert (made == wanted).all()


def test_draw_returns_the_type_of_its_input():
    base = np.full((64, 96, 3), 40, np.uint8)
    wanted = found().draw(base)
    assert (wanted != base).any()
    frame = found().draw(Frame.from_array(base, pts=3, time_base="1/5", device="cpu"))
    assert isinstance(frame, Frame)
    assert frame.pts == 3
    assert (frame.numpy() == wanted).all()
    assert (np.asarray(found().draw(Image.fromarray(base))) == wanted).all()
    rgba = found().draw(np.dstack([base, np.full((64, 96), 255, np.uint8)]))
    assert (rgba[..., :3] == wanted).all()
    floats = found().draw(base.astype(np.float32) / 255)
    assert floats.dtype == np.float32
    assert np.abs(floats * 255 - wanted).max() < 0.01
    assert found().draw(base[..., 0]).shape == (64, 96)


def test_surfaces_are_drawn_on():
    from dala.gpu import create_surface

    base = np.full((64, 96, 4), 40, np.uint8)
    base[..., 3] = 255
    with create_surface(96, 64) as surface:
        surface.set_pixels(base)
        assert found().draw(surface) is surface
        assert (surface.to_array() == found().draw(base)).all()
        assert surface.errors == []


def test_masks_are_blended():
    classes = np.zeros((20, 30), np.uint8)
    classes[5:10, 5:20] = 1
    plane = (classes == 1).astype(np.float32)
    seen = r.Segmentation(classes, LABELS, {0: 1 - plane, 1: plane})
    base = np.full((20, 30, 3), 100, np.uint8)
    made = seen.draw(base, color=(200, 0, 0), opacity=0.5, labels=False)
    assert made[0, 0].tolist() == [100, 100, 100]
    assert np.abs(made[7, 10].astype(int) - [150, 50, 50]).max() <= 1
    with pytest.raises(dala.ShapeMismatch, match="30 x 20"):
        seen.draw(np.zeros((9, 9, 3), np.uint8))


@pytest.mark.parametrize("kind", ["rgb", "rgba", "gray", "floats"])
def test_soft_masks_are_blended_by_probability(kind):
    """Each pixel gets the class color with alpha = probability * opacity."""
    rng = np.random.default_rng(4)
    planes = rng.random((3, 20, 30)).astype(np.float32)
    planes /= planes.sum(0)
    classes = planes.argmax(0).astype(np.uint8)
    seen = r.Segmentation(classes, LABELS, dict(enumerate(planes)))
    base = rng.integers(0, 256, (20, 30, 3), np.uint8)
    if kind == "gray":
        base[:] = base[..., :1]
    colors = np.array([(0, 0, 0), palette(1), palette(2)], float)
    alpha = np.where(classes > 0, planes.max(0), 0)[..., None] * 0.6
    wanted = base * (1 - alpha) + colors[classes] * alpha
    given = {
        "rgb": base,
        "rgba": np.dstack([base, np.full((20, 30), 255, np.uint8)]),
        "gray": base[..., 0],
        "floats": base.astype(np.float32) / 255,
    }[kind]
    made = seen.draw(given, opacity=0.6, labels=False)
    assert made.shape == given.shape
    assert made.dtype == given.dtype
    if kind == "gray":
        assert np.abs(made - wanted @ [0.299, 0.587, 0.114]).max() < 2
    else:
        scale = 255 if kind == "floats" else 1
        assert np.abs(made[..., :3] * scale - wanted).max() < 2
    front = r.Matte(planes[1]).draw(base, color="blue", opacity=1.0)
    share = planes[1][..., None]
    assert np.abs(front - (base * (1 - share) + np.array([0, 0, 255]) * share)).max() < 2
    with pytest.raises(dala.ShapeMismatch, match="30 x 20"):
        r.Matte(planes[1]).draw(np.zeros((9, 9, 3), np.uint8))


def test_labels_are_drawn():
    base = np.zeros((200, 300, 3), np.uint8)
    plain, written = (found().draw(base, labels=w) for w in (False, True))
    assert (plain != written).any()
    scores = r.Scores(np.array([0.1, 0.7, 0.2]), LABELS)
    assert (scores.draw(base) != base).any()


def test_boxes_are_drawn_without_a_font(monkeypatch):
    from dala.media.text import text

    def none(*_):
        raise dala.MissingPackage("there is no font")

    monkeypatch.setattr(text, "set_text", none)
    base = np.zeros((64, 96, 3), np.uint8)
    with pytest.warns(UserWarning, match="draw: labels are not drawn"):
        made = found().draw(base)
    assert (made == found().draw(base, labels=False)).all()


def test_poses_and_faces_are_drawn():
    points = tuple(r.Keypoint(f"p{k}", 10 + 4 * k, 30 + k, 0.9) for k in range(17))
    base = np.zeros((80, 100, 3), np.uint8)
    made = r.Poses([r.Pose(points, 0.9)]).draw(base, color="lime", width=1)
    assert made[30, 10].tolist() == [255, 255, 255]  # the center of the first keypoint
    assert (made[..., 1] > 0).sum() > 100
    unseen = tuple(r.Keypoint(p.name, p.x, p.y, 0.1) for p in points)
    assert not r.Poses([r.Pose(unseen, 0.1)]).draw(base).any()


def test_options_of_draw_are_checked():
    with pytest.raises(dala.UnknownParameter, match="'color'"):
        found().draw(np.zeros((9, 9, 3), np.uint8), colour="red")
    with pytest.raises(dala.ColorError):
        found().draw(np.zeros((9, 9, 3), np.uint8), color="reddish")
    with pytest.raises(dala.ParameterError, match="opacity must be a number from 0 to 1, got 3"):
        found().draw(np.zeros((9, 9, 3), np.uint8), opacity=3)


def test_str_and_repr():
    assert str(found()) == "cat 0.90 at x 10..50, y 12..40"
    assert str(r.Scores(np.array([0.1, 0.7, 0.2]), LABELS)).startswith("cat 0.700\ndog 0.200")
    assert repr(r.Scores(np.array([0.1, 0.7, 0.2]), LABELS)) == "<Scores of 3 classes, cat 0.700>"
    classes = np.array([[0, 1], [1, 1]])
    assert str(r.Segmentation(classes, LABELS, {})) == "cat 75.0%, background 25.0%"


# masks ------------------------------------------------------------------------------------------
def test_refine_aligns_edges():
    guide = np.zeros((60, 80))
    guide[:, 40:] = 1
    blurry = np.clip((np.arange(80) - 34) / 16, 0, 1)[None].repeat(60, 0)  # its edge is at 42
    better = refine(blurry, guide, radius=6)
    steepest = np.diff(better[30]).argmax()
    assert steepest == 39  # the edge of the picture
    assert np.diff(better[30]).max() > 4 * np.diff(blurry[30]).max()
    flat = refine(np.full((9, 9), 0.4), np.random.default_rng(0).random((9, 9)))
    assert np.allclose(flat, 0.4, atol=1e-6)


@given(st.integers(1, 24), st.integers(1, 24), st.integers(0, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_the_guided_filter_against_a_plain_loop(height, width, radius, seed):
    rng = np.random.default_rng(seed)
    mask, guide = rng.random((2, height, width))

    def mean(x):
        made = np.empty_like(x)
        for i in range(height):
            for j in range(width):
                rows = slice(max(0, i - radius), i + radius + 1)
                made[i, j] = x[rows, max(0, j - radius) : j + radius + 1].mean()
        return made

    slope = (mean(guide * mask) - mean(guide) * mean(mask)) / (
        mean(guide * guide) - mean(guide) ** 2 + 1e-3
    )
    offset = mean(mask) - slope * mean(guide)
    wanted = np.clip(mean(slope) * guide + mean(offset), 0, 1)
    assert np.allclose(refine(mask, guide, radius), wanted, atol=2e-3)


def test_smoothing_reduces_flicker_without_trails():
    rng = np.random.default_rng(2)
    still = np.full((20, 20), 0.9)
    noisy = [np.clip(still + rng.normal(0, 0.05, still.shape), 0, 1) for _ in range(30)]
    steady = TemporalSmoother(0.8)
    smooth = [steady(m) for m in noisy]
    assert np.std(smooth[5:], axis=0).mean() < 0.6 * np.std(noisy[5:], axis=0).mean()
    gone = steady(np.zeros((20, 20)))
    assert gone.max() < 0.05
    steady.reset()
    assert np.array_equal(steady(still), still.astype(np.float32))
    with pytest.raises(dala.ParameterError):
        TemporalSmoother(1.0)


def made_clip(photo, model, steps):
    """Yield frames of the astronaut moving over another photograph, and her position."""
    person = photo("astronaut")
    cut = np.clip((model.predict(person).mask("person")[..., None] - 0.3) / 0.4, 0, 1)
    wood = Image.fromarray(photo("coffee")[:200, 420:600]).resize((640, 512))
    for step in range(steps):
        base, shift = np.asarray(wood).copy(), 16 * step
        where = np.s_[:, shift : shift + 512]
        base[where] = (person * cut + base[where] * (1 - cut)).astype(np.uint8)
        yield base, shift


def test_replaced_background(real, photo):
    """The moving person stays unchanged, and the background becomes green."""
    work = Background(real("u2netp"), background=(0.0, 1.0, 0.0), device="cpu")
    for base, shift in made_clip(photo, real("deeplab"), 3):
        made = work.process(base)
        assert made.shape == base.shape
        face = np.s_[100:150, 200 + shift : 250 + shift]
        assert np.abs(made[face].astype(int) - base[face]).mean() < 2
        wood = np.s_[20:200, 420:620]
        assert np.abs(made[wood].astype(int) - [0, 255, 0]).mean() < 2


def test_blurred_background(real, photo):
    person = photo("astronaut")
    made = Background(real("deeplab"), radius=12, smooth=0, device="cpu").process(person)
    detail = lambda p: np.abs(np.diff(p.astype(int), axis=1)).mean()  # noqa: E731
    assert detail(made[:150, 400:]) < 0.5 * detail(person[:150, 400:])  # the shuttle
    assert detail(made[80:170, 180:270]) > 0.95 * detail(person[80:170, 180:270])  # the face


def test_default_background(photo):
    """The default model comes with the package; a mask follows from it where none is given."""
    person = photo("astronaut")
    with Background(background=(0.0, 1.0, 0.0), smooth=0, device="cpu") as work:
        assert (work.model.name, work.model.provider) == ("selfie", "cpu")
        made = work.process(person)
        mask = work.mask(person)
    green = np.all(made == [0, 255, 0], axis=2)
    assert green[:200, :100].all()
    assert not green[80:400, 200:250].any()
    assert mask.shape == (256, 256)
    same = effects.virtual_background(
        person, background=(0, 1, 0), refine=4, feather=0, device="cpu"
    )
    assert np.abs(same.astype(int) - made).max() <= 1


def test_background_of_another_class(real):
    real("deeplab")
    assert Background(label="cat").model.name == "deeplab"


def test_streams_of_planes_and_pictures(photo, engine_id):
    """Frames in video planes are composited as pictures are, within 4:2:0 and rounding."""
    person = photo("astronaut")[:480:2, :480:2]
    frames = [Frame.from_array(np.roll(person, k, 1)) for k in (0, 2, 4)]
    planes = [frame.to("i420") for frame in frames]
    with Background(background=(0.2, 0.4, 0.9)) as work:
        pictures = [f.picture() for f in work.stream([f.to("rgb") for f in planes])]
        work.reset()
        made = list(work.stream(planes))
        work.reset()
        arrays = list(work.stream([f.to("rgb").picture() for f in planes]))
    assert [f.format for f in made] == ["i420"] * 3
    for a, b, c in zip(pictures, made, arrays, strict=True):
        assert np.abs(a.astype(int) - c).max() <= 2
        assert np.abs(a.astype(int) - b.to("rgb").picture()).mean() < 1.5


def test_background_errors(tiny):
    from dala.ml.gpu import load_model

    with pytest.raises(dala.ModelError, match="'u2netp'"):
        Background(load_model(tiny))
    with pytest.raises(
        dala.ModelError, match="Background: model must be a Model or a name, got int"
    ):
        Background(5)
    for wrong, word in (
        ({"radius": -1}, "radius"),
        ({"background": (0, 1)}, "color"),
        ({"background": "x.png"}, "Frame.open"),
    ):
        with pytest.raises(dala.DalaError, match=word):
            Background(5, **wrong)  # raised before the model is checked


def test_background_labels(real):
    with pytest.raises(dala.ParameterError, match="'person'"):
        Background(real("deeplab"), label="persn")
    assert Background(real("u2netp"), label="whatever").label == "whatever"
