"""Cameras: the machine's, by number or name, and a generated one for trying things.

>>> from dala.media import camera
>>> with camera.open("test", size=(320, 180), fps=10) as source:
...     next(source).shape
(180, 320, 4)
"""

from __future__ import annotations

import builtins
import os
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from dala.errors import ParameterError, VideoError, VideoNotFound, did_you_mean
from dala.media.video.arguments import check_rate
from dala.media.video.reader import Reader
from dala.media.video.source import VideoSource, lasting, pyav

__all__ = ["Camera", "list", "open"]

#: The name of the generated camera.
TEST: Final = "test"
#: Seconds for which an unplugged camera is tried again.
RECONNECT: Final = 3600.0
_CALL: Final = "camera.open"
_SYSFS: Final = Path("/sys/class/video4linux")


@dataclass(frozen=True)
class Camera:
    """A camera of this machine: its number, its name, and the name FFmpeg has for it.

    >>> Camera(0, "Integrated Camera", "/dev/video0").name
    'Integrated Camera'
    """

    index: int
    name: str
    device: str


def list() -> builtins.list[Camera]:
    """Return the cameras of this machine.

    >>> all(camera.name for camera in list())
    True
    """
    if sys.platform == "darwin":
        return _enumerated("avfoundation")
    if sys.platform == "win32":
        return _enumerated("dshow")
    return linux_cameras(_SYSFS)


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
    options = _options(size, None if fps is None else check_rate(_CALL, fps))
    source = lasting(_source(camera, options), reconnect)
    try:
        return Reader(source, format=format, device=device, policy=policy, timeout=timeout)
    except VideoError as error:
        raise _explained(error, source.label) from error.__cause__


def _options(size: tuple[int, int] | None, fps: Fraction | None) -> dict[str, str]:
    options: dict[str, str] = {}
    if size is not None:
        whole = isinstance(size, tuple | builtins.list) and len(size) == 2
        if not whole or not all(type(side) is int and 0 < side <= 16384 for side in size):
            raise ParameterError.invalid(_CALL, "size", "(width, height) in pixels", size)
        options["video_size"] = f"{size[0]}x{size[1]}"
    if fps is not None:
        options["framerate"] = str(fps)
    return options


def _source(camera: str | int, options: dict[str, str]) -> VideoSource:
    if isinstance(camera, bool) or not isinstance(camera, str | int):
        raise ParameterError.invalid(
            _CALL, "camera", "'default', a number or a name", camera, "camera.list() has them."
        )
    if camera == TEST:
        return _generated(options)
    found = _chosen(camera, list())
    label = f"camera {found.index} ({found.name})"
    if sys.platform == "darwin":
        options = {"framerate": "30", "pixel_format": "nv12", **options}
        return VideoSource(f"{found.device}:none", label, True, "avfoundation", options)
    if sys.platform == "win32":
        return VideoSource(f"video={found.device}", label, True, "dshow", options)
    return VideoSource(found.device, label, True, "v4l2", options)


def _chosen(camera: str | int, cameras: builtins.list[Camera]) -> Camera:
    names = ", ".join(f"{c.index}: {c.name!r}" for c in cameras)
    here = f"This machine has {names}." if cameras else "This machine has no camera."
    if camera == "default":
        if not cameras:
            raise VideoNotFound(f"{_CALL}: {here} camera.open('test') opens a generated one.")
        return cameras[0]
    if isinstance(camera, int):
        found = [c for c in cameras if c.index == camera]
    else:
        same = [c for c in cameras if camera in (c.name, c.device)]
        found = same or [c for c in cameras if camera.lower() in c.name.lower()]
    if not found:
        hint = did_you_mean(camera, [c.name for c in cameras]) if isinstance(camera, str) else ""
        raise VideoNotFound(f"{_CALL}: no camera {camera!r}.{hint} {here}")
    if len(found) > 1:
        raise ParameterError.invalid(_CALL, "camera", "the name of one camera", camera, here)
    return found[0]


def _generated(options: dict[str, str]) -> VideoSource:
    size, rate = options.get("video_size", "1280x720"), options.get("framerate", "30")
    return VideoSource(f"testsrc2=size={size}:rate={rate},realtime", "test camera", True, "lavfi")


def _explained(error: VideoError, label: str) -> VideoError:
    """Return the error of a camera that cannot be opened, with what FFmpeg means by it."""
    cause = error.__cause__
    number = getattr(cause, "errno", None)
    reasons = {16: "another program uses it", 13: "access to it is not allowed"}
    if number not in reasons:
        return error
    advice = "Close the other program." if number == 16 else "Give this user access to cameras."
    return VideoError(f"{_CALL}: cannot open {label!r}: {reasons[number]}. {advice}")


def linux_cameras(folder: Path) -> builtins.list[Camera]:
    """Return the cameras that a folder of sysfs lists.

    A camera may have several entries; those of index 0 have its pictures.
    """
    found = []
    for entry in sorted(folder.glob("video*"), key=lambda path: (len(path.name), path.name)):
        try:
            name = (entry / "name").read_text(errors="replace").strip()
            part = (entry / "index").read_text().strip()
        except OSError:
            continue
        device = f"/dev/{entry.name}"
        number = entry.name.removeprefix("video")
        if part == "0" and number.isdigit() and (folder != _SYSFS or os.path.exists(device)):
            found.append(Camera(int(number), name or device, device))
    return found


def _enumerated(kind: str) -> builtins.list[Camera]:
    devices = [d for d in pyav().enumerate_input_devices(kind) if "video" in d.media_types]
    return [Camera(n, str(d.description or d.name), str(d.name)) for n, d in enumerate(devices)]
