"""Filters of a scene: fused filter lists over buffers on the device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from dala.gpu.compute import Buffer
from dala.gpu.compute.buffer import allocate
from dala.gpu.compute.composite import Compositor
from dala.gpu.compute.kernels.blur import radius_for
from dala.media.filters.declarations import declared
from dala.media.filters.pipeline import FramePipeline
from dala.media.kernels import kernel_from_text
from dala.media.scene.compositor.pictures import LivePicture

if TYPE_CHECKING:
    from dala.media.filters.plans import Filter
    from dala.media.scene.nodes.effect import EffectNode

#: Largest width and height of a picture that is filtered.
LARGEST: Final = 16384

#: Filters that average neighboring pixels. On pictures with alpha they run on premultiplied colors
#: and on the alpha itself, which other filters leave as it is.
BLURS: Final = ("blur", "gaussian_blur")

#: The shape of a shadow, drawn white on black, as alpha.
RED_TO_ALPHA = kernel_from_text("def red_to_alpha(px: Pixel): return rgba(0.0, 0.0, 0.0, px.r)")
_PREMULTIPLY = kernel_from_text("def premultiply(px: Pixel): return rgba(px.rgb * px.a, 1.0)")
_ALPHA_TO_GRAY = kernel_from_text(
    "def alpha_to_gray(px: Pixel): return rgba(px.a, px.a, px.a, 1.0)"
)
_UNPREMULTIPLY = kernel_from_text("""
def unpremultiply(color: Pixel, alpha: Pixel):
    return rgba(color.rgb / alpha.r if alpha.r > 0.0 else color.rgb, alpha.r)
""")


class ItemFilters(LivePicture):
    """The filters of one item of a display list; the picture is their last result."""

    def __init__(self, compositor: Compositor) -> None:
        super().__init__(compositor)
        self._pipeline = FramePipeline(LARGEST, LARGEST, device=compositor.device)
        #: Identifies the input of the last result.
        self.key: object = None
        #: The number of the frame that is drawn.
        self.frame = 0

    def _process(self, source: Buffer, filters: Sequence[Filter]) -> Buffer:
        return self._pipeline.process(source, filters, number=self.frame)

    def run(self, source: Buffer, filters: Sequence[Filter], opaque: bool) -> Buffer:
        """Return the filtered pixels; ``opaque`` says whether all pixels of the source are."""
        last = max((i for i, f in enumerate(filters) if _is_blur(f)), default=0)
        if (opaque and keep_alpha(filters[:last])) or not any(map(_is_blur, filters)):
            return self._process(source, filters)
        for blurs, run in groupby(filters, _is_blur):
            part = list(run)
            if blurs and not opaque:
                source = self._blur_with_alpha(source, part)
            else:
                source = self._process(source, part)
            opaque = opaque and keep_alpha(part)
        return source

    def chain(self, source: Buffer, effects: Sequence[EffectNode], opaque: bool) -> Buffer:
        """Return the pixels after effects; those of opacity below 1 are mixed with their input."""
        if all(e.property_values["opacity"] == 1.0 for e in effects):
            return self.run(source, [(e.filter, e.params) for e in effects], opaque)
        for e in effects:
            made = self.run(source, [(e.filter, e.params)], opaque)
            opacity = e.property_values["opacity"]
            if opacity < 1.0 and made.shape == source.shape:
                made = self._process(source, [("video_mix", {"second": made, "t": opacity})])
            source = made
            opaque = opaque and keep_alpha([e.filter])
        return source

    def _blur_with_alpha(self, source: Buffer, filters: Sequence[Filter]) -> Buffer:
        color = self._process(source, [_PREMULTIPLY, *filters])
        alpha = self._process(source, [_ALPHA_TO_GRAY, *filters])
        made = allocate(source.engine, color.shape, "u8", zero=False, call="Scene")
        _UNPREMULTIPLY.run([color, alpha], made)
        return made

    def close(self) -> None:
        """Free all buffers."""
        super().close()
        self._pipeline.close()


def extent_of(effects: Iterable[EffectNode]) -> int:
    """Return how far effects extend beyond the box of a node, in pixels."""
    total = 0
    for e in effects:
        if _is_blur(e.filter):
            radius = e.get("radius")
            total += radius_for(e.get("sigma")) if radius is None else radius
    return total


def keep_alpha(filters: Iterable[Filter]) -> bool:
    """Return True if all filters keep opaque pixels opaque; custom kernels may not."""
    known = declared()
    names = [f[0] if isinstance(f, tuple) else f for f in filters]
    return all(isinstance(n, str) and n in known and known[n].keeps_alpha for n in names)


def _is_blur(item: Filter) -> bool:
    return (item[0] if isinstance(item, tuple) else item) in BLURS
