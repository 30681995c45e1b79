"""Where a stream is encoded and sent: in this process, or in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import numpy as np

import dala
from dala.errors import VideoError
from dala.media.live.muxing import Muxer, Samples, Sent, StreamSettings
from dala.media.live.sender import END, HEADER
from dala.media.video.source import DecodedFrame


class Transport(Protocol):
    """An open stream."""

    def send(
        self, slot: int, picture: DecodedFrame | None, sound: Samples | None, at: int
    ) -> list[Sent]:
        """Encode and send a picture, and sound from a sample on; return what was sent."""

    def finish(self) -> list[Sent]:
        """Send what the encoders hold, and return it."""

    def close(self) -> None:
        """End the stream."""


class SendingFailed(Exception):
    """What the process that sends has reported: FFmpeg's text, and the kind of its error."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


class SenderProcess:
    """A stream of a process of its own; see ``sender.py``. ``kill`` ends it at any time."""

    def __init__(self) -> None:
        path = str(Path(dala.__file__).parents[1])
        known = os.environ.get("PYTHONPATH")
        environment = {**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{known}" if known else path}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dala.media.live.sender"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is for this process, which then ends the stream
        )

    def wait_ready(self) -> None:
        """Wait until the process has started."""
        self._answer()

    def connect(self, settings: StreamSettings) -> None:
        """Connect; raise SendingFailed if that fails."""
        self._write(json.dumps(settings).encode() + b"\n")
        self._answer()

    def send(
        self, slot: int, picture: DecodedFrame | None, sound: Samples | None, at: int
    ) -> list[Sent]:
        """Encode and send a picture, and sound from a sample on; return what was sent."""
        none = np.zeros(0, np.uint8)
        pixels = none if picture is None else np.ascontiguousarray(picture.to_ndarray())
        samples = none if sound is None else np.ascontiguousarray(sound, np.float32)
        head = HEADER.pack(slot, at, pixels.nbytes, samples.nbytes)
        self._write(head, *(array.reshape(-1).view(np.uint8).data for array in (pixels, samples)))
        return self._answer()

    def finish(self) -> list[Sent]:
        """Send what the encoders hold and end the stream."""
        self._write(HEADER.pack(END, 0, 0, 0))
        return self._answer()

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the process at once; what it sent last may be lost."""
        self._process.kill()
        self._process.wait()

    def _write(self, *parts: bytes | memoryview) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        try:
            for part in parts:
                pipe.write(part)
            pipe.flush()
        except OSError:
            raise SendingFailed("the process that sends has ended", "") from None

    def _answer(self) -> list[Sent]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SendingFailed("the process that sends has ended", "")
        answer = json.loads(line)
        if "error" in answer:
            raise SendingFailed(answer["error"], answer["kind"])
        return [Sent(*packet) for packet in answer["sent"]]


def in_own_process(muxer: str) -> bool:
    """Return whether a stream is sent by a process of its own: all that may wait for a network."""
    return muxer != "hls" and not getattr(sys, "frozen", False)


def local(settings: StreamSettings) -> Muxer:
    """Return a stream of this process."""
    try:
        return Muxer(settings)
    except OSError as error:
        raise SendingFailed(str(error.strerror or error), type(error).__name__) from error
    except ValueError as error:
        raise VideoError(f"live: {error}.") from error
