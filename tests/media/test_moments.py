"""Kernels get the time, the frame's number, the resolution and the date from where they run."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dala.errors import ParameterError
from dala.gpu import create_surface
from dala.gpu.compute import buffer_zeros, from_array, kernel, program
from dala.media import gpu
from dala.media.filters.pipeline import FramePipeline
from dala.media.frame import Frame
from dala.media.scene import Scene
from dala.media.video.chain import VideoChain

TEXT = """
def clock(px: Pixel, *, time: Time, n: FrameNumber, size: Resolution, at: Pointer, day: Date):
    return rgba(time / 255, n / 255, size.x / 255, step(2000, day.x))
"""
PICTURE = np.zeros((6, 9, 4), np.uint8)


def first(picture: object) -> list[int]:
    return np.asarray(picture)[0, 0].tolist()


def test_elsewhere_they_are_parameters():
    clock = kernel(TEXT)
    assert first(clock(PICTURE)) == [0, 0, 9, 0]
    given = {"time": 3, "n": 4, "size": (7, 8), "at": (1, 2, 0), "day": (2026, 1, 2, 3.5)}
    assert first(clock(PICTURE, **given)) == [3, 4, 7, 255]
    assert first(gpu.apply(PICTURE, clock, time=5.0)) == [5, 0, 9, 0]
    assert [(p.name, p.role, p.default) for p in clock.params][:3] == [
        ("time", "time", 0),
        ("n", "frame", 0),
        ("size", "resolution", (0.0, 0.0)),
    ]


def test_resolution_is_that_of_the_output(dala_device):
    text = "def wide(*, size: Resolution):\n    return size.x * 100 + size.y"
    out = buffer_zeros((2, 3), "f32", device=dala_device)
    kernel(text).run([], out, {})
    assert out.read_list() == [302.0] * 6


def frames() -> list[Frame]:
    pixels = (from_array(PICTURE) for _ in range(3))
    return [Frame(p, pts=n * 10, time_base=Fraction(1, 2)) for n, p in enumerate(pixels)]


def test_videos():
    clock = kernel(TEXT)
    with VideoChain([clock]) as chain:
        seen = [first(f) for f in chain.stream(frames())]
    assert seen == [[0, 0, 9, 255], [5, 1, 9, 255], [10, 2, 9, 255]]
    with VideoChain([(clock, {"time": 7.0})]) as chain:
        assert [first(f)[0] for f in chain.stream(frames())] == [7, 7, 7]


def test_frames_in_a_pipeline():
    clock = kernel(TEXT)
    with FramePipeline(9, 6) as pipeline:
        assert [first(pipeline.process(f, [clock])) for f in frames()] == [
            [0, 0, 9, 255],
            [5, 1, 9, 255],
            [10, 2, 9, 255],
        ]
        assert [first(f)[:2] for f in pipeline.stream(frames(), [clock])] == [
            [0, 0],
            [5, 1],
            [10, 2],
        ]


def test_scenes():
    clock = kernel(TEXT)
    with Scene(9, 6) as scene:
        effect = scene.add_effect(clock)
        seen = [first(scene.render(time=t)) for t in (0, 4, 9)]
        assert [s[:3] for s in seen] == [[0, 0, 9], [4, 120, 9], [9, 255, 9]]
        assert "params.time" not in effect.saved_state()
        scene.remove_node(effect)
        assert first(scene.render(time=12))[:3] == [0, 0, 0]
        fixed = scene.add_effect(clock, time=7.0)
        assert first(scene.render(time=20))[0] == 7
        assert fixed.saved_state()["params.time"] == 7.0


def test_surfaces():
    clock = kernel(TEXT.replace("time / 255", "min(time, 1) / 255"))
    with create_surface(9, 6) as surface:
        for n in range(3):
            surface.dispatch_compute(clock, {}, (1, 1, 1))
            assert list(surface.get_pixels())[1:3] == [n, 9]
        surface.dispatch_compute(clock, {"n": 77}, (1, 1, 1))
        assert surface.get_pixels()[1] == 77


TRAIL = """
def trail(px: Pixel, *, n: FrameNumber):
    def light(px: Pixel, light: Pixel):
        return max(px.rgb * step(n, 0.5), light.rgb - 0.125)
    def picture(light: Pixel):
        return rgba(light.rgb, 1.0)
"""
WHITE = np.full((6, 9, 4), 255, np.uint8)
#: White that fades by an eighth in each frame.
FADES = [255, 223, 191, 159, 127, 95]


def red(pictures: object) -> list[int]:
    return [int(np.asarray(p)[0, 0, 0]) for p in pictures]


def test_programs_remember_frames_of_lists_and_videos():
    trail = program(TRAIL)
    assert red([gpu.apply(WHITE, trail)] * 2) == [255, 255]
    with FramePipeline(9, 6) as pipeline:
        assert red(pipeline.process(WHITE, [trail]) for _ in range(3)) == FADES[:3]
        again = [pipeline.process(WHITE, [trail], number=n) for n in (2, 3, 3, 0, 1)]
        assert red(again) == [191, 159, 159, 255, 223]
        assert red(pipeline.stream([WHITE] * 3, [trail, "invert"])) == [0, 32, 64]
        with pytest.raises(ParameterError, match="workers=1"):
            list(pipeline.stream([WHITE] * 3, lambda n: [trail]))
    with VideoChain([trail]) as chain:
        made = chain.stream(
            Frame(from_array(WHITE), pts=n, time_base=Fraction(1, 5)) for n in range(4)
        )
        assert red(made) == FADES[:4]


def test_programs_in_scenes_depend_on_the_time_alone():
    trail = program(TRAIL)
    with Scene(8, 8, fps=10, background="white") as scene:
        scene.add_effect(trail)
        assert red(scene.render() for _ in range(3)) == FADES[:3]
        times = (4, 2, 2, 5, 0)
        assert red(scene.render(time=n / 10) for n in times) == [FADES[n] for n in times]
    with Scene(8, 8, fps=10) as scene:
        box = scene.add_overlay(color="white", size=(4, 4))
        scene.add_effect(trail, box)
        assert red([scene.render(time=0.3)]) == FADES[3:4]


def test_programs_on_surfaces():
    count = """
@program
def count():
    def count(count: Pixel, *, at: Pointer):
        return (count.r + 0.125, at.x / 255, at.z)
"""
    with create_surface(3, 2) as s:
        s.load_shader("count", count)
        s.post_event({"event_type": "pointer_down", "x": 2, "y": 1, "button": 1})
        for n in range(1, 4):
            s.dispatch_compute("count")
            assert first(np.frombuffer(s.get_pixels(), np.uint8).reshape(2, 3, 4)) == [
                32 * n, 2, 255, 255,
            ]  # fmt: skip
    trail = program(TRAIL)
    with create_surface(9, 6) as s:
        s.clear("white")
        for wanted in FADES[:4]:
            s.dispatch_compute(trail, {})
            assert s.get_pixels()[0] == wanted
            s.clear("white")
