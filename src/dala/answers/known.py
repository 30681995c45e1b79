"""Filters whose bytes are known to differ from the reference engine's, by kind of engine.

The aim is an empty list. A test fails for an entry whose rows no longer differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_FLOATS: Final = "computed in floats, which engines round differently"

#: KNOWN[backend][filter]: why.
KNOWN: Final[Mapping[str, Mapping[str, str]]] = {
    "cpu": {
        "beauty": _FLOATS,
        "bicubic_scale": _FLOATS,
        "bilateral": _FLOATS,
        "blend": _FLOATS,
        "blur": _FLOATS,
        "box_blur": _FLOATS,
        "clahe": _FLOATS,
        "color_matrix": _FLOATS,
        "compositor": _FLOATS,
        "denoise": _FLOATS,
        "edge_detect": _FLOATS,
        "gaussian_blur": _FLOATS,
        "grayscale": _FLOATS,
        "hue": _FLOATS,
        "lut_apply": _FLOATS,
        "overlay": _FLOATS,
        "pixelate": _FLOATS,
        "remap": _FLOATS,
        "resize": _FLOATS,
        "rgb_to_yuv": _FLOATS,
        "rotate": _FLOATS,
        "saturation": _FLOATS,
        "sepia": _FLOATS,
        "sharpen": _FLOATS,
        "temperature": _FLOATS,
        "threshold": _FLOATS,
        "thumbnail": _FLOATS,
        "unsharp_mask": _FLOATS,
        "vignette": _FLOATS,
        "virtual_background": _FLOATS,
        "warp_affine": _FLOATS,
        "warp_perspective": _FLOATS,
        "white_balance": _FLOATS,
        "yuv_to_rgb": _FLOATS,
    },
    "webgpu": {
        "bicubic_scale": _FLOATS,
        "bilateral": _FLOATS,
        "blend": _FLOATS,
        "blur": _FLOATS,
        "box_blur": _FLOATS,
        "chroma_key": _FLOATS,
        "clahe": _FLOATS,
        "color_matrix": _FLOATS,
        "compositor": _FLOATS,
        "denoise": _FLOATS,
        "edge_detect": _FLOATS,
        "emboss": _FLOATS,
        "gaussian_blur": _FLOATS,
        "grade": _FLOATS,
        "hue": _FLOATS,
        "lut_apply": _FLOATS,
        "motion_blur": _FLOATS,
        "overlay": _FLOATS,
        "pixelate": _FLOATS,
        "remap": _FLOATS,
        "resize": _FLOATS,
        "rgb_to_yuv": _FLOATS,
        "rotate": _FLOATS,
        "saturation": _FLOATS,
        "sharpen": _FLOATS,
        "temperature": _FLOATS,
        "thumbnail": _FLOATS,
        "unsharp_mask": _FLOATS,
        "video_mix": _FLOATS,
        "virtual_background": _FLOATS,
        "warp_affine": _FLOATS,
        "warp_perspective": _FLOATS,
    },
}
