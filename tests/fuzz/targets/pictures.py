"""Encoded pictures."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageCms

from dala.media import Frame
from dala.png import encode_png
from tests.fuzz.target import Target, digest

PIXELS = np.random.default_rng(1).integers(0, 256, (5, 7, 4), np.uint8)


def saved(
    kind: str, mode: str = "RGB", pixels: np.ndarray | None = None, **options: object
) -> bytes:
    out = io.BytesIO()
    if pixels is None:
        Image.fromarray(PIXELS).convert(mode).save(out, kind, **options)
    else:
        Image.fromarray(pixels).save(out, kind, **options)
    return out.getvalue()


class Pictures(Target):
    """Pictures of all formats that Frame.open takes."""

    name = "pictures"
    words = (
        b"IHDR",
        b"IDAT",
        b"\xff\xd8",
        b"\xff\xda",
        b"\xff\xe1",
        b"RIFF",
        b"WEBP",
        b"II*\0",
        b"%!PS",
    )

    def seeds(self) -> list[bytes]:
        kinds = [("JPEG", "RGB"), ("BMP", "RGB"), ("TIFF", "RGBA"), ("GIF", "P"), ("WEBP", "RGBA")]
        plain = [saved(kind, mode) for kind, mode in (*kinds, ("PPM", "RGB"), ("TGA", "RGBA"))]
        turned = Image.Exif()
        turned[0x0112] = 6  # the orientation
        profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
        deep = saved("TIFF", pixels=PIXELS[..., 0].astype(np.uint16) * 257)
        cmyk = saved("JPEG", "CMYK")
        return [*plain, saved("JPEG", exif=turned, icc_profile=profile), deep, cmyk]

    def read(self, data: bytes) -> str:
        frame = Frame.open(data, device="cpu")
        return f"{frame.width}x{frame.height} {digest(frame.numpy().tobytes())}"


class Png(Pictures):
    """PNG files, with 8 and 16 bits, palettes, profiles and several frames."""

    name = "png"
    words = (
        b"IHDR",
        b"IDAT",
        b"IEND",
        b"PLTE",
        b"tRNS",
        b"iCCP",
        b"gAMA",
        b"cICP",
        b"acTL",
        b"fcTL",
        b"fdAT",
        b"zTXt",
        b"eXIf",
        b"\x89PNG\r\n\x1a\n",
    )

    def seeds(self) -> list[bytes]:
        deep = (PIXELS.astype(np.uint16) * 257).astype(">u2")
        out = io.BytesIO()
        Image.fromarray(deep[..., 0].astype(np.uint16)).save(out, "PNG")
        moving = [Image.fromarray(PIXELS), Image.fromarray(PIXELS[::-1].copy())]
        return [
            encode_png(PIXELS),
            encode_png(PIXELS[..., 0]),
            saved("PNG", "P"),
            saved("PNG", "1"),
            saved("PNG", "RGBA", save_all=True, append_images=moving),
            out.getvalue(),
        ]
