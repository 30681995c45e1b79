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
        "True for a picture in picture: top right, 200x150, 20 pixels from the edges.",
    ),
    "pip_position": Argument(t.PlaceType(), "Position of the picture in picture."),
    "pip_size": Argument(t.SIZE, "(width, height) of the picture in picture."),
}


def apply_pip(given: t.Values, call: str) -> None:
    """Replace the arguments of a picture in picture in those of a builder call.

    >>> given = {"pip": True}
    >>> apply_pip(given, "add_video")
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
    given.setdefault("margin", PIP_MARGIN)
    if size is not None or not {"size", "width", "height"} & given.keys():
        given["size"] = PIP_SIZE if size is None else size
    if position is not None or not {"position", "x", "y"} & given.keys():
        given["position"] = PIP_POSITION if position is None else position
