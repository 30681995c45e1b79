"""Sound as pictures that shaders read: samples and spectra, as WebAudio's AnalyserNode has them."""

from __future__ import annotations

from typing import Final

import numpy as np

from dala.typing import NDArray

#: Samples of a spectrum.
_WINDOW: Final = 2048
#: Decibels that are black and white.
_QUIET, _LOUD = -100.0, -30.0
#: What makes the magnitude of the loudest tone white: half the mean of a Blackman window is 0.21.
_FULL: Final = 255 / 0.21
#: Samples and bands of Shadertoy's picture.
_TOY: Final = 512


def wave(samples: NDArray, width: int) -> NDArray:
    """Return the last samples as a row of pixels: 128 is silence.

    >>> import numpy as np
    >>> wave(np.array([0.0, 0.5, -1.0]), 2)[0, :, 0].tolist()
    [192, 0]
    """
    found = np.clip(np.floor(128 + 128 * _last(samples, width) + 0.5), 0, 255)
    return _pixels(found)


def spectrum(samples: NDArray, width: int) -> NDArray:
    """Return the magnitudes of so many bands of equal width as a row of pixels.

    >>> import numpy as np
    >>> tone = np.sin(np.arange(2048) * 2.5 * np.pi / 8)
    >>> spectrum(tone, 8)[0, :, 0].tolist()
    [0, 0, 255, 0, 0, 0, 0, 0]
    """
    return _pixels(np.rint(_magnitudes(samples, width) * _FULL))


def toy(samples: NDArray) -> NDArray:
    """Return Shadertoy's picture: the last samples above the spectrum, which GLSL has at y = 0.

    >>> import numpy as np
    >>> toy(np.zeros(9))[:, 0, 0].tolist()
    [128, 0]
    """
    # WebAudio has 1,024 bands of such a window, of which Shadertoy shows the lower half.
    with np.errstate(divide="ignore"):
        decibels = 20 * np.log10(_magnitudes(samples, _WINDOW // 2)[:_TOY])
    level = (decibels - _QUIET) / (_LOUD - _QUIET) * 255
    return np.concatenate([wave(samples, _TOY), _pixels(level)])


def _magnitudes(samples: NDArray, bands: int) -> NDArray:
    """Return the largest magnitude in each band, of the last samples under a Blackman window."""
    found = np.abs(np.fft.rfft(_last(samples, _WINDOW) * np.blackman(_WINDOW)))[:-1] / _WINDOW
    edges = np.arange(bands) * len(found) // bands
    return np.asarray(np.maximum.reduceat(found, edges))


def _last(samples: NDArray, count: int) -> NDArray:
    found = np.nan_to_num(samples[-count:])
    return np.concatenate([np.zeros(count - len(found)), found])


def _pixels(row: NDArray) -> NDArray:
    gray = np.clip(row, 0, 255).astype(np.uint8)
    return np.dstack([*[gray[None]] * 3, np.full((1, len(gray)), 255, np.uint8)])
