"""Cameras and microphones of this machine, and how FFmpeg opens them on each platform."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from dala.errors import DalaError, ParameterError, VideoNotFound, did_you_mean
from dala.media.video.source import VideoSource, av
from dala.notices import notify

_SYSFS: Final = Path("/sys/class/video4linux")
_DEV: Final = Path("/dev")
_ALSA: Final = Path("/proc/asound/pcm")
#: The Linux sound system's own choice.
_DEFAULT: Final = "default"


@dataclass(frozen=True)
class _InputDevice:
    index: int
    name: str
    device: str


class Camera(_InputDevice):
    """A camera of this machine: its number, its name, and the name FFmpeg has for it.

    >>> Camera(0, "Integrated Camera", "/dev/video0").name
    'Integrated Camera'
    """


class Microphone(_InputDevice):
    """A microphone of this machine: its number, its name, and the name FFmpeg has for it.

    >>> Microphone(0, "USB Audio", "plughw:1,0").device
    'plughw:1,0'
    """


_Device = TypeVar("_Device", Camera, Microphone)
_Error = TypeVar("_Error", bound=DalaError)


# what there is ------------------------------------------------------------------------------------
def cameras() -> list[Camera]:
    """Return the cameras of this machine."""
    if (system := _system()) is not None:
        return _enumerated(Camera, system, "video")
    return linux_cameras(_SYSFS) if _SYSFS.is_dir() else _bare_cameras(_DEV)


def microphones() -> list[Microphone]:
    """Return the microphones of this machine, the default one first."""
    if (system := _system()) is not None:
        return _enumerated(Microphone, system, "audio")
    found = linux_microphones(_ALSA)
    if not found and has_sound_server(os.environ, Path.home()):
        found = [Microphone(0, _DEFAULT, _DEFAULT)]
    return found


def _system() -> str | None:
    """Return FFmpeg's input of the platform's devices; None on Linux, where there are two."""
    return {"darwin": "avfoundation", "win32": "dshow"}.get(sys.platform)


def _enumerated(make: type[_Device], system: str, kind: str) -> list[_Device]:
    found = [d for d in av.enumerate_input_devices(system) if kind in d.media_types]
    return [make(n, str(d.description or d.name), str(d.name)) for n, d in enumerate(found)]


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
    if isinstance(which, bool) or not isinstance(which, str | int):
        advice = f"{kind}.list() has them."
        raise ParameterError.invalid(call, kind, "'default', a number or a name", which, advice)
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
    number = isinstance(which, int) and not isinstance(which, bool)
    listed = not number or any(c.index == which for c in known)
    if not listed and _system() is None and os.path.exists(device):
        return Camera(int(which), device, device)  # another picture of a camera, such as its depth
    return chosen(which, known, call, "camera", VideoNotFound)


# how FFmpeg opens it ------------------------------------------------------------------------------
def camera_source(camera: Camera, options: dict[str, str]) -> VideoSource:
    """Return a camera as FFmpeg opens it, with options such as its size and rate."""
    label, system = f"camera {camera.index} ({camera.name})", _system() or "v4l2"
    form = {"avfoundation": "{}:none", "dshow": "video={}"}.get(system, "{}")
    if system == "avfoundation":
        options = {"framerate": "30", "pixel_format": "nv12", **options}
    return VideoSource(form.format(camera.device), label, True, system, options)


def microphone_source(microphone: Microphone, options: dict[str, str]) -> VideoSource:
    """Return a microphone as FFmpeg opens it, with options such as its rate and channels."""
    label, system = f"microphone {microphone.index} ({microphone.name})", _system() or "alsa"
    form = {"avfoundation": "none:{}", "dshow": "audio={}"}.get(system, "{}")
    if system == "avfoundation":
        if options:
            notify(f"{label}: macOS decides its rate; what was asked for is not used.")
        options = {}
    elif system == "dshow":
        options = {"audio_buffer_size": "20", **options}  # 20 ms instead of half a second
    else:
        prepare_alsa()
    return VideoSource(form.format(microphone.device), label, True, system, options)


_REASONS: Final = {
    16: "another program uses it. Close the other program.",
    13: "access to it is not allowed. Give this user access to it.",
}


def explained(error: _Error, call: str, label: str) -> _Error:
    """Return the error of a device that cannot be opened, with the reason where it is known."""
    reason = _REASONS.get(getattr(error.__cause__, "errno", 0) or 0)
    return type(error)(f"{call}: cannot open {label!r}: {reason}") if reason else error


# the sound system of Linux ------------------------------------------------------------------------
#: The system's configuration, which defines "default", "plughw" and all other devices.
_CONFIGURATION: Final = Path("/usr/share/alsa/alsa.conf")
#: Where systems have the plugins of PulseAudio and PipeWire.
_ALSA_PLUGINS: Final = ("lib/*/alsa-lib", "lib64/alsa-lib", "lib/alsa-lib")


def alsa_configuration(
    configuration: Path = _CONFIGURATION, root: Path = Path("/usr")
) -> dict[str, str]:
    """Return variables that lead ALSA to the system's configuration and plugins.

    PyAV's wheel brings an ALSA of its own, which looks for them where it was built: on no machine
    but that one. With these variables it finds what all other programs use.
    """
    found = {}
    if configuration.is_file():
        found["ALSA_CONFIG_PATH"] = str(configuration)
    for pattern in _ALSA_PLUGINS:
        folder = next((path for path in sorted(root.glob(pattern)) if path.is_dir()), None)
        if folder is not None:
            found["ALSA_PLUGIN_DIR"] = str(folder)
            break
    return found


def prepare_alsa() -> None:
    """Let ALSA find the system's configuration, unless the user names another.

    ALSA reads them from the environment only. They are set when a microphone is opened, and once:
    programs without one keep their environment, and no later call changes it while other threads
    read it. Child processes get them too, and mean the same by them.
    """
    for name, value in alsa_configuration().items():
        os.environ.setdefault(name, value)


def has_sound_server(environment: Mapping[str, str], home: Path, etc: Path = Path("/etc")) -> bool:
    """Return whether "default" leads somewhere without a card: a sound server, or a user's choice.

    So it is in containers, and under Windows' subsystem for Linux.
    """
    if environment.get("PULSE_SERVER"):
        return True
    runtime = Path(environment.get("XDG_RUNTIME_DIR") or "/nonexistent")
    places = (
        runtime / "pulse" / "native", runtime / "pipewire-0", home / ".asoundrc",
        etc / "asound.conf",
    )  # fmt: skip
    return any(place.exists() for place in places)
