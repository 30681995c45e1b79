"""Blurs of u8 are defined in integers: equal bytes on every engine and level of the CPU."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

import dala
from dala.gpu.compute import Pipeline, buffer_zeros, from_array
from dala.gpu.compute.engines.cpu.level import LEVELS, host_features, is_x86
from dala.gpu.compute.engines.sampling.gauss import (
    EXACT_RADIUS,
    byte_steps,
    coarse_blur,
    gaussian_weights,
)
from tests.engine.ops.test_blur import blur, blurred
from tests.support.pictures import photo

#: Radius and sigma: in one dispatch and in two on a GPU; unrolled and looped on a CPU; extremes.
GAUSSIANS = [
    (1, 0.05), (1, 0.5), (2, 1e6), (3, 1.5), (5, 0.3), (8, 4.0), (12, 6.0), (13, 6.5), (16, 5.0),
    (17, 8.5), (31, 1.0), (60, 30.0), (60, 1e9),
]  # fmt: skip
WIDE = [(61, 30.5), (200, 100.0), (97, 300.0), (200, 13.0), (130, 1e9)]
BOXES = [1, 4, 5, 16, 17, 60, 128, 129, 200]
CASES = [("blur", {"radius": r, "sigma": s}) for r, s in (*GAUSSIANS, *WIDE)]
CASES += [("box_blur", {"radius": r}) for r in BOXES]
CASES += [("gaussian_blur", {"sigma": s}) for s in (0.01, 2.1, 100.0)]
NAMES = [f"{name}-{'-'.join(str(v) for v in params.values())}" for name, params in CASES]


@cache
def pictures():
    """Return odd sizes, thin ones, and all channels: noise, gradients, extremes, a photograph."""
    rng = np.random.default_rng(5)
    y, x = np.mgrid[0:35, 0:67]
    found = [rng.integers(0, 256, shape, np.uint8) for shape in ((1, 1), (41, 68, 3), (21, 131, 4))]
    found += [(3 * x + 4 * y).astype(np.uint8), np.full((9, 30, 3), 251, np.uint8)]
    found += [(rng.random(shape) < 0.5).astype(np.uint8) * 255 for shape in ((300, 3, 4), (2, 260))]
    found += [np.ascontiguousarray(photo()[10:73, 20:119])]
    return found


@cache
def defined(case, number):
    with dala.device("reference"):
        return blur(pictures()[number], CASES[case][0], **CASES[case][1])


@pytest.mark.third
@pytest.mark.parametrize("case", range(len(CASES)), ids=NAMES)
def test_equal_bytes(engine_id, case):
    name, params = CASES[case]
    for number, image in enumerate(pictures()):
        got = blur(image, name, **params)
        off = np.argwhere(got != defined(case, number))
        assert not len(off), f"{len(off)} of {got.size} values of {image.shape}, first {off[0]}"


def test_the_definition():
    """Weights of 16 bits; 6 bits after the point between the passes."""
    image = pictures()[2]
    for radius, sigma in GAUSSIANS:
        steps = byte_steps(radius, sigma)

        def summed(numbers, axis, radius=radius, steps=steps):
            wide = np.pad(
                numbers, [(radius, radius) if a == axis else (0, 0) for a in range(3)], "edge"
            )
            windows = np.lib.stride_tricks.sliding_window_view(wide, 2 * radius + 1, axis)
            return windows @ np.array(steps[:0:-1] + steps)

        middle = (summed(image.astype(np.int64), 0) + 2**9) // 2**10
        wanted = (summed(middle, 1) + 2**21) // 2**22
        with dala.device("reference"):
            got = blur(image, radius=radius, sigma=sigma)
        np.testing.assert_array_equal(got[..., :3], wanted[..., :3])


def test_steps():
    for radius, sigma in [*GAUSSIANS, *((r, r / 2) for r in range(1, EXACT_RADIUS + 1))]:
        steps, exact = np.array(byte_steps(radius, sigma)), gaussian_weights(radius, sigma)[radius:]
        assert steps[0] + 2 * steps[1:].sum() == 65536
        assert steps[0] % 2 == 0
        assert 0 <= steps.min() <= steps.max() < 65536
        assert np.abs(steps - exact * 65536).max() <= 2
    for radius in (61, 200):
        steps = coarse_blur(radius, radius / 2).steps()
        assert steps[0] + 2 * sum(steps[1:]) == 65536


@pytest.mark.parametrize("radius", [1, 2, 3, 5, 10, 17, 30, 45, 60])
def test_distance_from_the_real_formula(radius):
    """At most 0.55 of a step, in f64: for stripes, whose errors do not average out, as well."""
    rng = np.random.default_rng(radius)
    stripes = np.broadcast_to((rng.random((150, 1)) < 0.5) * np.uint8(255), (150, 120)).copy()
    ramp = (np.arange(150)[:, None] // 3 + np.arange(120) // 2).astype(np.uint8)
    shapes = [stripes, stripes.T.copy(), ramp, rng.integers(0, 256, (150, 120), np.uint8)]
    shapes.append(np.ascontiguousarray(photo()[:150, :120]))
    for sigma in (radius / 2, radius / 3, float(radius), 1e6):
        for image in shapes:
            with dala.device("reference"):
                got = blur(image, radius=radius, sigma=sigma)
            assert np.abs(got - blurred(image, radius, sigma)).max() <= 0.55


@pytest.mark.parametrize("radius", [1, 7, 60, 150])
def test_box_is_the_rounded_mean(radius):
    image = pictures()[1]
    total = image.astype(np.int64)
    for axis in (0, 1):
        near = np.arange(total.shape[axis])[:, None] + np.arange(-radius, radius + 1)
        near = np.clip(near, 0, total.shape[axis] - 1)
        total = np.moveaxis(np.moveaxis(total, axis, 0)[near].sum(1), 0, axis)
    mean = total / (2 * radius + 1) ** 2
    with dala.device("reference"):
        np.testing.assert_array_equal(blur(image, "box_blur", radius=radius), np.floor(mean + 0.5))


@pytest.mark.parametrize(
    ("name", "radius"), [("blur", 3), ("blur", 20), ("blur", 75), ("box_blur", 30)]
)
def test_constant_pictures_stay_constant(engine_id, name, radius):
    for value in (*range(0, 256, 15), 1, 127, 254):
        image = np.full((5, 34, 3), value, np.uint8)
        np.testing.assert_array_equal(blur(image, name, radius=radius), image)


@pytest.mark.parametrize(("name", "radius"), [("blur", 4), ("blur", 23), ("box_blur", 9)])
def test_a_tile_equals_its_part_and_rgb_equals_rgba(engine_id, name, radius):
    image = np.random.default_rng(8).integers(0, 256, (90, 150, 4), np.uint8)
    whole = blur(image, name, radius=radius)
    part = np.ascontiguousarray(image[5 : 35 + 2 * radius, 40 : 71 + 2 * radius])
    np.testing.assert_array_equal(
        blur(part, name, radius=radius)[radius:-radius, radius:-radius],
        whole[5 + radius : 35 + radius, 40 + radius : 71 + radius],
    )
    colors = np.ascontiguousarray(image[..., :3])
    np.testing.assert_array_equal(blur(colors, name, radius=radius), whole[..., :3])


@pytest.mark.parametrize("radius", [2, 9, 30])
@pytest.mark.parametrize("after", ["invert", "flip", "blur"])
def test_a_chain_equals_its_stages(engine_id, radius, after):
    """The blurred value is rounded to a byte before the next stage."""
    image = pictures()[7]
    middle = blur(image, radius=radius)
    wanted = blur(middle, after)
    source, out = from_array(image), buffer_zeros(image.shape, "u8")
    between = buffer_zeros(image.shape, "u8", transient=True)
    chain = Pipeline()
    spec = {"op": "run_kernel", "inputs": [source], "output": between}
    chain.add({**spec, "kernel": "blur", "params": {"radius": radius}})
    chain.add({"op": "run_kernel", "kernel": after, "inputs": [between], "output": out})
    chain.run()
    np.testing.assert_array_equal(np.array(out), wanted)


@pytest.mark.parametrize("radius", [3, 4, 20])
def test_sigma_may_change(engine_id, radius):
    """Code may be kept; centers of more and of less than half of all weights differ in it."""
    image = pictures()[2]
    for sigma in (radius / 2, 0.3, float(radius), 0.45, 0.05, 2.0):
        with dala.device("reference"):
            wanted = blur(image, radius=radius, sigma=sigma)
        np.testing.assert_array_equal(blur(image, radius=radius, sigma=sigma), wanted)


def digest():
    """Return a checksum of a third of the cases on the device in use; levels share most code."""
    found = hashlib.sha256()
    for name, params in CASES[::3]:
        for image in pictures():
            found.update(blur(image, name, **params).tobytes())
    return found.hexdigest()


def there():
    """Return the levels that this processor has."""
    return [n for n, (_, f) in LEVELS.items() if is_x86() and all(map(host_features().get, f))]


@pytest.mark.parametrize(("level", "threads"), [*((level, "1") for level in there()), ("", "3")])
def test_every_level_and_number_of_threads(level, threads):
    env = {
        **os.environ,
        "DALA_CPU": level,
        "DALA_THREADS": threads,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    code = "import dala; from tests.engine.ops import test_blur_bytes as own; dala.use('cpu'); "
    code += "print(own.digest())"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with dala.device("reference"):
        assert done.stdout.split() == [digest()]
