"""The transitions: their names, parameters and ranges, declared here once.

Timelines, scene files, the command line and the docs read this registry.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from dala.arguments import ArgumentKind, Fitting, Flag, Quantity, Selection
from dala.gpu.color import rgba_of

#: A parameter's value. Its type is declared at run time, so type checkers cannot know it.
Setting: TypeAlias = Any

#: Directions of movement, as steps to the right and down.
DIRECTIONS: Final = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


class _Point(ArgumentKind[tuple[float, float]]):
    expected = "(across, down), fractions of the picture from 0 to 1"

    def accept(self, value: Setting) -> tuple[float, float]:
        """Return the two fractions."""
        across, down = (Quantity(0, 1).accept(part) for part in value)
        return across, down


#: The kinds of parameters that are not numbers or colors, and what docs say of their values.
_KINDS: Final[dict[str, ArgumentKind[Any]]] = {
    "bool": Flag(),
    "direction": Selection(*DIRECTIONS),
    "point": _Point(),
    "picture": Fitting("a picture or the path of one", lambda value: value is not None),
}
_RANGES: Final = {
    "bool": "True or False", "direction": ", ".join(DIRECTIONS), "point": "(0 to 1, 0 to 1)",
}  # fmt: skip


@dataclass(frozen=True)
class TransitionParameter:
    """A parameter of a transition.

    >>> TransitionParameter("softness", "number", 0.0, "Width of the edge.", 0.0, 1.0).range
    '0 to 1'
    """

    name: str
    #: "number", "bool", "direction", "color", "point" or "picture".
    kind: str
    default: Setting
    doc: str
    low: float = 0.0
    high: float = 1.0

    @property
    def range(self) -> str:
        """The accepted values, for docs."""
        numbers = f"{self.low:g} to {self.high:g}"
        return _RANGES.get(self.kind, numbers if self.kind == "number" else f"a {self.kind}")

    def check(self, value: Setting, call: str) -> Setting:
        """Return a value in the form that is kept; raise ParameterError if it is not accepted."""
        if self.kind == "color":
            return tuple(rgba_of(value, call, self.name))
        known = _KINDS.get(self.kind) or Quantity(self.low, self.high)
        return known.check(call, self.name, value)


@dataclass(frozen=True)
class TransitionType:
    """A transition of the registry."""

    name: str
    doc: str
    parameters: tuple[TransitionParameter, ...] = ()
    #: Makes the kernel's parameters of the transition's.
    convert: Callable[[dict[str, Setting]], dict[str, Setting]] = field(default=dict)


_SOFTNESS: Final = TransitionParameter(
    "softness", "number", 0.0, "Width of the edge, as a part of its way; 0 is one pixel."
)
_CENTER: Final = TransitionParameter(
    "center", "point", (0.5, 0.5), "The point it opens from, as fractions of the picture."
)
_DIRECTION: Final = TransitionParameter(
    "direction", "direction", "left", "The direction in which pictures move."
)


def _moving(values: dict[str, Setting]) -> dict[str, Setting]:
    across, down = DIRECTIONS[values["direction"]]
    return {"across": across, "down": down}


def _wiping(values: dict[str, Setting]) -> dict[str, Setting]:
    angle = math.radians(values["angle"])
    direction = (round(math.cos(angle), 12), round(math.sin(angle), 12))
    return {"direction": direction, "softness": values["softness"]}


def _fading(values: dict[str, Setting]) -> dict[str, Setting]:
    return {"color": tuple(part / 255 for part in values["color"])}


def _luma(values: dict[str, Setting]) -> dict[str, Setting]:
    return {"softness": values["softness"], "invert": values["invert"]}


#: Every transition by name.
TRANSITIONS: Final[dict[str, TransitionType]] = {
    made.name: made
    for made in (
        TransitionType("cut", "The second picture follows the first; it takes no time."),
        TransitionType("dissolve", "The first picture fades into the second."),
        TransitionType(
            "fade",
            "The first picture fades to a color, and that into the second.",
            (TransitionParameter("color", "color", (0, 0, 0, 255), "The color in between."),),
            _fading,
        ),
        TransitionType(
            "wipe",
            "A straight edge uncovers the second picture.",
            (
                TransitionParameter(
                    "angle", "number", 0.0,
                    "Where the edge goes, in degrees: 0 to the right, 90 down.", -360.0, 360.0,
                ),
                _SOFTNESS,
            ),
            _wiping,
        ),
        TransitionType("slide", "The second picture moves over the first.", (_DIRECTION,), _moving),
        TransitionType("push", "The second picture pushes the first out.", (_DIRECTION,), _moving),
        TransitionType(
            "zoom",
            "The first picture grows and dissolves into the second, which shrinks into place.",
            (
                TransitionParameter("amount", "number", 2.0, "The largest scale.", 1.0, 20.0),
                _CENTER,
            ),
        ),
        TransitionType(
            "iris", "A circle opens to the second picture.", (_CENTER, _SOFTNESS)
        ),
        TransitionType(
            "luma",
            "The second picture appears where a third, the matte, is dark, and last where it is "
            "bright.",
            (
                TransitionParameter("picture", "picture", None, "The matte: a picture, or a file."),
                _SOFTNESS,
                TransitionParameter("invert", "bool", False, "Begin where the matte is bright."),
            ),
            _luma,
        ),
    )
}  # fmt: skip
