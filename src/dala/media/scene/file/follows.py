"""Nodes that follow targets, in scene files: their form, and how they are made and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Final

from dala.extensions import TARGET_MODULES
from dala.media.scene.follow.follower import LOST, UNITS, FollowOptions
from dala.media.scene.nodes.json_types import (
    Field,
    FixedList,
    JsonBoolean,
    JsonChoice,
    JsonNull,
    JsonNumber,
    JsonObject,
    JsonString,
    JsonType,
    JsonValue,
    OneOf,
    PositiveNumber,
    Schema,
    join,
    refusal,
)
from dala.media.scene.nodes.property_types import AnchorType, plain_json

if TYPE_CHECKING:
    from dala.media.scene.follow.follower import Follow
    from dala.media.scene.follow.target import FollowTarget
    from dala.media.scene.nodes.video import VideoNode
    from dala.media.scene.scene import Scene

_ID: Final = JsonString("the id of a node", shortest=1)
_NAME: Final = JsonString("the name of a point", shortest=1)
_LENGTH: Final = JsonNumber(0.0)
_SHARE: Final = JsonNumber(0.0, 1.0)


class _OptionsType(JsonType):
    """Options of a model: numbers, true or false, by name."""

    expected = "an object of numbers"
    _item = OneOf(JsonNumber(), JsonBoolean())

    def fits(self, value: JsonValue) -> bool:
        """Return True for an object."""
        return isinstance(value, dict)

    def check(self, value: JsonValue, at: str, problems: list[str]) -> None:
        """Append a line for each value that is not a number."""
        if not isinstance(value, dict):
            problems.append(refusal(at, self.expected, value))
            return
        for name, item in value.items():
            self._item.check(item, join(at, name), problems)

    def schema(self) -> Schema:
        """Return an object of numbers."""
        return {"type": "object", "additionalProperties": self._item.schema()}


class _TargetType(JsonObject):
    """A target: exactly one of a point, a bone and a box."""

    def check(self, value: JsonValue, at: str, problems: list[str]) -> None:
        """Check every key, and that there is one kind of target."""
        super().check(value, at, problems)
        if isinstance(value, dict):
            kinds = [kind for kind in ("point", "bone", "box") if value.get(kind)]
            if len(kinds) != 1:
                got = " and ".join(kinds) or "none"
                problems.append(f"{at}: must have one of 'point', 'bone' and 'box', got {got}.")


TARGET: Final = _TargetType(
    "a target",
    {
        "video": Field(_ID, "Id of the video node.", required=True),
        "model": Field(
            JsonString("the name of a model, or the path of an ONNX file", shortest=1),
            "Name of the model, or the path of an ONNX file (relative to the scene file).",
            required=True,
        ),
        "point": Field(_NAME, "A named point, such as 'nose'."),
        "bone": Field(FixedList("[first, second]", _NAME, _NAME), "Two named points."),
        "box": Field(JsonBoolean(), "True for the bounding box."),
        "which": Field(
            OneOf(JsonChoice(("largest", "surest", "left", "right")), JsonNumber(1, integer=True)),
            "'largest', 'surest', an id, or of hands 'left' or 'right'.",
        ),
        "at": Field(
            OneOf(JsonNumber(), AnchorType().json),
            "Where on the bone (0 to 1) or in the box (a name or fractions) the target is.",
        ),
        "label": Field(JsonString("a class", shortest=1), "The class to find, such as 'person'."),
        "smooth": Field(
            OneOf(JsonBoolean(), PositiveNumber()),
            "Smoothing over time: on, off, or a cutoff in Hz.",
        ),
        "least": Field(_SHARE, "The least score of a point."),
        "wait": Field(JsonBoolean(), "Whether a presentation waits for the model."),
        "provider": Field(JsonString("a provider", shortest=1), "The provider of the model."),
        "options": Field(_OptionsType(), "Options of the model, such as the score."),
    },
)

FOLLOW: Final = JsonObject(
    "a node that follows",
    {
        "node": Field(_ID, "Id of the node.", required=True),
        "target": Field(TARGET, "What it follows.", required=True),
        "offset": Field(
            FixedList("[dx, dy]", JsonNumber(), JsonNumber()), "Offset from the target."
        ),
        "unit": Field(JsonChoice(UNITS), "Unit of the offset."),
        "scale": Field(
            OneOf(JsonBoolean(), PositiveNumber(10_000.0)), "Width in widths of the target."
        ),
        "rotate": Field(JsonBoolean(), "Whether it turns with the target."),
        "angle": Field(JsonNumber(), "Degrees added to the angle."),
        "anchor": Field(
            OneOf(AnchorType().json, JsonNull()), "The point of the node that is at the target."
        ),
        "fit": Field(JsonBoolean(), "Whether width and height are those of the target."),
        "crop": Field(JsonBoolean(), "Whether the node's crop follows, not its place."),
        "lost": Field(JsonChoice(LOST), "What happens when the target is not found."),
        "hold": Field(_LENGTH, "Seconds for which a lost target counts as found."),
        "fade": Field(_LENGTH, "Seconds of fading out."),
    },
)


def load_follow(
    scene: Scene, item: dict[str, JsonValue], path: Callable[[str, str], str | int], at: str
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
        target["model"] = str(path(target["model"], f"{at}.target.model"))
    made = target_of(video, target)  # type: ignore[arg-type]  # it is checked there
    return scene.follow(node, made, **given)


def target_of(video: VideoNode, item: dict[str, JsonValue]) -> FollowTarget:
    """Return the target that a file describes, on a video node."""
    (module,) = TARGET_MODULES
    made: FollowTarget = import_module(module).target_of(video, item)
    return made


def is_model_file(model: str) -> bool:
    """Return True if a model is the path of a file, not a name.

    >>> is_model_file("models/own.onnx"), is_model_file("blazeface")
    (True, False)
    """
    return "/" in model or model.lower().endswith(".onnx")


def save_follow(follow: Follow, path: Callable[[str], JsonValue]) -> dict[str, JsonValue] | None:
    """Return the entry of a file for a node that follows; None if no file can name its target."""
    saved = follow.target.saved()
    if saved is None:
        return None
    target = {"video": follow.target.video.id, **plain_json(dict(saved))}
    if isinstance(target.get("model"), str) and is_model_file(target["model"]):
        target["model"] = path(target["model"])
    made: dict[str, JsonValue] = {"node": follow.node.id, "target": target}
    options, turns = follow.options, follow.target.turns
    usual = {
        "scale": 1.0 if turns and not options.fit and not options.crop else None,
        "rotate": turns and not options.fit and not options.crop,
        "lost": "keep" if options.crop else "hide",
    }
    for one in fields(FollowOptions):
        value = getattr(options, one.name)
        if value != usual.get(one.name, one.default):
            made[one.name] = plain_json(value) if value is not None else _unset(one.name)
    return made


def _unset(name: str) -> JsonValue:
    return False if name == "scale" else None
