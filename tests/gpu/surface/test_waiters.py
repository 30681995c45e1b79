"""Whoever waits for a surface draws: interrupts, finalizers and others in the middle of it.

Everything is drawn with alpha, so that what is left out and what is drawn twice are both seen.
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
from dala.errors import CommandError
from dala.gpu import command, create_surface
from dala.gpu.raster import Canvas
from dala.gpu.render.worker import Hand
from tests.gpu.surface.test_threads import Job, needs_signals, until

WIDTH, HEIGHT = 90, 70
ROOM = str(Path(dala.__file__).parent)

RNG = np.random.default_rng(1)
SPRITE = RNG.integers(0, 256, (9, 13, 4), np.uint8)
PHOTO = RNG.integers(0, 256, (20, 30, 4), np.uint8)
OPAQUE = np.where(np.arange(4) == 3, 255, PHOTO).astype(np.uint8)


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
            ("draw_image", (2, x, y, 25, 30)),
            ("draw_image", (2, x, -500, 25, 30)),
        ]
    )


def encoded(call, arguments):
    name = {"draw_image": "image_blit"}.get(call, call)
    return getattr(command, f"encode_{name}")(*arguments)


def load(target):
    target.load_sprite(1, SPRITE.tobytes(), 13, 9)
    target.load_image(1, PHOTO.tobytes(), 30, 20)
    target.load_image(2, OPAQUE.tobytes(), 30, 20)


class Scene:
    """A surface, and a canvas that draws the same without a queue."""

    def __init__(self, seed=0):
        self.number = seed
        self.surface = create_surface(WIDTH, HEIGHT)
        self.renderer = self.surface._renderer
        self.twin = Canvas(WIDTH, HEIGHT)
        for target in (self.surface, self.twin):
            load(target)
        for n in range(40):  # all code is compiled now
            self.put(shape(n))
        self.check()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.surface.close()

    def put(self, *shapes, batch=False):
        data = [encoded(*one) for one in shapes]
        if batch:
            self.surface.batch(data)
        else:
            for call, arguments in shapes:
                getattr(self.surface, call)(*arguments)
        self.twin.run(b"".join(data))

    def some(self, count, **how):
        self.put(*(shape(self.number + n) for n in range(count)), **how)
        self.number += count

    def check(self):
        assert self.surface.get_pixels() == self.twin.pixels.tobytes()
        assert self.surface.errors == []
        # Nobody has the locks any more.
        found = []
        taken = (self.renderer._gate, self.renderer._busy)
        Job(lambda: found.extend([(k.acquire(timeout=30), k.release()) for k in taken])).end()
        assert found == [(True, None)] * 2

    def alone(self, monkeypatch):
        """Has the thread sleep on: whoever waits has to do everything, or is stuck."""
        until(lambda: self.renderer._alert and self.renderer.idle)
        monkeypatch.setattr(self.renderer, "_stir", lambda: None)


@pytest.fixture
def scene():
    with Scene() as made:
        yield made


# who draws ------------------------------------------------------------------------------------
def test_whoever_waits_draws_while_the_thread_sleeps(scene, monkeypatch):
    scene.alone(monkeypatch)
    before = scene.renderer.canvas.pixels.copy()
    scene.some(30)
    assert np.array_equal(scene.renderer.canvas.pixels, before)
    scene.check()
    scene.some(300, batch=True)  # many bytes
    assert isinstance(scene.renderer._items[0], Hand)
    assert scene.renderer._heavy > 4096
    scene.surface.synchronize()
    assert scene.renderer._heavy == scene.renderer.pending == 0
    scene.check()
    scene.some(1)
    assert scene.surface.read_pixels(0, 0, WIDTH, HEIGHT) == scene.twin.pixels.tobytes()


@pytest.mark.parametrize("call", ["present", "remove_image", "resize", "missing"])
def test_what_does_not_draw_is_left_to_the_thread(scene, call):
    threads = set()

    def noting(real):
        def note(*given):
            threads.add(threading.current_thread().name)
            return real(*given)

        return note

    for name in ("_obey", "fail"):
        setattr(scene.renderer, name, noting(getattr(scene.renderer, name)))
    for _ in range(20):
        scene.some(3)
        if call == "missing":
            scene.surface.blit(77, 0, 0)
        else:
            given = {"present": (), "remove_image": (9,), "resize": (WIDTH, HEIGHT)}[call]
            getattr(scene.surface, call)(*given)
        scene.some(3)
        if call == "missing":
            with pytest.raises(CommandError, match="no sprite 77"):
                scene.surface.synchronize()
        scene.surface.synchronize()
    assert threads == {"dala-render"}
    assert len(scene.surface.errors) == (20 if call == "missing" else 0)
    scene.surface._errors.clear()
    scene.check()


def test_what_is_put_without_waiting_is_drawn_soon_after_much_waiting(scene):
    for _ in range(30):
        scene.some(2)
        scene.surface.synchronize()
    for _ in range(3):
        scene.some(5)
        until(lambda: scene.renderer.idle)  # though nobody waits for it
        assert np.array_equal(scene.renderer.canvas.pixels, scene.twin.pixels)
    for _ in range(30):
        scene.some(2)
        scene.surface.synchronize()
    until(lambda: scene.renderer._alert)  # it does not look for ever


def test_requests_of_others_keep_their_turn(scene):
    seen = []
    for n in range(200):
        scene.surface.fill_rect(0, 0, 1, 1, (n, 0, 0))
        scene.renderer.later(lambda: seen.append(int(scene.renderer.canvas.pixels[0, 0, 0])))
        scene.surface.fill_rect(0, 0, 1, 1, (255, 0, 0))
        assert scene.surface.read_pixels(0, 0, 1, 1)[0] == 255
    assert seen == list(range(200))


def test_what_the_waiter_asks_for_may_ask_again(scene, monkeypatch):
    scene.alone(monkeypatch)
    s = scene.surface
    scene.some(1)
    want = scene.twin.pixels.tobytes()

    def work():
        s.synchronize()
        s.with_pixels(lambda pixels: None)
        return (
            s.get_pixels(),
            scene.renderer.ask(lambda: s.read_pixels(0, 0, WIDTH, HEIGHT)),
            s.size,
        )

    assert scene.renderer.reach(work) == (want, want, (WIDTH, HEIGHT))


def test_an_error_of_what_was_asked_is_raised_and_nothing_is_stuck(scene, monkeypatch):
    scene.alone(monkeypatch)
    for _ in range(3):
        scene.some(2)
        with pytest.raises(CommandError, match="not inside"):
            scene.surface.read_pixels(50, 50, 1000, 1)
        scene.check()


def test_destroyed_by_what_the_waiter_asks_for(scene):
    scene.renderer.reach(scene.surface.close)
    until(lambda: not scene.renderer._thread.is_alive())
    with pytest.raises(dala.FreedError):
        scene.surface.synchronize()


# many threads ---------------------------------------------------------------------------------
def test_many_threads_draw_and_wait():
    """Each blends its own column, in steps whose result it knows, and looks at it in between."""
    rounds, threads = 150, 4
    with create_surface(8 * threads, 8) as s:
        s.clear("black")

        def work(n):
            twin = Canvas(8 * threads, 8)
            twin.run(command.encode_clear("black"))
            for k in range(rounds):
                color = (k, 200 - k, 7 * n, 100)
                data = [command.encode_fill_rect(8 * n, y, 8, 1, color) for y in range(8)]
                twin.run(b"".join(data))
                if k % 3:
                    s.batch(data * (1 if k % 3 == 1 else 30))
                    for _ in range(0 if k % 3 == 1 else 29):
                        twin.run(b"".join(data))
                else:
                    for y in range(8):
                        s.fill_rect(8 * n, y, 8, 1, color)
                if k % 5 == 0:
                    s.present()
                got = np.frombuffer(s.read_pixels(8 * n, 0, 8, 8), np.uint8).reshape(8, 8, 4)
                assert np.array_equal(got, twin.pixels[:, 8 * n : 8 * n + 8])

        for job in [Job(lambda n=n: work(n)) for n in range(threads)]:
            job.end()
        assert s.errors == []


def test_waiting_is_not_starved_by_others_who_draw():
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
#: After these the interpreter looks for signals (and runs finalizers, from 3.12 on).
LOOKS = {"CALL", "CALL_KW", "CALL_FUNCTION_EX", "RESUME", "JUMP_BACKWARD"}


class Stepper:
    """Does something at the n-th place where an interrupt may come, in this library alone."""

    def __init__(self, place, act):
        self.place, self.act, self.last, self.count = place, act, {}, 0

    def __call__(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(ROOM):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            before = self.last.get(id(frame))
            self.last[id(frame)] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if before in LOOKS:
                self.count += 1
                if self.count == self.place:
                    sys.settrace(None)
                    self.act()
        elif event == "call":
            self.last[id(frame)] = "RESUME"
        return self

    def run(self, work):
        sys.settrace(self)
        try:
            work()
        finally:
            sys.settrace(None)
        return self.count


def interrupt():
    raise KeyboardInterrupt


WAYS = {
    "one": lambda scene: scene.some(1),
    "some": lambda scene: scene.some(5),
    "a batch": lambda scene: scene.some(6, batch=True),
    "an image": lambda scene: scene.put(
        ("clear", ((9, 8, 7, 255),)), ("draw_image", (1, 3, 4, 40, 50))
    ),
    "many": lambda scene: (
        scene.put(("clear", ((9, 8, 7, 255),))),
        scene.put(
            *[("fill_rect", (n % 60, n % 50, 9, 9, (n % 256, 9, 9, 50))) for n in range(300)],
            batch=True,
        ),
        scene.some(1),
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("awake", [False, True])
def test_an_interrupt_at_every_place_loses_nothing(scene, monkeypatch, way, awake):
    if not awake:
        scene.alone(monkeypatch)
    place, count = 0, 1
    while place < count:
        place += 1
        WAYS[way](scene)
        try:
            count = Stepper(place, interrupt).run(scene.surface.synchronize)
        except KeyboardInterrupt:
            count = place + 1
        scene.check()
    assert place > 25


def test_a_command_that_fails_is_told_once_wherever_an_interrupt_comes(scene):
    place, count = 0, 1
    while place < count:
        place += 1
        scene.some(2)
        scene.surface.blit(77, 0, 0)
        scene.some(2)
        try:
            count = Stepper(place, interrupt).run(scene.surface.synchronize)
        except CommandError:
            count = 0  # it was told in time
        except KeyboardInterrupt:
            count = place + 1
        with_error = 0
        try:
            scene.surface.synchronize()
        except CommandError:
            with_error = 1
        assert with_error <= 1
        assert len(scene.surface.errors) == 1
        scene.surface._errors.clear()
        scene.check()


@pytest.mark.parametrize("way", ["some", "an image"])
def test_somebody_who_waits_in_the_middle_of_it(scene, monkeypatch, way):
    """A finalizer, or a signal's handler, on the very thread that draws."""
    scene.alone(monkeypatch)
    s = scene.surface

    def act():
        s.synchronize()
        s.fill_rect(0, 0, 1, 1, (1, 2, 3, 0))  # blends nothing
        s.batch([command.encode_fill_rect(0, 0, 1, 1, (1, 2, 3, 0))] * 500)
        s.read_pixels(0, 0, 1, 1)
        s.to_array()

    place, count = 0, 1
    while place < count:
        place += 1
        WAYS[way](scene)
        count = Stepper(place, act).run(s.synchronize)
        count = place + 1 if count == place else 0
        scene.check()
    assert place > 25


@needs_signals
def test_interrupts_at_any_time(scene):
    """Real ones, from a clock: now and then into the drawing itself."""
    rng = random.Random(5)
    caught, rung = 0, []

    def raise_it(*_):
        rung.append(True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, raise_it)
    gc.disable()  # callbacks of other people's would swallow some, and complain
    try:
        for n in range(2000):
            for _ in range(n % 4 + 1):
                scene.some(rng.randrange(1, 30), batch=bool(rng.randrange(2)))
            try:
                rung.clear()
                signal.setitimer(signal.ITIMER_REAL, rng.randrange(1, 400) * 1e-6)
                while not rung:
                    scene.surface.synchronize()
                    if rng.randrange(2):
                        scene.surface.to_array()
            except KeyboardInterrupt:
                caught += 1
            if n % 10 == 0:
                scene.check()
    finally:
        gc.enable()
        signal.signal(signal.SIGALRM, before)
    assert caught > 100
    scene.check()


# the collector --------------------------------------------------------------------------------
def test_finalizers_that_draw_and_wait_anywhere(scene):
    ran = []

    class Knot:
        def __init__(self):
            self.me = self

        def __del__(self):
            scene.surface.fill_rect(0, 0, 5, 5, (1, 2, 3, 0))
            scene.surface.synchronize()
            scene.surface.read_pixels(0, 0, 1, 1)
            ran.append(threading.current_thread().name)

    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for n in range(150):
            Knot()
            scene.some(n % 3 + 1)
            Knot()
            scene.surface.synchronize()
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert len(ran) == 300
    scene.check()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forks_while_others_draw_and_wait(scene):
    stop = threading.Event()

    def work():
        while not stop.is_set():
            scene.surface.fill_rect(0, 0, 9, 9, (1, 2, 3, 0))
            scene.surface.synchronize()

    jobs = [Job(work) for _ in range(2)]
    for _ in range(15):
        child = os.fork()
        if child == 0:
            try:
                scene.surface.synchronize()
            except dala.FreedError:
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        scene.some(2)
        scene.surface.synchronize()
    stop.set()
    for job in jobs:
        job.end()
    scene.check()
