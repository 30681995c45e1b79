"""A page for every command of the command line."""

from __future__ import annotations

import argparse
import importlib
import os
import re
from collections.abc import Iterator
from unittest import mock

from dala.cli import COMMANDS, configure, help_parts
from website.catalogue.pictures import Pictures
from website.docstrings import table
from website.reference import linker

#: What does the same in Python.
PYTHON = {
    "background": ("dala.ml.Background",),
    "batch": ("dala.batch.videos", "dala.batch.images", "dala.batch.scenes"),
    "classify": ("dala.ml.gpu.predict",),
    "compose": ("dala.media.scene.load_scene", "dala.media.scene.Scene.render_to"),
    "completion": (),
    "concat": ("dala.media.Timeline", "dala.media.scene.Scene.render_to"),
    "cut": ("dala.media.video.open", "dala.media.video.write"),
    "demo": (),
    "detect": ("dala.ml.gpu.predict", "dala.ml.track.Tracker"),
    "doctor": ("dala.doctor", "dala.devices"),
    "export": ("dala.web.export", "dala.web.serve"),
    "faces": ("dala.ml.gpu.predict", "dala.media.scene.Scene.follow"),
    "filter": ("dala.media.gpu.process_frame", "dala.media.video.open", "dala.media.video.write"),
    "hands": ("dala.ml.gpu.predict",),
    "info": ("dala.doctor", "dala.gpu.compute.device_info", "dala.media.video.open"),
    "kernels": ("dala.gpu.compute.kernels",),
    "live": ("dala.media.live.send", "dala.media.camera.open"),
    "models": ("dala.ml.gpu.available_models", "dala.ml.gpu.load_model"),
    "poses": ("dala.ml.gpu.predict",),
    "render": ("dala.shaders.load", "dala.media.scene.Scene.render_to"),
    "segment": ("dala.ml.gpu.predict",),
    "selftest": ("dala.selftest", "dala.devices"),
    "studio": ("dala.studio.app",),
    "view": ("dala.media.scene.Scene.play",),
    "why": ("dala.trace.span",),
}


def pages(pictures: Pictures) -> dict[str, tuple[str, str]]:
    """Return the pages of all commands, and their list."""
    rows = [(f"[`dala {name}`]({name}.md)", _sentence(name)) for name in COMMANDS]
    lines = [
        "# Commands",
        "",
        "The commands of `dala`, with their help texts. The guide is [the command line](../../command-line.md).",
        "",
        *table(("command", ""), rows),
    ]
    found = {"index": ("Commands", "\n".join(lines))}
    return found | {name: (f"dala {name}", "\n".join(_page(name))) for name in COMMANDS}


def _sentence(name: str) -> str:
    line, _ = help_parts(name)
    return f"{line[0].upper()}{line[1:]}."


def _page(name: str) -> Iterator[str]:
    yield from (f"# dala {name}", "", _sentence(name), "")
    lines = help_parts(name)[1].splitlines()
    examples = [line.strip() for line in lines if line.startswith(" ")]
    remarks = [
        line for line in lines if not line.startswith(" ") and not line.endswith("examples:")
    ]
    if examples:
        yield from ("## Examples", "", "```sh", *map(_commented, examples), "```", "")
    # The help text names pages by their file.
    yield from (re.sub(r"\bdocs/([\w/-]+)\.md", r"[\1](../../\1.md)", line) for line in remarks)
    yield ""
    link = linker(f"catalogue/commands/{name}.md")
    if PYTHON[name]:
        yield from (f"In Python: {', '.join(map(link, PYTHON[name]))}.", "")
    yield from ("## All options", "", "```text", help_text(name).rstrip(), "```", "")


def _commented(line: str) -> str:
    """Return an example with its remark as a comment of the shell."""
    command, gap, remark = line.partition("  ")
    return f"{command}  # {remark.strip()}" if gap and command.startswith("dala") else line


def help_text(name: str) -> str:
    """Return the help text of a command, 82 columns wide."""
    module = importlib.import_module(f"dala.cli.{name}")
    with mock.patch.dict(os.environ, {"COLUMNS": "82", "NO_COLOR": "1"}):
        parser = argparse.ArgumentParser(prog=f"dala {name}", allow_abbrev=False)
        configure(parser, module)
        return parser.format_help()
