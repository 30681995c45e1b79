"""Render scene files to videos and pictures, or show them while you edit."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final, TypedDict

from dala.cli.common import arguments, inputs
from dala.cli.common.signals import Stopped, stopping
from dala.errors import ParameterError

if TYPE_CHECKING:
    from dala.media import Scene

EXAMPLES: Final = """\
examples:
  dala compose scene.json -o out.mp4
  dala compose scene.json -o out.mp4 --seconds 10 --fps 60 --size 1280x720
  dala compose scene.json -o out.mp4 --audio talk      with the sound of node 'talk'
  dala compose scene.json --frame 2.5 -o cover.png
  dala compose scene.json --watch --show browser       show it, and reload after changes
  dala compose --schema > scene.schema.json            for editors

The length of a video is --seconds, else the file's "duration", else until everything in it has
ended. Files are renamed into place when they are complete. See docs/media/scene-files.md.
"""

#: The files and the work, as ``--json`` prints them.
ComposeReport = TypedDict(
    "ComposeReport",
    {
        "in": str,
        "out": str,
        "device": str,
        "width": int,
        "height": int,
        "frames": int,
        "nodes": int,
        "errors": dict[str, str],
        "seconds": float,
    },
)

SHOW: Final = ("window", "browser", "terminal", "none")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.usage = "dala compose SCENE -o OUT [options]"
    parser.add_argument("scene", nargs="?", metavar="SCENE", help="a scene file (JSON)")
    parser.add_argument("-o", "--out", metavar="OUT", help="a video, or a picture with --frame")
    parser.add_argument("--seconds", type=arguments.duration, metavar="S", help="the length")
    parser.add_argument(
        "--start", type=arguments.seconds, metavar="S", default=0.0, help="the first time (0)"
    )
    parser.add_argument(
        "--fps", type=arguments.rate, metavar="N", help="frames per second (the file's)"
    )
    parser.add_argument(
        "--size", type=arguments.size, metavar="WxH", help="of the result (the scene's)"
    )
    parser.add_argument(
        "--frame", type=arguments.seconds, metavar="S", help="write one picture, of this time"
    )
    parser.add_argument("--audio", metavar="FROM", help="the sound: a video node, or a file")
    parser.add_argument("--codec", help="h264, hevc, av1, vp9, ..; vp9 for .webm")
    parser.add_argument(
        "--crf", type=arguments.integer(0, 63), metavar="N", help="lower is better and larger"
    )
    arguments.add_options(parser, {**arguments.DEVICE, **arguments.JSON})
    parser.add_argument("--watch", action="store_true", help="show it, and reload it after changes")
    parser.add_argument("--show", choices=SHOW, help="where (a window if possible)")
    parser.add_argument(
        "--schema", action="store_true", help="print the JSON schema of scene files"
    )


def run(args: argparse.Namespace) -> int:
    """Render the scene and print a report."""
    if args.schema:
        from dala.media.scene.file.load import schema
        from dala.media.scene.file.text import format_json

        print(format_json(schema()))
        return 0
    _check(args)
    if args.watch:
        from dala.cli.scenes import watch as compose_watch

        return compose_watch.run(args)
    try:
        with stopping():
            report = _compose(args)
    except Stopped as stopped:
        return 128 + stopped.number
    print(json.dumps(report, indent=2) if args.json else _summary(report))
    for id, text in report["errors"].items():
        print(f"dala compose: {id}: {text}", file=sys.stderr)
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.scene is None:
        raise ParameterError("SCENE is required: dala compose scene.json -o out.mp4.")
    if args.watch:
        if args.out is not None or args.frame is not None:
            raise ParameterError("--watch writes no file: leave out -o and --frame.")
        return
    if args.show is not None:
        raise ParameterError("--show requires --watch.")
    if args.out is None:
        raise ParameterError("-o is required: -o out.mp4, or --watch to show the scene.")
    if (args.frame is None) != inputs.is_video(args.out):
        expected = "a picture such as out.png"
        if args.frame is None:
            expected = "a video such as out.mp4 (--frame 0 writes a picture)"
        raise ParameterError(f"-o must be {expected}, got {args.out!r}.")
    if not Path(args.out).parent.is_dir():
        raise ParameterError(f"there is no folder '{Path(args.out).parent}'. Make it first.")


def _compose(args: argparse.Namespace) -> ComposeReport:
    from dala.media.scene.file.load import files_of, load_scene

    begin = perf_counter()
    with load_scene(args.scene, args.device) as scene:
        inputs.refuse_overwriting([Path(args.scene), *files_of(scene)], [Path(args.out)])
        with Resized(scene, args.size) as shown:
            width, height, frames = shown.width, shown.height, 1
            if args.frame is not None:
                shown.render(args.frame).save(args.out)
            else:
                frames = _video(args, scene, shown)
        report: ComposeReport = {
            "in": args.scene,
            "out": args.out,
            "device": scene.device,
            "width": width,
            "height": height,
            "frames": frames,
            "nodes": len(scene.nodes),
            "errors": {id: str(error) for id, error in scene.errors.items()},
            "seconds": 0.0,
        }
    report["seconds"] = round(perf_counter() - begin, 3)
    return report


def _video(args: argparse.Namespace, scene: Scene, shown: Scene) -> int:
    from dala.media.scene.output import render_to

    audio = scene.nodes.get(args.audio, args.audio) if args.audio else None
    return render_to(
        shown, args.out, args.seconds, length_of=scene, fps=args.fps, start=args.start,
        codec=args.codec, options={} if args.crf is None else {"crf": args.crf}, audio_from=audio,
    )  # fmt: skip


class Resized:
    """A scene, or a scene of another size that contains all of it."""

    def __init__(self, scene: Scene, size: tuple[int, int] | None) -> None:
        self.scene = scene
        self.size = size
        self.outer: Scene | None = None

    def __enter__(self) -> Scene:
        scene = self.scene
        if self.size is None or self.size == (scene.width, scene.height):
            return scene
        from dala.media import Scene

        self.outer = Scene(*self.size, fps=scene.fps, device=scene.device, background="black")
        try:
            self.outer.add_scene(scene, size=self.size, fit="contain")
        except BaseException:
            self.outer.close()
            raise
        return self.outer

    def __exit__(self, *error: object) -> None:
        if self.outer is not None:
            self.outer.close()


def _summary(report: ComposeReport) -> str:
    size, seconds = f"{report['width']}x{report['height']}", report["seconds"]
    if report["frames"] > 1:
        fps = report["frames"] / seconds if seconds else 0.0
        size += f", {report['frames']} frames, {fps:.1f} fps,"
    return f"{report['out']}: {size} in {seconds:.2f} s on {report['device']}"
