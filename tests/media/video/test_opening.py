"""Encoders that take real-time priority: it is taken back, also from their caller."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from dala.media import video
from dala.media.video.output.opening import open_encoder

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_setscheduler"), reason="there are no scheduling policies"
)


def realtime():
    """Return the threads of this process that have real-time priority."""
    found = []
    for name in os.listdir("/proc/self/task"):
        try:
            if os.sched_getscheduler(int(name)) in (os.SCHED_FIFO, os.SCHED_RR):
                found.append(name)
        except ProcessLookupError:
            continue
    return found


class Greedy:
    """An encoder that takes the highest priority for its caller and its own thread."""

    def __init__(self):
        self.done = threading.Event()
        self.started = threading.Event()

    def open(self, strict):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        threading.Thread(target=self.run, daemon=True).start()
        self.started.wait()

    def run(self):
        self.started.set()
        self.done.wait()


def test_priority_is_taken_back():
    before, greedy = realtime(), Greedy()
    try:
        open_encoder(greedy)
        assert realtime() == before
    except PermissionError:
        pytest.skip("this user may not take real-time priority")
    finally:
        greedy.done.set()


def test_priority_of_the_caller_stays():
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pytest.skip("this user may not take real-time priority")
    greedy = Greedy()
    try:
        open_encoder(greedy)
        assert os.sched_getscheduler(0) == os.SCHED_FIFO
    finally:
        greedy.done.set()
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@pytest.mark.parametrize("codec", ["av1", "hevc", "h264", "vp9"])
def test_writing_a_video(codec, tmp_path):
    before, frame = realtime(), np.zeros((64, 64, 3), np.uint8)
    with video.write(tmp_path / "a.mkv", codec=codec, fps=25) as out:
        out.write(frame)
        assert realtime() == before
        out.write(frame)
    assert realtime() == before
