"""``dala demo``: a short film (video, picture-in-picture, text, filters), and a picture.

The film needs the packages of ``dala[media]``; the picture needs nothing else.
"""

from __future__ import annotations

import argparse
import json
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

#: When the scene of the picture is, in seconds.
MOMENT: Final = 2.4

#: The picture's bands from left to right: what is written there, and where in its chapter of the
#: film (0 to 1) the filters are taken from.
BANDS: Final = (("drawn", 0.5), ("blur", 0.17), ("hue", 0.4), ("grade", 0.25), ("edges", 0.5))


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
    parser.add_argument("--json", action="store_true", help="print what was made as JSON")


def run(args: argparse.Namespace) -> int:
    """Makes the picture and the film, and says where they are."""
    import dala
    from dala.gpu import compute
    from dala.png import write_png

    with dala.device(args.device) if args.device else nullcontext():
        info = compute.device_info()
        args.out.mkdir(parents=True, exist_ok=True)
        path = args.out / "demo.png"
        width, height = args.size
        begin = perf_counter()
        write_png(path, draw(width, height))
        took = perf_counter() - begin
        report: dict[str, Any] = {
            "device": {"name": info["name"], "backend": info["backend"]},
            "picture": {"path": str(path), "width": width, "height": height, "seconds": took},
        }
        if not args.json:
            print(f"device   {info['name']} ({info['backend']})")
            print(f"picture  {path}: {width}x{height}, five lists of filters, ", end="")
            print(f"{took:.1f} s with compiling", flush=True)
        if args.seconds:
            report["video"] = _film(args)
    if args.json:
        print(json.dumps(report, indent=2))
        return 0
    made = report.get("video", {})
    if made.get("path"):
        size = f"{made['width']}x{made['height']}"
        print(f"video    {made['path']}: {size}, {made['frames']} frames in ", end="")
        print(
            f"{made['seconds']:.1f} s, {made['fps']:.0f} fps drawn, filtered, composed and encoded"
        )
    elif made:
        print(f"video    left out: {made['left_out']}")
    print(f"look     dala view {made.get('path') or path}")
    return 0


def _film(args: argparse.Namespace) -> dict[str, Any]:
    from dala.errors import MissingPackage
    from dala.media import video

    width, height = (side // 2 * 2 for side in args.size)  # video has chroma for two by two pixels
    path = args.out / "demo.mp4"
    count = max(round(args.seconds * RATE), 1)
    try:
        sink = video.write(path, fps=RATE)
    except MissingPackage:
        return {"left_out": "it needs PyAV. pip install 'dala[media]' brings it."}
    with sink:
        seconds = film(sink, width, height, count)
    return {
        "path": str(path),
        "width": width,
        "height": height,
        "frames": count,
        "seconds": seconds,
        "fps": count / seconds,
    }


def film(sink: Any, width: int, height: int, count: int) -> float:
    """Writes the frames of the film; gives the seconds it took."""
    from dala.cli._demo_scene import Film
    from dala.cli._progress import Progress

    with Film(width, height, count, RATE) as made, Progress(count, "frames") as progress:
        for number in range(count):
            sink.write(made.frame(number))
            progress.step()
        return progress.seconds


def draw(width: int, height: int) -> NDArray[np.uint8]:
    """The picture, (height, width, 4): one moment of the film, in bands with filters of each."""
    import numpy as np

    from dala.cli import _demo_scene as demo_scene
    from dala.media import FramePipeline

    with demo_scene.Drawing(width, height) as drawing:
        drawing.start(MOMENT)
        frame = drawing.take()
    y, x = np.mgrid[0:height, 0:width]
    slant = (x + 0.5 + (y - height / 2) * 0.22) / width * len(BANDS)
    band = np.clip(np.floor(slant), 0, len(BANDS) - 1)
    made = frame.copy()
    with FramePipeline(width, height) as pipeline:
        for number, (_, at) in enumerate(BANDS):
            _, filters = demo_scene.filters((number + at) / len(BANDS))
            inside = band == number
            made[inside] = pipeline.process(frame, filters)[inside]
    for number in range(1, len(BANDS)):
        near = np.abs(slant - number) * width / len(BANDS)
        made[near < max(height / 480, 0.5)] = (255, 246, 226, 255)
    return demo_scene.labelled(made, [name for name, _ in BANDS])


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
