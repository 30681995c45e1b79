"""docs/compute/operations/geometry.md: parameter tables and pictures are current."""

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
def test_parameters(name):
    """Names, defaults and choices in the tables match the kernels."""
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|(.*)\|$", SECTIONS[name], re.M)
    options = get(name).params
    assert [row[0] for row in rows] == [o.name for o in options]
    for (_, default, text), option in zip(rows, options, strict=True):
        assert default.strip() == shown(option.default)
        if " as in " not in text:
            assert [c for c in option.choices if c not in text] == []


@pytest.mark.parametrize("name", geometry_pictures.PICTURES)
def test_stored_picture_is_current(name):
    """After an intended change, run python -m tests.support.geometry_pictures."""
    assert f"(../../images/geometry/{name}.png)" in PAGE
    with Image.open(geometry_pictures.FOLDER / f"{name}.png") as stored:
        wanted = np.asarray(stored.convert("RGB")).astype(int)
    with dala.device("cpu"):
        apart = np.abs(geometry_pictures.PICTURES[name]() - wanted)
    assert apart.max() <= (name == "preprocess")  # which computes floats
