"""Virtual backgrounds: a segmentation model, a steady mask, and the picture put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from dala.errors import ModelError, ParameterError, did_you_mean
from dala.gpu.compute import Buffer
from dala.gpu.compute.kernel import get as get_kernel
from dala.media.effects import virtual_background
from dala.media.frame import Frame
from dala.media.images import read
from dala.ml.gpu import load_model
from dala.ml.masks import Steady, refine
from dala.ml.model import Model
from dala.resources import Closing

#: Masks are refined at this height at most; the effect scales them to the picture.
_ROWS: Final = 288


class Background(Closing):
    """Keeps what a model sees in front; the rest is blurred or replaced. One video, in order.

    Args:
        model: "u2netp" (whatever stands in front, with soft edges), "deeplab" (quicker; people and
            things by ``label``), or a model that segments.
        label: what stays, of models that know labels.
        background: None to blur; a colour (r, g, b) of 0..1; or a picture.
        radius: of the blur.
        smooth: how steady the mask is in time, 0 to below 1.
        refined: whether its edges are drawn to those of the picture.
        device: where pictures are put together.
    """

    def __init__(
        self,
        model: Model | str = "u2netp",
        *,
        label: str = "person",
        background: Any = None,
        radius: int = 12,
        smooth: float = 0.6,
        refined: bool = True,
        device: str | None = None,
    ) -> None:
        # Tried on a pixel, so that what is wrong with them is told now; what is on a device already
        # stays there.
        pixel, front = np.zeros((1, 1, 3), np.uint8), np.ones((1, 1), np.float32)
        behind = None if isinstance(background, Frame | Buffer) else background
        virtual_background(pixel, front, background=behind, radius=radius, device="cpu")
        self.model = load_model(model) if isinstance(model, str) else model
        if not isinstance(self.model, Model):
            raise ModelError(
                f"Background: model is a name or a model, {type(model).__name__} came. "
                "Use 'u2netp' or 'deeplab'."
            )
        if self.model.spec.task not in ("segment", "matte"):
            raise ModelError(
                f"Background: a model that segments is needed, {self.model.name!r} is one that "
                f"does {self.model.spec.task!r}. Use 'u2netp' or 'deeplab'."
            )
        if self.model.spec.task == "segment" and self.model.labels:
            known = self.model.labels
            if label not in known:
                hint = did_you_mean(str(label), known) or f"There are: {', '.join(known)}."
                raise ParameterError(
                    f"Background: {self.model.name!r} has no class {label!r}. {hint}"
                )
        self.label = label
        self.background = background
        self.radius = radius
        self.device = device
        self._steady = Steady(smooth)
        self._refined = refined

    def mask(self, image: Any) -> Any:
        """The mask of the next picture, 0..1, at the size it is made at."""
        if isinstance(image, Frame) and image.format in ("nv12", "i420"):
            image = image.to("rgb")
        small = self._small(image)
        mask = self.model.predict(small).mask(self.label)
        if self._refined:
            gray = small[..., :3] @ np.array([0.299, 0.587, 0.114]) / 255
            mask = refine(mask, gray)
        return self._steady(mask)

    def process(self, image: Any) -> Any:
        """The next picture with its background changed, of the kind given."""
        if isinstance(image, Frame) and image.format in ("nv12", "i420"):
            image = image.to("rgb")
        return virtual_background(
            image,
            self.mask(image),
            background=self.background,
            radius=self.radius,
            device=self.device,
        )

    def stream(self, frames: Iterable[Any]) -> Iterator[Any]:
        """All frames of a video, in order."""
        for frame in frames:
            yield self.process(frame)

    def reset(self) -> None:
        """Forgets the past, as after a cut."""
        self._steady.reset()

    def close(self) -> None:
        """Nothing is held but the model, which stays open for others."""

    def _small(self, image: Any) -> np.ndarray[Any, Any]:
        """The picture at the size masks are made at, RGB of u8."""
        picture = read(image, None, None, "Background")
        height, width = picture.shape[:2]
        source = picture.buffer(None)
        if height > _ROWS:
            size = _ROWS, max(1, round(width * _ROWS / height))
            source = get_kernel("resize")(source, size=size)
        pixels = source.numpy()
        if pixels.dtype != np.uint8:
            pixels = np.rint(np.clip(pixels, 0, 1) * 255).astype(np.uint8)
        if pixels.ndim == 2:
            pixels = np.repeat(pixels[..., None], 3, axis=2)
        return np.ascontiguousarray(pixels[..., :3])
