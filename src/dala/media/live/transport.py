"""Encoding and sending of a stream, in this process or in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

import dala
from dala.errors import DeviceUnavailable, MissingPackage, VideoError
from dala.extras import pip_install
from dala.media.live.muxing import Muxer, Samples, Sent, StreamSettings
from dala.media.live.sender import END, HEADER
from dala.media.video.source import DecodedFrame

if TYPE_CHECKING:
    from dala.media.live.destination import Destination


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
    """A failure of the sending process: FFmpeg's text, and the kind of its error."""

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
        self._answer()  # it has started

    def connect(self, settings: StreamSettings) -> None:
        """Connect; raise SendingFailed if that fails."""
        self._write(json.dumps(asdict(settings)).encode() + b"\n")
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


# a virtual camera ---------------------------------------------------------------------------------
#: A camera of pyvirtualcam, which has no types.
CameraObject: TypeAlias = Any


class CameraTransport:
    """A virtual camera that is open, as a transport: sending a picture shows it."""

    def __init__(self, where: Destination, settings: StreamSettings) -> None:
        self._camera = _open_camera(where, settings)

    def send(
        self, slot: int, picture: DecodedFrame | None, sound: Samples | None, at: int
    ) -> list[Sent]:
        """Show a picture; a camera has no sound."""
        if picture is None:
            return []
        self._camera.send(picture.to_ndarray(format="rgb24"))
        return [Sent(0, slot)]

    def finish(self) -> list[Sent]:
        """Return nothing: no picture waits."""
        return []

    def close(self) -> None:
        """Close the camera."""
        self._camera.close()


def _open_camera(where: Destination, settings: StreamSettings) -> CameraObject:
    try:
        import pyvirtualcam
    except ModuleNotFoundError:
        raise MissingPackage(
            "live: pyvirtualcam is not installed, and a virtual camera needs it. Run: "
            f"{pip_install('live')}"
        ) from None
    size, rate = (settings.width, settings.height), float(Fraction(settings.rate))
    try:
        return pyvirtualcam.Camera(*size, fps=rate, device=where.opened or None)
    except (RuntimeError, OSError, ValueError) as error:
        raise DeviceUnavailable(
            f"live: no virtual camera can be opened ({str(error).partition('. ')[0].strip('.')}). "
            "On Linux load the kernel module v4l2loopback; on macOS and Windows install OBS."
        ) from error
