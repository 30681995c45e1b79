"""What type checkers see of the filters: the result of a call has the type of its picture.

``make lint`` checks this file, and nothing runs it. A line that must be refused has a comment; mypy
reports one that is not needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

from PIL.Image import Image

from dala.gpu.compute import Buffer, Pixel, clamp, mix, pi, rgba, vec3
from dala.media import Frame, effects, gpu
from dala.typing import NDArray


def results(array: NDArray, frame: Frame, pillow: Image, buffer: Buffer, data: bytes) -> None:
    """Each kind of picture, and what a filter makes of it."""
    assert_type(gpu.blur(array, radius=3, sigma=None, out=array), NDArray)
    assert_type(gpu.blur(frame), Frame)
    assert_type(gpu.blur(pillow), Image)
    assert_type(gpu.blur(buffer, device="cpu"), Buffer)
    assert_type(gpu.brightness(data, 4, 4, 0.2), bytes)
    assert_type(gpu.overlay_alpha(frame, array, opacity=0.5), Frame)
    assert_type(gpu.lut_apply(array, lut=Path("film.cube"), method="trilinear"), NDArray)
    assert_type(effects.grade(pillow, gain=(1.1, 1.0, 0.9)), Image)
    assert_type(gpu.preprocess(frame, size=(224, 224)), Buffer)
    assert_type(gpu.preprocess(array, normalize=True), NDArray)
    assert_type(gpu.process_frame(gpu.start_pipeline(4, 4), frame, ["sepia"]), Frame)


def mistakes(array: NDArray, frame: Frame, data: bytes) -> None:
    """Calls that a checker refuses."""
    gpu.blur(array, raduis=3)  # type: ignore[call-overload]
    gpu.blur(array, radius="x")  # type: ignore[call-overload]
    gpu.blur(data)  # type: ignore[call-overload]
    gpu.thumbnail(array)  # type: ignore[call-overload]
    gpu.blur(frame, out=array)  # type: ignore[call-overload]
    gpu.warp_affine(array, matrix=(1, 0, 0, 0, 1, 0), method="cubic")  # type: ignore[call-overload]


def names_of_the_language(px: Pixel) -> None:
    """They have their types in ``dala.gpu.compute`` too."""
    assert_type(clamp(pi, 0.0, 1.0), float)
    assert_type(mix(px.rgb, px.rgb, 0.5), vec3)
    rgba(clamp(px.rgb, 0.0, 1.0), px.a)
