"""The filters in OpenCV, each in the fastest way we found that does the same work.

Destinations and intermediate pictures are preallocated. OpenCV treats alpha like a color; on the
benchmark's opaque frame the result is the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np

Run = Callable[[], Any]

EDGE = cv2.BORDER_REPLICATE


def _check_level() -> None:
    """Raise RuntimeError if OpenCV uses instructions that ``run.py`` asked it to do without."""
    disabled = set(os.environ.get("OPENCV_CPU_DISABLE", "").split(","))
    used = {name.lstrip("*") for name in cv2.getCPUFeaturesLine().split() if name[-1] != "?"}
    if used & disabled:
        raise RuntimeError(f"OpenCV uses {', '.join(sorted(used & disabled))}.")


_check_level()


class OpenCV:
    """Filters of one frame; each method returns a function that fills ``out``."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.height, self.width = frame.shape[:2]
        self.rgb = np.ascontiguousarray(frame[..., :3])
        self.square = np.ones((3, 3), np.uint8)

    def _plane(self, dtype: Any = np.uint8) -> Any:
        return np.zeros((self.height, self.width), dtype)

    def copy(self, out: Any) -> Run:
        return lambda: np.copyto(out, self.frame)

    def blur(self, out: Any, radius: int, sigma: float) -> Run:
        size = (2 * radius + 1, 2 * radius + 1)
        return lambda: cv2.GaussianBlur(
            self.frame, size, sigma, dst=out, sigmaY=sigma, borderType=EDGE
        )

    def _sharpening(self, amount: float) -> Any:
        return np.array(
            [[0, -amount, 0], [-amount, 1 + 4 * amount, -amount], [0, -amount, 0]], np.float32
        )

    def sharpen(self, out: Any, amount: float) -> Run:
        kernel = self._sharpening(amount)
        return lambda: cv2.filter2D(self.frame, -1, kernel, dst=out, borderType=EDGE)

    def warp(self, out: Any, matrix: tuple[float, ...]) -> Run:
        table = np.array(matrix).reshape(2, 3)
        way = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        size = (self.width, self.height)
        return lambda: cv2.warpAffine(self.frame, table, size, dst=out, flags=way)

    def grayscale(self, out: Any) -> Run:
        # Alpha becomes opaque instead of being kept: OpenCV's fastest way, and less work.
        gray = self._plane()

        def run() -> None:
            cv2.cvtColor(self.frame, cv2.COLOR_RGBA2GRAY, dst=gray)
            cv2.cvtColor(gray, cv2.COLOR_GRAY2RGBA, dst=out)

        return run

    def brightness(self, out: Any, value: float) -> Run:
        step = int(value * 255)  # a fraction would take OpenCV's slow path
        return lambda: cv2.add(self.frame, (step, step, step, 0), dst=out)

    def contrast(self, out: Any, value: float) -> Run:
        # Not convertScaleAbs, which takes the absolute value of results below 0.
        f, shift = self.frame, -127.5 * value
        return lambda: cv2.addWeighted(f, 1 + value, f, 0.0, shift, dst=out)

    def table(self, out: Any, function: Callable[[Any], Any]) -> Run:
        """Any function of one byte, by cv2.LUT."""
        levels = np.clip(np.floor(function(np.arange(256) / 255) * 255 + 0.5), 0, 255)
        levels = levels.astype(np.uint8)
        return lambda: cv2.LUT(self.frame, levels, dst=out)

    def edge_detect(self, out: Any) -> Run:
        """One channel, or four if ``out`` has four."""
        gray, edges = self._plane(), self._plane()
        gx, gy, size = (self._plane(np.float32) for _ in range(3))
        wide = out.ndim == 3

        def run() -> None:
            cv2.cvtColor(self.frame, cv2.COLOR_RGBA2GRAY, dst=gray)
            cv2.Sobel(gray, cv2.CV_32F, 1, 0, dst=gx, borderType=EDGE)
            cv2.Sobel(gray, cv2.CV_32F, 0, 1, dst=gy, borderType=EDGE)
            cv2.magnitude(gx, gy, magnitude=size)
            cv2.convertScaleAbs(size, dst=edges if wide else out)
            if wide:
                cv2.cvtColor(edges, cv2.COLOR_GRAY2RGBA, dst=out)

        return run

    def bilateral(self, out: Any, d: int, color: float, space: float) -> Run:
        """Three channels, as OpenCV takes no fourth: ``out`` is (height, width, 3)."""
        return lambda: cv2.bilateralFilter(self.rgb, d, color, space, dst=out, borderType=EDGE)

    def chroma_key(self, out: Any, key: tuple[float, float], low: float, soft: float) -> Run:
        """8-bit chroma, its distance from the key, and the ramp as a lookup table."""
        ycc = np.zeros_like(self.rgb)
        cr, cb, alpha = self._plane(), self._plane(), self._plane()
        dx, dy, far = (self._plane(np.float32) for _ in range(3))
        levels = np.arange(256, dtype=np.float32) - 128
        from_cb, from_cr = levels - np.float32(key[0]), levels - np.float32(key[1])
        t = np.clip((np.arange(256) / 1.3 - low) / soft, 0, 1)
        ramp = np.floor(t * t * (3 - 2 * t) * 255 + 0.5).astype(np.uint8)
        steps = self._plane()

        def run() -> None:
            cv2.cvtColor(self.frame, cv2.COLOR_RGB2YCrCb, dst=ycc)
            cv2.extractChannel(ycc, 1, dst=cr)
            cv2.extractChannel(ycc, 2, dst=cb)
            cv2.LUT(cb, from_cb, dst=dx)
            cv2.LUT(cr, from_cr, dst=dy)
            cv2.magnitude(dx, dy, magnitude=far)
            cv2.convertScaleAbs(far, dst=steps, alpha=1.3)
            cv2.LUT(steps, ramp, dst=alpha)
            cv2.mixChannels([self.frame, alpha], [out], [0, 0, 1, 1, 2, 2, 4, 3])

        return run

    def median(self, out: Any) -> Run:
        return lambda: cv2.medianBlur(self.frame, 3, dst=out)

    def erode(self, out: Any) -> Run:
        return lambda: cv2.erode(self.frame, self.square, dst=out, borderType=EDGE)

    def dilate(self, out: Any) -> Run:
        return lambda: cv2.dilate(self.frame, self.square, dst=out, borderType=EDGE)

    def resize(self, out: Any, method: str) -> Run:
        flag = {"bilinear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA, "bicubic": cv2.INTER_CUBIC}
        size = (out.shape[1], out.shape[0])
        return lambda: cv2.resize(self.frame, size, dst=out, interpolation=flag[method])

    def nv12(self, out: Any, planes: Any) -> Run:
        return lambda: cv2.cvtColor(planes, cv2.COLOR_YUV2RGBA_NV12, dst=out)

    def chain(self, out: Any, radius: int, sigma: float, amount: float, value: float) -> Run:
        soft, sharp = np.zeros_like(self.frame), np.zeros_like(self.frame)
        size, kernel = (2 * radius + 1, 2 * radius + 1), self._sharpening(amount)
        step = int(value * 255)

        def run() -> None:
            cv2.GaussianBlur(self.frame, size, sigma, dst=soft, sigmaY=sigma, borderType=EDGE)
            cv2.filter2D(soft, -1, kernel, dst=sharp, borderType=EDGE)
            cv2.add(sharp, (step, step, step, 0), dst=out)

        return run
