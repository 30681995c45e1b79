"""Filter, render or look through many files, in processes of this machine or on a cluster."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from dala.cli.common import arguments, chain
from dala.cli.common.signals import Stopped, stopping
from dala.errors import ParameterError, did_you_mean

if TYPE_CHECKING:
    from dala.batch import BatchJob, BatchReport

EXAMPLES: Final = """\
examples:
  dala batch videos 'videos/**/*.mp4' 'clean/{stem}.mp4' --denoise --lut film.cube --crf 20
  dala batch videos film.mp4 out.mp4 --sharpen 0.3 --chunk 30s --threads 1 --workers 4
  dala batch images 'photos/**/*.jpg' 'small/{path}.webp' --resize 640x360
  dala batch scenes 'scenes/*.json' 'videos/{stem}.mp4' --chunk 10s
  dala batch detect videos/ found/ --model yolo_v5 --every 1s
  dala batch videos videos/ clean/ --denoise --plan           what it would do, and how long
  dala batch videos videos/ clean/ --denoise --resume         go on after a stop or a failure
  dala batch videos s3://films/in/ s3://films/out/ --denoise --on ray --gpus 0.25

KIND, IN and OUT stand before the filters. IN is a file, a folder or a pattern; OUT a folder, or a
name with {path} {parent} {stem} {name} {suffix}. Long videos are split at key frames and stitched;
the result is the same for any number of workers. Ctrl-C stops; --resume goes on.
"""

#: Kinds of jobs whose result is a table of what a model finds.
_TABLES: Final = ("classify", "detect", "faces", "hands", "poses")
KINDS: Final = ("videos", "images", "scenes", *_TABLES)

#: Options that are not filters, and the kinds of jobs that have them.
_VIDEO: Final[arguments.Options] = {
    "--chunk": {"metavar": "S", "help": "least seconds of a part, such as 30 or 2min (60s)"},
    "--crf": {
        "type": arguments.integer(0, 63),
        "metavar": "N",
        "help": "quality of videos: lower is better and larger",
    },
    "--codec": {"help": "of videos: h264, hevc, av1, vp9, prores, ffv1, .."},
    "--encoder": {"help": "hardware that every worker must have: nvenc, qsv, .."},
    "--threads": {
        "type": arguments.integer(1, 128),
        "metavar": "N",
        "help": "of each encoder (as dala filter); 1 if there is a worker for each core",
    },
    "--no-audio": {"action": "store_true", "help": "drop the sound"},
}
_FILTERED: Final[arguments.Options] = {
    "--deinterlace": {"action": "store_true", "help": "make whole pictures of fields"},
    "--hdr": {"choices": ("sdr", "keep"), "help": "tone-map HDR, or keep it (sdr)"},
    "--on-resize": {
        "choices": ("scale", "error"),
        "help": "what to do where a video changes its size (scale)",
    },
}
_PICTURES: Final[arguments.Options] = {
    "--quality": {
        "type": arguments.integer(1, 100),
        "metavar": "N",
        "help": "of JPEG and WebP (92)",
    },
    "--background": {
        "metavar": "COLOR",
        "help": "below transparent pixels in formats without alpha (white)",
    },
    "--color": {
        "choices": ("srgb", "raw"),
        "help": "convert pictures with an ICC profile to sRGB, or keep their values (srgb)",
    },
    **arguments.MAX_PIXELS,
}
_SCENES: Final[arguments.Options] = {
    "--seconds": {"type": arguments.duration, "metavar": "S", "help": "of scenes (their own)"},
    "--fps": {"type": arguments.rate, "metavar": "N", "help": "of scenes (their own)"},
}
_MODELS: Final[arguments.Options] = {
    "--model": {"help": "the model, by its name or as an ONNX file"},
    "--every": {"metavar": "S", "help": "seconds between two frames that are looked at (all)"},
    "--score": {
        "type": arguments.number(0, 1),
        "metavar": "S",
        "help": "the lowest score to report (the model's)",
    },
    "--top": {
        "type": arguments.integer(1, 10_000),
        "metavar": "N",
        "help": "classes of each picture, for classify (1)",
    },
    "--provider": {"help": "of ONNX Runtime, on all workers: cuda, webgpu, cpu, .. (as here)"},
}
_RUN: Final[arguments.Options] = {
    "--on": {
        "default": "local",
        "metavar": "WHERE",
        "help": "local, ray, or the address of a Ray cluster (local)",
    },
    "--workers": {
        "type": arguments.integer(1, 4096),
        "metavar": "N",
        "help": "processes of this machine (by its cores and --threads)",
    },
    "--gpus": {"type": arguments.seconds, "metavar": "X", "help": "GPUs of a task, such as 0.25"},
    "--cpus": {"type": arguments.seconds, "metavar": "X", "help": "CPUs of a task"},
    "--memory": {"metavar": "SIZE", "help": "memory of a task, such as 2GB"},
    "--storage": {
        "action": "append",
        "metavar": "KEY=VALUE",
        "help": "an option of storage, such as s3.endpoint_url=http://minio:9000; may be repeated",
    },
    "--resume": {"action": "store_true", "help": "go on with what an earlier run has left"},
    "--retries": {
        "type": arguments.integer(0, 100),
        "metavar": "N",
        "help": "how often a task that failed is tried again (2)",
    },
    "--plan": {"action": "store_true", "help": "say what would be done, and how long it takes"},
}
OPTIONS: Final[arguments.Options] = {
    **_RUN, **_VIDEO, **_FILTERED, **_PICTURES, **_SCENES, **_MODELS, **arguments.DEVICE,
    **arguments.JSON,
}  # fmt: skip

#: The options of each kind, beside those of all.
_OF_KIND: Final[dict[str, tuple[arguments.Options, ...]]] = {
    "videos": (_VIDEO, _FILTERED),
    "images": (_PICTURES,),
    "scenes": (_VIDEO, _SCENES),
    **dict.fromkeys(_TABLES, (_MODELS,)),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.usage = "dala batch KIND IN [IN ..] OUT [--FILTER [VALUE] ..] [options]"
    parser.add_argument(
        "paths", nargs="+", metavar="KIND IN OUT",
        help=f"{', '.join(KINDS)}; files, folders or patterns; and the names of the results",
    )  # fmt: skip
    arguments.add_options(parser, OPTIONS)
    chain.add_options(parser)


def prepare(words: Sequence[str]) -> list[str]:
    """Return the arguments in a form that argparse can parse."""
    return chain.join(words, arguments.flags(OPTIONS), "dala batch KIND IN OUT")


def run(args: argparse.Namespace) -> int:
    """Run the job and print a report."""
    kind, *rest = args.paths
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS) or f"There are: {', '.join(KINDS)}."
        raise ParameterError(f"there is no kind of job {kind!r}. {hint}")
    if len(rest) < 2:
        raise ParameterError(f"IN and OUT are required, such as: dala batch {kind} in/ out/.")
    from dala.batch import storage

    try:
        storage.configure(_storage(args.storage or []))
    except ParameterError as error:
        raise error.within("--storage") from None
    job = _job(args, kind, rest[:-1], rest[-1])
    if args.plan:
        plan = job.plan()
        print(json.dumps(plan.to_dict(), indent=2) if args.json else plan)
        return 2 if plan.unreadable else 0
    try:
        with stopping():
            report = job.run(
                args.on,
                workers=args.workers,
                gpus=args.gpus,
                cpus=args.cpus,
                memory=args.memory,
                resume=args.resume,
                retries=2 if args.retries is None else args.retries,
            )
    except KeyboardInterrupt as stopped:
        print("dala batch: stopped. The same command with --resume goes on.", file=sys.stderr)
        return 128 + stopped.number if isinstance(stopped, Stopped) else 130
    return _show(args, report)


def _storage(given: list[str]) -> dict[str, dict[str, str]]:
    """Return options of storage by protocol.

    >>> _storage(["s3.endpoint_url=http://minio:9000", "s3.key=me"])
    {'s3': {'endpoint_url': 'http://minio:9000', 'key': 'me'}}
    """
    made: dict[str, dict[str, str]] = {}
    for item in given:
        key, equals, value = item.partition("=")
        protocol, dot, name = key.partition(".")
        if not (equals and dot and protocol and name):
            raise ParameterError.invalid(
                "--storage", "KEY=VALUE", "such as s3.endpoint_url=http://minio:9000", item
            )
        made.setdefault(protocol, {})[name] = value
    return made


def _show(args: argparse.Namespace, report: BatchReport) -> int:
    if args.json:
        print(json.dumps(report.to_dict(), indent=2))
    else:
        print(report)
        for text in report.notices:
            print(f"dala batch: {text}", file=sys.stderr)
        for failure in report.failures:
            print(f"dala batch: {failure}", file=sys.stderr)
    return 2 if report.failures else 0


def _job(args: argparse.Namespace, kind: str, patterns: list[str], out: str) -> BatchJob:
    from dala import batch

    _check(args, kind)
    given = {
        name: value
        for options in _OF_KIND[kind]
        for flag in options
        if (value := getattr(args, name := flag.lstrip("-").replace("-", "_"))) not in (None, False)
    }
    if given.pop("no_audio", None):
        given["audio"] = False
    if kind in ("videos", "images"):
        if not args.chain:
            raise ParameterError("name at least one filter, such as --denoise.")
        given["chain"] = args.chain
    if args.device is not None:
        given["device"] = args.device
    make: Callable[..., BatchJob] = getattr(batch, kind)
    return make(patterns, out=out, **given)


def _check(args: argparse.Namespace, kind: str) -> None:
    """Refuse options and filters that a kind of job does not have."""
    own = {flag for options in (*_OF_KIND[kind], _RUN) for flag in options}
    for flag, facts in OPTIONS.items():
        value = getattr(args, flag.lstrip("-").replace("-", "_"))
        if flag in own or flag in (*arguments.DEVICE, *arguments.JSON):
            continue
        if value not in (None, False, facts.get("default")):
            raise ParameterError(f"{flag}: `dala batch {kind}` has no such option.")
    if args.chain and kind not in ("videos", "images"):
        raise ParameterError(f"--{args.chain[0][0]}: `dala batch {kind}` applies no filters.")
