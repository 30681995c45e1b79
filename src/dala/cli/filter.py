"""Apply filters to pictures and videos.

examples:
  dala filter in.png out.png --blur 3 --sharpen 0.3
  dala filter in.mp4 out.mp4 --lut film.cube --vignette
  dala filter photos/ small/ --resize 640x360      pictures and videos; 640x keeps the aspect
  dala filter jpegs/ webp/ --format webp           only convert
  dala filter clip.mp4 clip.gif --resize 480x
  dala filter in.png out.png --kernel glow.py,amount=0.5     a kernel of a file
  dala filter clip.mov clip.mp4                    another format; filters may be left out then
  dala filter - - --format png --invert < in.jpg > out.png

more examples:
  dala filter in.png out.png --blur radius=3,sigma=1.5 --brightness -0.1
  dala filter in.jpg card.jpg --resize 640x360,fit=cover
  dala filter 'photos/*.jpg' gray/ --grayscale
  dala filter green.png out.png --chroma_key key=0:1:0,threshold=0.25
  dala filter in.jpg out.jpg --curves master=0:0:0.3:0.2:1:1 --brightness 0.1

IN and OUT stand before the filters. The word after a filter is its value: parameters NAME=VALUE,
separated by commas; the first one may be without its name. A size is WxH (width first), numbers
of a list have colons between. The sound and all other tracks of videos are kept. Files are renamed
into place when they are complete. `dala kernels` lists the filters.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dala import forks
from dala.cli.common import arguments, chain, filter_video, inputs
from dala.cli.common.arguments import Report, argument, switch
from dala.cli.common.filter_video import Work
from dala.cli.common.signals import PIPE, piped, stopping
from dala.errors import ParameterError, counted
from dala.media.pictures.options import PictureOptions
from dala.media.progress import Progress
from dala.media.video.options import EncodeOptions, FilterOptions
from dala.notices import collected

if TYPE_CHECKING:
    from dala.media import FramePipeline

USAGE: Final = "dala filter IN [IN ..] OUT --FILTER [VALUE] [--FILTER [VALUE] ..] [options]"
PATHS: Final = "dala filter IN OUT"
ARGUMENTS: Final[arguments.Options] = {
    "paths": argument(
        "a picture, a video, a folder or a pattern; and the result: a file, or a folder for many "
        "files",
        nargs="+",
        metavar="IN OUT",
    ),
    **arguments.JSON,
    **arguments.grouped("pictures", {**PictureOptions.command_line(), **arguments.MAX_PIXELS}),
    **arguments.grouped(
        "videos",
        FilterOptions.command_line() | EncodeOptions.command_line(*filter_video.ENCODE),
    ),
    **arguments.DEVICE,
    "--format": argument("of results in a folder or on standard output: png, webp, mkv, .."),
    "--volume": argument(
        "make the sound of a video louder or quieter: a factor, or decibels such as -6dB",
        type=arguments.volume,
        metavar="X",
        group="sound of videos",
    ),
    "--loudness": argument(
        "bring the sound of a video to a loudness by EBU R128, such as -16",
        type=arguments.loudness,
        metavar="LUFS",
        group="sound of videos",
    ),
    "--audio-fade": argument(
        "seconds in which the sound of a video fades in, and out",
        type=arguments.fades,
        metavar="IN[,OUT]",
        group="sound of videos",
    ),
    "--live": switch("wait for a named pipe or a device, and filter what comes until it ends"),
}


def run(args: argparse.Namespace) -> int:
    """Filter the pictures or the video and print a report."""
    if len(args.paths) < 2:
        raise ParameterError(
            f"IN and OUT are required, got only {args.paths[0]!r}: dala filter in.png out.png."
        )
    *names, out = args.paths
    if not args.chain and not _converts(args, names, out):
        raise ParameterError(
            "name at least one filter, such as --blur 3, or what else shall change: the suffix of "
            "OUT, --format, or a setting such as --codec hevc or --loudness -16."
        )
    given = args.paths
    if not args.live:
        inputs.refuse_waiting(names, "Give --live to wait for it, or '-' for standard input.")
    with (
        stopping(),
        collected() as notices,
        piped(names, out, args.format, folders=True) as (names, out),
    ):
        one = len(names) == 1 and _is_one_video(names[0], out)
        work = filter_video.run(args, names[0], out) if one else _files(args, names, out)
    report: Report = {
        "device": work.device,
        "filters": chain.as_json(args.chain),
        "made": work.made,
        "failed": work.failed,
        "seconds": round(work.seconds, 3),
        "notices": notices,  # what was converted, repaired or left out
    }
    for made in work.made:
        made["in"] = PIPE if given[0] == PIPE else made["in"]
        made["out"] = PIPE if given[-1] == PIPE else made["out"]
    notes = [*notices, *(one["error"] for one in work.failed)]
    # The report makes way for a result on standard output.
    with redirect_stdout(sys.stderr if given[-1] == PIPE else sys.stdout):
        return arguments.show(args, report, _summary(report, out), notes, 2 if work.failed else 0)


def _converts(args: argparse.Namespace, names: Sequence[str], out: str) -> bool:
    """Return whether a command without filters changes something: the format, or a setting."""
    if args.format is not None or any(Path(n).suffix != Path(out).suffix for n in names):
        return True
    settings = ("volume", "loudness", "audio_fade", "quality", "color", "retime", "alpha", "loop")
    return bool(FilterOptions.given(args)) or any(getattr(args, s) is not None for s in settings)


def _is_one_video(name: str, out: str) -> bool:
    """Return whether a name is that of a video, or of an animated picture whose result moves."""
    if inputs.is_one_video(name):
        return True
    return not Path(out).is_dir() and inputs.is_animation(Path(name), Path(out))


def _summary(report: Report, out: str) -> str:
    made, seconds = report["made"], report["seconds"]
    where = f"on {report['device']}"
    if len(made) == 1 and (not report["failed"] or "frames" in made[0]):
        one = made[0]
        size = f"{one['width']}x{one['height']}"
        if "frames" in one:
            fps = one["frames"] / seconds if seconds else 0.0
            size += f", {counted(one['frames'], 'frames')}, {fps:.1f} fps,"
        return f"{one['out']}: {size} in {seconds:.2f} s {where}"
    missed = f", {len(report['failed'])} failed" if report["failed"] else ""
    videos = sum("frames" in one for one in made)
    counts = [(len(made) - videos, "pictures"), (videos, "videos")]
    what = " and ".join(counted(n, kind) for n, kind in counts if n) or "0 files"
    return f"{out}: {what} in {seconds:.1f} s{missed} {where}"


def _files(args: argparse.Namespace, names: list[str], out: str) -> Work:
    """Filter pictures and videos: one into a file, or many into a folder."""
    sources, many = inputs.expand(names, videos=True)
    inside = many or Path(out).is_dir() or out.endswith("/")
    targets = inputs.targets(sources, out, args.format) if inside else [Path(out)]
    pictures: list[tuple[Path, Path]] = []
    videos: list[tuple[Path, Path]] = []
    for source, target in zip(sources, targets, strict=True):
        moves = inputs.is_video(source.name) or inputs.is_animation(source, target)
        if inputs.is_video(target.name) and not moves:
            raise ParameterError(f"'{source}' is a picture, and '{target}' is the name of a video.")
        (videos if moves else pictures).append((source, target))
    from dala.media.pictures.filtering import large_pictures

    inputs.refuse_overwriting([*sources, *chain.files(args.chain)], targets)
    with large_pictures():
        filters = chain.load(args.chain, args.max_pixels)
        if inside:
            Path(out).mkdir(parents=True, exist_ok=True)
        works = [_filter_all(args, pictures, filters, many)] if pictures else []
        works += [_batch_video(args, source, target) for source, target in videos]
    return Work(
        next((work.device for work in works if work.device), ""),
        [one for work in works for one in work.made],
        [one for work in works for one in work.failed],
        sum(work.seconds for work in works),
    )


def _batch_video(args: argparse.Namespace, source: Path, target: Path) -> Work:
    """Filter a video of a batch; a failure is part of the report."""
    try:
        return filter_video.run(args, str(source), str(target))
    except BaseException as error:
        return Work("", [], [{"in": str(source), "error": inputs.failure(source, error)}])


def _filter_all(
    args: argparse.Namespace,
    pairs: list[tuple[Path, Path]],
    filters: list[chain.Link],
    many: bool,
) -> Work:
    """Filter pictures, several at a time; failures are collected."""
    import os
    from concurrent.futures import as_completed
    from queue import SimpleQueue

    from dala.media import FramePipeline

    sources = [source for source, _ in pairs]
    workers = min(len(sources), os.cpu_count() or 1, 8)
    idle: SimpleQueue[FramePipeline] = forks.simple_queue()
    pipelines = [FramePipeline(1 << 20, 1 << 20, device=args.device) for _ in range(workers)]
    for pipeline in pipelines:
        idle.put(pipeline)

    def one(source: Path, target: Path) -> Report:
        pipeline = idle.get()
        try:
            return _filter_one(args, pipeline, filters, source, target)
        finally:
            idle.put(pipeline)

    pool = forks.pool(workers, "dala-pictures")
    made: dict[Path, Report] = {}
    failed: dict[Path, str] = {}
    try:
        with Progress(len(sources), "pictures") as progress:
            work = {pool.submit(one, source, target): source for source, target in pairs}
            for future in as_completed(work):
                try:
                    made[work[future]] = future.result()
                except BaseException as error:
                    if not many and isinstance(error, Exception):
                        raise
                    failed[work[future]] = inputs.failure(work[future], error)
                progress.step()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for pipeline in pipelines:
            pipeline.close()
    return Work(
        pipelines[0].device,
        [made[s] for s in sources if s in made],
        [{"in": str(s), "error": failed[s]} for s in sources if s in failed],
        progress.seconds,
    )


def _filter_one(
    args: argparse.Namespace,
    pipeline: FramePipeline,
    filters: list[chain.Link],
    source: Path,
    target: Path,
) -> Report:
    from dala.media.pictures.filtering import filter_picture

    options = PictureOptions.checked("dala filter", PictureOptions.given(args))
    width, height = filter_picture(pipeline, filters, source, target, target.suffix, options)
    return {"in": str(source), "out": str(target), "width": width, "height": height}
