"""Clip times: which moment of a source is shown, forwards, backwards, in loops and at curves."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dala.errors import ParameterError
from dala.media.sources import feed as views
from dala.media.sources.clip import ClipTimes
from dala.media.sources.easing import easing
from dala.media.sources.open import open_source
from dala.media.sources.seconds import Moment, seconds_of
from dala.media.sources.speed import Speed
from tests.media.video.clips import encode, number_of, numbered

COUNT, RATE = 40, 10


def picture(value):
    return np.full((2, 3, 3), value, np.uint8)


def shown(found):
    return None if found is None else int(np.asarray(found)[0, 0, 0])


def expected(t, *, speed=1, trim=(0, None), runs=1, freeze=True):
    """The number of the picture at a time, counted out from the words of the docs."""
    first, last = trim[0], Fraction(COUNT, RATE) if trim[1] is None else trim[1]
    span = last - first
    at = t * speed if speed >= 0 else span + t * speed
    low, high = (0, span * runs) if speed >= 0 else (span - span * runs, span)
    if runs == np.inf:
        low, high = -np.inf, np.inf
    backward = speed < 0
    if at < low or (at == low and backward):
        at, backward = low, False
        if not freeze:
            return None
    elif at > high or (at == high and not backward):
        at, backward = high, True
        if not freeze:
            return None
    at = at % span if not (backward and at % span == 0) else span
    frames = (first + at) * RATE
    return int(-(-frames // 1) - 1 if backward else frames // 1)


@given(
    times=st.lists(st.fractions(0, 12, max_denominator=40), min_size=2, max_size=6),
    speed=st.sampled_from([1, 2, Fraction(1, 2), -1, Fraction(-3, 2)]),
    trim=st.sampled_from([(0, None), (1, None), (Fraction(1, 2), 3), (0, 2)]),
    loop=st.sampled_from([False, True, 2, 3]),
    freeze=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_lists_and_generators_in_any_order(times, speed, trim, loop, freeze):
    options = {"fps": RATE, "speed": speed, "trim": trim, "loop": loop, "freeze": freeze}
    runs = np.inf if loop is True else loop or 1
    pictures = [picture(n) for n in range(COUNT)]
    with (
        open_source(pictures, **options) as listed,
        open_source(lambda: iter(pictures), **options) as made,
    ):
        for t in times:
            want = expected(t, speed=speed, trim=trim, runs=runs, freeze=freeze)
            assert shown(listed.at(t)) == want
            assert shown(made.at(t)) == want


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    path = tmp_path_factory.mktemp("clip") / "a.mp4"
    return encode(path, numbered(COUNT), rate=RATE, options={"g": "12", "bf": "2"}) or path


@pytest.mark.parametrize("loop", [False, True, 2])
@pytest.mark.parametrize("trim", [(0, None), (Fraction(7, 10), Fraction(21, 10))])
def test_a_video_backwards_mirrors_it(clip, monkeypatch, trim, loop):
    """Every frame once, the last one first, in blocks smaller than the distance of key frames."""
    monkeypatch.setattr(views, "_HELD_BYTES", 1)
    runs = np.inf if loop is True else loop or 1
    want = [expected(Fraction(n, 10), speed=-1, trim=trim, runs=runs) for n in range(90)]
    with open_source(clip, speed=-1, trim=trim, loop=loop) as source:
        played = [number_of(source.at(Fraction(n, 10))) for n in range(90)]
        assert played == want
        for n in (30, 5, 44, 0, 89, 12):  # and the same when seeking
            assert number_of(source.at(Fraction(n, 10))) == want[n]


def test_a_speed_that_turns_around(clip):
    """Two seconds forward, a jump to backwards, then standing still."""
    speed = [(0, 1), (2, 1), (2, -1), (3, -1), (3, 0)]
    with open_source(clip, speed=speed) as source:
        found = [number_of(source.at(Fraction(n, 10))) for n in range(40)]
    assert found == [*range(20), *range(19, 9, -1), *[9] * 10]


def test_one_picture_frozen_and_times_of_the_node(clip):
    with open_source(clip, freeze=1.25, start="0:02") as source:
        assert source.at(1.9) is None
        assert {number_of(source.at(t)) for t in (2, 3, 30)} == {12}


@pytest.mark.parametrize("name", ["linear", "quad-in", "ease-in-out", "steps(4)", "bounce-out"])
def test_the_position_is_the_integral_of_the_speed(name):
    speed = Speed([(1, 2), (3, -1, name), (5, 4)])
    curve = easing(name)

    def value(t):
        if t < 3:
            return 2 if t < 1 else 2 - 3 * (t - 1) / 2
        return -1 + 5 * curve((t - 3) / 2) if t < 5 else 4

    cells = np.linspace(0, 6, 60_001)
    middles = (cells[:-1] + cells[1:]) / 2
    sums = np.concatenate([[0], np.cumsum([value(t) for t in middles])]) * 1e-4
    for t in (0.5, 1, 2.25, 3, 3.75, 4.5, 5, 6):
        exact = speed.position(Fraction(t))
        assert float(exact) == pytest.approx(sums[round(t * 1e4)], abs=3e-4)
    assert speed.position(Fraction(3)) == 3  # straight parts are exact: 2 + the triangle of 1


def test_pieces_follow_the_mapping():
    for clip in (
        ClipTimes(Fraction(1), Fraction(20), (Fraction(1), Fraction(3)), Speed(2), 3),
        ClipTimes(None, None, (Fraction(1), Fraction(3)), Speed(-1), None),
        ClipTimes(Fraction(2), None, (Fraction(0), None), Speed([(0, 0), (2, 2)])),
    ):
        found = clip.pieces(Fraction(0), Fraction(8), Fraction(4))
        assert found
        assert all(a.end <= b.start for a, b in pairwise(found))
        for piece in found:
            middle = (piece.start + piece.end) / 2
            place = clip.place(middle, Fraction(4))
            between = (piece.source_start + piece.source_end) / 2
            assert place is not None
            assert not place.over
            assert abs(place.time - between) < Fraction(1, 1000)
    assert ClipTimes(runs=2).natural_end(Fraction(4)) == 8
    assert ClipTimes(speed=Speed([(0, 0), (2, 2)])).natural_end(Fraction(4)) == 3


def test_borders_are_exact():
    clip = ClipTimes(Fraction(1, 3), Fraction(2, 3))
    for n, there in ((9, False), (10, True), (19, True), (20, False)):
        assert clip.exists(Moment.of(Fraction(n, 30))) is there


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1:02:03.5", Fraction(7447, 2)), ("90", 90), ("0:90", None), ("1/3", Fraction(1, 3)),
     ("02:30,25", Fraction(601, 4)), ("soon", None), ("1:60:00", None), (True, None),
     (float("inf"), None), ("2s", 2), ("500ms", Fraction(1, 2)), ("1m30s", 90), ("1h 5 min", 3900),
     ("m", None), ("", None), ("1e999999999", None)],
)  # fmt: skip
def test_times_as_text(text, seconds):
    if seconds is None:
        with pytest.raises(ParameterError, match="x must be a time in seconds"):
            seconds_of(text, "call", "x")
    else:
        assert seconds_of(text, "call", "x") == seconds


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trim": (2, 1)}, "0 <= from < to"),
        ({"trim": 3}, "trim must be \\(from, to\\)"),
        ({"trim": (0, 9)}, "trim must be within the 4 s of the source, got 9.0"),
        ({"freeze": 5}, "freeze must be within the 4 s of the source"),
        ({"freeze": -1}, "freeze must be True, False or the time"),
        ({"freeze": 1, "loop": True}, "do not apply"),
        ({"loop": 0}, "loop must be True, False or the number of runs"),
        ({"loop": 1.5}, "loop must be"),
        ({"speed": []}, "speed must be a number from -1000"),
        ({"speed": [(1, 1), (0, 1)]}, "key frames are in order"),
        ({"speed": [(0, 1, "fast")]}, "no easing 'fast'"),
        ({"start": 2, "end": 1}, "end must be after the start at 2 s"),
        ({"end": 2, "duration": 1}, "end or duration, not both"),
        ({"duration": 0}, "duration must be above 0"),
        ({"start": 1, "offset": 1}, "not both"),
        ({"end": "hide", "freeze": True}, "not both"),
    ],
)
def test_refused(clip, options, message):
    with pytest.raises(ParameterError, match=message):
        open_source(clip, **options)


def test_what_cannot_go_back_or_start_over():
    with pytest.raises(ParameterError, match="cannot be read backwards"):
        open_source(iter([picture(1)]), speed=-1)
    with pytest.raises(ParameterError, match="no end to start over"):
        open_source(lambda t: picture(1), loop=3)
    with open_source(lambda t: picture(round(t * 10)), speed=-1, trim=(1, 2), fps=10) as source:
        assert [shown(source.at(Fraction(n, 10))) for n in range(12)] == [
            *range(19, 9, -1), 10, 10,
        ]  # fmt: skip
