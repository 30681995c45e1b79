"""Detect faces in pictures and videos, with eyes, nose, mouth and ears, or hide them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dala.cli.common import arguments, inference, inputs
from dala.cli.common.chain import Json
from dala.cli.common.signals import Stopped, stopping
from dala.errors import ParameterError, counted
from dala.media.progress import Progress

if TYPE_CHECKING:
    from dala.ml.hide import FaceHider, HiddenFace

EXAMPLES: Final = """\
examples:
  dala faces group.jpg --out faces.png
  dala faces in.mp4 --model blazeface_back --json
  dala faces street.mp4 hidden.mp4 --blur
  dala faces group.jpg hidden.jpg --pixelate 24 --tiles 3
  dala faces photos/ hidden/ --box --color navy
"""
#: Marks an option without its number.
_UNSET: Final = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    inference.add_common(parser, "blazeface")
    inference.add_out(parser)
    parser.add_argument(
        "--score",
        type=arguments.number(0, 1),
        metavar="S",
        help="the lowest score to report (0.5), or to hide (0.4)",
    )
    hide = parser.add_argument_group("hiding faces: IN OUT --blur, --pixelate or --box")
    how = hide.add_mutually_exclusive_group()
    how.add_argument(
        "--blur", nargs="?", const=_UNSET, metavar="RADIUS", help="blur them (0.3 of the face)"
    )
    how.add_argument(
        "--pixelate", nargs="?", const=_UNSET, metavar="SIDE", help="blocks (0.2 of the face)"
    )
    how.add_argument("--box", action="store_true", help="cover them with a box")
    hide.add_argument("--color", help="the color of --box (black)")
    hide.add_argument(
        "--margin",
        type=arguments.number(0, 4),
        metavar="M",
        help="what to hide around the face, in sizes of the face (0.3)",
    )
    hide.add_argument(
        "--keep",
        type=arguments.integer(0, 10_000),
        metavar="N",
        help="frames for which a face that is not found stays hidden (15)",
    )
    hide.add_argument(
        "--ahead",
        type=arguments.integer(0, 1000),
        metavar="N",
        help="frames before the first with a face in which it is hidden, too (5)",
    )
    hide.add_argument(
        "--tiles",
        type=arguments.integer(1, 8),
        metavar="N",
        help="look in N x N overlapping parts as well, for small faces (1)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the results, and draw them with --out; or hide the faces."""
    how = next((way for way in ("blur", "pixelate", "box") if _given(args, way)), None)
    if how is not None:
        return _hide(args, how)
    for name in ("color", "margin", "keep", "ahead", "tiles"):
        if getattr(args, name) is not None:
            raise ParameterError(f"--{name} is for hidden faces. Add --blur, --pixelate or --box.")
    score = 0.5 if args.score is None else args.score
    return inference.run(args, inference.box_facts, ("faces",), score=score)


def _given(args: argparse.Namespace, way: str) -> bool:
    value = getattr(args, way)
    return value is not None and value is not False


def _hide(args: argparse.Namespace, how: str) -> int:
    """Write pictures or a video with hidden faces, and print a report."""
    import dala
    from dala.ml.hide import FaceHider

    radius = _radius(args, how)
    if args.out is None:
        if len(args.paths) < 2:
            raise ParameterError(f"--{how} needs IN and OUT, got {args.paths[0]!r} only.")
        args.out = args.paths.pop()
    if args.color is not None and how != "box":
        raise ParameterError("--color is for --box.")
    inputs.refuse_waiting(args.paths, "Name a file.")
    if args.device:
        dala.use(args.device)
    given = {
        "margin": args.margin, "keep": args.keep, "ahead": args.ahead, "tiles": args.tiles,
        "score": args.score, "color": args.color, "radius": radius,
    }  # fmt: skip
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        with stopping(), inference.load(args, ("faces",)) as model:
            hider = FaceHider(how, model=model, **chosen)
            moving = len(args.paths) == 1 and inputs.is_video(args.paths[0])
            report = _video(args, hider) if moving else _pictures(args, hider)
    except Stopped as stopped:
        return 128 + stopped.number
    if args.json:
        print(json.dumps({"model": model.name, "provider": model.provider, **report}, indent=2))
    return 2 if "failed" in report else 0


def _radius(args: argparse.Namespace, how: str) -> int | None:
    """Return the number of --blur or --pixelate; a path after the option is a path."""
    text = getattr(args, how)
    if how == "box" or text == _UNSET:
        return None
    if not text.isdecimal() and (Path(text).suffix or "/" in text or Path(text).exists()):
        args.paths.insert(0, text)
        return None
    try:
        return arguments.integer(1, 200 if how == "blur" else 4096)(text)
    except argparse.ArgumentTypeError as error:
        raise ParameterError(f"--{how} {error}.") from None


def _pictures(args: argparse.Namespace, hider: FaceHider) -> dict[str, Json]:
    import numpy as np

    from dala.media.files import load, store
    from dala.ml.hide import HiddenFace

    sources, many = inputs.expand(args.paths)
    if not many and inputs.is_video(args.out):
        raise ParameterError(f"OUT must be a picture, as '{sources[0]}' is, got {args.out!r}.")
    targets = inputs.targets(sources, args.out) if many else [Path(args.out)]
    inputs.refuse_overwriting(sources, targets)
    if many:
        Path(args.out).mkdir(parents=True, exist_ok=True)
    found: list[Json] = []
    failed: list[Json] = []
    for source, target in zip(sources, targets, strict=True):
        try:
            image = load(source, 1 << 27)
            pixels = np.asarray(image.convert("RGBA" if image.has_transparency_data else "RGB"))
            faces = [HiddenFace(f.box, f.score) for f in hider.find(pixels[..., :3])]
            store(target, hider.hide(pixels, faces), {})
        except BaseException as error:
            failed.append(inference.failure(args, source, error, many))
            continue
        found.append({"in": str(source), "out": str(target), "found": _facts(faces)})
        if not args.json:
            print(f"{target}: {counted(len(faces), 'faces')} hidden")
    return inference.picture_report(args, found, failed)


def _video(args: argparse.Namespace, hider: FaceHider) -> dict[str, Json]:
    from dala.media import video

    name = args.paths[0]
    if not inputs.is_video(args.out):
        raise ParameterError(f"OUT must be a video, as {name!r} is, got {args.out!r}.")
    if "://" not in name:
        inputs.refuse_overwriting([Path(name)], [Path(args.out)])
    frames: list[Json] = []
    carried = 0
    ids: set[int] = set()
    with (
        video.open(name, policy="every") as source,
        Progress(source.frames, "frames") as progress,
        video.write(
            args.out, fps=source.fps, audio_from=source if source.has_audio else None
        ) as sink,
    ):
        for hidden in hider.stream(source):
            sink.write(hidden.frame)
            time = None if hidden.time is None else float(hidden.time)
            frames.append({"time": time, "found": _facts(hidden.faces)})
            carried += any(not face.found for face in hidden.faces)
            ids |= {face.id for face in hidden.faces if face.id is not None}
            progress.step()
    if not args.json:
        rate = len(frames) / progress.seconds
        print(
            f"{args.out}: {counted(len(frames), 'frames')}, {counted(len(ids), 'faces')} hidden, "
            f"in {counted(carried, 'frames')} one that the model did not find there, "
            f"{rate:.1f} fps"
        )
    return {"in": name, "out": args.out, "frames": frames}


def _facts(faces: list[HiddenFace]) -> Json:
    return [
        {
            **({} if face.id is None else {"id": face.id}),
            "score": round(face.score, 4),
            "box": [round(n, 1) for n in face.box],
            **({} if face.found else {"carried": True}),
        }
        for face in faces
    ]
