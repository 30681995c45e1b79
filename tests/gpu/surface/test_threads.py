"""Surfaces and threads: queue limits, atomic batches, many threads, interrupted waits."""

from __future__ import annotations

import random
import signal
import sys
import threading
import time

import numpy as np
import pytest

from dala.errors import CommandError, FreedError
from dala.gpu import command, create_surface
from dala.gpu.render import worker
from dala.gpu.render.worker import MAX_QUEUED

RED, GREEN = b"\xff\0\0\xff", b"\0\xff\0\xff"


def until(fine):
    """Wait for a condition; fails after 30 seconds instead of hanging."""
    end = time.monotonic() + 120
    while not fine():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.001)


def render_threads():
    return [t for t in threading.enumerate() if t.name == "dala-render"]


class Job(threading.Thread):
    """A thread whose error is raised where it is joined."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.work, self.error = work, None
        self.start()

    def run(self):
        try:
            self.work()
        except BaseException as error:
            self.error = error

    def end(self):
        self.join(300)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error


# the queue ------------------------------------------------------------------------------------
def test_full_queue_makes_callers_wait_and_loses_nothing():
    count, total = [0], MAX_QUEUED + 2000
    with create_surface(100, 200) as s:

        def draw():
            for n in range(total):
                s.fill_rect(n % 100, n // 100, 1, 1, (n % 256, n // 256, 7))
                count[0] += 1

        def hold(pixels):
            job = Job(draw)
            until(lambda: s._renderer._waiting == 1)
            assert (count[0], s.stats["queue"]) == (
                MAX_QUEUED,
                MAX_QUEUED + 1,
            )  # the next one waits
            return job

        jobs = []
        s.with_pixels(lambda pixels: jobs.append(hold(pixels)))
        jobs[0].end()
        assert count[0] == total
        n = np.arange(total)
        want = np.stack([n % 256, n // 256, np.full(total, 7), np.full(total, 255)], 1)
        assert s.get_pixels()[: 4 * total] == want.astype(np.uint8).tobytes()


def test_queued_pictures_are_limited_by_their_bytes(monkeypatch):
    monkeypatch.setattr(worker, "MAX_QUEUED_BYTES", 5 * 400)
    done = []
    with create_surface(10, 10) as s:

        def draw():
            for n in range(20):
                s.set_pixels(bytes([n]) * 400)
                done.append(n)

        paused, resume = s._renderer.pause()
        assert paused.acquire(timeout=300)
        job = Job(draw)
        until(lambda: s._renderer._waiting == 1)
        assert (len(done), s.stats["queue"]) == (5, 5)
        resume.release()
        job.end()
        assert s.get_pixels() == bytes([19]) * 400
        assert s._renderer._queued_bytes == 0
        monkeypatch.setattr(worker, "MAX_QUEUED_BYTES", 10)
        s.set_pixels(bytes([20]) * 400)  # one is accepted, however large
        assert s.get_pixels() == bytes([20]) * 400


def test_queued_large_commands_are_limited_by_their_bytes(monkeypatch):
    monkeypatch.setattr(worker, "MAX_QUEUED_BYTES", 3 * 300_000)
    done = []
    with create_surface(2, 2) as s:

        def draw():
            for n in range(8):
                s.load_image(n, bytes([n]) * 262144, 256, 256)
                done.append(n)

        paused, resume = s._renderer.pause()
        assert paused.acquire(timeout=300)
        job = Job(draw)
        until(lambda: s._renderer._waiting == 1)
        assert len(done) == 3
        resume.release()
        job.end()
        s.synchronize()
        assert len(s._renderer.canvas._images) == 8


def test_drawing_calls_return_before_they_are_executed():
    with create_surface(4, 4) as s:
        paused, resume = s._renderer.pause()
        assert paused.acquire(timeout=300)
        s.clear("red")
        s.present()
        s.batch([command.encode_clear("lime")])
        s.resize(5, 5)
        s.load_sprite(1, RED, 1, 1)
        s.set_uniform("x", b"1234")
        assert s.stats["queue"] == 6
        assert s._renderer.frames == 0
        resume.release()
        assert s.read_pixels(3, 3, 1, 1) == GREEN
        assert s.stats["frames"] == 1


def test_chunk_size_follows_the_execution_time(monkeypatch):
    with create_surface(4, 4) as s:
        monkeypatch.setattr(worker, "CHUNK_SECONDS", -1.0)  # everything counts as slow
        for _ in range(20):
            s.clear("red")
            s.synchronize()
        assert s._renderer._chunk_size == 16
        for n in range(100):
            s.fill_rect(n % 4, n // 4 % 4, 1, 1, (n, 0, 0))
        assert s.read_pixels(3, 0, 1, 1) == b"\x63\0\0\xff"  # n = 99
        monkeypatch.setattr(worker, "CHUNK_SECONDS", 1e9)
        for _ in range(20):
            s.clear("red")
            s.synchronize()
        assert s._renderer._chunk_size == MAX_QUEUED


# atomicity ------------------------------------------------------------------------------------
@pytest.mark.parametrize("pattern", ["b", "r", "br", "rb", "bbr", "brb", "rbr", "brbr", "bbrr"])
def test_requests_keep_their_order_among_commands(pattern):
    seen, want, last = [], [], 0
    with create_surface(4, 1) as s:
        renderer = s._renderer
        paused, resume = renderer.pause()
        assert paused.acquire(timeout=300)
        for n, kind in enumerate(pattern, 1):
            if kind == "b":
                s.fill_rect(0, 0, 1, 1, (n, 0, 0))
                last = n
            else:
                renderer.post(lambda: seen.append(int(renderer.canvas.pixels[0, 0, 0])))
                want.append(last)
        resume.release()
        s.synchronize()
        assert seen == want
        assert s.read_pixels(0, 0, 1, 1)[0] == last


def test_readers_never_see_half_a_batch():
    """Each row is a command; readers always see all rows in the same color."""
    seen, stop = set(), threading.Event()
    with create_surface(8, 64) as s:
        s.clear((0, 0, 0))

        def read():
            while not stop.is_set():
                pixels = s.to_array()
                assert (pixels == pixels[0, 0]).all()
                seen.add(int(pixels[0, 0, 0]))

        readers = [Job(read) for _ in range(3)]
        until(lambda: seen or any(r.error for r in readers))
        for n in range(1, 120):
            s.batch([command.encode_fill_rect(0, y, 8, 1, (n, n, n)) for y in range(64)])
            s.present()
            if n == 60:  # let a reader in, however fast the drawing is
                until(lambda: len(seen) > 1 or any(r.error for r in readers))
        s.synchronize()
        until(lambda: 119 in seen or any(r.error for r in readers))
        stop.set()
        for reader in readers:
            reader.end()
        assert len(seen) > 2


def test_with_pixels_and_batches_are_not_interleaved():
    with create_surface(8, 8) as s:
        s.clear((0, 0, 0))

        def more():
            for _ in range(50):
                s.with_pixels(lambda pixels: pixels + np.array([1, 0, 0, 0], np.uint8))

        def others():
            for n in range(50):
                s.batch([command.encode_fill_rect(0, 0, 8, 8, (0, 0, 0, 0))] * 9)
                s.get_pixels() if n % 5 == 0 else s.present()

        jobs = [Job(more), Job(more), Job(more), Job(others)]
        for job in jobs:
            job.end()
        assert s.get_pixels() == b"\x96\0\0\xff" * 64  # 3 x 50, none of them lost


# many -----------------------------------------------------------------------------------------
def test_many_threads_draw_on_one_surface():
    threads, each = 8, 3000
    with create_surface(threads * 10, 300) as s:
        s.clear("black")

        def draw(column):
            for n in range(each):
                x, y = column * 10 + n % 10, n // 10
                s.fill_rect(x, y, 1, 1, (99, 99, 99))
                s.draw_line(x, y, x, y, (column, n % 251, 200))

        for job in [Job(lambda c=c: draw(c)) for c in range(threads)]:
            job.end()
        got = s.to_array()
        n = np.arange(300)[:, None] * 10 + np.arange(threads * 10)[None] % 10
        assert np.array_equal(got[..., 0], np.broadcast_to(np.arange(threads * 10) // 10, n.shape))
        assert np.array_equal(got[..., 1], n % 251)
        assert s.errors == []


def test_hundred_surfaces_destroyed_in_any_order():
    before = len(render_threads())
    made = [create_surface(20 + n, 10) for n in range(100)]
    for n, s in enumerate(made):
        s.clear((n, 2 * n, 3))
        s.fill_rect(0, 0, 1, 1, "red")
    assert len(render_threads()) == before + 100
    for n, s in enumerate(made):
        assert s.get_pixels() == RED + bytes([n, 2 * n, 3, 255]) * ((20 + n) * 10 - 1)
    order = random.Random(4).sample(range(100), 100)
    for n in order[:50]:
        for _ in range(50):
            made[n].fill_circle(5, 5, 50, (1, 2, 3, 99))
        made[n].close()
        assert made[n].closed
    for n in order[50:]:
        assert made[n].read_pixels(1, 1, 1, 1) == bytes([n, 2 * n, 3, 255])
        made[n].clear("blue")
    del s
    made.clear()  # garbage collected with queued work
    until(lambda: len(render_threads()) == before)


def test_surface_destroyed_while_other_threads_draw_and_wait():
    for _ in range(20):
        s = create_surface(50, 50)
        begun = threading.Barrier(4)

        def work(act, s=s, begun=begun):
            begun.wait()
            with pytest.raises(FreedError, match="destroyed"):
                while True:
                    act(s)

        jobs = [
            Job(lambda work=work, act=act: work(act))
            for act in (
                lambda s: s.fill_rect(0, 0, 9, 9, "red"),
                lambda s: s.get_pixels(),
                lambda s: s.with_pixels(lambda pixels: None),
            )
        ]
        begun.wait()
        s.close()
        for job in jobs:
            job.end()


def test_waiting_callers_raise_when_the_surface_is_destroyed():
    s = create_surface(4, 4)
    renderer = s._renderer
    paused, _ = renderer.pause()
    assert paused.acquire(timeout=300)
    raised = []

    def wait(act):
        with pytest.raises(FreedError, match="destroyed"):
            act()
        raised.append(True)

    def fill():
        while True:
            s.clear("red")

    jobs = [Job(lambda: wait(s.get_pixels)), Job(lambda: wait(fill))]
    until(lambda: renderer._waiting == 1)
    s.close()  # though the pause never ends
    for job in jobs:
        job.end()
    assert raised == [True, True]
    assert not renderer._thread.is_alive()


def test_calls_on_the_render_thread_do_not_wait():
    with create_surface(2, 2) as s:
        found = []

        def presented(renderer):
            found.append(s.get_pixels())
            s.clear("lime")
            s.with_pixels(lambda pixels: found.append(pixels.tobytes()))

        s._renderer.on_present = presented
        s.clear("red")
        s.present()
        s.synchronize()
        assert found == [RED * 4, RED * 4]
        assert s.get_pixels() == GREEN * 4


# interruption ---------------------------------------------------------------------------------
needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="signals are sent to a thread")


def interrupt_when(fine):
    main = threading.main_thread().ident

    def send():
        until(fine)
        signal.pthread_kill(main, signal.SIGINT)

    return Job(send)


@needs_signals
def test_ctrl_c_in_a_wait_leaves_the_surface_usable():
    with create_surface(4, 4) as s:
        renderer = s._renderer
        for act in (
            s.get_pixels,
            s.synchronize,
            lambda: s.read_pixels(0, 0, 1, 1),
            lambda: s.with_pixels(lambda pixels: pixels.fill(3)),
        ):
            paused, resume = renderer.pause()
            assert paused.acquire(timeout=300)
            job = interrupt_when(lambda: renderer.pending == 1)
            with pytest.raises(KeyboardInterrupt):
                act()
            job.end()
            resume.release()
            s.clear("red")
            assert s.get_pixels() == RED * 16
            assert s.errors == []


@needs_signals
def test_ctrl_c_while_the_queue_is_full():
    with create_surface(4, 4) as s:
        renderer = s._renderer
        paused, resume = renderer.pause()
        assert paused.acquire(timeout=300)
        job = interrupt_when(lambda: renderer._waiting == 1)
        with pytest.raises(KeyboardInterrupt):
            while True:
                s.clear("red")
        job.end()
        assert renderer._waiting == 0
        resume.release()
        assert s.get_pixels() == RED * 16


@needs_signals
def test_ctrl_c_in_with_pixels_changes_nothing():
    with create_surface(4, 4) as s:
        s.clear("red")

        def work(pixels):
            pixels[:] = 1
            signal.raise_signal(signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            s.with_pixels(work)
        assert s.get_pixels() == RED * 16


def test_error_is_raised_once():
    with create_surface(4, 4) as s:
        s.blit(9, 0, 0)
        caught = []

        def wait():
            try:
                s.synchronize()
            except CommandError as error:
                caught.append(error)

        for job in [Job(wait) for _ in range(6)]:
            job.end()
        assert caught == s.errors
        assert len(caught) == 1
