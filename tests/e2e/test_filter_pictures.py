"""docs/media/filters.md tells the truth: a section for each filter, its parameters, its picture."""

from __future__ import annotations

import inspect
import pathlib
import re

import numpy as np
import pytest
from PIL import Image

import dala
from dala.gpu.compute.kernel import get
from dala.gpu.compute.kernels import color, compose, filters, keying
from tests.support import pictures

ROOT = pathlib.Path(__file__).parents[2]
SECTIONS = {
    part.split("\n", 1)[0]: part
    for part in re.split(
        r"^#{2,3} ",
        (ROOT / "docs" / "media" / "filters.md").read_text(encoding="utf-8"),
        flags=re.M,
    )
}
FUNCTIONS = {
    name: getattr(module, name)
    for module in (color, filters, keying, compose)
    for name in pictures.FILTERS
    if name in module.__all__
}


@pytest.fixture(scope="module")
def given():
    return pictures.sources()


def test_every_filter_here_is_a_kernel():
    assert set(FUNCTIONS) == set(pictures.FILTERS)


@pytest.mark.parametrize("name", pictures.FILTERS)
def test_the_parameters_of_a_filter(name):
    """Names and defaults in the table are those of the kernel."""
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", SECTIONS[name], re.M)
    listed = {parameter: default.strip() for parameter, default in rows}
    wanted = {
        p.name: p.default
        for p in inspect.signature(FUNCTIONS[name]).parameters.values()
        if p.kind is p.KEYWORD_ONLY
    }
    assert list(listed) == list(wanted)
    for parameter, default in wanted.items():
        text = "({:g}, {:g}, {:g})".format(*default) if isinstance(default, tuple) else str(default)
        assert listed[parameter] == text
    assert f"(../images/filters/{name}.png)" in SECTIONS[name]


@pytest.mark.parametrize("name", ["blur", "gaussian_blur"])
def test_the_parameters_of_an_operation(name):
    """What the operation chooses by others is described, everything else is its default."""
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", SECTIONS[name], re.M)
    options = get(name).params
    assert [parameter for parameter, _ in rows] == [option.name for option in options]
    for (_, default), option in zip(rows, options, strict=True):
        assert option.default is None or default.strip() == str(option.default)


@pytest.mark.parametrize("name", pictures.OPERATIONS)
def test_operations_have_pictures(name):
    assert f"(../images/filters/{name}.png)" in SECTIONS[name]


@pytest.mark.parametrize("name", [*pictures.FILTERS, *pictures.OPERATIONS])
def test_the_picture_of_a_filter(name, given):
    """If a filter is changed on purpose: python -m tests.support.pictures, then look."""
    with Image.open(pictures.FOLDER / f"{name}.png") as stored:
        wanted = np.asarray(stored.convert("RGB")).astype(int)
    with dala.device("cpu"):
        assert np.abs(pictures.show(name, given) - wanted).max() <= 1
