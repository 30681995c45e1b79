"""Open a studio in the browser: pictures, videos, scenes and kernels, live.

examples:
  dala studio                          a photograph to try things on
  dala studio photo.jpg
  dala studio clip.mp4 --no-browser    prints the address, and opens nothing
  dala studio camera                   the first camera; camera:1, camera:test
  dala studio scene.json
  dala studio kernel.py                edit a kernel, and see what it does
  dala studio plasma.fs                a shader: an ISF file, or a text of Shadertoy's (.glsl)
  dala studio --host 0.0.0.0 --tls     for a phone in the same network

The first line is the address, with a secret: who has it can use the studio. Pages can open and
write files in the folder of SOURCE (or the current one) and in those of --folder. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Final

from dala import forks
from dala.arguments import Integer
from dala.arguments.paths import missing_file
from dala.cli.common import arguments
from dala.cli.common.arguments import argument, switch
from dala.errors import ParameterError
from dala.extras import needing

ARGUMENTS: Final[arguments.Options] = {
    "source": argument(
        "a picture, a video, camera, a scene file, a kernel or a shader",
        nargs="?",
        metavar="SOURCE",
    ),
    "--no-browser": switch("do not open the browser"),
    "--host": argument(
        "the address to listen on (127.0.0.1: only this machine)",
        default="127.0.0.1",
        metavar="ADDRESS",
    ),
    "--port": argument(
        "the port (a free one)", type=Integer(0, 65535).parse, default=0, metavar="N"
    ),
    "--tls": switch("serve with a certificate made on the spot, and print a QR code: for phones"),
    "--folder": argument(
        "another folder whose files pages may open and write", action="append", metavar="FOLDER"
    ),
    **arguments.DEVICE,
    **arguments.JSON,
}


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    with needing("studio", "studio"):
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
        import websockets  # noqa: F401
    from dala.studio.application import app
    from dala.studio.server import serve

    source: str | None = args.source
    camera = None
    if source is not None and (source == "camera" or source.startswith("camera:")):
        camera = source.partition(":")[2] or "default"
        source = None
    if source is not None and not Path(source).is_file():
        raise missing_file(source)
    folders = [*(args.folder or []), *([] if source else [Path.cwd()])]
    for folder in folders:
        if not Path(folder).is_dir():
            raise ParameterError.invalid("studio", "--folder", "a folder that exists", str(folder))
    studio = app(source, folders=folders, device=args.device)
    try:
        if camera is not None:
            studio.session.do({"do": "open", "camera": camera})
        elif source is None:
            studio.session.do({"do": "open", "sample": "coffee"})
    except BaseException:
        studio.close()
        raise

    def ready(address: str) -> None:
        print(json.dumps({"address": address}) if args.json else address, flush=True)
        if args.tls and not args.json:
            from dala.secure import qr_text

            print(qr_text(address), flush=True)
        if not args.no_browser:  # on a thread: a browser of the terminal would not return
            forks.thread(_open, name="dala-studio-browser", args=(address,)).start()

    serve(studio, args.host, args.port, tls=args.tls, ready=ready)
    return 0


def _open(address: str) -> None:
    """Open the browser, or say that there is none."""
    import webbrowser

    try:
        opened = webbrowser.open(address)
    except webbrowser.Error:
        opened = False
    if not opened:
        print("dala studio: no browser was found. Open the address above.", file=sys.stderr)
