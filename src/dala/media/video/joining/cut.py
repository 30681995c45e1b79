"""Cut a part out of a video: its packets where they can be copied, else encoded again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from dala.errors import ParameterError, VideoError, counted
from dala.media.video.files import open as open_video
from dala.media.video.files import write
from dala.media.video.joining.packets import (
    CopiedPart,
    PacketFile,
    PacketsRefused,
    copy_packets,
)
from dala.media.video.joining.smart import Unfit, smart_cut
from dala.media.video.source import source_of
from dala.media.video.tracks import Tracks
from dala.typing import PathLike


class JoinReport(NamedTuple):
    """What was written, and how."""

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
    codec: str | None = None,
    options: Mapping[str, str | float] | None = None,
    device: str | None = None,
    call: str = "video.cut",
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
        codec: of a result that is encoded again.
        options: of its encoder.
        device: converts colors.
        call: the name for messages.
    """
    check_targets(out, [path], call)
    file = PacketFile(path, call)
    try:
        if not audio:
            file.sounds = []
        length = file.duration
        if end is not None and end <= start:
            raise ParameterError.invalid(
                call, "to", f"after the beginning at {float(start):g} s", float(end)
            )
        if start < 0 or (length is not None and start >= length):
            limit = "" if length is None else f" and before the end at {float(length):g} s"
            raise ParameterError.invalid(call, "from", f"at least 0{limit}", float(start))
        if end is not None and length is not None and end > length + file.step:
            expected = f"at most {float(length):g}, the end of the video"
            raise ParameterError.invalid(call, "to", expected, float(end))
        until = end if end is not None else (length or Fraction(10**9)) + file.step
        span = file.span(start, until)
        begin, reason = (span.key, "") if copy else (span.first, span.problem)
        if copy and span.key != span.first:
            reason = f"begins {float(start - span.key):.3f} s earlier, at a key frame"
        if encode:
            reason = "as asked"
        elif copy or not span.problem:
            if copy and span.pictures == 0:
                raise VideoError(f"{call}: {span.problem}.")
            try:
                count = copy_packets([CopiedPart(file, begin, end)], out, call)
                return JoinReport(True, reason, count, count * float(file.step))
            except PacketsRefused as error:
                if copy:
                    raise
                reason = f"the container does not take its packets ({error})"
        elif codec in (None, "h264"):
            try:
                return _smart(path, out, start, end, file.step, span.problem, audio, options, call)
            except Unfit as unfit:
                reason = f"{reason}; {unfit}" if str(unfit) != reason else reason
    finally:
        file.close()
    count, seconds = _encode(path, out, start, end, audio, codec, options, device, call)
    return JoinReport(False, reason, count, seconds, count)


def _smart(
    path: PathLike,
    out: PathLike,
    start: Fraction,
    end: Fraction | None,
    step: Fraction,
    problem: str,
    audio: bool,
    options: Mapping[str, str | float] | None,
    call: str,
) -> JoinReport:
    """Write a part of which only the ends are encoded again."""
    made = smart_cut(path, out, start, end, audio=audio, options=options, call=call)
    copied = made.frames - made.encoded
    reason = f"{problem}; {counted(copied, 'frames')} copied, from {float(made.key):.3f} s on"
    return JoinReport(False, reason, made.frames, made.frames * float(step), made.encoded)


def _encode(
    path: PathLike,
    out: PathLike,
    start: Fraction,
    end: Fraction | None,
    audio: bool,
    codec: str | None,
    options: Mapping[str, str | float] | None,
    device: str | None,
    call: str,
) -> tuple[int, float]:
    """Write the frames of a part, encoded again; return their number and seconds."""
    with open_video(path, device=device) as reader:
        first = next(reader)
        zero = first.time or Fraction(0)
        reader.seek(zero + start)
        sound = None
        if audio and reader.has_audio:
            length = None if end is None else end - start
            sound = Tracks(source_of(path, call), call, to_zero=True, offset=-start, length=length)
        step = 1 / (reader.fps or Fraction(25))
        count, last = 0, start
        with write(
            out, fps=reader.fps, codec=codec, options=options, device=device, audio_from=sound
        ) as sink:
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
