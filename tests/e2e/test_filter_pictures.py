"""The stored pictures of filters in docs/media/filters.md are current."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import dala
from dala.media.filters.declarations import declared
from tests.support import pictures


@pytest.fixture(scope="module")
def given():
    return pictures.sources()


def test_every_picture_is_of_a_filter():
    assert {*pictures.FILTERS, *pictures.OPERATIONS, *pictures.CALLS} <= set(declared())


@pytest.mark.parametrize("name", [*pictures.FILTERS, *pictures.OPERATIONS, *pictures.CALLS])
def test_stored_picture_is_current(name, given):
    """After an intended change, run python -m tests.support.pictures."""
    with Image.open(pictures.FOLDER / f"{name}.png") as stored:
        wanted = np.asarray(stored.convert("RGB")).astype(int)
    with dala.device("cpu"):
        assert np.array_equal(pictures.show(name, given), wanted)
