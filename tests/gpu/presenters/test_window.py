"""The window presenter on a virtual X server with software Vulkan."""

import ctypes
import importlib.util
import os
import sys

import numpy as np
import pytest
from PIL import ImageGrab

import dala
from dala.gpu.presenters.quad import fit_rect
from tests.gpu.presenters.screens import (
    CLOSE,
    PICTURE,
    Program,
    difference,
    over_black,
    picture,
    require,
    screen,
    until,
)
from tests.support.engines import NO_ADAPTER

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Xvfb is for Unix")

WIDE, HIGH = 120, 80
OPEN = f"s = dala.gpu.create_surface({WIDE}, {HIGH}, show='window', title='a $fps test')"

X11_WINDOW = "loop.call(lambda: glfw.get_x11_window({}.presenter._window._handle))"


@pytest.fixture(scope="module")
def display():
    require(importlib.util.find_spec("glfw"), "glfw is not installed (pip install glfw)")
    require(any(d.backend == "webgpu" for d in dala.devices()), NO_ADAPTER)
    with screen(400, 300) as name:
        yield name


@pytest.fixture(scope="module")
def program(display):
    """A process with that display. It exits with a window open, and must exit cleanly."""
    made = Program(DISPLAY=display, WAYLAND_DISPLAY="")
    try:
        made.run(PICTURE + "import gc, threading, glfw, dala")
        made.run("from dala.gpu.presenters.window_loop import loop")
        yield made
        made.run(OPEN + "; s.clear('red'); s.present()")
        sees(display, np.full((HIGH, WIDE, 3), (255, 0, 0), np.uint8))
        assert made.end() == 0
        until(lambda: not grab(display, WIDE, HIGH).any(), "an empty screen")
    finally:
        made.end()


@pytest.fixture
def shown(program):
    """The process, with one surface ``s`` in a window."""
    program.run(OPEN)
    yield program
    program.run("s.close()")
    assert threads(program) == ["MainThread"]


def threads(program):
    return program.run("out = sorted(t.name for t in threading.enumerate())")


def grab(display, w, h):
    """Return the upper left corner of the screen, where windows are without a window manager."""
    return np.asarray(ImageGrab.grab((0, 0, w, h), xdisplay=display).convert("RGB"))


def sees(display, wanted):
    h, w = wanted.shape[:2]
    until(lambda: difference(grab(display, w, h), wanted) <= CLOSE, "the picture on the screen")


def present(program, w, h, seed):
    program.run(f"s.set_pixels(picture({w}, {h}, {seed})); s.present(); s.synchronize()")
    rgba = np.frombuffer(bytes.fromhex(program.run("out = s.get_pixels().hex()")), np.uint8)
    rgba = rgba.reshape(h, w, 4)
    assert np.array_equal(rgba, picture(w, h, seed))
    return over_black(rgba)


def test_window_shows_the_pixels(display, shown):
    sees(display, present(shown, WIDE, HIGH, 0))
    sees(display, present(shown, WIDE, HIGH, 3))
    title = "out = loop.call(lambda: glfw.get_window_title(s.presenter._window._handle))"
    assert shown.run(title) == "a $fps test"
    assert shown.run("out = [str(e) for e in s.errors]") == []


def test_only_presented_frames_are_shown(display, shown):
    before = present(shown, WIDE, HIGH, 1)
    sees(display, before)
    shown.run("s.clear('white'); s.synchronize()")
    shown.run("loop.call(lambda: None); loop.call(lambda: None)")  # one whole pass in between
    assert difference(grab(display, WIDE, HIGH), before) <= CLOSE


def resize_window(program, w, h):
    program.run(f"loop.call(lambda: glfw.set_window_size(s.presenter._window._handle, {w}, {h}))")
    until(lambda: program.run("out = s.presenter._window.size") == [w, h], "the window's size")


@pytest.mark.parametrize(("w", "h"), [(WIDE * 2, HIGH * 2 + 40), (WIDE * 2 + 60, HIGH * 2)])
def test_resized_window_keeps_the_aspect(display, shown, w, h):
    resize_window(shown, w, h)
    shown.run("s.clear('#c83232'); s.fill_rect(0, 0, 60, 80, '#3232c8'); s.present()")
    wanted = np.zeros((h, w, 3), np.uint8)
    x, y, pw, ph = fit_rect((WIDE, HIGH), (w, h))
    assert (pw, ph) == (WIDE * 2, HIGH * 2)
    wanted[y : y + ph, x : x + pw] = (200, 50, 50)
    wanted[y : y + ph, x : x + pw // 2] = (50, 50, 200)
    edge = x + pw // 2  # skips the two columns that the filter blends

    def seen():
        got = grab(display, w, h)
        return all(
            difference(a, b) <= CLOSE
            for a, b in [
                (got[:, : edge - 2], wanted[:, : edge - 2]),
                (got[:, edge + 2 :], wanted[:, edge + 2 :]),
            ]
        )

    until(seen, "the letterboxed picture")


def test_resized_surface_is_shown(display, shown):
    shown.run(f"s.resize({WIDE // 2}, {HIGH // 2}); s.clear('#10e020'); s.present()")
    sees(display, np.full((HIGH, WIDE, 3), (16, 224, 32), np.uint8))
    shown.run(f"s.resize({WIDE}, {HIGH})")
    sees(display, present(shown, WIDE, HIGH, 5))


def test_dropped_frames_are_counted(shown):
    shown.run("""
held, go = threading.Event(), threading.Event()
worker = threading.Thread(target=lambda: loop.call(lambda: (held.set(), go.wait(300))))
before = s.stats["dropped"], s.stats["frames"], s.presenter.shown
worker.start(); held.wait(300)
for _ in range(10): s.present()
s.synchronize()
during = s.stats["dropped"] - before[0]
go.set(); worker.join()
""")
    assert shown.run("out = during") == 9
    until(lambda: shown.run("out = s.presenter.shown - before[2]") == 1, "the newest frame")
    assert shown.run("out = [s.stats['dropped'] - before[0], s.stats['frames'] - before[1]]") == [
        9,
        10,
    ]


def close_like_a_user(display, window):
    """Send the message of a window manager whose close button is clicked."""
    x = ctypes.CDLL("libX11.so.6")
    x.XOpenDisplay.restype = ctypes.c_void_p
    x.XInternAtom.restype = ctypes.c_ulong
    connection = ctypes.c_void_p(x.XOpenDisplay(display.encode()))
    atom = {
        name: x.XInternAtom(connection, name.encode(), 0)
        for name in ("WM_PROTOCOLS", "WM_DELETE_WINDOW")
    }
    event = (ctypes.c_long * 24)()  # an XClientMessageEvent in an XEvent
    event[0], event[4], event[5], event[6] = 33, window, atom["WM_PROTOCOLS"], 32
    event[7] = atom["WM_DELETE_WINDOW"]
    assert x.XSendEvent(connection, ctypes.c_ulong(window), 0, 0, event)
    x.XCloseDisplay(connection)


def test_closed_window_ends_the_presenter_only(display, shown):
    window = shown.run(f"out = {X11_WINDOW.format('s')}")
    assert shown.run("out = dala.gpu.wait_closed(s, 0.05)") is False
    close_like_a_user(display, window)
    assert shown.run("out = dala.gpu.wait_closed(s, 300)") is True
    wanted = present(shown, WIDE, HIGH, 2)
    until(lambda: not grab(display, WIDE, HIGH).any(), "an empty screen")
    assert wanted.any()
    assert shown.run("out = [s.closed, s.presenter.closed, s.stats['dropped']]")[:2] == [
        False,
        True,
    ]
    until(lambda: threads(shown) == ["MainThread", "dala-render"], "the end of the window's thread")


def test_windows_side_by_side(display, program):
    program.run("""
a = dala.gpu.create_surface(50, 40, show="window", vsync=False)
b = dala.gpu.create_surface(60, 30, show="window")
for one, color in ((a, "red"), (b, "lime")):
    one.clear(color); one.present(); one.synchronize()
del one
""")
    until(
        lambda: program.run("out = [a.presenter.shown, b.presenter.shown]") == [1, 1],
        "both windows",
    )
    program.run("p = b.presenter; b.close()")
    assert program.run("out = [p.closed, a.presenter.closed]") == [True, False]
    sees(display, np.full((40, 50, 3), (255, 0, 0), np.uint8))
    program.run("p = a.presenter; del a; gc.collect()")  # closes when collected
    until(lambda: program.run("out = p.closed"), "the window of a forgotten surface")
    until(lambda: threads(program) == ["MainThread"], "the end of all threads")
    until(lambda: not grab(display, 100, 100).any(), "an empty screen")


def test_windows_on_the_main_thread(display, program):
    """As on macOS: waiting on the main thread runs the windows."""
    program.run("""
from dala.gpu.presenters import window, window_loop
window.MAIN_ONLY = window_loop.MAIN_ONLY = True
refused = []
def elsewhere():
    try:
        dala.gpu.create_surface(20, 20, show="window")
    except dala.errors.DeviceUnavailable as error:
        refused.append(str(error))
worker = threading.Thread(target=elsewhere)
worker.start(); worker.join()
m = dala.gpu.create_surface(50, 40, show="window")
m.clear("red"); m.present(); m.synchronize()
""")
    assert "only on the main thread" in program.run("out = refused")[0]
    assert program.run("out = m.presenter.shown") == 0
    assert "dala-window" not in threads(program)
    pump = "out = [dala.gpu.wait_closed(m, 0), m.presenter.shown]"
    until(lambda: program.run(pump) == [False, 1], "the frame")
    sees(display, np.full((40, 50, 3), (255, 0, 0), np.uint8))
    assert program.run("out = dala.gpu.wait_closed(m, 0.2)") is False
    close_like_a_user(display, program.run(f"out = {X11_WINDOW.format('m')}"))
    assert program.run("out = dala.gpu.wait_closed(m, 300)") is True
    program.run("m.close(); window.MAIN_ONLY = window_loop.MAIN_ONLY = False")
    until(lambda: not grab(display, 100, 100).any(), "an empty screen")


def test_thread_that_stays(display, program):
    """As on Windows: the thread of glfw outlives its windows, and opens the next one."""
    program.run("""
from dala.gpu.presenters import window_loop
window_loop.KEEPS_THREAD = True
idents = []
for color in ("red", "lime"):
    one = dala.gpu.create_surface(50, 40, show="window")
    idents.append(loop.call(threading.get_ident))
    one.close()
foreign = loop.call(lambda: glfw.create_window(30, 20, "of another package", None, None))
k = dala.gpu.create_surface(50, 40, show="window")
k.clear("lime"); k.present()
idents.append(loop.call(threading.get_ident))
""")
    assert len(set(program.run("out = idents"))) == 1
    sees(display, np.full((40, 50, 3), (0, 255, 0), np.uint8))
    program.run("k.close()")
    assert "dala-window" in threads(program)
    assert program.run("out = loop.call(lambda: glfw.get_window_size(foreign))") == [30, 20]
    program.run("loop.call(lambda: glfw.destroy_window(foreign))")
    program.run("window_loop.KEEPS_THREAD = False; loop.call(lambda: None)")
    until(lambda: threads(program) == ["MainThread"], "the end of all threads")


def test_error_without_a_display(monkeypatch):
    pytest.importorskip("glfw")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(
        dala.errors.DeviceUnavailable, match=r"found no display\. Set DISPLAY, or use show="
    ):
        dala.gpu.create_surface(8, 8, show="window")
    monkeypatch.setenv("DISPLAY", ":65000")
    with pytest.raises(dala.errors.DeviceUnavailable, match=r"no display .*X11"):
        dala.gpu.create_surface(8, 8, show="window")


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "glfw", None)
    with pytest.raises(dala.errors.DeviceUnavailable, match=r'pip install "dala-gpu\[view\]"'):
        dala.gpu.create_surface(8, 8, show="window")


@pytest.mark.parametrize("show", ["windows", "", 3])
def test_unknown_value_of_show(show):
    with pytest.raises(dala.errors.CommandError, match="show must be 'window', 'browser'"):
        dala.gpu.create_surface(8, 8, show=show)


def test_title_must_be_a_str():
    with pytest.raises(dala.errors.CommandError, match="title must be a str, got 7"):
        dala.gpu.create_surface(8, 8, show="window", title=7)


def test_wait_closed_without_a_presenter():
    with dala.gpu.create_surface(8, 8) as s:
        with pytest.raises(dala.errors.CommandError, match="no presenter to wait for"):
            dala.gpu.wait_closed(s)
        for bad in (-1, "soon", float("nan")):
            with pytest.raises(
                dala.errors.CommandError, match="timeout must be a number of seconds"
            ):
                dala.gpu.wait_closed(s, bad)
    assert dala.gpu.wait_closed(s) is True


def test_fit_rect_keeps_the_aspect_and_stays_inside():
    for frame in [(1, 1), (16384, 1), (1, 16384), (320, 200), (1920, 1080)]:
        for window in [(1, 1), (640, 480), (100, 900), (7, 5), (3840, 2160)]:
            x, y, w, h = fit_rect(frame, window)
            assert 1 <= w <= window[0]
            assert 1 <= h <= window[1]
            assert w == window[0] or h == window[1]
            assert abs(x - (window[0] - w - x)) <= 1
            assert abs(y - (window[1] - h - y)) <= 1
            if min(w, h) > 1:
                assert abs(w * frame[1] - h * frame[0]) <= max(frame)
