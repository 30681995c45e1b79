"""Frames in pixel formats of more than eight bits, and HDR with its metadata."""

from __future__ import annotations

import re
from typing import Final

from dala.gpu.compute import Buffer
from dala.gpu.compute.buffer import allocate
from dala.gpu.compute.kernel import get
from dala.media.frame import Frame
from dala.media.hdr import Hdr, MasteringDisplay
from dala.media.video.output.planes import picture_of
from dala.media.video.source import DecodedFrame, pyav
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


def deep_codec(container: str) -> str:
    """Return the default codec of a container for HDR and for more than eight bits.

    >>> deep_codec("mp4"), deep_codec("webm")
    ('hevc', 'av1')
    """
    return "av1" if container == "webm" else "hevc"


def takes_layout(encoder: str, pixel_format: str) -> bool:
    """Return whether an encoder of FFmpeg takes a pixel format."""
    return any(f.name == pixel_format for f in pyav().Codec(encoder, "w").video_formats or ())


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
    luma, chroma = height * width, small[0] * small[1]
    planes = (
        flat[:luma].reshape(height, width),
        flat[luma : luma + chroma].reshape(small),
        flat[luma + chroma : luma + 2 * chroma].reshape(small),
    )
    return picture_of(planes, pixel_format)


def _coded(frame: Frame, hdr: Hdr) -> Buffer:
    """Return display values as values of HLG or PQ."""
    pixels = _floats(frame)
    primaries = "bt2020" if frame.primaries == "bt2020" else "bt709"
    made: Buffer = get("display_to_hdr")(pixels, transfer=hdr.transfer, primaries=primaries)
    if pixels is not frame.pixels:
        pixels.free()
    return made


def _floats(frame: Frame) -> Buffer:
    if frame.dtype == "f32":
        return frame.pixels
    from dala.media.formats import SAME

    made = allocate(frame.pixels.engine, frame.shape, "f32", zero=False, call=_CALL)
    SAME.run([frame.pixels], made)
    return made


# metadata -------------------------------------------------------------------------------------
def hdr_options(encoder: str, hdr: Hdr, options: dict[str, str]) -> dict[str, str] | None:
    """Return an encoder's options with the metadata of HDR; None if it cannot store them.

    >>> hdr_options("libx265", Hdr("pq", max_cll=800, max_fall=100), {"x265-params": "aq-mode=2"})
    {'x265-params': 'aq-mode=2:hdr10=1:repeat-headers=1:max-cll=800,100'}
    """
    display, light = hdr.mastering, (hdr.max_cll, hdr.max_fall)
    if encoder == "libx265":
        parts = ["hdr10=1", "repeat-headers=1"] if hdr.transfer == "pq" else []
        parts += [f"master-display={_in_steps(display)}"] if display else []
        parts += [f"max-cll={light[0]},{light[1]}"] if any(light) else []
        return _joined(options, "x265-params", parts)
    if encoder == "libx264":
        parts = [f"mastering-display={_in_steps(display)}"] if display else []
        parts += [f"cll={light[0]},{light[1]}"] if any(light) else []
        return _joined(options, "x264-params", parts)
    if encoder == "libsvtav1":
        parts = [f"mastering-display={_as_numbers(display)}"] if display else []
        parts += [f"content-light={light[0]},{light[1]}"] if any(light) else []
        return _joined(options, "svtav1-params", parts)
    return None if display or any(light) else options


def _joined(options: dict[str, str], name: str, parts: list[str]) -> dict[str, str]:
    if not parts:
        return options
    return {**options, name: ":".join(filter(None, [options.get(name, ""), *parts]))}


def _in_steps(display: MasteringDisplay) -> str:
    """Return a mastering display in the integer steps of HEVC."""
    points = (display.green, display.blue, display.red, display.white)
    colors = [f"({round(x * 50000)},{round(y * 50000)})" for x, y in points]
    most, least = round(display.max_luminance * 10000), round(display.min_luminance * 10000)
    names = zip(("G", "B", "R", "WP"), colors, strict=True)
    return "".join(f"{name}{point}" for name, point in names) + f"L({most},{least})"


def _as_numbers(display: MasteringDisplay) -> str:
    points = (display.green, display.blue, display.red, display.white)
    names = zip(("G", "B", "R", "WP"), points, strict=True)
    text = "".join(f"{name}({x:.5f},{y:.5f})" for name, (x, y) in names)
    return f"{text}L({display.max_luminance:.4f},{display.min_luminance:.4f})"
