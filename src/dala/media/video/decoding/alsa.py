"""Linux's sound system (ALSA): its configuration, and whether it has a device besides cards."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

#: The system's configuration, which defines "default", "plughw" and all other devices.
_CONFIGURATION: Final = Path("/usr/share/alsa/alsa.conf")
#: Where systems have the plugins of PulseAudio and PipeWire.
_PLUGINS: Final = ("lib/*/alsa-lib", "lib64/alsa-lib", "lib/alsa-lib")


def find_configuration(
    configuration: Path = _CONFIGURATION, root: Path = Path("/usr")
) -> dict[str, str]:
    """Return variables that lead ALSA to the system's configuration and plugins.

    PyAV's wheel brings an ALSA of its own, which looks for them where it was built: on no machine
    but that one. With these variables it finds what all other programs use.
    """
    found = {}
    if configuration.is_file():
        found["ALSA_CONFIG_PATH"] = str(configuration)
    for pattern in _PLUGINS:
        folder = next((path for path in sorted(root.glob(pattern)) if path.is_dir()), None)
        if folder is not None:
            found["ALSA_PLUGIN_DIR"] = str(folder)
            break
    return found


def prepare() -> None:
    """Let ALSA find the system's configuration, unless the user names another.

    ALSA reads them from the environment only. They are set when a microphone is opened, and once:
    programs without one keep their environment, and no later call changes it while other threads
    read it. Child processes get them too, and mean the same by them.
    """
    for name, value in find_configuration().items():
        os.environ.setdefault(name, value)


def has_server(environment: Mapping[str, str], home: Path, etc: Path = Path("/etc")) -> bool:
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
