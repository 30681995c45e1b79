"""``microphone.list`` and ``microphone.open``."""

from __future__ import annotations

import builtins
from typing import Final

from dala.errors import AudioError, AudioNotFound, ParameterError
from dala.media.audio.arriving import LiveSound
from dala.media.audio.checks import check_rate
from dala.media.microphone.capture import SoundCapture
from dala.media.video.arguments import check_seconds
from dala.media.video.decoding import devices
from dala.media.video.decoding.devices import Microphone
from dala.media.video.source import VideoSource, lasting

#: The name of the generated microphone.
TEST: Final = "test"
#: Seconds for which an unplugged microphone is tried again.
RECONNECT: Final = 3600.0
#: How sources of scenes and scene files name a microphone: "microphone://default".
SCHEME: Final = "microphone://"
_CALL: Final = "microphone.open"


def list() -> builtins.list[Microphone]:
    """Return the microphones of this machine, the system's own choice first.

    >>> all(microphone.name for microphone in list())
    True
    """
    return devices.microphones()


def open(
    microphone: str | int = "default",
    *,
    rate: int | None = None,
    reconnect: float = RECONNECT,
    timeout: float = 10.0,
) -> LiveSound:
    """Open a microphone: a context manager, to be given to a scene or a live stream.

    It is recorded from now on, by a thread, until it is closed. An unplugged one is waited for,
    with a notice; there is silence meanwhile.

    Args:
        microphone: "default", a number, the name or a part of it that only one microphone has, or
            "test" for a generated tone that beeps every second.
        rate: samples per second; by default the microphone's own. Streams have 48,000.
        reconnect: seconds for which an unplugged microphone is tried again.
        timeout: seconds to wait for the microphone.

    Raises:
        AudioNotFound: there is no such microphone.
        AudioError: it cannot be opened, because another program uses it, for example.

    >>> with open("test") as voice:
    ...     voice.closed
    False
    """
    options = {} if rate is None else {"sample_rate": str(check_rate(_CALL, rate))}
    check_seconds(_CALL, "timeout", timeout)
    source = lasting(_source(microphone, options), reconnect)
    try:
        return SoundCapture(source, timeout, _CALL).start()
    except AudioError as error:
        raise _explained(error, source.label) from error.__cause__


def named(name: str) -> LiveSound:
    """Open the microphone that a scene names: "microphone://", and its number or name."""
    which = name.removeprefix(SCHEME) or "default"
    return open(int(which) if which.isdecimal() else which)


def _source(microphone: str | int, options: dict[str, str]) -> VideoSource:
    if isinstance(microphone, bool) or not isinstance(microphone, str | int):
        expected = "'default', a number or a name"
        advice = "microphone.list() has them."
        raise ParameterError.invalid(_CALL, "microphone", expected, microphone, advice)
    if microphone == TEST:
        rate = options.get("sample_rate", "48000")
        tone = f"sine=frequency=440:beep_factor=2:sample_rate={rate},arealtime"
        return VideoSource(tone, "test microphone", True, "lavfi")
    found = devices.chosen(microphone, list(), _CALL, "microphone", AudioNotFound)
    return devices.microphone_source(found, options)


def _explained(error: AudioError, label: str) -> AudioError:
    """Return the error of a microphone that cannot be opened, with what FFmpeg means by it."""
    reasons = {
        16: ("another program uses it", "Close the other program."),
        13: ("access to it is not allowed", "Give this user access to microphones."),
    }
    found = reasons.get(getattr(error.__cause__, "errno", 0) or 0)
    if found is None:
        return error
    return AudioError(f"{_CALL}: cannot open {label!r}: {found[0]}. {found[1]}")
