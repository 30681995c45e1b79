"""Blur or replace the background of people.

examples:
  dala background call.mp4 out.mp4 --blur 12
  dala background me.jpg out.jpg --image beach.jpg
  dala background call.mp4 out.mp4 --color '#00b140' --quality best
"""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dala.arguments import Integer
from dala.arguments.paths import missing_file
from dala.cli.common import arguments, inputs
from dala.cli.common.arguments import Report, argument
from dala.cli.common.inference import load
from dala.cli.common.signals import stopping
from dala.errors import ParameterError, VideoError, counted
from dala.media.progress import Progress
from dala.ml.options import ModelOptions

if TYPE_CHECKING:
    from dala.ml.background import Background
    from dala.typing import NDArray

ARGUMENTS: Final[arguments.Options] = {
    "source": argument("a picture or a video", metavar="IN"),
    "out": argument("the file to write", metavar="OUT"),
    "--blur": argument(
        "blur the background (12)", type=Integer(0, 200).parse, metavar="RADIUS", one_of="kind"
    ),
    "--image": argument("replace it with a picture", metavar="FILE", one_of="kind"),
    "--color": argument("replace it with a color: a name or #rrggbb", one_of="kind"),
    "--quality": argument(
        "fast (the default): selfie, people in real time; best: u2netp, any foreground with "
        "softer edges, about sixty times slower",
        choices=("fast", "best"),
    ),
    "--model": argument(
        "a model instead of --quality: selfie, u2netp, deeplab (people and things by --label) "
        "or an ONNX file"
    ),
    "--label": argument("the class to keep (person)", default="person"),
    **ModelOptions.command_line(),
    **arguments.DEVICE,
    **arguments.JSON,
}


def run(args: argparse.Namespace) -> int:
    """Process the picture or video and print a report."""
    better = ""
    if args.model is None and args.quality is None and args.label == "person":
        better = " (--quality best has softer edges, and is slower)"
    with stopping():
        report = _process(args)
    rate = f", {report['frames'] / report['seconds']:.1f} fps" if report["frames"] > 1 else ""
    frames = counted(report["frames"], "frames")
    text = f"{args.out}: {frames} in {report['seconds']:.2f} s{rate}{better}"
    return arguments.show(args, report, text)


def _process(args: argparse.Namespace) -> Report:
    from dala.ml.background import BETTER_MODEL, CLASS_MODEL, DEFAULT_MODEL, Background

    if args.model is not None and args.quality is not None:
        raise ParameterError("--model and --quality choose the same thing. Leave one out.")
    usual = DEFAULT_MODEL if args.label == "person" else CLASS_MODEL
    args.threads = 1 if args.model in (None, DEFAULT_MODEL) and usual == DEFAULT_MODEL else None
    args.model = args.model or (BETTER_MODEL if args.quality == "best" else usual)
    moving = inputs.is_video(args.source)
    if moving != inputs.is_video(args.out):
        what = "a video" if moving else "a picture"
        raise ParameterError(f"OUT must be {what}, as {args.source!r} is, got {args.out!r}.")
    read = [Path(p) for p in (args.source, args.image) if p and "://" not in p]
    for path in read:
        if not path.exists():
            raise missing_file(path)
    inputs.refuse_waiting([args.source, *([args.image] if args.image else [])], "Name a file.")
    inputs.refuse_overwriting(read, [Path(args.out)])
    with (
        load(args, ("segment", "matte")) as model,
        Background(
            model,
            label=args.label,
            background=_background(args),
            radius=12 if args.blur is None else args.blur,
            smooth=0.6 if moving else 0.0,
            device=args.device,
        ) as work,
    ):
        return (_video if moving else _picture)(args, work)


def _background(args: argparse.Namespace) -> NDArray | tuple[float, ...] | None:
    if args.image:
        return inputs.pixels(args.image)
    if args.color:
        from dala.gpu.command import color_to_rgba

        return tuple(c / 255 for c in color_to_rgba(args.color)[:3])
    return None


def _picture(args: argparse.Namespace, work: Background) -> Report:
    from dala.media.files import store

    with Progress(1, "pictures") as progress:
        store(args.out, work.process(inputs.pixels(args.source)), {})
        progress.step()
    return {"out": args.out, "frames": 1, "seconds": round(progress.seconds, 3)}


def _video(args: argparse.Namespace, work: Background) -> Report:
    from dala.media import video
    from dala.media.video.decoding.planes import open_planes, pixel_aspect
    from dala.media.video.options import DecodeOptions

    with (
        open_planes(args.source, DecodeOptions(device=args.device)) as source,
        Progress(source.frames, "frames") as progress,
    ):
        frames = work.stream(source)
        frame = next(frames, None)
        if frame is None:
            raise VideoError(f"{args.source!r} has no video frames.")
        with video.write(
            args.out,
            fps=source.fps,
            audio_from=source if source.has_audio else None,
            device=args.device,
            pixel_aspect=pixel_aspect(source, frame),
        ) as sink:
            frames = chain([frame], frames)
            for frame in frames:
                sink.write(frame, copy=False)
                progress.step()
    return {"out": args.out, "frames": progress.done, "seconds": round(progress.seconds, 3)}
