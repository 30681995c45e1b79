"""Faces that cannot be recognized: blurred, pixelated or covered, in pictures and videos."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar, Unpack, cast

import numpy as np

from dala import forks
from dala.arguments import Integer, Selection
from dala.errors import ModelError
from dala.gpu.command import color_to_rgba
from dala.media import gpu as filters
from dala.ml.boxes import iou
from dala.ml.gpu import load_model
from dala.ml.model import Model
from dala.ml.options import HideOptions
from dala.ml.prepare import host_pixels, read_rgb
from dala.ml.results import Box, Detection, Face, Faces, Prediction
from dala.ml.track import Tracker
from dala.options import takes
from dala.resources import Closing
from dala.typing import ImageLike, NDArray

if TYPE_CHECKING:
    from fractions import Fraction

    from dala.ml.keywords import HideKeywords

__all__ = ["FaceHider", "HiddenFace", "HiddenFrame"]

_CALL: Final = "FaceHider"
WAYS: Final = ("blur", "pixelate", "box")
#: The radius of the blur and the side of blocks, as fractions of a face's larger side.
_RADIUS: Final = 0.3
_BLOCK: Final = 0.2
_LARGEST_RADIUS: Final = 200
#: Overlap of two faces, as a fraction of the smaller, from which they are one.
_SAME: Final = 0.6
#: The same from one frame that is looked at to the next, where a track is new.
_MOVED: Final = 0.2
#: How much of a tile's side it shares with its neighbors.
_SHARED: Final = 0.35
#: Growth of a face that is not found, in each frame.
_GROWTH: Final = 0.02

ImageT = TypeVar("ImageT", bound=ImageLike)


@dataclass(frozen=True)
class HiddenFace:
    """A face that was hidden: its box without the margin.

    ``found`` is False where the model did not find it, and it is hidden because it was found some
    frames before or after.

    >>> HiddenFace((0, 0, 8, 8), 0.9).found
    True
    """

    box: Box
    score: float
    id: int | None = None
    found: bool = True


class HiddenFrame(NamedTuple, Generic[ImageT]):
    """A frame with hidden faces, the faces, and its time (None for pictures without one)."""

    frame: ImageT
    faces: list[HiddenFace]
    time: Fraction | None


@takes(HideOptions)
class FaceHider(Closing):
    """Blurs, pixelates or covers the faces in pictures and videos.

    In a video a face stays hidden for some frames after the model no longer finds it, at the place
    where it is expected, and is hidden some frames before it was first found. No model finds every
    face: look at the result before you rely on it.

    Args:
        how: "blur", "pixelate" or "box".
        model: "blazeface" (faces near the camera; it comes with the package), "blazeface_back"
            (smaller ones, too), or a loaded model of faces, which stays yours.

    Example::

        with FaceHider("blur") as hider:
            for hidden in hider.stream(video.open("street.mp4")):
                sink.write(hidden.frame)
    """

    def __init__(
        self,
        how: str = "blur",
        *,
        model: Model[Prediction] | Model[Faces] | str = "blazeface",
        **given: Unpack[HideKeywords],
    ) -> None:
        Selection(*WAYS).check(_CALL, "how", how)
        options = HideOptions.checked(_CALL, given)
        if options.radius is not None:
            most = _LARGEST_RADIUS if how == "blur" else 4096
            Integer(1, most).check(_CALL, "radius", options.radius)
        self.how, self.radius = how, options.radius
        self.margin, self.score = options.margin, options.score
        red, green, blue, _ = color_to_rgba(options.color)
        self.color = (int(red), int(green), int(blue))
        self.keep, self.ahead, self.tiles = options.keep, options.ahead, options.tiles
        self.every = options.every
        self._own = isinstance(model, str)
        self.model = cast("Model[Faces]", load_model(model) if isinstance(model, str) else model)
        if not isinstance(self.model, Model) or self.model.spec.task != "faces":
            advice = "Use 'blazeface' or 'blazeface_back'."
            raise ModelError.invalid(_CALL, "model", "a model of faces", model, advice)

    def close(self) -> None:
        """Close the model, unless it was given."""
        if self._own:
            self.model.close()

    # faces ------------------------------------------------------------------------------------
    def find(self, image: ImageLike, score: float | None = None) -> Faces:
        """Return the faces of a picture, also those of its parts if ``tiles`` is above 1."""
        least = self.score if score is None else score
        found = self.model.predict(image, score=least)
        if self.tiles == 1:
            return found
        pixels = host_pixels(read_rgb(image, _CALL))
        every: list[Face] = list(found)
        for left, top, part in _parts(pixels, self.tiles):
            every += (_moved(face, left, top) for face in self.model.predict(part, score=least))
        return Faces(_distinct(every), found.raw)

    def process(self, image: ImageT) -> ImageT:
        """Return a picture with its faces hidden, as the same type."""
        return self.hide(image, [HiddenFace(f.box, f.score) for f in self.find(image)])

    def stream(self, frames: Iterable[ImageT]) -> Iterator[HiddenFrame[ImageT]]:
        """Yield the frames of a video with their faces hidden, in order."""
        known: set[int] = set()
        lost: set[int] = set()
        waiting: deque[tuple[ImageT, list[HiddenFace]]] = deque()
        for frame, now in self._between(frames):
            fresh = [
                replace(face, found=False)
                for face in now
                if face.found and (face.id is None or face.id not in known or face.id in lost)
            ]
            known |= {face.id for face in now if face.id is not None}
            lost = {face.id for face in now if not face.found and face.id is not None}
            for _, before in waiting:
                before += [face for face in fresh if not _is_among(face.box, before)]
            waiting.append((frame, now))
            if len(waiting) > self.ahead:
                yield self._out(*waiting.popleft())
        while waiting:
            yield self._out(*waiting.popleft())

    def _between(self, frames: Iterable[ImageT]) -> Iterator[tuple[ImageT, list[HiddenFace]]]:
        """Yield each frame with its faces, which move evenly between the frames looked at."""
        keep = -(-self.keep // self.every)
        tracker = Tracker(high=self.score, low=self.score / 2, keep=keep, by_class=False)
        last: list[HiddenFace] = []
        skipped: list[ImageT] = []
        for frame, found in self._found(frames):
            if found is None:
                skipped.append(frame)
                continue
            now = self._tracked(tracker, found)
            for k, one in enumerate(skipped, 1):
                yield one, _moving(last, now, k / (len(skipped) + 1))
            yield frame, now
            skipped.clear()
            last = now
        for one in skipped:
            yield one, _moving(last, last, 0)

    def _found(self, frames: Iterable[ImageT]) -> Iterator[tuple[ImageT, Faces | None]]:
        """Yield each frame with its faces, if it was looked at; the next one is meanwhile."""
        pool = forks.pool(1, "dala-faces")
        waiting: deque[tuple[ImageT, Future[Faces] | None]] = deque()

        def out() -> tuple[ImageT, Faces | None]:
            frame, looked = waiting.popleft()
            return frame, None if looked is None else looked.result()

        try:
            for number, frame in enumerate(frames):
                looked = None
                if number % self.every == 0:
                    run = copy_context().run  # the device and the limits of the caller
                    looked = pool.submit(run, self.find, frame, self.score / 2)
                waiting.append((frame, looked))
                if len(waiting) > self.every:
                    yield out()
            while waiting:
                yield out()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _tracked(self, tracker: Tracker, found: Faces) -> list[HiddenFace]:
        """Return the faces of the next frame: found ones, and expected ones."""
        marked = [Detection(f.box, "face", f.score, k) for k, f in enumerate(found)]
        ids = {track.index: track.id for track in tracker.update(marked)}
        made = [
            HiddenFace(face.box, face.score, ids.get(k))
            for k, face in enumerate(found)
            if face.score >= self.score or k in ids
        ]
        for track in tracker.lost:
            grown = _grown(track.box, _GROWTH * track.missed * self.every)
            made.append(HiddenFace(grown, track.score, track.id, found=False))
        return made

    def _out(self, frame: ImageT, faces: list[HiddenFace]) -> HiddenFrame[ImageT]:
        return HiddenFrame(self.hide(frame, faces), faces, getattr(frame, "time", None))

    # pixels -----------------------------------------------------------------------------------
    def hide(self, image: ImageT, faces: list[HiddenFace]) -> ImageT:
        """Return a picture with these faces hidden; the same object if there are none."""
        if not faces:
            return image
        picture = read_rgb(image, _CALL)
        pixels = np.array(host_pixels(picture))
        for face in faces:
            self._hide(pixels, face.box)
        return cast(ImageT, picture.give(pixels))

    def _hide(self, pixels: NDArray, box: Box) -> None:
        """Hide a face in place."""
        height, width = pixels.shape[:2]
        size = max(box[2] - box[0], box[3] - box[1])
        x1, y1, x2, y2 = _grown(box, self.margin)
        left, top = max(math.floor(x1), 0), max(math.floor(y1), 0)
        right, bottom = min(math.ceil(x2), width), min(math.ceil(y2), height)
        if left >= right or top >= bottom:
            return
        part = pixels[top:bottom, left:right]
        color = part if part.ndim == 2 else part[..., :3]  # alpha stays
        if self.how == "box":
            color[:] = _fill(self.color, pixels)
            return
        if self.how == "pixelate":
            color[:] = _blocks(
                np.ascontiguousarray(color), self.radius or max(2, round(_BLOCK * size))
            )
            return
        radius = self.radius or min(_round_up(_RADIUS * size), _LARGEST_RADIUS)
        sharp = np.ascontiguousarray(part)  # with alpha, as one run of bytes a row
        blurred = filters.blur(sharp, radius=radius)
        edge, weights = _soft_edge(left, top, right, bottom, (x1, y1, x2, y2))
        before, after = (each.reshape(edge.size, -1) for each in (sharp, blurred))
        place = np.flatnonzero(edge)
        old = before[place]
        mixed = old + weights[:, None] * (after[place].astype(np.float32) - old)
        after[place] = np.rint(mixed) if pixels.dtype == np.uint8 else mixed
        if part.ndim > 2:
            after[:, 3:] = before[:, 3:]
        part[:] = blurred


def _round_up(radius: float) -> int:
    """Return a radius that many sizes of faces share: each has a plan of its own.

    >>> [_round_up(radius) for radius in (0.4, 7.2, 33.1)]
    [2, 8, 40]
    """
    whole = max(2, math.ceil(radius))
    step = 1 << max(0, whole.bit_length() - 3)
    return -(-whole // step) * step


def _soft_edge(left: int, top: int, right: int, bottom: int, box: Box) -> tuple[NDArray, NDArray]:
    """Return where a rounded box has a soft edge, or is not, and the weights there, 0 to 1.

    Elsewhere, mostly, they are 1.
    """
    x1, y1, x2, y2 = box
    x = (np.arange(left, right, dtype=np.float32) + 0.5 - (x1 + x2) / 2) / max((x2 - x1) / 2, 0.5)
    y = (np.arange(top, bottom, dtype=np.float32) + 0.5 - (y1 + y2) / 2) / max((y2 - y1) / 2, 0.5)
    far = x[None] ** 4 + y[:, None] ** 4
    edge = far > 0.656  # a little below 0.9 ** 4
    weights: NDArray = np.clip((1 - far[edge] ** 0.25) * 10, 0, 1).astype(np.float32)
    return edge, weights


def _blocks(pixels: NDArray, side: int) -> NDArray:
    """Return a picture of blocks that have the mean of their pixels."""
    height, width = pixels.shape[:2]
    rows, columns = np.arange(0, height, side), np.arange(0, width, side)
    sums = np.add.reduceat(np.add.reduceat(pixels.astype(np.float64), rows, 0), columns, 1)
    high = np.diff(np.append(rows, height))
    wide = np.diff(np.append(columns, width))
    counts = (high[:, None] * wide).reshape(len(rows), len(columns), *[1] * (pixels.ndim - 2))
    means = sums / counts
    if pixels.dtype == np.uint8:
        means = np.rint(means)
    return np.repeat(np.repeat(means, high, 0), wide, 1).astype(pixels.dtype)


def _fill(color: tuple[int, int, int], pixels: NDArray) -> NDArray:
    """Return a color in the form of a picture's pixels."""
    rgb = np.array(color, np.float64)
    if pixels.dtype != np.uint8:
        rgb = rgb / 255
    if pixels.ndim == 2 or pixels.shape[2] == 1:
        rgb = np.array([rgb @ (0.299, 0.587, 0.114)])
    return (np.rint(rgb) if pixels.dtype == np.uint8 else rgb).astype(pixels.dtype)


def _moving(before: list[HiddenFace], after: list[HiddenFace], share: float) -> list[HiddenFace]:
    """Return the faces of a frame that was not looked at, between two that were."""
    left, made = list(after), []
    for face in before:
        other = next((one for one in left if _is_same(face, one)), face)
        left = [one for one in left if one is not other]
        box = tuple(a + share * (b - a) for a, b in zip(face.box, other.box, strict=True))
        made.append(replace(face, box=cast("Box", box)))
    return [replace(face, found=False) for face in made + left]


def _is_same(one: HiddenFace, other: HiddenFace) -> bool:
    """Return whether faces of two frames are one, by their tracks, or else by their places."""
    if one.id is None or other.id is None:
        return bool(iou(np.array(one.box), np.array([other.box]))[0] > _MOVED)
    return one.id == other.id


def _grown(box: Box, share: float) -> Box:
    """Return a box that is larger by a share of its larger side, on each side."""
    x1, y1, x2, y2 = box
    by = share * max(x2 - x1, y2 - y1)
    return x1 - by, y1 - by, x2 + by, y2 + by


def _parts(pixels: NDArray, count: int) -> Iterator[tuple[int, int, NDArray]]:
    """Yield overlapping parts of a picture, with left and top of each."""
    height, width = pixels.shape[:2]

    def spans(length: int) -> list[tuple[int, int]]:
        side = min(length, math.ceil(length / count * (1 + _SHARED)))
        return [(k * (length - side) // max(count - 1, 1), side) for k in range(count)]

    for top, high in spans(height):
        for left, wide in spans(width):
            yield left, top, np.ascontiguousarray(pixels[top : top + high, left : left + wide])


def _moved(face: Face, dx: int, dy: int) -> Face:
    x1, y1, x2, y2 = face.box
    points = tuple(replace(p, x=p.x + dx, y=p.y + dy) for p in face.keypoints)
    return replace(face, box=(x1 + dx, y1 + dy, x2 + dx, y2 + dy), keypoints=points)


def _distinct(faces: list[Face]) -> list[Face]:
    """Return faces, leaving out each that a surer one covers for the most part."""
    kept: list[Face] = []
    for face in sorted(faces, key=lambda f: -f.score):
        boxes = np.array([face.box, *(k.box for k in kept)], np.float64)
        if kept and _covered(boxes[0], boxes[1:]).max() > _SAME:
            continue
        kept.append(face)
    return kept


def _covered(box: NDArray, others: NDArray) -> NDArray:
    """Return the share of the smaller of two boxes that both have."""
    areas = np.maximum(np.prod(others[:, 2:] - others[:, :2], 1), 1e-9)
    own = max(float(np.prod(box[2:] - box[:2])), 1e-9)
    union = iou(box, others)
    common = union * (areas + own) / (1 + union)
    share: NDArray = common / np.minimum(areas, own)
    return share


def _is_among(box: Box, faces: list[HiddenFace]) -> bool:
    """Return True if one of the faces covers a box for the most part, or the other way around."""
    others = np.array([face.box for face in faces], np.float64).reshape(-1, 4)
    return bool(iou(np.array(box, np.float64), others).max(initial=0) > _SAME)
