"""Waiting for a surface: Ctrl-C, nested waits, finalizers, forks and many threads.

Everything is drawn with alpha, so that a command that is lost and one that is drawn twice both
change the picture.
"""

from __future__ import annotations

import dis
import gc
import os
import random
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import dala
from dala.errors import CommandError, CommandTimeout
from dala.gpu import command, create_surface
from dala.gpu.raster import Canvas
from tests.gpu.surface.test_threads import Job, needs_signals, until

WIDTH, HEIGHT = 90, 70
PACKAGE = str(Path(dala.__file__).parent)

RNG = np.random.default_rng(1)
SPRITE = RNG.integers(0, 256, (9, 13, 4), np.uint8)
PHOTO = RNG.integers(0, 256, (20, 30, 4), np.uint8)


def shape(n):
    """A command that blends, as (call, arguments)."""
    rng = random.Random(n)
    x, y, color = rng.randrange(60), rng.randrange(50), (rng.randrange(256), n % 256, 99, 120)
    return rng.choice(
        [
            ("fill_rect", (x, y, 20, 15, color)),
            ("fill_circle", (x, y, 11, color)),
            ("draw_line", (x, y, 70, 3, color)),
            ("fill_triangle", (x, y, 80, 20, 5, 60, color)),
            ("draw_circle", (x, y, 17, color)),
            ("blit", (1, x, y)),
            ("draw_image", (1, x, y, 50, 41)),
        ]
    )


def encoded(call, arguments):
    name = {"draw_image": "image_blit"}.get(call, call)
    return getattr(command, f"encode_{name}")(*arguments)


class Drawing:
    """A surface, and a canvas that draws the same commands without a queue."""

    def __init__(self):
        self.number = 0
        self.surface = create_surface(WIDTH, HEIGHT)
        self.renderer = self.surface._renderer
        self.expected = Canvas(WIDTH, HEIGHT)
        for target in (self.surface, self.expected):
            target.load_sprite(1, SPRITE.tobytes(), 13, 9)
            target.load_image(1, PHOTO.tobytes(), 30, 20)
        self.draw(40)  # compiles everything
        self.check()

    def draw(self, count, *, batch=False):
        shapes = [shape(self.number + n) for n in range(count)]
        self.number += count
        data = [encoded(*one) for one in shapes]
        if batch:
            self.surface.batch(data)
        else:
            for call, arguments in shapes:
                getattr(self.surface, call)(*arguments)
        self.expected.run(b"".join(data))

    def check(self):
        assert self.surface.get_pixels() == self.expected.pixels.tobytes()
        assert self.surface.errors == []


@pytest.fixture
def drawing():
    made = Drawing()
    with made.surface:
        yield made


# nested waits ---------------------------------------------------------------------------------
def test_waiting_ends_with_the_block():
    """A surface from outside of the block may be busy for long."""
    with create_surface(4, 4) as s:
        going, done = threading.Event(), threading.Event()
        s._renderer.post(lambda: (going.set(), done.wait(60)))
        going.wait(60)
        with pytest.raises(CommandTimeout), dala.limits(time=0.01):
            s.synchronize()
        with pytest.raises(CommandTimeout), dala.limits(time=0.01):
            s.to_array()
        done.set()
        s.synchronize()


def test_function_called_on_the_render_thread_may_wait(drawing):
    s = drawing.surface
    drawing.draw(1)
    want = drawing.expected.pixels.tobytes()

    def work():
        s.synchronize()
        s.with_pixels(lambda pixels: None)
        return (
            s.get_pixels(),
            drawing.renderer.call(lambda: s.read_pixels(0, 0, WIDTH, HEIGHT)),
            s.size,
        )

    assert drawing.renderer.call(work) == (want, want, (WIDTH, HEIGHT))


def test_error_of_a_waited_call_leaves_the_surface_usable(drawing):
    for _ in range(3):
        drawing.draw(2)
        with pytest.raises(CommandError, match="inside the surface"):
            drawing.surface.read_pixels(50, 50, 1000, 1)
        drawing.check()


def test_surface_closed_on_its_render_thread(drawing):
    drawing.renderer.call(drawing.surface.close)
    until(lambda: not drawing.renderer._thread.is_alive())
    with pytest.raises(dala.FreedError):
        drawing.surface.synchronize()


def test_commands_are_drawn_without_a_waiting_caller(drawing):
    for _ in range(3):
        drawing.draw(5)
        until(lambda: drawing.renderer.idle)
        assert np.array_equal(drawing.renderer.canvas.pixels, drawing.expected.pixels)


# many threads ---------------------------------------------------------------------------------
def test_many_threads_draw_and_wait():
    """Each thread blends its own columns, and reads them back between its steps."""
    rounds, threads = 100, 4
    with create_surface(8 * threads, 8) as s:
        s.clear("black")

        def work(n):
            expected = Canvas(8 * threads, 8)
            expected.run(command.encode_clear("black"))
            for k in range(rounds):
                color = (k, 200 - k, 7 * n, 100)
                data = [command.encode_fill_rect(8 * n, y, 8, 1, color) for y in range(8)]
                expected.run(b"".join(data))
                if k % 3:
                    s.batch(data)
                else:
                    for y in range(8):
                        s.fill_rect(8 * n, y, 8, 1, color)
                if k % 5 == 0:
                    s.present()
                got = np.frombuffer(s.read_pixels(8 * n, 0, 8, 8), np.uint8).reshape(8, 8, 4)
                assert np.array_equal(got, expected.pixels[:, 8 * n : 8 * n + 8])

        for job in [Job(lambda n=n: work(n)) for n in range(threads)]:
            job.end()
        assert s.errors == []


@pytest.mark.long
def test_waiting_is_not_starved_by_threads_that_draw():
    with create_surface(64, 64) as s:
        stop = threading.Event()

        def draw():
            while not stop.is_set():
                s.fill_circle(30, 30, 25, (1, 2, 3, 4))

        jobs = [Job(draw) for _ in range(2)]
        for n in range(20):
            s.fill_rect(0, 0, 1, 1, (n, 0, 0))
            assert s.read_pixels(0, 0, 1, 1)[0] == n
        stop.set()
        for job in jobs:
            job.end()


# interrupts -----------------------------------------------------------------------------------
#: Instructions after which the interpreter handles signals, and runs finalizers from 3.12 on.
INTERRUPTIBLE = {"CALL", "CALL_KW", "CALL_FUNCTION_EX", "RESUME", "JUMP_BACKWARD"}


class Stepper:
    """Raises KeyboardInterrupt at the n-th place in the library where a signal may be handled."""

    def __init__(self, place):
        self.place, self.last, self.count = place, {}, 0

    def __call__(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            before = self.last.get(id(frame))
            self.last[id(frame)] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if before in INTERRUPTIBLE:
                self.count += 1
                if self.count == self.place:
                    sys.settrace(None)
                    raise KeyboardInterrupt
        elif event == "call":
            self.last[id(frame)] = "RESUME"
        return self

    def run(self, work):
        """Return True if the interrupt was raised before the work was done."""
        sys.settrace(self)
        try:
            work()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False


@pytest.mark.parametrize("call", ["synchronize", "get_pixels", "to_array"])
def test_interrupt_at_every_place_of_a_wait_loses_nothing(drawing, call):
    place, raised = 0, True
    while raised:
        place += 1
        drawing.draw(3, batch=bool(place % 2))
        raised = Stepper(place).run(getattr(drawing.surface, call))
        drawing.check()
    assert place > 15


@needs_signals
def test_interrupts_at_random_times(drawing):
    rng = random.Random(5)
    caught, rung = 0, []

    def handler(*_):
        rung.append(True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    gc.disable()  # interrupts in callbacks of the collector are printed and lost
    try:
        for n in range(500):
            for _ in range(n % 4 + 1):
                drawing.draw(rng.randrange(1, 30), batch=bool(rng.randrange(2)))
            try:
                rung.clear()
                signal.setitimer(signal.ITIMER_REAL, rng.randrange(1, 400) * 1e-6)
                while not rung:
                    drawing.surface.synchronize()
                    if rng.randrange(2):
                        drawing.surface.to_array()
            except KeyboardInterrupt:
                caught += 1
            if n % 10 == 0:
                drawing.check()
    finally:
        gc.enable()
        signal.signal(signal.SIGALRM, before)
    assert caught > 100
    drawing.check()


@needs_signals
def test_signal_handler_that_waits_during_a_wait(drawing):
    s, ran = drawing.surface, []

    def handler(*_):
        s.fill_rect(0, 0, 1, 1, (1, 2, 3, 0))  # blends nothing
        s.read_pixels(0, 0, 1, 1)
        s.to_array()
        ran.append(True)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for n in range(50):
            ran.clear()
            drawing.draw(20)
            signal.setitimer(signal.ITIMER_REAL, (n + 1) * 1e-5)
            while not ran:
                s.synchronize()
            drawing.check()
    finally:
        signal.signal(signal.SIGALRM, before)


# finalizers and forks -------------------------------------------------------------------------
def test_finalizers_that_draw_and_wait_on_any_thread(drawing):
    ran = []

    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            drawing.surface.fill_rect(0, 0, 5, 5, (1, 2, 3, 0))
            drawing.surface.synchronize()
            drawing.surface.read_pixels(0, 0, 1, 1)
            ran.append(threading.current_thread().name)

    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for n in range(150):
            Cycle()
            drawing.draw(n % 3 + 1)
            Cycle()
            drawing.surface.synchronize()
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert len(ran) == 300
    drawing.check()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forks_while_other_threads_draw_and_wait(drawing):
    stop = threading.Event()

    def work():
        while not stop.is_set():
            drawing.surface.fill_rect(0, 0, 9, 9, (1, 2, 3, 0))
            drawing.surface.synchronize()

    jobs = [Job(work) for _ in range(2)]
    for _ in range(15):
        child = os.fork()
        if child == 0:
            try:
                drawing.surface.synchronize()
            except dala.FreedError:
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        drawing.draw(2)
        drawing.surface.synchronize()
    stop.set()
    for job in jobs:
        job.end()
    drawing.check()
