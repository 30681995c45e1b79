"""Render scene files to videos and pictures, or show them while you edit.

examples:
  dala compose scene.json -o out.mp4
  dala compose scene.json -o out.mp4 --seconds 10 --fps 60 --size 1280x720
  dala compose scene.json -o out.mp4 --audio talk      with the sound of node 'talk'
  dala compose scene.json --frame 2.5 -o cover.png
  dala compose scene.json --watch --show browser       show it, and reload after changes
  dala compose scene.json --plan                       what a frame costs
  dala compose --schema > scene.schema.json            for editors

The length of a video is --seconds, else the file's "duration", else until everything in it has
ended. Files are renamed into place when they are complete. See docs/media/scene-files.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

from dala.arguments import DURATION, SECONDS, Size
from dala.cli.common import arguments, inputs
from dala.cli.common.arguments import Report, argument, switch
from dala.cli.common.signals import stopping
from dala.errors import ParameterError, masked
from dala.media.scene.options import RenderOptions

if TYPE_CHECKING:
    from dala.media import Scene

SHOW: Final = ("window", "browser", "terminal", "none")


USAGE: Final = "dala compose SCENE -o OUT [options]"
ARGUMENTS: Final[arguments.Options] = {
    "scene": argument("a scene file (JSON)", nargs="?", metavar="SCENE"),
    "-o, --out": argument("a video, or a picture with --frame", metavar="OUT"),
    "--seconds": argument("the length", type=DURATION.parse, metavar="S"),
    "--size": argument("of the result (the scene's)", type=Size().parse, metavar="WxH"),
    "--frame": argument("write one picture, of this time", type=SECONDS.parse, metavar="S"),
    "--audio": argument("the sound: a video node, or a file", dest="audio_from", metavar="FROM"),
    **RenderOptions.command_line(),
    **arguments.DEVICE,
    **arguments.JSON,
    "--watch": switch("show it, and reload it after changes"),
    "--show": argument("where (a window if possible)", choices=SHOW),
    "--plan": switch("print what a frame costs, and render nothing"),
    "--schema": switch("print the JSON schema of scene files"),
}


def run(args: argparse.Namespace) -> int:
    """Render the scene and print a report."""
    if args.schema:
        from dala.media.scene.file.load import schema
        from dala.media.scene.file.text import format_json

        print(format_json(schema()))
        return 0
    if args.plan:
        return _plan(args)
    _check(args)
    if args.watch:
        from dala.cli.scenes import watch as compose_watch

        return compose_watch.run(args)
    with stopping():
        report = _compose(args)
    arguments.show(args, report, _summary(report))
    for id, text in report["errors"].items():
        print(masked(f"dala compose: {id}: {text}"), file=sys.stderr)
    return 0


def _plan(args: argparse.Namespace) -> int:
    """Print the cost by which a scene file is refused or not; nothing of it is opened."""
    from dala.media.scene.file.load import plan_scene

    if args.scene is None:
        raise ParameterError("SCENE is required: dala compose scene.json --plan.")
    found = plan_scene(args.scene)
    report = {"in": args.scene, **found._asdict(), "bytes": found.nbytes}
    return arguments.show(args, report, f"{args.scene}: {found}")


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


def _compose(args: argparse.Namespace) -> Report:
    from dala.media.scene.file.load import files_of, load_scene

    begin = perf_counter()
    with load_scene(args.scene, args.device) as scene:
        inputs.refuse_overwriting([Path(args.scene), *files_of(scene)], [Path(args.out)])
        with resized(scene, args.size) as shown:
            width, height, frames = shown.width, shown.height, 1
            if args.frame is not None:
                shown.render(args.frame).save(args.out)
            else:
                frames = _video(args, scene, shown)
        report: Report = {
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

    if args.audio_from:
        args.audio_from = scene.nodes.get(args.audio_from, args.audio_from)
    options = RenderOptions.checked("dala compose", RenderOptions.given(args))
    return render_to(shown, args.out, args.seconds, options, length_of=scene)


@contextmanager
def resized(scene: Scene, size: tuple[int, int] | None) -> Iterator[Scene]:
    """Yield a scene, or a scene of another size that contains all of it."""
    if size is None or size == (scene.width, scene.height):
        yield scene
        return
    from dala.media import Scene

    with Scene(*size, fps=scene.fps, device=scene.device, background="black") as outer:
        outer.add_scene(scene, size=size, fit="contain")
        yield outer


def _summary(report: Report) -> str:
    size, seconds = f"{report['width']}x{report['height']}", report["seconds"]
    if report["frames"] > 1:
        fps = report["frames"] / seconds if seconds else 0.0
        size += f", {report['frames']} frames, {fps:.1f} fps,"
    return f"{report['out']}: {size} in {seconds:.2f} s on {report['device']}"
