"""Encoding: the thread that encodes frames, interleaves audio and writes the file."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from fractions import Fraction
from functools import cache

from dala import forks
from dala.errors import ParameterError, VideoError, did_you_mean
from dala.media.video.output.opening import EncoderChoice, PictureEncoding, open_encoder, refusal
from dala.media.video.output.target import Target
from dala.media.video.source import (
    AvObject,
    DecodedFrame,
    FrameQueue,
    av,
    ffmpeg_errors,
    ffmpeg_message,
)
from dala.media.video.tracks import Tracks
from dala.trace.recorder import OFF, tracer

#: FFmpeg's encoder for each codec name, and its default options. For x264 a shorter look-ahead than
#: the preset's and no B-frame pyramid save memory.
CODECS: dict[str, tuple[str, dict[str, str]]] = {
    "h264": (
        "libx264",
        {
            "crf": "20",
            "preset": "veryfast",
            "x264-params": "rc-lookahead=4:b-pyramid=none",
        },
    ),
    "hevc": ("libx265", {"crf": "23", "preset": "fast", "x265-params": "log-level=error"}),
    "h265": ("libx265", {"crf": "23", "preset": "fast", "x265-params": "log-level=error"}),
    "av1": ("libsvtav1", {"crf": "32", "preset": "9"}),
    "vp9": ("libvpx-vp9", {"crf": "32", "b": "0", "row-mt": "1", "cpu-used": "5"}),
    "vp8": ("libvpx", {"crf": "16", "b": "8M", "cpu-used": "5", "deadline": "good"}),
    "mpeg4": ("mpeg4", {"qscale": "3"}),
    "ffv1": ("ffv1", {}),
    "prores": ("prores_ks", {"vendor": "apl0"}),
    "png": ("png", {}),
}


#: The most threads x264 gets by default: each keeps frames of its own.
MAX_THREADS = 8
#: Frames that x265 may leave without decoding times; so few are in order anyway.
_FEW = 2
#: How many frames may wait for the encoder: x264 takes several at once, then none for a while.
QUEUE_SIZE = 4


#: The default codecs of containers that do not hold H.264.
_WITHOUT_H264 = {
    "ivf": "vp9",
    "obu": "av1",
    "hevc": "hevc",
    "h265": "hevc",
    "265": "hevc",
    "ogv": "vp8",
    "ogg": "vp8",
    "y4m": "rawvideo",
}


def default_codec(container: str, alpha: bool = False) -> str:
    """Return the default codec of a container.

    Raises:
        ParameterError: no codec of the container holds alpha.

    >>> default_codec("webm"), default_codec("mp4"), default_codec("mov", alpha=True)
    ('vp9', 'h264', 'prores')
    """
    if container == "webm":
        return "vp9"
    if not alpha:
        return _WITHOUT_H264.get(container, "h264")
    found = {"mov": "prores", "mkv": "ffv1", "avi": "ffv1"}.get(container)
    if found is None:
        raise ParameterError(
            f"video.write: no codec of {container!r} holds alpha. Write .mov (prores, png), .webm "
            "(vp9), or .mkv (ffv1, vp9)."
        )
    return found


def find_encoder(codec: str) -> tuple[str, dict[str, str]]:
    """Return FFmpeg's encoder for a codec name, and its default options.

    Raises:
        ParameterError: FFmpeg has no such video encoder.
    """
    name, options = CODECS.get(codec, (codec, {})) if isinstance(codec, str) else (codec, {})
    try:
        found = av.Codec(name, "w")
    except (av.FFmpegError, ValueError, TypeError) as error:
        raise ParameterError.invalid(
            "video.write",
            "codec",
            f"one of {', '.join(CODECS)}, or the name of an FFmpeg encoder",
            codec,
            did_you_mean(str(codec), CODECS),
        ) from error
    if name == "libsvtav1":
        os.environ.setdefault("SVT_LOG", "1")  # without it the encoder prints its settings
    if found.type != "video":
        raise ParameterError.invalid(
            "video.write", "codec", "a video encoder", codec, f"It encodes {found.type}."
        )
    return name, dict(options)


def default_threads(codec: str) -> int:
    """Return the number of threads for an encoder; 0 lets it choose.

    x264 gets more threads than cores, because they wait for one another at times.
    """
    return min((os.cpu_count() or 1) * 3 // 2, MAX_THREADS) if codec == "libx264" else 0


def fitted_options(codec: str, size: tuple[int, int], options: dict[str, str]) -> dict[str, str]:
    """Return an encoder's options, and more if a size of pictures needs them.

    >>> fitted_options("ffv1", (2, 6), {})
    {'level': '1'}
    """
    if codec == "ffv1" and min(size) < 16:
        return {"level": "1", **options}  # later versions of the format divide pictures into slices
    if codec == "libx265" and size[0] < 64:
        # Its macroblock tree writes past the end of its memory at such widths.
        parts = [options.get("x265-params", ""), "cutree=0"]
        return {**options, "x265-params": ":".join(filter(None, parts))}
    return options


#: What makes x264 give the same bytes each time: with AVX-512, its macroblock tree works on eight
#: macroblocks at once, and reads memory behind a row of them that was never written. AVX2 needs a
#: tenth more time, so whole eights (1280, 1920 and 3840 pixels) keep AVX-512. Seen with glibc's
#: MALLOC_PERTURB_=1, which changes the bytes at widths of 720, 854, 960 and 1600, and no others.
_WITHOUT_AVX512 = "asm=avx2"
#: Keeps x265 from naming the processor's instructions in the stream, which is the same otherwise.
_WITHOUT_NAMES = "info=0"


def repeatable_options(codec: str, options: dict[str, str], width: int) -> dict[str, str]:
    """Return an encoder's options, and more that make it repeatable, on this and other machines.

    >>> repeatable_options("libx265", {"crf": "20"}, 640)
    {'crf': '20', 'x265-params': 'info=0'}
    """
    whole = -(-width // 16) % 8 == 0
    avx2 = "" if whole or not has_instructions("avx512f") else _WITHOUT_AVX512
    name, more = {
        "libx264": ("x264-params", avx2),
        "libx265": ("x265-params", _WITHOUT_NAMES),
    }.get(codec, ("", ""))
    given = options.get(name, "")
    if not more or more.partition("=")[0] + "=" in given:
        return options
    return {**options, name: ":".join(filter(None, [given, more]))}


def common_options(options: dict[str, str]) -> dict[str, str]:
    """Return options without the additions of :func:`repeatable_options` on some machines.

    >>> common_options({"x264-params": "rc-lookahead=4:asm=avx2"})
    {'x264-params': 'rc-lookahead=4'}
    """
    given = options.get("x264-params", "")
    kept = [part for part in given.split(":") if part != _WITHOUT_AVX512]
    return {**options, "x264-params": ":".join(kept)} if given else options


@cache
def has_instructions(name: str) -> bool:
    """Return whether this processor has some instructions, by LLVM's name for them.

    >>> has_instructions("none of any")
    False
    """
    import llvmlite.binding as llvm

    try:
        return bool(llvm.get_host_cpu_features().get(name))
    except RuntimeError:  # unknown on this system
        return False


class Encoder:
    """A thread that encodes the frames of a queue into a target.

    Args:
        target: the file or stream; it is completed by ``finish``.
        choice: the encoder, with its options and pixel format.
        rate: frames per second, if known.
        time_base: the unit of the frames' times.
        size: width and height of the frames.
        tags: code points of range (FFmpeg's), matrix, primaries and transfer (H.273).
        threads: encoding threads; 0 for the default.
        tracks: sound and others to copy; the encoder closes them.
        shift: move the sound along with a video that is retimed to begin at 0.
        aspect: a pixel's width / height.
    """

    def __init__(
        self,
        target: Target,
        encoding: PictureEncoding,
        choice: EncoderChoice,
        tracks: Tracks,
        shift: bool,
    ) -> None:
        self._target = target
        self.tags = encoding.tags
        self._tracks = tracks
        self._error: Exception | None = None
        self._time = Fraction(0)
        self._durations: dict[int, int] = {}
        #: Their numbers in a trace, by time, and what the trace calls the encoder.
        self._traced: dict[int, int | None] = {}
        self._label = encoding.label
        advice = "The suffix names the container (.mp4, .mkv, .webm, .mov), and the folder must be "
        what = f"video.write: cannot create {target.label!r}"
        with ExitStack() as held:
            held.callback(target.discard)
            held.callback(tracks.close)
            with ffmpeg_errors(what, advice=f"{advice}writable."):
                self._output = target.open(Fraction(encoding.time_base))
            held.callback(self._output.close)
            held.callback(target.stop)
            try:
                self._stream = encoding.add_to(self._output, choice.device)
                context = self._stream.codec_context
                apple = target.format in ("mp4", "mov", "m4v")
                if apple and "hevc" in context.codec.canonical_name:
                    context.codec_tag = "hvc1"  # without it Apple's players show nothing
                tracks.add_to(self._output, shift)
                open_encoder(context)
                self._output.start_encoding()
            except VideoError:
                raise
            except (av.FFmpegError, OSError, ValueError) as error:
                # FFmpeg says the reason in its log only, which is read when it is opened once more.
                size = encoding.width, encoding.height
                reason = refusal(choice, size) or ffmpeg_message(error)
                raise VideoError(
                    f"{what} with {choice.name!r} at {size[0]}x{size[1]}: {reason}. Try another "
                    "codec, or a container that supports it (.mkv supports nearly all)."
                ) from error
            self.queue = FrameQueue(QUEUE_SIZE, "every", "frames to encode")
            self._thread = forks.thread(self._run, name="dala video encoder")
            self._thread.start()
            held.pop_all()

    def put(self, frame: DecodedFrame, duration: int | None = None) -> None:
        """Queue a frame. Raise the error of an earlier one, if encoding has failed.

        ``duration`` is how long it is shown, in units of its time base; of the last frame it is not
        implied by the next one's time.
        """
        if duration is not None:
            self._durations[frame.pts] = duration
        if not self.queue.put(frame):
            self._thread.join()
            raise self._error or VideoError(f"video.write: {self._target.label!r} was closed.")

    def finish(self) -> None:
        """Encode the remaining frames and complete the target. An error leaves no file."""
        self.queue.finish()
        try:
            while self._thread.is_alive():
                self._thread.join(0.5)
        except BaseException:  # Ctrl-C while waiting
            self.abandon()
            raise
        if self._error is not None:
            self._target.discard()
            raise self._error
        self._target.complete()

    def abandon(self) -> None:
        """Stop the thread and discard the unfinished file."""
        self._target.stop()
        self.queue.close()
        self._thread.join()
        self._target.discard()

    # the thread -------------------------------------------------------------------------------
    def _run(self) -> None:
        try:
            self._encode()
        except Exception as error:
            self._error = self._as_video_error(error)
            self.queue.close()
        finally:
            try:
                with closing(self._tracks):
                    self._output.close()
            except Exception as error:
                self._error = self._error or self._as_video_error(error)

    def _encode(self) -> None:
        sent = 0
        while (frame := self.queue.get()) is not None:
            self._time = Fraction(frame.pts) * Fraction(frame.time_base)
            sent += 1
            with tracer.span("encode", self._label) if tracer.on else OFF:
                if tracer.on:
                    self._traced[frame.pts] = tracer.frame
                packets = self._stream.encode(frame)
            for packet in packets:
                self._mux(packet)
            with tracer.span("mux", "sound") if tracer.on else OFF:
                self._tracks.feed(self._output, self._time)
        if self.queue.closed:
            return
        with tracer.span("encode", self._label) if tracer.on else OFF:
            packets = self._stream.encode(None)
        for packet in packets:
            if sent <= _FEW:
                packet.dts = packet.pts
            self._mux(packet)
        self._tracks.feed(self._output, None)
        self._tracks.finish(self._output)

    def _mux(self, packet: AvObject) -> None:
        duration = self._durations.pop(packet.pts, None)
        if duration is not None:
            packet.duration = duration
        frame = self._traced.pop(packet.pts, None)
        with tracer.span("mux", self._target.label, frame) if tracer.on else OFF:
            self._output.mux_one(packet)
        if tracer.on and frame is not None:
            tracer.done(self._target.label, frame)

    def _as_video_error(self, error: Exception) -> Exception:
        if isinstance(error, VideoError):
            return error
        failed = VideoError(
            f"video.write: {self._target.label!r} failed at {float(self._time):.3f} s: "
            f"{ffmpeg_message(error)}. No file was written."
        )
        failed.__cause__ = error
        return failed
