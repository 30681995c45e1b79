"""Blur or replace the background of people."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from dala.cli.common import arguments, inputs
from dala.cli.common.inference import load
from dala.cli.common.signals import Stopped, stopping
from dala.errors import ParameterError, counted
from dala.media.progress import Progress

if TYPE_CHECKING:
    from dala.ml.background import Background
    from dala.typing import NDArray

EXAMPLES: Final = """\
examples:
  dala background call.mp4 out.mp4 --blur 12
  dala background me.jpg out.jpg --image beach.jpg
  dala background call.mp4 out.mp4 --color '#00b140' --quality best
"""


class BackgroundReport(TypedDict):
    """What was written, as ``--json`` prints it."""

    out: str
    frames: int
    seconds: float


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("source", metavar="IN", help="a picture or a video")
    parser.add_argument("out", metavar="OUT", help="the file to write")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--blur", type=arguments.integer(0, 200), metavar="RADIUS", help="blur the background (12)"
    )
    kind.add_argument("--image", metavar="FILE", help="replace it with a picture")
    kind.add_argument("--color", help="replace it with a color: a name or #rrggbb")
    parser.add_argument(
        "--quality",
        choices=("fast", "best"),
        help="fast (the default): selfie, people in real time; best: u2netp, any foreground with "
        "softer edges, about sixty times slower",
    )
    parser.add_argument(
        "--model",
        help="a model instead of --quality: selfie, u2netp, deeplab (people and things by --label) "
        "or an ONNX file",
    )
    parser.add_argument("--label", default="person", help="the class to keep (person)")
    parser.add_argument(
        "--provider", default="auto", help="the execution provider of the model (auto)"
    )
    parser.add_argument("--device", help="auto, gpu, cpu, webgpu, webgpu:N or reference")
    parser.add_argument("--json", action="store_true", help="print a report as JSON")


def run(args: argparse.Namespace) -> int:
    """Process the picture or video and print a report."""
    try:
        better = ""
        if args.model is None and args.quality is None and args.label == "person":
            better = " (--quality best has softer edges, and is slower)"
        with stopping():
            report = _process(args)
    except Stopped as stopped:
        return 128 + stopped.number
    if args.json:
        print(json.dumps(report, indent=2))
    else:
        rate = f", {report['frames'] / report['seconds']:.1f} fps" if report["frames"] > 1 else ""
        frames = counted(report["frames"], "frames")
        print(f"{args.out}: {frames} in {report['seconds']:.2f} s{rate}{better}")
    return 0


def _process(args: argparse.Namespace) -> BackgroundReport:
    from dala.ml.background import BETTER_MODEL, CLASS_MODEL, DEFAULT_MODEL, Background

    if args.model is not None and args.quality is not None:
        raise ParameterError("--model and --quality choose the same thing. Leave one out.")
    usual = DEFAULT_MODEL if args.label == "person" else CLASS_MODEL
    args.default_model = BETTER_MODEL if args.quality == "best" else usual
    args.threads = 1 if args.model in (None, DEFAULT_MODEL) and usual == DEFAULT_MODEL else None
    moving = inputs.is_video(args.source)
    if moving != inputs.is_video(args.out):
        what = "a video" if moving else "a picture"
        raise ParameterError(f"OUT must be {what}, as {args.source!r} is, got {args.out!r}.")
    read = [Path(p) for p in (args.source, args.image) if p and "://" not in p]
    for path in read:
        if not path.exists():
            raise FileNotFoundError(f"there is no file '{path}'.")
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
    import numpy as np

    if args.image:
        from dala.media.files import load

        return np.asarray(load(args.image, 1 << 27).convert("RGB"))
    if args.color:
        from dala.gpu.command import color_to_rgba

        return tuple(c / 255 for c in color_to_rgba(args.color)[:3])
    return None


def _picture(args: argparse.Namespace, work: Background) -> BackgroundReport:
    import numpy as np

    from dala.media.files import load, store

    with Progress(1, "pictures") as progress:
        pixels = np.asarray(load(args.source, 1 << 27).convert("RGB"))
        store(args.out, work.process(pixels), {})
        progress.step()
    return {"out": args.out, "frames": 1, "seconds": round(progress.seconds, 3)}


def _video(args: argparse.Namespace, work: Background) -> BackgroundReport:
    from dala.errors import VideoError
    from dala.gpu.compute import buffer_zeros
    from dala.media import video
    from dala.media.images import host_memory
    from dala.media.video.decoding.planes import open_planes, pixel_aspect

    with buffer_zeros(1, "u8", device=args.device) as probe:
        shares = host_memory(probe) is not None
    with (
        open_planes(args.source, args.device) as source,
        Progress(source.frames, "frames") as progress,
    ):
        frames = work.stream(source.borrow() if shares else source)
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
            while frame is not None:
                sink.write(frame, copy=False)
                progress.step()
                frame = None  # a frame that is referenced keeps its memory from being reused
                frame = next(frames, None)
    return {"out": args.out, "frames": progress.done, "seconds": round(progress.seconds, 3)}
