"""Programs of several passes: each engine gives the bytes of a simulation written in NumPy."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import dala
from dala.errors import DalaError, KernelSyntaxError, ParameterError
from dala.gpu.compute import (
    KernelProgram,
    Pipeline,
    ProgramPass,
    buffer_zeros,
    kernel,
    program,
)
from tests.support.odd import VALUES, problem

RNG = np.random.default_rng(7)
PICTURE = RNG.integers(0, 256, (24, 36, 4), dtype=np.uint8)

TRAILS = """
@program
def trails(img: Image, *, keep: Within[float, 0.0, 1.0] = 0.5):
    'Light that fades.'
    @target(dtype="f32")
    def light(light: Pixel):
        return max(img[0, 0].rgb, light.rgb * keep)

    def picture(light: Image):
        return light[0, 0].rgb
"""

LIFE = """
def neighbors(cells: Image):
    total = 0.0
    for j in range(3):
        for i in range(3):
            total += cells[i - 1, j - 1].r
    return total - cells[0, 0].r

@program
def life(*, density=0.4):
    def cells(cells: Image, *, n: FrameNumber):
        y, x = position()
        alive = cells[0, 0].r
        around = neighbors(cells)
        born = around > 2.5 and around < 3.5 or alive > 0.5 and around > 1.5 and around < 2.5
        if n == 0:
            born = random(x, y) < density
        return 1.0 if born else 0.0

    def picture(cells: Pixel):
        return cells.rgb
"""


def frames(made: KernelProgram, count: int, size: tuple[int, int], *inputs: np.ndarray):
    with made.start(*size) as state:
        return [np.asarray(state.render(*inputs)) for _ in range(count)]


def life(cells: np.ndarray) -> np.ndarray:
    wide = np.pad(cells, 1, mode="edge").astype(int)
    h, w = cells.shape
    around = sum(wide[j : j + h, i : i + w] for j in range(3) for i in range(3)) - cells
    return ((around == 3) | ((cells == 1) & (around == 2))).astype(np.uint8)


def test_life_is_life(engine_id):
    made = frames(program(LIFE), 6, (36, 24))
    cells = made[0][..., 0] // 255
    assert 0.3 < cells.mean() < 0.5
    for frame in made[1:]:
        cells = life(cells)
        assert (frame[..., 0] == 255 * cells).all()


def test_feedback_fades(engine_id):
    trails = program(TRAILS)
    assert trails.inputs == ("img",)
    assert trails.remembers
    assert trails.doc == "Light that fades."
    dark = np.zeros_like(PICTURE)
    with trails.start(36, 24) as state:
        shown = [np.asarray(state.render(p)) for p in (PICTURE, dark, dark)]
    for frame, part in zip(shown, (1, 0.5, 0.25), strict=True):
        wanted = np.floor(PICTURE[..., :3] * part + 0.5)
        assert np.abs(frame[..., :3] - wanted).max() == 0


def test_frames_are_found_again(engine_id):
    made = program(LIFE)
    with made.start(36, 24) as state:
        shown = [np.asarray(state.render()) for _ in range(5)]
        assert state.frame == 4
        for n in (2, 4, 4, 0):
            assert (np.asarray(state.render(frame=n)) == shown[n]).all(), n
        state.reset()
        assert (np.asarray(state.render()) == shown[0]).all()
        other = np.asarray(state.render(frame=0, density=0.9))
        assert other.mean() > shown[0].mean()


PYRAMID = """
def at(img: Image, size: vec2):
    y, x = position()
    return img.sample((x + 0.5) * img.width / size.x - 0.5, (y + 0.5) * img.height / size.y - 0.5)

@program
def glow(img: Image, *, amount=0.5, levels=2):
    @target(size=0.5)
    def half(*, size: Resolution):
        return at(img, size)

    @target(size=("half_width(width)", "height // 4"))
    def quarter(half: Image, *, size: Resolution):
        return at(half, size)

    def picture(quarter: Image, *, size: Resolution):
        return img[0, 0] + amount * at(quarter, size) + 0 * levels
"""


def test_sizes(engine_id):
    glow = program(PYRAMID.replace("half_width(width)", "max(width // 4, levels)"))
    planned = glow.planned((25, 37, 4), "u8", {"levels": 16})
    assert [p.shape for p in planned] == [(12, 18, 4), (6, 16, 4), (25, 37, 4)]
    picture = np.full((24, 36, 4), 100, np.uint8)
    with glow.start(36, 24) as state:
        assert (np.asarray(state.render(picture))[..., :3] == 150).all()
    assert (np.asarray(glow(picture, amount=0.25))[..., :3] == 125).all()


def test_passes_of_one_target_and_other_names(engine_id):
    """Passes may write one target in turn, with parameters of their own."""
    add = kernel("def add(a: Pixel, b: Pixel, *, by=0.0): return rgba(a.rgb + b.rgb + by, 1.0)")
    reads = {"a": "store", "b": "store"}
    passes = [
        ProgramPass(add, "store", dtype="f32", reads=reads, params={"by": 0.25}),
        ProgramPass(add, "store", reads=reads, params={"by": 0.125}),
        ProgramPass(add, reads={"a": "store", "b": "img"}, params={"by": 0.0}),
    ]
    made = program(passes, name="sums")
    assert (made.inputs, made.params) == (("img",), ())
    zeros = np.zeros((3, 4, 4), np.uint8)
    shown = frames(made, 2, (4, 3), zeros)
    # 0 -> 0.25 -> 0.625; the next frame goes on from there: 1.5 -> 3.125
    assert [f[0, 0, 0] for f in shown] == [round(0.625 * 255), 255]


def test_the_output_may_be_read_again(engine_id):
    made = program("def count(count: Pixel): return count.r + 0.125")
    assert [f[0, 0, 0] for f in frames(made, 3, (4, 3))] == [32, 64, 96]


def test_programs_are_pickled():
    made = pickle.loads(pickle.dumps(program(LIFE)))
    assert (frames(made, 3, (9, 7))[2] == frames(program(LIFE), 3, (9, 7))[2]).all()


def test_passes_are_fused():
    """A state and the picture of it are one pass on the CPU engine."""
    with dala.device("cpu"), program(LIFE).start(36, 24) as state:
        state.render()
        assert state.passes == 1
        assert "cells > picture" in state.explain()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(img: Image):\n  x = 1\n  def a(): return img[0, 0]", "functions only"),
        ("def f():\n  @target(scale=2)\n  def a(): return 1.0", "no 'scale'"),
        ("def f():\n  @kernel\n  def a(): return 1.0", "the decorator of a pass is @target"),
        ("def f():\n  @target(size='width')\n  def a(): return 1.0", "size must be a scale"),
        ("def f():\n  @target(size=(1, 'w'))\n  def a(): return rgba(1, 1, 1, 1)", "known names"),
        ("def f():\n  @target(size=(1, '1+'))\n  def a(): return 1.0", "a formula"),
        ("def f():\n  @target(dtype='f16')\n  def a(): return 1.0", "'u8' or 'f32'"),
        ("def f():\n  def a(): return b\n  def c(a: Pixel): return a", "'b' is not defined"),
        ("x = 1", "must consist of functions"),
    ],
)
def test_mistakes(text, message):
    with pytest.raises(DalaError, match=message):
        program(text).start(4, 4).render()


def test_equal_parameters_are_declared_alike():
    one = kernel("def one(px: Pixel, *, amount=0.5): return px * amount")
    two = kernel("def two(px: Pixel, *, amount=0.25): return px * amount")
    with pytest.raises(ParameterError, match="'amount' in different ways"):
        program([ProgramPass(one, "px"), ProgramPass(two)])


def test_errors_show_the_line():
    with pytest.raises(KernelSyntaxError, match="not defined") as caught:
        program("def f():\n  def a():\n    return rgba(missing, 1, 1, 1)")
    assert caught.value.lineno == 3


FADE = "def fade(px: Pixel, fade: Pixel, *, k=0.5): return px.rgb * k + fade.rgb * 0.1"


ODD = {
    "source": program,
    "name": lambda v: program(FADE, name=v),
    "width": lambda v: program(FADE).start(v, 3, device="cpu").close(),
    "dtype": lambda v: program(FADE).start(3, 3, dtype=v, device="cpu").close(),
    "picture": lambda v: program(FADE).start(36, 24, device="cpu").render(v),
    "time": lambda v: program(FADE).start(36, 24, device="cpu").render(PICTURE, time=v),
    "fps": lambda v: program(FADE).start(36, 24, device="cpu").render(PICTURE, fps=v),
    "pointer": lambda v: program(FADE).start(36, 24, device="cpu").render(PICTURE, pointer=v),
    "k": lambda v: program(FADE).start(36, 24, device="cpu").render(PICTURE, k=v),
    "kernel": lambda v: KernelProgram("x", [ProgramPass(v)]),
    "size": lambda v: KernelProgram("x", [ProgramPass(kernel(SAME), size=v)]),
    "reads": lambda v: KernelProgram("x", [ProgramPass(kernel(SAME), reads=v)]),
    "passes": lambda v: KernelProgram("x", v),
    "swap": lambda v: Pipeline().swap(v, v),
}
SAME = "def same_again(px: Pixel): return px"


@pytest.mark.parametrize("name", ODD)
def test_odd_values(name):
    wrong = {title: problem(lambda v=v: ODD[name](v())) for title, v in VALUES.items()}
    assert {title: text for title, text in wrong.items() if text} == {}


def test_pipelines_and_plans_refuse_programs_by_name():
    made = program("def life(life: Image): return life[0, 0].r + 0.25")
    out = buffer_zeros((2, 2, 4), "u8", device="cpu")
    spec = {"op": "run_kernel", "kernel": made, "inputs": [], "output": out, "params": {}}
    for call in (lambda: made.plan([], out), lambda: Pipeline().add(spec)):
        with pytest.raises(ParameterError, match=r"life: a program has several passes"):
            call()
