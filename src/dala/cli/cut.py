"""Cut a part out of a video or sound, without encoding it again where the cut allows it.

examples:
  dala cut in.mp4 --from 10 --to 20 -o out.mp4
  dala cut in.mp4 --from 00:01:30.5 --duration 12 -o out.mp4
  dala cut in.mp4 -o sound.mp3                      the sound alone; of sound files, too
  dala cut in.mp4 --from 10 -o rest.mp4 --copy      begin at the key frame before, encode nothing

The result has exactly the frames shown from --from on and before --to, and their sound. If the
first of them is a key frame, they are copied as they are. Else, in H.264, only those up to the
next key frame are encoded again and the rest is copied; in other codecs, all are encoded. The
command says which, and why.
"""

from __future__ import annotations

import argparse
import mimetypes
from contextlib import nullcontext
from fractions import Fraction
from time import perf_counter
from typing import Final

from dala.cli.common.arguments import Options, Report, argument, show, switch
from dala.cli.common.joined import ENCODING, joined
from dala.cli.common.signals import stopping
from dala.errors import ParameterError

USAGE: Final = "dala cut IN --from TIME --to TIME -o OUT [options]"
ARGUMENTS: Final[Options] = {
    "path": argument("a video, or a sound", metavar="IN"),
    "-o, --out": argument("the result", metavar="OUT"),
    "--from": argument("90, 1:30, 1m30s, 500ms, .. (0)", dest="start", default="0", metavar="TIME"),
    "--to": argument("the end (that of the video)", dest="end", metavar="TIME"),
    "--duration": argument("instead of --to", metavar="TIME"),
    "--copy": switch("never encode: begin at the key frame before --from", one_of="how"),
    "--encode": switch("encode all frames again", one_of="how"),
    **ENCODING,
}


def run(args: argparse.Namespace) -> int:
    """Cut the video and print a report."""
    import dala
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
    last = None if end is None else float(end)
    facts: Report = {"in": args.path, "out": args.out, "from": float(start), "to": last}
    if (mimetypes.guess_type(args.out)[0] or "").startswith("audio/"):
        return _sound(args, start, end, facts)
    with dala.device(args.device) if args.device else nullcontext():
        return joined(
            args,
            facts,
            lambda encoding: cut_video(
                args.path, args.out, start, end, copy=args.copy, encode=args.encode,
                audio=not args.no_audio, encoding=encoding,
            ),
        )  # fmt: skip


def _sound(args: argparse.Namespace, start: Fraction, end: Fraction | None, facts: Report) -> int:
    """Write the sound between two times to a file of its own."""
    from dala.media import audio
    from dala.media.video.joining.cut import check_targets

    check_targets(args.out, [args.path], "cut")
    begin = perf_counter()
    with stopping(), audio.open(args.path) as reader:
        reader.seek(start)
        sound = reader.read(None if end is None else end - start)
        if not len(sound):
            raise ParameterError(f"cut: {args.path!r} has no sound from {float(start):g} s on.")
        sound.save(args.out)
    seconds = round(perf_counter() - begin, 3)
    length = round(float(sound.duration), 6)
    report = {**facts, "duration": length, "seconds": seconds}
    return show(args, report, f"{args.out}: {length:g} s of sound ({seconds:.1f} s)")
