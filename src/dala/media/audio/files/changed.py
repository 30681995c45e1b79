"""The sound of a video with another volume, loudness or fades, on its way into another file."""

from __future__ import annotations

import math
from contextlib import ExitStack, closing
from functools import partial
from typing import Final

from dala.media.audio.checks import Samples, apply_fades, check_number, from_decibels
from dala.media.audio.effects import LimiterOptions
from dala.media.audio.files.decode import SoundDecoder
from dala.media.audio.files.writer import ENCODERS, MixedSound
from dala.media.audio.graph import FilterStream
from dala.media.audio.loudness import measure
from dala.media.audio.mixing.blocks import BlockFunction, BlockSource, FileSound, Processed
from dala.media.video.source import VideoSource
from dala.media.video.tracks import TrackGroup, Tracks
from dala.notices import notify

#: Samples that are measured at once.
_PART: Final = 1 << 16
#: The limit of peaks where a loudness is asked for, in dB.
_LIMIT: Final = -1.0


def changed_sound(
    source: VideoSource,
    call: str,
    *,
    volume: float = 1.0,
    loudness: float | None = None,
    fade_in: float = 0.0,
    fade_out: float = 0.0,
    from_pictures: bool = False,
) -> Tracks:
    """Return everything of a file but its pictures, with the sound of all its tracks changed.

    Each track is encoded again in its own codec where the container takes it. A loudness is
    measured for each track first; peaks above -1 dB are limited then.

    Args:
        source: the file.
        call: the call for messages.
        volume: factor of the samples.
        loudness: the integrated loudness to reach in LUFS, by EBU R128.
        fade_in, fade_out: seconds.
        from_pictures: let the time 0 be that of the first picture.
    """
    check_number(call, "volume", volume, 0.0, 1000.0)
    if loudness is not None:
        check_number(call, "loudness", loudness, -70.0, 0.0, "LUFS")
    for name, value in (("fade_in", fade_in), ("fade_out", fade_out)):
        check_number(call, name, value, 0.0, 1e6, "s")
    with ExitStack() as held:
        made: list[Tracks] = [Tracks(source, call, sound=False, everything=True)]
        held.callback(made[0].close)
        with closing(SoundDecoder(source, 0, call)) as decoder:
            tracks = decoder.tracks
        for track in tracks:
            with closing(SoundDecoder(source, track.number, call)) as decoder:
                layout = decoder.layout
            sound = FileSound(
                source, track.rate, layout=layout, track=track.number, call=call,
                pictures=from_pictures,
            )  # fmt: skip
            held.callback(sound.close)
            name = f"{source.label}: sound track {track.number}"
            blocks, length = _changed(sound, call, name, volume, loudness, (fade_in, fade_out))
            tags = {"language": track.language, "title": track.title}
            made.append(MixedSound(
                blocks, call, length=length, prefer=_codec(track.codec), tags=tags,
                closing=sound.close,
            ))  # fmt: skip
        held.pop_all()
    return TrackGroup(made)


def _changed(
    sound: FileSound, call: str, name: str, volume: float, loudness: float | None,
    fades: tuple[float, float],
) -> tuple[BlockSource, int]:  # fmt: skip
    """Return a track with another volume or loudness and fades, and its length."""
    length, limited, rate, layout = sound.exact_length(), False, sound.rate, sound.layout
    if loudness is not None:
        parts = (sound.render(at, min(_PART, length - at)) for at in range(0, length, _PART))
        found = measure(call, parts, rate, layout, true_peak=False, maxima=False)
        if math.isfinite(found.integrated):
            volume *= from_decibels(loudness - found.integrated)
            limited = from_decibels(found.peak) * volume > from_decibels(_LIMIT)
        else:
            notify(f"{name} is silent, and left as it is.")
    rising, falling = (round(seconds * rate) for seconds in fades)

    def render(start: int, count: int) -> Samples:
        block = sound.render(start, count)
        if volume != 1:
            block = block * block.dtype.type(volume)
        return apply_fades(block, start, length, rising, falling, "linear")

    blocks = BlockFunction(rate, layout, render)
    if not limited:
        return blocks, length
    notify(f"{name}: peaks above {_LIMIT:g} dB are limited to reach {loudness:g} LUFS.")
    limiter = partial(FilterStream, call, LimiterOptions(limit=_LIMIT).steps(rate), rate, layout)
    return Processed(blocks, limiter, run_up=0.2), length


def _codec(name: str) -> str:
    """Return the name that ``ENCODERS`` has for a codec; "" if it has none."""
    found = {encoder.removeprefix("lib"): known for known, (encoder, _) in ENCODERS.items()}
    return found.get({"mp3": "mp3lame"}.get(name, name), "")
