"""The times of nodes: arguments for their presence, and for the part that they play."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dala.media.scene.nodes import json_types as j
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.properties import Argument
from dala.media.sources.clip import ALWAYS, ClipTimes
from dala.media.sources.speed import FASTEST
from dala.media.transitions.declarations import TRANSITIONS
from dala.media.transitions.spec import Transition

_TIME: Final = t.TimeType().json
_SPEED: Final = j.JsonNumber(-FASTEST, FASTEST)
_KEYFRAME: Final = j.FixedList(
    "[seconds, speed] or [seconds, speed, easing]",
    j.JsonNumber(0.0),
    _SPEED,
    j.OneOf(j.JsonString("an easing such as 'ease-out'", shortest=1), j.JsonNull()),
    shortest=2,
)

#: Arguments of nodes that play something: a source, the nodes of a group, a scene, cues.
PLAY_ARGUMENTS: Final[dict[str, Argument]] = {
    "trim": Argument(
        t.PropertyType(
            j.FixedList("[from, to]", j.OneOf(_TIME, j.JsonNull()), j.OneOf(_TIME, j.JsonNull())),
            "Sequence[TimeLike | None]",
        ),
        "(from, to): the part to play, in seconds of the content; None for either end.",
    ),
    "speed": Argument(
        t.PropertyType(
            j.OneOf(_SPEED, j.ListOf(_KEYFRAME, "a list of [seconds, speed]", shortest=1)),
            "SpeedLike",
        ),
        "Seconds of the content per second; negative to play it backwards from its end; or key "
        "frames of the speed, (seconds since the start, speed[, easing]).",
    ),
    "loop": Argument(
        t.PropertyType(j.OneOf(j.JsonBoolean(), j.JsonNumber(1, 1e6, integer=True)), "bool | int"),
        "True to start over at the end, or the number of runs.",
    ),
    "freeze": Argument(
        t.PropertyType(j.OneOf(j.JsonBoolean(), _TIME), "bool | TimeLike"),
        "After the end of the content, True to hold the last picture and False to show nothing; "
        "or a time of the content, whose picture is shown all the time.",
    ),
}


_NAME: Final[j.Schema] = {"anyOf": [{"enum": list(TRANSITIONS)}, {"type": "string"}]}
#: A transition of scene files: a name, [name, seconds, parameters], or an object.
_TRANSITION: Final = j.ParsedValue(
    "a transition such as 'dissolve' or ['wipe', 1, {'angle': 45}]", (str, list, dict),
    lambda value: Transition.of(value, "transition"),
    {
        "anyOf": [
            _NAME,
            {"type": "array", "minItems": 1, "maxItems": 3},
            {"type": "object", "required": ["type"], "properties": {"type": _NAME}},
        ]
    },
)  # fmt: skip


class TransitionArgument(t.PropertyType):
    """A transition, kept as a Transition."""

    def __init__(self) -> None:
        super().__init__(_TRANSITION, "TransitionLike")

    def check_value(self, call: str, argument: str, value: t.Value) -> Transition:
        """Return the transition."""
        return Transition.of(value, call)


def whole(value: t.Value) -> t.Value:
    """Return a whole float as an int: numbers of scene files may be floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def take_clip(
    given: t.Values, known: Mapping[str, Argument], call: str
) -> tuple[ClipTimes, t.Values]:
    """Return the times in the arguments of a builder call, and the arguments that scene files need.

    ``start`` and ``end`` stay in the arguments: they are properties.
    """
    names = [name for name in PLAY_ARGUMENTS if name in known and name in given]
    played = {name: given.pop(name) for name in names}
    if "loop" in played:
        played["loop"] = whole(played["loop"])
    duration = given.pop("duration", None)
    start, end = given.get("start"), given.get("end")
    if start is None and end is None and duration is None and not played:
        return ALWAYS, played
    clip = ClipTimes.of(call, start=start, end=end, duration=duration, **played)
    if duration is not None:
        given["end"] = clip.end
    return clip, played
