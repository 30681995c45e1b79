"""Pictures and filters for surfaces, which know neither; see ``dala.extensions``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from dala.errors import CommandError, ParameterError
from dala.media import images
from dala.media.filters.declarations import declared
from dala.media.filters.plans import plan, run_on
from dala.media.frame import Frame
from dala.media.pictures.pixels import as_bytes, rgba
from dala.typing import ImageLike, NDArray, PathLike


def picture_of(value: ImageLike | PathLike, call: str) -> NDArray:
    """Return the straight RGBA pixels of a picture or of its file, (h, w, 4) of uint8.

    >>> picture_of(np.zeros((2, 3, 3), np.uint8), "image").shape
    (2, 3, 4)
    """
    if isinstance(value, (str, os.PathLike)):
        value = Frame.open(value)
    given = images.check_pixels(images.read(value, None, None, call).pixels, call)
    pixels = as_bytes(np.asarray(given))
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3, 4):
        raise ParameterError.invalid(call, "picture", "a picture", value)
    return pixels if pixels.shape[2] == 4 else rgba(pixels, None)


def filtered(pixels: NDArray, filters: Sequence[tuple[str, dict[str, Any]]]) -> NDArray:
    """Return pixels after filters, on the CPU.

    Their names may come from strangers: filters that would open a file, run a model or allocate a
    picture of another size are refused.

    >>> filtered(np.zeros((2, 3, 4), np.uint8), [("blur", {"radius": 1})]).shape
    (2, 3, 4)
    """
    for name, given in filters:
        spec = declared().get(name)
        if spec is not None and (
            spec.resizes
            or any(
                p.type in ("picture", "background") or (p.is_input and p.name in given)
                for p in spec.parameters
            )
        ):
            expected = "filters that keep the size, and take no other picture, table or map"
            raise CommandError.invalid("layer", "filters", expected, name)
    steps = plan(list(filters), pixels.shape, "u8", "layer")
    picture = images.read(pixels, None, None, "layer")
    return np.asarray(run_on(picture, steps, None, "cpu", "layer"))
