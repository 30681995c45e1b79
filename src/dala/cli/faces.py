"""Detect faces in pictures and videos, with eyes, nose, mouth and ears, or hide them.

examples:
  dala faces group.jpg --out faces.png
  dala faces in.mp4 --model blazeface_back --json
  dala faces street.mp4 hidden.mp4 --blur
  dala faces group.jpg hidden.jpg --pixelate 24 --tiles 3
  dala faces photos/ hidden/ --box --color navy
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dala.arguments import Integer
from dala.cli.common import arguments, inference
from dala.cli.common.arguments import argument, switch
from dala.cli.common.chain import Json
from dala.cli.common.verbosity import made_folders
from dala.errors import ParameterError, counted
from dala.ml.options import HideOptions
from dala.options import OptionFacts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dala.media.video import Reader
    from dala.ml.hide import FaceHider, HiddenFace, HiddenFrame
    from dala.ml.model import Model
    from dala.ml.results import Box, Prediction


#: Frames between the end of a track and the begin of another of the same person.
_GAP: Final = 90


@dataclass
class Person:
    """A face that was hidden: its tracks, and the frames with it."""

    ids: set[int]
    box: Box
    frames: list[int] = field(default_factory=list)


class Persons:
    """The persons in the frames of a video.

    A track that begins where another has ended a little earlier is taken for the same person.

    >>> from dala.ml.hide import HiddenFace
    >>> persons = Persons()
    >>> for number, id in enumerate([1, 1, None, 2]):
    ...     persons.add([HiddenFace((0, 0, 9, 9), 0.9, id)] if id else [])
    >>> len(persons.found), persons.text(25.0)
    (1, '1 person hidden in 0.1 of 0.2 s')
    """

    def __init__(self) -> None:
        self.found: list[Person] = []
        self.frames = self.covered = self.carried = 0
        self._by_id: dict[int, Person] = {}

    def add(self, faces: Iterable[HiddenFace]) -> None:
        """Count the faces of the next frame."""
        shown = list(faces)
        tracks = sorted(
            (face for face in shown if face.id is not None),
            key=lambda face: face.id not in self._by_id,
        )
        for face in tracks:  # those that are known first
            person = self._person(face)
            if person.frames[-1:] != [self.frames]:
                person.frames.append(self.frames)
        self.covered += bool(shown)
        self.carried += any(not face.found for face in shown)
        self.frames += 1

    def _person(self, face: HiddenFace) -> Person:
        assert face.id is not None
        person = self._by_id.get(face.id) or self._before(face.box) or Person(set(), face.box)
        if person not in self.found:
            self.found.append(person)
        self._by_id[face.id] = person
        person.ids.add(face.id)
        person.box = face.box
        return person

    def _before(self, box: Box) -> Person | None:
        """Return the person whose track has ended near a box, if there is one."""
        for person in self.found:
            gap = self.frames - person.frames[-1]
            if 0 < gap <= _GAP and _near(person.box, box):
                return person
        return None

    def text(self, fps: float) -> str:
        """Return the number of hidden persons, and for how long."""
        if not self.found:
            return "no face found"
        of = f"{self.covered / fps:.1f} of {self.frames / fps:.1f} s"
        text = f"{counted(len(self.found), 'persons')} hidden in {of}"
        if self.carried:
            text += f", {self.carried / fps:.1f} s of it with a face that the model did not find"
        return text

    def facts(self, fps: float) -> list[Json]:
        """Return the persons as JSON."""
        return [
            {
                "ids": [*sorted(person.ids)],
                "from": round(person.frames[0] / fps, 3),
                "to": round((person.frames[-1] + 1) / fps, 3),
                "seconds": round(len(person.frames) / fps, 3),
            }
            for person in self.found
        ]


def _near(one: Box, other: Box) -> bool:
    """Return whether the centers of two boxes are less than a size apart, and their sizes alike."""
    wide, high = one[2] - one[0], other[2] - other[0]
    across = abs(one[0] + one[2] - other[0] - other[2]) / 2
    down = abs(one[1] + one[3] - other[1] - other[3]) / 2
    return max(across, down) < max(wide, high) < 2 * min(wide, high)


#: Marks an option without its number.
_UNSET: Final = ""
#: The frames of which ``--fast`` looks at one.
_FAST: Final = 3


def _hiding(help: str, **facts: Any) -> OptionFacts:
    return argument(help, group=_HIDING, one_of="how", **facts)


_HIDING: Final = "hiding faces: IN OUT --blur, --pixelate or --box"
ARGUMENTS: Final[arguments.Options] = {
    **inference.common("blazeface"),
    **inference.score("0.5), or to hide (0.4"),
    "--blur": _hiding("blur them (0.3 of the face)", nargs="?", const=_UNSET, metavar="RADIUS"),
    "--pixelate": _hiding("blocks (0.2 of the face)", nargs="?", const=_UNSET, metavar="SIDE"),
    "--box": _hiding("cover them with a box", action="store_true"),
    **{
        flag: argument(**facts, group=_HIDING) for flag, facts in HideOptions.command_line().items()
    },
    "--fast": switch(
        f"look for faces in one frame of {_FAST}, and follow them between; one that shows "
        "for fewer frames may stay visible",
        group=_HIDING,
    ),
}


def run(args: argparse.Namespace) -> int:
    """Print the results, and draw them with --out; or hide the faces."""
    ways = ("blur", "pixelate", "box")
    how = next((way for way in ways if getattr(args, way) not in (None, False)), None)
    if how is not None:
        return _hide(args, how)
    for flag, facts in HideOptions.command_line().items():
        if getattr(args, facts["dest"]) is not None:
            raise ParameterError(f"{flag} is for hidden faces. Add --blur, --pixelate or --box.")
    if args.fast:
        raise ParameterError("--fast is for hidden faces. Add --blur, --pixelate or --box.")
    score = 0.5 if args.score is None else args.score
    return inference.run(args, inference.box_facts, ("faces",), score=score)


def _hide(args: argparse.Namespace, how: str) -> int:
    """Write pictures or a video with hidden faces, and print a report."""
    from dala.ml.hide import FaceHider

    args.radius = _radius(args, how)
    if args.out is None:
        if len(args.paths) < 2:
            raise ParameterError(f"--{how} needs IN and OUT, got {args.paths[0]!r} only.")
        args.out = args.paths.pop()
    if args.fast and args.every is None:
        args.every = _FAST
    if args.color is not None and how != "box":
        raise ParameterError("--color is for --box.")

    def work(model: Model[Prediction], moving: bool) -> arguments.Report:
        hider = FaceHider(how, model=model, **HideOptions.given(args))
        return (_video if moving else _pictures)(args, hider)

    with made_folders(args):  # of the last path, which is known only now
        return inference.with_model(args, ("faces",), work)


def _radius(args: argparse.Namespace, how: str) -> int | None:
    """Return the number of --blur or --pixelate; a path after the option is a path."""
    text = getattr(args, how)
    if how == "box" or text == _UNSET:
        return None
    if not text.isdecimal() and (Path(text).suffix or "/" in text or Path(text).exists()):
        places = [
            number for number, word in enumerate(args.line) if word in (text, f"--{how}={text}")
        ]
        before = sum(word in args.paths for word in args.line[: places[0]])
        args.paths.insert(before, text)  # in the order of the line: IN comes before OUT
        return None
    try:
        return Integer(1, 200 if how == "blur" else 4096).parse(text)
    except argparse.ArgumentTypeError as error:
        raise ParameterError(f"--{how} {error}.") from None


def _pictures(args: argparse.Namespace, hider: FaceHider) -> arguments.Report:
    import numpy as np

    from dala.media.files import load, store
    from dala.ml.hide import HiddenFace

    def hidden(source: Path, target: Path | None) -> tuple[arguments.Report, str]:
        assert target is not None  # OUT is required
        image = load(source, 1 << 27)
        pixels = np.asarray(image.convert("RGBA" if image.has_transparency_data else "RGB"))
        faces = [HiddenFace(f.box, f.score) for f in hider.find(pixels[..., :3])]
        store(target, hider.hide(pixels, faces), {})
        return {"found": _facts(faces)}, f"{target}: {counted(len(faces), 'faces')} hidden"

    return inference.each_picture(args, hidden, "OUT")


def _video(args: argparse.Namespace, hider: FaceHider) -> arguments.Report:
    persons, fps = Persons(), 25.0

    def results(source: Reader) -> Iterator[HiddenFrame[Any]]:
        nonlocal fps
        fps = float(source.fps or fps)
        return hider.stream(source)

    def facts(hidden: HiddenFrame[Any]) -> tuple[Fraction | None, Json]:
        persons.add(hidden.faces)
        return hidden.time, _facts(hidden.faces)

    def more() -> str:
        return f", {persons.text(fps)}"

    report = inference.each_frame(
        args, results, facts, lambda hidden: hidden.frame, str, "OUT", more
    )
    arguments.say(args, _effort(hider))
    covered = round(persons.covered / fps, 3)
    return {**report, "persons": persons.facts(fps), "seconds": covered, "every": hider.every}


def _effort(hider: FaceHider) -> str:
    """Return a sentence on the frames that are looked at, and an option that is faster."""
    kept = f"hides them {hider.ahead} frames before they are found and {hider.keep} after"
    if hider.every > 1:
        return f"It looks at one frame in {hider.every}, follows faces between, and {kept}."
    return f"It looks at every frame, follows faces, and {kept}; --fast looks at one in {_FAST}."


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
