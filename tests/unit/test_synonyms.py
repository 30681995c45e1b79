"""Advice for names of other libraries and for misspelled ones: right or absent."""

from __future__ import annotations

import pytest

from dala.errors import did_you_mean
from dala.errors.synonyms import _rows, meant_by, normalized
from dala.gpu.compute.lang.parser import FUNCTIONS
from dala.media.filters.declarations import declared, filter_names
from dala.media.scene.nodes.property_types import PLACES
from dala.media.sources.easing import EASINGS
from dala.media.transitions import TRANSITIONS
from dala.media.video.options import EncodeOptions

KINDS = {
    "filters": filter_names(),
    "functions": FUNCTIONS,
    "transitions": TRANSITIONS,
    "easings": EASINGS,
    "places": PLACES,
}


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("transitions", "crossfade", ["dissolve"]),
        ("transitions", "xfade", ["dissolve"]),
        ("transitions", "FadeIn", ["fade"]),
        ("filters", "cvtColor", ["grayscale"]),
        ("filters", "GaussianBlur", ["gaussian_blur"]),
        ("filters", "hflip", ["flip"]),
        ("filters", "addWeighted", ["blend", "video_mix"]),
        ("filters", "colour_matrix", ["color_matrix"]),
        ("filters", "brigthness", ["brightness"]),
        ("filters", "blurr", ["blur"]),
        ("filters", "zzzz", []),
        ("filters", "solarize", []),
        ("functions", "cross", []),
        ("functions", "asin", []),
        ("functions", "lerp", ["mix"]),
        ("functions", "distance", ["length"]),
        ("functions", "sqr", ["sqrt"]),
        ("easings", "easeInOut", ["ease-in-out"]),
        ("easings", "easy ease", ["ease-in-out"]),
        ("places", "north_west", ["top-left"]),
        ("places", "", []),
    ],
)
def test_what_a_name_means(kind, name, expected):
    assert meant_by(name, KINDS[kind]) == expected


def test_the_advice_is_a_question():
    assert did_you_mean("crossfade", TRANSITIONS) == "Did you mean 'dissolve'?"
    assert did_you_mean("cross", FUNCTIONS) == ""


def test_every_row_names_something_that_is_there():
    parameters = {p.name for spec in declared().values() for p in spec.parameters}
    fits = {"contain", "cover", "stretch"}
    codecs = {"h264", "hevc", "av1", "vp9", "prores"}
    assert all(codec in EncodeOptions.specs()["codec"].doc for codec in codecs)
    known = {"-"} | parameters | fits | codecs
    for names in KINDS.values():
        known |= set(names)
    rows = list(_rows())
    assert [name for name, _ in rows if name not in known] == []
    assert len({name for name, _ in rows}) == len(rows)
    for name, words in rows:
        assert len({normalized(word) for word in words}) == len(words), name


def test_a_long_name_costs_little():
    assert meant_by("x" * 1_000_000, [f"node-{i}" for i in range(1000)]) == []
