"""The report of a scene: its nodes and its last frame."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dala.errors import DalaError
from dala.media.scene.builder import NodeBuilder
from dala.media.scene.compositor.damage import area
from dala.media.scene.compositor.display_list import DisplayList

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node


class SceneReport(NodeBuilder):
    """The method ``explain`` of scenes, and their form in notebooks."""

    def _repr_html_(self) -> str:
        """The nodes, and the last frame if there is one; nothing is rendered."""
        from dala.notebook import html_picture, html_table, html_text

        scene = self.scene_of()
        parts = [html_text(repr(scene))]
        if not scene._closed and scene._pool.front is not None:
            with suppress(DalaError):
                parts.append(html_picture(scene._pool.front.surface.buffer.numpy()))
        nodes = list(scene._nodes.values())
        if nodes:
            rows = ((n.id, n.type, *_place(n)) for n in nodes)
            parts.append(html_table(["node", "type", "position", "z-index"], rows, len(nodes)))
        return "".join(parts)

    def explain(self) -> str:
        """Describe the last frame: its draws, back to front, and the work done for them."""
        scene = self.scene_of()._check_open("Scene.explain")
        stats = scene.stats
        whole = area(scene._layer.rect)
        lines = [
            f"scene {scene.width}x{scene.height} on {scene.device}: {stats['nodes']} nodes, "
            f"{stats['draws']} draws, {len(scene._pool.framebuffers)} framebuffers",
            f"last frame: {stats['ms']:.3f} ms, {stats['dirty_pixels']} of {whole} pixels drawn, "
            f"{stats.get('passes', 0)} intermediate pictures, "
            f"{stats.get('filtered', 0)} filter lists",
        ]
        if scene._base.count:
            lines.append(f"cached as one picture: the lowest {scene._base.count} draws")
        if scene.sound_report:
            lines.append(f"sound of the last file: {scene.sound_report}")
        lines += _describe(scene._layer, "  ")
        return "\n".join(lines)


def _describe(layer: DisplayList, indent: str) -> list[str]:
    lines = []
    for item in layer.items:
        name = " + ".join(e.name for e in item.below) if item.below else item.node.type
        parts = ", ".join(d.part for d in item.draws) or "nothing visible"
        lines.append(f"{indent}{item.node.id} ({name}): {parts}")
        if item.node.effects:
            lines.append(f"{indent}  effects: {' + '.join(e.name for e in item.node.effects)}")
        if item.inner:
            lines += _describe(item.inner[0], indent + "  ")
    return lines


def _place(node: Node) -> tuple[str, str]:
    if not node.DRAWN:
        return "", ""
    return f"{node.x:g}, {node.y:g}", f"{node.z_index:g}"
