"""Frames in pixel formats of more than eight bits, and HDR with its metadata."""

from __future__ import annotations

import re
from typing import Final

from dala.gpu.compute import Buffer
from dala.gpu.compute.kernel import get
from dala.media.formats import plain
from dala.media.frame import Frame
from dala.media.hdr import Hdr, MasteringDisplay
from dala.media.video.output.planes import picture_of, split_planes
from dala.media.video.source import DecodedFrame, av
from dala.typing import Params

_CALL: Final = "video.write"
#: FFmpeg's names of the layouts of more than eight bits that are written.
DEEP_LAYOUTS: Final = (
    "yuv420p10le", "yuv422p10le", "yuv444p10le", "yuv420p12le", "yuv422p12le", "yuv444p12le",
    "yuv420p16le", "yuv422p16le", "yuv444p16le", "gbrp10le", "gbrp12le", "gbrp16le",
)  # fmt: skip
_NAME: Final = re.compile(r"(?:yuv(420|422|444)p|gbrp)(\d\d)le")
#: The layout of HDR that every player of it takes.
HDR_LAYOUT: Final = "yuv420p10le"
#: The option of an encoder that holds metadata, and its keys for display and light levels.
_HDR_PARAMS: Final = {
    "libx265": ("x265-params", "master-display", "max-cll"),
    "libx264": ("x264-params", "mastering-display", "cll"),
    "libsvtav1": ("svtav1-params", "mastering-display", "content-light"),
}


def deep_codec(container: str) -> str:
    """Return the default codec of a container for HDR and for more than eight bits.

    >>> deep_codec("mp4"), deep_codec("webm")
    ('hevc', 'av1')
    """
    return "av1" if container == "webm" else "hevc"


def takes_layout(encoder: str, pixel_format: str) -> bool:
    """Return whether an encoder of FFmpeg takes a pixel format."""
    return any(f.name == pixel_format for f in av.Codec(encoder, "w").video_formats or ())


def deep_picture(
    frame: Frame, pixel_format: str, *, matrix: str, range: str, hdr: Hdr | None
) -> DecodedFrame:
    """Return a frame as a picture of PyAV in one of ``DEEP_LAYOUTS``.

    With ``hdr``, frames are display values (SDR white is 1.0) and are coded by its transfer.
    """
    found = _NAME.fullmatch(pixel_format)
    assert found is not None, pixel_format
    layout = found[1] or "444"
    if frame.format not in ("rgb", "rgba"):
        frame = frame.to("rgb")
    pixels = frame.pixels if hdr is None else _coded(frame, hdr)
    params: Params = {
        "bits": int(found[2]),
        "matrix": matrix if found[1] else "rgb",
        "range": range if found[1] else "full",
        "layout": layout,
    }
    kernel = get("rgb_to_yuv16")
    words = kernel.new_output([pixels], params)
    kernel.run([pixels], words, params)
    if pixels is not frame.pixels:
        pixels.free()
    flat = words.numpy().view("<u2")
    if not flat.flags.writeable:
        flat = flat.copy()
    height, width = frame.height, frame.width
    small = -(-height // (2 if layout == "420" else 1)), -(-width // (1 if layout == "444" else 2))
    return picture_of(split_planes(flat, (height, width), small), pixel_format)


def _coded(frame: Frame, hdr: Hdr) -> Buffer:
    """Return display values as values of HLG or PQ."""
    own = frame.dtype == "f32"
    pixels = frame.pixels if own else plain(frame.pixels, frame.shape, "f32")
    primaries = "bt2020" if frame.primaries == "bt2020" else "bt709"
    made: Buffer = get("display_to_hdr")(pixels, transfer=hdr.transfer, primaries=primaries)
    if not own:
        pixels.free()
    return made


# metadata -------------------------------------------------------------------------------------
def hdr_options(encoder: str, hdr: Hdr, options: dict[str, str]) -> dict[str, str] | None:
    """Return an encoder's options with the metadata of HDR; None if it cannot store them.

    >>> hdr_options("libx265", Hdr("pq", max_cll=800, max_fall=100), {"x265-params": "aq-mode=2"})
    {'x265-params': 'aq-mode=2:hdr10=1:repeat-headers=1:max-cll=800,100'}
    """
    display, light = hdr.mastering, (hdr.max_cll, hdr.max_fall)
    if encoder not in _HDR_PARAMS:
        return None if display or any(light) else options
    name, mastering, levels = _HDR_PARAMS[encoder]
    parts = [options.get(name, "")]
    if encoder == "libx265" and hdr.transfer == "pq":
        parts += ["hdr10=1", "repeat-headers=1"]
    if display:
        parts.append(f"{mastering}={_shown(display, in_steps=encoder != 'libsvtav1')}")
    if any(light):
        parts.append(f"{levels}={light[0]},{light[1]}")
    return {**options, name: ":".join(filter(None, parts))} if any(parts) else options


def _shown(display: MasteringDisplay, in_steps: bool) -> str:
    """Return a mastering display in the integer steps of HEVC, or as numbers."""
    names = {"G": display.green, "B": display.blue, "R": display.red, "WP": display.white}
    light = display.max_luminance, display.min_luminance
    if in_steps:
        points = [f"{n}({round(x * 50000)},{round(y * 50000)})" for n, (x, y) in names.items()]
        return f"{''.join(points)}L({round(light[0] * 10000)},{round(light[1] * 10000)})"
    points = [f"{name}({x:.5f},{y:.5f})" for name, (x, y) in names.items()]
    return f"{''.join(points)}L({light[0]:.4f},{light[1]:.4f})"
