"""The table of filters: what runs, its peers, and how close the results must be."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from dala.gpu.compute import buffer_zeros, from_array

WIDTH, HEIGHT = 1920, 1080
CHAIN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("blur", {"radius": 3, "sigma": 1.5}),
    ("sharpen", {"amount": 0.3}),
    ("brightness", {"value": 0.1}),
)
GREEN = (-0.331264 * 255, -0.418688 * 255)  # (Cb, Cr) of pure green
RAMP = (40.0, 40.0)  # where alpha starts and over how much chroma it rises, in units of a byte

#: A matrix of ``warp_affine``: where an output pixel is in the input.
TURN = (0.9925, -0.1219, 60.0, 0.1219, 0.9925, -40.0)
STEEP = (0.8660254, -0.5, 398.6156, 0.5, 0.8660254, -407.6537)
SHRINK = (0.7, 0.0, 100.3, 0.0, 0.7, 50.2)

Run = Callable[[], Any]


@dataclasses.dataclass(frozen=True)
class Peer:
    """A peer: ``make(out)`` returns a function that fills ``out``.

    ``within``: the allowed difference from our result in 8-bit steps, or (``mean``) its mean.
    """

    make: Callable[[Any], Run]
    within: float = 1
    mean: bool = False
    shape: tuple[int, ...] | None = None


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table; ``targets`` holds the minimum ratio (peer's time / ours) to reach."""

    title: str
    stages: tuple[tuple[str, dict[str, Any]], ...]
    peers: dict[str, Peer]
    targets: dict[str, float] = dataclasses.field(default_factory=dict)
    limit_ms: float | None = None
    inputs: tuple[Any, ...] = ()
    shape: tuple[int, ...] = (HEIGHT, WIDTH, 4)
    note: str = ""
    #: Of the frame and of the result.
    dtype: str = "u8"


class Scene:
    """The frame and its contestants. All pictures use the same kind of memory."""

    def __init__(self) -> None:
        self.frame = self.picture((HEIGHT, WIDTH, 4))
        self.frame[:] = _frame()

    def picture(self, shape: tuple[int, ...], dtype: str = "u8") -> Any:
        return np.asarray(buffer_zeros(shape, dtype))

    @cached_property
    def floats(self) -> Any:
        """The frame in f32, 0 to 1."""
        made = self.picture(self.frame.shape, "f32")
        made[:] = self.frame / np.float32(255)
        return made

    @cached_property
    def opencv_floats(self) -> Any:
        from benchmarks.filters.opencv import OpenCV

        return OpenCV(self.floats)

    @cached_property
    def opencv(self) -> Any:
        from benchmarks.filters.opencv import OpenCV

        return OpenCV(self.frame)

    @cached_property
    def halide(self) -> Any:
        from benchmarks.filters.halide import Halide

        return Halide(self.frame)


def _frame() -> Any:
    """Slow color waves, some grain, a green screen on the left; opaque."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    waves = [np.sin(x / a + y / b) for a, b in ((210, 90), (77, 310), (140, -60))]
    color = np.stack(waves, -1) * 90 + 128 + rng.normal(0, 9, (HEIGHT, WIDTH, 3))
    screen = (x < WIDTH / 3) & (np.hypot(x - 400, y - 500) > 260)
    color[screen] = color[screen] * 0.2 + np.array([20, 190, 30])
    opaque = np.full((HEIGHT, WIDTH, 1), 255.0)
    return np.concatenate([np.clip(color, 0, 255), opaque], -1).astype(np.uint8)


def _lut(n: int = 33) -> Any:
    """A grade: warm lights, cool shadows, a little contrast."""
    r, g, b = np.meshgrid(*[np.linspace(0, 1, n)] * 3, indexing="ij")
    curve = [v * v * (3 - 2 * v) * 0.4 + v * 0.6 for v in (r, g, b)]
    warm = [curve[0] * 0.95 + 0.05 * g, curve[1] * 0.97 + 0.02, curve[2] * 0.9 + 0.03]
    return np.ascontiguousarray(np.stack(warm, -1).astype(np.float32))


def _pillow_lut(frame: Any, table: Any) -> Callable[[Any], Run]:
    from PIL import Image, ImageFilter

    n = table.shape[0]
    cube = ImageFilter.Color3DLUT(n, table.transpose(2, 1, 0, 3).ravel().tolist())
    image = Image.frombuffer("RGBA", (WIDTH, HEIGHT), frame.tobytes(), "raw", "RGBA", 0, 1)

    def make(out: Any) -> Run:
        np.copyto(out, np.asarray(image.filter(cube)))
        return lambda: image.filter(cube)  # it cannot write into existing memory

    return make


def _pillow_resize(frame: Any, out: Any, method: str) -> Run:
    from PIL import Image

    image = Image.frombuffer("RGBA", (WIDTH, HEIGHT), frame.tobytes(), "raw", "RGBA", 0, 1)
    # Pillow premultiplies RGBA, which costs a conversion; four plain channels avoid it.
    image = Image.frombuffer("RGBX", image.size, image.tobytes(), "raw", "RGBX", 0, 1)
    way, size = Image.Resampling[method.upper()], (out.shape[1], out.shape[0])
    np.copyto(out, np.asarray(image.resize(size, way)).reshape(out.shape))
    return lambda: image.resize(size, way)


def _one(kernel: str, **params: Any) -> tuple[tuple[str, dict[str, Any]], ...]:
    return ((kernel, params),)


def rows(s: Scene) -> list[Row]:
    """The table. Missing peers are reported when a row is prepared."""
    lut, smaller, larger = _lut(), (720, 1280, 4), (2160, 3840, 4)
    table = from_array(lut)
    planes = s.picture((HEIGHT * 3 // 2, WIDTH))
    planes[:HEIGHT] = s.frame[..., 1] * 0.85 + 16
    planes[HEIGHT:] = s.frame[: HEIGHT // 2, :, 0] * 0.6 + 50
    key = {"threshold": RAMP[0] / 255, "softness": RAMP[1] / 255, "despill": 0.0}
    rounded = "the peers round luma to 8 bits before they take differences"
    return [
        Row("copy of the frame", _one("copy"), {"numpy": Peer(lambda o: s.opencv.copy(o), 0)}),
        Row(
            "blur r3 s1.5",
            CHAIN[:1],
            {
                "opencv": Peer(lambda o: s.opencv.blur(o, 3, 1.5)),
                "halide": Peer(lambda o: s.halide.blur(o, 3, 1.5), 2),
            },
            {"opencv": 1.5},
        ),
        Row(
            "blur r10 s5",
            _one("blur", radius=10, sigma=5.0),
            {
                "opencv": Peer(lambda o: s.opencv.blur(o, 10, 5.0)),
                "halide": Peer(lambda o: s.halide.blur(o, 10, 5.0), 2),
            },
            {"opencv": 2.5},
        ),
        Row(
            "blur r200 s100",
            _one("blur", radius=200),
            {"opencv": Peer(lambda o: s.opencv.blur(o, 200, 100.0), 2)},
            {"opencv": 2.5},
            note="ours on a coarse grid: within 0.6 steps of the exact Gaussian at straight edges",
        ),
        Row(
            "sharpen 0.5",
            _one("sharpen", amount=0.5),
            {
                "opencv": Peer(lambda o: s.opencv.sharpen(o, 0.5)),
                "halide": Peer(lambda o: s.halide.sharpen(o, 0.5)),
            },
            {"opencv": 1.5},
        ),
        Row(
            "sharpen 0.5, f32",
            _one("sharpen", amount=0.5),
            {"opencv": Peer(lambda o: s.opencv_floats.sharpen(o, 0.5))},
            {"opencv": 1.0},
            dtype="f32",
        ),
        Row(
            "grayscale",
            _one("grayscale"),
            {
                "opencv": Peer(lambda o: s.opencv.grayscale(o)),
                "halide": Peer(lambda o: s.halide.grayscale(o)),
            },
            {"opencv": 1.5},
            note="OpenCV sets alpha to 255, the others keep it",
        ),
        Row(
            "brightness 0.1",
            _one("brightness", value=0.1),
            {
                "opencv": Peer(lambda o: s.opencv.brightness(o, 0.1)),
                "halide": Peer(lambda o: s.halide.brightness(o, 0.1)),
            },
            {"opencv": 1.0},
            note="the peers add 25, we add 25.5",
        ),
        Row(
            "contrast 0.3",
            _one("contrast", value=0.3),
            {
                "opencv": Peer(lambda o: s.opencv.contrast(o, 0.3)),
                "opencv, LUT": Peer(lambda o: s.opencv.table(o, lambda v: (v - 0.5) * 1.3 + 0.5)),
                "halide": Peer(lambda o: s.halide.contrast(o, 0.3), 2),
            },
            {"opencv": 1.5},
        ),
        Row(
            "edge_detect",
            _one("edge_detect"),
            {"opencv": Peer(lambda o: s.opencv.edge_detect(o), 5)},
            {"opencv": 1.5},
            note=rounded,
        ),
        Row(
            "edge_detect, gray out",
            _one("edge_detect"),
            {
                "opencv": Peer(lambda o: s.opencv.edge_detect(o), 5),
                "halide": Peer(lambda o: s.halide.edge_detect(o), 5),
            },
            {"opencv": 1.5},
            shape=(HEIGHT, WIDTH),
            note=rounded,
        ),
        Row(
            "denoise radius 2",
            _one("denoise", radius=2, sigma_space=2.0, sigma_color=0.1),
            {
                "opencv, d=5": Peer(
                    lambda o: s.opencv.bilateral(o, 5, 76.5, 2.0), 2, True, (HEIGHT, WIDTH, 3)
                ),
                "halide": Peer(lambda o: s.halide.denoise(o, 2, 2.0, 0.1), 2),
            },
            {"opencv": 1.0},
            note="OpenCV has 13 taps (a disc) and sums of absolute differences, on three channels; "
            "ours and Halide's here 25 taps (the square) and squared differences. Only alike: "
            "2 steps on average",
        ),
        Row(
            "lut_apply 33",
            _one("lut_apply"),
            {
                "halide": Peer(lambda o: s.halide.lut(o, lut), 2),
                "pillow": Peer(lambda o: _pillow_lut(s.frame, lut)(o), 2),
            },
            {"pillow": 1.0},
            limit_ms=7.0,
            inputs=(table,),
            note="ours tetrahedral, the peers' trilinear; Pillow makes a new picture",
        ),
        Row(
            "lut_apply 33, trilinear",
            _one("lut_apply", method="trilinear"),
            {
                "halide": Peer(lambda o: s.halide.lut(o, lut)),
                "pillow": Peer(lambda o: _pillow_lut(s.frame, lut)(o)),
            },
            inputs=(table,),
        ),
        Row(
            "chroma_key",
            _one("chroma_key", **key),
            {
                "opencv": Peer(lambda o: s.opencv.chroma_key(o, GREEN, *RAMP), 16),
                "halide": Peer(lambda o: s.halide.chroma_key(o, GREEN, *RAMP)),
            },
            {"opencv": 1.5},
            note="without despill, which the peers lack; OpenCV's chroma has 8 bits: 16 steps",
        ),
        Row(
            "median 3x3",
            _one("median"),
            {
                "opencv": Peer(lambda o: s.opencv.median(o), 0),
                "halide": Peer(lambda o: s.halide.median(o), 0),
            },
            {"opencv": 1.0},
        ),
        Row(
            "erode 3x3",
            _one("erode", radius=1),
            {
                "opencv": Peer(lambda o: s.opencv.erode(o), 0),
                "halide": Peer(lambda o: s.halide.extreme(o, least=True), 0),
            },
            {"opencv": 1.0},
        ),
        Row(
            "dilate 3x3",
            _one("dilate", radius=1),
            {
                "opencv": Peer(lambda o: s.opencv.dilate(o), 0),
                "halide": Peer(lambda o: s.halide.extreme(o, least=False), 0),
            },
            {"opencv": 1.0},
        ),
        Row(
            "gamma 2.2",
            _one("gamma", value=2.2),
            {
                "opencv, LUT": Peer(lambda o: s.opencv.table(o, lambda v: v ** (1 / 2.2))),
                "halide": Peer(lambda o: s.halide.gamma(o, 2.2)),
            },
            {"opencv": 1.0},
        ),
        Row(
            "resize to 720p, bilinear",
            _one("resize", method="bilinear", antialias=False),
            {"opencv": Peer(lambda o: s.opencv.resize(o, "bilinear"))},
            {"opencv": 1.0},
            shape=smaller,
        ),
        Row(
            "resize to 720p, bilinear, antialias",
            _one("resize", method="bilinear"),
            {"pillow": Peer(lambda o: _pillow_resize(s.frame, o, "bilinear"))},
            shape=smaller,
        ),
        Row(
            "resize to 720p, area",
            _one("resize", method="area"),
            {"opencv": Peer(lambda o: s.opencv.resize(o, "area"))},
            {"opencv": 1.0},
            shape=smaller,
        ),
        Row(
            "resize to half, area",
            _one("resize", method="area"),
            {"opencv": Peer(lambda o: s.opencv.resize(o, "area"))},
            {"opencv": 1.0},
            shape=(HEIGHT // 2, WIDTH // 2, 4),
        ),
        Row(
            "resize to half, area, f32",
            _one("resize", method="area"),
            {"opencv": Peer(lambda o: s.opencv_floats.resize(o, "area"))},
            {"opencv": 1.0},
            shape=(HEIGHT // 2, WIDTH // 2, 4),
            dtype="f32",
        ),
        Row(
            "resize to half",
            _one("resize"),
            {"opencv": Peer(lambda o: s.opencv.resize(o, "area"), 4, True)},
            {"opencv": 1.0},
            shape=(HEIGHT // 2, WIDTH // 2, 4),
            note="sums of 16 pixels; OpenCV's INTER_AREA, of 4: 4 on average",
        ),
        Row(
            "resize to 4K, bicubic",
            _one("resize", method="bicubic"),
            {
                "opencv": Peer(lambda o: s.opencv.resize(o, "bicubic"), 2, True),
                "pillow": Peer(lambda o: _pillow_resize(s.frame, o, "bicubic")),
            },
            {"opencv": 1.0},
            shape=larger,
            note="OpenCV's cubic is another one (a = -0.75, ours and Pillow's -0.5): 2 on average",
        ),
        Row(
            "warp_affine, 7 degrees",
            _one("warp_affine", matrix=TURN),
            {"opencv": Peer(lambda o: s.opencv.warp(o, TURN), 2)},
            {"opencv": 1.0},
        ),
        Row(
            "warp_affine, 30 degrees",
            _one("warp_affine", matrix=STEEP),
            {"opencv": Peer(lambda o: s.opencv.warp(o, STEEP), 2)},
            {"opencv": 1.0},
        ),
        Row(
            "warp_affine, scaled by 0.7",
            _one("warp_affine", matrix=SHRINK),
            {"opencv": Peer(lambda o: s.opencv.warp(o, SHRINK), 2)},
            {"opencv": 1.0},
        ),
        Row(
            "yuv_to_rgb, nv12 to rgba",
            _one("yuv_to_rgb", format="nv12", matrix="bt601", chroma="nearest"),
            {"opencv": Peer(lambda o: s.opencv.nv12(o, planes), 2)},
            {"opencv": 1.0},
            inputs=(planes,),
        ),
        Row(
            "blur -> sharpen -> brightness",
            CHAIN,
            {
                "opencv": Peer(lambda o: s.opencv.chain(o, 3, 1.5, 0.3, 0.1), 5),
                "halide": Peer(lambda o: s.halide.chain(o, 3, 1.5, 0.3, 0.1), 5),
            },
            {"opencv": 2.5, "halide": 1 / 1.2},
            note="in a Pipeline, the pictures in between transient; each stage rounds: 5 steps",
        ),
    ]
