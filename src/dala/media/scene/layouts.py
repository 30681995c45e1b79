"""Layouts: arrange nodes side by side, stacked, or in a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Unpack

from dala.arguments import Integer, items_of
from dala.errors import ParameterError
from dala.media.scene.boxes import Box, cells
from dala.media.scene.builder import NodeBuilder
from dala.media.scene.options import LayoutOptions
from dala.options import takes

if TYPE_CHECKING:
    from dala.media.scene.keywords import LayoutKeywords
    from dala.media.scene.nodes.node import Node

#: Node types that ``grid`` arranges if it is given a number of cells.
_ARRANGED: Final = ("video", "image", "scene", "group")


class Layouts(NodeBuilder):
    """The methods ``side_by_side``, ``stack``, ``grid`` and ``set_pip_transform`` of scenes."""

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
        call = "set_pip_transform"
        found = self.scene_of()._check_open(call)._find(node, call)
        before = found.get("size")
        try:
            if size is not None:
                found.update(size=size)
            if position is not None:
                found.update(position=position)
        except BaseException:
            found.update(size=before)  # change both or neither
            raise

    @takes(LayoutOptions)
    def side_by_side(
        self, nodes: Sequence[Node | str], gap: float = 0, **given: Unpack[LayoutKeywords]
    ) -> list[Box]:
        """Arrange nodes side by side, equally wide; return their boxes.

        Args:
            nodes: the nodes or their ids, left to right.
            gap: pixels between them.
        """
        found = self._find_all(nodes, "side_by_side")
        return self._arrange("side_by_side", found, len(found), len(found), gap, given)

    @takes(LayoutOptions)
    def stack(
        self, nodes: Sequence[Node | str], gap: float = 0, **given: Unpack[LayoutKeywords]
    ) -> list[Box]:
        """Arrange nodes from top to bottom, equally high; return their boxes.

        Args:
            nodes: the nodes or their ids, from the top.
            gap: pixels between them.
        """
        found = self._find_all(nodes, "stack")
        return self._arrange("stack", found, len(found), 1, gap, given)

    @takes(LayoutOptions)
    def grid(
        self,
        nodes: int | Sequence[Node | str],
        gap: float = 0,
        *,
        columns: int | None = None,
        **given: Unpack[LayoutKeywords],
    ) -> list[Box]:
        """Arrange nodes in rows of equal cells; return the cells as (left, top, width, height).

        Args:
            nodes: the nodes or their ids; or the number of cells, which are filled with the
                scene's videos, images, groups and scenes in the order they were added.
            gap: pixels between cells.
            columns: cells per row; by default about as many as rows.
        """
        if isinstance(nodes, int) and not isinstance(nodes, bool):
            count = nodes
            if count < 1:
                raise ParameterError.invalid("grid", "nodes", "at least 1 cell", count)
            found = [n for n in self.container().children if n.type in _ARRANGED][:count]
        else:
            found = self._find_all(nodes, "grid")
            count = len(found)
        wide = math.ceil(math.sqrt(count)) if columns is None else columns
        Integer(1).check("grid", "columns", wide)
        return self._arrange("grid", found, count, wide, gap, given)

    # arguments --------------------------------------------------------------------------------
    def _find_all(self, nodes: int | Sequence[Node | str], call: str) -> list[Node]:
        scene = self.scene_of()._check_open(call)
        given = items_of(nodes)  # type: ignore[arg-type]  # it may be anything
        if not given:
            raise ParameterError.invalid(call, "nodes", "a list of at least one node", nodes)
        return [scene._find(node, call) for node in given]

    def _arrange(
        self, call: str, nodes: Sequence[Node], count: int, columns: int, gap: float,
        given: LayoutKeywords,
    ) -> list[Box]:  # fmt: skip
        """Move nodes into equal cells; return the cells."""
        options = LayoutOptions.checked(call, {"gap": gap, **given})
        box = options.area or (0.0, 0.0, self.scene_of().width, self.scene_of().height)
        found = cells(count, columns, box, options.gap)
        for node, cell in zip(nodes, found, strict=False):
            if options.fit is not None:
                node.set("fit", options.fit)
            node.place(*cell)
        return found
