"""How much of a reader the inputs of its target reach: the share of its lines that run.

    python -m tests.fuzz.reach                 # all targets
    python -m tests.fuzz.reach tflite --count 2000

A target whose inputs are refused at the first byte tests nothing. Lines are counted in the modules
that a target names (``READERS``), over its seeds, what it kept, and some mutated inputs. Lines that
run at import, and native code, are not counted.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, ModuleType
from typing import Any

from tests.fuzz import targets
from tests.fuzz.target import Target

_PICTURES = tuple(
    f"dala.media.{name}"
    for name in (
        "files:load", "files:_opened", "files:read_picture", "files:_decode", "files:_guarded",
        "files:_deep", "files:_sixteen", "files:_bits", "files:_count", "files:_upright",
        "files:_in_srgb", "pictures.plugins", "pictures.pixels",
    )
)  # fmt: skip

#: The modules that read for each target, or "module:function"; packages stand for all modules.
READERS: dict[str, tuple[str, ...]] = {
    "streams": ("dala.gpu.command", "dala.gpu.protocol"),
    "kernels": (
        "dala.gpu.compute.lang.parser", "dala.gpu.compute.lang.expressions",
        "dala.gpu.compute.lang.statements", "dala.gpu.compute.lang.check",
    ),
    "shaders": ("dala.shaders.glsl", "dala.shaders.interactive", "dala.shaders.toys"),
    "cube": ("dala.gpu.compute.cube",),
    "lut": ("dala.media.filters.luts",),
    "subtitles": ("dala.media.subtitles",),
    "scenes": ("dala.media.scene.file.load",),
    "fonts": ("dala.media.text.fonts.scan", "dala.media.text.fonts.freetype"),
    "arrays": ("dala.media.files:load_array",),
    "png": _PICTURES,
    "pictures": _PICTURES,
    "torch": ("dala.ml.convert.torch_file", "dala.ml.convert.unpickle"),
    "tflite": ("dala.ml.convert.tflite", "dala.ml.convert.tflite"),
    "tfjs": (
        "dala.ml.convert.tfjs", "dala.ml.convert.tfjs_ops", "dala.ml.convert.indexing",
        "dala.ml.convert.builder",
    ),
    "onnx": ("dala.ml.runtime.onnx_graph", "dala.ml.convert.onnx_file"),
    "requests": ("dala.gpu.presenters.requests",),
    "addresses": ("dala.untrusted.address", "dala.untrusted.requests:check"),
    "messages": ("dala.studio.message", "dala.studio.commands"),
    "svg": ("dala.media.pictures.svg",),
    "paths": ("dala.gpu.path.svg", "dala.gpu.path.shapes"),
    "events": ("dala.gpu.input.events", "dala.gpu.input.inbox"),
    "traces": ("dala.trace.export", "dala.trace.report", "dala.trace.path"),
    "records": ("dala.batch.storage.records", "dala.batch.manifest"),
}  # fmt: skip

#: Functions of these modules that do not read: they write, or make something of the user's own.
WRITERS = (
    "encode", "save", "store", "write", "_store", "_encode", "_format", "_flat", "_compose", "show",
    "__repr__", "__eq__", "__hash__",
)  # fmt: skip


def modules_of(name: str) -> Iterator[tuple[ModuleType, str]]:
    """Yield the modules of a reader, each with the one function that counts, if it is one."""
    for each in READERS[name]:
        path, _, function = each.partition(":")
        module = importlib.import_module(path)
        yield module, function
        for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
            yield importlib.import_module(f"{each}.{found.name}"), ""


def lines_of(module: ModuleType, function: str = "") -> set[tuple[str, int]]:
    """Return the lines of the functions of a module, or of one, without those that write."""
    with open(str(module.__file__), encoding="utf-8") as file:
        whole = compile(file.read(), str(module.__file__), "exec")
    found: set[tuple[str, int]] = set()
    waiting = [
        each
        for each in whole.co_consts
        if isinstance(each, CodeType) and function in ("", each.co_name)
    ]
    while waiting:
        code = waiting.pop()
        if code.co_name.startswith(WRITERS):
            continue
        inner = [each for each in code.co_consts if isinstance(each, CodeType)]
        waiting += inner
        is_function = code.co_flags & 2  # CO_NEWLOCALS: not the body of a class
        if is_function:
            rows = {line for _, _, line in code.co_lines() if line}
            found |= {(code.co_filename, line) for line in rows - {code.co_firstlineno}}
    return found


def reached(target: Target, count: int, files: set[str]) -> set[tuple[str, int]]:
    """Read inputs; return the lines of some files that ran."""
    ran: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in files:
            return None
        if event == "line":
            ran.add((name, frame.f_lineno))
        return trace

    inputs = [*target.corpus, *(target.input(1, number) for number in range(count))]
    sys.settrace(trace)
    try:
        for data in inputs:
            target.check(data, twice=False)
    finally:
        sys.settrace(None)
    return ran


def share(name: str, count: int) -> tuple[int, int, list[tuple[str, int]]]:
    """Return how many lines of a reader run, how many it has, and those that do not run."""
    target = targets.make(name)
    target.check(target.seeds()[0])  # what is loaded on first use is loaded
    lines: set[tuple[str, int]] = set()
    for module, function in modules_of(name):
        lines |= lines_of(module, function)
    ran = reached(target, count, {path for path, _ in lines}) & lines
    return len(ran), len(lines), sorted(lines - ran)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--count", type=int, default=500, help="mutated inputs of each target")
    parser.add_argument("--missing", action="store_true", help="list the lines that do not run")
    args = parser.parse_args()
    for name in args.targets or targets.available():
        ran, all_lines, missing = share(name, args.count)
        sys.stdout.write(f"{name}: {ran} of {all_lines} lines, {ran / all_lines:.0%}\n")
        if args.missing:
            for path, line in missing:
                sys.stdout.write(f"  {path.partition('src/')[2]}:{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
