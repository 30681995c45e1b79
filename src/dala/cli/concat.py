"""Join videos, with transitions, without encoding them again where all parameters agree."""

from __future__ import annotations

import argparse
import json
from time import perf_counter
from typing import TYPE_CHECKING, Final, TypedDict

from dala.cli.common import arguments
from dala.cli.common.joined import summary
from dala.errors import ParameterError

if TYPE_CHECKING:
    from dala.media.transitions.spec import Transition

EXAMPLES: Final = """\
examples:
  dala concat a.mp4 b.mp4 -o c.mp4                            packets are copied if codings agree
  dala concat a.mp4 b.mp4 c.mp4 -o d.mp4 --transition dissolve=1
  dala concat a.mp4 b.mp4 -o c.mp4 --transition wipe=1.5,angle=45,softness=0.2

Transitions: cut, dissolve, fade, wipe, slide, push, zoom, iris, luma (picture=matte.png); see
docs/media/transitions.md. The result has the size and frame rate of the first video; others are
fitted into it. Sound is kept, and cross-fades with a transition.
"""

#: The files and the work, as ``--json`` prints them.
ConcatReport = TypedDict(
    "ConcatReport",
    {
        "in": list[str],
        "out": str,
        "transition": str | None,
        "copied": bool,
        "reason": str,
        "frames": int,
        "duration": float,
        "seconds": float,
    },
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.usage = "dala concat A B [C ..] -o OUT [--transition NAME=SECONDS] [options]"
    parser.add_argument("paths", nargs="+", metavar="VIDEO", help="at least two videos")
    parser.add_argument("-o", "--out", metavar="OUT", help="the result")
    parser.add_argument(
        "--transition", metavar="NAME=SECONDS", help="between videos, such as dissolve=1"
    )
    parser.add_argument("--no-audio", action="store_true", help="drop the sound")
    parser.add_argument("--codec", help="h264, hevc, av1, vp9, .. if it is encoded again")
    parser.add_argument(
        "--crf", type=arguments.integer(0, 63), metavar="N", help="lower is better and larger"
    )
    arguments.add_options(parser, {**arguments.DEVICE, **arguments.JSON})


def run(args: argparse.Namespace) -> int:
    """Join the videos and print a report."""
    from dala.cli.common.signals import Stopped, stopping
    from dala.media.scene.concat import concat_videos

    if args.out is None:
        raise ParameterError("-o is required: dala concat a.mp4 b.mp4 -o c.mp4.")
    if len(args.paths) < 2:
        raise ParameterError("at least two videos are required: dala concat a.mp4 b.mp4 -o c.mp4.")
    transition = None if args.transition is None else parse_transition(args.transition)
    begin = perf_counter()
    try:
        with stopping():
            made = concat_videos(
                args.paths, args.out, transition=transition, audio=not args.no_audio,
                codec=args.codec, options=None if args.crf is None else {"crf": args.crf},
                device=args.device, progress=not args.json,
            )  # fmt: skip
    except Stopped as stopped:
        return 128 + stopped.number
    seconds = perf_counter() - begin
    report: ConcatReport = {
        "in": args.paths, "out": args.out, "transition": args.transition, "copied": made.copied,
        "reason": made.reason, "frames": made.frames, "duration": round(made.seconds, 6),
        "seconds": round(seconds, 3),
    }  # fmt: skip
    print(json.dumps(report, indent=2) if args.json else summary(args.out, made, seconds))
    return 0


def parse_transition(text: str) -> Transition:
    """Return the transition of NAME, NAME=SECONDS or NAME=SECONDS,parameter=value,...

    >>> parse_transition("wipe=1.5,angle=45")
    <Transition 'wipe', 1.5 s, angle=45.0>
    """
    from dala.media.transitions.spec import Transition

    head, *rest = text.split(",")
    name, _, seconds = head.partition("=")
    params: dict[str, bool | float | str | tuple[float, ...]] = {}
    for item in rest:
        key, equals, value = item.partition("=")
        if not equals:
            raise ParameterError(
                f"--transition: {item!r} must be parameter=value, as in {name}=1,angle=45."
            )
        params[key.strip()] = _value(value.strip())
    return Transition.of([name.strip(), seconds.strip() or None, params], "--transition")


def _value(text: str) -> bool | float | str | tuple[float, ...]:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    parts = text.split(":")
    try:
        numbers = tuple(float(part) for part in parts)
    except ValueError:
        return text
    return numbers[0] if len(numbers) == 1 else numbers
