"""Render a shader to a video."""

from __future__ import annotations

import argparse
from fractions import Fraction
from typing import Any, Final

from dala.arguments import SECONDS, Rate, sides
from dala.cli.common import arguments, chain
from dala.cli.common.arguments import argument
from dala.cli.common.signals import stopping
from dala.errors import ParameterError
from dala.media.progress import Progress
from dala.media.video.options import EncoderOptions

EXAMPLES: Final = """\
examples:
  dala render plasma.fs -o loop.mp4 --seconds 8
  dala render plasma.fs,speed=2,tint=1:0.5:0:1 -o loop.mp4 --size 1920x1080 --fps 60

IN is an ISF file that draws by itself, a generator; values of its inputs may follow. For files that
take a picture, see `dala filter --shader`.
"""

USAGE: Final = "dala render IN[,NAME=VALUE ..] -o OUT [--seconds S] [--size WxH] [options]"
ARGUMENTS: Final[arguments.Options] = {
    "shader": argument("an ISF file (.fs), and values of its inputs", metavar="IN"),
    "-o, --out": argument("the video", metavar="OUT"),
    "--seconds": argument("its duration (5)", type=SECONDS.parse, metavar="S"),
    "--size": argument("width and height in pixels (1280x720)", metavar="WxH"),
    "--fps": argument("frames per second (30)", type=Rate().parse, metavar="FPS"),
    **EncoderOptions.command_line(),
    **arguments.MAX_PIXELS,
    **arguments.DEVICE,
    **arguments.JSON,
}


def run(args: argparse.Namespace) -> int:
    """Render the shader and print a report."""
    import numpy as np

    from dala.gpu.compute import KernelProgram
    from dala.media import video

    if args.out is None:
        raise ParameterError("-o is required: dala render plasma.fs -o loop.mp4.")
    width, height = sides(args.size or "1280x720") or (None, None)
    if width is None or height is None:
        raise ParameterError.invalid("dala render", "--size", "WxH such as 640x360", args.size)
    ((program, given),) = chain.load([chain.parse("shader", args.shader)], args.max_pixels)
    if not isinstance(program, KernelProgram) or program.inputs:
        raise ParameterError(
            f"{args.shader} takes a picture. Apply it to one: dala filter in.mp4 out.mp4 "
            "--shader FILE."
        )
    values: dict[str, Any] = dict(given)
    encoding = EncoderOptions.checked("dala render", EncoderOptions.given(args))
    rate = Fraction(30) if args.fps is None else args.fps
    total = max(1, round((5 if args.seconds is None else args.seconds) * rate))
    progress = Progress(total, "frames")
    with (
        stopping(),
        video.write(args.out, fps=rate, **encoding.changed()) as sink,
        program.start(width, height, device=args.device) as state,
    ):
        for number in range(total):
            sink.write(np.asarray(state.render(time=float(number / rate), **values)))
            progress.step()
    device = state.device
    report = {"in": args.shader, "out": args.out, "device": device, "frames": total}
    report |= {"width": width, "height": height, "seconds": round(progress.seconds, 3)}
    line = f"{args.out}: {width}x{height}, {total} frames in {report['seconds']} s on {device}"
    return arguments.show(args, report, line)
