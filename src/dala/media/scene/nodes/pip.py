"""Picture in picture: arguments that place a small node in a corner of the scene."""

from __future__ import annotations

from typing import Final

from dala.arguments import Flag
from dala.errors import ParameterError
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.properties import Argument

#: Defaults of a picture in picture.
PIP_POSITION: Final = "top-right"
PIP_SIZE: Final = (200.0, 150.0)
PIP_MARGIN: Final = 20.0

#: The arguments, for the builder methods of node types that can be a picture in picture.
PIP_ARGUMENTS: Final[dict[str, Argument]] = {
    "pip": Argument(
        t.BooleanType(),
        "True for a picture in picture: top right, 200x150, 20 pixels from the edges; smaller in "
        "scenes without room for it.",
    ),
    "pip_position": Argument(t.PlaceType(), "Position of the picture in picture."),
    "pip_size": Argument(t.SIZE, "(width, height) of the picture in picture."),
}


def _fitted(canvas: tuple[float, float]) -> tuple[float, tuple[float, float]]:
    """Return the default margin and size, smaller in scenes that have no room for them.

    >>> _fitted((1280, 720)), _fitted((100, 100))
    ((20.0, (200.0, 150.0)), (10.0, (80.0, 60.0)))
    """
    margin = min(PIP_MARGIN, *(side / 10 for side in canvas))
    room = ((side - 2 * margin) / wanted for side, wanted in zip(canvas, PIP_SIZE, strict=True))
    scale = min(1.0, *room)
    return margin, (PIP_SIZE[0] * scale, PIP_SIZE[1] * scale)


def apply_pip(given: t.Values, call: str, canvas: tuple[float, float]) -> None:
    """Replace the arguments of a picture in picture in those of a builder call.

    ``canvas`` is the size of the scene.

    >>> given = {"pip": True}
    >>> apply_pip(given, "add_video", (1280, 720))
    >>> given
    {'margin': 20.0, 'size': (200.0, 150.0), 'position': 'top-right'}
    """
    for name in [k for k, v in given.items() if v is None]:
        del given[name]
    enabled = given.pop("pip", None)
    position, size = given.pop("pip_position", None), given.pop("pip_size", None)
    if enabled is None:
        enabled = position is not None or size is not None
    Flag().check(call, "pip", enabled)
    if not enabled:
        if position is not None or size is not None:
            raise ParameterError(
                f"{call}: pip_position and pip_size are for a picture in picture, got pip=False. "
                "Leave pip out, or use position and size."
            )
        return
    if position is not None and given.get("position") is not None:
        raise ParameterError(f"{call}: give position or pip_position, not both.")
    if size is not None and given.get("size") is not None:
        raise ParameterError(f"{call}: give size or pip_size, not both.")
    margin, fitted = _fitted(canvas)
    given.setdefault("margin", margin)
    if size is not None or not {"size", "width", "height"} & given.keys():
        given["size"] = fitted if size is None else size
    if position is not None or not {"position", "x", "y"} & given.keys():
        given["position"] = PIP_POSITION if position is None else position
