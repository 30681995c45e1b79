"""Surface.run: its frames, its ends, and its pace."""

import asyncio
import signal
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dala
from dala.errors import CommandError
from dala.gpu.input.running import Pace
from tests.gpu.presenters.screens import PATIENCE

FAST = 1000


@pytest.fixture
def s():
    with dala.gpu.create_surface(8, 8) as made:
        yield made


def frames(s, count, act):
    """Return a draw that acts at a frame, and the numbers of the frames it drew."""
    drawn = []

    def draw(surface, dt):
        assert surface is s
        assert dt > 0
        drawn.append(dt)
        if len(drawn) == count:
            act()

    return draw, drawn


def test_stop_ends_it_and_the_surface_stays(s):
    draw, drawn = frames(s, 5, s.stop)
    s.run(draw, fps=FAST)
    assert len(drawn) == 5
    assert drawn[0] == pytest.approx(1 / FAST, abs=0.1)
    s.clear("red")
    s.synchronize()
    assert s.stats["frames"] == 5
    draw, drawn = frames(s, 2, s.stop)
    s.run(draw, fps=FAST)  # again
    assert len(drawn) == 2


def test_close_within_draw_ends_it(s):
    draw, drawn = frames(s, 3, s.close)
    s.run(draw, fps=FAST)
    assert len(drawn) == 3
    assert s.closed


@pytest.mark.parametrize("how", ["stop", "close", "event"])
def test_another_thread_ends_it(s, how):
    ends = {"stop": s.stop, "close": s.close, "event": lambda: s.post_event(CLOSE)}
    worker = threading.Thread(target=ends[how])

    def draw(s, dt):
        if worker.ident is None:
            worker.start()

    s.run(draw, fps=0.5)  # the wait for the next frame is ended
    worker.join()
    assert s.closed is (how == "close")


CLOSE = {"event_type": "close"}


def test_a_close_event_ends_it_before_the_next_frame(s):
    seen = []
    s.on("close", lambda event: seen.append("close"))
    draw, drawn = frames(s, 2, lambda: s.post_event(CLOSE))
    s.run(draw, fps=FAST)
    assert len(drawn) == 2
    s.close()
    assert seen == ["close"]  # once


def test_stop_before_run_counts(s):
    s.stop()
    s.run(lambda s, dt: pytest.fail("drawn"), fps=FAST)
    draw, drawn = frames(s, 1, s.stop)
    s.run(draw, fps=FAST)
    assert len(drawn) == 1


def test_handlers_are_called_between_frames(s):
    order = []
    s.on("key_down", lambda event: order.append((event["key"], threading.get_ident())))

    def draw(s, dt):
        order.append(("draw", threading.get_ident()))
        if len(order) == 1:
            poster = threading.Thread(
                target=s.post_event, args=({"event_type": "key_down", "key": "a"},)
            )
            poster.start()
            poster.join()
            assert len(order) == 1
        else:
            s.stop()

    s.run(draw, fps=FAST)
    here = threading.get_ident()
    assert order == [("draw", here), ("a", here), ("draw", here)]


def test_draw_may_take_events_itself(s):
    seen = []

    def draw(s, dt):
        if s.stats["frames"] < 3:
            s.post_event({"event_type": "key_down", "key": str(s.stats["frames"])})
        seen.extend(event["key"] for event in s.events())
        if s.stats["frames"] == 4:
            s.stop()

    s.run(draw, fps=FAST)
    assert seen == ["0", "1", "2"]


def test_exceptions_end_it_with_their_traceback(s):
    def draw(s, dt):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        s.run(draw)
    assert caught.traceback[-1].name == "draw"
    draw, drawn = frames(s, 1, s.stop)
    s.run(draw, fps=FAST)
    assert len(drawn) == 1


def test_a_command_that_fails_ends_it(s):
    def draw(s, dt):
        s.draw_image(99, 0, 0, 4, 4)

    with pytest.raises(dala.DalaError, match="99"):
        s.run(draw, fps=FAST)


def test_run_within_run_is_refused(s):
    with pytest.raises(CommandError, match="the surface is running already"):
        s.run(lambda s, dt: s.run(print))


async def sleeps(s, dt):
    """Nobody would wait for it."""


@pytest.mark.parametrize("fps", [0, -1, float("nan"), float("inf"), "60", True, None, 1001])
def test_wrong_arguments(s, fps):
    with pytest.raises(CommandError, match="run: fps must be a number above 0, up to 1000"):
        s.run(print, fps=fps)
    for draw in (fps, lambda: None, lambda s: None, sleeps):
        with pytest.raises(CommandError, match=r"run: draw must be a plain function draw\(s, dt\)"):
            s.run(draw)


def test_ctrl_c_ends_it_cleanly(tmp_path):
    code = """
import dala, os, signal
s = dala.gpu.create_surface(8, 8)
def draw(s, dt):
    if s.stats["frames"] == 3:
        os.kill(os.getpid(), signal.SIGINT)
s.run(draw, fps=100)
print("after", s.closed)
"""
    if sys.platform == "win32":
        pytest.skip("signals of Unix")
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "after False\n", "")
    assert signal.getsignal(signal.SIGINT) is not None


def test_run_async_beside_other_tasks(s):
    async def program():
        draw, drawn = frames(s, 3, s.stop)
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0)
                ticks += 1

        other = asyncio.ensure_future(tick())
        await s.run_async(draw, fps=FAST)
        other.cancel()
        return len(drawn), ticks

    drawn, ticks = asyncio.run(program())
    assert drawn == 3
    assert ticks > 0


# pace -------------------------------------------------------------------------------------------
@given(st.floats(0.5, 1000), st.floats(0, 1e6), st.lists(st.floats(0, 3), max_size=60))
def test_pace_never_drifts(fps, start, delays):
    pace = Pace(fps, start)
    now = due = start
    for delay in delays:  # in frames: how long after it was due a frame ended
        now = max(due, now) + delay * pace.period
        before, due = due, pace.due(now)
        assert due > before
        assert due == start + pace.frame / fps or due == start + pace.frame * pace.period
        assert due >= now - 1.001 * pace.period  # at most one frame is made up for
        if delay < 0.9:
            assert due - before < 1.001 * pace.period  # none is left out


def test_steady_frames_are_all_due():
    pace = Pace(60, 0.0)
    assert [pace.due(n / 60 + 0.001) for n in range(6000)] == pytest.approx(
        [(n + 1) / 60 for n in range(6000)], abs=1e-9
    )
