"""Cut a part out of a video: its packets where they can be copied, else encoded again."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple

from dala.errors import ParameterError, VideoError, counted
from dala.media.video.animated.facts import animation_kind
from dala.media.video.files import open as open_video
from dala.media.video.files import open_writer
from dala.media.video.joining.packets import (
    CopiedPart,
    PacketFile,
    PacketsRefused,
    copy_packets,
)
from dala.media.video.joining.smart import Unfit, smart_cut
from dala.media.video.options import EncodeOptions, EncoderOptions
from dala.media.video.tracks import Tracks
from dala.notices import notify
from dala.typing import PathLike

_CALL: Final = "video.cut"


class JoinReport(NamedTuple):
    """The result of cutting or joining: the parts that were copied, and those encoded again."""

    #: Whether packets were copied, so that nothing was encoded again.
    copied: bool
    #: Why not; or what copying moved.
    reason: str
    frames: int
    #: Seconds of the result.
    seconds: float
    #: Frames that were encoded again; the others were copied.
    encoded: int = 0


def cut_video(
    path: PathLike,
    out: PathLike,
    start: Fraction,
    end: Fraction | None,
    *,
    copy: bool = False,
    encode: bool = False,
    audio: bool = True,
    encoding: EncoderOptions | None = None,
) -> JoinReport:
    """Write the part of a video between two times, counted from its first picture, with its sound.

    The frames are those shown from ``start`` on and before ``end``. They are copied if the first is
    a key frame and none is coded by later ones. Otherwise the frames of H.264 up to the next key
    frame are encoded again, and those at the end that need later ones; of other codecs all are.

    Args:
        path: the video.
        out: the result.
        start: the beginning, in seconds.
        end: the end; None for that of the video.
        copy: never encode: begin at the key frame before ``start``.
        encode: encode all frames again.
        audio: keep the sound.
        encoding: how frames are encoded again.
    """
    options = encoding or EncoderOptions()
    check_targets(out, [path], _CALL)
    with PacketFile(path, _CALL, audio) as file:
        length = file.duration
        if end is not None and end <= start:
            raise ParameterError.invalid(
                _CALL, "to", f"after the beginning at {float(start):g} s", float(end)
            )
        if start < 0 or (length is not None and start >= length):
            limit = "" if length is None else f" and before the end at {float(length):g} s"
            raise ParameterError.invalid(_CALL, "from", f"at least 0{limit}", float(start))
        if end is not None and length is not None and end > length + file.step:
            expected = f"at most {float(length):g}, the end of the video"
            raise ParameterError.invalid(_CALL, "to", expected, float(end))
        until = end if end is not None else (length or Fraction(10**9)) + file.step
        span = file.span(start, until)
        begin, reason = (span.key, "") if copy else (span.first, span.problem)
        if copy and span.key != span.first:
            reason = f"begins {float(start - span.key):.3f} s earlier, at a key frame"
        if encode:
            reason = "as asked"
        elif copy or not span.problem:
            if copy and span.pictures == 0:
                raise VideoError(f"{_CALL}: {span.problem}.")
            try:
                count = copy_packets([CopiedPart(file, begin, end)], out, _CALL)
                return JoinReport(True, reason, count, count * float(file.step))
            except PacketsRefused as error:
                if copy:
                    raise
                reason = f"the container does not take its packets ({error})"
        elif options.codec in (None, "h264") and options.encoder is None:
            try:
                made = smart_cut(path, out, start, end, audio, options.ffmpeg)
                copied = counted(made.frames - made.encoded, "frames")
                reason = f"{span.problem}; {copied} copied, from {float(made.key):.3f} s on"
                seconds = made.frames * float(file.step)
                return JoinReport(False, reason, made.frames, seconds, made.encoded)
            except Unfit as unfit:
                reason = f"{reason}; {unfit}" if str(unfit) != reason else reason
    count, seconds = _encode(path, out, start, end, audio, options)
    return JoinReport(False, reason, count, seconds, count)


def _encode(
    path: PathLike,
    out: PathLike,
    start: Fraction,
    end: Fraction | None,
    audio: bool,
    options: EncoderOptions,
) -> tuple[int, float]:
    """Write the frames of a part, encoded again; return their number and seconds."""
    with open_video(path) as reader:
        first = next(reader)
        zero = first.time or Fraction(0)
        reader.seek(zero + start)
        sound = None
        if audio and reader.has_audio and (kind := animation_kind(out, options.codec)):
            notify(f"{out}: {kind} has no sound; that of {reader.name} is left out.")
        elif audio and reader.has_audio:
            length = None if end is None else end - start
            sound = Tracks(reader.source, _CALL, to_zero=True, offset=-start, length=length)
        step = 1 / (reader.fps or Fraction(25))
        count, last = 0, start
        encoding = EncodeOptions.of(options, fps=reader.fps, audio_from=sound)
        with open_writer(out, encoding) as sink:
            for frame in reader:
                time = (frame.time or Fraction(0)) - zero
                if end is not None and time >= end:
                    break
                at = max(time - start, Fraction(0))
                assert frame.time_base is not None
                frame.pts = round(at / frame.time_base)
                sink.write(frame)
                count, last = count + 1, time
        return count, float(last + step - start)


def check_targets(out: PathLike, inputs: list[PathLike], call: str) -> None:
    """Raise ParameterError if a result would replace one of its inputs."""
    target = Path(out)
    for path in inputs:
        same = isinstance(path, str | os.PathLike) and os.path.exists(path) and target.exists()
        if same and os.path.samefile(path, target):
            raise ParameterError.invalid(
                call, "out", "another file than the inputs", os.fspath(out)
            )
