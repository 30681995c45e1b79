"""Pictures of sound: the waveform, and the spectrogram on the compute engine's FFT."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.errors import ParameterError
from dala.gpu import compute
from dala.gpu.command import color_to_rgba
from dala.media.audio.checks import Samples, check_number
from dala.media.frame import Frame
from dala.typing import ColorLike, NDArray

if TYPE_CHECKING:
    from dala.media.audio.audio import Audio

#: The colors of the spectrogram, from the floor to full scale.
_COLORS: Final = np.array(
    [(0, 0, 4), (40, 11, 84), (101, 21, 110), (159, 42, 99), (212, 72, 66), (245, 125, 21),
     (250, 193, 39), (252, 255, 164)], np.float64,
)  # fmt: skip
#: Transforms that are computed at once.
_BATCH: Final = 512


def waveform(
    sound: Audio, width: int, height: int, *, color: ColorLike, background: ColorLike
) -> Frame:
    """Return a picture of the samples; see ``Audio.waveform``.

    Each column shows the smallest and the largest sample of its time.
    """
    call = "Audio.waveform"
    width, height = _side(call, "width", width), _side(call, "height", height)
    made = np.empty((height, width, 4), np.uint8)
    made[:] = tuple(color_to_rgba(background))
    front = np.array(tuple(color_to_rgba(color)), np.uint8)
    if not len(sound):
        return Frame.from_array(made)
    edges = np.linspace(0, len(sound), width + 1).astype(np.int64)
    starts = np.minimum(edges[:-1], len(sound) - 1)
    low = np.minimum.reduceat(sound.samples, starts, axis=0)
    high = np.maximum.reduceat(sound.samples, starts, axis=0)
    rows = np.arange(height)[:, None]
    for channel in range(sound.channels):
        top, bottom = (height * n // sound.channels for n in (channel, channel + 1))
        if bottom <= top:
            continue
        middle, half = (top + bottom - 1) / 2, (bottom - top - 1) / 2
        first = np.round(middle - np.clip(high[:, channel], -1, 1) * half)
        last = np.round(middle - np.clip(low[:, channel], -1, 1) * half)
        made[(rows >= first) & (rows <= last)] = front
    return Frame.from_array(made)


def spectrogram(
    sound: Audio,
    width: int,
    height: int,
    *,
    window: int,
    floor: float,
    highest: float | None,
    device: str | None,
) -> Frame:
    """Return a picture of the frequencies over time; see ``Audio.spectrogram``."""
    call = "Audio.spectrogram"
    width, height = _side(call, "width", width), _side(call, "height", height)
    if isinstance(window, bool) or not isinstance(window, int) or not 16 <= window <= 65536:
        raise ParameterError.invalid(call, "window", "an int from 16 to 65536", window)
    check_number(call, "floor", floor, -200.0, -1.0, "dB")
    nyquist = sound.rate / 2
    top = nyquist if highest is None else check_number(
        call, "highest", highest, 1.0, nyquist, "Hz"
    )  # fmt: skip
    levels = band_levels(sound.samples.mean(axis=1), width, window, device)
    bins = np.linspace(top, 0, height) / nyquist * (levels.shape[1] - 1)
    low = np.floor(bins).astype(np.int64)
    share = (bins - low)[:, None]
    high = np.minimum(low + 1, levels.shape[1] - 1)
    power = levels.T[low] * (1 - share) + levels.T[high] * share
    decibels = 20 * np.log10(np.maximum(power, 1e-12))
    value = np.clip(1 - decibels / floor, 0, 1) * (len(_COLORS) - 1)
    first = np.minimum(value.astype(np.int64), len(_COLORS) - 2)
    rest = (value - first)[..., None]
    made = np.full((height, width, 4), 255, np.uint8)
    made[..., :3] = np.round(_COLORS[first] * (1 - rest) + _COLORS[first + 1] * rest)
    return Frame.from_array(made)


def band_levels(samples: Samples, columns: int, window: int, device: str | None) -> NDArray:
    """Return the amplitude of each frequency in windows around evenly spaced times.

    A sine of amplitude 1 has the level 1 at its frequency. The result has the shape
    (columns, window // 2 + 1).
    """
    shape = np.hanning(window + 1)[:-1].astype(np.float32)
    scale = 2 / float(shape.sum())
    padded = np.concatenate([np.zeros(window // 2, np.float32), samples,
                             np.zeros(window, np.float32)])  # fmt: skip
    centers = np.round((np.arange(columns) + 0.5) * (len(samples) / columns)).astype(np.int64)
    made = np.empty((columns, window // 2 + 1), np.float32)
    views = np.lib.stride_tricks.sliding_window_view(padded, window)
    for at in range(0, columns, _BATCH):
        part = views[centers[at : at + _BATCH]] * shape
        given = compute.from_array(part, device=device)
        found = compute.buffer_zeros((*part.shape, 2), "f32", device=given.device)
        compute.run_kernel("fft", [given], found)
        half = found.numpy()[:, : window // 2 + 1]
        made[at : at + _BATCH] = np.hypot(half[..., 0], half[..., 1]) * scale
    return made


def _side(call: str, name: str, value: int) -> int:
    try:
        side = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        side = -1
    if not 1 <= side <= 16384:
        raise ParameterError.invalid(call, name, "an int from 1 to 16384", value)
    return side
