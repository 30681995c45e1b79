"""Sound as it arrives: of microphones and live streams, on a steady clock.

A source has a clock of its own, which is a little fast or slow, and its blocks arrive late and
unevenly. Each block gets its time on our clock; libswresample then stretches or squeezes the sound
by what the clocks differ, so that it never drifts from the pictures.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from dala import forks
from dala.errors import AudioError, FreedError, VideoError
from dala.media.audio.checks import Samples, joined, silent
from dala.media.audio.files.decode import FrameSamples
from dala.media.audio.graph import Converter, SoundGraph, frame_samples
from dala.media.live.slots import ClockDifference
from dala.media.video.reader import Reader
from dala.media.video.source import AvObject, ffmpeg_errors
from dala.notices import notify
from dala.resources import Closing

if TYPE_CHECKING:
    from av import AudioFrame

#: Samples a second of the result.
RATE: Final = 48000
#: Seconds of sound that are kept, for those who ask late.
_KEPT: Final = 4
#: Seconds that sound may be late before there is silence in its place.
PATIENCE: Final = 0.3
#: Seconds in which the difference of the clocks settles, and in which a source with pictures gives
#: what it has gathered before it was opened.
_SETTLING: Final = 2.0
_GATHERED: Final = 0.3
#: How many samples a second are inserted or left out at most, and from how many seconds on there
#: is silence, or a cut, instead.
_STEADY: Final = "async=480:min_hard_comp=0.1"


#: The sound of open videos; None for those that have none.
_known: weakref.WeakKeyDictionary[Reader, LiveSound | None] = weakref.WeakKeyDictionary()


class ArrivedBlock(NamedTuple):
    """A stereo block, and the time of its first sample on our clock."""

    when: float
    samples: Samples
    rate: int


class LiveSound(Closing):
    """The sound of a source as it arrives: a microphone, or a live stream with pictures.

    ``microphone.open`` makes it. It is given to ``scene.add_audio`` or ``live.send(audio=...)``;
    without a listener nothing is kept.

    Args:
        label: the source, for messages.
        pictures: whether the source has pictures too, by whose arrival the sound is placed.

    Example::

        with microphone.open() as voice, Scene(1280, 720) as scene:
            scene.add_audio(voice)
            scene.live("rtmp://127.0.0.1/live/test", seconds=60)
    """

    _instead = "Open the microphone there."

    def __init__(self, label: str, *, pictures: bool = False) -> None:
        self.label = label
        self._by_pictures = pictures
        self._finalizer: weakref.finalize[..., object] | None = None
        self._wait: Callable[[], object] = lambda: None
        self._home = forks.Home()
        self._clock = ClockDifference(settling=_SETTLING)
        self._begin: float | None = None
        self._frames: FrameSamples | None = None
        self._stereo: Converter | None = None
        self._guard = forks.lock()
        self._voices: weakref.WeakSet[LiveVoice] = weakref.WeakSet()
        self._failed = False
        #: Seconds that have arrived.
        self.seconds = 0.0

    # the thread of the source -----------------------------------------------------------------
    def seen(self, time: float, arrival: float) -> None:
        """Take the time of a picture on the source's clock, and its arrival on ours."""
        self._begin = arrival if self._begin is None else self._begin
        self._clock.put(arrival - time, arrival)

    def heard(self, frame: AudioFrame, time: float | None, arrival: float) -> None:
        """Take a decoded frame, its time on the source's clock, and its arrival on ours."""
        if self._failed:
            return
        try:
            block = self._converted(frame)
        except AudioError as error:
            self._failed = True
            notify(f"{error} It is left out.")
            return
        length = len(block.samples) / block.rate
        self.seconds += length
        if self._by_pictures:
            if (
                self._clock.value is None
                or self._begin is None
                or arrival < self._begin + _GATHERED
            ):
                return  # nothing is seen yet, or the clock is not known well
            when = arrival - length if time is None else time + self._clock.value
        elif time is None:
            when = arrival - length
        else:
            when = time + self._clock.put(arrival - time - length, arrival)
        with self._guard:
            voices = list(self._voices)
        for voice in voices:
            voice.put(block._replace(when=when))

    def _converted(self, frame: AvObject) -> ArrivedBlock:
        if self._frames is None or self._stereo is None:
            call = "live"
            self._frames = FrameSamples(call, self.label, frame.sample_rate, frame.layout)
            rate, layout = self._frames.rate, self._frames.layout
            self._stereo = Converter(call, rate, layout, rate, "stereo")
        samples = self._stereo.process(self._frames.of(frame))
        return ArrivedBlock(0.0, samples, self._frames.rate)

    # the others -------------------------------------------------------------------------------
    def voice(self, begin: Callable[[], float | None], rate: int = RATE) -> LiveVoice:
        """Return the sound from now on, on a clock that is 0 at a time of ``time.monotonic``.

        ``begin`` returns that time; None while it is not known.
        """
        self._home.check(self.label, "Open it again.")
        if self.closed:
            raise FreedError(f"{self.label}: it is closed. Open it again.")
        made = LiveVoice(begin, rate)
        with self._guard:
            self._voices.add(made)
        return made

    def ends_with(self, end: Callable[[], object], wait: Callable[[], object]) -> None:
        """Set the functions that end the source and wait for its end. Neither may hold this object.

        The first is called when it is closed or collected, the second only when it is closed.
        """
        self._finalizer, self._wait = forks.finalize(self, end), wait

    @property
    def closed(self) -> bool:
        """True once it is closed."""
        return self._finalizer is not None and not self._finalizer.alive

    def close(self) -> None:
        """End the source. Closing twice is allowed."""
        if self._finalizer is not None and self._finalizer.alive:
            self._finalizer()
            self._wait()

    def __repr__(self) -> str:
        return f"<LiveSound {self.label!r}{' closed' if self.closed else ''}>"


class LiveVoice:
    """Live sound as a source of blocks in stereo, for one clock.

    ``render`` returns silence where nothing has arrived; ``ready`` says how far sound goes.
    """

    layout = "stereo"

    def __init__(self, begin: Callable[[], float | None], rate: int = RATE) -> None:
        self.rate = rate
        #: Returns the time at which the clock is 0; None if it is not known.
        self.begin = begin
        self._arrived: deque[ArrivedBlock] = deque(maxlen=4096)
        self._steady: _Steady | None = None
        self._blocks: deque[tuple[int, Samples]] = deque()
        #: The place after the newest sample; None before the first.
        self.end: int | None = None
        #: The place after the last sample that anyone asked for.
        self.asked = 0

    def put(self, block: ArrivedBlock) -> None:
        """Take a block, on any thread."""
        self._arrived.append(block)

    def ready(self, wanted: int) -> int:
        """Return the place up to which ``render`` is right, at most ``wanted``.

        Sound that is later than ``PATIENCE`` is not waited for.
        """
        self._take()
        late = wanted - round(PATIENCE * self.rate)
        return min(wanted, late if self.end is None else max(self.end, late))

    def arrived(self, start: int, count: int) -> Samples:
        """Return the samples from a place on that are there, at most ``count``."""
        return self.render(start, max(self.ready(start + count) - start, 0))

    def render(self, start: int, count: int) -> Samples:
        """Return samples from a place on; silence where there are none."""
        self._take()
        self.asked = max(self.asked, start + count)
        made = silent(count, "stereo")
        for place, block in self._blocks:
            first, last = max(place, start), min(place + len(block), start + count)
            if first < last:
                made[first - start : last - start] = block[first - place : last - place]
        return made

    def _take(self) -> None:
        """Place the samples that have arrived."""
        begin = self.begin()
        if begin is None:
            self._arrived.clear()
            return
        while self._arrived:
            block = self._arrived.popleft()
            at = block.when - begin
            place = round(at * self.rate)
            end = place if self.end is None else self.end
            if place < end - self.rate:
                continue  # sound of a time that is over
            if self._steady is None or place > end + self.rate:
                self._steady = _Steady(block.rate, self.rate, at)
                end = max(place, end)
            made = self._steady.put(block.samples, at)
            if len(made):
                self._blocks.append((end, made))
            self.end = end + len(made)
        while self._blocks and self.end is not None:
            place, kept = self._blocks[0]
            if place + len(kept) > self.end - _KEPT * self.rate:
                break
            self._blocks.popleft()


class _Steady:
    """Blocks with times in, a steady rate out: ``aresample`` with ``async``."""

    def __init__(self, rate: int, to_rate: int, first: float) -> None:
        self.rate = rate
        self._first = round(first * rate)
        with ffmpeg_errors("live: the sound cannot be converted", AudioError):
            self._graph = SoundGraph([("aresample", f"{to_rate}:{_STEADY}")], rate, "stereo")

    def put(self, samples: Samples, time: float) -> Samples:
        """Push a block with its time; return the blocks that are ready."""
        if len(samples):
            self._graph.push(samples, round(time * self.rate) - self._first)
        return joined([*map(frame_samples, self._graph.pull())], "stereo")


def sound_of_reader(reader: Reader) -> LiveSound | None:
    """Return the sound of a live source that is open, as it arrives; None if it has none.

    The reader stays open when the sound is closed.
    """
    if reader.policy != "latest":
        return None
    if reader not in _known:  # asked once: a source that is lost is not open, or is being opened
        try:
            found = LiveSound(reader.name, pictures=True) if reader.has_audio else None
        except VideoError:
            return None
        if found is not None:
            reader.listener = found
        _known[reader] = found
    return _known[reader]
