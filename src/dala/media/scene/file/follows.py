"""Nodes that follow targets, in scene files: their form, and how they are made and written."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final

from dala.extensions import TARGET_MODULES
from dala.media.scene.file.record import is_model_file
from dala.media.scene.nodes import json_types as j
from dala.media.scene.nodes.property_types import PLACES, AnchorType, plain_json
from dala.media.scene.options import FollowOptions, fields_of

if TYPE_CHECKING:
    from dala.media.scene.follow.follower import Follow, FollowTarget
    from dala.media.scene.scene import Scene

_ID: Final = j.JsonString("the id of a node", shortest=1)
_NAME: Final = j.JsonString("the name of a point", shortest=1)
_SHARE: Final = j.JsonNumber(0.0, 1.0)


class _OptionsType(j.JsonType):
    """Options of a model: numbers, true or false, by name."""

    expected = "an object of numbers"
    _item = j.OneOf(j.JsonNumber(), j.JsonBoolean())

    form = dict

    def check_inside(self, value: j.JsonValue, at: str, problems: list[str]) -> None:
        """Append lines for the values."""
        for name, item in value.items():
            self._item.check(item, j.join(at, name), problems)

    def schema(self) -> j.Schema:
        """Return an object of numbers."""
        return {"type": "object", "additionalProperties": self._item.schema()}


class _TargetType(j.JsonObject):
    """A target: one of a point, a bone and a box."""

    def check_inside(self, value: j.JsonValue, at: str, problems: list[str]) -> None:
        """Append lines, and one unless there is one kind of target."""
        super().check_inside(value, at, problems)
        kinds = [kind for kind in ("point", "bone", "box") if value.get(kind)]
        if len(kinds) != 1:
            got = " and ".join(kinds) or "none"
            problems.append(f"{at}: must have one of 'point', 'bone' and 'box', got {got}.")


TARGET: Final = _TargetType(
    "a target",
    {
        "video": j.Field(_ID, "Id of the video node.", required=True),
        "model": j.Field(
            j.JsonString("the name of a model, or the path of an ONNX file", shortest=1),
            "Name of the model, or the path of an ONNX file (relative to the scene file).",
            required=True,
        ),
        "point": j.Field(_NAME, "A named point, such as 'nose'."),
        "bone": j.Field(j.FixedList("[first, second]", _NAME, _NAME), "Two named points."),
        "box": j.Field(j.JsonBoolean(), "True for the bounding box."),
        "which": j.Field(
            j.OneOf(
                j.JsonChoice(("largest", "surest", "left", "right")), j.JsonNumber(1, integer=True)
            ),
            "'largest', 'surest', an id, or of hands 'left' or 'right'.",
        ),
        "at": j.Field(
            j.OneOf(j.JsonNumber(), AnchorType().json),
            "Where on the bone (0 to 1) or in the box (a name or fractions) the target is.",
        ),
        "label": j.Field(
            j.JsonString("a class", shortest=1), "The class to find, such as 'person'."
        ),
        "smooth": j.Field(
            j.OneOf(j.JsonBoolean(), j.PositiveNumber()),
            "Smoothing over time: on, off, or a cutoff in Hz.",
        ),
        "least": j.Field(_SHARE, "The least score of a point."),
        "wait": j.Field(j.JsonBoolean(), "Whether a presentation waits for the model."),
        "provider": j.Field(j.JsonString("a provider", shortest=1), "The provider of the model."),
        "options": j.Field(_OptionsType(), "Options of the model, such as the score."),
    },
)

FOLLOW: Final = j.JsonObject(
    "a node that follows",
    {
        "node": j.Field(_ID, "Id of the node.", required=True),
        "target": j.Field(TARGET, "What it follows.", required=True),
        **fields_of(FollowOptions),
    },
)


def load_follow(
    scene: Scene, item: j.JsonItem, path: Callable[[str, str], str], at: str
) -> Follow | None:
    """Let a node follow as an entry of a file says; None if a node of it was refused.

    ``path`` returns what a path in the file means, given its location in the file.
    """
    given = dict(item)
    target = {k: v for k, v in given.pop("target").items() if v is not None}
    node, video = scene.nodes.get(given.pop("node")), scene.nodes.get(target.pop("video"))
    if node is None or video is None:
        return None
    if is_model_file(target["model"]):
        target["model"] = path(target["model"], f"{at}.target.model")
    (module,) = TARGET_MODULES
    made: FollowTarget = import_module(module).target_of(video, target)
    return scene.follow(node, made, **given)


def save_follow(follow: Follow, path: Callable[[str], j.JsonValue]) -> j.JsonItem | None:
    """Return the entry of a file for a node that follows; None if no file can name its target."""
    saved = follow.target.saved()
    if saved is None:
        return None
    target = {"video": follow.target.video.id, **plain_json(dict(saved))}
    if isinstance(target.get("model"), str) and is_model_file(target["model"]):
        target["model"] = path(target["model"])
    made: j.JsonItem = {"node": follow.node.id, "target": target}
    options, turns = follow.options, follow.target.turns
    usual = {
        "scale": 1.0 if turns and not options.fit and not options.crop else None,
        "rotate": turns and not options.fit and not options.crop,
        "lost": "keep" if options.crop else "hide",
        "anchor": PLACES["center"],
    }
    for name, spec in FollowOptions.specs().items():
        value = getattr(options, name)
        if value != usual.get(name, spec.default):
            unset = False if name == "scale" else None
            made[name] = unset if value is None else plain_json(value)
    return made
