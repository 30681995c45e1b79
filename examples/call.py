"""A call with a blurred background: from the camera to a virtual camera, a server or a folder.

python examples/call.py                              # the default camera, to a virtual one
python examples/call.py 0 rtmp://host/key default    # camera 0 and a microphone, to a server
python examples/call.py test out/call test           # without either: ten seconds to out/call

A virtual camera needs `pip install "dala-gpu[live]"`, and v4l2loopback on Linux or OBS elsewhere.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import cache

import numpy as np

from dala import DalaError, samples
from dala.media import Frame, camera, live, microphone
from dala.ml import Background


@cache
def photo() -> np.ndarray:
    """Return the photograph of an astronaut."""
    return np.asarray(samples.photo("astronaut", device="cpu"))


def person(frame: Frame) -> np.ndarray:
    """Return an astronaut at the time of a frame, for machines without a camera."""
    x = 30 + round(25 * np.sin(float(frame.time or 0)))
    return np.ascontiguousarray(photo()[:252, x : x + 448, :3])


def main(
    source: str = "default", to: str = "camera:", voice: str = "", seconds: float | None = None
) -> dict[str, float]:
    """Send until Ctrl-C, or for some seconds, and return the figures."""
    trying = source == "test"
    with ExitStack() as held:
        blur = held.enter_context(Background(radius=14))
        sound = held.enter_context(microphone.open(voice)) if voice else False
        pictures = camera.open(int(source) if source.isdecimal() else source, fps=25)
        run = live.send(
            pictures, to, lambda frame: blur.process(person(frame) if trying else frame),
            seconds=10.0 if trying and seconds is None else seconds, audio=sound, wait=True,
        )  # fmt: skip
    return run.stats


if __name__ == "__main__":
    try:
        stats = main(*sys.argv[1:4])
        print(f"{stats['shown']:.0f} frames, {stats['latency_ms']:.0f} ms from camera to packet")
    except DalaError as error:
        sys.exit(f"call: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
