"""docs/compute/operations/geometry.md: kernels, their parameters, their pictures."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest
from PIL import Image

import dala
from dala.gpu.compute.kernel import get
from tests.support import geometry_pictures

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "compute" / "operations" / "geometry.md").read_text(encoding="utf-8")
SECTIONS = {part.split("\n", 1)[0]: part for part in re.split(r"^#{2,3} ", PAGE, flags=re.M)}
NAMES = ("resize", "bicubic_scale", "warp_affine", "warp_perspective", "remap", "preprocess")


def shown(default):
    if isinstance(default, tuple):
        return "({})".format(", ".join(f"{n:g}" for n in default))
    return str(default)


@pytest.mark.parametrize("name", NAMES)
def test_the_parameters_of_a_kernel(name):
    """Names and defaults in the table are those of the kernel, and its choices are all named."""
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|(.*)\|$", SECTIONS[name], re.M)
    options = get(name).params
    assert [row[0] for row in rows] == [o.name for o in options]
    for (_, default, text), option in zip(rows, options, strict=True):
        assert default.strip() == shown(option.default)
        if " as in " not in text:
            assert [c for c in option.choices if c not in text] == []


@pytest.mark.parametrize("name", geometry_pictures.PICTURES)
def test_the_picture(name):
    """If a kernel is changed on purpose: python -m tests.support.geometry_pictures, then look."""
    assert f"(../../images/geometry/{name}.png)" in PAGE
    with Image.open(geometry_pictures.FOLDER / f"{name}.png") as stored:
        wanted = np.asarray(stored.convert("RGB")).astype(int)
    with dala.device("cpu"):
        assert np.abs(geometry_pictures.PICTURES[name]() - wanted).max() <= 1
