"""Commands that run models: load, predict on pictures and videos, print and draw results."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from dala.cli.common import inputs
from dala.cli.common.chain import Json
from dala.cli.common.signals import Stopped, stopping
from dala.errors import ParameterError, counted
from dala.media.progress import Progress
from dala.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

    from dala.ml.model import Model
    from dala.ml.results import (
        Detections,
        Faces,
        Hands,
        Keypoint,
        Matte,
        Poses,
        Prediction,
        Scores,
        Segmentation,
        TrackedObjects,
    )
    from dala.ml.stream import StreamResult

#: The result of a command's models.
R = TypeVar(
    "R",
    bound="Scores | Detections | Faces | Hands | Poses | Segmentation | Matte | TrackedObjects",
)
#: Functions from a result to its JSON form, and to its printed form.
Facts: TypeAlias = "Callable[[R], Json]"
Text: TypeAlias = Callable[[R], str]
#: From the model's results for a video to those which are reported.
Follow: TypeAlias = "Callable[[Any], Iterator[StreamResult[R]]]"


def add_common(parser: argparse.ArgumentParser, model: str, video: bool = True) -> None:
    """Add the arguments of every command that runs a model."""
    what = "pictures, a folder, a pattern" + (", or a video" if video else "")
    parser.add_argument("paths", nargs="+", metavar="IN", help=what)
    parser.add_argument("--model", help=f"a name or the path of an ONNX file ({model})")
    parser.set_defaults(default_model=model)
    parser.add_argument(
        "--provider", default="auto", help="auto, cuda, coreml, directml, webgpu or cpu"
    )
    parser.add_argument(
        "--device", help="the device that prepares pictures: auto, gpu, cpu, webgpu, .."
    )
    parser.add_argument("--json", action="store_true", help="print results as JSON")


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add --out."""
    parser.add_argument(
        "--out", metavar="FILE", help="write the picture or video with the results drawn"
    )


def add_smooth(parser: argparse.ArgumentParser) -> None:
    """Add --smooth."""
    parser.add_argument(
        "--smooth", action="store_true", help="in a video, smooth the points over time"
    )


def _choose(args: argparse.Namespace) -> None:
    """Set --model to the default, and say the license of a model where that asks for much."""
    from dala.ml.models import find_model

    if args.model is None:
        args.model = args.default_model
    spec = find_model(args.model)
    if spec is not None and spec.copyleft:
        print(
            f"dala {args.command}: uses {spec.name}, whose license is {spec.license}.",
            file=sys.stderr,
        )


def load(args: argparse.Namespace, tasks: tuple[str, ...]) -> Model[Prediction]:
    """Load the model of --model, which must do one of these tasks; a file is assumed to."""
    from dala.ml.custom import TASKS
    from dala.ml.gpu import load_model
    from dala.ml.models import find_model

    _choose(args)
    known = find_model(args.model)
    if known is not None and known.task not in tasks:
        home = "segment" if known.task == "matte" else known.task
        raise ParameterError(
            f"--model must be a model for this command, got {args.model!r}, which is for "
            f"`dala {home}`."
        )
    able = [task for task in tasks if task in TASKS]
    if known is not None or not Path(args.model).is_file():
        return load_model(args.model, args.provider, threads=getattr(args, "threads", None))
    if not able:
        raise ParameterError(
            f"--model must be the name of a model (dala models), got the file {args.model!r}."
        )
    if len(able) == 1:
        return load_model(args.model, args.provider, task=able[0])
    with load_model(args.model, args.provider) as probe:  # one plane is a matte, more are classes
        shape = probe.output_ports[0].shape
    task = "matte" if len(shape) == 4 and shape[1] == 1 else "segment"
    return load_model(args.model, args.provider, task=task)


def run(
    args: argparse.Namespace,
    facts: Facts[R],
    tasks: tuple[str, ...],
    text: Text[R] = str,
    follow: Follow[R] | None = None,
    **options: float,
) -> int:
    """Run a model on the pictures or the video; print the results, and draw them with --out.

    ``follow`` replaces the results of a video.
    """
    import dala

    inputs.refuse_waiting(args.paths, "Name a file.")
    if args.device:
        dala.use(args.device)
    try:
        with stopping(), load(args, tasks) as loaded:
            model = cast("Model[R]", loaded)  # the tasks are those of the command's results
            if len(args.paths) == 1 and inputs.is_video(args.paths[0]):
                report = _video(args, model, facts, text, options, follow)
            else:
                report = _pictures(args, model, facts, text, options)
    except Stopped as stopped:
        return 128 + stopped.number
    if args.json:
        print(json.dumps({"model": model.name, "provider": model.provider, **report}, indent=2))
    return 2 if "failed" in report else 0


def refuse_pictures(paths: list[str], option: str) -> None:
    """Raise ParameterError for an option that needs one video."""
    if len(paths) != 1 or not inputs.is_video(paths[0]):
        raise ParameterError(f"{option} needs one video such as in.mp4, got {' '.join(paths)!r}.")


def _pictures(
    args: argparse.Namespace,
    model: Model[R],
    facts: Facts[R],
    text: Text[R],
    options: dict[str, float],
) -> dict[str, Json]:
    from dala.media.files import load, store

    sources, many = inputs.expand(args.paths)
    out = getattr(args, "out", None)
    targets: list[Path] = []
    if out:
        targets = inputs.targets(sources, out) if many else [Path(out)]
        if not many and inputs.is_video(out):
            raise ParameterError(f"--out must be a picture, as '{sources[0]}' is, got {out!r}.")
        inputs.refuse_overwriting(sources, targets)
        if many:
            Path(out).mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Json]] = []
    failed: list[Json] = []
    for k, source in enumerate(sources):
        try:
            pixels = _pixels(load(source, 1 << 27))
            result = model.predict(pixels, **options)
            one: dict[str, Json] = {"in": str(source), "found": facts(result)}
            if targets:
                store(targets[k], result.draw(pixels), {})
                one["out"] = str(targets[k])
        except BaseException as error:
            failed.append(failure(args, source, error, many))
            continue
        found.append(one)
        if not args.json:
            head = f"{source}:\n  " if many else ""
            print(head + text(result).replace("\n", "\n  " if many else "\n"))
    return picture_report(args, found, failed)


def failure(args: argparse.Namespace, source: Path, error: BaseException, many: bool) -> Json:
    """Say why one of many pictures failed, and return it for the report; alone, it is raised."""
    if not many and isinstance(error, Exception):
        raise error
    why = inputs.failure(source, error)
    print(f"dala {args.command}: {why}", file=sys.stderr)
    return {"in": str(source), "error": why}


def picture_report(
    args: argparse.Namespace, found: Sequence[Json], failed: Sequence[Json]
) -> dict[str, Json]:
    """Return the report of many pictures; print the counts if some failed."""
    if failed and not args.json:
        print(f"{counted(len(found), 'pictures')}, {len(failed)} failed")
    return {"results": [*found], **({"failed": [*failed]} if failed else {})}


def _pixels(image: PillowImage) -> NDArray:
    """Return a loaded picture as RGB."""
    import numpy as np

    return np.asarray(image.convert("RGB"))


def _video(
    args: argparse.Namespace,
    model: Model[R],
    facts: Facts[R],
    text: Text[R],
    options: dict[str, float],
    follow: Follow[R] | None,
) -> dict[str, Json]:
    from dala.media import video

    name, out = args.paths[0], getattr(args, "out", None)
    if out and not inputs.is_video(out):
        raise ParameterError(f"--out must be a video such as out.mp4, as {name!r} is, got {out!r}.")
    if out and "://" not in name:
        inputs.refuse_overwriting([Path(name)], [Path(out)])
    found: list[dict[str, Json]] = []
    with (
        video.open(name, policy="every") as source,
        Progress(source.frames, "frames") as progress,
    ):

        def results() -> Iterator[StreamResult[R]]:
            stream = model.stream(source, policy="every", **options)
            for seen in stream if follow is None else follow(stream):
                time = None if seen.time is None else float(seen.time)
                found.append({"time": time, "found": facts(seen.result)})
                if not args.json and not out:
                    print(f"{time:9.3f} s  " + text(seen.result).replace("\n", "; "))
                progress.step()
                yield seen

        if out:
            sound = source if source.has_audio else None
            with video.write(out, fps=source.fps, audio_from=sound) as sink:
                for seen in results():
                    sink.write(seen.result.draw(seen.frame))
        else:
            for _ in results():
                pass
    if out and not args.json:
        print(f"{out}: {counted(len(found), 'frames')}, {len(found) / progress.seconds:.1f} fps")
    return {"in": name, "out": out, "frames": [*found]}


def box_facts(found: Detections | Faces | Hands | TrackedObjects) -> Json:
    """Return the JSON form of detections, faces, hands and tracks."""
    from dala.ml.results import Face, Hand, TrackedObject

    return [
        {
            **({"id": d.id} if isinstance(d, TrackedObject | Face | Hand) and d.id else {}),
            "label": d.label,
            **({"side": d.side} if isinstance(d, Hand) and d.side else {}),
            "score": round(d.score, 4),
            "box": [round(n, 1) for n in d.box],
            **({"keypoints": point_facts(d.keypoints)} if isinstance(d, Face | Hand) else {}),
        }
        for d in found
    ]


def point_facts(points: Iterable[Keypoint]) -> Json:
    """Return the JSON form of keypoints."""
    return [
        {"name": p.name, "x": round(p.x, 1), "y": round(p.y, 1), "score": round(p.score, 4)}
        for p in points
    ]
