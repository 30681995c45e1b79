"""The targets of scene files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from dala.errors import ParameterError
from dala.media.scene.follow.target import FollowTarget
from dala.media.scene.nodes.video import VideoNode
from dala.ml.follow.watch import watch

#: A value of a scene file, which is checked before it comes here.
Saved: TypeAlias = Any


def target_of(video: VideoNode, item: Mapping[str, Saved]) -> FollowTarget:
    """Return the target that an entry of a scene file describes, on a video node of the scene."""
    given = dict(item)
    which = given.pop("which", "largest")
    which = int(which) if isinstance(which, float) else which
    place = given.pop("at", None)
    point, bone = given.pop("point", None), given.pop("bone", None)
    given.pop("box", None)
    options = given.pop("options", {})
    seen = watch(video, given.pop("model"), **given, **options)
    if point is not None:
        if place is not None:
            raise ParameterError("watch: at is for bones and boxes, not for points.", call="watch")
        return seen.point(point, which)
    if bone is not None:
        first, second = bone
        return seen.bone(first, second, which, at=0.5 if place is None else place)
    return seen.box(which, at="center" if place is None else place)
