"""Apply filters to pictures and videos."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict

from dala import forks
from dala.cli.common import arguments, chain, filter_video, inputs
from dala.cli.common.pipes import PIPE, piped
from dala.cli.common.signals import Stopped, stopping
from dala.errors import ParameterError, counted
from dala.media.notices import collected
from dala.media.progress import Progress

if TYPE_CHECKING:
    from dala.media import FramePipeline

EXAMPLES: Final = """\
examples:
  dala filter in.png out.png --blur 3 --sharpen 0.3
  dala filter in.png out.png --blur radius=3,sigma=1.5 --brightness -0.1
  dala filter in.mp4 out.mp4 --lut film.cube --vignette
  dala filter photos/ small/ --resize 640x360      pictures and videos; 640x keeps the aspect
  dala filter in.jpg card.jpg --resize 640x360,fit=cover
  dala filter 'photos/*.jpg' gray/ --grayscale
  dala filter clip.mp4 clip.gif --resize 480x
  dala filter - - --format png --invert < in.jpg > out.png
  dala filter green.png out.png --chroma_key key=0:1:0,threshold=0.25
  dala filter in.jpg out.jpg --curves master=0:0:0.3:0.2:1:1 --brightness 0.1

IN and OUT stand before the filters. The word after a filter is its value: parameters NAME=VALUE,
separated by commas; the first one may be without its name. A size is WxH (width first), numbers
of a list have colons between. The sound and all other tracks of videos are kept. Files are renamed
into place when they are complete. `dala kernels` lists the filters.
"""

#: As ``video.write`` takes them; a test compares.
ENCODERS: Final = ("auto", "x264", "nvenc", "qsv", "videotoolbox", "vaapi", "amf")
#: The default quality of JPEG and WebP, as of ``filter_picture``; a test compares.
_QUALITY: Final = 92


#: A filtered file, and one that failed.
Made = filter_video.Made
Failed = TypedDict("Failed", {"in": str, "error": str})


class FilterReport(TypedDict):
    """The report that --json prints."""

    device: str
    filters: list[dict[str, chain.Json]]
    made: list[Made]
    failed: list[Failed]
    seconds: float
    #: What was converted, repaired or left out.
    notices: NotRequired[list[str]]


#: Options that are not filters.
OPTIONS: Final[arguments.Options] = {
    **arguments.DEVICE,
    **arguments.MAX_PIXELS,
    **arguments.JSON,
    "--quality": {
        "type": arguments.integer(1, 100),
        "metavar": "N",
        "help": f"of JPEG and WebP ({_QUALITY})",
    },
    "--codec": {"help": "of a video: h264, hevc, av1, vp9, prores, ffv1, .."},
    "--encoder": {
        "choices": ENCODERS,
        "help": "of a video: hardware that must work, or auto: hardware that works, else software",
    },
    "--alpha": {
        "action": "store_true",
        "help": "keep the alpha of a video: prores and png (.mov), vp9 (.webm), ffv1 (.mkv)",
    },
    "--crf": {
        "type": arguments.integer(0, 63),
        "metavar": "N",
        "help": "quality of a video: lower is better and larger",
    },
    "--format": {"help": "of a result on standard output: png, jpeg, mkv, .."},
    "--background": {
        "default": "white",
        "metavar": "COLOR",
        "help": "below transparent pixels in formats without alpha (white)",
    },
    "--color": {
        "choices": ("srgb", "raw"),
        "default": "srgb",
        "help": "convert pictures with an ICC profile to sRGB, or keep their values (srgb)",
    },
    "--deinterlace": {
        "action": "store_true",
        "help": "make whole pictures of the fields of an interlaced video",
    },
    "--hdr": {
        "choices": ("sdr", "keep"),
        "default": "sdr",
        "help": "tone-map HDR videos to SDR, or keep HDR and more than 8 bits: hevc or av1 (sdr)",
    },
    "--on-resize": {
        "choices": ("scale", "error"),
        "default": "scale",
        "help": "what to do where a video changes its size (scale)",
    },
    "--retime": {
        "action": "store_true",
        "help": "space the frames of a video evenly, ignoring their own times",
    },
    "--loop": {
        "type": arguments.integer(0, 65535),
        "metavar": "N",
        "help": "plays of an animated GIF, APNG or WebP; 0 is forever (as the source has it)",
    },
    "--no-audio": {"action": "store_true", "help": "drop the sound"},
    "--volume": {
        "type": arguments.volume,
        "metavar": "X",
        "help": "make the sound of a video louder or quieter: a factor, or decibels such as -6dB",
    },
    "--loudness": {
        "type": arguments.loudness,
        "metavar": "LUFS",
        "help": "bring the sound of a video to a loudness by EBU R128, such as -16",
    },
    "--audio-fade": {
        "type": arguments.fades,
        "metavar": "IN[,OUT]",
        "help": "seconds in which the sound of a video fades in, and out",
    },
    "--live": {
        "action": "store_true",
        "help": "wait for a named pipe or a device, and filter what comes until it ends",
    },
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.usage = "dala filter IN [IN ..] OUT --FILTER [VALUE] [--FILTER [VALUE] ..] [options]"
    parser.add_argument(
        "paths", nargs="+", metavar="IN OUT", help="a picture, a video, a folder or a pattern; "
        "and the result: a file, or a folder for many files"
    )  # fmt: skip
    arguments.add_options(parser, OPTIONS)
    chain.add_options(parser)


def prepare(words: Sequence[str]) -> list[str]:
    """Return the arguments in a form that argparse can parse."""
    return chain.join(words, arguments.flags(OPTIONS), "dala filter IN OUT")


def run(args: argparse.Namespace) -> int:
    """Filter the pictures or the video and print a report."""
    if len(args.paths) < 2:
        raise ParameterError(
            f"IN and OUT are required, got only {args.paths[0]!r}: dala filter in.png out.png."
        )
    if not args.chain:
        raise ParameterError("name at least one filter, such as --blur 3.")
    *names, out = args.paths
    # The report makes way for a result on standard output.
    shown = sys.stderr if out == PIPE else sys.stdout
    given = args.paths
    if not args.live:
        inputs.refuse_waiting(names, "Give --live to wait for it, or '-' for standard input.")
    try:
        with (
            stopping(),
            collected() as notices,
            piped(names, out, args.format) as (names, out),
        ):
            if len(names) == 1 and _is_one_video(names[0], out):
                report = _video(args, names[0], out)
            else:
                report = _files(args, names, out)
    except Stopped as stopped:
        return 128 + stopped.number
    report["notices"] = notices
    for made in report["made"]:
        made["in"] = PIPE if given[0] == PIPE else made["in"]
        made["out"] = PIPE if given[-1] == PIPE else made["out"]
    failed = report["failed"]
    if args.json:
        print(json.dumps(report, indent=2), file=shown)
    else:
        print(_summary(report, out), file=shown)
        for text in notices:
            print(f"dala filter: {text}", file=sys.stderr)
        for one in failed:
            print(f"dala filter: {one['error']}", file=sys.stderr)
    return 2 if failed else 0


def _is_one_video(name: str, out: str) -> bool:
    """Return whether a name is that of a video, or of an animated picture whose result moves."""
    if inputs.is_one_video(name):
        return True
    return not Path(out).is_dir() and inputs.is_animation(Path(name), Path(out))


def _summary(report: FilterReport, out: str) -> str:
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


def _video(args: argparse.Namespace, name: str, out: str) -> FilterReport:
    device, made, wrong, seconds = filter_video.run(args, name, out)
    return _report(args, device, [made], [{"in": name, "error": wrong}] if wrong else [], seconds)


# many files -------------------------------------------------------------------------------------
def _files(args: argparse.Namespace, names: list[str], out: str) -> FilterReport:
    """Filter pictures and videos: one into a file, or many into a folder."""
    sources, many = inputs.expand(names, videos=True)
    if many:
        targets = inputs.targets(sources, out)
    else:
        into = Path(out)
        targets = [into / sources[0].name if into.is_dir() else into]
    pairs = list(zip(sources, targets, strict=True))
    moving = [inputs.is_video(s.name) or inputs.is_animation(s, t) for s, t in pairs]
    for (source, target), moves in zip(pairs, moving, strict=True):
        if inputs.is_video(target.name) and not moves:
            raise ParameterError(f"'{source}' is a picture, and '{target}' is the name of a video.")
    from dala.media.pictures.filtering import large_pictures

    inputs.refuse_overwriting([*sources, *chain.files(args.chain)], targets)
    pictures = [pair for pair, moves in zip(pairs, moving, strict=True) if not moves]
    videos = [pair for pair, moves in zip(pairs, moving, strict=True) if moves]
    with large_pictures():
        filters = chain.load(args.chain, args.max_pixels)
        if many:
            Path(out).mkdir(parents=True, exist_ok=True)
        reports = [_filter_all(args, pictures, filters, many)] if pictures else []
        reports += [_batch_video(args, source, target) for source, target in videos]
    return _report(
        args,
        next((report["device"] for report in reports if report["device"]), ""),
        [one for report in reports for one in report["made"]],
        [one for report in reports for one in report["failed"]],
        sum(report["seconds"] for report in reports),
    )


def _batch_video(args: argparse.Namespace, source: Path, target: Path) -> FilterReport:
    """Filter a video of a batch; a failure is part of the report."""
    try:
        return _video(args, str(source), str(target))
    except BaseException as error:
        why = inputs.failure(source, error)
        return _report(args, "", [], [{"in": str(source), "error": why}], 0.0)


def _filter_all(
    args: argparse.Namespace,
    pairs: list[tuple[Path, Path]],
    filters: list[chain.Link],
    many: bool,
) -> FilterReport:
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

    def one(source: Path, target: Path) -> Made:
        pipeline = idle.get()
        try:
            return _filter_one(args, pipeline, filters, source, target)
        finally:
            idle.put(pipeline)

    pool = forks.pool(workers, "dala-pictures")
    made: dict[Path, Made] = {}
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
    return _report(
        args,
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
) -> Made:
    from dala.media.pictures.filtering import filter_picture

    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder '{target.parent}'. Make it first.")
    width, height = filter_picture(
        pipeline,
        filters,
        source,
        target,
        target.suffix,
        max_pixels=args.max_pixels,
        quality=args.quality,
        color=args.color,
        background=args.background,
    )
    return {"in": str(source), "out": str(target), "width": width, "height": height}


def _report(
    args: argparse.Namespace,
    device: str,
    made: list[Made],
    failed: list[Failed],
    seconds: float,
) -> FilterReport:
    return {
        "device": device,
        "filters": chain.as_json(args.chain),
        "made": made,
        "failed": failed,
        "seconds": round(seconds, 3),
    }
