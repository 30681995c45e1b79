"""Virtual backgrounds: segmentation, mask smoothing and compositing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar, cast

import numpy as np

from dala.errors import ModelError, ParameterError, did_you_mean
from dala.gpu.compute import Buffer
from dala.gpu.compute.kernel import get as get_kernel
from dala.media.effects import virtual_background
from dala.media.frame import Frame
from dala.media.images import read
from dala.ml.gpu import load_model
from dala.ml.masks import TemporalSmoother, refine
from dala.ml.model import Model
from dala.ml.results import Matte, Prediction, Segmentation
from dala.resources import Closing
from dala.typing import ImageLike, NDArray

#: The height of masks at most; the effect scales them to the picture.
_ROWS: Final = 288
#: The model for realtime on a CPU, and the one with the better edges.
DEFAULT_MODEL: Final = "deeplab"
BETTER_MODEL: Final = "u2netp"
_ADVICE: Final = f"Use {DEFAULT_MODEL!r} or {BETTER_MODEL!r}."

ImageT = TypeVar("ImageT", bound=ImageLike)


class Background(Closing):
    """Blurs or replaces the background of a video, frame by frame.

    Args:
        model: "deeplab" (fast enough for video on a CPU; people and objects by ``label``), "u2netp"
            (any foreground, with soft edges, but about ten times slower), or another segmentation
            model.
        label: the class to keep, for models with labels.
        background: None to blur; a color (r, g, b) from 0 to 1; or a picture.
        radius: the blur radius in pixels.
        smooth: the strength of smoothing over time, from 0 to below 1.
        refined: whether the edges of the mask are aligned with those of the picture.
        device: the device for compositing.

    Example::

        with Background(radius=12) as background:
            for frame in background.stream(video.open("call.mp4")):
                ...
    """

    def __init__(
        self,
        model: Model[Prediction] | Model[Segmentation] | Model[Matte] | str = DEFAULT_MODEL,
        *,
        label: str = "person",
        background: ImageLike | Sequence[float] | None = None,
        radius: int = 12,
        smooth: float = 0.6,
        refined: bool = True,
        device: str | None = None,
    ) -> None:
        # A run on one pixel checks the parameters now. Pictures on a device are not copied.
        pixel, front = np.zeros((1, 1, 3), np.uint8), np.ones((1, 1), np.float32)
        behind = None if isinstance(background, Frame | Buffer) else background
        virtual_background(pixel, front, background=behind, radius=radius, device="cpu")
        self.model = load_model(model) if isinstance(model, str) else model
        if not isinstance(self.model, Model):
            raise ModelError.invalid(
                "Background", "model", "a Model or a name", type(model), _ADVICE
            )
        if self.model.spec.task not in ("segment", "matte"):
            raise ModelError(
                f"Background: model must be a segmentation model, got {self.model.name!r} for "
                f"{self.model.spec.task!r}. {_ADVICE}",
                call="Background",
                argument="model",
            )
        if self.model.spec.task == "segment" and self.model.labels:
            known = self.model.labels
            if label not in known:
                advice = did_you_mean(str(label), known) or f"Classes: {', '.join(known)}."
                raise ParameterError(
                    f"Background: {self.model.name!r} has no class {label!r}. {advice}",
                    call="Background",
                    argument="label",
                )
        self.label = label
        self.background = background
        self.radius = radius
        self.device = device
        self._smoother = TemporalSmoother(smooth)
        self._refined = refined

    def mask(self, image: ImageLike) -> NDArray:
        """Return the mask of the next picture, 0 to 1, at a reduced size."""
        if isinstance(image, Frame) and image.format in ("nv12", "i420"):
            image = image.to("rgb")
        small = self._small(image)
        found = self.model.predict(small)
        assert isinstance(found, Segmentation | Matte)
        mask = found.mask(self.label)
        if self._refined:
            gray = small[..., :3] @ np.array([0.299, 0.587, 0.114]) / 255
            mask = refine(mask, gray)
        return self._smoother(mask)

    def process(self, image: ImageT) -> ImageT:
        """Return the next picture with its background changed, as the same type."""
        source: Any = image  # the effect has one overload per type
        if isinstance(image, Frame) and image.format in ("nv12", "i420"):
            source = image.to("rgb")
        made = virtual_background(
            source,
            self.mask(source),
            background=self.background,
            radius=self.radius,
            device=self.device,
        )
        return cast(ImageT, made)

    def stream(self, frames: Iterable[ImageT]) -> Iterator[ImageT]:
        """Process all frames of a video, in order."""
        for frame in frames:
            yield self.process(frame)

    def reset(self) -> None:
        """Reset the smoothing, for example after a cut."""
        self._smoother.reset()

    def close(self) -> None:
        """Do nothing: the model stays open, as it may be shared."""

    def _small(self, image: ImageLike) -> NDArray:
        """Return the picture at the size of masks, as RGB of u8."""
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
