"""Send a camera, a screen, a video or a scene live, through filters.

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

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dala.arguments import WAIT, Size
from dala.cli.common import arguments, chain
from dala.cli.common.arguments import RATE, argument, switch
from dala.cli.common.signals import stopping
from dala.cli.traces.watching import Watching
from dala.errors import ParameterError, counted
from dala.media.live.output import StreamOptions
from dala.notices import collected

if TYPE_CHECKING:
    from dala.media.audio.arriving import LiveSound
    from dala.media.live.sending import LiveRun
    from dala.media.video.reader import Reader

USAGE: Final = "dala live IN --to URL [--FILTER [VALUE] ..] [options]"
PATHS: Final = "dala live IN"
ARGUMENTS: Final[arguments.Options] = {
    "paths": argument("a video, a camera, a scene, ..", nargs=1, metavar="IN"),
    **arguments.DEVICE,
    **arguments.JSON,
    **arguments.MAX_PIXELS,
    "--to": argument("where to send: a URL or a folder", metavar="URL", required=True),
    "--seconds": argument("how long to send", type=float, metavar="N"),
    "--fps": argument("frames per second (the source's)", type=RATE.parse, metavar="N"),
    "--size": argument("of a camera's pictures", type=Size().parse, metavar="WxH"),
    **StreamOptions.command_line(),
    "--microphone": argument(
        "sound: default, a number, a name or test; a scene is heard with it", metavar="NAME"
    ),
    "--no-audio": switch("drop the sound"),
    "--stats": switch("show the times of the last ten seconds, and what frames waited for"),
    "--metrics": argument(
        "serve metrics for Prometheus at http://HOST:PORT/metrics", metavar="HOST:PORT"
    ),
}


def run(args: argparse.Namespace) -> int:
    """Send until the end and print the figures."""
    begin = time.perf_counter()
    with stopping(), collected() as notices, ExitStack() as held:
        watching = held.enter_context(Watching(args.stats, args.metrics))
        live = _start(args, held)
        try:
            watching.wait(live)
        except KeyboardInterrupt:
            live.close()
            if args.seconds is not None:
                raise
    stats = live.stats
    seconds, label = time.perf_counter() - begin, live.output.where.label
    return arguments.show(
        args,
        {"in": args.paths[0], "to": label, **stats, "notices": notices},
        f"{label}: {counted(int(stats['shown']), 'frames')} in {seconds:.1f} s, "
        f"{stats['dropped']:.0f} dropped, {stats['repeated']:.0f} repeated, "
        f"{stats['bit_rate'] / 1e6:.2f} Mbit/s, latency {stats['latency_ms']:.0f} ms",
        [*notices, *watching.reasons],
    )


def _start(args: argparse.Namespace, held: ExitStack) -> LiveRun:
    from dala.media import live
    from dala.media.microphone.functions import named

    name = args.paths[0]
    if args.seconds is not None:
        WAIT.check("live.send", "seconds", args.seconds)
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
        audio=audio, wait=False, **StreamOptions.given(args),
    )  # fmt: skip


def _source(args: argparse.Namespace, name: str, format: str) -> Reader:
    """Open IN."""
    from dala.media import camera, screen, video
    from dala.media.live.destination import destination_of
    from dala.media.video.source import source_of

    destination_of(args.to, "live.send")  # before a camera is switched on
    wait = StreamOptions(**StreamOptions.given(args)).reconnect
    kind, _, which = name.partition(":")
    if kind == "camera" and not Path(name).exists():
        chosen = int(which) if which.isdecimal() else which or "default"
        return camera.open(
            chosen, size=args.size, fps=args.fps, format=format, device=args.device, reconnect=wait
        )
    if args.size is not None:
        raise ParameterError("--size is for cameras. Use --resize for other sources.")
    if kind == "screen" and not Path(name).exists():
        return screen.open(which or None, fps=args.fps or 30, device=args.device)
    lasting = wait if source_of(name).live and "://" in name else 0.0
    return video.open(name, format=format, device=args.device, reconnect=lasting)


def _scene(args: argparse.Namespace, name: str, held: ExitStack) -> LiveRun:
    from dala.media import load_scene

    if args.chain:
        raise ParameterError("a scene has effects of its own. Put the filters into the scene file.")
    scene = held.enter_context(load_scene(name, device=args.device))
    if args.microphone is not None:
        scene.add_audio(f"microphone://{args.microphone}")
    return scene.live(
        args.to, args.seconds, fps=args.fps, audio=not args.no_audio, wait=False,
        **StreamOptions.given(args),
    )  # fmt: skip
