"""``dala demo``: a generated picture through a few kernels, written as PNG."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Kernels the picture goes through, in order, after it has been generated.
STAGES: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("sharpen", {"amount": 0.3}),
    ("contrast", {"value": 0.2}),
    ("vignette", {}),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this command's arguments."""
    parser.add_argument(
        "--out", type=Path, default=Path("out"), metavar="DIR", help="folder for demo.png (out)"
    )
    parser.add_argument("--device", help="auto, gpu, cpu, webgpu, webgpu:N or reference")
    parser.add_argument("--size", type=_size, default=(1280, 720), metavar="WxH", help="(1280x720)")


def run(args: argparse.Namespace) -> int:
    """Draws and writes the picture."""
    import dala
    from dala.gpu import compute
    from dala.png import write_png

    with dala.device(args.device) if args.device else nullcontext():
        info = compute.device_info()
        begin = perf_counter()
        pixels = draw(*args.size)
        milliseconds = (perf_counter() - begin) * 1000
    path = args.out / "demo.png"
    args.out.mkdir(parents=True, exist_ok=True)
    write_png(path, pixels)
    print(f"device   {info['name']} ({info['backend']})")
    print(f"kernels  {' -> '.join(['generate_gradient', *(kernel for kernel, _ in STAGES)])}")
    print(f"time     {milliseconds:.0f} ms for {args.size[0]}x{args.size[1]}, compiling included")
    print(f"picture  {path}")
    return 0


def draw(width: int, height: int) -> NDArray[np.uint8]:
    """The picture, (height, width, 4), made on the current device."""
    import numpy as np

    from dala.gpu import compute

    shape = (height, width, 4)
    with compute.buffer_zeros(shape, "u8") as source, compute.buffer_zeros(shape, "u8") as target:
        compute.run_kernel("generate_gradient", [], source, {})
        for kernel, params in STAGES:
            compute.run_kernel(kernel, [source], target, params)
            source, target = target, source
        return np.array(source, np.uint8)


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    if not (width.isdecimal() and height.isdecimal() and int(width) and int(height)):
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write it as 1280x720")
    return int(width), int(height)
