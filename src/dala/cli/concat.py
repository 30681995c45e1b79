"""Join videos and pictures, with transitions; videos of one coding are not encoded again.

examples:
  dala concat a.mp4 b.mp4 -o c.mp4                            packets are copied if codings agree
  dala concat a.mp4 b.mp4 c.mp4 -o d.mp4 --transition dissolve=1
  dala concat a.jpg b.jpg -o c.mp4 --still 4s --transition dissolve=1
  dala concat a.mp4 b.mp4 -o c.mp4 --transition wipe=1.5,angle=45,softness=0.2

Transitions: cut, dissolve, fade, wipe, slide, push, zoom, iris, luma (picture=matte.png); see
docs/media/transitions.md. The result has the size and frame rate of the first video; others are
fitted into it. Sound is kept, and cross-fades with a transition.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from dala.cli.common.arguments import Options, argument
from dala.cli.common.joined import ENCODING, joined
from dala.errors import ParameterError

if TYPE_CHECKING:
    from dala.media.transitions.spec import Transition

USAGE: Final = "dala concat A B [C ..] -o OUT [--transition NAME=SECONDS] [options]"
ARGUMENTS: Final[Options] = {
    "paths": argument("at least two videos or pictures", nargs="+", metavar="FILE"),
    "-o, --out": argument("the result", metavar="OUT"),
    "--transition": argument("between videos, such as dissolve=1", metavar="NAME=SECONDS"),
    "--still": argument("how long each picture is shown (3)", default="3", metavar="TIME"),
    **ENCODING,
}


def run(args: argparse.Namespace) -> int:
    """Join the videos and print a report."""
    from dala.media.scene.timeline import concat_videos

    if args.out is None:
        raise ParameterError("-o is required: dala concat a.mp4 b.mp4 -o c.mp4.")
    if len(args.paths) < 2:
        raise ParameterError("two or more files are required: dala concat a.mp4 b.mp4 -o c.mp4.")
    transition = None if args.transition is None else parse_transition(args.transition)
    return joined(
        args,
        {"in": args.paths, "out": args.out, "transition": args.transition},
        lambda encoding: concat_videos(
            args.paths, args.out, transition=transition,
            still=args.still, audio=not args.no_audio,
            encoding=encoding, device=args.device, progress=not args.json,
        ),
    )  # fmt: skip


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
