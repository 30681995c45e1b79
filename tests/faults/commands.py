"""Commands of the command line, run in this process."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path

import dala
from dala.cli import main
from dala.media import Scene
from tests.faults.operations import Operation, clip, picture, weights


class CommandFailed(OSError):
    """A command that ended with 2 and one line."""


#: Arguments of each command. None: it needs weights that are not on every machine, or a window.
COMMANDS: dict[str, Callable[[Path], list[str]] | None] = {
    "background": None,
    "batch": None,  # its work is done in processes of their own
    "classify": lambda folder: [str(picture(folder)), "--model", str(weights(folder))],
    "compose": lambda folder: [
        str(scene_file(folder)),
        "--frame",
        "0",
        "-o",
        str(folder / "out.png"),
    ],
    "completion": lambda folder: ["bash"],
    "concat": lambda folder: [str(clip(folder)), str(clip(folder)), "-o", str(folder / "out.mp4")],
    "cut": lambda folder: [
        str(clip(folder)),
        "--from",
        "0",
        "--to",
        "0.1",
        "-o",
        str(folder / "out.mp4"),
    ],
    "demo": None,
    "detect": None,
    "doctor": lambda folder: [],
    "export": lambda folder: ["--invert", "-o", str(folder / "page")],
    "faces": lambda folder: [str(picture(folder)), "--out", str(folder / "out.png")],
    "filter": lambda folder: [str(clip(folder)), str(folder / "out.mp4"), "--invert"],
    "hands": None,
    "info": lambda folder: [str(clip(folder)), str(picture(folder))],
    "kernels": lambda folder: ["blur"],
    "live": None,
    "models": lambda folder: [],
    "poses": None,
    "render": lambda folder: [
        str(shader_file(folder)),
        "-o",
        str(folder / "out.mp4"),
        "--seconds",
        "0.1",
        "--size",
        "16x16",
    ],
    "segment": None,
    "selftest": None,  # it runs what other rows run
    "studio": None,
    "view": None,
    "why": lambda folder: [str(trace_file(folder))],
}


def trace_file(folder: Path) -> Path:
    path = folder / "run.json"
    if not path.exists():
        with dala.trace(path), dala.trace.span("step"):
            pass
    return path


def scene_file(folder: Path) -> Path:
    path = folder / "in.json"
    if not path.exists():
        with Scene(16, 16) as scene:
            scene.add_image(str(picture(folder)))
            scene.add_text("ab", size=8)
            scene.save(path)
    return path


def shader_file(folder: Path) -> Path:
    path = folder / "in.fs"
    path.write_text("/*{}*/ void main() { gl_FragColor = vec4(isf_FragNormCoord, TIME, 1.0); }")
    return path


def command_operation(name: str) -> Operation:
    """Return the operation of a command, run in this process."""
    arguments = COMMANDS[name]
    assert arguments is not None

    def run(folder: Path) -> object:
        out, err = io.StringIO(), io.StringIO()
        given = arguments(folder)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([name, *given])
        if code == 0:
            return name
        lines = err.getvalue().splitlines()
        assert code == 2, (code, lines)
        assert lines[-1].startswith(f"dala {name}: "), lines
        assert "--debug shows where" not in lines[-1], lines[-1]
        raise CommandFailed(lines[-1])

    return run
