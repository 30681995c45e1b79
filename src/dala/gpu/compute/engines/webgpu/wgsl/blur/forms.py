"""Choose the form of a blur for a device and the size of a picture.

Strips (``strips``) need two barriers for every four rows. GPUs have them almost for free, and read
each pixel little more than once. Software adapters switch between all invocations of a workgroup
at a barrier: there tiles (``tiles``) are two to four times as fast.

Tiles are also for f32 images, whose pixels take four times the workgroup memory, and for programs
that are long or read distant neighbors. Web pages use them too: a page runs on any adapter, and has
one shader for pictures of all sizes.

A strip has few workgroups, so its number of rows depends on the number of pixels: there are four
classes (``SIZES``), the first for tiles only. WebGPU does not tell how many processors a device
has; the limits are from an NVIDIA H200, in ms for u8 with four channels, radius 3 and "chain" for
radius 3, sharpen and brightness; "128 x 36" are the invocations and rows of a workgroup:

======  =========  ======  ========  ========  ========  ========  ========
size    of         tiles   128 x 12  128 x 20  128 x 36  128 x 48  128 x 72
======  =========  ======  ========  ========  ========  ========  ========
360p    chain      0.0224  0.0268    0.0293    0.0397
360p    radius 3   0.0181  0.0188    0.0204    0.0256
720p    chain      0.0516  0.0463    0.0490    0.0519
1080p   chain      0.1191  0.1014    0.0984    0.0913
1080p   radius 3   0.0657  0.0430    0.0429    0.0436
1080p   radius 8   0.1017  0.0936    0.0841    0.0841
1080p   radius 12  0.1301  0.1413    0.1206    0.1178
4K      chain      0.1205            0.0973    0.0948    0.094     0.0971
4K      radius 1   0.0544            0.0329    0.0341    0.0331    0.0370
4K      radius 3   0.0674            0.0398    0.0391    0.0381    0.0418
4K      radius 5   0.0837            0.0518    0.0495    0.0492    0.0529
4K      radius 8   0.1044            0.0786    0.0701    0.0684    0.0661
4K      radius 12  0.1356            0.1221    0.1059    0.1026    0.1005
4K      radius 16  0.1659            0.1828    0.1572    0.1460    0.1433
======  =========  ======  ========  ========  ========  ========  ========

(The clock changed between the sizes: compare within a row. These are of sums in floats; since
bytes are summed in integers, the chain at 4K takes 0.071. Radius 1 alone takes 0.036 with 20 rows
and 0.039 with 48, radius 3 alone 0.040 with 16, 0.041 with 24 and 0.044 with 48.) At 4K, 256 x
72 take 0.0936 for radius 12, but 0.1588 for radius 16, whose sums leave too few registers for so
many invocations. One and three channels gain as much: radius 3 with three channels takes 0.134 on
tiles and 0.077 on strips.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dala.gpu.compute.engines.webgpu.limits import WORKGROUP_MEMORY
from dala.gpu.compute.engines.webgpu.wgsl.blur.finish import MAX_STATEMENTS, BlurShader, Finish
from dala.gpu.compute.engines.webgpu.wgsl.blur.strips import BlurStrip, choose_strip, write_strips
from dala.gpu.compute.engines.webgpu.wgsl.blur.sums import Sums
from dala.gpu.compute.engines.webgpu.wgsl.blur.tiles import BlurTile, choose_tile, write_tiles
from dala.gpu.compute.engines.webgpu.wgsl.pixels import ImageFormat

#: The largest radius of a blur in one dispatch.
ONE_DISPATCH_RADIUS: Final = 16

#: Workgroup memory of a blur: the size that every WebGPU device has. Some have a little less.
WORKGROUP_BYTES: Final = 16384
MIN_WORKGROUP_BYTES: Final = 16000

#: The approximate cost of a pass through memory, in the units of ``BlurTile.work``.
PASS_COST: Final = 25


#: The pixels with which the second, third and fourth class of sizes begin: between 360p and 720p,
#: 720p and 1080p, 1080p and 1440p.
SIZES: Final = (1 << 19, 3 << 19, 3 << 20)


@dataclass(frozen=True)
class BlurDevice:
    """The facts for the choice: the invocations of a workgroup, its memory, and the adapter."""

    workgroup: int = 256
    room: int = WORKGROUP_BYTES
    #: Whether strips are an advantage.
    strips: bool = True

    @classmethod
    def of(cls, limits: Mapping[str, int], workgroup: int, *, strips: bool) -> BlurDevice | None:
        """Return the device with some limits, or None if it has too little workgroup memory."""
        room = limits[WORKGROUP_MEMORY]
        if room < MIN_WORKGROUP_BYTES:
            return None
        return cls(workgroup, min(room, WORKGROUP_BYTES), strips)

    def size(self, height: int, width: int) -> int:
        """Return the class of a picture's size: 0 to 3, always 0 without strips."""
        return bisect_right(SIZES, height * width) if self.strips else 0

    def form(
        self, picture: ImageFormat, radius: int, finish: Finish, size: int
    ) -> BlurStrip | BlurTile | None:
        """Return the best form for a class of sizes, or None; there is one without programs."""
        strip, reach = None, finish.reach
        if size and finish.length <= MAX_STATEMENTS:
            strip = choose_strip(picture, radius, reach, self.room, self.workgroup, size)
        return strip or choose_tile(picture, radius, reach, self.room)

    def pays(self, form: BlurStrip | BlurTile, picture: ImageFormat, size: int) -> bool:
        """Return True if blurring the margins for programs is cheaper than another pass."""
        alone = self.form(picture, form.radius, Finish(), size)
        return alone is not None and form.work - alone.work <= PASS_COST


@lru_cache(256)
def write_blur(
    sums: Sums,
    finish: Finish,
    out: ImageFormat,
    form: BlurStrip | BlurTile,
    *,
    whole: bool = True,
    workgroup: int = 256,
) -> BlurShader:
    """Return the shader for images of one format; ``out`` is the format of the output.

    ``whole`` is False if the width is no multiple of four: then strips do not store u8 pixels four
    at a time, and tiles store each in its own word if it has fewer than four channels.
    """
    if isinstance(form, BlurStrip):
        return write_strips(sums, finish, out, form, whole=whole)
    apart = out.words and not whole
    return write_tiles(sums, finish, out, form, apart=apart, workgroup=workgroup)
