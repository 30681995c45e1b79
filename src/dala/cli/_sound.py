"""Options about the sound of videos."""

from __future__ import annotations

import argparse
import math
import re
from typing import TYPE_CHECKING

from dala.errors import ParameterError

if TYPE_CHECKING:
    from dala.media.video.files import Reader
    from dala.media.video.tracks import Tracks

_CALL = "dala filter"


def volume(text: str) -> float:
    """Return the factor of a volume.

    >>> volume("0.5"), round(volume("-6dB"), 3)
    (0.5, 0.501)
    """
    found = re.fullmatch(r"\s*([-+0-9.eE]+)\s*(db)?\s*", text, re.IGNORECASE)
    try:
        value = float(found[1]) if found is not None else math.nan
        if found is not None and found[2]:
            value = 10 ** (value / 20) if value < 61 else math.nan
    except (ValueError, OverflowError):
        value = math.nan
    if not 0 <= value <= 1000:
        raise argparse.ArgumentTypeError(
            f"must be a factor from 0 to 1000, or decibels such as -6dB, got {text!r}."
        )
    return value


def loudness(text: str) -> float:
    """Return a loudness in LUFS.

    >>> loudness("-16")
    -16.0
    """
    try:
        value = float(text.lower().removesuffix("lufs"))
    except ValueError:
        value = math.nan
    if not -70 <= value <= 0:
        raise argparse.ArgumentTypeError(f"must be from -70 to 0 LUFS, got {text!r}.")
    return value


def fades(text: str) -> tuple[float, float]:
    """Return the seconds of fades in and out.

    >>> fades("1"), fades("0.5,2")
    ((1.0, 1.0), (0.5, 2.0))
    """
    parts = text.split(",")
    try:
        values = [float(part) for part in parts]
    except ValueError:
        values = []
    if len(values) not in (1, 2) or not all(0 <= value <= 1e6 for value in values):
        raise argparse.ArgumentTypeError(
            f"must be seconds, such as 1, or 0.5,2 for in and out, got {text!r}."
        )
    return values[0], values[-1]


def tracks_of(source: Reader, args: argparse.Namespace) -> Tracks:
    """Return what is kept besides the pictures: sound as it is, unless options change it."""
    from dala.media.video.tracks import Tracks

    changed = args.volume is not None or args.loudness is not None or args.audio_fade is not None
    if not changed:
        return Tracks(source.source, _CALL, sound=not args.no_audio, everything=True)
    if args.no_audio:
        raise ParameterError(
            "--no-audio drops the sound. Leave out --volume, --loudness and --audio-fade."
        )
    if not source.has_audio:
        raise ParameterError(
            f"{source.name} has no sound. Leave out --volume, --loudness and --audio-fade."
        )
    from dala.media.audio.files.changed import changed_sound

    rising, falling = args.audio_fade or (0.0, 0.0)
    return changed_sound(
        source.source,
        _CALL,
        volume=1.0 if args.volume is None else args.volume,
        loudness=args.loudness,
        fade_in=rising,
        fade_out=falling,
        from_pictures=args.retime,
    )
