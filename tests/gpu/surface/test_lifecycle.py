"""Surfaces at interpreter exit, in forks and in finalizers: each in its own process.

A clean exit has code 0, prints nothing, and is fast.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

BEGIN = """
import gc, os, sys, threading, time
import dala
from dala.gpu import create_surface, command

def threads():
    return [t for t in threading.enumerate() if t.name == "dala-render"]

def until(fine):
    end = time.monotonic() + 120
    while not fine():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.001)
"""


def run(code, tmp_path, *, first=""):
    script = tmp_path / "ends.py"
    script.write_text(first + BEGIN + textwrap.dedent(code), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-X", "faulthandler", str(script)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "DALA_DEVICE": "cpu"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


EXITS = {
    "work queued": """
        made = [create_surface(300, 300) for _ in range(20)]
        for s in made:
            for n in range(3000):
                s.fill_circle(150, 150, 100, (n % 256, 0, 0, 9))
            s.present()
        print("end")
    """,
    "in a cycle": """
        s = create_surface(30, 30)
        s.me = [s]
        s.clear("red")
        print("end")
    """,
    "held by a module": """
        sys.modules["elsewhere"] = create_surface(30, 30)
        sys.modules["elsewhere"].clear("red")
        print("end")
    """,
    "sys.exit in a block": """
        with create_surface(30, 30) as s:
            s.clear("red")
            print("end")
            sys.exit(0)
    """,
    "never drawn on": """
        s = create_surface(30, 30)
        print("end")
    """,
    "daemon threads draw": """
        s = create_surface(300, 300)
        def draw():
            while True:
                s.fill_circle(150, 150, 100, (1, 2, 3, 9))
        def read():
            while True:
                s.get_pixels()
        for work in (draw, draw, read):
            threading.Thread(target=work, daemon=True).start()
        until(lambda: s._renderer.pending > 100)
        print("end")
    """,
    "paused": """
        s = create_surface(30, 30)
        paused, resume = s._renderer.pause()
        paused.acquire()
        s.clear("red")
        print("end")
    """,
    "errors of commands not raised": """
        s = create_surface(30, 30)
        s.blit(9, 1, 1)
        until(lambda: s.errors)
        print("end")
    """,
    "used by a later atexit function": """
        import atexit
        def late():
            try:
                s.get_pixels()
            except dala.FreedError:
                print("end")
        atexit.register(late)
        s = create_surface(30, 30)
    """,
}


@pytest.mark.parametrize("how", EXITS)
def test_interpreter_exits_cleanly(how, tmp_path):
    assert run(EXITS[how], tmp_path) == "end\n"


def test_no_thread_is_left_at_exit(tmp_path):
    first = "import atexit\natexit.register(lambda: print(len(threads())))  # called last\n"
    code = """
        made = [create_surface(64, 64) for _ in range(10)]
        for s in made:
            s.clear("red")
        print(len(threads()))
    """
    assert run(code, tmp_path, first=first) == "10\n0\n"


def test_surfaces_with_queued_work_are_collected(tmp_path):
    code = """
        for n in range(30):
            s = create_surface(100, 100)
            for _ in range(200):
                s.fill_rect(0, 0, 99, 99, (1, 2, 3, 4))
            del s
        until(lambda: not threads())

        class Knot:
            pass
        for n in range(30):
            knot = Knot()
            knot.me, knot.surface = knot, create_surface(10, 10)
            knot.surface.clear("red")
            del knot
        gc.collect()
        until(lambda: not threads())
        print(dala.diagnostics()["objects"]["surface"]["count"])
    """
    assert run(code, tmp_path) == "0\n"


def test_surfaces_are_collected_on_any_thread(tmp_path):
    """Finalizers run during puts and waits, on the thread that holds their locks."""
    code = """
        gc.set_threshold(1, 1, 1)
        def work():
            for n in range(60):
                s = create_surface(8, 8)
                s.me = s
                for _ in range(40):
                    s.clear("red")
                s.get_pixels()
        jobs = [threading.Thread(target=work) for _ in range(3)]
        for j in jobs: j.start()
        for j in jobs: j.join()
        gc.set_threshold(700, 10, 10)
        until(lambda: gc.collect() >= 0 and not threads())  # 0 while another collection runs
        print("end")
    """
    assert run(code, tmp_path) == "end\n"


def test_raised_error_does_not_keep_its_surface_alive(tmp_path):
    code = """
        def fails():
            s = create_surface(8, 8)
            s.blit(9, 0, 0)
            try:
                s.get_pixels()
            except dala.DalaError as error:
                assert s.errors == [error]
        for _ in range(10):
            fails()
        gc.collect()
        until(lambda: not threads())
        print("end")
    """
    assert run(code, tmp_path) == "end\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_process_creates_its_own_surfaces(tmp_path):
    code = """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks, in 3.12
        s = create_surface(20, 20)
        s.clear("red")
        other = create_surface(20, 20)
        for n in range(500):
            other.fill_circle(10, 10, 9, (1, 2, 3, 4))
        child = os.fork()
        if child == 0:
            assert s.closed and not threads()
            for act in (s.get_pixels, lambda: s.clear("blue"), lambda: s.size, s.present,
                        lambda: s.with_pixels(print)):
                try:
                    act()
                except dala.FreedError as error:
                    assert "forked" in str(error), error
                else:
                    raise AssertionError("it was not refused")
            other.close()
            with create_surface(4, 4) as mine:
                mine.clear("lime")
                assert mine.get_pixels() == b"\\0\\xff\\0\\xff" * 16
            left = create_surface(4, 4)
            left.clear("red")
            print("child", flush=True)
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        s.fill_rect(0, 0, 1, 1, "blue")
        assert s.read_pixels(0, 0, 2, 1) == b"\\0\\0\\xff\\xff" + b"\\xff\\0\\0\\xff"
        other.get_pixels()
        print("parent")
    """
    assert run(code, tmp_path) == "child\nparent\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_fork_inside_with_pixels(tmp_path):
    """The child is told that the surface is its parent's; in the parent the surface goes on."""
    code = """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks, in 3.12
        children = []
        s = create_surface(4, 4)
        try:
            s.with_pixels(lambda pixels: children.append(os.fork()))
        except dala.FreedError as error:
            assert "forked" in str(error) and children == [0], error
            print("child", flush=True)
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
        s.clear("lime")
        assert s.get_pixels() == b"\\0\\xff\\0\\xff" * 16
        print("parent")
    """
    assert run(code, tmp_path) == "child\nparent\n"


def test_uncaught_error_is_the_only_output(tmp_path):
    script = tmp_path / "fails.py"
    script.write_text(
        BEGIN + "s = create_surface(9, 9)\ns.clear('red')\nraise SystemExit(3)\n", encoding="utf-8"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, timeout=300)
    assert (done.returncode, done.stderr) == (3, b"")
