"""Encoding behind: the thread that encodes pictures, lays sound between them and makes the file."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

from dala.errors import ParameterError, VideoError
from dala.media.video import color as colour
from dala.media.video.decode import words
from dala.media.video.live import Queue, pyav
from dala.media.video.sound import Sound

#: The encoder behind each plain name, and what it is told unless the caller says otherwise. A
#: look-ahead of x264 that is shorter than the preset's, fewer pictures between it and the encoding,
#: and no pyramid of B-frames keep 80 MB less at 1080p.
CODECS: dict[str, tuple[str, dict[str, str]]] = {
    "h264": (
        "libx264",
        {
            "crf": "20",
            "preset": "veryfast",
            "x264-params": "rc-lookahead=4:sync-lookahead=3:b-pyramid=none",
        },
    ),
    "hevc": ("libx265", {"crf": "23", "preset": "fast", "x265-params": "log-level=error"}),
    "h265": ("libx265", {"crf": "23", "preset": "fast", "x265-params": "log-level=error"}),
    "av1": ("libsvtav1", {"crf": "32", "preset": "9"}),
    "vp9": ("libvpx-vp9", {"crf": "32", "b": "0", "row-mt": "1", "cpu-used": "5"}),
    "mpeg4": ("mpeg4", {"qscale": "3"}),
    "ffv1": ("ffv1", {}),
}


#: Threads of x264 at most, where the caller leaves it open: each keeps pictures of its own.
THREADS = 8
#: Pictures that wait for the encoder.
WAITING = 1


def codec_for(suffix: str) -> str:
    """What a container is written with if nothing is said."""
    return "vp9" if suffix.lower() == ".webm" else "h264"


def encoder_of(codec: str) -> tuple[str, dict[str, str]]:
    """FFmpeg's encoder for a name, and its options; refuses a name that is none."""
    av = pyav()
    name, options = CODECS.get(codec, (codec, {}))
    try:
        found = av.Codec(name, "w")
    except (av.FFmpegError, ValueError, TypeError) as error:
        raise ParameterError(
            f"video.write: there is no video encoder {codec!r} in this FFmpeg. Use one of "
            f"{', '.join(CODECS)}, or the name of one of FFmpeg's encoders."
        ) from error
    if name == "libsvtav1":
        os.environ.setdefault("SVT_LOG", "1")  # else it prints its settings; this is the only way
    if found.type != "video":
        raise ParameterError(f"video.write: {codec!r} encodes {found.type}, not video.")
    return name, dict(options)


def threads_of(codec: str) -> int:
    """Threads for an encoder; 0 leaves it to that. They wait for one another at times."""
    return min((os.cpu_count() or 1) * 3 // 2, THREADS) if codec == "libx264" else 0


class Encoder:
    """A thread that encodes what is put into its queue, into a file of another name at first."""

    def __init__(
        self,
        path: Path,
        *,
        codec: str,
        options: dict[str, str],
        rate: Fraction | None,
        time_base: Fraction,
        size: tuple[int, int],
        colours: colour.Colours,
        threads: int,
        sound: Sound | None,
        shift: bool,
        aspect: Fraction | None = None,
    ) -> None:
        av = pyav()
        self.path = path
        # The suffix stays last: FFmpeg knows the container by it.
        self.temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}.part{path.suffix}")
        #: H.273's numbers: range (as FFmpeg has it), matrix, primaries, transfer.
        self.tags = (
            2 if colours.range == "full" else 1,
            colour.number(colour.MATRICES, colours.matrix),
            colour.number(colour.PRIMARIES, colours.primaries),
            colour.number(colour.TRANSFERS, colours.transfer),
        )
        self._sound = sound
        self._error: Exception | None = None
        self._time = Fraction(0)
        mov = path.suffix.lower() in (".mp4", ".mov", ".m4v")
        try:
            self._output = av.open(
                str(self.temporary), "w", options={"movflags": "+faststart"} if mov else {}
            )
        except (av.FFmpegError, OSError, ValueError) as error:
            self._discard()
            if sound is not None:
                sound.close()
            raise VideoError(
                f"video.write: {str(path)!r} cannot be made: {words(error)}. The suffix names the "
                "container (.mp4, .mkv, .webm, .mov), and the folder must be writable."
            ) from error
        try:
            self._stream = self._output.add_stream(codec, rate=rate or 30, options=options)
            context = self._stream.codec_context
            context.width, context.height = size
            context.pix_fmt = "yuv420p"
            context.time_base = time_base
            if aspect is not None:
                context.sample_aspect_ratio = aspect
            context.thread_type = "AUTO"
            context.thread_count = threads or threads_of(codec)
            context.color_range, context.colorspace = self.tags[:2]
            context.color_primaries, context.color_trc = self.tags[2:]
            if sound is not None:
                sound.add_to(self._output, shift)
            context.open(strict=False)
            self._output.start_encoding()
        except BaseException as error:
            self._shut()
            if isinstance(error, av.FFmpegError | OSError | ValueError) and not isinstance(
                error, VideoError
            ):
                raise VideoError(
                    f"video.write: {str(path)!r} cannot be made with {codec!r} at {size[0]} x "
                    f"{size[1]}: {words(error)}. Try another codec, or a container that takes it "
                    "(.mkv takes nearly all)."
                ) from error
            raise
        self.queue = Queue(WAITING, "every")
        self._thread = threading.Thread(target=self._run, daemon=True, name="dala video encoder")
        self._thread.start()

    def put(self, frame: Any) -> None:
        """Hands over a picture; raises what went wrong with those before it."""
        if not self.queue.put(frame):
            self._thread.join()
            raise self._error or VideoError(f"video.write: {str(self.path)!r} was closed.")

    def finish(self) -> None:
        """Encodes what is left and gives the file its name. On an error there is no file."""
        self.queue.finish()
        try:
            while self._thread.is_alive():
                self._thread.join(0.5)
        except BaseException:  # Ctrl-C while waiting
            self.abandon()
            raise
        if self._error is not None:
            self._discard()
            raise self._error
        try:
            os.replace(self.temporary, self.path)
        except OSError as error:
            self._discard()
            raise VideoError(
                f"video.write: {str(self.path)!r} cannot take its name: {error.strerror}."
            ) from error

    def abandon(self) -> None:
        """Ends the thread and leaves no file."""
        self.queue.close()
        self._thread.join()
        self._discard()

    # the thread -------------------------------------------------------------------------------
    def _run(self) -> None:
        try:
            self._encode()
        except Exception as error:
            self._error = self._told(error)
            self.queue.close()
        finally:
            try:
                self._shut(keep=True)
            except Exception as error:
                self._error = self._error or self._told(error)

    def _encode(self) -> None:
        while (frame := self.queue.get()) is not None:
            self._time = Fraction(frame.pts) * Fraction(frame.time_base)
            for packet in self._stream.encode(frame):
                self._output.mux_one(packet)
            if self._sound is not None:
                self._sound.feed(self._output, self._time)
        if self.queue.closed:
            return
        for packet in self._stream.encode(None):
            self._output.mux_one(packet)
        if self._sound is not None:
            self._sound.feed(self._output, None)

    def _told(self, error: Exception) -> Exception:
        if isinstance(error, VideoError):
            return error
        told = VideoError(
            f"video.write: {str(self.path)!r} failed at {float(self._time):.3f} s: "
            f"{words(error)}. No file was left."
        )
        told.__cause__ = error
        return told

    def _shut(self, keep: bool = False) -> None:
        try:
            self._output.close()
        finally:
            if self._sound is not None:
                self._sound.close()
            if not keep:
                self._discard()

    def _discard(self) -> None:
        with contextlib.suppress(OSError):
            self.temporary.unlink(missing_ok=True)
