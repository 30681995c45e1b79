"""Render a shader to a video.

examples:
  dala render plasma.fs -o loop.mp4 --seconds 8
  dala render plasma.fs,speed=2,tint=1:0.5:0:1 -o loop.mp4 --size 1920x1080 --fps 60
  dala render bars.fs -o song.mp4 --sound song.flac

IN is an ISF file that draws by itself, a generator; values of its inputs may follow; or a text of
Shadertoy's (.glsl, .frag). For files that take a picture, see `dala filter --shader`. With --sound,
the video has the sound, and its duration.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from fractions import Fraction
from typing import Any, Final

from dala.arguments import SECONDS, Rate, sides
from dala.cli.common import arguments, chain
from dala.cli.common.arguments import argument
from dala.cli.common.kernels import Heard
from dala.cli.common.signals import stopping
from dala.errors import ParameterError
from dala.media.progress import Progress
from dala.media.video.options import EncoderOptions

USAGE: Final = "dala render IN[,NAME=VALUE ..] -o OUT [--seconds S] [--size WxH] [options]"
ARGUMENTS: Final[arguments.Options] = {
    "shader": argument("a shader (.fs, .glsl, .frag), and values of its inputs", metavar="IN"),
    "-o, --out": argument("the video", metavar="OUT"),
    "--seconds": argument("its duration (5)", type=SECONDS.parse, metavar="S"),
    "--sound": argument("a file with sound, which the shader hears", metavar="FILE"),
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
    with ExitStack() as held:
        held.enter_context(stopping())
        heard, seconds = None, 5 if args.seconds is None else args.seconds
        if args.sound is not None:
            heard = Heard(args.sound, held)
            seconds = args.seconds or _duration(args.sound)
        total = max(1, round(seconds * rate))
        progress = Progress(total, "frames")
        sink = held.enter_context(
            video.write(args.out, fps=rate, audio_from=args.sound, **encoding.changed())
        )
        state = held.enter_context(program.start(width, height, device=args.device))
        for number in range(total):
            time = number / rate
            if heard is not None:
                values["sound"] = heard.at(float(time + 1 / rate))
            sink.write(np.asarray(state.render(time=float(time), **values)))
            progress.step()
        device = state.device
    report = {"in": args.shader, "out": args.out, "device": device, "frames": total}
    report |= {"width": width, "height": height, "seconds": round(progress.seconds, 3)}
    line = f"{args.out}: {width}x{height}, {total} frames in {report['seconds']} s on {device}"
    return arguments.show(args, report, line)


def _duration(sound: str) -> Fraction:
    """Return the length of a sound in seconds."""
    from dala.media import audio

    with audio.open(sound) as reader:
        found = reader.duration
    if not found:
        raise ParameterError(f"--sound: the length of {sound} is not known. Give --seconds.")
    return found
