"""Advice for names of other libraries and for misspelled ones: right or absent."""

from __future__ import annotations

import pytest

import dala.media.audio
import dala.media.video
from dala.cli import COMMANDS
from dala.errors import did_you_mean
from dala.errors.synonyms import _rows, meant_by, normalized
from dala.gpu import Path, Surface
from dala.gpu.compute.lang.parser import FUNCTIONS
from dala.gpu.input.calls import CURSORS
from dala.gpu.input.events import EVENT_TYPES
from dala.media import Frame, Scene
from dala.media.audio import Audio
from dala.media.filters.declarations import declared, filter_names
from dala.media.scene.nodes.property_types import PLACES
from dala.media.scene.nodes.shape import ShapeNode
from dala.media.scene.nodes.text import TextNode
from dala.media.sources.easing import EASINGS
from dala.media.text.fonts.faces import GENERIC
from dala.media.transitions import TRANSITIONS
from dala.media.video import Reader
from dala.media.video.encode import CODECS
from dala.media.video.options import EncodeOptions

KINDS = {
    "filters": filter_names(),
    "functions": FUNCTIONS,
    "transitions": TRANSITIONS,
    "easings": EASINGS,
    "places": PLACES,
    "fonts": GENERIC,
    "codecs": CODECS,
    "cursors": CURSORS,
    "shapes": ShapeNode.PROPERTIES,
    "commands": COMMANDS,
    "events": EVENT_TYPES,
    "surfaces": dir(Surface),
    "paths": dir(Path),
    "sounds": dir(Audio),
    "scenes": dir(Scene),
    "texts": TextNode.PROPERTIES,
    "frames": dir(Frame),
    "readers": dir(Reader),
    "media": dir(dala.media),
    "packages": dir(dala),
    "video": dir(dala.media.video),
    "audio": dir(dala.media.audio),
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
        ("functions", "dFdx", []),
        ("functions", "norm", ["length"]),
        ("functions", "sqr", ["sqrt"]),
        ("easings", "easeInOut", ["ease-in-out"]),
        ("easings", "easy ease", ["ease-in-out"]),
        ("places", "north_west", ["top-left"]),
        ("places", "", []),
        ("places", "tl", ["top-left"]),
        ("fonts", "Helvetica", ["sans-serif"]),
        ("fonts", "Courier New", ["monospace"]),
        ("fonts", "Comic Sans", []),
        ("events", "click", ["pointer_down"]),
        ("events", "mousemove", ["pointer_move"]),
        ("events", "keyPressed", ["key_down"]),
        ("cursors", "hand", ["pointer"]),
        ("shapes", "color", ["fill"]),
        ("shapes", "stroke_width", ["width"]),
        ("codecs", "x265", ["hevc"]),
        ("codecs", "avc1", ["h264"]),
        ("codecs", "xvid", ["mpeg4"]),
        ("commands", "convert", ["filter"]),
        ("commands", "ffprobe", ["info"]),
        ("commands", "join", ["concat"]),
        ("commands", "trim", ["cut"]),
        ("events", "mousedown", ["pointer_down"]),
        ("events", "MouseMotion", ["pointer_move"]),
        ("surfaces", "mouse", ["pointer"]),
        ("surfaces", "rotate", ["transformed"]),
        ("paths", "bezierCurveTo", ["cubic_to"]),
        ("sounds", "delay", ["at"]),
        ("scenes", "write_videofile", ["render_to"]),
        ("filters", "bloom", []),
        ("functions", "crossfade", ["mix"]),
        ("texts", "font_size", ["size"]),
        ("texts", "fontsize", ["size"]),
        ("texts", "alpha", ["opacity"]),
        ("texts", "font_family", ["font"]),
        ("texts", "text_align", ["align"]),
        ("texts", "angle", ["rotation"]),
        ("texts", "fill", ["color"]),
        ("texts", "border_radius", ["radius"]),
        ("texts", "line_spacing", ["line_height"]),
        ("frames", "size", ["height", "width"]),
        ("frames", "to_numpy", ["numpy"]),
        ("frames", "to_image", ["to_pil"]),
        ("frames", "mode", ["format"]),
        ("readers", "frame_count", ["frames"]),
        ("media", "imread", ["Frame"]),
        ("packages", "video", ["media"]),
        ("video", "VideoFileClip", ["open"]),
        ("video", "VideoWriter", ["write"]),
        ("audio", "sine", ["tone"]),
    ],
)
def test_what_a_name_means(kind, name, expected):
    assert meant_by(name, KINDS[kind]) == expected


def test_the_advice_is_a_question():
    assert did_you_mean("crossfade", TRANSITIONS) == "Did you mean 'dissolve'?"
    assert did_you_mean("outer_space", FUNCTIONS) == ""


def test_every_row_names_something_that_is_there():
    parameters = {p.name for spec in declared().values() for p in spec.parameters}
    fits = {"contain", "cover", "stretch"}
    codecs = {"h264", "hevc", "av1", "vp9", "prores"}
    assert all(codec in EncodeOptions.specs()["codec"].doc for codec in codecs)
    known = {"-", "crf", "codec", "no-audio", "from", "out"} | parameters | fits | codecs
    for names in KINDS.values():
        known |= set(names)
    rows = list(_rows())
    assert [name for name, _ in rows if name not in known] == []
    assert len({name for name, _ in rows}) == len(rows)
    for name, words in rows:
        assert len({normalized(word) for word in words}) == len(words), name


def test_a_long_name_costs_little():
    assert meant_by("x" * 1_000_000, [f"node-{i}" for i in range(1000)]) == []
