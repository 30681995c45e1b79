"""Older versions of scene files, converted to the newest.

Version 1 had the sizes of filters as [height, width]. Sizes of nodes have always been
[width, height].
"""

from __future__ import annotations

import copy
from typing import Any, Final

from dala.extras import pip_install
from dala.media.filters.sizes import takes_size, turned
from dala.media.scene.file.ids import walk
from dala.media.scene.nodes.json_types import JsonItem, JsonValue

#: The version of the format that is written, and the newest that is read.
VERSION: Final = 2


def check_version(data: JsonValue, problems: list[str]) -> None:
    """Report a file of a version that is newer than this one."""
    version = data.get("dala") if isinstance(data, dict) else None
    if isinstance(version, int | float) and version > VERSION:
        problems.append(
            f"dala: this is version {version:g} of the format, and {VERSION} is the newest that "
            f"this version of Dala reads. Update it: {pip_install(upgrade=True)}"
        )


def newest(data: Any) -> Any:
    """Return the contents of a scene file as the newest version has them; its own unchanged.

    The contents need not be checked before.

    >>> effect = {"type": "effect", "filter": "crop", "params": {"size": [90, 160]}}
    >>> newest({"dala": 1, "nodes": [effect]})["nodes"][0]["params"]
    {'size': [160, 90]}
    """
    if not isinstance(data, dict) or data.get("dala") != 1:
        return data
    made = copy.deepcopy(data)
    _turn_sizes(made)
    made["dala"] = VERSION
    return made


def _turn_sizes(scene: JsonItem) -> None:
    """Turn the sizes of a scene's effects round, and of those in scenes inside it."""
    sized, animations = set(), _dicts(scene.get("animations"))
    for _, item in walk(scene):
        kind, filter = item.get("type"), item.get("filter")
        if kind == "effect" and isinstance(filter, str) and takes_size(filter):
            sized.add(str(item.get("id")))
            if isinstance(params := item.get("params"), dict) and "size" in params:
                params["size"] = turned(params["size"])
        elif kind == "animation":
            animations.append(item)
        elif kind == "scene" and isinstance(inner := item.get("scene"), dict):
            _turn_sizes(inner)
    for item in animations:
        if item.get("property") == "size" and str(item.get("node")) in sized:
            _turn_animation(item)


def _turn_animation(item: JsonItem) -> None:
    for name in ("from", "to"):
        if name in item:
            item[name] = turned(item[name])
    frames: Any = item.get("keyframes")
    for frame in frames if isinstance(frames, list) else ():
        if isinstance(frame, list) and len(frame) > 1:
            frame[1] = turned(frame[1])


def _dicts(value: JsonValue) -> list[JsonItem]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
