"""Layouts: arrange nodes side by side, stacked, or in a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dala.arguments import items_of
from dala.errors import ParameterError
from dala.media.scene.boxes import Box, arrange, columns_for
from dala.media.scene.nodes.property_types import NumberType

if TYPE_CHECKING:
    from dala.media.scene.nodes.group import GroupNode
    from dala.media.scene.nodes.node import Node

#: Node types that ``grid`` arranges if it is given a number of cells.
_ARRANGED: Final = ("video", "image", "scene", "group")


class Layouts:
    """The methods ``side_by_side``, ``stack``, ``grid`` and ``set_pip_transform`` of scenes."""

    __slots__: tuple[str, ...] = ()

    if TYPE_CHECKING:
        width: int
        height: int

        def container(self) -> GroupNode: ...
        def _find(self, node: Node | str, call: str) -> Node: ...
        def _check_open(self, call: str) -> None: ...

    def set_pip_transform(
        self,
        node: Node | str,
        *,
        position: str | Sequence[float] | None = None,
        size: Sequence[float | None] | None = None,
    ) -> None:
        """Move and resize a picture in picture.

        Args:
            node: the node, or its id.
            position: (x, y), or a corner, an edge or the center by name.
            size: (width, height).

        >>> import dala
        >>> with dala.media.Scene(640, 360, device="cpu") as scene:
        ...     small = scene.add_overlay(color="red", pip=True)
        ...     scene.set_pip_transform(small, position="bottom-left", size=(160, 90))
        ...     small.box
        (20.0, 250.0, 160.0, 90.0)
        """
        self._check_open("set_pip_transform")
        found = self._find(node, "set_pip_transform")
        before = found.get("size")
        try:
            if size is not None:
                found.update(size=size)
            if position is not None:
                found.update(position=position)
        except BaseException:
            found.update(size=before)  # change both or neither
            raise

    def side_by_side(
        self,
        nodes: Sequence[Node | str],
        gap: float = 0,
        *,
        area: Sequence[float] | None = None,
        fit: str | None = None,
    ) -> list[Box]:
        """Arrange nodes side by side, equally wide; return their boxes.

        Args:
            nodes: the nodes or their ids, left to right.
            gap: pixels between them.
            area: (left, top, width, height); by default the whole scene.
            fit: the fit of all nodes; by default each keeps its own.
        """
        found = self._find_all(nodes, "side_by_side")
        box = self._area(area, "side_by_side")
        return arrange(found, len(found), len(found), box, gap, fit, "side_by_side")

    def stack(
        self,
        nodes: Sequence[Node | str],
        gap: float = 0,
        *,
        area: Sequence[float] | None = None,
        fit: str | None = None,
    ) -> list[Box]:
        """Arrange nodes from top to bottom, equally high; return their boxes.

        The arguments are those of :meth:`side_by_side`.
        """
        found = self._find_all(nodes, "stack")
        box = self._area(area, "stack")
        return arrange(found, len(found), 1, box, gap, fit, "stack")

    def grid(
        self,
        nodes: int | Sequence[Node | str],
        gap: float = 0,
        *,
        columns: int | None = None,
        area: Sequence[float] | None = None,
        fit: str | None = None,
    ) -> list[Box]:
        """Arrange nodes in rows of equal cells; return the cells as (left, top, width, height).

        Args:
            nodes: the nodes or their ids; or the number of cells, which are filled with the
                scene's videos, images, groups and scenes in the order they were added.
            gap: pixels between cells.
            columns: cells per row; by default about as many as rows.
            area: (left, top, width, height); by default the whole scene.
            fit: the fit of all nodes; by default each keeps its own.
        """
        if isinstance(nodes, int) and not isinstance(nodes, bool):
            count = nodes
            if count < 1:
                raise ParameterError.invalid("grid", "nodes", "at least 1 cell", count)
            found = [n for n in self.container().children if n.type in _ARRANGED][:count]
        else:
            found = self._find_all(nodes, "grid")
            count = len(found)
        wide = columns_for(count) if columns is None else columns
        if isinstance(wide, bool) or not isinstance(wide, int) or wide < 1:
            raise ParameterError.invalid("grid", "columns", "an int of at least 1", columns)
        return arrange(found, count, wide, self._area(area, "grid"), gap, fit, "grid")

    # arguments --------------------------------------------------------------------------------
    def _find_all(self, nodes: int | Sequence[Node | str], call: str) -> list[Node]:
        self._check_open(call)
        given = items_of(nodes)  # type: ignore[arg-type]  # it may be anything
        if given is None:
            raise ParameterError.invalid(call, "nodes", "a list of nodes", nodes)
        found = [self._find(node, call) for node in given]
        if not found:
            raise ParameterError.invalid(call, "nodes", "a list of at least one node", nodes)
        return found

    def _area(self, given: Sequence[float] | None, call: str) -> Box:
        if given is None:
            return 0.0, 0.0, float(self.width), float(self.height)
        try:
            sides = items_of(given) or ()
            left, top, width, height = (NumberType().convert(n, call, "area") for n in sides)
        except (TypeError, ValueError) as error:
            if isinstance(error, ParameterError):
                raise
            raise ParameterError.invalid(
                call, "area", "(left, top, width, height)", given
            ) from None
        return left, top, width, height
