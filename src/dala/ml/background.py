"""Virtual backgrounds: a mask by a model, steady over time, and compositing on our device."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain as joined
from typing import Any, Final, TypeVar, cast

import numpy as np

from dala.arguments import Flag, Quantity, Text
from dala.errors import ModelError, ParameterError, did_you_mean
from dala.gpu.compute import Buffer
from dala.gpu.compute.kernel import get as get_kernel
from dala.gpu.compute.params import PixelSize
from dala.media.effects import virtual_background
from dala.media.filters.plans import Filter
from dala.media.frame import PLANAR, Frame
from dala.media.images import read
from dala.media.video.chain import VideoChain
from dala.ml.gpu import load_model
from dala.ml.model import Model
from dala.ml.prepare import preprocess
from dala.ml.results import Matte, Prediction, Segmentation
from dala.resources import Closing
from dala.typing import ImageLike, NDArray

#: The model for realtime on a CPU, the one with the better edges, and the one for other classes.
DEFAULT_MODEL: Final = "selfie"
BETTER_MODEL: Final = "u2netp"
CLASS_MODEL: Final = "deeplab"
_ADVICE: Final = f"Use {DEFAULT_MODEL!r}, {BETTER_MODEL!r} or {CLASS_MODEL!r}."
#: The class that the default model keeps.
_PERSON: Final = "person"
#: The radius of the guided filter, in pixels of the mask.
_REFINE: Final = 4

ImageT = TypeVar("ImageT", bound=ImageLike)


class TemporalSmoother:
    """Smooths masks over time: small changes are damped, large ones pass.

    Args:
        amount: the weight of the previous mask where little changes, from 0 to below 1.

    >>> smooth = TemporalSmoother(0.5)
    >>> float(smooth(np.array([[0.0]]))[0, 0]), float(smooth(np.array([[0.2]]))[0, 0]) < 0.2
    (0.0, True)
    """

    def __init__(self, amount: float = 0.6) -> None:
        kind = Quantity(0, math.nextafter(1, 0), words="a number from 0 to below 1")
        self.amount = kind.check("TemporalSmoother", "amount", amount)
        self._last: NDArray | None = None

    def __call__(self, mask: NDArray) -> NDArray:
        """Return the next mask, smoothed. A mask of another size resets the history."""
        mask = np.asarray(mask, np.float32)
        last = self._last
        if last is not None and last.shape == mask.shape:
            # No smoothing where the mask flips, so moving objects leave no trail.
            keep = self.amount * (1 - np.clip(np.abs(mask - last) * 1.5, 0, 1))
            mask = (mask + (last - mask) * keep).astype(np.float32)
        self._last = mask
        return mask

    def reset(self) -> None:
        """Reset the history, for example after a cut."""
        self._last = None


class Background(Closing):
    """Blurs or replaces the background of a video, frame by frame.

    Args:
        model: "selfie" (people, in real time on a CPU; it comes with the package), "u2netp" (any
            foreground, with softer edges, but about sixty times slower), "deeplab" (people and
            objects by ``label``), or another segmentation model. By default "selfie", or "deeplab"
            for another label than "person".
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
        model: Model[Prediction] | Model[Segmentation] | Model[Matte] | str | None = None,
        *,
        label: str = _PERSON,
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
        self._smoother = TemporalSmoother(smooth)
        Text("the name of a class").check("Background", "label", label)
        Flag().check("Background", "refined", refined)
        if model is None:
            model = DEFAULT_MODEL if label == _PERSON else CLASS_MODEL
        # One thread runs the small model in 3 ms; decoding and encoding want the others.
        threads = 1 if isinstance(model, str) and model == DEFAULT_MODEL else None
        own = isinstance(model, str)
        self.model = load_model(model, threads=threads) if isinstance(model, str) else model
        try:
            self._check(model, label)
        except BaseException:
            if own:
                self.model.close()
            raise
        self.label = label
        self.background = background
        self.radius = radius
        self.device = device
        self._refine = _REFINE if refined else 0
        #: Whether the model's input is the whole picture, so that its output is a whole mask.
        self._whole = self.model.preprocess.get("fit", "stretch") == "stretch"
        #: The background at the size of the last frame.
        self._behind: tuple[tuple[int, int, str | None], Buffer] | None = None

    def _check(self, given: object, label: str) -> None:
        model = self.model
        if not isinstance(model, Model):
            expected = "a Model or a name"
            raise ModelError.invalid("Background", "model", expected, type(given), _ADVICE)
        if model.spec.task not in ("segment", "matte"):
            raise ModelError(
                f"Background: model must be a segmentation model, got {model.name!r} for "
                f"{model.spec.task!r}. {_ADVICE}"
            )
        if model.spec.task == "segment" and model.labels and label not in model.labels:
            known = model.labels
            advice = did_you_mean(str(label), known) or f"Classes: {', '.join(known)}."
            raise ParameterError(
                f"Background: {model.name!r} has no class {label!r}. {advice}", argument="label"
            )

    def mask(self, image: ImageLike) -> NDArray:
        """Return the mask of the next picture, 0 to 1, at the size of the model's output."""
        picture = self._picture(image)
        if self._whole:
            model = cast("Model[Prediction]", self.model)
            found: object = model.predict(preprocess(picture, model=model))
        else:
            found = self.model.predict(picture)
        assert isinstance(found, Segmentation | Matte)
        return self._smoother(found.mask(self.label))

    def process(self, image: ImageT) -> ImageT:
        """Return the next picture with its background changed, as the same type."""
        source: Any = self._picture(image)  # the effect has one overload per type
        params = self._params(source, self.mask(source))
        made = virtual_background(source, device=self.device, **params)
        return cast(ImageT, made)

    def stream(self, frames: Iterable[ImageT]) -> Iterator[ImageT]:
        """Process all frames of a video, in order.

        Frames in the planes of a video ("native", "nv12", "i420") are returned as "i420". On a GPU
        the model works on the next frame while this one is uploaded, composited and downloaded.
        """
        walk: Iterator[Any] = iter(frames)
        first = next(walk, None)
        if first is None:
            return iter(())
        given = joined([first], walk)
        if isinstance(first, Frame):
            device = self.device or first.pixels.device
            return cast("Iterator[ImageT]", self._stream_frames(given, device))
        return (self.process(picture) for picture in given)

    def _stream_frames(self, frames: Iterator[Frame], device: str) -> Iterator[Frame]:
        masks: dict[int, NDArray] = {}

        def filters(frame: Frame) -> Sequence[Filter]:
            return [("virtual_background", self._params(frame, masks.pop(id(frame))))]

        with VideoChain(filters, device=device) as chain:
            yield from chain.stream(self._masked(frames, masks))

    def _masked(self, frames: Iterator[Frame], masks: dict[int, NDArray]) -> Iterator[Frame]:
        """Yield frames whose mask is in ``masks``."""
        for frame in frames:
            masks[id(frame)] = self.mask(frame)
            yield frame

    def filters(self, frame: Frame) -> Sequence[Filter]:
        """Return the filters that change the background of the next frame of a video.

        They are for a ``VideoChain``, where others may follow them. Call it for each frame once, in
        order: masks are smoothed over time.
        """
        return [("virtual_background", self._params(frame, self.mask(frame)))]

    def reset(self) -> None:
        """Reset the smoothing, for example after a cut."""
        self._smoother.reset()

    def close(self) -> None:
        """Free the memory that was kept between frames. The model stays open: it may be shared."""
        if self._behind is not None:
            self._behind[1].free()
        self._behind = None

    def _params(self, frame: ImageLike, mask: NDArray) -> dict[str, Any]:
        return {
            "mask": mask,
            "background": self._placed(frame),
            "radius": self.radius,
            "refine": self._refine,
            "feather": 0 if self._refine else 2,
        }

    def _placed(self, frame: ImageLike) -> ImageLike | Sequence[float] | None:
        """Return the background; pictures are scaled to the frame's size once."""
        back: Any = self.background
        known = back is None or isinstance(back, tuple | list | Frame | Buffer)
        if known or not isinstance(frame, Frame):
            return cast("ImageLike | Sequence[float] | None", back)
        key = frame.height, frame.width, self.device or frame.pixels.device
        if self._behind is None or self._behind[0] != key:
            source = read(back, None, None, "Background").buffer(key[2])
            if source.shape[:2] != key[:2]:
                source = get_kernel("resize")(source, size=PixelSize(*key[1::-1]))
            self._behind = key, source
        return self._behind[1]

    def _picture(self, image: ImageLike) -> ImageLike:
        """Return a picture that filters take: video planes become RGB, where they are."""
        if isinstance(image, Frame) and image.format in PLANAR:
            return image.to("rgb")
        return image
