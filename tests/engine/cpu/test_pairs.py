"""Weights that two pixels share, which the CPU computes once: equal bytes at every border."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu.compute import Pipeline, buffer_zeros, from_array
from dala.gpu.compute.engines.base import Link, Tensor
from dala.gpu.compute.engines.cpu.loops.pair_stages import Part, add_pair_stages, first_params
from dala.gpu.compute.engines.cpu.rules.choose import analyze
from dala.gpu.compute.kernel import get
from tests.support.row_programs import programs_of

_WEIGHTED = """
def k(img: Image, *, radius: int = 1, strength: float = 2.0):
    center = img[0, 0]
    total = center.rgb * 0.0
    weights = 0.0
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            c = img[dx, dy].rgb
            off = c - center.rgb
            weight = exp({distance} * -strength)
            total += c * weight
            weights += weight
    return rgba(total / weights, center.a)
"""


def parts_of(distance: str) -> list[Link]:
    program, _ = programs_of(_WEIGHTED.format(distance=distance), (8, 9, 4), "u8")
    link = Link(program, (0,), Tensor((8, 9, 4), "u8"))
    return add_pair_stages([link], [analyze(program, {0: 1})])


@pytest.mark.parametrize("distance", ["dot(off, off)", "abs(off.r)"])
def test_weights_of_pairs_are_stages(distance):
    links = parts_of(distance)
    assert [isinstance(link, Part) for link in links] == [True] * 4 + [False]
    assert links[-1].sources == (0, -1, -2, -3, -4)
    assert first_params(links) == [0] * 5  # parts have the parameters of the whole


@pytest.mark.parametrize(
    "distance",
    [
        "off.r", "dot(off, off) * c.r", "dot(off, off) * center.g",
        "f32(abs(u32(c.r * 9.0) - u32(center.r * 9.0)))",  # u32 has no negative numbers
    ],
)  # fmt: skip
def test_weights_that_differ_for_both_pixels_are_not(distance):
    assert len(parts_of(distance)) == 1


@pytest.mark.parametrize("radius", [1, 2])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("size", [(1, 1), (1, 7), (5, 1), (2, 3), (37, 33), (9, 1100)])
def test_pairs_are_equal_to_the_definition(size, channels, radius):
    """All borders, sizes around that of a vector, and rows that are cut into tiles."""
    shape = size if channels == 1 else (*size, channels)
    img = np.random.default_rng(3).integers(0, 256, shape, np.uint8)
    img[: size[0] // 2] //= 8  # near colors have large weights
    found = []
    for name in ("cpu", "reference"):
        with dala.device(name):
            found.append(get("denoise")(img, radius=radius, sigma_color=0.3))
    assert np.array_equal(*found)


def test_pairs_in_chains_are_equal_to_their_stages():
    img = np.random.default_rng(4).integers(0, 256, (150, 70, 4), np.uint8)
    steps = (
        ("brightness", {"value": 0.1}), ("denoise", {}), ("sharpen", {"amount": 1.0}),
        ("denoise", {"radius": 1}),
    )  # fmt: skip
    with dala.device("cpu"):
        single, chain, last = img, Pipeline(), from_array(img)
        for name, params in steps:
            single = get(name)(single, **params)
            out = buffer_zeros(img.shape, "u8", transient=name != "denoise" or not params)
            spec = {"op": "run_kernel", "kernel": name, "inputs": [last], "output": out}
            chain.add({**spec, "params": params})
            last = out
        chain.run()
        assert np.array_equal(np.array(last), single)
