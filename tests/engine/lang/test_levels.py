"""Mipmaps: ``img.sample(x, y, lod=)`` in programs, against a pyramid made by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import dala
from dala.errors import KernelSyntaxError
from dala.gpu.compute import from_array, kernel, program
from dala.media import gpu
from dala.shaders import shadertoy
from tests.engine.lang.test_sampling import sampled

RNG = np.random.default_rng(6)
SIZES = {"powers": (32, 64), "odd": (23, 31), "narrow": (5, 40)}


def pyramid(image: np.ndarray) -> list[np.ndarray]:
    """Return an image of floats and its levels; every fourth is what the next are made from."""
    height, width = image.shape[:2]
    levels = [image.astype(float)]
    for level in range(1, max(height, width).bit_length()):
        base = levels[(level - 1) // 4 * 4]
        n = 1 << (level - 1) % 4
        h, w = max(height >> level, 1), max(width >> level, 1)
        v, u = ((np.arange(s * n) + 0.5) / (s * n) for s in (h, w))
        y, x = np.meshgrid(v * base.shape[0] - 0.5, u * base.shape[1] - 0.5, indexing="ij")
        taps = sampled(base, x, y, "linear", "clamp")
        levels.append(taps.reshape(h, n, w, n, -1).mean((1, 3)))
    return levels


def expected(levels, u, v, lod, how, edge):
    lod = min(max(lod, 0.0), len(levels) - 1)
    lod = float(np.floor(lod + 0.5)) if how == "nearest" else lod
    at = int(lod)
    found = [
        sampled(level, u * level.shape[1] - 0.5, v * level.shape[0] - 0.5, how, edge)
        for level in (levels[at], levels[min(at + 1, len(levels) - 1)])
    ]
    return found[0] + (found[1] - found[0]) * (lod - at)


TEXT = """
def lodded(img: Image, *, lod: float = 0.0):
    y, x = position()
    u, v = (x * 1.5 - 7.25) / img.width, (y * 1.5 - 4.125 + x * 0.25) / img.height
    return img.sample_uv(u, v, filter="{how}", edge="{edge}", lod=lod)
"""


def places(height, width):
    y, x = np.mgrid[:height, :width]
    return (x * 1.5 - 7.25) / width, (y * 1.5 - 4.125 + x * 0.25) / height


@pytest.mark.third
@pytest.mark.parametrize("edge", ["clamp", "repeat", "mirror"])
@pytest.mark.parametrize("how", ["linear", "nearest"])
@pytest.mark.parametrize("size", SIZES)
def test_levels(dala_device, size, how, edge):
    image = RNG.random((*SIZES[size], 3)).astype("<f4")
    made = program(TEXT.format(how=how, edge=edge))
    assert made.inputs == ("img",)
    height, width = SIZES[size]
    levels = pyramid(image)
    with made.start(width, height, dtype="f32", device=dala_device) as state:
        for lod in (-1.0, 0.0, 0.7, 1.0, 2.25, 4.5, 20.0):
            got = np.asarray(state.render(image, lod=lod))[..., :3]
            wanted = expected(levels, *places(height, width), lod, how, edge)
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)


def test_levels_of_powers_of_two_are_means_of_blocks():
    image = RNG.random((32, 64, 3))
    for first, second in pairwise(pyramid(image)[:6]):
        h, w = second.shape[:2]
        np.testing.assert_allclose(second, first.reshape(h, 2, w, 2, 3).mean((1, 3)))


def test_levels_of_passes_of_other_sizes_and_of_frames_before(dala_device):
    """The mean of a gray picture, of one of half the size, and of the frame before."""
    made = program("""
def mean(img: Image):
    @target(size=0.5, dtype="f32")
    def half():
        y, x = position()
        return img.sample(x * 2 + 0.5, y * 2 + 0.5) * 0.5
    @target(dtype="f32")
    def last(last: Image):
        return last.sample(0.0, 0.0, lod=12.0).r + 0.25
    def picture(half: Image, last: Image):
        m = half.sample_uv(0.5, 0.5, lod=12.0).r
        return rgba(m, last[0, 0].r, img.sample(0.0, 0.0, lod=5.0).r, 1.0)
""")
    gray = RNG.integers(0, 256, (16, 32), np.uint8)
    with made.start(32, 16, device=dala_device) as state:
        frames = [np.asarray(state.render(np.dstack([gray] * 4)))[0, 0] for _ in range(3)]
    mean = gray.mean()
    for number, frame in enumerate(frames):
        wanted = [mean / 2, min(255, 64 * (number + 1)), mean, 255]
        assert np.abs(frame - np.array(wanted)).max() <= 1


def test_engines_agree_and_a_gray_picture_stays_gray():
    made = program(TEXT.format(how="linear", edge="repeat"))
    gray = RNG.integers(0, 256, (24, 32), np.uint8)
    results = []
    for device in ("reference", "cpu", "webgpu"):
        with dala.device(device), gpu.start_pipeline(32, 24) as pipeline:
            results.append(np.array(pipeline.process(gray, [(made, {"lod": 1.5})])))
    assert results[0].shape == (24, 32)
    assert np.abs(np.diff(np.array(results).astype(int), axis=0)).max() <= 1


GLSL = {
    "textureLod(iChannel0, vec2(0.5), 20.0)": "mean",
    "textureLod(iChannel0, vec2(0.5), 0.0)": "middle",
    "textureGrad(iChannel0, vec2(0.5), vec2(8.0, 0.0), vec2(0.0))": "mean",
    "textureGrad(iChannel0, vec2(0.5), vec2(0.0), vec2(0.0))": "middle",
    "texelFetch(iChannel0, ivec2(0), 5)": "mean",
    "texelFetch(iChannel0, ivec2(1, 0), 4)": "right",
    "texelFetchOffset(iChannel0, ivec2(-3, 1), 4, ivec2(4, -1))": "right",
    "textureOffset(iChannel0, vec2(0.0, 1.0), ivec2(16, -8))": "middle",
    "textureLodOffset(iChannel0, vec2(0.0, 1.0), 0.0, ivec2(16, -8))": "middle",
    "textureProj(iChannel0, vec3(1.0, 1.0, 2.0))": "middle",
    "textureProjLod(iChannel0, vec4(1.0, 1.0, 9.0, 2.0), 20.0)": "mean",
    "vec4(textureSize(iChannel0, 2), textureSize(iChannel0, 9)) / 8.0": "size",
}


@pytest.mark.parametrize("call", GLSL)
def test_textures_of_glsl(dala_device, call):
    image = RNG.random((16, 32, 4)).astype("<f4")
    middle = image[7:9, 15:17].mean((0, 1))
    wanted = {
        "mean": image.mean((0, 1)), "middle": middle, "right": image[:, 16:].mean((0, 1)),
        "size": np.array([1.0, 0.5, 0.125, 0.125]),
    }[GLSL[call]]  # fmt: skip
    made = shadertoy(
        f"void mainImage(out vec4 c, vec2 p) {{ c = {call}; }}",
        channels=["film"],
    )
    with made.start(2, 2, dtype="f32", device=dala_device) as state:
        got = np.asarray(state.render(from_array(image, device=dala_device)))[0, 0]
    np.testing.assert_allclose(got[:3], wanted[:3], rtol=1e-5, atol=1e-5)


def test_what_is_refused():
    image = np.zeros((4, 4, 4), np.uint8)
    alone = kernel("def alone(img: Image): return img.sample(0.0, 0.0, lod=1.0)")
    with pytest.raises(KernelSyntaxError, match="Write @program"):
        alone(image)
    for more in ('filter="cubic"', "edge=(0.0, 0.0, 0.0, 1.0)"):
        made = program(f"def f(img: Image): return img.sample(0.0, 0.0, lod=1.0, {more})")
        with pytest.raises(KernelSyntaxError, match="no cubic filter"):
            gpu.apply(image, made, device="cpu")
