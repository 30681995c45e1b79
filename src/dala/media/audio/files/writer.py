"""Encoding sound: into files of its own, and into the files of videos."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from fractions import Fraction
from typing import TYPE_CHECKING, BinaryIO, Final

from dala.arguments import Integer, Selection
from dala.budget import checked
from dala.errors import AudioError, ParameterError, VideoError
from dala.media.audio.checks import LAYOUTS, Samples
from dala.media.audio.graph import Converter, sound_frame
from dala.media.parts import PartFile
from dala.media.video.output.target import destination
from dala.media.video.source import AvObject, av, ffmpeg_errors
from dala.media.video.tracks import Tracks
from dala.media.video.tracks.containers import container_of
from dala.notices import notify
from dala.typing import PathLike

if TYPE_CHECKING:
    from dala.media.audio.audio import Audio
    from dala.media.audio.mixing.blocks import BlockSource

#: FFmpeg's encoders by the names that people know, with the sample format to use.
ENCODERS: Final = {
    "aac": ("aac", "fltp"), "opus": ("libopus", "flt"), "vorbis": ("libvorbis", "fltp"),
    "flac": ("flac", "s32"), "mp3": ("libmp3lame", "fltp"), "alac": ("alac", "s32p"),
    "ac3": ("ac3", "fltp"), "mp2": ("mp2", "s16"), "wmav2": ("wmav2", "fltp"),
    "pcm": ("pcm_s16le", "s16"), "pcm24": ("pcm_s24le", "s32"), "pcm32": ("pcm_s32le", "s32"),
    "pcm_float": ("pcm_f32le", "flt"),
}  # fmt: skip
#: The codec of a container by the name of its muxer, where it is not that of videos.
_USUAL: Final = {
    "wav": "pcm", "w64": "pcm", "flac": "flac", "mp3": "mp3", "ipod": "aac", "adts": "aac",
    "ogg": "opus", "oga": "opus", "opus": "opus", "aiff": "pcm", "caf": "pcm", "ac3": "ac3",
    "matroska": "flac", "mp2": "mp2",
}  # fmt: skip
#: Muxers of suffixes that FFmpeg does not know, or knows as something else.
_MUXERS: Final = {"mka": "matroska", "mkv": "matroska", "m4a": "ipod", "aac": "adts", "oga": "ogg"}
_LOSSLESS: Final = ("flac", "alac", "pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_f32le")
_OPUS_RATES: Final = (8000, 12000, 16000, 24000, 48000)
_MP3_RATES: Final = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
_AAC_RATES: Final = (*_MP3_RATES, 64000, 88200, 96000)
_RATES: Final = {
    "libopus": _OPUS_RATES, "libmp3lame": _MP3_RATES, "aac": _AAC_RATES,
    "ac3": (32000, 44100, 48000), "mp2": (16000, 22050, 24000, 32000, 44100, 48000),
    "wmav2": _MP3_RATES,
}  # fmt: skip
_TWO_CHANNELS: Final = ("libmp3lame", "mp2", "wmav2")
#: Layouts of encoders that take some only.
_LAYOUTS: Final = {
    "aac": ("mono", "stereo", "3.0", "4.0", "5.0", "5.1", "7.1"),
    "libopus": ("mono", "stereo", "3.0", "quad", "5.0", "5.1", "6.1", "7.1"),
    "libvorbis": ("mono", "stereo", "3.0", "quad", "5.0", "5.1", "6.1", "7.1"),
    "ac3": ("mono", "stereo", "3.0", "4.0", "quad", "5.0", "5.1"),
    "alac": ("mono", "stereo", "3.0", "4.0", "5.0", "5.1", "6.1(back)", "7.1(wide)"),
}  # fmt: skip
#: FFmpeg's names of the codecs.
_CANONICAL: Final = {
    name: {"libopus": "opus", "libvorbis": "vorbis", "libmp3lame": "mp3"}.get(encoder, encoder)
    for name, (encoder, _) in ENCODERS.items()
}
#: Samples that are encoded at once.
_PART: Final = 4096
_CALL: Final = "Audio.save"


def usual_codec(muxer: str) -> str:
    """Return the codec that sound has in a container, by the name of its muxer; "" for none.

    >>> usual_codec("mp4"), usual_codec("webm"), usual_codec("matroska"), usual_codec("wav")
    ('aac', 'opus', 'flac', 'pcm')
    """
    if muxer in _USUAL:
        return _USUAL[muxer]
    encoder = container_of(muxer).sound_encoder
    return next((name for name, found in ENCODERS.items() if found[0] == encoder), "")


def check_codec(call: str, codec: str, name: str = "codec") -> str:
    """Return the name of a codec of sound.

    >>> check_codec("Audio.save", "flac")
    'flac'
    """
    return str(Selection(*ENCODERS).check(call, name, codec))


class SoundEncoder:
    """Encodes blocks of samples into a stream of a container.

    Args:
        output: the open container.
        codec: a name of ``ENCODERS``.
        rate, layout: of the samples.
        call, label: for messages.
        bit_rate: bits per second; None for 96000 for each channel.
    """

    def __init__(
        self,
        output: AvObject,
        codec: str,
        rate: int,
        layout: str,
        *,
        call: str,
        label: str,
        bit_rate: int | None = None,
    ) -> None:
        encoder, form = ENCODERS[codec]
        self.codec = codec
        to_rate = _nearest(rate, _RATES.get(encoder))
        to_layout = _fitting(layout, encoder)
        if (to_rate, to_layout) != (rate, layout):
            notify(
                f"{label}: {codec} does not hold {rate} Hz {layout}; it is converted to {to_rate} "
                f"Hz {to_layout}."
            )
        self._convert = Converter(call, rate, layout, to_rate, to_layout)
        what = f"{call}: {label!r} cannot hold {codec} of {to_rate} Hz {to_layout}"
        with ffmpeg_errors(what, AudioError):
            self.stream = output.add_stream(encoder, rate=to_rate)
            context = self.stream.codec_context
            context.layout = to_layout
            context.format = form
            if encoder not in _LOSSLESS:
                context.bit_rate = bit_rate or 96_000 * LAYOUTS[to_layout]
            if codec == "flac":
                context.options = {"compression_level": "5"}
            context.open(strict=False)
        self._rate, self._layout = to_rate, to_layout
        self._at = 0

    def encode(self, block: Samples) -> Iterator[AvObject]:
        """Yield the packets that a block completes."""
        yield from self._encode(self._convert.process(block))

    def flush(self) -> Iterator[AvObject]:
        """Yield the last packets."""
        yield from self._encode(self._convert.finish())
        yield from self.stream.encode(None)

    def _encode(self, block: Samples) -> Iterator[AvObject]:
        if not len(block):
            return
        frame = sound_frame(block, self._rate, self._layout, self._at)
        self._at += len(block)
        yield from self.stream.encode(frame)


def _nearest(rate: int, known: tuple[int, ...] | None) -> int:
    if known is None or rate in known:
        return rate
    return min((r for r in known if r >= rate), default=known[-1])


def _fitting(layout: str, encoder: str) -> str:
    if encoder in _TWO_CHANNELS and LAYOUTS[layout] > 2:
        return "stereo"
    known = _LAYOUTS.get(encoder)
    if known is None or layout in known:
        return layout
    same = [name for name in known if LAYOUTS[name] == LAYOUTS[layout]]
    return same[0] if same else "stereo"


# files --------------------------------------------------------------------------------------------
def save(
    sound: Audio, path: PathLike | BinaryIO, format: str | None, codec: str | None,
    bit_rate: int | None,
) -> None:  # fmt: skip
    """Write a sound to a file, which appears when it is complete; see ``Audio.save``."""
    if codec is not None:
        check_codec(_CALL, codec)
    if bit_rate is not None:
        Integer(1000, 10_000_000).check(_CALL, "bit_rate", bit_rate)
    target, stream, kind = destination(_CALL, path, format, "wav", AudioError)
    muxer = _MUXERS.get(kind, kind)
    try:
        av.ContainerFormat(muxer, "w")
    except ValueError:
        raise ParameterError(
            f"{_CALL}: there is no container {kind!r}. Use .wav, .flac, .mp3, .m4a, .ogg, .opus or "
            ".mka."
        ) from None
    chosen = codec or usual_codec(muxer)
    label = str(target) if target else str(getattr(stream, "name", "") or "a file object")
    if not chosen:
        raise ParameterError(
            f"{_CALL}: {muxer!r} is not known as a container of sound. Use .wav, .flac, .mp3, "
            ".m4a, .ogg or .mka, or give codec."
        )
    with ExitStack() as held, ffmpeg_errors(f"{_CALL}: cannot write {label!r}", AudioError):
        part = None if target is None else held.enter_context(PartFile(target, target.suffix))
        where = stream if part is None else str(part.path)
        options = {"rf64": "auto"} if muxer == "wav" else {}
        with av.open(where, "w", format=muxer, options=options) as output:
            encoder = SoundEncoder(
                output, chosen, sound.rate, sound.layout, call=_CALL, label=label,
                bit_rate=bit_rate,
            )  # fmt: skip
            for at in checked(range(0, len(sound), _PART), _CALL):
                output.mux(encoder.encode(sound.samples[at : at + _PART]))
            output.mux(encoder.flush())
            output.start_encoding()  # a sound without samples is a file, too
        if part is not None:
            part.complete()


# the sound of videos ------------------------------------------------------------------------------
class MixedSound(Tracks):
    """The sound of a mixer as a track of a video file, rendered as the pictures advance.

    Args:
        source: what renders the blocks.
        begin: the sample of the source at which the video begins.
        length: samples in all; None for as long as the pictures are, with ``fps`` of 1.
        codec: a name of ``ENCODERS``; by default what is usual in the container.
        prefer: the codec to use if the container takes it.
        tags: the language and the title of the track.
        optional: leave the sound out, with a notice, where the container has none.
        closing: called when the file is done or abandoned.
    """

    def __init__(
        self,
        source: BlockSource,
        call: str,
        *,
        begin: int = 0,
        length: int,
        codec: str | None = None,
        prefer: str = "",
        tags: Mapping[str, str] | None = None,
        optional: bool = False,
        closing: Callable[[], None] = lambda: None,
    ) -> None:
        self._prefer = prefer
        self._tags = tags or {}
        self._optional = optional
        self._blocks = source
        self._call = call
        self._begin = begin
        self._length = length
        self._codec = codec
        self._closing = closing
        self._done = 0
        self._encoder: SoundEncoder | None = None

    def add_to(self, output: AvObject, shift_to_zero: bool) -> None:
        """Add the stream of the sound to the output."""
        muxer = output.format.name
        codec = self._codec or usual_codec(muxer)
        if self._prefer and container_of(muxer).takes_sound(_CANONICAL.get(self._prefer, "")):
            codec = self._prefer
        if not codec and self._optional:
            notify(f"{output.name}: {muxer} has no sound; that of the scene is left out.")
            self._done = self._length
            return
        if not codec:
            raise VideoError(
                f"{self._call}: no sound fits into {output.name!r}. Write to .mp4, .mkv or .webm, "
                "or pass audio=False."
            )
        source = self._blocks
        self._encoder = SoundEncoder(
            output, codec, source.rate, source.layout, call=self._call, label=output.name
        )
        for name, value in self._tags.items():
            if value:
                self._encoder.stream.metadata[name] = value

    def feed(self, output: AvObject, until: Fraction | None) -> None:
        """Render and encode up to the time of a picture; with None, to the end."""
        total, rate = self._length, self._blocks.rate
        end = total if until is None else min(total, round(until * rate) + rate // 10)
        while self._done < end:
            assert self._encoder is not None
            count = min(_PART, total - self._done)
            block = self._blocks.render(self._begin + self._done, count)
            self._done += count
            output.mux(self._encoder.encode(block))

    def finish(self, output: AvObject) -> None:
        """Write the last packets of the encoder."""
        if self._encoder is not None:
            output.mux(self._encoder.flush())

    def close(self) -> None:
        """Release the source."""
        self._closing()
