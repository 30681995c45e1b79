"""Presence: the nodes of a scene that exist at a time, and the time inside groups.

A node with a start or an end is drawn, and its source read, only between the two. The nodes of a
group, and their animations, run on the group's own time, which its speed, trim and loop decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from dala.trace.recorder import OFF, tracer

if TYPE_CHECKING:
    from dala.media.scene.nodes.group import GroupNode
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.scene import Scene
    from dala.media.sources.seconds import Moment


class Moving(Protocol):
    """A node that changes with the scene's time."""

    def advance(self, moment: Moment) -> None:
        """Go to a time."""


class Presence:
    """Moves the nodes of a scene to a time, as far as they are there."""

    def __init__(self, scene: Scene) -> None:
        self._nodes = scene._nodes
        self._animator = scene.animator
        #: The nodes that change with time.
        self._movers: list[Node] | None = None
        #: The nodes that are not always there, each after the group it is in.
        self._bounded: list[Node] = []
        #: The time inside each group at the current time, None if it is not there; and whether
        #: it is or will soon be.
        self._inside: dict[GroupNode | None, tuple[Moment | None, bool]] = {}

    def refresh(self) -> None:
        """Look at all nodes again: some were added or removed, or have other times."""
        self._movers = None

    def _look(self) -> list[Node]:
        nodes = [node for node in self._nodes.values() if node.DRAWN]
        self._bounded = [node for node in nodes if _is_bounded(node)]
        for node in nodes:
            if not node.present and not _is_bounded(node):
                node.present = True
                node.changed(node.PROPERTIES["visible"])
        groups = [node for node in nodes if node.HOLDS == "nodes"]
        timed = any(group.clip.start or not group.clip.plain for group in groups)
        self._animator.local_time = self._seconds if timed else None
        self._movers = [node for node in nodes if hasattr(node, "advance")]
        return self._movers

    def advance(self, moment: Moment) -> None:
        """Set animated properties, find the nodes that are there, and move those on."""
        movers = self._look() if self._movers is None else self._movers
        self._inside = {None: (moment, True)}
        self._animator.advance(moment.seconds)
        for node in list(self._bounded):
            local, near = self._time_in(node.parent)
            there = local is not None and node.clip.exists(local)
            node.approach(near and (local is None or node.clip.is_near(local)))
            if there != node.present:
                node.present = there
                node.changed(node.PROPERTIES["visible"])
        for node in list(movers):
            if node.present:
                local, _ = self._time_in(node.parent)
                if local is not None:
                    with tracer.span("compose", node.id) if tracer.on else OFF:
                        cast(Moving, node).advance(local)

    def _time_in(self, group: GroupNode | None) -> tuple[Moment | None, bool]:
        """Return the time inside a group, and whether the group is near."""
        if group is None or group.parent is None:
            return self._inside[None]
        found = self._inside.get(group)
        if found is None:
            outer, near = self._time_in(group.parent)
            inner = None if outer is None else group.local_time(outer)
            near = near and (outer is None or group.clip.is_near(outer))
            found = self._inside[group] = inner, near
        return found

    def _seconds(self, node: object, seconds: float) -> float | None:
        """Return the time that the animations of a node go by; None if its group is not there."""
        group = getattr(node, "parent", None)
        if group is None or not self._inside:
            return seconds
        local, _ = self._time_in(group)
        return None if local is None else local.seconds


def _is_bounded(node: Node) -> bool:
    """Return True if a node, or a group around it, is not always there."""
    return any(at.clip.bounded for at in (node, *node.around()))
