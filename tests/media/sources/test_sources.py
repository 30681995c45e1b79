"""Sources that are not files: pictures by time, ends, loops, failures, stalls."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dala
from dala.errors import ParameterError
from dala.media import Frame
from dala.media.sources.open import open_source

RATES = [24, 25, 30, 50, 60, Fraction(24000, 1001), Fraction(30000, 1001), Fraction(60000, 1001)]


def picture(number, height=2, width=3):
    """Return a picture that encodes its number."""
    made = np.zeros((height, width, 3), np.uint8)
    made[...] = [number >> 16 & 255, number >> 8 & 255, number & 255]
    return made


def number(shown):
    if shown is None:
        return None
    r, g, b = (int(n) for n in np.asarray(shown)[0, 0, :3])
    return r << 16 | g << 8 | b


def pictures(count):
    """Yield the same array again and again, drawn on each time."""
    canvas = np.zeros((2, 3, 3), np.uint8)
    for i in range(count):
        canvas[...] = picture(i)
        yield canvas


def source_threads():
    return [t for t in threading.enumerate() if t.name == "dala-source"]


@pytest.fixture(autouse=True)
def no_thread_stays():
    before = len(source_threads())
    yield
    if len(source_threads()) > before:
        gc.collect()
    end = time.monotonic() + 120
    while len(source_threads()) > before:
        assert time.monotonic() < end, "a thread is left"
        time.sleep(0.002)


# pictures by time -----------------------------------------------------------------------------
HOUR = 3600 * 30
NTSC = Fraction(30000, 1001)


@pytest.fixture(scope="module")
def hour():
    """An hour at 29.97 pictures a second, each of one pixel."""
    made = np.zeros((HOUR, 1, 1, 3), np.uint8)
    made[:, 0, 0, 0] = np.arange(HOUR) >> 16
    made[:, 0, 0, 1] = np.arange(HOUR) >> 8 & 255
    made[:, 0, 0, 2] = np.arange(HOUR) & 255
    return open_source(made, fps=NTSC)


@given(out=st.sampled_from(RATES), at=st.floats(0, 1))
@settings(max_examples=300)
def test_no_drift_over_an_hour(hour, out, at):
    n = int(at * 3590 * out)
    expected = n * NTSC // out  # whole numbers all the way
    assert number(hour.at(Fraction(n) / out)) == expected
    assert number(hour.at(float(n / out))) == expected  # floats mean the fraction they show


def test_the_same_rate_shows_each_picture_once(hour):
    for first in (0, 60_000, 100_000):
        seen = [number(hour.at(float(n / NTSC))) for n in range(first, first + 500)]
        assert seen == list(range(first, first + 500))


@pytest.mark.parametrize("rate", RATES)
def test_a_generator_in_order(rate):
    with open_source(pictures(200), fps=rate) as source:
        seen = [number(source.at(n / 30)) for n in range(int(200 / rate * 30))]
        assert seen == [n * rate // 30 for n in range(len(seen))]
        assert source.error is None


@given(
    speed=st.fractions(Fraction(1, 8), 8, max_denominator=40),
    offset=st.fractions(-2, 2, max_denominator=60),
    loop=st.booleans(),
    times=st.lists(st.fractions(0, 20, max_denominator=60), min_size=1, max_size=12),
)
@settings(max_examples=40, deadline=None)
def test_offset_speed_and_loop(speed, offset, loop, times):
    """A list, and a function that makes a generator, are the same source; in any order."""
    count, fps = 40, 10
    options = {"fps": fps, "speed": speed, "offset": offset, "loop": loop}
    listed = open_source([picture(i) for i in range(count)], **options)
    with open_source(lambda: pictures(count), **options) as made:
        for t in times:
            when = (t - offset) * speed
            expected = None
            if when >= 0:
                n = when * fps // 1
                expected = n % count if loop else min(n, count - 1)
            assert number(listed.at(t)) == expected
            assert number(made.at(t)) == expected
            assert listed.ended == made.ended == (not loop and when >= 4)


def test_pictures_with_times_of_their_own():
    items = [(1.0, picture(1)), (Fraction(4, 3), picture(2)), (3, picture(3))]
    for stream in (items, lambda: iter(items)):
        with open_source(stream) as source:
            seen = [number(source.at(t)) for t in (0, 0.99, 1, 1.33, 4 / 3, 2.9, 3, 9)]
            assert seen == [None, None, 1, 1, 2, 2, 3, 3]


def test_frames_keep_their_own_times():
    """Time 0 is that of the first frame, whatever its timestamps."""

    def frames():
        for i, pts in enumerate((1000, 1010, 1050)):
            yield Frame.from_array(picture(i), pts=pts, time_base="1/100", device="cpu")

    with open_source(frames, fps=7) as source:
        assert [number(source.at(t)) for t in (0, 0.09, 0.1, 0.49, 0.5)] == [0, 0, 1, 1, 2]


def test_hiding_at_the_end():
    for stream in ([picture(7)] * 3, lambda: iter([picture(7)] * 3)):
        with open_source(stream, fps=10, end="hide") as source:
            assert number(source.at(0.2999)) == 7
            assert not source.ended
            assert source.at(0.3) is None
            assert source.ended
            assert number(source.at(0.1)) == 7
            assert not source.ended


def test_a_still_picture():
    given = picture(5)
    source = open_source(given, offset=1)
    given[:] = 0
    assert source.at(0.5) is None
    assert [number(source.at(t)) for t in (1, 100)] == [5, 5]
    assert (source.size, source.ended, source.version) == ((3, 2), False, 1)


def test_a_function_of_time():
    asked = []

    def draw(t):
        asked.append(t)
        return picture(round(t * 100))

    source = open_source(draw, speed=2)
    assert [number(source.at(t)) for t in (0, 0.5, 0.5, 0.25)] == [0, 100, 100, 50]
    assert asked == [0.0, 1.0, 0.5]
    stepped = open_source(draw, fps=4)
    assert [number(stepped.at(t)) for t in (0.3, 0.4, 0.49, 0.5)] == [25, 25, 25, 50]
    assert stepped.version == 2


def test_versions_change_exactly_with_the_picture():
    with open_source(pictures(4), fps=10, end="hide", offset=0.1) as source:
        seen = [(source.at(t), source.version)[1] for t in (0, 0.1, 0.15, 0.2, 0.2, 0.45, 0.6, 0.7)]
    assert seen == [0, 1, 1, 2, 2, 3, 4, 4]


def test_kinds_of_pictures():
    image_module = pytest.importorskip("PIL.Image")
    gray = np.full((2, 3), 9, np.uint8)
    stream = [picture(1).astype(np.float32) / 255, gray, image_module.fromarray(picture(2)),
              Frame.from_array(picture(3), device="cpu"), gray > 0]  # fmt: skip
    for given_ in (stream, lambda: iter(stream)):
        with open_source(given_, fps=1) as source:
            found = [np.asarray(source.at(t)) for t in range(5)]
        assert [f.dtype for f in found] == [np.uint8] * 5
        np.testing.assert_array_equal(found[0], picture(1))
        np.testing.assert_array_equal(found[1], gray)
        np.testing.assert_array_equal(found[2], picture(2))
        np.testing.assert_array_equal(found[3], picture(3))
        np.testing.assert_array_equal(found[4], gray * 0 + 255)


def test_frames_are_on_the_device(engine_id, dala_device):
    def frames():
        planes = np.full((6, 4), 126, np.uint8)
        planes[4:] = 128
        yield Frame.from_array(planes, format="i420", device="reference")
        yield Frame.from_array(picture(4), device="reference")

    with open_source(frames, fps=1, device=dala_device) as source:
        first, second = source.at(0), source.at(1)
    assert (first.device, first.format, second.device) == (dala_device, "rgba", dala_device)
    assert np.abs(np.asarray(first)[..., :3].astype(int) - 128).max() <= 1
    assert number(second) == 4


def test_sizes():
    with open_source(pictures(2)) as source:
        assert source.size == (3, 2)  # before anything is shown
    changing = [picture(0), picture(1, 5, 7), picture(2)]
    with open_source(lambda: iter(changing), fps=1) as source:
        seen = [(source.at(t).shape, source.size) for t in range(3)]
    assert seen == [((2, 3, 3), (3, 2)), ((5, 7, 3), (7, 5)), ((2, 3, 3), (3, 2))]
    assert open_source(lambda t: picture(1, 9, 8)).size == (8, 9)


# failures --------------------------------------------------------------------------------
def failing(after):
    yield from pictures(after)
    raise OSError("the cable is out")


@pytest.mark.parametrize(("end", "shown"), [("freeze", 2), ("hide", None)])
def test_a_generator_that_fails(end, shown):
    with open_source(failing(3), fps=10, end=end) as source:
        assert [number(source.at(n / 10)) for n in range(3)] == [0, 1, 2]
        assert number(source.at(0.3)) == shown
        assert number(source.at(9)) == shown
        assert source.ended
        assert isinstance(source.error, OSError)
        assert source.errors == 1


def test_source_that_fails_at_once():
    for stream in (failing(0), lambda: 1 // 0, lambda: iter(())):
        with open_source(stream) as source:
            assert source.size is None
            assert source.at(0) is None
            assert source.ended
    assert source.errors == 0  # the last was only empty


def test_loop_continues_after_a_failure():
    with open_source(lambda: failing(3), fps=10, loop=True) as source:
        seen = [number(source.at(n / 10)) for n in range(9)]
        assert seen == [0, 1, 2] * 3
        assert isinstance(source.error, OSError)
        assert source.errors >= 2
    with open_source(lambda: failing(0), fps=10, loop=True) as source:
        assert source.at(5) is None


def test_invalid_pictures_are_skipped():
    def stream():
        yield picture(0)
        yield "no picture"
        yield picture(2)
        yield np.zeros((2, 2, 9), np.uint8)
        yield (0.1, picture(9))  # before the last
        yield picture(5)

    with open_source(stream(), fps=10) as source:
        assert [number(source.at(n / 10)) for n in range(6)] == [0, 0, 2, 2, 2, 5]
        assert source.errors == 3
        assert "in order" in str(source.error)

    def never():
        while True:
            yield None

    with open_source(never()) as source:  # ends by itself
        assert source.at(0) is None
        assert (source.ended, source.errors) == (True, 100)


def test_function_that_fails_sometimes():
    def draw(t):
        if t == 1:
            raise ValueError("not now")
        return None if t == 3 else picture(int(t))

    freeze, hide = open_source(draw), open_source(draw, stall="hide")
    assert [number(freeze.at(t)) for t in range(5)] == [0, 0, 2, None, 4]
    assert [number(hide.at(t)) for t in range(5)] == [0, None, 2, None, 4]
    assert (str(hide.error), hide.errors) == ("not now", 1)


@pytest.mark.parametrize(("stall", "shown"), [("freeze", 1), ("hide", None)])
def test_a_generator_that_stalls(stall, shown):
    asked, go = threading.Event(), threading.Event()

    def stream():
        yield from pictures(2)
        asked.set()
        go.wait(300)
        yield from (picture(12), picture(13))

    with open_source(stream(), fps=10, stall=stall, patience=1) as source:
        assert asked.wait(300)  # both pictures are there
        assert number(source.at(0.1)) == 1
        assert number(source.at(0.2)) == shown
        assert source.stalled
        assert "no picture" in str(source.error)
        begun = time.monotonic()
        for _ in range(1000):  # once is enough to have waited
            assert number(source.at(0.3)) == shown
        assert time.monotonic() - begun < 500
        assert source.errors == 1
        go.set()
        end = time.monotonic() + 120
        while number(source.at(0.3)) != 13:
            assert time.monotonic() < end
        assert not source.stalled


def test_a_generator_cannot_go_back():
    with open_source(pictures(10), fps=10) as source:
        assert number(source.at(0.5)) == 5
        assert number(source.at(0.2)) == 5
        assert "cannot go back" in str(source.error)
        assert number(source.at(0.6)) == 6
        assert source.errors == 1


# closing ----------------------------------------------------------------------------------
def test_closing():
    ended = []

    def stream():
        try:
            yield from pictures(100)
        finally:
            ended.append(True)

    source = open_source(stream)
    assert number(source.at(0)) == 0
    source.close()
    assert not source_threads()
    assert ended == [True]
    assert source.at(0) is None
    assert source.closed
    source.close()


def test_collected_source_stops_its_thread():
    source = open_source(pictures(100))
    gone = weakref.ref(source)
    assert len(source_threads()) == 1
    del source
    gc.collect()
    assert gone() is None  # and the fixture waits for the thread


def test_few_pictures_are_read_ahead():
    made = []

    def stream():
        for i in range(100):
            made.append(i)
            yield picture(i)

    with open_source(stream(), fps=10) as source:
        assert number(source.at(1)) == 10
        time.sleep(0.02)
        assert len(made) <= 16


def test_sources_are_counted():
    def now():
        gc.collect()
        return dala.diagnostics()["objects"].get("source", {"count": 0})["count"]

    before = now()
    sources = [open_source(pictures(3)), open_source(picture(1)), open_source(lambda t: None)]
    assert now() == before + 3
    sources[0].close()
    assert now() == before + 2
    sources.clear()
    assert now() == before


@pytest.mark.parametrize(
    ("stream", "options", "message"),
    [
        (pictures(1), {"loop": True}, "only once"),
        (iter([]), {"loop": True}, "only once"),
        ([], {}, "at least one picture, got \\[\\]."),
        ([picture(0), "x"], {}, "picture 1 of the list"),
        ([(1, picture(0)), (0, picture(1))], {}, "picture 1 of the list.*in order"),
        (None, {}, "got None."),
        (3.5, {}, "got 3.5."),
        (picture(0), {"fps": 0}, "fps must be above 0, got 0."),
        (picture(0), {"fps": "fast"}, "fps must be a number"),
        (picture(0), {"speed": 1001}, "speed must be a number from -1000 to 1000"),
        (picture(0), {"speed": float("nan")}, "speed must be a number"),
        (picture(0), {"offset": None}, "offset must be a number"),
        (picture(0), {"end": "stop"}, "end must be a time in seconds, 'freeze' or 'hide', got"),
        (picture(0), {"stall": True}, "stall must be 'freeze' or 'hide'"),
        (picture(0), {"patience": 0}, "patience must be above 0, got 0."),
    ],
)
def test_invalid_arguments(stream, options, message):
    with pytest.raises(ParameterError, match=message):
        open_source(stream, **options)


def test_pictures_that_are_refused():
    with pytest.raises(dala.errors.ShapeError, match="shape"):
        open_source(np.zeros((2, 2, 9), np.uint8))
    with pytest.raises(ParameterError, match="number"):
        open_source(picture(0)).at("now")

    async def frames():
        yield picture(0)

    with pytest.raises(ParameterError, match="Asynchronous"):
        open_source(frames())
