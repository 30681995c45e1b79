"""Export filters as a web page that runs on the visitor's GPU.

examples:
  dala export --blur radius=4,sigma=2 --sharpen 0.3 -o page/
  dala export --lut film.cube --vignette -o look.html      one file
  dala export glow.py -o page/                             a kernel or program of a file
  dala export glow.fs -o page/                             an ISF file
  dala export chain.json -o page/                          filters as `filter --json` prints them
  dala export scene.json --node title -o page/             the effects of a scene, or of a node
  dala export --sepia -o page/ --picture photo.jpg --title "Old times"
  dala export --blur 4 -o page/ --slider radius=0:32 --slider border
  dala export --invert --serve                             for this machine
  dala export --chroma_key --serve --phone                 for a phone, with a QR code

Open the page over http or https: browsers do not load modules of local files, except from the one
file. --serve does so, and serves nothing but the page; in a network with a certificate made on the
spot, because phones offer WebGPU and cameras only to https. `dala kernels` lists the filters.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dala.arguments import Integer
from dala.cli.common import arguments, chain
from dala.cli.common.arguments import argument, switch
from dala.cli.common.kernels import SUFFIXES
from dala.cli.common.signals import Stopped, stopping
from dala.errors import ParameterError, counted

if TYPE_CHECKING:
    from dala.web import Export


def slider(text: str) -> tuple[str, tuple[float, float] | None]:
    """Parse NAME or NAME=LOW:HIGH.

    >>> slider("sigma=0.5:20"), slider("border")
    (('sigma', (0.5, 20.0)), ('border', None))
    """
    name, equals, value = text.partition("=")
    if not equals:
        return name, None
    low, _, high = value.partition(":")
    try:
        return name, (float(low), float(high))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be NAME or NAME=LOW:HIGH, such as sigma=0.5:20, got {text!r}"
        ) from None


USAGE: Final = (
    "dala export [KERNEL.py | SHADER.fs | CHAIN.json | SCENE.json] [--FILTER [VALUE] ..] -o OUT "
    "[options]"
)
PATHS: Final = "dala export CHAIN.json"
ARGUMENTS: Final[arguments.Options] = {
    "paths": argument("a kernel, filters, or a scene", nargs="*", metavar="FILE"),
    "-o, --out": argument("the folder to write, or one file that ends in .html", metavar="OUT"),
    "--slider": argument(
        "the range of a control, or a parameter to make one of",
        type=slider,
        action="append",
        default=[],
        metavar="NAME[=LOW:HIGH]",
    ),
    **arguments.DEVICE,
    **arguments.JSON,
    **arguments.MAX_PIXELS,
    "--title": argument("of the page (the names of the filters)", metavar="TEXT"),
    "--picture": argument("that the page shows at first (a photograph)", metavar="FILE"),
    "--node": argument(
        "of a scene: an effect, or a node with effects (the only ones of the scene)", metavar="ID"
    ),
    "--yuv": switch(
        "also export plans for video frames in NV12 and I420, converted as Dala does it"
    ),
    "--serve": switch("serve the page, and print its address, until Ctrl-C"),
    "--phone": switch("with --serve: for phones in the network, and print a QR code"),
    "--host": argument(
        "with --serve: the address to listen on, 0.0.0.0 for the network (127.0.0.1)",
        metavar="ADDRESS",
    ),
    "--port": argument(
        "with --serve: the port (a free one)", type=Integer(0, 65535).parse, default=0, metavar="N"
    ),
}


def run(args: argparse.Namespace) -> int:
    """Export, print a report, and serve where asked to."""
    if len(args.paths) > 1 or bool(args.paths) == bool(args.chain):
        raise ParameterError(
            "give filters, such as --blur 3, or one file, such as kernel.py, glow.fs, chain.json "
            "or scene.json."
        )
    if args.phone and (not args.serve or args.host is not None):
        raise ParameterError("--phone goes with --serve, and without --host.")
    if args.out is None and not args.serve:
        raise ParameterError("name the folder to write, such as -o page/.")
    try:
        with stopping(), ExitStack() as held:
            return _run(args, held)
    except Stopped as stopped:
        return 0 if args.serve else 128 + stopped.number


def _run(args: argparse.Namespace, held: ExitStack) -> int:
    from dala import web

    scene = args.paths and web.is_scene_file(args.paths[0])
    filters = Path(args.paths[0]) if scene else _loaded(args)
    out = args.out or held.enter_context(tempfile.TemporaryDirectory(prefix="dala-web-"))
    made = web.export(
        filters,
        out,
        title=args.title,
        picture=args.picture,
        node=args.node,
        sliders=dict(args.slider) or None,
        yuv=args.yuv,
        device=args.device or "cpu",
    )
    if not args.serve:
        return arguments.show(args, _report(made), _summary(made), made.notes)
    arguments.note(args, made.notes)
    try:
        host = args.host or ("0.0.0.0" if args.phone else "127.0.0.1")
        with web.Server(made.path, host=host, port=args.port) as server:
            from dala.web.serving import announcement

            if args.json:
                print(json.dumps({**_report(made), "address": server.address}), flush=True)
            else:
                print(announcement(server), end="", flush=True)
            server.wait()
    except KeyboardInterrupt as stop:
        if isinstance(stop, Stopped):
            raise
    return 0


def _loaded(args: argparse.Namespace) -> list[chain.Link]:
    """Return the filters of the command or of the file, with their pictures and tables."""
    if not args.paths:
        return chain.load(args.chain, args.max_pixels)
    from dala.gpu.compute.runnable import Runnable
    from dala.web import read_chain

    path = Path(args.paths[0])
    if path.suffix in SUFFIXES:
        return chain.load([chain.parse(SUFFIXES[path.suffix], str(path))], args.max_pixels)
    links: list[chain.Link] = []
    for item in read_chain(path):
        name, given = (item, {}) if isinstance(item, str) else item  # type: ignore[misc]
        if isinstance(name, Runnable):
            links.append((name, dict(given)))
            continue
        if not isinstance(name, str) or name not in chain.filters():
            raise ParameterError(f"{path}: {name!r} is not a filter. `dala kernels` lists them.")
        files = (*chain.PICTURES, *chain.FILES)
        known = chain.params(name)
        values = {
            key: path.parent / value
            if isinstance(value, str) and key in known and known[key].type in files
            else value
            for key, value in given.items()
        }
        links.append((name, values))
    return chain.load(links, args.max_pixels)


def _report(made: Export) -> dict[str, chain.Json]:
    plan = made.plan
    return {
        "out": str(made.path),
        "files": list(made.files),
        "dispatches": plan.dispatches,
        "plans": sum(len(found) for found in plan.variants.values()),
        "size": None if plan.size is None else list(plan.size),
        "controls": [c.name for c in plan.live],
        "notes": list(plan.notes),
    }


def _summary(made: Export) -> str:
    plan = made.plan
    controls = ", ".join(c.name for c in plan.live) or "none"
    return (
        f"{made.path}: {plan.name} in {counted(plan.dispatches, 'dispatches', 'dispatch')}; "
        f"controls: {controls}"
    )
