"""File names of videos and pictures."""

from __future__ import annotations

from typing import Final

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
