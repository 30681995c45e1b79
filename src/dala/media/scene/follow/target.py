"""Targets that nodes follow: objects that find a place in the picture of a video node.

The targets of models are in ``dala.ml``. Any object with ``video``, ``find`` and ``saved`` is one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from dala.media.scene.nodes.json_types import JsonData
    from dala.media.scene.nodes.video import VideoNode
    from dala.media.sources.types import Picture


class Sighting(NamedTuple):
    """The place of a target, in pixels of the video's picture.

    >>> Sighting(10.0, 20.0, width=5.0)
    Sighting(x=10.0, y=20.0, width=5.0, height=0.0, angle=0.0)
    """

    x: float
    y: float
    #: Its size along its own axes; a bone has a length, which is the width, and no height.
    width: float = 0.0
    height: float = 0.0
    #: Clockwise rotation, in degrees.
    angle: float = 0.0


class ShownPicture(NamedTuple):
    """The picture that a video node shows."""

    picture: Picture
    #: Changes exactly when the picture does.
    version: int
    #: Seconds in the video if they are known, else in the scene.
    time: float
    #: The same for the same picture of the source, at any time; None if that is not known.
    key: Hashable = None


@runtime_checkable
class FollowTarget(Protocol):
    """Something that a node can follow."""

    @property
    def video(self) -> VideoNode:
        """The video node in whose picture it is found."""

    @property
    def turns(self) -> bool:
        """True if it has an angle and a length of its own, which nodes take by default."""

    def find(self, shown: ShownPicture, wait: bool) -> Sighting | None:
        """Return where it is; None if it is not in the picture.

        With ``wait`` the answer is that of this picture. Without, it may be an older one: the call
        must not block.
        """

    def saved(self) -> Mapping[str, JsonData] | None:
        """Return its form in scene files, without the video; None if it cannot be saved."""


@runtime_checkable
class TargetDescription(Protocol):
    """Something that a node can follow once it is known in which video."""

    def on(self, video: VideoNode) -> FollowTarget:
        """Return the target in a video node."""


@runtime_checkable
class FollowTargets(Protocol):
    """Several things that nodes can follow, one node each."""

    @property
    def video(self) -> VideoNode:
        """The video node in whose picture they are found."""

    def ids(self, shown: ShownPicture, wait: bool) -> Sequence[int]:
        """Return the ids of those in the picture."""

    def one(self, id: int) -> FollowTarget:
        """Return the target of an id."""


_realtime: Final[ContextVar[bool]] = ContextVar("dala_scene_realtime", default=False)


@contextmanager
def in_real_time() -> Iterator[None]:
    """Let targets answer with older results inside the block, rather than wait."""
    token = _realtime.set(True)
    try:
        yield
    finally:
        _realtime.reset(token)


def is_real_time() -> bool:
    """Return True while a frame is rendered for a presentation in real time.

    >>> is_real_time()
    False
    """
    return _realtime.get()
