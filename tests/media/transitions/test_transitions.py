"""Transitions: values on every engine against formulas in NumPy, and both ends bit by bit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dala.errors import DalaError, ParameterError
from dala.gpu.compute import buffer, buffer_zeros, kernel
from dala.gpu.compute.language import Image, mix, rgba
from dala.media.transitions import TRANSITIONS, Transition

HEIGHT, WIDTH = 9, 14


def pictures():
    rng = np.random.default_rng(7)
    a, b = (rng.integers(0, 256, (HEIGHT, WIDTH, 4), np.uint8) for _ in range(2))
    a[:3, :, 3], b[:, :4, 3], b[5:, 8:, 3] = 0, 0, 255
    return a, b


MATTE = np.random.default_rng(8).integers(0, 256, (HEIGHT, WIDTH), np.uint8)
MATTE[0, 0], MATTE[0, 1] = 0, 255

CASES = [
    ("dissolve", {}),
    ("fade", {"color": (255, 128, 0, 255)}),
    ("fade", {}),
    ("wipe", {}),
    ("wipe", {"angle": 30, "softness": 0.4}),
    ("wipe", {"angle": -90}),
    *[(name, {"direction": way}) for name in ("slide", "push") for way in
      ("left", "right", "up", "down")],
    ("zoom", {}),
    ("zoom", {"amount": 3, "center": (0.2, 0.9)}),
    ("iris", {"softness": 0.2}),
    ("iris", {"center": (0.0, 1.0)}),
    ("luma", {"picture": MATTE, "softness": 0.3}),
    ("luma", {"picture": MATTE, "invert": True}),
]  # fmt: skip
IDS = [f"{name}-{number}" for number, (name, _) in enumerate(CASES)]


def cross(p, q, w):
    """Mix straight-alpha pixels (0 to 1) premultiplied, by the definition."""
    w = np.broadcast_to(np.asarray(w, float), p.shape[:2])[..., None]
    alpha = p[..., 3:] * (1 - w) + q[..., 3:] * w
    mixed = p[..., :3] * p[..., 3:] * (1 - w) + q[..., :3] * q[..., 3:] * w
    plain = p[..., :3] * (1 - w) + q[..., :3] * w
    color = np.where(alpha > 0, mixed / np.where(alpha > 0, alpha, 1), plain)
    return np.concatenate([color, alpha], axis=2)


def edge(s, t, soft):
    return np.clip((t * (1 + soft) - s) / soft, 0, 1)


def expected(name, params, a, b, t):
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    cx, cy = x + 0.5, y + 0.5
    soft = params.get("softness", 0.0)
    match name:
        case "dissolve":
            return cross(a, b, t)
        case "fade":
            color = np.broadcast_to(np.array(params.get("color", (0, 0, 0, 255))) / 255, a.shape)
            return cross(a, color, 2 * t) if t < 0.5 else cross(color, b, 2 * t - 1)
        case "wipe":
            angle = math.radians(params.get("angle", 0))
            dx, dy = round(math.cos(angle), 12), round(math.sin(angle), 12)
            reach = (WIDTH * abs(dx) + HEIGHT * abs(dy)) / 2
            s = ((cx - WIDTH / 2) * dx + (cy - HEIGHT / 2) * dy + reach) / (2 * reach)
            return cross(a, b, edge(s, t, max(soft, 0.5 / reach)))
        case "iris":
            mx, my = params.get("center", (0.5, 0.5))
            reach = math.hypot(max(mx, 1 - mx) * WIDTH, max(my, 1 - my) * HEIGHT)
            s = np.hypot(cx - mx * WIDTH, cy - my * HEIGHT) / reach
            return cross(a, b, edge(s, t, max(soft, 1 / reach)))
        case "luma":
            s = MATTE / 255
            s = 1 - s if params.get("invert") else s
            return cross(a, b, edge(s, t, max(soft, 0.004)))
        case "slide" | "push":
            return moved(name, params["direction"], a, b, t)
        case "zoom":
            amount, center = params.get("amount", 2), params.get("center", (0.5, 0.5))
            first = enlarged(a, 1 + (amount - 1) * t, center)
            second = enlarged(b, 1 + (amount - 1) * (1 - t), center)
            return cross(first, second, t * t * (3 - 2 * t))
    raise AssertionError(name)


def moved(name, direction, a, b, t):
    """Left is the way; the others are that one turned around."""
    turn = {"left": lambda p: p, "right": lambda p: p[:, ::-1],
            "up": lambda p: p.transpose(1, 0, 2),
            "down": lambda p: p[::-1].transpose(1, 0, 2)}[direction]  # fmt: skip
    back = {"left": lambda p: p, "right": lambda p: p[:, ::-1],
            "up": lambda p: p.transpose(1, 0, 2),
            "down": lambda p: p.transpose(1, 0, 2)[::-1]}[direction]  # fmt: skip
    a, b = turn(a), turn(b)
    size = a.shape[1]
    columns = []
    for x in range(size):
        u = x + t * size if name == "push" else x - (1 - t) * size
        i = math.floor(u)

        def at(i, x=x):
            if name == "push":
                return a[:, i] if i < size else b[:, min(i - size, size - 1)]
            return a[:, x] if i < 0 else b[:, min(i, size - 1)]

        columns.append(cross(at(i)[:, None], at(i + 1)[:, None], u - i))
    return back(np.concatenate(columns, axis=1))


def enlarged(p, scale, center):
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(float)
    u = (x + 0.5 - center[0] * WIDTH) / scale + center[0] * WIDTH - 0.5
    v = (y + 0.5 - center[1] * HEIGHT) / scale + center[1] * HEIGHT - 0.5
    i, j = np.floor(u).astype(int), np.floor(v).astype(int)

    def tap(i, j):
        return p[np.clip(j, 0, HEIGHT - 1), np.clip(i, 0, WIDTH - 1)]

    above = cross(tap(i, j), tap(i + 1, j), u - i)
    below = cross(tap(i, j + 1), tap(i + 1, j + 1), u - i)
    return cross(above, below, v - j)


def run(transition, a, b, t, device):
    made = buffer_zeros(a.shape, "u8", device=device)
    first, second = (buffer(p, dtype="u8", device=device) for p in (a, b))
    transition.run(first, second, made, t)
    return made.numpy()


@pytest.mark.parametrize(("name", "params"), CASES, ids=IDS)
def test_values(engine_id, dala_device, name, params):
    a, b = pictures()
    transition = Transition(name, **params)
    for t in (0.3, 0.5, 0.85):
        want = expected(name, params, a / 255, b / 255, t) * 255
        got = run(transition, a, b, t, dala_device).astype(float)
        visible = want[..., 3] >= 1  # colors of nearly transparent pixels depend on rounding
        # One step for rounding; where alpha is small, a color is less exact than its product.
        slack = 0.51 + 0.05 * 255 / np.maximum(want[..., 3], 1)
        error = np.abs(got - want).max(axis=2)
        assert (error[visible] <= slack[visible]).all(), (t, error[visible].max())
        assert np.abs(got[..., 3] - want[..., 3]).max() <= 0.51
        assert not np.array_equal(got, a)
        assert not np.array_equal(got, b)


@pytest.mark.parametrize(("name", "params"), CASES, ids=IDS)
def test_ends_are_the_pictures_bit_by_bit(engine_id, dala_device, name, params):
    a, b = pictures()
    transition = Transition(name, **params)
    assert np.array_equal(run(transition, a, b, 0.0, dala_device), a)
    assert np.array_equal(run(transition, a, b, 1.0, dala_device), b)


def test_every_transition_is_tested_and_described():
    assert {name for name, _ in CASES} == set(TRANSITIONS) - {"cut"}
    for known in TRANSITIONS.values():
        assert known.doc.endswith(".")
        for parameter in known.parameters:
            assert parameter.doc.endswith(".")
            assert parameter.range


@kernel
def blinds(a: Image, b: Image, *, t: float, count: int = 4):
    x = position(1)  # noqa: F821 - a name of the kernel language
    open = x % count < t * count
    return rgba(mix(a[0, 0].rgb, b[0, 0].rgb, 1.0 if open else 0.0), 1.0)


def test_a_kernel_of_the_user(engine_id, dala_device):
    a, b = np.zeros((2, 8, 4), np.uint8), np.full((2, 8, 4), 255, np.uint8)
    for given in (blinds, (blinds, 2), ("blinds", 1, {"count": 4}), {"type": "blinds"}):
        transition = Transition.of(given, "add")
        assert transition.name == "blinds"
        row = run(transition, a, b, 0.5, dala_device)[0, :, 0].tolist()
        assert row == [255, 255, 0, 0] * 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("dissolv", "Did you mean 'dissolve'"),
        (("wipe", 0), "duration must be above 0"),
        (("cut", 1), "duration must be 0 for a cut"),
        (("wipe", "soon"), "duration must be a time"),
        (("wipe", 1, {"angel": 3}), "no parameter 'angel'. Did you mean 'angle'"),
        ({"type": "iris", "softness": 3}, "softness must be a number from 0 to 1, got 3"),
        ({"type": "iris", "center": (2, 0)}, "center must be"),
        ({"type": "slide", "direction": "west"}, "direction must be one of 'left'"),
        ({"type": "fade", "color": "blak"}, "blak"),
        (("luma", 1), "picture is missing"),
        ({"duration": 1}, "transition must be a name"),
        (5, "transition must be a name"),
        ((), "transition must be a name"),
        ("relu", "a kernel of two pictures with a parameter t"),
        (("dissolve", 1, {"easing": "fast"}), "no easing 'fast'"),
    ],
)
def test_refused(given, message):
    with pytest.raises(DalaError, match=message):
        Transition.of(given, "add_video")


def test_pictures_of_two_sizes_and_easing():
    with pytest.raises(ParameterError, match="a picture of shape"):
        Transition().mix(np.zeros((2, 2), np.uint8), np.zeros((3, 2), np.uint8), 0.5)
    quick = Transition("dissolve", 2, easing="quad-in")
    assert [quick.progress(share) for share in (0, 0.5, 1)] == [0, 0.25, 1]
    matte = np.array([[0, 255]], np.uint8)
    made = Transition("luma", picture=np.kron(matte, np.ones((4, 4), np.uint8))).mix(
        np.zeros((2, 8), np.uint8), np.full((2, 8), 255, np.uint8), 0.5
    )
    assert made[0].tolist() == [255, 255, 255, 255, 0, 0, 0, 0]


@pytest.mark.parametrize("name", sorted(set(TRANSITIONS) - {"cut"}))
def test_the_pictures_of_the_docs_are_current(name):
    from PIL import Image as Pictures

    from tests.media.transitions.transition_pictures import FOLDER, strip

    with Pictures.open(FOLDER / f"{name}.png") as stored:
        far = np.abs(np.asarray(stored).astype(int) - strip(name))
    assert far.max() <= 2
    page = (FOLDER.parents[1] / "media" / "transitions.md").read_text(encoding="utf-8")
    assert f"../images/transitions/{name}.png" in page
    for parameter in TRANSITIONS[name].parameters:
        assert f"`{parameter.name}`" in page
        assert parameter.range in page
