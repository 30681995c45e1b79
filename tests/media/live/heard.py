"""What the tests of live sound share."""

from __future__ import annotations

import numpy as np

from dala.media.audio.arriving import LiveSound
from dala.media.video.source import VideoSource
from tests.media.live.receivers import av

RATE = 48000


def frame(samples: np.ndarray, rate: int) -> av.AudioFrame:
    """A decoded frame of stereo or mono samples."""
    flat = np.ascontiguousarray(samples, np.float32).reshape(1, -1)
    layout = "mono" if samples.ndim == 1 else "stereo"
    made = av.AudioFrame.from_ndarray(flat, format="flt", layout=layout)
    made.sample_rate = rate
    return made


def clicks(samples: np.ndarray, rate: int, level: float = 0.3) -> list[float]:
    """The times of clicks in seconds: of the largest sample of each."""
    found: list[float] = []
    for at in np.flatnonzero(np.abs(samples) > level):
        if not found or at / rate - found[-1] > 0.1:
            found.append(at / rate)
    return found


def play(sound: LiveSound, seconds: float, *, rate=16000, fast=0.0, jitter=0.0, late=0.05):
    """Let a source give clicks, one a second by its own clock, to a voice at simulated times.

    The source's clock is fast by a share; blocks arrive ``late`` seconds after their end, and up to
    ``jitter`` later. Yields our time after each block.
    """
    rng = np.random.default_rng(0)
    block = rate // 50
    for number in range(round(seconds * 50)):
        samples = np.zeros(block, np.float32)
        if number % 50 == 0:
            samples[0] = 1.0
        own = number * block / rate  # by the source's clock
        ours = 1000.0 + own / (1 + fast)
        arrival = ours + block / rate + late + rng.uniform(0, jitter)
        sound.heard(frame(samples, rate), 77.0 + own, arrival)
        yield arrival


def generated(size=(64, 48), fps=20) -> VideoSource:
    """A live source with pictures that flash, and a beep with each flash, once a second."""
    flash = "geq=lum='if(lt(mod(T,1),0.1),235,16)':cb=128:cr=128"
    pictures = f"color=size={size[0]}x{size[1]}:rate={fps},{flash},realtime[out0]"
    beep = "aevalsrc='0.5*sin(2*PI*1000*t)*lt(mod(t,1),0.1)':s=48000,arealtime[out1]"
    return VideoSource(f"{pictures};{beep}", "a camera with sound", True, "lavfi")


def together(path) -> tuple[list[float], list[float]]:
    """The times of flashes and of beeps in a stream."""
    with av.open(str(path)) as source:
        found = [(f.time, f.to_ndarray(format="gray").mean()) for f in source.decode(video=0)]
    light = [t for (t, v), (_, before) in zip(found[1:], found, strict=False) if v > 120 > before]
    with av.open(str(path)) as source:
        frames = list(source.decode(audio=0)) if source.streams.audio else []
    if not frames:
        return light, []
    sound = np.concatenate([f.to_ndarray() for f in frames], 1)[0]
    loud, first = np.abs(sound) > 0.2, frames[0].time
    starts = [n for n in np.flatnonzero(loud) if not loud[max(n - 4800, 0) : n].any()]
    return light, [first + n / RATE for n in starts if n > 4800]


def both(path) -> tuple[int, float]:
    """The number of pictures of a stream, and its seconds of sound."""
    with av.open(str(path)) as source:
        pictures = sum(1 for _ in source.decode(video=0))
    with av.open(str(path)) as source:
        return pictures, sum(f.samples for f in source.decode(audio=0)) / RATE


def in_sync(path) -> bool:
    """Whether two flashes or more have a beep each, at the same time.

    A busy machine drops pictures, and has silence in place of sound that is late: then the
    recording proves nothing, and is made again. One that is never in sync fails.
    """
    light, beeps = together(path)
    near = [min((abs(beep - flash) for beep in beeps), default=9.0) for flash in light]
    return len(light) >= 2 and bool(max(near) < 0.16)  # a frame has 50 ms
