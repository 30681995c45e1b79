"""The time line: play, pause, step, seek, loop; videos and cameras."""

from __future__ import annotations

import threading
from fractions import Fraction

import numpy as np
import pytest

from dala.errors import ParameterError
from dala.studio.cards.chain import ChainRunner
from dala.studio.document.tab import Tab
from dala.studio.sources.source import StudioSource


class Clip(StudioSource):
    """Ten pictures in two seconds."""

    kind = "video"
    rate, duration = Fraction(5), Fraction(2)

    def at(self, time):
        return np.full((2, 2), int(time * 5), np.uint8)


@pytest.fixture
def tab():
    return Tab("t1", Clip(), 10)


def test_steps_go_by_whole_pictures(tab):
    tab.step(1)
    assert tab.time() == Fraction(1, 5)
    tab.seek(Fraction(73, 100))
    tab.step(1)
    assert tab.time() == Fraction(4, 5)
    tab.step(-3)
    assert tab.time() == Fraction(1, 5)
    tab.step(-9)
    assert tab.time() == 0
    tab.step(99)
    assert tab.time() == Fraction(9, 5)


def test_playing_ends_at_the_last_picture(tab, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("dala.studio.document.tab.monotonic", lambda: now[0])
    tab.play()
    now[0] += 0.5
    assert tab.time(lambda: now[0]) == Fraction(1, 2)
    assert tab.playing
    now[0] += 5
    assert tab.time(lambda: now[0]) == Fraction(9, 5)
    assert not tab.playing
    tab.play()  # from the beginning again
    assert tab.time(lambda: now[0]) == 0


def test_a_loop_repeats_its_part(tab, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("dala.studio.document.tab.monotonic", lambda: now[0])
    tab.loop = Fraction(1, 2), Fraction(1)
    tab.play()
    assert tab.time(lambda: now[0]) == Fraction(1, 2)
    now[0] = 10.2
    assert tab.time(lambda: now[0]) == Fraction(7, 10)
    assert tab.playing


def test_a_video_is_played_and_stops(page, folder):
    page.ask("open", path=str(folder / "ramp.mp4"))
    tab = page.state["tabs"][-1]
    assert (tab["kind"], tab["duration"], tab["rate"], tab["seekable"]) == (
        "video",
        1.0,
        10.0,
        True,
    )
    page.ask("view", width=64, height=48, codec="rgba")
    page.ask("play")
    page.message("state", lambda state: state.get("playing") is True)
    page.until(lambda: page.state["playing"] is False)
    assert page.state["time"] == pytest.approx(0.9)
    last = page.picture(lambda p: p.header["time"] == pytest.approx(0.9))
    assert abs(int(last.pixels[5, 5, 0]) - 200) <= 2
    times = [p.header["time"] for p in page.pictures]
    assert times == sorted(times)


def test_every_frame_is_found_by_its_time(page, folder):
    page.ask("open", path=str(folder / "ramp.mp4"))
    page.ask("view", width=64, height=48, codec="rgba")
    for number in (7, 2, 9, 0, 5):
        at = number / 10
        page.ask("seek", time=at)
        picture = page.picture(lambda p, at=at: p.header["time"] == pytest.approx(at))
        assert abs(int(picture.pixels[5, 5, 0]) - (20 + 20 * number)) <= 2
    page.ask("step", frames=-1)
    picture = page.picture(lambda p: p.header["time"] == pytest.approx(0.4))
    assert abs(int(picture.pixels[5, 5, 0]) - 100) <= 2


def test_loops_are_checked(session):
    session.do({"do": "open", "path": "ramp.mp4"})
    session.do({"do": "loop", "from": 0.5, "to": 7})
    assert session.state()["loop"] == [0.5, 1.0]
    assert session.state()["time"] == 0.5
    for wrong in ({"from": 0.5, "to": 0.5}, {"from": 1}, {"from": "a", "to": 1}):
        with pytest.raises(ParameterError):
            session.do({"do": "loop", **wrong})
    session.do({"do": "loop"})
    assert session.state()["loop"] is None


def test_a_camera_is_live(page):
    assert {"id": "test", "title": "Test camera"} in page.ask("cameras")["cameras"]
    page.ask("open", camera="test")
    page.ask("view", width=64, height=36, codec="rgba")
    assert page.state["tabs"][-1]["live"] is True
    first = page.picture()
    page.picture(lambda p: not np.array_equal(p.pixels, first.pixels))
    page.ask("pause")
    assert page.state["playing"] is True


def test_samples_open(session):
    session.do({"do": "open", "sample": "coffee"})
    session.do({"do": "open", "sample": "coffee", "kind": "video"})
    kinds = [(t["title"], t["kind"]) for t in session.state()["tabs"]]
    assert kinds == [("coffee", "picture"), ("coffee", "video")]
    with pytest.raises(ParameterError):
        session.do({"do": "open", "sample": "tea"})


def test_a_tab_plays_on_while_new_cards_are_compiled(page, folder, monkeypatch):
    ready, prepare = threading.Event(), ChainRunner.prepare_ahead

    def slow(*given):
        assert ready.wait(30)
        prepare(*given)

    def inverted(picture):
        level = 20 + 20 * round(picture.header["time"] * 10)
        shown = int(picture.pixels[16, 24, 0])
        assert min(abs(shown - level), abs(shown - 255 + level)) < 5
        return abs(shown - level) > 5

    monkeypatch.setattr(ChainRunner, "prepare_ahead", slow)
    page.ask("open", path=str(folder / "ramp.mp4"))
    page.ask("loop", **{"from": 0, "to": 1})
    page.ask("view", width=48, height=32, codec="rgba")
    page.ask("play")
    page.picture()
    page.ask("add", kind="filter", name="invert")
    begin = len(page.pictures)
    page.until(lambda: len(page.pictures) >= begin + 3)
    assert not any(map(inverted, page.pictures[begin:]))
    ready.set()
    page.picture(inverted)
    page.ask("pause")
