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

#: A kernel of our own, as text; as a function under @kernel it would be the same.
RINGS: Final = """
def rings(px: Pixel, *, count=7.0, strength=0.6):
    y, x = position()
    across = (x + 0.5 - 0.5 * px.width) / px.height
    down = (y + 0.5) / px.height - 0.5
    far = length(across, down)
    crest = 0.5 + 0.5 * cos(6.2831853 * count * far)
    light = strength * smoothstep(0.55, 1.0, crest) * (1.0 - smoothstep(0.1, 0.7, far))
    return rgba(mix(px.rgb, (1.0, 0.93, 0.8), light), px.a)
"""

#: The picture is made by the first kernel, and goes through the others.
STAGES: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    (
        "generate_gradient",
        {"from_color": (0.05, 0.07, 0.30), "to_color": (0.98, 0.45, 0.25), "angle": 0.6},
    ),
    ("rings", {}),
    ("vignette", {"amount": 0.7}),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this command's arguments."""
    parser.add_argument(
        "--out", type=Path, default=Path("out"), metavar="DIR", help="folder for demo.png (out)"
    )
    parser.add_argument("--device", help="auto, gpu, cpu, webgpu, webgpu:N or reference")
    parser.add_argument("--size", type=_size, default=(1280, 720), metavar="WxH", help="(1280x720)")


def run(args: argparse.Namespace) -> int:
    """Draws the picture and writes it."""
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
    print(f"kernels  {' -> '.join(name for name, _ in STAGES)}")
    print(f"time     {milliseconds:.0f} ms for {args.size[0]}x{args.size[1]}, compiling included")
    print(f"picture  {path}")
    return 0


def draw(width: int, height: int) -> NDArray[np.uint8]:
    """The picture, (height, width, 4), made on the current device."""
    import numpy as np

    from dala.gpu import compute

    own = {"rings": compute.kernel(RINGS)}
    shape = (height, width, 4)
    with compute.buffer_zeros(shape, "u8") as target, compute.buffer_zeros(shape, "u8") as source:
        inputs: list[compute.Buffer] = []
        for name, params in STAGES:
            compute.run_kernel(own.get(name, name), inputs, target, params)
            inputs, target, source = [target], source, target
        return np.array(source, np.uint8)


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    if not (width.isdecimal() and height.isdecimal() and int(width) and int(height)):
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write it as 1280x720")
    return int(width), int(height)
