"""Show a picture, a video or a camera, with filters; or run a program that draws.

examples:
  dala view photo.jpg
  dala view clip.mp4 --show browser --loop
  dala view clip.mp4 --grayscale --edge_detect
  dala view 0 --beauty             the first camera
  dala view plasma.fs              a shader that draws by itself
  dala view bars.fs --sound microphone
  dala view game.py                runs it, and again when it changes
"""

from __future__ import annotations

import argparse
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final, TypeAlias

from dala.arguments import SECONDS
from dala.arguments.paths import missing_file
from dala.cli.common import arguments, chain, inputs
from dala.cli.common.arguments import argument, switch
from dala.cli.common.kernels import SUFFIXES, Heard
from dala.errors import ParameterError, masked

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

    from dala.gpu import Surface
    from dala.media import Frame
    from dala.typing import NDArray

#: Frames, and when each is shown, in seconds from the first.
Timed: TypeAlias = "Generator[tuple[float, Frame | PillowImage]]"

SHOW: Final = ("window", "browser", "terminal")
USAGE: Final = "dala view IN [--FILTER [VALUE] ..] [options]"
PATHS: Final = "dala view IN"
ARGUMENTS: Final[arguments.Options] = {
    "source": argument(
        "a picture, a video, a URL, a camera (0), a shader (.fs, .glsl) or a Python program",
        metavar="IN",
    ),
    "--show": argument("where (a window if possible, else the browser)", choices=SHOW),
    "--loop": switch("repeat a video"),
    "--sound": argument(
        "of a shader: a file with sound, microphone or microphone:NAME", metavar="FILE"
    ),
    "--seconds": argument("close after this time", type=SECONDS.parse, metavar="S"),
    **arguments.JSON,
    **arguments.DEVICE,
    **arguments.MAX_PIXELS,
}


def run(args: argparse.Namespace) -> int:
    """Show the source until the viewer is closed, the time is over, or Ctrl-C."""
    name: str = args.source
    moving = inputs.is_video(name) or name.isdecimal() or inputs.is_moving(name)
    if not moving and not Path(name).is_file():
        raise missing_file(name)
    end = None if args.seconds is None else monotonic() + args.seconds
    show = args.show or default_show()
    if Path(name).suffix == ".py":
        return _program(args, Path(name), show, end)
    from dala.media.pictures.filtering import large_pictures

    with large_pictures():
        filters = chain.load(args.chain, args.max_pixels)
        shown = _Statistics()
        if SUFFIXES.get(Path(name).suffix) == "shader":
            frames = _shader(args, name, shown)
        elif args.sound is not None:
            raise ParameterError("--sound is for shaders, such as plasma.fs.")
        else:
            frames = _video(args, name) if moving else _picture(args, name)
        try:
            _play(frames, filters, args.device, show, Path(masked(name)).name, end, shown)
        except KeyboardInterrupt:
            pass  # the usual way to stop
        finally:
            frames.close()
    report = {"in": name, "show": show, "device": shown.device, "frames": shown.frames}
    report |= {"seconds": round(shown.seconds, 3), "filters": chain.as_json(args.chain)}
    return arguments.show(args, report)


def _program(args: argparse.Namespace, path: Path, show: str, end: float | None) -> int:
    from dala.cli.common.programs import run_program

    if args.chain:
        raise ParameterError("filters are for pictures and videos, not for programs.")
    begin = monotonic()
    starts = run_program(path, show, end)
    seconds = round(monotonic() - begin, 3)
    return arguments.show(
        args, {"in": str(path), "show": show, "starts": starts, "seconds": seconds}
    )


@dataclass
class _Statistics:
    """Counts of a show."""

    device: str = ""
    frames: int = 0
    #: From the first frame to the last.
    seconds: float = 0.0
    surface: Surface | None = None


def default_show() -> str:
    """Return "window" if there is a display and glfw, else "browser"."""
    from dala.gpu.presenters import default_kind

    return default_kind() or "browser"


def _shader(args: argparse.Namespace, name: str, shown: _Statistics) -> Timed:
    """Yield the frames of a generator as time passes, at most 60 a second."""
    import numpy as np
    from PIL import Image

    from dala.shaders import load

    program = load(name)
    if program.inputs:
        raise ParameterError(f"{name} takes a picture: dala view IN --shader {name}.")
    with ExitStack() as held:
        heard = None if args.sound is None else Heard(args.sound, held)
        state = held.enter_context(program.start(960, 540, device=args.device))
        begin = due = monotonic()
        while True:
            time = monotonic() - begin
            pointer = (0.0, 0.0, 0.0)
            if shown.surface is not None:
                place = shown.surface.pointer
                pointer = (place.x, place.y, float(bool(place.buttons)))
            sound = None if heard is None else heard.at(time)
            made = state.render(time=time, pointer=pointer, sound=sound)
            yield 0.0, Image.fromarray(np.asarray(made))
            due = max(due + 1 / 60, monotonic())
            sleep(max(due - monotonic(), 0))


def _picture(args: argparse.Namespace, name: str) -> Timed:
    from dala.media.files import load

    yield 0.0, load(name, args.max_pixels)


def _video(args: argparse.Namespace, name: str) -> Timed:
    """Yield frames and when to show them, in seconds from the first; live frames at once."""
    from dala.media import video

    with video.open(int(name) if name.isdecimal() else name, device=args.device) as source:
        live = source.policy == "latest"
        due, begin = 0.0, 0.0
        while True:
            first: float | None = None
            for frame in source:
                time = 0.0 if frame.time is None else float(frame.time)
                first = time if first is None else first
                due = 0.0 if live else begin + time - first
                yield due, frame
            if not args.loop or first is None:
                return
            begin = due + (float(1 / source.fps) if source.fps else 0.04)


def _play(
    frames: Timed,
    filters: list[chain.Link],
    device: str | None,
    show: str,
    title: str,
    end: float | None,
    shown: _Statistics,
) -> None:
    from dala import gpu
    from dala.media import FramePipeline

    surface: Surface | None = None
    try:
        with FramePipeline(1 << 16, 1 << 16, device=device) as pipeline:
            start = monotonic()
            shown.device = pipeline.device
            for due, frame in frames:
                pixels = _rgba(pipeline.process(frame, filters) if filters else frame)
                height, width = pixels.shape[:2]
                if surface is None:
                    surface = gpu.create_surface(width, height, show=show, title=title)
                    shown.surface = surface
                    start = monotonic()
                elif surface.size != (width, height):
                    surface.resize(width, height)
                sleep(max(start + due - monotonic(), 0))
                surface.set_pixels(pixels)
                surface.present()
                shown.frames, shown.seconds = shown.frames + 1, monotonic() - start
                if gpu.wait_closed(surface, 0) or (end is not None and monotonic() >= end):
                    return
        if surface is None:
            raise ParameterError("the video has no frames.")
        gpu.wait_closed(surface, None if end is None else max(end - monotonic(), 0))
    finally:
        if surface is not None:
            surface.close()


def _rgba(frame: Frame | PillowImage) -> NDArray:
    """Return a Frame or a Pillow image as (height, width, 4) of u8."""
    from dala.media import Frame
    from dala.media.pictures.pixels import rgba

    made = frame if isinstance(frame, Frame) else Frame.from_array(frame, device="cpu")
    pixels = made.picture()
    return pixels if pixels.shape[2:] == (4,) else rgba(pixels, None)
