"""File names of videos and pictures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from dala.typing import PathLike

#: Suffixes of videos: containers, and streams of one codec. All other files are pictures.
VIDEO_SUFFIXES: Final = frozenset((
    ".264", ".265", ".3g2", ".3gp", ".amv", ".asf", ".av1", ".avc", ".avi", ".cavs", ".dirac",
    ".divx", ".drc", ".dv", ".dvr-ms", ".f4v", ".flc", ".fli", ".flv", ".gxf", ".h261", ".h263",
    ".h264", ".h265", ".h266", ".hevc", ".insv", ".ivf", ".lrv", ".m1v", ".m2p", ".m2t", ".m2ts",
    ".m2v", ".m4v", ".mjpeg", ".mjpg", ".mk3d", ".mkv", ".mov", ".mp4", ".mpe", ".mpeg", ".mpg",
    ".mpv", ".mts", ".mxf", ".nsv", ".nut", ".obu", ".ogm", ".ogv", ".qt", ".rm", ".rmvb", ".roq",
    ".tp", ".trp", ".ts", ".vc1", ".viv", ".vob", ".vvc", ".webm", ".wmv", ".wtv", ".y4m",
))  # fmt: skip
#: Suffixes of the files of a folder that are read as pictures.
PICTURE_SUFFIXES: Final = frozenset((
    ".avif", ".bmp", ".gif", ".jp2", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm",
    ".tga", ".tif", ".tiff", ".webp",
))  # fmt: skip
#: The suffixes of animated pictures that are written, and their kind. A ``.png`` may be one too.
ANIMATED: Final = {".gif": "gif", ".apng": "apng", ".webp": "webp"}
#: Suffixes of files that are one picture, which does not move; those that an installed plugin or
#: the reader of SVG reads, too.
STILL_SUFFIXES: Final = PICTURE_SUFFIXES - {".gif"} | {".heic", ".svg", ".svgz"}


def is_still(path: PathLike) -> bool:
    """Return whether a name is that of one picture, which does not move.

    >>> is_still("photo.JPG"), is_still("talk.gif")
    (True, False)
    """
    return Path(os.fspath(path)).suffix.lower() in STILL_SUFFIXES
