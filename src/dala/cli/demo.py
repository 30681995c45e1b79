"""``dala demo``: a generated picture through a few kernels, and a short film with changing filters.

The film needs the packages of ``dala[media]``; the picture needs nothing else.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXAMPLES: Final = """\
examples:
  dala demo                        out/demo.mp4 and out/demo.png
  dala demo --device cpu --seconds 2
  dala demo --seconds 0            the picture alone
"""

#: Frames a second of the film.
RATE: Final = 30

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
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--out", type=Path, default=Path("out"), metavar="DIR", help="folder for the files (out)"
    )
    parser.add_argument("--device", help="auto, gpu, cpu, webgpu, webgpu:N or reference")
    parser.add_argument("--size", type=_size, default=(1280, 720), metavar="WxH", help="(1280x720)")
    parser.add_argument(
        "--seconds", type=_seconds, default=5.0, metavar="S", help="of the film (5); 0 for none"
    )


def run(args: argparse.Namespace) -> int:
    """Makes the picture and the film, and says where they are."""
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
        print(
            f"time     {milliseconds:.0f} ms for {args.size[0]}x{args.size[1]}, compiling included"
        )
        print(f"picture  {path}", flush=True)
        if args.seconds:
            _film(args)
    return 0


def _film(args: argparse.Namespace) -> None:
    from dala.errors import MissingPackage
    from dala.media import video

    width, height = (side // 2 * 2 for side in args.size)  # video has chroma for two by two pixels
    path = args.out / "demo.mp4"
    count = max(round(args.seconds * RATE), 1)
    try:
        sink = video.write(path, fps=RATE)
    except MissingPackage:
        print("video    left out: it needs PyAV. pip install 'dala[media]' brings it.")
        return
    with sink:
        seconds = film(sink, width, height, count)
    print(f"video    {path}: {width}x{height}, {count} frames in {seconds:.1f} s, ", end="")
    print(f"{count / seconds:.0f} fps drawn, filtered and encoded")


def film(sink: Any, width: int, height: int, count: int) -> float:
    """Writes the frames of the film; gives the seconds it took."""
    from dala.cli import demo_scene
    from dala.cli.progress import Progress
    from dala.media import FramePipeline, gpu

    scene = demo_scene.Scene(width, height)
    try:
        with FramePipeline(width, height) as pipeline, Progress(count, "frames") as progress:
            small = (max(height // 4, 1), max(width // 4, 1))
            scene.start(0.0)
            for number in range(count):
                frame = scene.take()
                scene.start((number + 1) / RATE)  # drawn while this one is filtered
                caption, filters = demo_scene.filters(number / count)
                shown = pipeline.process(frame, filters)
                inset = gpu.resize(frame, size=small)
                place = (number + 1) / count
                sink.write(scene.put_together(shown, inset, caption, place))
                progress.step()
            return progress.seconds
    finally:
        scene.close()


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


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds up to 3600")
    return value
