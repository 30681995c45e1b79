"""What the tests of reading and of writing share."""

from __future__ import annotations

import threading
import time

CONTAINERS = {
    "mp4": ("libx264", "yuv420p"),
    "mkv": ("libx264", "yuv420p"),
    "ts": ("libx264", "yuv420p"),
    "h264": ("libx264", "yuv420p"),
    "avi": ("mpeg4", "yuv420p"),
    "mov": ("mjpeg", "yuvj420p"),
}


def video_threads():
    return [t for t in threading.enumerate() if t.name.startswith("dala video")]


def until(fine):
    """Waits for what must come; a test that is stuck fails instead of hanging."""
    end = time.monotonic() + 120
    while not fine():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.001)
