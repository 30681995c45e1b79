"""Input of the window presenter: real X events, sent by xdotool to a virtual screen."""

import ctypes
import importlib.util
import os
import subprocess

import pytest

import dala
from dala.gpu.presenters.quad import fit_rect
from tests.gpu.presenters.screens import Program, needed, require, screen, until
from tests.gpu.presenters.xdnd import FileDrag
from tests.support.engines import NO_ADAPTER

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Xvfb is for Unix")

WIDE, HIGH = 120, 80

#: Opens a window, and collects events as lists of some of their fields.
SETUP = f"""
import glfw, dala
from dala.gpu.presenters.window_loop import loop
s = dala.gpu.create_surface({WIDE}, {HIGH}, show="window")
s.clear("navy"); s.present(); s.synchronize()
handle = s.presenter._window._handle
fields = "event_type", "x", "y", "button", "buttons", "modifiers", "key", "data", "dy"
seen = []
def take():
    seen.extend(s.events())
    return [[event.get(field) for field in fields] for event in seen]
"""
RESIZE = "loop.call(lambda: glfw.set_window_size(handle, {}, {}))"


@pytest.fixture(scope="module")
def display():
    require(importlib.util.find_spec("glfw"), "glfw is not installed (pip install glfw)")
    require(any(d.backend == "webgpu" for d in dala.devices()), NO_ADAPTER)
    needed("xdotool", "xdotool")
    with screen(400, 300) as name:
        yield name


@pytest.fixture(scope="module")
def process(display):
    """A process with a window at the upper left corner."""
    made = Program(DISPLAY=display, WAYLAND_DISPLAY="")
    try:
        do(display, "mousemove", 300, 250)
        made.run(SETUP)
        until(lambda: made.run("out = s.presenter.shown") == 1, "the frame")
        until(lambda: "focus" in names(made), "the focus")
        yield made
        made.run("s.close()")
        assert made.end() == 0
    finally:
        made.end()


@pytest.fixture
def program(display, process):
    """That process; the pointer is beside its window, and no event waits."""
    process.run(RESIZE.format(WIDE, HIGH))
    until(lambda: process.run("out = s.presenter._window.size") == [WIDE, HIGH], "the size")
    do(display, "mousemove", 300, 250)
    until(lambda: process.run("take(); out = s.pointer.inside") is False, "the pointer outside")
    process.run("loop.call(lambda: None); take(); seen.clear()")
    return process


def do(display, *words, env=None):
    """Run xdotool."""
    environment = {**os.environ, "DISPLAY": display, **(env or {})}
    subprocess.run(["xdotool", *map(str, words)], env=environment, check=True)


def names(program):
    return [event[0] for event in program.run("out = take()")]


def seen(program, count):
    """Wait for so many events and return them."""
    until(lambda: len(program.run("out = take()")) >= count, f"{count} events")
    return program.run("out = take(); seen.clear()")


def test_mouse(display, program):
    do(display, "mousemove", 30, 40)
    until(lambda: program.run("take(); out = list(s.pointer)") == [30, 40, []], "the pointer")
    assert names(program)[0] == "pointer_enter"
    program.run("loop.call(lambda: None); take(); seen.clear()")
    do(display, "mousedown", 1, "mousedown", 3, "mouseup", 1, "mousemove", 50, 60, "mouseup", 3)
    assert [e[:6] for e in seen(program, 5)] == [
        ["pointer_down", 30, 40, 1, [1], []],
        ["pointer_down", 30, 40, 2, [1, 2], []],
        ["pointer_up", 30, 40, 1, [2], []],
        ["pointer_move", 50, 60, 0, [2], []],
        ["pointer_up", 50, 60, 2, [], []],
    ]
    do(display, "click", "--repeat", 2, "--delay", 10, 1)
    assert [e[0] for e in seen(program, 5)] == [
        *(["pointer_down", "pointer_up"] * 2),
        "double_click",
    ]
    do(display, "click", 4)
    assert [(e[0], e[-1]) for e in seen(program, 1)] == [("wheel", -100)]
    do(display, "mousemove", 300, 250)
    until(lambda: "pointer_leave" in names(program), "the end of the pointer")
    assert program.run("out = s.pointer.inside") is False


def test_positions_in_a_resized_window(display, program):
    program.run(RESIZE.format(WIDE * 2 + 60, HIGH * 2))
    until(lambda: "resize" in names(program), "the size")
    (shown,) = program.run(
        "out = [[e[k] for k in ('width', 'height', 'pixel_ratio')] for e in seen]"
    )
    assert shown == [WIDE * 2 + 60, HIGH * 2, 1]
    do(display, "mousemove", 50, 60)
    until(lambda: program.run("take(); out = list(s.pointer)") == [10, 30, []], "the move")
    do(display, "mousemove", 10, 60)  # beside the picture, which begins at 30
    until(lambda: program.run("take(); out = s.pointer.x") == -10, "the move")
    assert program.run("out = s.pointer.inside") is False


def test_keys(display, program):
    do(display, "mousemove", 30, 40)
    until(lambda: program.run("out = s.pointer.inside"), "the pointer")
    do(display, "keydown", "Left", "keydown", "a")
    until(lambda: program.run("out = sorted(s.keys)") == ["ArrowLeft", "a"], "the keys")
    do(display, "keyup", "Left", "keyup", "a")
    until(lambda: program.run("out = sorted(s.keys)") == [], "their release")
    program.run("take(); seen.clear()")
    do(display, "key", "shift+b", "space", "Return", "ctrl+v", "F5")
    found = [[e[0], e[6] or e[7], e[5]] for e in seen(program, 15) if e[0] != "key_up"]
    assert found == [
        ["key_down", "Shift", ["Shift"]],
        ["key_down", "B", ["Shift"]],
        ["char", "B", ["Shift"]],
        ["key_down", " ", []],
        ["char", " ", []],
        ["key_down", "Enter", []],
        ["key_down", "Control", ["Control"]],
        ["key_down", "v", ["Control"]],
        ["key_down", "F5", []],
    ]
    do(display, "type", "hé!")
    until(lambda: [e[7] for e in program.run("out = take()") if e[0] == "char"] == [*"hé!"], "text")


def test_text_of_all_planes_and_composed(display, program):
    do(display, "mousemove", 30, 40)
    until(lambda: program.run("out = s.pointer.inside"), "the pointer")
    do(display, "type", "--delay", 50, "日ß😀", env={"LC_ALL": "C.UTF-8"})
    do(display, "key", "dead_acute", "e")

    def typed():
        return "".join(e[7] for e in program.run("out = take()") if e[0] == "char")

    until(lambda: typed() == "日ß😀é", "the text")


def test_focus_that_is_lost_releases_keys(display, program):
    do(display, "mousemove", 30, 40)
    do(display, "keydown", "a", "mousedown", 1)
    held = "out = [sorted(s.keys), list(s.pointer.buttons)]"
    until(lambda: program.run(held) == [["a"], [1]], "the key")
    root = program.run("""
from ctypes import CDLL, c_ulong, c_void_p
x = CDLL("libX11.so.6")
x.XDefaultRootWindow.restype = c_ulong
out = x.XDefaultRootWindow(c_void_p(loop.call(glfw.get_x11_display)))
""")
    window = program.run("out = loop.call(lambda: glfw.get_x11_window(handle))")
    do(display, "windowfocus", root)
    until(lambda: "blur" in names(program), "the blur")
    assert program.run(held) == [[], []]
    do(display, "keyup", "a", "mouseup", 1, "windowfocus", window)
    until(lambda: "focus" in names(program), "the focus")
    assert program.run(held) == [[], []]


def test_files_that_are_dropped(display, program):
    """A file manager drags two files over the window, and lets them go."""
    window = program.run("out = loop.call(lambda: glfw.get_x11_window(handle))")
    do(display, "mousemove", 30, 40)  # as the drag of a person does
    drag = FileDrag(display)
    drag.drop(window, 30, 40, "file:///tmp/a%20b.svg", "file:///tmp/%C3%A9.png")
    drag.close()
    until(lambda: "drop" in names(program), "the drop")
    (dropped,) = program.run("out = [e for e in seen if e['event_type'] == 'drop']")
    assert dropped["files"] == ["/tmp/a b.svg", "/tmp/é.png"]
    assert (dropped["x"], dropped["y"], dropped["text"]) == (30, 40, "")


def test_positions_on_a_screen_of_high_density(display):
    """The window is twice as large; the surface and its positions are as ever."""
    with screen(400, 300) as name:
        x = ctypes.CDLL("libX11.so.6")
        x.XOpenDisplay.restype = ctypes.c_void_p
        x.XDefaultRootWindow.restype = ctypes.c_ulong
        connection = ctypes.c_void_p(x.XOpenDisplay(name.encode()))
        root, text = ctypes.c_ulong(x.XDefaultRootWindow(connection)), b"Xft.dpi:\t192\n"
        string, resources = map(ctypes.c_ulong, (31, 23))  # XA_STRING, XA_RESOURCE_MANAGER
        x.XChangeProperty(connection, root, resources, string, 8, 0, text, len(text))
        x.XCloseDisplay(connection)
        made = Program(DISPLAY=name, WAYLAND_DISPLAY="")
        try:
            made.run(SETUP)
            until(lambda: made.run("out = s.presenter.shown") == 1, "the frame")
            assert made.run("out = s.scale") == 2
            assert made.run("out = s.presenter._window.size") == [WIDE * 2, HIGH * 2]
            do(name, "mousemove", 100, 50)
            until(lambda: made.run("take(); out = list(s.pointer)") == [50, 25, []], "the pointer")
            (shown,) = made.run("out = [e for e in seen if e['event_type'] == 'resize']")
            assert [shown[k] for k in ("width", "height", "pixel_ratio")] == [WIDE, HIGH, 2]
            made.run("s.close()")
            assert made.end() == 0
        finally:
            made.end()


def test_properties(display, program):
    assert program.run("s.clipboard = 'höla'; out = s.clipboard") == "höla"
    assert (
        program.run("out = loop.call(lambda: glfw.get_clipboard_string(None).decode())") == "höla"
    )
    program.run("s.title = 'a new one'")
    assert program.run("out = loop.call(lambda: glfw.get_window_title(handle))") == "a new one"
    for shape in ("crosshair", "none", "text", "default"):
        program.run(f"s.cursor = {shape!r}")
    hidden = (
        "out = loop.call(lambda: glfw.get_input_mode(handle, glfw.CURSOR)) == glfw.CURSOR_HIDDEN"
    )
    assert program.run(hidden) is False
    assert program.run(f"s.cursor = 'none'; {hidden}") is True
    program.run("s.fullscreen = True; s.fullscreen = True")
    until(lambda: program.run("out = s.presenter._window.size") == [400, 300], "the whole screen")
    do(display, "mousemove", 200, 150)  # the middle
    place = fit_rect((WIDE, HIGH), (400, 300))
    wanted = [200 * WIDE / place[2], (150 - place[1]) * HIGH / place[3]]
    until(lambda: program.run("take(); out = list(s.pointer)[:2]") == wanted, "the move")
    program.run("s.fullscreen = False")
    until(lambda: program.run("out = s.presenter._window.size") == [WIDE, HIGH], "the window")
    assert program.run("out = [str(e) for e in s.errors]") == []


def test_run_until_the_viewer_closes_the_window(display, program):
    """A click is drawn, and the window's close button ends the loop."""
    from tests.gpu.presenters.test_window import close_like_a_user, grab

    window = program.run("out = loop.call(lambda: glfw.get_x11_window(handle))")
    program.run("""
import threading
@s.on("pointer_down")
def pressed(event):
    s.fill_rect(int(event["x"]), int(event["y"]), 10, 10, "red")
closes = []
s.on("close", closes.append)
runner = threading.Thread(target=s.run, args=(lambda s, dt: None,))
runner.start()
""")
    do(display, "mousemove", 30, 40, "click", 1)
    until(lambda: (grab(display, WIDE, HIGH)[45, 35] == (255, 0, 0)).all(), "the square")
    close_like_a_user(display, window)
    until(lambda: program.run("out = runner.is_alive()") is False, "the end of run")
    assert program.run("out = [s.closed, len(closes)]") == [False, 1]
