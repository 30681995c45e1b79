"""List versions and devices, or the facts of videos, pictures and sounds.

examples:
  dala info                        versions and devices
  dala info clip.mp4 photo.jpg     size, frames per second, seconds, codec, sound
  dala info --json                 for scripts
  dala info --device webgpu        everything about one device
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from dala.cli.common import arguments, inputs
from dala.errors import ParameterError
from dala.media.video.suffixes import PICTURE_SUFFIXES

ARGUMENTS: Final[arguments.Options] = {
    "file": arguments.argument(
        "videos, pictures and sounds; without any, this machine", nargs="*", metavar="FILE"
    ),
    "--json": arguments.switch("print as JSON, with everything `dala doctor` reports"),
    "--device": arguments.argument("only this device: auto, gpu, cpu, webgpu:N, cuda:N, .."),
}


def run(args: argparse.Namespace) -> int:
    """Print versions and devices, or the facts of files."""
    if args.file:
        if args.device:
            raise ParameterError("--device is for devices. Give it without files.")
        found = [_facts(str(path)) for path in inputs.expand(args.file, videos=True)[0]]
        return arguments.show(args, found, "\n".join(map(_line, found)))
    if args.device:
        _device(args)
        return 0
    from dala.machine.report import doctor

    report = doctor()
    return arguments.show(args, report.as_dict(), report.facts())


def _facts(name: str) -> arguments.Report:
    """Return the facts of a file as its header has them; a picture is decoded."""
    from dala.media import Frame, audio, video

    found: arguments.Report = {"file": name}
    moves = inputs.is_video(name) or inputs.is_moving(name)
    if moves:
        with video.open(name) as film:
            found |= {"width": film.width, "height": film.height, "codec": film.codec}
            found |= {"fps": film.fps and float(film.fps), "seconds": film.duration}
            found |= {"frames": film.frames, "bits": film.bits, "hdr": film.is_hdr}
            if not film.has_audio:
                return found
    elif Path(name).suffix.lower() in PICTURE_SUFFIXES:
        picture = Frame.open(name)
        return found | {"width": picture.width, "height": picture.height}
    with audio.open(name) as sound:
        seconds = None if sound.duration is None else float(sound.duration)
        facts = {"codec": sound.codec, "rate": sound.rate, "layout": sound.layout}
        return found | ({"sound": facts} if moves else {**facts, "seconds": seconds})


def _line(facts: arguments.Report) -> str:
    """Return facts of a file as a line."""
    rest = {k: v for k, v in facts.items() if v is not None and v is not False}
    parts = [f"{rest['width']}x{rest['height']}"] if "width" in rest else []
    parts += [str(rest["codec"])] if "codec" in rest else []
    units = {"fps": "fps", "seconds": "s", "frames": "frames", "bits": "bits", "rate": "Hz"}
    parts += [f"{round(rest[k], 3):.12g} {unit}" for k, unit in units.items() if k in rest]
    parts += ["HDR"] * ("hdr" in rest) + [str(rest[k]) for k in rest if k == "layout"]
    sound = rest.get("sound")
    heard = f"; sound: {sound['codec']} {sound['rate']} Hz {sound['layout']}" if sound else ""
    return f"{facts['file']}: {', '.join(parts)}{heard}"


def _device(args: argparse.Namespace) -> None:
    import dala
    from dala.gpu import compute

    with dala.device(args.device):
        facts = compute.device_info()
    arguments.show(args, facts)
    for name, value in () if args.json else facts.items():
        if isinstance(value, dict):
            print(name)
            print("\n".join(f"  {key:46} {held:,}" for key, held in value.items()))
        else:
            shown = " ".join(map(str, value)) if isinstance(value, list | tuple) else value
            print(f"{name:16} {shown}")
