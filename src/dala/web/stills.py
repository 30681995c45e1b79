"""Pictures of an exported page: the one that it shows at first, and the result as a still."""

from __future__ import annotations

import io
import os
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from dala.arguments import refuse_url
from dala.errors import ParameterError, ShapeError
from dala.media.images import read
from dala.png import encode_png
from dala.typing import ImageLike, NDArray, PathLike
from dala.web.sources import FilterSource, WebSource

#: Formats that every browser shows, by suffix.
_SHOWN: Final = {".jpg": "jpg", ".jpeg": "jpg", ".png": "png", ".webp": "webp"}
_MIME: Final = {"jpg": "image/jpeg", "png": "image/png", "webp": "image/webp"}
_PLAIN: Final = "without WebGPU the page shows the picture as it is"
_QUALITY: Final = 88
#: The longer side of a still, in pixels.
_MOST: Final = 960


class PageImage(NamedTuple):
    """The file of a picture."""

    data: bytes
    #: "jpg", "png" or "webp".
    kind: str

    @property
    def mime(self) -> str:
        """The media type."""
        return _MIME[self.kind]


def first_picture(picture: ImageLike | PathLike | None, call: str) -> PageImage:
    """Return the picture that a page shows at first; a photograph by default."""
    if picture is None:
        photos = resources.files("dala.samples").joinpath("photos")
        return PageImage(photos.joinpath("coffee.jpg").read_bytes(), "jpg")
    if isinstance(picture, str | os.PathLike):
        refuse_url(call, "picture", picture)
        path = Path(os.fspath(picture))
        kind = _SHOWN.get(path.suffix.lower())
        if kind is None:
            known = ", ".join(_SHOWN)
            raise ParameterError.invalid(call, "picture", f"a file that ends in {known}", str(path))
        try:
            return PageImage(path.read_bytes(), kind)
        except FileNotFoundError:
            raise FileNotFoundError(f"{call}: there is no file {str(path)!r}.") from None
    return _encoded(np.asarray(read(picture, None, None, call).pixels))


def still(picture: PageImage, source: WebSource, device: str) -> tuple[PageImage, str]:
    """Return the chain's result for a picture, and a note if it could not be made."""
    if not isinstance(source, FilterSource):
        return picture, _PLAIN
    if find_spec("PIL") is None:
        return picture, f"{_PLAIN}: Pillow is not installed"
    try:
        return _encoded(_result(picture, source, device)), ""
    except (ParameterError, ShapeError) as error:  # a box that is larger than the picture, say
        return picture, f"{_PLAIN}: {error}"


def _result(picture: PageImage, source: FilterSource, device: str) -> NDArray:
    from PIL import Image

    from dala.media.filters.pipeline import FramePipeline

    with Image.open(io.BytesIO(picture.data)) as opened:
        image = opened.convert("RGBA")
    if source.size is not None:
        image = image.resize(source.size)
    else:
        image.thumbnail((_MOST, _MOST))
    with FramePipeline(image.width, image.height, device=device) as pipeline:
        return np.asarray(pipeline.process(np.asarray(image), source.filters))


def _encoded(pixels: NDArray) -> PageImage:
    if pixels.dtype != np.uint8:
        pixels = (np.clip(np.nan_to_num(pixels), 0.0, 1.0) * 255.0 + 0.5).astype(np.uint8)
    opaque = pixels.ndim == 2 or pixels.shape[2] < 4 or bool((pixels[..., 3] == 255).all())
    if not opaque or find_spec("PIL") is None:
        return PageImage(encode_png(pixels), "png")
    from PIL import Image

    file = io.BytesIO()
    plain = pixels if pixels.ndim == 2 else pixels[..., :3].squeeze()
    Image.fromarray(np.ascontiguousarray(plain)).save(file, "JPEG", quality=_QUALITY)
    return PageImage(file.getvalue(), "jpg")
