"""Cameras and microphones: what the machine has, and how FFmpeg opens it on each platform."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from dala.errors import DalaError, ParameterError, VideoNotFound, did_you_mean
from dala.media.notices import notify
from dala.media.video.decoding import alsa
from dala.media.video.source import VideoSource, pyav

_SYSFS: Final = Path("/sys/class/video4linux")
_DEV: Final = Path("/dev")
_ALSA: Final = Path("/proc/asound/pcm")
#: The Linux sound system's own choice.
_DEFAULT: Final = "default"


@dataclass(frozen=True)
class Camera:
    """A camera of this machine: its number, its name, and the name FFmpeg has for it.

    >>> Camera(0, "Integrated Camera", "/dev/video0").name
    'Integrated Camera'
    """

    index: int
    name: str
    device: str


@dataclass(frozen=True)
class Microphone:
    """A microphone of this machine: its number, its name, and the name FFmpeg has for it.

    >>> Microphone(0, "USB Audio", "plughw:1,0").device
    'plughw:1,0'
    """

    index: int
    name: str
    device: str


_Device = TypeVar("_Device", Camera, Microphone)


# what there is ------------------------------------------------------------------------------------
def cameras() -> list[Camera]:
    """Return the cameras of this machine."""
    system = _system()
    if system is not None:
        return [Camera(n, *found) for n, found in enumerate(_enumerated(system, "video"))]
    return linux_cameras(_SYSFS) if _SYSFS.is_dir() else _bare_cameras(_DEV)


def microphones() -> list[Microphone]:
    """Return the microphones of this machine, the default one first."""
    system = _system()
    if system is not None:
        return [Microphone(n, *found) for n, found in enumerate(_enumerated(system, "audio"))]
    found = linux_microphones(_ALSA)
    if not found and alsa.has_server(os.environ, Path.home()):
        found = [Microphone(0, _DEFAULT, _DEFAULT)]
    return found


def _system() -> str | None:
    """Return FFmpeg's input of the platform's devices; None on Linux, where there are two."""
    return {"darwin": "avfoundation", "win32": "dshow"}.get(sys.platform)


def _enumerated(system: str, kind: str) -> list[tuple[str, str]]:
    devices = [d for d in pyav().enumerate_input_devices(system) if kind in d.media_types]
    return [(str(d.description or d.name), str(d.name)) for d in devices]


def linux_cameras(folder: Path) -> list[Camera]:
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


def _bare_cameras(folder: Path) -> list[Camera]:
    """Return the cameras of a container, which has the devices but no sysfs."""
    numbers = (path.name.removeprefix("video") for path in folder.glob("video*"))
    found = sorted(int(number) for number in numbers if number.isdigit())
    return [Camera(n, f"/dev/video{n}", f"/dev/video{n}") for n in found]


def linux_microphones(listing: Path) -> list[Microphone]:
    """Return the microphones that ALSA lists, after the system's own choice."""
    try:
        lines = listing.read_text(errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        # "01-00: USB Audio : USB Audio : playback 1 : capture 1"
        parts = [part.strip() for part in line.split(":")]
        place = re.fullmatch(r"(\d+)-(\d+)", parts[0])
        if place and any(part.startswith("capture") for part in parts):
            card, device = int(place[1]), int(place[2])
            found.append((parts[1] or parts[0], f"plughw:{card},{device}"))
    if found:
        found.insert(0, (_DEFAULT, _DEFAULT))
    return [Microphone(n, *device) for n, device in enumerate(found)]


# which one ----------------------------------------------------------------------------------------
def chosen(
    which: str | int, devices: Sequence[_Device], call: str, kind: str, missing: type[DalaError]
) -> _Device:
    """Return the device of a number, a name, a part of a name, or "default".

    Args:
        which: what the user has given.
        devices: what the machine has.
        call: the call for messages.
        kind: "camera" or "microphone".
        missing: the error of a device that is not there.

    Raises:
        ParameterError: several devices have the name.
    """
    names = ", ".join(f"{d.index}: {d.name!r}" for d in devices)
    here = f"This machine has {names}." if devices else f"This machine has no {kind}."
    if which == "default":
        if not devices:
            raise missing(f"{call}: {here} {kind}.open('test') opens a generated one.")
        return devices[0]
    if isinstance(which, int):
        found = [d for d in devices if d.index == which]
    else:
        same = [d for d in devices if which in (d.name, d.device)]
        found = same or [d for d in devices if which.lower() in d.name.lower()]
    if not found:
        hint = did_you_mean(which, [d.name for d in devices]) if isinstance(which, str) else ""
        raise missing(f"{call}: no {kind} {which!r}.{hint} {here}")
    if len(found) > 1:
        raise ParameterError.invalid(call, kind, f"the name of one {kind}", which, here)
    return found[0]


def camera_of(which: str | int, known: Sequence[Camera], call: str) -> Camera:
    """Return the camera of a number, a name, a part of a name, or "default"."""
    device = f"/dev/video{which}"
    listed = not isinstance(which, int) or any(c.index == which for c in known)
    if not listed and _system() is None and os.path.exists(device):
        return Camera(int(which), device, device)  # another picture of a camera, such as its depth
    return chosen(which, known, call, "camera", VideoNotFound)


# how FFmpeg opens it ------------------------------------------------------------------------------
def camera_source(camera: Camera, options: dict[str, str]) -> VideoSource:
    """Return a camera as FFmpeg opens it, with options such as its size and rate."""
    label = f"camera {camera.index} ({camera.name})"
    system = _system()
    if system == "avfoundation":
        options = {"framerate": "30", "pixel_format": "nv12", **options}
        return VideoSource(f"{camera.device}:none", label, True, system, options)
    if system == "dshow":
        return VideoSource(f"video={camera.device}", label, True, system, options)
    return VideoSource(camera.device, label, True, "v4l2", options)


def microphone_source(microphone: Microphone, options: dict[str, str]) -> VideoSource:
    """Return a microphone as FFmpeg opens it, with options such as its rate and channels."""
    label = f"microphone {microphone.index} ({microphone.name})"
    system = _system()
    if system == "avfoundation":
        if options:
            notify(f"{label}: macOS decides its rate; what was asked for is not used.")
        return VideoSource(f"none:{microphone.device}", label, True, system)
    if system == "dshow":
        # Blocks of 20 ms instead of half a second.
        options = {"audio_buffer_size": "20", **options}
        return VideoSource(f"audio={microphone.device}", label, True, system, options)
    alsa.prepare()
    return VideoSource(microphone.device, label, True, "alsa", options)
