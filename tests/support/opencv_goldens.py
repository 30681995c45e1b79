"""Results of OpenCV for a small picture, stored for tests of resize, warps and preprocess.

``python -m tests.support.opencv_goldens`` writes the file again; it needs OpenCV.
"""

from __future__ import annotations

import pathlib

import numpy as np

from tests.support import pictures

FILE = pathlib.Path(__file__).with_suffix(".npz")

#: Output sizes (height, width): smaller, larger, and one of each. In none of them is the center of
#: a pixel between two source pixels, where "nearest" would be ambiguous.
SIZES = ((12, 32), (44, 96), (10, 64))
#: Maps x, y of the output to x, y of the source.
AFFINE = (0.93, 0.21, -4.3, -0.17, 1.04, 5.6)
PERSPECTIVE = (0.93, 0.21, -4.3, -0.17, 1.04, 5.6, 0.0011, -0.0023, 1.0)
#: OpenCV's names of the borders of ``warp_affine``.
BORDERS = {"constant": "CONSTANT", "clamp": "REPLICATE", "reflect": "REFLECT_101", "wrap": "WRAP"}
#: The fill of a constant border, as bytes.
FILL = (51, 102, 153, 204)
#: The side of the square of the letterbox.
LETTERBOX = 64


def picture() -> np.ndarray:
    """Return the source, (30, 48, 4) u8."""
    return pictures.noisy(pictures.photo(30, 48))


def places() -> np.ndarray:
    """Return a map for remap, (24, 36, 2) f32: waves, partly outside of the picture."""
    y, x = np.mgrid[:24, :36].astype(np.float64)
    wave = np.stack([x * 1.4 - 3 + 4 * np.sin(y / 5), y * 1.3 - 2 + 4 * np.cos(x / 7)], axis=-1)
    return wave.astype(np.float32)


def load() -> dict[str, np.ndarray]:
    """Return the stored results, by name."""
    with np.load(FILE) as stored:
        return dict(stored)


def main() -> None:
    import cv2

    image = picture()
    found: dict[str, np.ndarray] = {}
    for size in SIZES:
        for method in ("LINEAR", "CUBIC", "AREA", "NEAREST_EXACT"):
            flag = getattr(cv2, f"INTER_{method}")
            name = f"resize-{method}-{size[0]}x{size[1]}"
            found[name] = cv2.resize(image, size[::-1], interpolation=flag)
    for method in ("NEAREST", "LINEAR", "CUBIC"):
        flag = getattr(cv2, f"INTER_{method}")
        for border, theirs in BORDERS.items():
            edge = getattr(cv2, f"BORDER_{theirs}")
            more = {"borderMode": edge, "borderValue": FILL}
            back = flag | cv2.WARP_INVERSE_MAP
            affine = np.array(AFFINE).reshape(2, 3)
            found[f"affine-{method}-{border}"] = cv2.warpAffine(
                image, affine, (40, 26), flags=back, **more
            )
            perspective = np.array(PERSPECTIVE).reshape(3, 3)
            found[f"perspective-{method}-{border}"] = cv2.warpPerspective(
                image, perspective, (40, 26), flags=back, **more
            )
            found[f"remap-{method}-{border}"] = cv2.remap(image, places(), None, flag, **more)
    small = cv2.resize(image[..., :3], (64, 40), interpolation=cv2.INTER_LINEAR)
    found["letterbox"] = cv2.copyMakeBorder(
        small, 12, 12, 0, 0, cv2.BORDER_CONSTANT, value=(114, 114, 114)
    )
    np.savez_compressed(FILE, **found)


if __name__ == "__main__":
    main()
