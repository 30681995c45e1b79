"""A process that encodes and sends: ``python -m dala.media.live.sender``.

FFmpeg blocks Python's other threads while it connects, and cannot be interrupted when a receiver is
silent. A process of its own can be ended at any time, and leaves the program's threads alone.

Protocol: on standard input a line of JSON (the settings), then items, each a header and its bytes;
on standard output a line of JSON for the connection and for each item. The end of the input ends
the stream.
"""

from __future__ import annotations

import json
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import BinaryIO, Final, TypeAlias

import numpy as np

from dala.media.live.muxing import Muxer, Sent, StreamSettings
from dala.media.video.output.opening import set_tags
from dala.media.video.source import av, pyav
from dala.trace.recorder import tracer

#: Slot, first sample, bytes of the picture and of the sound, and the frame's number in a trace; a
#: slot below 0 is the end.
HEADER: Final = struct.Struct("<qqIIq")
END: Final = -1

#: The answer to the settings or an item.
Answer: TypeAlias = "dict[str, str | list[Sent]]"


def main() -> int:
    """Serve one stream."""
    with suppress(ValueError, OSError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    given, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever prints must not disturb the answers
    pyav()
    _answered(answers, list)
    settings = StreamSettings(**json.loads(given.readline()))
    muxer = _answered(answers, lambda: Muxer(settings))
    if not isinstance(muxer, Muxer):
        return 1
    shape = settings.height * 3 // 2, settings.width
    while True:
        head = given.read(HEADER.size)
        whole = len(head) == HEADER.size
        slot, at, pixels, samples, number = HEADER.unpack(head) if whole else (END, 0, 0, 0, 0)
        tracer.frame = number or None
        data = given.read(pixels + samples)
        if slot < 0 or len(data) < pixels + samples:
            break
        picture = None
        if pixels:
            array = np.frombuffer(data, np.uint8, pixels).reshape(shape)
            picture = av.VideoFrame.from_ndarray(array, format=settings.pixel_format)
            set_tags(picture, settings.tags)
        sound = np.frombuffer(data, np.float32, samples // 4, pixels).reshape(-1, 2)
        if _answered(answers, partial(muxer.send, slot, picture, sound, at)) is None:
            break
    _answered(answers, lambda: _ended(muxer))
    return 0


def _ended(muxer: Muxer) -> list[Sent]:
    try:
        return muxer.finish()
    finally:
        muxer.close()


def _answered(
    answers: BinaryIO, work: Callable[[], Muxer | list[Sent]]
) -> Muxer | list[Sent] | None:
    """Do some work and write its answer; return its result, or None if it failed."""
    result: Muxer | list[Sent] | None = None
    answer: Answer
    try:
        result = work()
        answer = {"sent": [] if isinstance(result, Muxer) else result}
    except Exception as error:
        from dala.media.video.source import ffmpeg_message

        result = None
        answer = {"error": ffmpeg_message(error), "kind": type(error).__name__}
    with suppress(OSError):  # the parent has ended
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()
    return result


if __name__ == "__main__":
    sys.exit(main())
