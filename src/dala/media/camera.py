"""Cameras: the machine's, by number or name, and a generated one for trying things.

>>> from dala.media import camera
>>> with camera.open("test", size=(320, 180), fps=10) as source:
...     next(source).shape
(180, 320, 4)
"""

from __future__ import annotations

import builtins
from fractions import Fraction
from typing import Final

from dala.arguments import Rate, Size
from dala.errors import VideoError
from dala.media.video.decoding import devices
from dala.media.video.decoding.devices import Camera
from dala.media.video.options import DecodeOptions
from dala.media.video.reader import CALL, Reader
from dala.media.video.source import VideoSource, lasting

__all__ = ["Camera", "list", "open"]

#: The name of the generated camera.
TEST: Final = "test"
#: Seconds for which an unplugged camera is tried again.
RECONNECT: Final = 3600.0
_CALL: Final = "camera.open"
_SIZE: Final = Size(expected="(width, height) in pixels")


def list() -> builtins.list[Camera]:
    """Return the cameras of this machine.

    >>> all(camera.name for camera in list())
    True
    """
    return devices.cameras()


def open(
    camera: str | int = "default",
    *,
    size: tuple[int, int] | None = None,
    fps: float | str | Fraction | None = None,
    format: str = "rgba",
    device: str | None = None,
    policy: str = "latest",
    reconnect: float = RECONNECT,
    timeout: float = 10.0,
) -> Reader:
    """Open a camera: a context manager that iterates frames.

    An unplugged camera is waited for, with a notice; a scene shows its last picture meanwhile.

    Args:
        camera: "default", a number, the name or a part of it that only one camera has, or "test"
            for a generated picture that moves.
        size: (width, height); by default the camera's own.
        fps: frames per second; by default the camera's own.
        format: "rgba", or "native" for the planes of the camera.
        device: where frames are created; by default the current device.
        policy: only the "latest" frame, or "every" frame.
        reconnect: seconds for which an unplugged camera is tried again.
        timeout: seconds to wait for the camera.

    Raises:
        VideoNotFound: there is no such camera.
        VideoError: it cannot be opened, because another program uses it, for example.

    >>> with open("test", size=(64, 48), fps=10, device="cpu") as source:
    ...     source.fps, next(source).width
    (Fraction(10, 1), 64)
    """
    options = _options(size, None if fps is None else Rate().check(_CALL, "fps", fps))
    source = lasting(_source(camera, options), reconnect)
    try:
        given = {"format": format, "device": device, "policy": policy, "timeout": timeout}
        return Reader(source, DecodeOptions.checked(CALL, given))
    except VideoError as error:
        raise devices.explained(error, _CALL, source.label) from error.__cause__


def _options(size: tuple[int, int] | None, fps: Fraction | None) -> dict[str, str]:
    options: dict[str, str] = {}
    if size is not None:
        width, height = _SIZE.check(_CALL, "size", size)
        options["video_size"] = f"{width}x{height}"
    if fps is not None:
        options["framerate"] = str(fps)
    return options


def _source(camera: str | int, options: dict[str, str]) -> VideoSource:
    if camera == TEST:
        size, rate = options.get("video_size", "1280x720"), options.get("framerate", "30")
        made = f"testsrc2=size={size}:rate={rate},realtime"
        return VideoSource(made, "test camera", True, "lavfi")
    return devices.camera_source(devices.camera_of(camera, list(), _CALL), options)
