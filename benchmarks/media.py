"""Filter calls and frame pipelines at 1920x1080 on the CPU, against OpenCV.

One filter, array in and array out; lists of four filters through ``process_frame``. OpenCV's stages
write into existing memory; where a user could fuse stages by hand, that variant runs too.
"""

from __future__ import annotations

import dataclasses
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import dala
from benchmarks.filters.rows import HEIGHT, WIDTH, Scene
from benchmarks.harness import Machine, affordable, judge, race, report, write
from dala.gpu.compute import buffer_zeros
from dala.media import gpu

Filters = list[tuple[str, dict[str, Any]]]
#: An OpenCV stage: from one picture into another.
Into = Callable[[Any, Any], Any]

LUMA = np.array([0.299, 0.587, 0.114])


@dataclasses.dataclass(frozen=True)
class Row:
    """A list of filters, and OpenCV variants of it as lists of stages."""

    filters: Filters
    ways: dict[str, list[Into]]
    channels: int = 4
    #: Largest mean difference, in steps of 255: OpenCV rounds after each stage.
    within: float = 1.0
    target: float | None = None
    size: tuple[int, int] = (HEIGHT, WIDTH)

    @property
    def title(self) -> str:
        kind = "RGBA" if self.channels == 4 else "RGB"
        return f"process_frame {kind}: {', '.join(name for name, _ in self.filters)}"


# OpenCV -------------------------------------------------------------------------------------------
class Stages:
    """Filters in OpenCV, each in the fastest way we found; alpha is kept."""

    def __init__(self, channels: int) -> None:
        import cv2

        self.cv = cv2
        self.channels = channels
        self.edge = cv2.BORDER_REPLICATE

    def blur(self, radius: int, sigma: float) -> Into:
        size = (2 * radius + 1, 2 * radius + 1)
        return lambda a, b: self.cv.GaussianBlur(
            a, size, sigma, dst=b, sigmaY=sigma, borderType=self.edge
        )

    def sharpen(self, amount: float) -> Into:
        kernel = np.array(
            [[0, -amount, 0], [-amount, 1 + 4 * amount, -amount], [0, -amount, 0]], np.float32
        )
        return lambda a, b: self.cv.filter2D(a, -1, kernel, dst=b, borderType=self.edge)

    def median(self) -> Into:
        return lambda a, b: self.cv.medianBlur(a, 3, dst=b)

    def resize(self) -> Into:
        area = self.cv.INTER_AREA
        return lambda a, b: self.cv.resize(a, b.shape[1::-1], dst=b, interpolation=area)

    def table(self, *functions: Callable[[Any], Any]) -> Into:
        """Functions of one byte, fused into one lookup table.

        One table for all channels is several times as fast as one per channel. It is valid if white
        stays white: then an opaque alpha stays opaque.
        """
        x = np.arange(256) / 255
        for function in functions:
            x = np.clip(function(x), 0, 1)
        levels = np.floor(x * 255 + 0.5).astype(np.uint8)
        held = levels
        if self.channels == 4 and levels[255] != 255:
            columns = [levels] * 3 + [np.arange(256, dtype=np.uint8)]
            held = np.ascontiguousarray(np.stack(columns, axis=-1)[None])
        return lambda a, b: self.cv.LUT(a, held, dst=b)

    def matrix(self, value: float, gain: float = 1.0, shift: float = 0.0) -> Into:
        """Saturation after a gain and an offset (of 255).

        Four channels are converted to three and back, which is three times as fast. Alpha becomes
        opaque instead of being kept: less work, and the same result on this frame.
        """
        cv = self.cv
        m = np.zeros((3, 4), np.float32)
        m[:, :3] = (np.eye(3) * (1 + value) - value * LUMA) * gain
        m[:, 3] = shift
        if self.channels == 3:
            return lambda a, b: cv.transform(a, m, dst=b)
        held: dict[Any, Any] = {}

        def run(a: Any, b: Any) -> None:
            if a.shape not in held:
                held[a.shape] = [np.empty((*a.shape[:2], 3), np.uint8) for _ in range(2)]
            before, after = held[a.shape]
            cv.cvtColor(a, cv.COLOR_RGBA2RGB, dst=before)
            cv.transform(before, m, dst=after)
            cv.cvtColor(after, cv.COLOR_RGB2RGBA, dst=b)

        return run

    def vignette(self, amount: float, radius: float, softness: float) -> Into:
        """A multiplication by a precomputed picture of factors."""
        plain = np.full((HEIGHT, WIDTH, self.channels), 1.0, np.float32)
        params = {"amount": amount, "radius": radius, "softness": softness}
        factors = gpu.vignette(plain, **params, device="cpu")
        return lambda a, b: self.cv.multiply(a, factors, dst=b, dtype=self.cv.CV_8U)


def brightness(value: float) -> Callable[[Any], Any]:
    return lambda x: x + value


def contrast(value: float) -> Callable[[Any], Any]:
    return lambda x: (x - 0.5) * (1 + value) + 0.5


def gamma(value: float) -> Callable[[Any], Any]:
    return lambda x: x ** (1 / value)


def invert(x: Any) -> Any:
    return 1 - x


def rows() -> list[Row]:
    soft, crisp = ("blur", {"radius": 3, "sigma": 1.5}), ("sharpen", {"amount": 0.3})
    rich, hard = ("saturation", {"value": 0.2}), ("contrast", {"value": 0.1})
    made = []
    for channels in (4, 3):
        s = Stages(channels)
        blur, sharpen = s.blur(3, 1.5), s.sharpen(0.3)
        made.append(
            Row(
                [soft, crisp, hard, rich],
                {
                    "opencv": [blur, sharpen, s.table(contrast(0.1)), s.matrix(0.2)],
                    "opencv, contrast in the matrix": [
                        blur,
                        sharpen,
                        s.matrix(0.2, 1.1, -0.05 * 255),
                    ],
                },
                channels,
                target=2.5,
            )
        )
    s = Stages(4)
    blur, sharpen = s.blur(3, 1.5), s.sharpen(0.3)
    made += [
        Row(
            [soft, crisp, ("brightness", {"value": 0.1}), hard],
            {
                "opencv": [blur, sharpen, s.table(brightness(0.1)), s.table(contrast(0.1))],
                "opencv, one table": [blur, sharpen, s.table(brightness(0.1), contrast(0.1))],
            },
            target=2.5,
        ),
        Row(
            [("median", {}), crisp, hard, rich],
            {"opencv": [s.median(), sharpen, s.table(contrast(0.1)), s.matrix(0.2)]},
            target=2.5,
        ),
        Row(
            [("resize", {"size": (1280, 720), "method": "area"}), soft, crisp, rich],
            {"opencv": [s.resize(), blur, sharpen, s.matrix(0.2)]},
            size=(720, 1280),
        ),
        Row(
            [
                ("gamma", {"value": 1.2}),
                rich,
                ("vignette", {"amount": 0.6}),
                ("brightness", {"value": 0.05}),
            ],
            {
                "opencv": [
                    s.table(gamma(1.2)),
                    s.matrix(0.2),
                    s.vignette(0.6, 0.75, 0.45),
                    s.table(brightness(0.05)),
                ]
            },
        ),
        Row(
            [("brightness", {"value": 0.1}), hard, ("gamma", {"value": 1.2}), ("invert", {})],
            {
                "opencv": [
                    s.table(brightness(0.1)),
                    s.table(contrast(0.1)),
                    s.table(gamma(1.2)),
                    s.table(invert),
                ],
                "opencv, one table": [s.table(brightness(0.1), contrast(0.1), gamma(1.2), invert)],
            },
        ),
    ]
    return made


# rows ---------------------------------------------------------------------------------------------
def _judged(
    entrants: dict[str, Callable[[], Any]], targets: dict[str, float], rounds: int, **facts: Any
) -> dict[str, Any]:
    rounds = affordable(entrants, rounds)
    with Machine() as machine:
        times = race(entrants, rounds, settle=True)
    return {"times": times, **judge(times, targets, machine), "left_out": {}, **facts}


def _apart(ours: Any, theirs: Any) -> float:
    return float(np.abs(ours.astype(np.int16) - theirs).mean())


def one_shot(frame: Any, rounds: int) -> dict[str, Any]:
    """``blur`` of one picture: both allocate the result."""
    import cv2

    def peer() -> Any:
        edge = cv2.BORDER_REPLICATE
        return cv2.GaussianBlur(frame, (7, 7), 1.5, sigmaY=1.5, borderType=edge)

    def ours() -> Any:
        return gpu.blur(frame, radius=3, sigma=1.5)

    far = _apart(ours(), peer())
    if far > 0.5:
        raise AssertionError(f"OpenCV's blur is {far:g} steps from ours on average")
    found = _judged({"dala": ours, "opencv": peer}, {"opencv": 1.0}, rounds)
    return {**found, "checked": {"opencv": far}}


def frames(frame: Any, row: Row, rounds: int) -> dict[str, Any]:
    """A list of filters, one frame at a time."""
    frame = np.ascontiguousarray(frame[..., : row.channels])
    ctx = gpu.start_pipeline(WIDTH, HEIGHT)
    entrants: dict[str, Callable[[], Any]] = {
        "dala": lambda: gpu.process_frame(ctx, frame, row.filters)
    }
    mine = entrants["dala"]()
    checked = {}
    for name, stages in row.ways.items():
        entrants[name] = _staged(frame, stages, (*row.size, row.channels))
        checked[name] = _apart(mine, entrants[name]())
        if checked[name] > row.within:
            raise AssertionError(f"{row.title}: {name} is {checked[name]:g} steps from ours")
    targets = {} if row.target is None else {"opencv": row.target}
    found = _judged(entrants, targets, rounds, checked=checked, passes=ctx.passes)
    found |= steady(ctx, frame, row.filters)
    gpu.stop_pipeline(ctx)
    return found


def _staged(frame: Any, stages: list[Into], shape: tuple[int, ...]) -> Callable[[], Any]:
    """Stages in sequence over preallocated pictures; the first may change the size."""
    made = [np.asarray(buffer_zeros(shape, "u8")) for _ in stages]

    def run() -> Any:
        source = frame
        for stage, target in zip(stages, made, strict=True):
            stage(source, target)
            source = target
        return source

    return run


def steady(ctx: Any, frame: Any, filters: Filters, count: int = 50) -> dict[str, int]:
    """Steady-state allocations of a list: device buffers, and peak host memory.

    Host memory is what Python and NumPy allocate; a 1080p frame has 6 or 8 million bytes.
    """
    engine = buffer_zeros(1).engine
    asked, allocate = [0], engine.allocate

    def counted(nbytes: int, *, zero: bool) -> Any:
        asked[0] += 1
        return allocate(nbytes, zero=zero)

    tracemalloc.start()
    engine.allocate = counted
    try:
        gpu.process_frame(ctx, frame, filters)
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        asked[0] = 0
        for _ in range(count):
            gpu.process_frame(ctx, frame, filters)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        del engine.allocate
        tracemalloc.stop()
    return {"device_allocations": asked[0], "host_bytes_peak": peak - before}


def main(rounds: int = 40, only: tuple[str, ...] = ()) -> None:
    """Time every row, or only the named ones; those are printed, not written."""
    dala.use("cpu")
    frame = Scene().frame
    table: dict[str, Callable[[], dict[str, Any]]] = {
        "blur(img, radius=3, sigma=1.5), array in, array out": lambda: one_shot(frame, rounds)
    }
    table |= {row.title: lambda row=row: frames(frame, row, rounds) for row in rows()}  # type: ignore[misc]
    results = {}
    for title, measure in table.items():
        if only and not any(word in title for word in only):
            continue
        try:
            results[title] = measure()
        except ModuleNotFoundError as error:
            results[title] = {"missing": str(error)}
        report(title, results[title])
        if "device_allocations" in results[title]:
            found = results[title]
            print(
                f"  {found['passes']} pass, then {found['device_allocations']} buffers and at most "
                f"{found['host_bytes_peak']:,} bytes of the host's allocated in 50 frames"
            )
    if not only:
        write("media", results, ("opencv-python-headless", "opencv-python"))


if __name__ == "__main__":
    main(only=tuple(sys.argv[1:]))
