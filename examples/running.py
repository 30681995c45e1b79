"""What the examples share: a scene as a picture and a video in ``out/``, or in a window.

python examples/fluid.py                        # out/fluid.png and out/fluid.mp4
python examples/fluid.py --show window          # plays it; also browser and terminal
python examples/fluid.py --size 320x180 --seconds 2 --device cpu --out small
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FunctionType

from dala import DalaError
from dala.media import Frame, Scene


def run(
    build: FunctionType,
    arguments: Sequence[str] | None = None,
    *,
    moment: float = 0.0,
    video: bool = True,
    stepwise: bool = False,
) -> int:
    """Write the picture of a moment and the video, or play it. Return the exit code.

    Args:
        build: a function of a device, and of a size where it takes one, that returns a scene.
        arguments: the command line; by default that of the program.
        moment: the time of the picture, in seconds.
        video: False for a scene that does not move.
        stepwise: True for a simulation, which cannot jump to the moment.
    """
    name = Path(inspect.getfile(build)).stem
    sized = "size" in inspect.signature(build).parameters
    parser = argparse.ArgumentParser(description=build.__globals__["__doc__"].partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out"), help="where files go (out)")
    parser.add_argument("--seconds", type=float, help="of video; by default all of it")
    parser.add_argument("--show", choices=("window", "browser", "terminal"), help="play instead")
    parser.add_argument("--device", help="cpu, webgpu, ...; by default the best")
    if sized:
        parser.add_argument("--size", help="WIDTHxHEIGHT")
    given = parser.parse_args(arguments)
    options = {"size": tuple(map(int, given.size.split("x")))} if sized and given.size else {}
    made = []
    try:
        if given.show:
            with build(given.device, **options) as scene:
                scene.play(given.show, given.seconds)
            return 0
        given.out.mkdir(parents=True, exist_ok=True)
        with build(given.device, **options) as scene:
            still(scene, moment, stepwise).save(given.out / f"{name}.png")
            made.append(given.out / f"{name}.png")
        if video:
            with build(given.device, **options) as scene:  # anew: simulations run once
                scene.render_to(given.out / f"{name}.mp4", given.seconds)
                made.append(given.out / f"{name}.mp4")
    except (DalaError, OSError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    print(*made, sep=" and ")
    return 0


def still(scene: Scene, moment: float, stepwise: bool = False) -> Frame:
    """Return the picture of a moment; step by step if the way there takes long."""
    for step in range(int(moment * 4) if stepwise else 0):
        scene.render(step / 4)
    return scene.render(moment)
