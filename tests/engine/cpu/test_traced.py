"""The wait for Python's lock after native code, in a trace."""

import sys
import threading

import numpy as np
import pytest

import dala
from dala.media import gpu


@pytest.mark.skipif(sys.platform != "linux", reason="the clock of a native call's end is Linux's")
def test_the_wait_for_the_lock_is_recorded():
    picture = np.random.default_rng(0).integers(0, 255, (720, 1280, 4), np.uint8)
    with dala.device("cpu"):
        wanted = gpu.blur(picture, radius=5)
        stop = threading.Event()

        def busy():
            while not stop.is_set():
                sum(range(2000))

        before = sys.getswitchinterval()
        others = [threading.Thread(target=busy) for _ in range(2)]
        try:
            sys.setswitchinterval(0.02)  # each of them keeps the lock for so long
            for other in others:
                other.start()
            with dala.trace(None) as run:
                for _ in range(20):
                    assert np.array_equal(gpu.blur(picture, radius=5), wanted)
        finally:
            stop.set()
            sys.setswitchinterval(before)
            for other in others:
                other.join()
    passes = [r for _, r in run.events if r[0] == "pass"]
    waits = [r for _, r in run.events if r[0] == "gil"]
    assert waits
    for wait in waits:  # each is the end of a pass
        assert any(p[4] == wait[4] and p[2] <= wait[2] and wait[3] <= p[3] for p in passes)
    assert max(r[3] - r[2] for r in waits) > 5e6
