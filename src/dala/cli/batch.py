"""Filter, render or look through many files, in processes of this machine or on a cluster.

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

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dala.batch.options import (
    ClassifyJobOptions,
    ModelJobOptions,
    PictureJobOptions,
    RunOptions,
    SceneJobOptions,
    VideoJobOptions,
)
from dala.cli.common import arguments
from dala.cli.common.arguments import argument, switch
from dala.cli.common.signals import stopping
from dala.errors import ParameterError, did_you_mean
from dala.options import Options

if TYPE_CHECKING:
    from dala.batch import BatchJob

#: Kinds of jobs whose result is a table of what a model finds.
_TABLES: Final = ("classify", "detect", "faces", "hands", "poses")
KINDS: Final = ("videos", "images", "scenes", *_TABLES)

_RUN: Final[arguments.Options] = {
    "--on": argument(
        "local, ray, or the address of a Ray cluster (local)", default="local", metavar="WHERE"
    ),
    **RunOptions.command_line(),
    "--storage": argument(
        "an option of storage, such as s3.endpoint_url=http://minio:9000; may be repeated",
        action="append",
        metavar="KEY=VALUE",
    ),
    "--plan": switch("say what would be done, and how long it takes"),
}
#: The options of each kind, beside those of all.
_OF_KIND: Final[dict[str, type[Options]]] = {
    "videos": VideoJobOptions,
    "images": PictureJobOptions,
    "scenes": SceneJobOptions,
    **dict.fromkeys(_TABLES, ModelJobOptions),
    "classify": ClassifyJobOptions,
}
#: Options that are not filters.
OPTIONS: Final[arguments.Options] = {
    **_RUN,
    **{f: facts for group in _OF_KIND.values() for f, facts in group.command_line().items()},
    **arguments.JSON,
}
USAGE: Final = "dala batch KIND IN [IN ..] OUT [--FILTER [VALUE] ..] [options]"
PATHS: Final = "dala batch KIND IN OUT"
ARGUMENTS: Final[arguments.Options] = {
    "paths": argument(
        f"{', '.join(KINDS)}; files, folders or patterns; and the names of the results",
        nargs="+",
        metavar="KIND IN OUT",
    ),
    **OPTIONS,
}


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
        return arguments.show(args, plan.to_dict(), plan, code=2 if plan.unreadable else 0)
    try:
        with stopping():
            report = job.run(args.on, **RunOptions.given(args))
    except KeyboardInterrupt:
        print("dala batch: stopped. The same command with --resume goes on.", file=sys.stderr)
        raise
    notes = [*report.notices, *map(str, report.failures)]
    return arguments.show(args, report.to_dict(), report, notes, 2 if report.failures else 0)


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


def _job(args: argparse.Namespace, kind: str, patterns: list[str], out: str) -> BatchJob:
    from dala import batch

    _check(args, kind)
    given = _OF_KIND[kind].given(args)
    if kind in ("videos", "images"):
        if not args.chain:
            raise ParameterError("name at least one filter, such as --denoise.")
        given["chain"] = args.chain
    make: Callable[..., BatchJob] = getattr(batch, kind)
    return make(patterns, out=out, **given)


def _check(args: argparse.Namespace, kind: str) -> None:
    """Refuse options and filters that a kind of job does not have."""
    own = {*_OF_KIND[kind].command_line(), *_RUN, *arguments.JSON}
    for flag, facts in OPTIONS.items():
        if flag not in own and getattr(args, arguments.dest(flag, facts)) is not None:
            raise ParameterError(f"{flag}: `dala batch {kind}` has no such option.")
    if args.chain and kind not in ("videos", "images"):
        raise ParameterError(f"--{args.chain[0][0]}: `dala batch {kind}` applies no filters.")
