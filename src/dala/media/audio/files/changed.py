"""The sound of a video with another volume, loudness or fades, on its way into another file."""

from __future__ import annotations

import math
from typing import Final

from dala.media.audio.audio import Audio
from dala.media.audio.checks import Samples, check_number, from_decibels
from dala.media.audio.effects import limiter_step
from dala.media.audio.files.decode import AudioTrack, SoundDecoder
from dala.media.audio.files.writer import ENCODERS, MixedSound
from dala.media.audio.graph import FilterStream
from dala.media.audio.loudness import LoudnessMeter
from dala.media.audio.mixing.blocks import FileSound, Processed
from dala.media.audio.samples import apply_fades
from dala.media.notices import notify
from dala.media.video.source import VideoSource
from dala.media.video.tracks import TrackGroup, Tracks

#: Samples that are measured at once.
_PART: Final = 1 << 16
#: The limit of peaks where a loudness is asked for, in dB.
_LIMIT: Final = -1.0


class ChangedSound:
    """A track of a file with a factor and fades: a source of blocks.

    Args:
        sound: the track.
        factor: of the samples.
        fade_in, fade_out: seconds.
        length: samples of the track.
    """

    def __init__(
        self, sound: FileSound, factor: float, fade_in: float, fade_out: float, length: int
    ) -> None:
        self.rate, self.layout = sound.rate, sound.layout
        self._sound = sound
        self._factor = factor
        self._fades = round(fade_in * sound.rate), round(fade_out * sound.rate)
        self._length = length

    def render(self, start: int, count: int) -> Samples:
        """Return samples from a place on."""
        block = self._sound.render(start, count)
        if self._factor != 1:
            block = block * block.dtype.type(self._factor)
        return apply_fades(block, start, self._length, *self._fades, "linear")


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
    made: list[Tracks] = [Tracks(source, call, sound=False, everything=True)]
    try:
        looking = SoundDecoder(source, 0, call)
        tracks = looking.tracks
        looking.close()
        for track in tracks:
            made.append(
                _track(source, track, call, volume, loudness, (fade_in, fade_out), from_pictures)
            )
    except BaseException:
        for one in made:
            one.close()
        raise
    return TrackGroup(made)


def _track(
    source: VideoSource, track: AudioTrack, call: str, volume: float, loudness: float | None,
    fades: tuple[float, float], from_pictures: bool,
) -> MixedSound:  # fmt: skip
    sound = FileSound(
        source, track.rate, layout=_own_layout(source, track, call), track=track.number,
        call=call, pictures=from_pictures,
    )  # fmt: skip
    try:
        length = sound.exact_length() if loudness is None else 0
        factor = volume
        limited = False
        if loudness is not None:
            found, peak, length = _measured(sound, call)
            if math.isfinite(found):
                factor = volume * from_decibels(loudness - found)
                limited = peak * factor > from_decibels(_LIMIT)
            else:
                notify(f"{source.label}: sound track {track.number} is silent, and left as it is.")
        blocks = ChangedSound(sound, factor, *fades, length)
        rate, layout = sound.rate, sound.layout
        heard = Processed(
            blocks, lambda: FilterStream(call, [limiter_step(_LIMIT)], rate, layout), run_up=0.2
        )
        if limited:
            notify(
                f"{source.label}: peaks above {_LIMIT:g} dB are limited to reach {loudness:g} LUFS."
            )
        return MixedSound(
            heard if limited else blocks, call, length=length, prefer=_codec(track.codec),
            tags={"language": track.language, "title": track.title}, closing=sound.close,
        )  # fmt: skip
    except BaseException:
        sound.close()
        raise


def _own_layout(source: VideoSource, track: AudioTrack, call: str) -> str:
    decoder = SoundDecoder(source, track.number, call)
    try:
        return decoder.layout
    finally:
        decoder.close()


def _measured(sound: FileSound, call: str) -> tuple[float, float, int]:
    """Return the loudness of a track, its largest sample and its length."""
    meter = LoudnessMeter(call, sound.rate, sound.layout, true_peak=False, maxima=False)
    length, peak = sound.exact_length(), 0.0
    for at in range(0, length, _PART):
        block = sound.render(at, min(_PART, length - at))
        peak = max(peak, Audio(block, sound.rate, layout=sound.layout).peak)
        meter.feed(block)
    return meter.result().integrated, peak, length


def _codec(name: str) -> str:
    """Return the name that ``ENCODERS`` has for a codec; "" if it has none."""
    found = {encoder.removeprefix("lib"): known for known, (encoder, _) in ENCODERS.items()}
    return found.get({"mp3": "mp3lame"}.get(name, name), "")
