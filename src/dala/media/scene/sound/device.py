"""Playing the sound of a scene on the machine's sound device, through ``sounddevice``."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from fractions import Fraction
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dala import forks
from dala.extras import pip_install
from dala.media.audio.checks import Samples
from dala.media.audio.mixing.blocks import BlockSource
from dala.media.scene.sound.voices import SceneSound, is_heard, live_names
from dala.notices import notify

if TYPE_CHECKING:
    from dala.media.scene.scene import Scene

#: An object of ``sounddevice``, which has no types.
DeviceObject: TypeAlias = Any

#: Samples that are mixed at once, and the number of such blocks that wait for the device.
_BLOCK: Final = 2048
_AHEAD: Final = 6


class SoundPlayer:
    """Sound on its way to the device: a thread mixes ahead, the device takes finished blocks.

    The device's clock is that of the presentation, so pictures and sound do not drift apart. Where
    mixing is late there is silence, which is counted.

    Args:
        source: what is played.
        start: the place of the first sample.
        device: the module ``sounddevice``.
    """

    def __init__(self, source: BlockSource, start: int, device: DeviceObject) -> None:
        self._source = source
        self._next = start
        self._blocks: deque[Samples] = deque()
        self._changed = forks.condition()
        self._closed = False
        self._played = 0
        self._called = 0.0
        #: Samples of silence because mixing was late.
        self.missed = 0
        self._stream = device.OutputStream(
            samplerate=source.rate, channels=2, dtype="float32", callback=self._callback
        )
        self._thread = forks.thread(self._mix, name="dala sound")
        self._thread.start()

    def begin(self) -> None:
        """Start the device, once the first blocks are mixed."""
        with self._changed:
            while len(self._blocks) < _AHEAD and not self._closed and self._thread.is_alive():
                self._changed.wait(0.5)
        self._stream.start()
        self._called = monotonic()

    def clock(self) -> float:
        """Return the seconds that were played."""
        if not self._called:
            self.begin()
        rate = self._source.rate
        since = min(max(monotonic() - self._called, 0.0), 0.1)
        return self._played / rate + (since if self._played else 0.0)

    def _mix(self) -> None:
        while True:
            with self._changed:
                while len(self._blocks) >= _AHEAD and not self._closed:
                    self._changed.wait(0.5)
                if self._closed:
                    return
            block = self._source.render(self._next, _BLOCK)
            self._next += _BLOCK
            with self._changed:
                self._blocks.append(block)
                self._changed.notify_all()

    def _callback(self, out: Samples, frames: int, time: object, status: object) -> None:
        done = 0
        with self._changed:
            while done < frames and self._blocks:
                block = self._blocks[0]
                count = min(len(block), frames - done)
                out[done : done + count] = block[:count]
                done += count
                if count == len(block):
                    self._blocks.popleft()
                else:
                    self._blocks[0] = block[count:]
            self._changed.notify_all()
        out[done:] = 0
        self.missed += frames - done
        self._played += frames
        self._called = monotonic()

    def close(self) -> None:
        """Stop the device and the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        with suppress(Exception):  # a device that was unplugged
            self._stream.close()
        self._thread.join()
        with suppress(Exception):
            self._source.close()  # type: ignore[attr-defined]


def open_player(scene: Scene, start: Fraction) -> SoundPlayer | None:
    """Return the sound of a scene on the machine's device; None, with a notice, without one."""
    if live := live_names(scene.container()):
        notify(f"Scene.play: live sound is not played: {live}. Scene.live sends it.")
    if not is_heard(scene.container()):
        return None
    try:
        import sounddevice  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ModuleNotFoundError:
        notify(
            "Scene.play: without sound, as the package sounddevice is not installed. "
            f"Run: {pip_install('live')}"
        )
        return None
    except OSError as error:  # its library PortAudio is missing
        notify(f"Scene.play: without sound: {error}.")
        return None
    source = SceneSound(scene)
    try:
        sounddevice.query_devices(kind="output")
        return SoundPlayer(source, round(start * source.rate), sounddevice)
    except Exception as error:  # the package has errors of its own
        source.close()
        notify(f"Scene.play: without sound, as there is no sound device: {error}")
        return None
