"""Properties of the bytes: chains, channels, parts of pictures, threads.

A property of the definition needs the reference engine only: the table says that all others give
the same bytes. Chains and threads are the engines' own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from dala.answers.cases import KINDS, OUTSIDE, PLANAR, Row, names, rows
from dala.answers.material import noise, picture
from dala.answers.scenes import GROUPS
from dala.gpu.compute.kernel import Kernel
from dala.media import FramePipeline, gpu
from dala.media.filters.declarations import declared

# a chain equals its stages ------------------------------------------------------------------------
CHAINS = {
    "points": [("contrast", {"value": 0.2}), ("saturation", {"value": 0.5}), "sepia"],
    "factors": [("brightness", {"value": 0.1}), ("contrast", {"value": 0.2}), "invert"],
    "gammas": [("gamma", {"value": 2.2}), ("brightness", {"value": -0.1}), "grayscale"],
    "hue": [("hue", {"degrees": 40.0}), ("contrast", {"value": -0.3}), ("vignette", {})],
    "window": [("contrast", {"value": 0.2}), ("sharpen", {"amount": 0.6}), "sepia"],
    "windows": [
        ("blur", {"radius": 2}),
        ("sharpen", {"amount": 0.5}),
        ("contrast", {"value": 0.2}),
    ],
    "wide": [("blur", {"radius": 9}), ("saturation", {"value": -0.5}), "edge_detect"],
    "shapes": ["erode", "dilate", ("emboss", {"amount": 0.8}), ("posterize", {"bits": 3})],
    "keys": [("contrast", {"value": 0.2}), "chroma_key", ("hue", {"degrees": 9.0})],
    "placed": [("rotate", {"angle": 17.0}), ("vignette", {}), ("denoise", {"radius": 1})],
    "tables": [("levels", {"in_black": 0.1, "gamma": 1.4}), "invert", ("gamma", {"value": 0.6})],
    # Of the gray picture a window has one column more than a whole number of vectors.
    "later window": ["invert", ("blur", {"radius": 2})],
    "sizes": [
        ("resize", {"size": (45, 31)}),
        ("contrast", {"value": 0.3}),
        ("blur", {"radius": 1}),
    ],
}


@pytest.mark.third
@pytest.mark.parametrize(
    ("name", "kind"), [*product(CHAINS, ("rgb", "rgba")), ("later window", "gray")]
)
def test_a_chain_equals_its_stages(dala_device, name, kind):
    image = picture("photo", KINDS[kind])
    stages = image
    with FramePipeline(image.shape[1], image.shape[0], device=dala_device) as pipeline:
        chain = np.array(pipeline.process(image, CHAINS[name]))
    for item in CHAINS[name]:
        filter, params = (item, {}) if isinstance(item, str) else item
        stages = np.asarray(gpu.apply(stages, filter, device=dala_device, **params))
    apart = np.abs(chain.reshape(stages.shape).astype(int) - stages)
    found = f"{np.count_nonzero(apart)} of {apart.size} values differ, by up to {apart.max()}"
    assert not apart.any(), found


# RGB equals RGBA ----------------------------------------------------------------------------------
def with_color():
    some = [n for n in names() if n not in (*GROUPS, *PLANAR)]
    return [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in some]


#: Those that take seconds on the reference engine.
SLOW = ("bilateral", "denoise")


@pytest.mark.third
@pytest.mark.parametrize("name", with_color())
def test_rgb_equals_rgba(name):
    """On opaque pictures, for every setting."""
    for setting in {row.setting: None for row in rows(name, share="most")}:
        row = Row(name, setting, "rgb", "random")
        plain = row.run("reference")
        opaque = Opaque(name, setting, "rgba", "random").run("reference")
        assert np.array_equal(plain[..., :3], opaque[..., :3]), setting


class Opaque(Row):
    """A row on an opaque picture."""

    def source(self):
        image = super().source().copy()
        image[..., 3] = 255
        return image

    def input(self, p, image):
        return super().input(p, image[..., :3])


# a tile equals its part of the whole --------------------------------------------------------------
#: Filters of one pixel that depend on its place.
_PLACED = ("vignette",)


def local():
    """Names of filters that read a pixel, or a window whose size they declare."""
    for name, spec in declared().items():
        point = isinstance(spec.kernel, Kernel) and spec.category == "Color"
        if (point or spec.reach is not None) and name not in (*OUTSIDE, *_PLACED):
            yield name


@pytest.mark.parametrize("name", [*local()])
@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_a_tile_equals_its_part(name, device):
    spec = declared()[name]
    image = picture("photo", 4)
    call = getattr(gpu, name)
    for setting in ("default", "radius=2", "random1"):
        if not any(row.setting == setting for row in rows(name)):
            continue
        given = Row(name, setting, "rgba", "photo").parameters()
        given = {key: value for key, value in given.items() if key not in ("border", "fill")}
        reach = spec.pixels_around(given)
        top, left, bottom, right = 9, 13, 30, 44
        if reach > 9:
            continue
        whole = np.asarray(call(image, device=device, **given))
        cut = np.ascontiguousarray(
            image[top - reach : bottom + reach, left - reach : right + reach]
        )
        part = np.asarray(call(cut, device=device, **given))
        part = part[reach : reach + bottom - top, reach : reach + right - left]
        assert np.array_equal(part, whole[top:bottom, left:right]), setting


# one thread equals many ---------------------------------------------------------------------------
_LARGE = """
from dala.answers.cases import PLANAR, Row, names
from dala.answers.material import noise
from dala.answers.scenes import GROUPS
from dala.answers.table import checksum
from dala.media import gpu

image = noise((403, 517, 4), "threads")

class Large(Row):
    def source(self):
        return image[..., :3].copy() if self.kind == "rgb" else image

def show(name, made):
    print(name, checksum(made))

for name in names():
    if name not in (*GROUPS, *PLANAR):
        for kind in ("rgb", "rgba"):
            show(name, Large(name, "default", kind, "random").run("cpu"))
for name, given in {
    "blur": {"radius": 5}, "box_blur": {"radius": 30}, "gaussian_blur": {"sigma": 30.0},
    "median": {"radius": 2}, "erode": {"radius": 3}, "resize": {"size": (411, 300)},
    "contrast": {"value": 0.3}, "gamma": {"value": 2.0}, "rotate": {"angle": 17.0},
    "hue": {"degrees": 40.0}, "rgb_to_yuv": {"format": "yuv444"},
}.items():
    for made in (image, image[..., :3].copy()):
        show(name, getattr(gpu, name)(made, device="cpu", **given))
"""


def test_one_thread_equals_many():
    found = {}
    for threads in (1, 7):
        ran = subprocess.run(
            [sys.executable, "-c", _LARGE], capture_output=True, text=True,
            env={**os.environ, "DALA_THREADS": str(threads)},
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr[-3000:]
        found[threads] = ran.stdout.splitlines()
    assert len(found[1]) > 120
    assert found[1] == found[7]


def test_noise_is_large():
    """Pictures are split among threads by their size; a small one would show nothing."""
    assert noise((403, 517, 4), "threads").nbytes > 1 << 19
