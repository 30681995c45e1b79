"""H.264 for WebCodecs: pictures without delay, in Annex B, one message each."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np

from dala.errors import DalaError
from dala.media import gpu
from dala.media.video.output.layouts import i420_planes, picture_of
from dala.resources import Closing
from dala.typing import NDArray

#: The smallest side that x264 takes with 4:2:0 chroma.
SMALLEST: Final = 16
#: An encoder of PyAV, which has no types.
AvEncoder: TypeAlias = Any


@cache
def h264_works() -> bool:
    """Return whether this machine encodes H.264.

    >>> isinstance(h264_works(), bool)
    True
    """
    try:
        with H264Encoder(64, 64, device="cpu") as encoder:
            data, key = encoder.encode(np.zeros((64, 64, 4), np.uint8), force_key=True)
    except (ImportError, DalaError, OSError, ValueError):
        return False
    return key and bool(data) and bool(encoder.codec)


class H264Encoder(Closing):
    """An encoder of pictures of one size; both sides are even.

    Args:
        width: of the pictures, in pixels.
        height: of the pictures, in pixels.
        rate: pictures per second, at most.
        device: the device that converts colors.

    >>> with H264Encoder(64, 48, device="cpu") as encoder:
    ...     data, key = encoder.encode(np.zeros((48, 64, 4), np.uint8), force_key=True)
    >>> key, data[:4] == bytes((0, 0, 0, 1)), encoder.codec[:5]
    (True, True, 'avc1.')
    """

    def __init__(
        self, width: int, height: int, *, rate: Fraction | None = None, device: str | None = None
    ) -> None:
        import av

        self.width, self.height = width, height
        self._device = device
        #: The codec as WebCodecs names it; "" before the first picture.
        self.codec = ""
        self._number = 0
        encoder: AvEncoder = av.CodecContext.create("libx264", "w")
        encoder.width, encoder.height, encoder.pix_fmt = width, height, "yuv420p"
        encoder.time_base = Fraction(1, 1000)
        encoder.framerate = rate or Fraction(30)
        encoder.gop_size = 600
        encoder.max_b_frames = 0
        encoder.thread_type = "SLICE"
        encoder.thread_count = 2 if width * height > 320 * 240 else 1
        encoder.color_range, encoder.colorspace = 1, 1  # limited, BT.709
        encoder.color_primaries, encoder.color_trc = 1, 1
        encoder.options = {
            "preset": "ultrafast",
            "tune": "zerolatency",
            "crf": "18",
            "profile": "baseline",
            "x264-params": "repeat-headers=1:annexb=1:scenecut=0:keyint=600:bframes=0",
        }
        encoder.open()
        self._encoder: AvEncoder | None = encoder

    def encode(self, pixels: NDArray, *, force_key: bool = False) -> tuple[bytes, bool]:
        """Return a picture as bytes, and whether it can be decoded without earlier ones."""
        from av.video.frame import PictureType

        assert self._encoder is not None
        planes = np.asarray(
            gpu.rgb_to_yuv(
                pixels, format="i420", matrix="bt709", range="limited", device=self._device
            )
        )
        picture = picture_of(i420_planes(planes), "yuv420p")
        picture.pts, picture.time_base = self._number * 33, Fraction(1, 1000)
        self._number += 1
        picture.color_range, picture.colorspace = 1, 1
        picture.pict_type = PictureType.I if force_key else PictureType.NONE
        packets = self._encoder.encode(picture)
        data = b"".join(bytes(packet) for packet in packets)
        key = any(packet.is_keyframe for packet in packets)
        if key and not self.codec:
            self.codec = _codec(data)
        return data, key

    def close(self) -> None:
        """Free the encoder."""
        self._encoder = None


def _codec(data: bytes) -> str:
    """Return the codec of a key picture, from the profile and level in its parameter set.

    >>> _codec(bytes((0, 0, 0, 1, 0x67, 0x42, 0xC0, 0x1F, 0)))
    'avc1.42C01F'
    """
    at = 0
    while (at := data.find(b"\0\0\1", at)) >= 0:
        unit = data[at + 3 : at + 7]
        if len(unit) == 4 and unit[0] & 31 == 7:
            return f"avc1.{unit[1:4].hex().upper()}"
        at += 3
    return ""
