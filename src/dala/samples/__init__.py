"""Photographs and videos for examples: a block of the documentation that uses them runs anywhere.

The photographs come with the package. Videos are made from them on first use, frame by frame the
same everywhere, and kept in the cache. Both need ``pip install "dala-gpu[media]"``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from dala.arguments import Selection
from dala.folders import cache_folder
from dala.media import Frame
from dala.trust import distrust, make_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PHOTOS", "VIDEOS", "photo", "video"]

#: The photographs: what each shows, who took it, and its license.
PHOTOS: Final = {
    "astronaut": "Eileen Collins, 512x512; NASA, public domain",
    "chelsea": "Chelsea the cat, 451x300; Stéfan van der Walt, CC0",
    "coffee": "a cup of coffee, 600x400; Rachel Michetti, CC0",
}
#: The videos, each three seconds of 320x240 at 25 frames per second.
VIDEOS: Final = {
    "bars": "color bars, and a white square that moves across them",
    **{name: f"a window that moves over the photograph {name!r}" for name in PHOTOS},
}

_WIDTH, _HEIGHT, _RATE, _COUNT = 320, 240, 25, 75
#: Part of the videos' file names; a change of their frames needs a new one.
_EDITION: Final = 1


def photo(name: str, *, device: str | None = None) -> Frame:
    """Return a photograph by its name: "astronaut", "chelsea" or "coffee".

    Args:
        name: one of ``PHOTOS``, which also has the authors and licenses.
        device: the device of the frame; the current one by default.

    Raises:
        ParameterError: there is no such photograph.
        MissingPackage: Pillow is not installed.

    >>> photo("chelsea", device="cpu").shape
    (300, 451, 3)
    """
    _check("samples.photo", name, PHOTOS)
    data = resources.files(__name__).joinpath("photos", f"{name}.jpg").read_bytes()
    return Frame.open(data, device=device)


def video(name: str) -> Path:
    """Return the path of a video by its name: "bars", or the name of a photograph.

    The file is written on first use, to ``samples`` in the cache folder (``DALA_CACHE_DIR``, or
    that of the user), or to a temporary folder where that cannot be written, or where others can.

    Args:
        name: one of ``VIDEOS``.

    Raises:
        ParameterError: there is no such video.
        MissingPackage: PyAV or Pillow is not installed.

    >>> from dala.media import video as videos
    >>> with videos.open(video("bars")) as reader:
    ...     print(reader.width, reader.height, reader.fps)
    320 240 25
    """
    _check("samples.video", name, VIDEOS)
    file = f"{name}-{_EDITION}.mp4"
    folder = cache_folder("samples")
    if folder is not None and distrust(str(folder)):
        folder = None  # other users could put files there
    if folder is not None and (folder / file).is_file():
        return folder / file
    try:
        if folder is None:
            raise PermissionError
        make_folder(str(folder))
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:  # read-only, a file of that name, ..
        folder = _temporary()
    return _written(folder / file, name)


@cache
def _temporary() -> Path:
    return Path(tempfile.mkdtemp(prefix="dala-samples-"))


def _written(path: Path, name: str) -> Path:
    from dala.media import video as videos

    if not path.is_file():
        made = _FRAMES[name]()
        # Renamed into place when complete, so two processes may do this at once.
        with videos.write(path, fps=_RATE) as sink:
            for pixels in made:
                sink.write(pixels)
    return path


def _check(call: str, name: str, known: dict[str, str]) -> None:
    Selection(*known, expected=f"one of {', '.join(known)}").check(call, "name", name)


# frames -------------------------------------------------------------------------------------------
def _bars() -> Iterator[NDArray[np.uint8]]:
    colors = [(r, g, b) for g in (180, 16) for r in (180, 16) for b in (180, 16)]
    still = np.repeat(np.array(colors, np.uint8), _WIDTH // 8, axis=0)
    still = np.broadcast_to(still, (_HEIGHT, _WIDTH, 3))
    for n in range(_COUNT):
        frame = still.copy()
        frame[100:140, 4 * n : 4 * n + 40] = 235
        yield frame


def _window(name: str) -> Iterator[NDArray[np.uint8]]:
    """Yield parts of a photograph; the window moves back and forth in both directions."""
    pixels = photo(name, device="cpu").picture()
    height, width = pixels.shape[:2]
    for n in range(_COUNT):
        x = _swing(2 * n, width - _WIDTH)
        y = _swing(n, height - _HEIGHT)
        yield np.ascontiguousarray(pixels[y : y + _HEIGHT, x : x + _WIDTH])


def _swing(n: int, length: int) -> int:
    """
    >>> [_swing(n, 3) for n in range(8)]
    [0, 1, 2, 3, 2, 1, 0, 1]
    """
    return length - abs(n % (2 * length) - length)


_FRAMES: Final[dict[str, Callable[[], Iterator[NDArray[np.uint8]]]]] = {
    "bars": _bars,
    **{name: partial(_window, name) for name in PHOTOS},
}
