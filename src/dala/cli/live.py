"""Send a camera, a screen, a video or a scene live, through filters."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dala.cli.common import arguments, chain
from dala.cli.common.signals import Stopped, stopping
from dala.errors import ParameterError, counted
from dala.media.notices import collected
from dala.media.video.arguments import check_seconds

if TYPE_CHECKING:
    from dala.media.audio.arriving import LiveSound
    from dala.media.live.sending import LiveRun
    from dala.media.video.reader import Reader

EXAMPLES: Final = """\
examples:
  dala live camera --microphone default --blur 12 --to rtmp://127.0.0.1/live/test
  dala live clip.mp4 --sepia --to hls/ --seconds 20
  dala live camera:test --to udp://127.0.0.1:5000
  dala live screen --resize 1280x720 --to whip+https://example.org/whip
  dala live scene.json --to rtsp://127.0.0.1:8554/show
  dala live camera --blur 8 --to camera:            a virtual camera, for calls

IN is a video, a URL, a scene file, camera, camera:NUMBER, camera:NAME, camera:test (a generated
picture) or screen. URL is rtmp, rtsp, udp, srt, whip+https, a folder for HLS, or camera:. Without
--seconds it runs until the source ends or Ctrl-C. `dala kernels` lists the filters.
"""

OPTIONS: Final[arguments.Options] = {
    **arguments.DEVICE,
    **arguments.JSON,
    **arguments.MAX_PIXELS,
    "--to": {"metavar": "URL", "required": True, "help": "where to send: a URL or a folder"},
    "--seconds": {"type": float, "metavar": "N", "help": "how long to send"},
    "--fps": {"type": arguments.rate, "metavar": "N", "help": "frames per second (the source's)"},
    "--size": {"type": arguments.size, "metavar": "WxH", "help": "of a camera's pictures"},
    "--bit-rate": {"metavar": "N", "help": "bits a second, such as 4M (by the size)"},
    "--key-frames": {
        "type": float,
        "default": 2.0,
        "metavar": "N",
        "help": "seconds between key frames (2)",
    },
    "--microphone": {
        "metavar": "NAME",
        "help": "sound: default, a number, a name or test; a scene is heard with it",
    },
    "--no-audio": {"action": "store_true", "help": "drop the sound"},
    "--encoder": {"help": "auto for hardware that works, or nvenc, qsv, videotoolbox, amf, vaapi"},
    "--reconnect": {
        "type": float,
        "default": 300.0,
        "metavar": "N",
        "help": "seconds for which a lost receiver or source is tried again (300)",
    },
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.usage = "dala live IN --to URL [--FILTER [VALUE] ..] [options]"
    parser.add_argument("paths", nargs=1, metavar="IN", help="a video, a camera, a scene, ..")
    arguments.add_options(parser, OPTIONS)
    chain.add_options(parser)


def prepare(words: Sequence[str]) -> list[str]:
    """Return the arguments in a form that argparse can parse."""
    return chain.join(words, arguments.flags(OPTIONS), "dala live IN")


def run(args: argparse.Namespace) -> int:
    """Send until the end and print the figures."""
    begin = time.perf_counter()
    try:
        with stopping(), collected() as notices, ExitStack() as held:
            live = _start(args, held)
            try:
                live.wait()
            except KeyboardInterrupt:
                live.close()
                if args.seconds is not None:
                    raise
    except Stopped as stopped:
        return 128 + stopped.number
    stats = live.stats
    if args.json:
        report = {"in": args.paths[0], "to": live.output.where.label, **stats, "notices": notices}
        print(json.dumps(report, indent=2))
        return 0
    seconds = time.perf_counter() - begin
    print(
        f"{live.output.where.label}: {counted(int(stats['shown']), 'frames')} in {seconds:.1f} s, "
        f"{stats['dropped']:.0f} dropped, {stats['repeated']:.0f} repeated, "
        f"{stats['bit_rate'] / 1e6:.2f} Mbit/s, latency {stats['latency_ms']:.0f} ms"
    )
    for text in notices:
        print(f"dala live: {text}", file=sys.stderr)
    return 0


def _start(args: argparse.Namespace, held: ExitStack) -> LiveRun:
    from dala.media import live
    from dala.media.microphone.functions import named

    name = args.paths[0]
    if args.seconds is not None:
        check_seconds("live.send", "seconds", args.seconds)
    if args.no_audio and args.microphone is not None:
        raise ParameterError("--no-audio drops the sound. Leave out --microphone.")
    if Path(name).suffix.lower() == ".json" and "://" not in name:
        return _scene(args, name, held)
    filters = chain.load(args.chain, args.max_pixels)
    source = _source(args, name, "native" if filters else "rgba")
    held.callback(source.close)
    audio: bool | LiveSound = not args.no_audio
    if args.microphone is not None:
        audio = held.enter_context(named(args.microphone))
    return live.send(
        source, args.to, filters or None, seconds=args.seconds, device=args.device, fps=args.fps,
        bit_rate=args.bit_rate, key_frames=args.key_frames, encoder=args.encoder, audio=audio,
        reconnect=args.reconnect, wait=False,
    )  # fmt: skip


def _source(args: argparse.Namespace, name: str, format: str) -> Reader:
    """Open IN."""
    from dala.media import camera, screen, video
    from dala.media.live.destination import destination_of
    from dala.media.video.source import source_of

    destination_of(args.to, "live.send")  # before a camera is switched on
    kind, _, which = name.partition(":")
    if kind == "camera" and not Path(name).exists():
        chosen = int(which) if which.isdecimal() else which or "default"
        size, reconnect = args.size, args.reconnect
        return camera.open(
            chosen, size=size, fps=args.fps, format=format, device=args.device, reconnect=reconnect
        )
    if args.size is not None:
        raise ParameterError("--size is for cameras. Use --resize for other sources.")
    if kind == "screen" and not Path(name).exists():
        return screen.open(which or None, fps=args.fps or 30, device=args.device)
    lasting = args.reconnect if source_of(name).live and "://" in name else 0.0
    return video.open(name, format=format, device=args.device, reconnect=lasting)


def _scene(args: argparse.Namespace, name: str, held: ExitStack) -> LiveRun:
    from dala.media import load_scene

    if args.chain:
        raise ParameterError("a scene has effects of its own. Put the filters into the scene file.")
    scene = held.enter_context(load_scene(name, device=args.device))
    if args.microphone is not None:
        scene.add_audio(f"microphone://{args.microphone}")
    return scene.live(
        args.to, args.seconds, fps=args.fps, bit_rate=args.bit_rate, key_frames=args.key_frames,
        encoder=args.encoder, audio=not args.no_audio, reconnect=args.reconnect, wait=False,
    )  # fmt: skip
