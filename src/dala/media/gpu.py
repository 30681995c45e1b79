"""One call a filter, and frame pipelines.

A picture is an array of (height, width), (height, width, 3) or (height, width, 4), u8 or f32; bytes
with ``width`` and ``height``; a Pillow image; a Frame; or a Buffer. You get back the kind you gave,
of the same channels and dtype. ``out`` is an array to write instead of a new one; ``device`` is
where the work is done, the current device (or that of the Frame or Buffer) where left out. What
each filter computes is in ``docs/media/filters.md``.

>>> import numpy as np
>>> int(invert(np.full((2, 2), 55, np.uint8), device="cpu")[0, 0])
200
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dala.errors import ParameterError
from dala.media.filters.pipeline import FramePipeline
from dala.media.filters.plans import Filter, apply, names

__all__ = [
    "beauty",
    "bicubic_scale",
    "blur",
    "brightness",
    "chroma_key",
    "contrast",
    "denoise",
    "dilate",
    "edge_detect",
    "erode",
    "filters",
    "gamma",
    "gaussian_blur",
    "grayscale",
    "hue",
    "invert",
    "lut_apply",
    "median",
    "overlay_alpha",
    "process_frame",
    "remap",
    "resize",
    "saturation",
    "sepia",
    "sharpen",
    "start_pipeline",
    "stop_pipeline",
    "video_mix",
    "vignette",
    "warp_affine",
    "warp_perspective",
]


def beauty(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    amount: float = 0.7,
    radius: int = 5,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Smooths skin and keeps edges."""
    return apply(img, width, height, "beauty", {"amount": amount, "radius": radius}, out, device)


def bicubic_scale(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    scale: float,
    antialias: bool = True,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """A picture made larger or smaller by a factor, bicubic."""
    return apply(
        img, width, height, "bicubic_scale", {"scale": scale, "antialias": antialias}, out, device
    )


def blur(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    radius: int = 3,
    sigma: float | None = None,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """A Gaussian blur over 2 * radius + 1 pixels; sigma is radius / 2 where left out."""
    return apply(img, width, height, "blur", {"radius": radius, "sigma": sigma}, out, device)


def brightness(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    value: float = 0.0,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Adds value, where 1.0 is the whole range."""
    return apply(img, width, height, "brightness", {"value": value}, out, device)


def chroma_key(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    key: Any = (0.0, 1.0, 0.0),
    threshold: float = 0.3,
    softness: float = 0.1,
    despill: float = 1.0,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Makes the key's colour transparent; the result always has alpha."""
    return apply(
        img,
        width,
        height,
        "chroma_key",
        {"key": key, "threshold": threshold, "softness": softness, "despill": despill},
        out,
        device,
    )


def contrast(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    value: float = 0.0,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Scales by 1 + value around middle gray."""
    return apply(img, width, height, "contrast", {"value": value}, out, device)


def denoise(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    radius: int = 2,
    sigma_space: float = 2.0,
    sigma_color: float = 0.1,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Bilateral: smooths and keeps edges."""
    return apply(
        img,
        width,
        height,
        "denoise",
        {"radius": radius, "sigma_space": sigma_space, "sigma_color": sigma_color},
        out,
        device,
    )


def dilate(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    radius: int = 1,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """The largest value of each channel around."""
    return apply(img, width, height, "dilate", {"radius": radius}, out, device)


def edge_detect(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    amount: float = 1.0,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """The Sobel magnitude of luma."""
    return apply(img, width, height, "edge_detect", {"amount": amount}, out, device)


def erode(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    radius: int = 1,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """The smallest value of each channel around."""
    return apply(img, width, height, "erode", {"radius": radius}, out, device)


def gamma(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    value: float = 1.0,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Colour to the power of 1 / value."""
    return apply(img, width, height, "gamma", {"value": value}, out, device)


def gaussian_blur(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    sigma: float = 1.5,
    radius: int | None = None,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """A Gaussian blur by its sigma; radius is 3 * sigma where left out."""
    return apply(
        img, width, height, "gaussian_blur", {"sigma": sigma, "radius": radius}, out, device
    )


def grayscale(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """BT.601 luma in all channels."""
    return apply(img, width, height, "grayscale", {}, out, device)


def hue(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    degrees: float = 0.0,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Turns colours around the gray axis."""
    return apply(img, width, height, "hue", {"degrees": degrees}, out, device)


def invert(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """One minus colour."""
    return apply(img, width, height, "invert", {}, out, device)


def lut_apply(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    lut: Any,
    method: str = "tetrahedral",
    amount: float = 1.0,
    domain_min: Any = None,
    domain_max: Any = None,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Colours through a look-up table: a Cube, a .cube file, or an array."""
    return apply(
        img,
        width,
        height,
        "lut_apply",
        {
            "lut": lut,
            "method": method,
            "amount": amount,
            "domain_min": domain_min,
            "domain_max": domain_max,
        },
        out,
        device,
    )


def median(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """The median of each channel over 3 x 3 pixels."""
    return apply(img, width, height, "median", {}, out, device)


def remap(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    map: Any,
    method: str = "bilinear",
    border: str = "constant",
    fill: Any = None,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Each pixel from where a map of (height, width, 2) says: x, then y."""
    return apply(
        img,
        width,
        height,
        "remap",
        {"map": map, "method": method, "border": border, "fill": fill},
        out,
        device,
    )


def resize(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    size: tuple[int, int],
    method: str = "bilinear",
    antialias: bool = True,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """A picture of another size (height, width)."""
    return apply(
        img,
        width,
        height,
        "resize",
        {"size": size, "method": method, "antialias": antialias},
        out,
        device,
    )


def saturation(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    value: float = 0.0,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Scales the distance from gray by 1 + value."""
    return apply(img, width, height, "saturation", {"value": value}, out, device)


def sepia(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    amount: float = 1.0,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """The brown of old prints."""
    return apply(img, width, height, "sepia", {"amount": amount}, out, device)


def sharpen(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    amount: float = 0.5,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Adds what sets a pixel apart from its four neighbours."""
    return apply(img, width, height, "sharpen", {"amount": amount}, out, device)


def vignette(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    amount: float = 0.5,
    radius: float = 0.75,
    softness: float = 0.45,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Darkens towards the corners."""
    return apply(
        img,
        width,
        height,
        "vignette",
        {"amount": amount, "radius": radius, "softness": softness},
        out,
        device,
    )


def warp_affine(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    matrix: Any,
    size: tuple[int, int] | None = None,
    method: str = "bilinear",
    border: str = "constant",
    fill: Any = None,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Each pixel from where six numbers lead, out of the result into the picture."""
    return apply(
        img,
        width,
        height,
        "warp_affine",
        {"matrix": matrix, "size": size, "method": method, "border": border, "fill": fill},
        out,
        device,
    )


def warp_perspective(
    img: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    matrix: Any,
    size: tuple[int, int] | None = None,
    method: str = "bilinear",
    border: str = "constant",
    fill: Any = None,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Each pixel from where nine numbers lead, out of the result into the picture."""
    return apply(
        img,
        width,
        height,
        "warp_perspective",
        {"matrix": matrix, "size": size, "method": method, "border": border, "fill": fill},
        out,
        device,
    )


def overlay_alpha(
    img: Any,
    over: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    opacity: float = 1.0,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """A second picture of the same size over the first."""
    return apply(
        img, width, height, "overlay_alpha", {"over": over, "opacity": opacity}, out, device
    )


def video_mix(
    img: Any,
    second: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    t: float = 0.5,
    out: Any = None,
    device: str | None = None,
) -> Any:
    """A cross-fade: t of 0 is the first picture, 1 the second."""
    return apply(img, width, height, "video_mix", {"second": second, "t": t}, out, device)


def filters() -> list[str]:
    """Names of all filters that a list for ``process_frame`` may hold, effects among them."""
    return names()


# frame pipelines --------------------------------------------------------------------------------
def start_pipeline(width: int, height: int, *, device: str | None = None) -> FramePipeline:
    """A context for frames of up to this size.

    >>> ctx = start_pipeline(2, 1, device="cpu")
    >>> process_frame(ctx, bytes([10, 20, 30, 255] * 2), [("brightness", {"value": 0.2})])
    b'=GQ\\xff=GQ\\xff'
    >>> stop_pipeline(ctx)
    """
    return FramePipeline(width, height, device=device)


def process_frame(
    ctx: FramePipeline,
    rgba: Any,
    filters: Sequence[Filter],
    *,
    width: int | None = None,
    height: int | None = None,
    out: Any = None,
) -> Any:
    """A frame through a list of filters, as one fused pipeline; see :class:`FramePipeline`."""
    _check(ctx, "process_frame")
    return ctx.process(rgba, filters, width=width, height=height, out=out)


def stop_pipeline(ctx: FramePipeline) -> None:
    """Frees a context. Stopping twice is fine."""
    _check(ctx, "stop_pipeline")
    ctx.close()


def _check(ctx: object, call: str) -> None:
    if not isinstance(ctx, FramePipeline):
        raise ParameterError(
            f"{call}: ctx is what start_pipeline(width, height) gave, {type(ctx).__name__} came."
        )
