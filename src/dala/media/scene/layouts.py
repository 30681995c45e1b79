"""Layouts of a scene as one call each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from dala.errors import ParameterError
from dala.media.scene.boxes import Box, arrange, columns_for
from dala.media.scene.nodes.properties import number

if TYPE_CHECKING:
    from dala.media.scene.nodes.group import GroupNode
    from dala.media.scene.nodes.node import Node

#: Node types that a layout takes when it is told a number only.
_LAID_OUT: Final = ("video", "image", "scene", "group")


class Arranging:
    """``side_by_side``, ``stack``, ``grid``, ``set_pip_transform``."""

    __slots__ = ()

    if TYPE_CHECKING:
        width: int
        height: int

        def _into(self) -> GroupNode: ...
        def _find(self, node: Any, call: str) -> Node: ...
        def _check_open(self, call: str) -> None: ...

    def set_pip_transform(
        self, node: Node | str, *, position: Any = None, size: Any = None
    ) -> None:
        """Moves and sizes a picture in a picture: (x, y) or a corner by name, (width, height)."""
        self._check_open("set_pip_transform")
        found = self._find(node, "set_pip_transform")
        before = found.get("size")
        try:
            if size is not None:
                found.update(size=size)
            if position is not None:
                found.update(position=position)
        except BaseException:
            found.update(size=before)  # all of it or nothing
            raise

    def side_by_side(
        self, nodes: Sequence[Node | str], gap: float = 0, *, area: Any = None, fit: Any = None
    ) -> list[Box]:
        """Lays nodes beside each other, equally wide. ``area`` is (left, top, width, height)."""
        found = self._find_all(nodes, "side_by_side")
        box = self._area(area, "side_by_side")
        return arrange(found, len(found), len(found), box, gap, fit, "side_by_side")

    def stack(
        self, nodes: Sequence[Node | str], gap: float = 0, *, area: Any = None, fit: Any = None
    ) -> list[Box]:
        """Lays nodes below each other, equally high."""
        found = self._find_all(nodes, "stack")
        box = self._area(area, "stack")
        return arrange(found, len(found), 1, box, gap, fit, "stack")

    def grid(
        self,
        nodes: int | Sequence[Node | str],
        gap: float = 0,
        *,
        columns: int | None = None,
        area: Any = None,
        fit: Any = None,
    ) -> list[Box]:
        """Lays nodes in rows of equal cells; gives the cells' boxes (left, top, width, height).

        Args:
            nodes: the nodes; or how many cells, into which the scene's videos, pictures, groups
                and scenes come in the order they were added.
            gap: pixels between cells.
            columns: how many a row; left out, about as many as there are rows.
            area: (left, top, width, height); left out, the whole scene.
            fit: given to the nodes if it is.
        """
        if isinstance(nodes, int) and not isinstance(nodes, bool):
            count = nodes
            if count < 1:
                raise ParameterError(f"grid: at least one cell is expected, {count} came.")
            found = [n for n in self._into().children if n.type in _LAID_OUT][:count]
        else:
            found = self._find_all(nodes, "grid")
            count = len(found)
        wide = columns_for(count) if columns is None else columns
        if isinstance(wide, bool) or not isinstance(wide, int) or wide < 1:
            raise ParameterError(f"grid: columns is a whole number above 0, {columns!r} came.")
        return arrange(found, count, wide, self._area(area, "grid"), gap, fit, "grid")

    # arguments --------------------------------------------------------------------------------
    def _find_all(self, nodes: Any, call: str) -> list[Node]:
        self._check_open(call)
        try:
            found = [self._find(node, call) for node in nodes]
        except TypeError:
            raise ParameterError(f"{call}: nodes is a list of nodes, {nodes!r} came.") from None
        if not found:
            raise ParameterError(f"{call}: at least one node is expected, none came.")
        return found

    def _area(self, given: Any, call: str) -> Box:
        if given is None:
            return 0.0, 0.0, float(self.width), float(self.height)
        try:
            left, top, width, height = (number()(n, f"{call}: area") for n in given)
        except (TypeError, ValueError) as error:
            if isinstance(error, ParameterError):
                raise
            raise ParameterError(
                f"{call}: area is (left, top, width, height), {given!r} came."
            ) from None
        return left, top, width, height
