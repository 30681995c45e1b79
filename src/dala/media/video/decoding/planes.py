"""Opening a video to filter it: with the decoder's own planes where filters can start from them."""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dala.media.frame import Frame
from dala.media.video.options import DecodeOptions
from dala.media.video.source import VideoFile
from dala.notices import notify

if TYPE_CHECKING:
    from dala.media.video.reader import Reader

#: The most threads that decode: each holds frames of its own, and more are rarely faster.
_DECODERS: Final = 4
#: Codecs with centered chroma, which native planes do not record.
_CENTERED: Final = ("mjpeg", "mpeg1video", "ljpeg")


def open_planes(name: VideoFile, options: DecodeOptions, *, keep_hdr: bool | None = None) -> Reader:
    """Open a video with native planes, unless they must be converted before the filters.

    Args:
        name: the file, a URL, a file object, or an opened source.
        options: as of ``video.open``; without ``threads``, some of the cores decode.
        keep_hdr: whether HDR is kept; None where that cannot be asked for.

    Example::

        with open_planes("clip.mp4", DecodeOptions(device="cpu")) as reader:
            ...
    """
    from dala.media.video.files import open_reader

    threads = options.threads or max(1, min((os.cpu_count() or 1) // 2, _DECODERS))
    options = replace(options, policy="every", queue=1, threads=threads)
    source = open_reader(name, replace(options, format="native"))
    try:
        deep = bool(keep_hdr) and (source.bits > 8 or source.is_hdr)
        if source.is_hdr and not deep:
            advice = "" if keep_hdr is None else " --hdr keep keeps it."
            notify(f"{source.name}: HDR is tone-mapped to SDR.{advice}")
        plain = not deep and source.codec not in _CENTERED and source.rotation == 0
    except BaseException:
        source.close()
        raise
    if plain:
        return source
    source.close()
    return open_reader(name, replace(options, depth="float" if deep else None))


def pixel_aspect(source: Reader, first: Frame) -> Fraction | None:
    """Return the pixel aspect that keeps the picture's aspect ratio; None for square pixels.

    Args:
        source: what was read.
        first: the first frame to write, which may have another size.
    """
    aspect = source.pixel_aspect
    if aspect == 1:
        return None
    width, height = source.width, source.height
    if source.format != "native" and source.rotation in (90, 270):
        aspect = 1 / aspect
    return aspect * Fraction(width, height) * Fraction(first.height, first.width)
