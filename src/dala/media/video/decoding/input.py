"""An open video: a file, URL or camera, and the stream of pictures in it."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from typing import Protocol

from dala import forks, memory
from dala.budget import check_deadline
from dala.errors import DeviceUnavailable, VideoError
from dala.media.video.decoding.nvdec import (
    codec_with,
    engine_of,
    is_on_gpu,
    options_for,
)
from dala.media.video.options import DecodeOptions
from dala.media.video.reach import is_playlist
from dala.media.video.source import AvObject, DecodedFrame, VideoSource, av, ffmpeg_message
from dala.media.video.stages import SizeKeeper, alpha_decoder
from dala.media.video.timing import start_offset
from dala.trace.recorder import tracer

#: Hardware that is tried first.
_FIRST = ("cuda", "d3d11va", "videotoolbox")
#: The number of frames in an IVF file that was written to a pipe.
_UNKNOWN_COUNT = 0xFFFFFFFF


def frame_count(stream: AvObject) -> int:
    """Return the number of frames that a stream's header gives; 0 if it does not say."""
    count = int(stream.frames)
    return 0 if count == _UNKNOWN_COUNT else count


class SoundListener(Protocol):
    """A receiver of live sound. Times are on the frames' clock, arrivals on ours."""

    def seen(self, time: float, arrival: float) -> None:
        """Take the time of a picture."""

    def heard(self, frame: AvObject, time: float | None, arrival: float) -> None:
        """Take a frame of sound."""


class VideoInput:
    """A file, URL or camera opened by FFmpeg, and its video stream."""

    def __init__(
        self,
        source: VideoSource,
        options: DecodeOptions,
        call: str,
    ) -> None:
        self.source = source
        self.options = options
        self.call = call
        self.size = SizeKeeper(options.on_resize, source.label, self.say)
        #: How the video was found to be scanned, for further runs of the decoder.
        self.scan: str | None = None
        self._hwaccel = options.hwaccel
        #: The engine whose GPU keeps the frames; None if they are decoded to the host's memory.
        self._engine = engine_of(options.device) if options.hwaccel in (None, "cuda") else None
        self._container: AvObject = None
        self._stream: AvObject = None
        self._opening = forks.rlock()  # held while a lost source is opened again
        self.decoder: AvObject = None
        #: What takes the sound of a live source; None if it is not wanted.
        self.listener: SoundListener | None = None
        #: Seconds on the file's own clock at which the frames' clock is 0.
        self.begin = Fraction(0)
        #: What the user should know, by subject, in the order it happened.
        self.notices: dict[str, str] = {}
        if options.hwaccel == "auto":
            self._open_fastest()
        elif self._engine is not None and options.hwaccel is None:
            self._open_on_gpu()
        else:
            self.open()

    @property
    def container(self) -> AvObject:
        """The open container of PyAV."""
        return self._container or self._reopened()[0]

    @property
    def stream(self) -> AvObject:
        """The stream of pictures."""
        return self._stream or self._reopened()[1]

    @property
    def sound(self) -> AvObject | None:
        """The stream of sound of a live source, which arrives with its pictures; None for files."""
        found = self.container.streams.audio if self.source.live else ()
        return found[0] if found else None

    def _reopened(self) -> tuple[AvObject, AvObject]:
        """Return container and stream once the source is open again.

        Raises:
            VideoError: it is lost, or closed.
        """
        with self._opening:
            if self._container is None or self._stream is None:
                raise VideoError(f"{self.call}: {self.source.label!r} is not open at the moment.")
            return self._container, self._stream

    def say(self, subject: str, what: str) -> None:
        """Keep a notice about a subject; only the first is kept."""
        self.notices.setdefault(subject, f"{self.source.label}: {what}")

    def open(self) -> None:
        """Open the source, or reopen it at the beginning."""
        with self._opening:
            self._open()

    def _open(self) -> None:
        source = self.source
        self.close()
        hardware = {} if self._hwaccel is None else {"hwaccel": self._hardware()}
        try:
            self._container = self._opened(hardware)
        except (av.FFmpegError, OSError, ValueError, RuntimeError, TypeError) as error:
            check_deadline(self.call)
            if self._hwaccel is not None and self._opens_without():
                raise self._hardware_refused(error) from error
            why = "It is not a video, its header is damaged, or it cannot be reached."
            from dala.untrusted.requests import OtherHost  # with ssl and http

            # Its format is not listed, or it leads to another host.
            refused = source.url and isinstance(error, av.ArgumentError | OtherHost)
            if not source.playlists and (refused or is_playlist(source.head(16))):
                why = (
                    "It is a playlist, which names other files or hosts. If you trust it, open it "
                    "with playlists=True."
                )
            raise VideoError(
                f"{self.call}: cannot open {source.label!r}: {ffmpeg_message(error)}. {why}"
            ) from error
        try:
            self._stream = self._pick()
            context = self._stream.codec_context
            if self._hwaccel == "cuda" and (context.width % 2 or context.height % 2):
                raise self._hardware_refused("the colors of odd sizes are wrong")
        except BaseException:
            self.close()
            raise
        self.begin = start_offset(self.container)
        self.decoder = self._own_decoder() or self._set_up(self.stream.codec_context)

    def _set_up(self, decoder: AvObject) -> AvObject:
        decoder.thread_type = "AUTO"
        decoder.thread_count = self.options.threads
        if tracer.on:  # packets and their frames share an id
            decoder.flags |= av.codec.context.Flags.copy_opaque
        return decoder

    def _opened(self, hardware: dict[str, AvObject]) -> AvObject:
        try:
            return self.source.open(self.options.timeout, **hardware)
        except RuntimeError as error:
            if type(error) is not RuntimeError or not hardware:
                raise
        # The decoders that FFmpeg prefers for the streams have no hardware; others may have.
        return self.source.open(self.options.timeout)

    def _own_decoder(self) -> AvObject | None:
        """Return a decoder in the place of FFmpeg's choice; None if that is right."""
        if self._hwaccel is not None:
            return None if self.stream.codec_context.is_hwaccel else self._hardware_decoder()
        try:
            found = alpha_decoder(self.stream)
            return found and self._set_up(found)
        except KeyError as missing:
            self.say("alpha", f"its alpha is ignored: this build of FFmpeg has no {missing}.")
            return None

    def _hardware_decoder(self) -> AvObject:
        """Return the decoder of another name that has the hardware: for AV1 FFmpeg takes dav1d."""
        like = self.stream.codec_context
        codec = codec_with(str(self._hwaccel), like)
        if codec is None:
            raise self._hardware_refused("it has no decoder for this codec")
        try:
            made = self._set_up(av.CodecContext.create(codec, "r", hwaccel=self._hardware()))
            made.extradata = like.extradata
            if not self.source.live:  # these decoders have no software to fall back to: try one
                with self.source.open(self.options.timeout) as trial:
                    for packet in trial.demux(trial.streams[self.stream.index]):
                        if made.decode(packet):
                            break
                made.flush_buffers()
        except (av.FFmpegError, OSError, RuntimeError, ValueError) as error:
            raise self._hardware_refused(error) from error
        return made

    def _open_on_gpu(self) -> None:
        """Open the source with NVIDIA's decoder, else on the CPU, and say so."""
        self._hwaccel = "cuda"
        try:
            self.open()
        except DeviceUnavailable as error:
            reason = str(error).partition(". Leave hwaccel")[0].split(": ", 2)[-1]
            self._hwaccel = self._engine = None
            self.open()
            self.say("hwaccel", f"it is decoded on the CPU, as NVDEC cannot: {reason}.")

    def look_at(self, frame: DecodedFrame) -> None:
        """Say so if a frame that the GPU should have is the CPU's."""
        if self._engine is not None and not is_on_gpu(frame):
            self.say("hwaccel", "it is decoded on the CPU, as NVDEC does not decode such a video.")

    def _open_fastest(self) -> None:
        """Open the source with the first hardware that decodes it, else on the CPU, and say so."""
        from av.codec.hwaccel import hwdevices_available

        tried = []
        found = hwdevices_available()
        for self._hwaccel in sorted(found, key=lambda name: (name not in _FIRST, name)):
            try:
                self.open()
                return
            except DeviceUnavailable as error:
                reason = str(error).partition(". Leave hwaccel")[0].split(": ", 2)[-1]
                tried.append(f"{self._hwaccel} ({reason})")
        self._hwaccel = None
        self.open()
        why = ", ".join(tried) or "nothing, as this build of FFmpeg has no hardware decoders"
        self.say("hwaccel", f"it is decoded on the CPU. Tried {why}.")

    def _hardware(self) -> AvObject:
        from av.codec.hwaccel import HWAccel, hwdevices_available

        available = hwdevices_available()
        if self._hwaccel not in available:
            raise DeviceUnavailable(
                f"{self.call}: hwaccel {self._hwaccel!r} is not in this build of FFmpeg. It has "
                f"{', '.join(available) or 'none'}. Leave hwaccel out to decode on the CPU."
            )
        try:
            if self._engine is not None:
                return HWAccel(
                    device_type="cuda", **options_for(self._engine, self.options.hwaccel is None)
                )
            return HWAccel(device_type=self._hwaccel, allow_software_fallback=False)
        except (RuntimeError, OSError, ValueError) as error:
            raise DeviceUnavailable(
                f"{self.call}: hwaccel {self._hwaccel!r} cannot start on this machine: "
                f"{ffmpeg_message(error)}. Leave hwaccel out to decode on the CPU."
            ) from error

    def _opens_without(self) -> bool:
        """Return whether the source opens without hardware decoding."""
        try:
            self.source.open().close()
        except (av.FFmpegError, OSError, ValueError):
            return False
        return True

    def _pick(self) -> AvObject:
        name = self.source.label
        streams = self.container.streams
        if not streams.video:
            kinds = sorted({s.type for s in streams}) or ["nothing"]
            raise VideoError(
                f"{self.call}: {name!r} has no video stream. It holds {', '.join(kinds)}."
            )
        try:
            stream = streams.best("video") or streams.video[0]
            context = stream.codec_context
        except (av.FFmpegError, RuntimeError, ValueError, NotImplementedError) as error:
            raise self._hardware_refused(error) from error
        if context is None:
            raise VideoError(f"{self.call}: FFmpeg has no decoder for the codec of {name!r}.")
        # A header of a few bytes may claim any size. Decoders hold several pictures.
        memory.check(16 * context.width * context.height, self.call)
        return stream

    @property
    def frame_bytes(self) -> int:
        """The bytes of a decoded picture, as the header declares them."""
        context = self.stream.codec_context
        found = context.format
        bits = 32 if found is None else found.padded_bits_per_pixel or 32
        return int(context.width * context.height * bits // 8)

    def _hardware_refused(self, why: BaseException | str) -> Exception:
        reason = ffmpeg_message(why) if isinstance(why, BaseException) else why
        return DeviceUnavailable(
            f"{self.call}: cannot decode {self.source.label!r} with hwaccel "
            f"{self._hwaccel!r}: {reason}. Leave hwaccel out to decode on the CPU."
        )

    @property
    def label(self) -> str:
        """The decoder, for traces: codec, hardware and threads."""
        context, how = self.decoder, self._hwaccel or "CPU"
        return f"{context.name} {context.width}x{context.height} on {how}"

    @property
    def rate(self) -> Fraction | None:
        """Frames per second: the average if known."""
        found = self.stream.average_rate or self.stream.guessed_rate
        return Fraction(found) if found else None

    @property
    def promised_end(self) -> Fraction | None:
        """End of the video in seconds according to the file's header, or None."""
        stream, container = self.stream, self.container
        if frame_count(stream) and stream.duration is not None:
            return Fraction(((stream.start_time or 0) + stream.duration) * stream.time_base)
        if "matroska" not in container.format.name or container.duration is None:
            return None  # FFmpeg estimated it from the file itself
        tag = stream.metadata.get("DURATION", "").split(":")
        if len(tag) == 3:
            with contextlib.suppress(ValueError, ZeroDivisionError):  # not a time
                return Fraction(int(tag[0]) * 3600 + int(tag[1]) * 60) + Fraction(tag[2])
        alone = len(container.streams) == 1
        return Fraction(container.duration, 1_000_000) if alone else None

    def close(self) -> None:
        """Close the file."""
        if self._container is not None:
            container, self._container, self._stream = self._container, None, None
            container.close()
            self.decoder = None  # ends the threads of the codec
