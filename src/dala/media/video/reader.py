"""Reading videos: frames by iteration, with their exact times and right colours."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from fractions import Fraction
from numbers import Real
from typing import Any

from dala.errors import FreedError, ParameterError, VideoError
from dala.gpu.compute import Buffer
from dala.media.frame import Frame
from dala.media.video import color as colour
from dala.media.video.decode import Decoder, Opened
from dala.media.video.lent import Lent
from dala.media.video.live import POLICIES, Source
from dala.resources import Closing


class _Held:
    """What a reader must give back; apart from it, so that it can be collected."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.decoder: Decoder | None = None

    def halt(self) -> bool:
        decoder, self.decoder = self.decoder, None
        return decoder is None or decoder.stop()

    def close(self) -> None:
        if self.halt():
            self.opened.close()


class Reader(Closing):
    """An open video: iterate it for frames. Made by :func:`dala.media.video.open`.

    A thread decodes ahead, a few frames at most. Iterating goes on from where the reader is (the
    beginning, or where ``seek`` put it); iterating again after the end begins anew.
    """

    def __init__(
        self,
        source: Source,
        *,
        format: str = "rgba",
        device: str | None = None,
        policy: str | None = None,
        queue: int | None = None,
        rotate: bool = True,
        square_pixels: bool = False,
        matrix: str | None = None,
        range: str | None = None,
        hwaccel: str | None = None,
        threads: int = 0,
        timeout: float = 10.0,
    ) -> None:
        call = "video.open"
        check_choice(call, "format", format, ("rgba", "native"))
        check_choice(call, "policy", policy, (None, *POLICIES))
        check_choice(call, "matrix", matrix, (None, *dict.fromkeys(colour.MATRICES.values())))
        check_choice(call, "range", range, (None, *colour.RANGES.values()))
        self.source = source
        self.format = format
        #: "every" frame, or only the "latest" where they come faster than they are taken.
        self.policy = policy or ("latest" if source.live else "every")
        length = (1 if self.policy == "latest" else 4) if queue is None else queue
        self._length = check_count(call, "queue", length, 1)
        self._device = device
        self._rotate = rotate
        self._square = square_pixels
        self._matrix = matrix
        self._range = range
        self._at: Fraction | None = None
        self._fresh = True
        self._ended = False
        self._turn: int | None = None
        self._dropped = 0
        self._held = _Held(
            Opened(
                source,
                hwaccel=hwaccel,
                threads=check_count(call, "threads", threads, 0),
                timeout=_seconds(call, "timeout", timeout),
                call=call,
            )
        )
        self._finalizer = weakref.finalize(self, self._held.close)

    # facts ------------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        """The path, URL or camera, as it is shown in messages."""
        return self.source.shown

    @property
    def width(self) -> int:
        """Columns of the frames as they are given: turned and stretched if they are."""
        return self._size()[0]

    @property
    def height(self) -> int:
        """Rows of the frames as they are given."""
        return self._size()[1]

    @property
    def fps(self) -> Fraction | None:
        """Frames a second, exact; the mean where they come at uneven times; None if unknown."""
        return self._opened("fps").rate

    @property
    def duration(self) -> float | None:
        """Seconds; None where the source does not say (cameras, streams)."""
        opened = self._opened("duration")
        stream = opened.stream
        if stream.duration is not None:
            return float(stream.duration * stream.time_base)
        whole = opened.container.duration
        return None if whole is None else whole / 1_000_000

    @property
    def frames(self) -> int | None:
        """How many frames there are by the file's own count; None where it has none."""
        return self._opened("frames").stream.frames or None

    @property
    def codec(self) -> str:
        """FFmpeg's name of the codec, such as "h264"."""
        return str(self._opened("codec").stream.codec_context.name)

    @property
    def pixel_aspect(self) -> Fraction:
        """Width of a stored pixel by its height; 1 where the file says nothing."""
        stream = self._opened("pixel_aspect").stream
        found = stream.sample_aspect_ratio or stream.codec_context.sample_aspect_ratio
        return Fraction(found) if found else Fraction(1)

    @property
    def rotation(self) -> int:
        """Degrees to the right by which stored pictures must be turned to stand upright."""
        self._opened("rotation")
        if self._turn is None:  # it comes with the frames
            first = self._decoder().queue.get(keep=True)
            self._turn = 0 if first is None else _turn(first)
        return self._turn

    @property
    def has_audio(self) -> bool:
        """Whether the source has sound, which ``video.write(audio_from=...)`` can carry."""
        return bool(self._opened("has_audio").container.streams.audio)

    @property
    def dropped(self) -> int:
        """Frames that policy "latest" has passed over."""
        decoder = self._held.decoder
        return self._dropped + (0 if decoder is None else decoder.queue.dropped)

    @property
    def closed(self) -> bool:
        """True once the reader was closed."""
        return not self._finalizer.alive

    def __repr__(self) -> str:
        if self.closed:
            return f"<Reader {self.name!r} closed>"
        context = self._opened("repr").stream.codec_context
        return f"<Reader {self.name!r} {context.width} x {context.height} {context.name}>"

    # frames -----------------------------------------------------------------------------------
    def __iter__(self) -> Iterator[Frame]:
        self._opened("iter")
        if self._ended:
            self._restart(None)
        return self

    def __next__(self) -> Frame:
        decoded = self._next()
        if decoded is None:
            raise StopIteration
        return self._converted(decoded, *self._planes(decoded))

    def lent(self) -> Iterator[Frame | Lent]:
        """Goes on as iterating does, but "native" planes are lent where the decoder's will do."""
        while (decoded := self._next()) is not None:
            found = self._planes(decoded)
            made = [self._lent(decoded, *found) or self._converted(decoded, *found)]
            del decoded, found  # nothing here holds on to a picture that was handed out
            yield made.pop()

    def _next(self) -> Any | None:
        """The next picture as it was decoded; None after the last."""
        self._opened("next")
        if self._ended:
            return None
        try:
            decoded = self._decoder().queue.get()
        except VideoError:
            self._ended = True
            raise
        if decoded is None:
            self._ended = True
        else:
            self._turn = _turn(decoded)
        return decoded

    def seek(self, t: float | Fraction) -> None:
        """Goes to a time: the next frame is the one that is shown at ``t`` seconds.

        ``t`` is on the clock of the frames (``pts * time_base``). Before the first frame it is the
        first, after the last the last.

        Raises:
            ParameterError: the time is no finite number of 0 or more.
            VideoError: the source is live.
        """
        self._opened("seek")
        if not isinstance(t, Real) or isinstance(t, bool) or not math.isfinite(t) or t < 0:
            raise ParameterError(f"video.seek: 't' is a number of seconds from 0 on, {t!r} came.")
        if self.source.live:
            raise VideoError(f"video.seek: {self.name!r} is live; it has no other time than now.")
        exact = Fraction(t)
        # A float means the fraction it is nearest to: 2.36 s is 59/25, of which it falls short.
        self._restart(exact.limit_denominator(1_000_000) if isinstance(t, float) else exact)

    def close(self) -> None:
        """Ends the thread and closes the file. Frames stay valid. Closing twice is fine."""
        self._dropped = self.dropped
        self._finalizer()

    # inside -----------------------------------------------------------------------------------
    def _opened(self, what: str) -> Opened:
        if self.closed:
            raise FreedError(f"video: {self.name!r} was closed; open it again to use {what!r}.")
        return self._held.opened

    def _restart(self, at: Fraction | None) -> None:
        self._dropped = self.dropped
        if self._held.decoder is not None:
            if not self._held.halt():
                self.close()
                raise VideoError(f"video: {self.name!r} does not answer any more; it was closed.")
            self._fresh = False
        self._at = at
        self._ended = False

    def _decoder(self) -> Decoder:
        if self._held.decoder is None:
            if self.source.live and not self._fresh:
                self._held.opened.open()
                self._fresh = True
            self._held.decoder = Decoder(
                self._held.opened,
                size=self._length,
                policy=self.policy,
                at=self._at,
                fresh=self._fresh and self._at is None,
            )
        return self._held.decoder

    def _size(self) -> tuple[int, int]:
        context = self._opened("size").stream.codec_context
        width, height = context.width, context.height
        if self.format == "native":
            return width, height
        if self._square:
            width = max(1, round(width * self.pixel_aspect))
        if self._rotate and self.rotation in (90, 270):
            width, height = height, width
        return width, height

    def _planes(self, decoded: Any) -> tuple[colour.Planes, colour.Colours]:
        codec = self._held.opened.stream.codec_context.name
        colours = colour.colours_of(decoded, codec, self._matrix, self._range)
        return colour.planes_of(decoded, colours), colours

    def _lent(self, decoded: Any, planes: colour.Planes, colours: colour.Colours) -> Lent | None:
        parts = colour.lent(planes, self._device) if self.format == "native" else None
        if parts is None:
            return None
        return Lent(
            parts,
            planes.format,
            decoded.pts,
            Fraction(decoded.time_base),
            colours.range,
            colours.matrix,
            colours.primaries,
            colours.transfer,
            colours.siting,
        )

    def _converted(self, decoded: Any, planes: colour.Planes, colours: colour.Colours) -> Frame:
        if self.format == "native":
            made = colour.to_planes(planes, self._device)
            if made is not None:
                return _frame(made, planes.format, decoded, colours, colours.range)
        made = colour.to_rgba(planes, colours, self._device)
        if self.format == "rgba":
            if self._square and self.pixel_aspect != 1:
                made = colour.squared(made, self.pixel_aspect)
            if self._rotate and self._turn in (90, 180, 270):
                made = colour.turned(made, self._turn)
        return _frame(made, "rgba", decoded, colours, "full")


def _frame(buffer: Buffer, format: str, decoded: Any, colours: colour.Colours, range: str) -> Frame:
    return Frame(
        buffer,
        format=format,
        pts=decoded.pts,
        time_base=Fraction(decoded.time_base),
        range=range,
        matrix=colours.matrix,
        primaries=colours.primaries,
        transfer=colours.transfer,
    )


def _turn(decoded: Any) -> int:
    """FFmpeg counts degrees to the left."""
    return -int(decoded.rotation) % 360


def check_choice(call: str, name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Refuses a value that is not one of those allowed."""
    if value not in allowed:
        shown = ", ".join(repr(a) for a in allowed if a is not None)
        raise ParameterError(f"{call}: {name!r} is one of {shown}; {value!r} came.")


def check_count(call: str, name: str, value: Any, least: int) -> int:
    """The value, if it is a whole number that is not too small."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ParameterError(f"{call}: {name!r} is a whole number from {least} on, {value!r} came.")
    return value


def _seconds(call: str, name: str, value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < 1e6:
        raise ParameterError(f"{call}: {name!r} is a number of seconds above 0, {value!r} came.")
    return float(value)
