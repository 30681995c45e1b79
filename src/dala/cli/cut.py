"""Cut a part out of a video, without encoding it again where the cut allows it."""

from __future__ import annotations

import argparse
import json
from fractions import Fraction
from time import perf_counter
from typing import Final, TypedDict

from dala.cli.common import arguments
from dala.cli.common.joined import summary
from dala.errors import ParameterError

EXAMPLES: Final = """\
examples:
  dala cut in.mp4 --from 10 --to 20 -o out.mp4
  dala cut in.mp4 --from 00:01:30.5 --duration 12 -o out.mp4
  dala cut in.mp4 --from 10 -o rest.mp4 --copy      begin at the key frame before, encode nothing

The result has exactly the frames shown from --from on and before --to, and their sound. If the
first of them is a key frame, they are copied as they are. Else, in H.264, only those up to the
next key frame are encoded again and the rest is copied; in other codecs, all are encoded. The
command says which, and why.
"""

#: The file and the work, as ``--json`` prints them.
CutReport = TypedDict(
    "CutReport",
    {
        "in": str,
        "out": str,
        "from": float,
        "to": float | None,
        "copied": bool,
        "reason": str,
        "frames": int,
        "encoded": int,
        "duration": float,
        "seconds": float,
    },
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.usage = "dala cut IN --from TIME --to TIME -o OUT [options]"
    parser.add_argument("path", metavar="IN", help="a video")
    parser.add_argument("-o", "--out", metavar="OUT", help="the result")
    parser.add_argument("--from", dest="start", default="0", metavar="TIME",
                        help="seconds or HH:MM:SS.mmm (0)")  # fmt: skip
    parser.add_argument("--to", dest="end", metavar="TIME", help="the end (that of the video)")
    parser.add_argument("--duration", metavar="TIME", help="instead of --to")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--copy", action="store_true",
                     help="never encode: begin at the key frame before --from")  # fmt: skip
    how.add_argument("--encode", action="store_true", help="encode all frames again")
    parser.add_argument("--no-audio", action="store_true", help="drop the sound")
    parser.add_argument("--codec", help="h264, hevc, av1, vp9, .. of what is encoded again")
    parser.add_argument(
        "--crf", type=arguments.integer(0, 63), metavar="N", help="lower is better and larger"
    )
    arguments.add_options(parser, {**arguments.DEVICE, **arguments.JSON})


def run(args: argparse.Namespace) -> int:
    """Cut the video and print a report."""
    import dala
    from dala.cli.common.signals import Stopped, stopping
    from dala.media.sources.seconds import seconds_of
    from dala.media.video.joining.cut import cut_video

    if args.out is None:
        raise ParameterError("-o is required: dala cut in.mp4 --from 10 --to 20 -o out.mp4.")
    if args.end is not None and args.duration is not None:
        raise ParameterError("give --to or --duration, not both.")
    start = seconds_of(args.start, "cut", "--from")
    end: Fraction | None = None
    if args.end is not None:
        end = seconds_of(args.end, "cut", "--to")
    elif args.duration is not None:
        end = start + seconds_of(args.duration, "cut", "--duration")
    begin = perf_counter()
    try:
        with stopping(), dala.device(args.device or "auto"):
            made = cut_video(
                args.path, args.out, start, end, copy=args.copy, encode=args.encode,
                audio=not args.no_audio, codec=args.codec,
                options=None if args.crf is None else {"crf": args.crf},
            )  # fmt: skip
    except Stopped as stopped:
        return 128 + stopped.number
    seconds = perf_counter() - begin
    report: CutReport = {
        "in": args.path, "out": args.out, "from": float(start),
        "to": None if end is None else float(end), "copied": made.copied, "reason": made.reason,
        "frames": made.frames, "encoded": made.encoded, "duration": round(made.seconds, 6),
        "seconds": round(seconds, 3),
    }  # fmt: skip
    print(json.dumps(report, indent=2) if args.json else summary(args.out, made, seconds))
    return 0
