"""Plays a tone on the default sound device, and records it with the default microphone.

``python -m tests.media.live.loopback`` prints what it found as JSON. PulseAudio's null sink gives
back what it plays.
"""

from __future__ import annotations

import json
import sys
import threading
import time

import numpy as np

RATE = 48000
PATIENCE = 60.0


def main() -> None:
    """Play, record, and print the frequency that was heard."""
    import dala
    from dala.media import Scene, audio, microphone
    from dala.media.notices import collected

    found: dict[str, object] = {"microphones": [m.name for m in microphone.list()]}
    with dala.device("cpu"), collected() as notices, Scene(32, 16, fps=20) as scene:
        scene.add_audio(audio.tone(1000, 4, amplitude=0.5), loop=True)
        over = threading.Event()

        def play() -> None:
            while not over.is_set():
                found["dropped"] = scene.play(None, seconds=3)["dropped"]

        thread = threading.Thread(target=play)
        thread.start()
        try:
            found["heard"] = listen(microphone)
        finally:
            over.set()
            thread.join()
        found["notices"] = list(notices)
    sys.stdout.write(json.dumps(found) + "\n")


def listen(microphone) -> float:
    """Return the frequency of the first half second that is loud throughout."""
    begin = time.monotonic()
    with microphone.open("default") as voice:
        heard = voice.voice(lambda: begin)
        while time.monotonic() - begin < PATIENCE:
            time.sleep(0.05)
            heard.ready(10**9)
            if (heard.end or 0) < RATE:
                continue
            part = heard.render(heard.end - RATE // 2, RATE // 2)[:, 0]
            if np.abs(part).reshape(-1, 480).max(axis=1).min() > 0.3:
                return float(np.abs(np.fft.rfft(part)).argmax() * 2)
    return 0.0


if __name__ == "__main__":
    main()
