"""Affine maps: from a video's picture to the scene, and into the groups of other nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from dala.media.scene.boxes import PlacedBox, place_content

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.nodes.video import VideoNode


class Affine(NamedTuple):
    """The map (x, y) to (a x + c y + e, b x + d y + f).

    >>> double = Affine(2, 0, 0, 2, 1, 0)
    >>> double.point(3, 4)
    (7, 8)
    >>> double.inverse().point(7, 8)
    (3.0, 4.0)
    """

    a: float = 1.0
    b: float = 0.0
    c: float = 0.0
    d: float = 1.0
    e: float = 0.0
    f: float = 0.0

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point goes."""
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f

    def vector(self, x: float, y: float) -> tuple[float, float]:
        """Return where a difference of points goes."""
        return self.a * x + self.c * y, self.b * x + self.d * y

    def after(self, first: Affine) -> Affine:
        """Return the map that applies ``first``, then this one."""
        a, b = self.vector(first.a, first.b)
        c, d = self.vector(first.c, first.d)
        return Affine(a, b, c, d, *self.point(first.e, first.f))

    def inverse(self) -> Affine:
        """Return the map back; the map must not flatten the plane."""
        a, b, c, d, e, f = self
        area = a * d - b * c
        back = Affine(d / area, -b / area, -c / area, a / area)
        x, y = back.vector(e, f)
        return back._replace(e=-x, f=-y)

    @classmethod
    def of(cls, place: PlacedBox) -> Self:
        """Return the map from the texels of placed content to where it is placed."""
        u0, v0, u1, v1 = place.crop
        across, down = 2 * place.hw / (u1 - u0), 2 * place.hh / (v1 - v0)
        a, b = across * place.cos, across * place.sin
        c, d = -down * place.sin, down * place.cos
        u, v = (u0 + u1) / 2, (v0 + v1) / 2
        return cls(a, b, c, d, place.cx - a * u - c * v, place.cy - b * u - d * v)


#: The texels of a picture that are visible: left, top, right, bottom.
Visible = tuple[float, float, float, float]


def picture_map(video: VideoNode) -> tuple[Affine, Visible] | None:
    """Return the map from a video's picture to the scene, and the visible part of the picture.

    None if the node shows nothing.
    """
    content = video.content()
    place = None if content is None else place_content(video, content)
    home = container_map(video)
    if place is None or home is None:
        return None
    return home.after(Affine.of(place)), place.crop


def container_map(node: Node) -> Affine | None:
    """Return the map from the coordinates of a node's position to the scene.

    The node may be in groups, which are placed, scaled and rotated themselves; None if one of them
    has no size.
    """
    made = Affine()
    for group in node.around():
        content = group.content()
        place = None if content is None else place_content(group, content)
        if place is None:
            return None
        made = Affine.of(place).after(made)
    return made
