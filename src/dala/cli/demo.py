"""Render a short video and a picture on the best device of this machine.

examples:
  dala demo                        out/demo.mp4 and out/demo.png
  dala demo --device cpu --seconds 2
  dala demo --seconds 0            only the picture

The video, and text in both, need the packages of dala-gpu[media]; the picture needs nothing else.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

from dala.arguments import Quantity, Size
from dala.cli.common import arguments
from dala.cli.common.arguments import argument
from dala.extras import pip_install

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dala.media.video.files import Writer

#: Frames per second of the video.
RATE: Final = 30

#: The time of the picture, in seconds.
MOMENT: Final = 2.4

#: The picture's bands from left to right: a label, and the position in the video's chapter (0 to 1)
#: that the filters are taken from.
BANDS: Final = (("drawn", 0.5), ("blur", 0.17), ("hue", 0.4), ("grade", 0.25), ("edges", 0.5))


ARGUMENTS: Final[arguments.Options] = {
    "--out": argument("folder for the files (out)", type=Path, default=Path("out"), metavar="DIR"),
    **arguments.DEVICE,
    **arguments.JSON,
    "--size": argument("(1280x720)", type=Size().parse, default=(1280, 720), metavar="WxH"),
    "--seconds": argument(
        "of the video (5); 0 for none", type=Quantity(0, 3600, "seconds").parse, default=5.0,
        metavar="S",
    ),
}  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Render the picture and the video and print their paths."""
    import dala
    from dala.cli.scenes import demo_scene
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
        report: dict[str, object] = {
            "device": {"name": info["name"], "backend": info["backend"]},
            "picture": {"path": str(path), "width": width, "height": height, "seconds": took},
        }
        size = f"{width}x{height}, five lists of filters, {took:.1f} s with compiling"
        arguments.say(args, f"device   {info['name']} ({info['backend']})")
        arguments.say(args, f"picture  {path}: {size}")
        no_text = demo_scene.why_no_text()
        if no_text:
            report["text"] = {"left_out": no_text}
        made = _video(args) if args.seconds else {}
        if made:
            report["video"] = made
    arguments.show(args, report)
    if made.get("path"):
        size = f"{made['width']}x{made['height']}, {made['frames']} frames in"
        rate = f"{made['fps']:.0f} fps drawn, filtered, composed and encoded"
        arguments.say(args, f"video    {made['path']}: {size} {made['seconds']:.1f} s, {rate}")
    elif made:
        arguments.say(args, f"video    skipped: {made['left_out']}")
    if no_text:
        arguments.say(args, f"text     skipped: {no_text}")
    arguments.say(args, f"look     {view_command(made.get('path') or str(path))}")
    return 0


def view_command(path: str) -> str:
    """Return the command that shows a file, as it works where this process was started.

    Without an activated environment, as after ``make demo``, that is the interpreter's path.
    """
    if importlib.util.find_spec("PIL") is None:  # `dala view` needs it
        return f"open {shlex.quote(path)} with any viewer of pictures"
    script = shutil.which("dala")
    own = Path(sys.executable).parent
    if script and Path(script).parent.resolve() == own.resolve():
        command = "dala"
    else:
        here = os.path.relpath(sys.executable)
        shown = here if not here.startswith(os.pardir) else sys.executable
        command = f"{shlex.quote(shown)} -m dala"
    return f"{command} view {shlex.quote(path)}"


def _video(args: argparse.Namespace) -> arguments.Report:
    """Write the video; return its facts, or why there is none."""
    from dala.errors import MissingPackage
    from dala.media import video

    width, height = (side // 2 * 2 for side in args.size)  # 4:2:0 video has even sides
    path = args.out / "demo.mp4"
    count = max(round(args.seconds * RATE), 1)
    try:
        sink = video.write(path, fps=RATE)
    except MissingPackage:
        return {"left_out": f"it needs PyAV: {pip_install('media')}"}
    with sink:
        seconds = write_frames(sink, width, height, count)
    facts = {"path": str(path), "width": width, "height": height, "frames": count}
    return {**facts, "seconds": seconds, "fps": count / seconds}


def write_frames(sink: Writer, width: int, height: int, count: int) -> float:
    """Write the frames of the video and return the time in seconds."""
    from dala.cli.scenes.demo_scene import DemoScene
    from dala.media.progress import Progress

    with DemoScene(width, height, count, RATE) as made, Progress(count, "frames") as progress:
        for number in range(count):
            sink.write(made.frame(number))
            progress.step()
        return progress.seconds


def draw(width: int, height: int) -> NDArray[np.uint8]:
    """Return the picture, (height, width, 4): one frame of the video, in bands of filters."""
    import numpy as np

    from dala.cli.scenes import demo_scene
    from dala.gpu import create_surface
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
    with create_surface(width, height) as s:
        s.set_pixels(made)
        for number in range(1, len(BANDS)):
            x, lean = number * width / len(BANDS), height * 0.11
            s.line(x + lean, 0, x - lean, height, "#fff6e2", max(height / 200, 1.5))
        made = s.to_array()
    return demo_scene.labeled(made, [name for name, _ in BANDS])
