"""Filters inside a scene: lists of them over buffers, fused, without leaving the device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from dala.gpu.compute import Buffer
from dala.gpu.compute.buffer import allocate
from dala.gpu.compute.kernels.blur import radius_for
from dala.media.filters.pipeline import FramePipeline
from dala.media.kernels import kernel_from_text

if TYPE_CHECKING:
    from dala.media.filters.plans import Filter
    from dala.media.scene.nodes.effect import EffectNode

#: The largest picture that goes through filters, a side.
LARGEST: Final = 16384

#: Filters that mix neighbouring pixels evenly. Over pictures with alpha they mix what is seen:
#: colours by their alpha, and the alpha too, which plain filters leave as it is.
SPREADING: Final = ("blur", "gaussian_blur")

#: Filters that leave what is opaque opaque.
KEEP_ALPHA: Final = frozenset(
    {
        "beauty", "blur", "brightness", "contrast", "curves", "denoise", "dilate", "edge_detect",
        "erode", "gamma", "gaussian_blur", "grade", "grayscale", "hue", "invert", "lut_apply",
        "median", "saturation", "sepia", "sharpen", "temperature", "vignette",
    }
)  # fmt: skip

#: A shadow's shape: how much was drawn (white on black) as alpha.
LIGHT_AS_ALPHA = kernel_from_text("def light_as_alpha(px: Pixel): return rgba(0.0, 0.0, 0.0, px.r)")
_MULTIPLIED = kernel_from_text("def multiplied(px: Pixel): return rgba(px.rgb * px.a, 1.0)")
_ALPHA_AS_LIGHT = kernel_from_text(
    "def alpha_as_light(px: Pixel): return rgba(px.a, px.a, px.a, 1.0)"
)
_JOINED = kernel_from_text("""
def joined(color: Pixel, alpha: Pixel):
    return rgba(color.rgb / alpha.r if alpha.r > 0.0 else color.rgb, alpha.r)
""")


class Filtering:
    """Runs the filters of one item of a scene."""

    def __init__(self, device: str) -> None:
        self._pipeline = FramePipeline(LARGEST, LARGEST, device=device)
        #: What the last result was made from.
        self.key: Any = None
        self.result: Buffer | None = None
        #: Changes with the result.
        self.version = 0

    def run(self, source: Buffer, filters: Sequence[Filter], opaque: bool) -> Buffer:
        """Pixels through filters; ``opaque`` is whether they let nothing through."""
        last = max((i for i, f in enumerate(filters) if _spreads(f)), default=0)
        if (opaque and keep_alpha(filters[:last])) or not any(map(_spreads, filters)):
            made: Buffer = self._pipeline.process(source, filters)
            return made
        for spreads, part in _runs(filters):
            if spreads and not opaque:
                source = self._spread(source, part)
            else:
                source = self._pipeline.process(source, part)
            opaque = opaque and keep_alpha(part)
        return source

    def chain(self, source: Buffer, effects: Sequence[EffectNode], opaque: bool) -> Buffer:
        """Pixels through effects; those of opacity 1 as one list, others mixed with their input."""
        if all(e._values["opacity"] == 1.0 for e in effects):
            return self.run(source, [(e.filter, e.params) for e in effects], opaque)
        for e in effects:
            made = self.run(source, [(e.filter, e.params)], opaque)
            share = e._values["opacity"]
            if share < 1.0 and made.shape == source.shape:
                made = self._pipeline.process(source, [("video_mix", {"second": made, "t": share})])
            source = made
            opaque = opaque and keep_alpha([e.filter])
        return source

    def _spread(self, source: Buffer, filters: Sequence[Filter]) -> Buffer:
        color = self._pipeline.process(source, [_MULTIPLIED, *filters])
        alpha = self._pipeline.process(source, [_ALPHA_AS_LIGHT, *filters])
        made = allocate(source.engine, color.shape, "u8", zero=False, call="Scene")
        _JOINED.run([color, alpha], made)
        return made

    @property
    def passes(self) -> int:
        """Passes over memory that the last list took."""
        return self._pipeline.passes

    def close(self) -> None:
        """Frees all."""
        self._pipeline.close()
        self.result = None


def spread_by(effects: Iterable[EffectNode]) -> int:
    """How many pixels effects carry what is seen beyond where it was."""
    total = 0
    for e in effects:
        if _spreads(e.filter):
            radius = e.get("radius")
            total += radius_for(e.get("sigma")) if radius is None else radius
    return total


def keep_alpha(filters: Iterable[Filter]) -> bool:
    """True where all leave what is opaque opaque; of a kernel of one's own nothing is known."""
    names = [f[0] if isinstance(f, tuple) else f for f in filters]
    return all(isinstance(name, str) and name in KEEP_ALPHA for name in names)


def _spreads(item: Filter) -> bool:
    return (item[0] if isinstance(item, tuple) else item) in SPREADING


def _runs(filters: Sequence[Filter]) -> list[tuple[bool, list[Filter]]]:
    """Neighbours of one sort together."""
    found: list[tuple[bool, list[Filter]]] = []
    for item in filters:
        spreads = _spreads(item)
        if not found or found[-1][0] != spreads:
            found.append((spreads, []))
        found[-1][1].append(item)
    return found
