"""Models from pictures to pictures, such as super-resolution; large pictures in tiles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from dala.errors import ModelError, ParameterError
from dala.ml.model import Model, ModelInput
from dala.ml.prepare import LUMA, host_pixels, read_rgb
from dala.ml.results import Enhanced
from dala.ml.spec import wrong_output
from dala.typing import NDArray

#: Ranges of inputs and outputs by "normalize": the factor and the shift from 0..1.
_RANGES: Final = {"unit": (1.0, 0.0), "raw": (255.0, 0.0), "signed": (2.0, -1.0)}
#: The largest output, in bytes of f32.
_LARGEST: Final = 1 << 32


class _Tile(NamedTuple):
    """A part of one axis: where it begins, and the weights of its pixels."""

    start: int
    weights: NDArray


class ImageModel(Model[Enhanced]):
    """A model from pictures to pictures, made by ``load_model(path, task="image")``.

    Pictures keep their size: those larger than the model's input, or than ``size`` of
    ``load_model`` (224), are cut into tiles that overlap by the option ``overlap`` (32 pixels). The
    outer quarter of an overlap is dropped and the rest blended, so that no seams show where the
    model looks less far than that.

    Example::

        model = load_model("upscale.onnx", task="image")
        result = model.predict(photo)
        print(result.scale)
        Image.fromarray(result.picture).save("large.png")
    """

    def _many(self, given: list[ModelInput], options: Mapping[str, float]) -> list[Enhanced]:
        return [self._one(one, options) for one in given]

    def _one(self, input: ModelInput, options: Mapping[str, float]) -> Enhanced:
        """Return the model's picture for a picture."""
        pixels = _unit_pixels(input)
        if self._port is None or self._size is None:
            raise ModelError(
                f"predict: {self.name} does not take a single picture of 1 or 3 channels."
            )
        gray = self._channels == 1
        source = (pixels @ LUMA)[..., None] if gray else pixels
        made = self._tiled(source, int(options["overlap"]))
        scale = made.shape[0] / pixels.shape[0]
        if gray and made.shape[2] == 1:
            made = _colored(made, pixels)
        as_bytes = np.rint(np.clip(made, 0, 1) * 255).astype(np.uint8)
        return Enhanced(as_bytes if _is_bytes(input) else made, scale)

    def _tiled(self, pixels: NDArray, overlap: int) -> NDArray:
        """Return the model's output for a picture of 0 to 1, put together from tiles."""
        assert self._size is not None
        height, width = pixels.shape[:2]
        tile_h, tile_w = self._size
        fixed = self._fixed()
        if not fixed:  # smaller pictures need no padding
            tile_h, tile_w = min(tile_h, height), min(tile_w, width)
        if overlap >= min(tile_h, tile_w) and (height > tile_h or width > tile_w):
            expected = f"less than the tile, {min(tile_h, tile_w)}"
            raise ParameterError.invalid("predict", "overlap", expected, overlap)
        pad = max(tile_h - height, 0), max(tile_w - width, 0)
        if any(pad):
            pixels = np.pad(pixels, ((0, pad[0]), (0, pad[1]), (0, 0)), mode="edge")
        out: NDArray | None = None
        total: NDArray | None = None
        scale = 1.0
        for down in _spans(pixels.shape[0], tile_h, overlap):
            for across in _spans(pixels.shape[1], tile_w, overlap):
                y, x = down.start, across.start
                made = self._tile(pixels[y : y + tile_h, x : x + tile_w])
                if out is None:
                    scale = self._scale(made, (tile_h, tile_w))
                    shape = round(pixels.shape[0] * scale), round(pixels.shape[1] * scale)
                    self._check_size(shape, made.shape[2])
                    out = np.zeros((*shape, made.shape[2]), np.float32)
                    total = np.zeros((*shape, 1), np.float32)
                assert total is not None
                weights = _stretched(down.weights, made.shape[0])[:, None, None]
                weights = weights * _stretched(across.weights, made.shape[1])[:, None]
                top, left = round(y * scale), round(x * scale)
                part = np.s_[top : top + made.shape[0], left : left + made.shape[1]]
                out[part] += weights * made
                total[part] += weights
        assert out is not None
        assert total is not None
        out /= total
        return out[: round(height * scale), : round(width * scale)]

    def _tile(self, tile: NDArray) -> NDArray:
        """Run the model on one tile: (height, width, channels) of 0 to 1, to the same."""
        assert self._port is not None
        factor, shift = _RANGES[str(self.spec.prepare.get("normalize", "unit"))]
        given = tile * np.float32(factor) + np.float32(shift)
        given = given[None] if self._layout == "nhwc" else given.transpose(2, 0, 1)[None]
        dtype = self._port.dtype or np.dtype(np.float32)
        if np.dtype(dtype).kind in "ui":
            given = np.rint(given)
        outputs = self._run(np.ascontiguousarray(given.astype(dtype)))
        name, made = next(iter(outputs.items()))
        if made.ndim != 4 or len(made) != 1:
            raise wrong_output("image", "one picture", name, made)
        made = made[0].astype(np.float32)
        first = made.shape[0] in (1, 3)
        if first and (self._layout == "nchw" or made.shape[2] not in (1, 3)):
            made = made.transpose(1, 2, 0)
        if made.shape[2] not in (1, 3):
            raise wrong_output("image", "1 or 3 channels", name, outputs[name])
        if not np.isfinite(made).all():
            raise ModelError(f"predict: the output of {self.name} contains NaN or infinity.")
        unit: NDArray = (made - np.float32(shift)) / np.float32(factor)
        return unit

    def _fixed(self) -> bool:
        """Return whether the model takes pictures of one size only."""
        assert self._port is not None
        axes = (2, 3) if self._layout == "nchw" else (1, 2)
        return all(self._port.shape[a] is not None for a in axes)

    def _scale(self, made: NDArray, tile: tuple[int, int]) -> float:
        down: float = made.shape[0] / tile[0]
        if made.shape[0] != down * tile[0] or made.shape[1] != down * tile[1]:
            raise ModelError(
                f"predict: {self.name} makes {made.shape[1]}x{made.shape[0]} of "
                f"{tile[1]}x{tile[0]}, which are not the same proportions. Use task='raw'."
            )
        return down

    def _check_size(self, shape: tuple[int, int], channels: int) -> None:
        if shape[0] * shape[1] * channels * 4 > _LARGEST:
            raise ModelError(
                f"predict: the picture would have {shape[1]}x{shape[0]} pixels, which is too large."
            )


def _spans(length: int, tile: int, overlap: int) -> Iterator[_Tile]:
    """Yield tiles of an axis, so that they overlap by at least ``overlap`` and end at its ends."""
    count = 1 if length <= tile else math.ceil((length - overlap) / (tile - overlap))
    starts = [round(k * (length - tile) / max(count - 1, 1)) for k in range(count)]
    for k, start in enumerate(starts):
        weights = np.ones(tile, np.float32)
        if k > 0:
            weights *= _ramp(tile, starts[k - 1] + tile - start)
        if k + 1 < count:
            weights *= _ramp(tile, start + tile - starts[k + 1])[::-1]
        yield _Tile(start, weights)


def _ramp(tile: int, shared: int) -> NDArray:
    """Return weights that rise from 0 to 1 in the middle half of two tiles' overlap."""
    drop = shared // 4
    inside = max(shared - 2 * drop, 1)
    rise = (np.arange(tile, dtype=np.float32) - drop + 0.5) / inside
    return np.clip(rise, 1e-6, 1)


def _stretched(weights: NDArray, length: int) -> NDArray:
    """Return weights at another scale."""
    if len(weights) == length:
        return weights
    at = (np.arange(length) + 0.5) * len(weights) / length - 0.5
    return np.interp(at, np.arange(len(weights)), weights).astype(np.float32)


def _colored(luma: NDArray, pixels: NDArray) -> NDArray:
    """Return a picture with new luma, and the colors of another one at its size."""
    from dala.media import gpu

    tint = pixels - (pixels @ LUMA)[..., None]
    size = luma.shape[:2]
    if tint.shape[:2] != size:
        # Filters take 0 to 1, and differences lie between -1 and 1.
        tint = gpu.resize(tint / 2 + 0.5, *size[::-1], method="bicubic") * 2 - 1
    return luma + tint


def _unit_pixels(image: ModelInput) -> NDArray:
    """Return a picture as f32 RGB, 0 to 1."""
    pixels = host_pixels(read_rgb(image, "predict"))
    if pixels.dtype == np.uint8:
        pixels = pixels.astype(np.float32) / np.float32(255)
    pixels = pixels.astype(np.float32, copy=False)
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if not pixels.size or not np.isfinite(pixels).all():
        raise ModelError("predict: the picture is empty, or contains NaN or infinity.")
    return np.repeat(pixels, 3, 2) if pixels.shape[2] == 1 else pixels[..., :3]


def _is_bytes(image: ModelInput) -> bool:
    dtype = getattr(image, "dtype", None)
    return dtype is None or str(dtype) in ("u8", "uint8")
