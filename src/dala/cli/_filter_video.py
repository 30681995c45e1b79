"""The part of ``dala filter`` that is about videos."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dala.cli import _chain as chain
from dala.cli import _inputs as inputs
from dala.cli._progress import Progress
from dala.errors import ParameterError, VideoError

if TYPE_CHECKING:
    from dala.media import Frame
    from dala.media.video.borrowed import BorrowedFrame
    from dala.media.video.chain import VideoChain
    from dala.media.video.files import Reader

#: Threads that decode, at most: each keeps pictures of its own, and more are rarely faster.
_DECODERS: Final = 4
#: Codecs whose chroma lies in the middle of its pixels, which planes by themselves do not tell.
_CENTERED: Final = ("mjpeg", "mpeg1video", "ljpeg")


def run(args: argparse.Namespace, name: str, out: str) -> tuple[str, dict[str, Any], str, float]:
    """Filters a video; gives the device, what was made, what went wrong ("" for nothing), and how
    long it took.

    Of a video that is damaged, what can be decoded is filtered and kept.
    """
    from dala.media import video

    remote = "://" in name
    if not inputs.is_video(out):
        raise ParameterError(f"{name!r} is a video, so OUT must be one, such as out.mp4; {out!r}.")
    used = chain.files(args.chain)
    inputs.refuse_overwriting([*([] if remote else [Path(name)]), *used], [Path(out)])
    filters = chain.load(args.chain, args.max_pixels)
    options = {} if args.crf is None else {"crf": args.crf}
    damage: list[VideoError] = []
    with ExitStack() as held:
        source, stages = _begun(name, filters, args.device, held)
        progress = held.enter_context(Progress(_count(source), "frames"))
        given = source.borrow() if stages.shares_memory else source
        frames = stages.stream(_until_damage(given, damage))
        first = next(frames, None)
        if first is None:
            raise damage[0] if damage else VideoError(f"{name!r} holds no frame of video.")
        sound = None if args.no_audio or remote or not source.has_audio else source
        with video.write(
            out, fps=source.fps, codec=args.codec, audio_from=sound, options=options,
            device=args.device, pixel_aspect=_aspect(source, first),
        ) as sink:  # fmt: skip
            made = {"in": name, "out": out, "width": first.width, "height": first.height}
            frame: Frame | None = first
            del first  # whoever holds a frame keeps its memory from being used again
            while frame is not None:
                sink.write(frame, copy=False)
                progress.step()
                frame = None
                frame = next(frames, None)
    made["frames"] = progress.done
    wrong = ""
    if damage:
        wrong = f"{damage[0]} {progress.done} frames were saved to {out!r}."
    return stages.device, made, wrong, progress.seconds


def _begun(
    name: str, filters: Sequence[Any], device: str | None, held: ExitStack
) -> tuple[Reader, VideoChain]:
    """The open video and what filters it, made side by side: each takes a while to start."""
    from dala.media.video.chain import VideoChain

    with ThreadPoolExecutor(1) as other:
        making = other.submit(VideoChain, filters, device=device, range="limited")
        try:
            source = held.enter_context(_opened(name, device))
        finally:
            stages = held.enter_context(making.result())
    return source, stages


def _opened(name: str, device: str | None) -> Reader:
    """The video, its own planes where nothing is to be done to them before the filters."""
    from dala.media import video

    threads = max(1, min((os.cpu_count() or 1) // 2, _DECODERS))
    source = video.open(
        name, format="native", device=device, policy="every", queue=1, threads=threads
    )
    try:
        plain = source.codec not in _CENTERED and source.rotation == 0
    except BaseException:
        source.close()
        raise
    if plain:
        return source
    source.close()
    return video.open(name, device=device, policy="every", queue=1, threads=threads)


def _count(source: Reader) -> int | None:
    if source.frames is None and source.duration and source.fps:
        return round(source.duration * source.fps)
    return source.frames


def _aspect(source: Reader, first: Frame) -> Fraction | None:
    """The aspect of pixels with which the whole picture keeps its own; None for square ones."""
    aspect = source.pixel_aspect
    if aspect == 1:
        return None
    width, height = source.width, source.height
    if source.format != "native" and source.rotation in (90, 270):
        aspect = 1 / aspect
    return aspect * Fraction(width, height) * Fraction(first.height, first.width)


def _until_damage(
    given: Iterable[Frame | BorrowedFrame], damage: list[VideoError]
) -> Iterator[Frame | BorrowedFrame]:
    """The frames there are; what the reader says at the end is kept, not raised."""
    try:
        yield from given
    except VideoError as error:
        damage.append(error)
