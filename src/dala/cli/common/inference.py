"""Commands that run models: load, predict on pictures and videos, print and draw results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar, cast

from dala.arguments import Quantity
from dala.cli.common import arguments, inputs
from dala.cli.common.arguments import DEVICE, Options, Report, argument, dest, show, switch
from dala.cli.common.chain import Json
from dala.cli.common.signals import stopping
from dala.errors import ParameterError, counted
from dala.media.progress import Progress
from dala.ml.options import ModelOptions
from dala.typing import ImageLike

if TYPE_CHECKING:
    from dala.media.video.files import Reader
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
#: A result of a frame.
S = TypeVar("S")
#: Functions from a result to its JSON form, and to its printed form.
Facts: TypeAlias = "Callable[[R], Json]"
Text: TypeAlias = Callable[[R], str]
#: From the model's results for a video to those which are reported.
Follow: TypeAlias = "Callable[[Any], Iterator[StreamResult[R]]]"


def score(usual: str, default: float | None = None) -> Options:
    """Return the option of the lowest score, with its default as text."""
    help = f"the lowest score to report ({usual})"
    return {"--score": argument(help, type=Quantity(0, 1).parse, metavar="S", default=default)}


@dataclass(frozen=True)
class ModelCommand(Generic[R]):
    """A command that prints the findings of a model, and draws them with --out."""

    #: The model by default.
    model: str
    tasks: tuple[str, ...]
    facts: Facts[R]
    #: Options of ``predict``.
    options: Options
    #: An option for videos, and its help.
    video: tuple[str, str] = ("", "")
    #: What the option makes of the results, from the options of ``predict``, which it may change.
    follow: Callable[[dict[str, float]], Follow[R]] | None = None

    @property
    def arguments(self) -> Options:
        """The arguments of the command."""
        flag, help = self.video
        own = {**common(self.model), **self.options}
        return own if self.follow is None else {**own, flag: switch(help)}

    def run(self, args: argparse.Namespace) -> int:
        """Print the results, and draw them with --out."""
        names = [dest(flag, facts) for flag, facts in self.options.items()]
        given = {name: value for name in names if (value := getattr(args, name)) is not None}
        follow = None
        if self.follow is not None and getattr(args, self.video[0].lstrip("-")):
            refuse_pictures(args.paths, self.video[0])
            follow = self.follow(given)
        return run(args, self.facts, self.tasks, follow=follow, **given)


def smoothed(options: dict[str, float]) -> Follow[R]:
    """Return a stream of results whose points are smoothed over time."""
    from dala.ml.smooth import Smoother

    smoother: Smoother[Any] = Smoother()
    return smoother.stream


#: The option of :func:`smoothed`.
SMOOTH: Final = ("--smooth", "in a video, smooth the points over time")


def common(model: str) -> Options:
    """Return the arguments of every command that runs a model."""
    return {
        "paths": argument("pictures, a folder, a pattern, or a video", nargs="+", metavar="IN"),
        "--model": argument(f"a name or the path of an ONNX file ({model})", default=model),
        **ModelOptions.command_line(),
        **DEVICE,
        "--json": switch("print results as JSON"),
        "--out": argument("write the picture or video with the results drawn", metavar="FILE"),
    }


def load(args: argparse.Namespace, tasks: tuple[str, ...]) -> Model[Prediction]:
    """Load the model of --model, which must do one of these tasks; a file is assumed to.

    The license is printed where it asks for much.
    """
    from dala.ml.custom import TASKS
    from dala.ml.gpu import load_model
    from dala.ml.models import find_model

    options = ModelOptions.given(args)
    known = find_model(args.model)
    if known is not None and known.copyleft:
        print(
            f"dala {args.command}: uses {known.name}, whose license is {known.license}.",
            file=sys.stderr,
        )
    if known is not None and known.task not in tasks:
        home = "segment" if known.task == "matte" else known.task
        raise ParameterError(
            f"--model must be a model for this command, got {args.model!r}, which is for "
            f"`dala {home}`."
        )
    able = [task for task in tasks if task in TASKS]
    if known is not None or not Path(args.model).is_file():
        return load_model(args.model, **options)
    if not able:
        raise ParameterError(
            f"--model must be the name of a model (dala models), got the file {args.model!r}."
        )
    if len(able) == 1:
        return load_model(args.model, **options, task=able[0])
    with load_model(args.model, **options) as probe:  # one plane is a matte, more are classes
        shape = probe.output_ports[0].shape
    task = "matte" if len(shape) == 4 and shape[1] == 1 else "segment"
    return load_model(args.model, **options, task=task)


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

    def work(loaded: Model[Prediction], moving: bool) -> Report:
        model = cast("Model[R]", loaded)  # the tasks are those of the command's results

        def picture(source: Path, target: Path | None) -> tuple[Report, str]:
            from dala.media.files import store

            pixels = inputs.pixels(source)
            result = model.predict(pixels, **options)
            if target is not None:
                store(target, result.draw(pixels), {})
            return {"found": facts(result)}, text(result)

        def results(source: Reader) -> Iterator[StreamResult[R]]:
            stream = model.stream(source, policy="every", **options)
            return stream if follow is None else follow(stream)

        if not moving:
            return each_picture(args, picture)
        return each_frame(
            args,
            results,
            lambda seen: (seen.time, facts(seen.result)),
            lambda seen: seen.result.draw(seen.frame),
            lambda seen: text(seen.result).replace("\n", "; "),
        )

    return with_model(args, tasks, work)


def with_model(
    args: argparse.Namespace,
    tasks: tuple[str, ...],
    work: Callable[[Model[Prediction], bool], Report],
) -> int:
    """Load the model, do work on the pictures or the video, and print the report as JSON."""
    import dala

    inputs.refuse_waiting(args.paths, "Name a file.")
    if args.device:
        dala.use(args.device)
    with stopping(), load(args, tasks) as model:
        report = work(model, len(args.paths) == 1 and inputs.is_video(args.paths[0]))
    facts = {"model": model.name, "provider": model.provider, **report}
    return show(args, facts, code=2 if "failed" in report else 0)


def refuse_pictures(paths: list[str], option: str) -> None:
    """Raise ParameterError for an option that needs one video."""
    if len(paths) != 1 or not inputs.is_video(paths[0]):
        raise ParameterError(f"{option} needs one video such as in.mp4, got {' '.join(paths)!r}.")


def each_picture(
    args: argparse.Namespace,
    work: Callable[[Path, Path | None], tuple[Report, str]],
    place: str = "--out",
) -> Report:
    """Do work on each picture and its target, and return the report.

    Args:
        args: with the paths, and the target as ``out``.
        work: returns facts for the report, and the text to print.
        place: the name of the target in errors.
    """
    sources, many = inputs.expand(args.paths)
    targets: Sequence[Path | None] = [None] * len(sources)
    if args.out:
        if not many and inputs.is_video(args.out):
            raise ParameterError(
                f"{place} must be a picture, as '{sources[0]}' is, got {args.out!r}."
            )
        written = inputs.targets(sources, args.out) if many else [Path(args.out)]
        inputs.refuse_overwriting(sources, written)
        if many:
            Path(args.out).mkdir(parents=True, exist_ok=True)
        targets = written
    found: list[Report] = []
    failed: list[Report] = []
    for source, target in zip(sources, targets, strict=True):
        try:
            facts, text = work(source, target)
        except BaseException as error:
            if not many and isinstance(error, Exception):
                raise
            why = inputs.failure(source, error)
            print(f"dala {args.command}: {why}", file=sys.stderr)
            failed.append({"in": str(source), "error": why})
            continue
        found.append({"in": str(source), **facts, **({"out": str(target)} if target else {})})
        arguments.say(args, f"{source}:\n{text}".replace("\n", "\n  ") if many else text)
    if failed:
        arguments.say(args, f"{counted(len(found), 'pictures')}, {len(failed)} failed")
    return {"results": found, **({"failed": failed} if failed else {})}


def each_frame(
    args: argparse.Namespace,
    results: Callable[[Reader], Iterator[S]],
    facts: Callable[[S], tuple[Fraction | None, Json]],
    drawn: Callable[[S], ImageLike],
    text: Callable[[S], str],
    place: str = "--out",
    more: Callable[[], str] = str,
) -> Report:
    """Write or print the results of a video, frame by frame, and return the report.

    Args:
        args: with the path, and the target as ``out``.
        results: returns the results for the frames.
        facts: returns the time of a result, and its facts.
        drawn: returns the frame of a result, as it is written.
        text: returns a result as a line.
        place: the name of the target in errors.
        more: returns what the summary says besides the number of frames.
    """
    from dala.media import video

    name, out = args.paths[0], args.out
    if out:
        inputs.refuse_no_video(place, name, out)
    if out and "://" not in name:
        inputs.refuse_overwriting([Path(name)], [Path(out)])
    frames: list[Report] = []
    with ExitStack() as held:
        source = held.enter_context(video.open(name, policy="every"))
        progress = held.enter_context(Progress(source.frames, "frames"))
        sound = source if source.has_audio else None
        sink = (
            held.enter_context(video.write(out, fps=source.fps, audio_from=sound)) if out else None
        )
        for seen in results(source):
            when, found = facts(seen)
            time = None if when is None else float(when)
            frames.append({"time": time, "found": found})
            if sink is not None:
                sink.write(drawn(seen))
            else:
                arguments.say(args, f"{time:9.3f} s  {text(seen)}")
            progress.step()
    if out:
        rate = len(frames) / progress.seconds
        arguments.say(args, f"{out}: {counted(len(frames), 'frames')}{more()}, {rate:.1f} fps")
    return {"in": name, "out": out, "frames": frames}


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


def pose_facts(poses: Poses) -> Json:
    """Return the JSON form of poses."""
    return [
        {
            **({"id": p.id} if p.id else {}),
            "score": round(p.score, 4),
            "keypoints": point_facts(p.keypoints),
        }
        for p in poses
    ]


def label_facts(found: Segmentation | Matte) -> Json:
    """Return the JSON form of segmentations and mattes."""
    if not hasattr(found, "found"):
        return {"foreground": round(float(found.alpha.mean()), 4)}
    return {label: round(share, 4) for label, share in found.found.items()}
