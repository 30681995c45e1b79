"""Shaders of 1080p on a GPU: GLSL that was translated, against plain WGSL written by hand.

    python3 -m benchmarks.gpu.shaders --out PATH           needs numpy, wgpu and Pillow
    python3 -m benchmarks.gpu.shaders --device cuda        times of a frame, without the hand's WGSL
    python3 -m benchmarks.gpu.shaders --isf FOLDER         also a frame of each ISF file there
    python3 -m benchmarks.gpu.shaders --small              a dry run on any adapter, tiny sizes

``texts.glsl`` and ``texts.wgsl`` beside this file have the same six shaders. Both write the same
u8 picture; ``apart`` is the share of its numbers that differ by more than 2. The target is 0.9 of
the hand's speed, by device timestamps where the device has them. Frames of ``benchmarks.toys`` and
of ISF files are timed as a player makes them, one after the other.
"""

from __future__ import annotations

import argparse
import re
import struct
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from PIL import Image

import dala
from benchmarks import isf, toys
from benchmarks.gpu.run import Entrant, race
from benchmarks.harness import write
from dala.errors import DalaError
from dala.gpu.compute import buffer_zeros, device_info, from_array
from dala.gpu.compute.passes.program import KernelProgram
from dala.shaders import shadertoy

HERE = Path(__file__).parent
#: Pixels of a side of a workgroup of the WGSL.
SIDE = 16
#: Seconds for the frames of one shader.
SECONDS = 0.3


def parts(file: str) -> tuple[str, dict[str, str]]:
    """Return the head of a file of texts, and its texts by name."""
    head, *rest = re.split(r"^//# (.+)\n", (HERE / file).read_text("utf-8"), flags=re.MULTILINE)
    return head, dict(zip(rest[::2], rest[1::2], strict=True))


class Shaders:
    """The shaders of both files at a size."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        photo = Image.fromarray(np.asarray(dala.samples.photo("chelsea"))[..., :3])
        pixels = np.array(photo.resize((width, height)))
        self.photo = np.dstack([pixels, np.full(pixels.shape[:2], 255, np.uint8)])
        self.picture = from_array(self.photo)
        self.engine = self.picture.engine

    def glsl(self, text: str) -> tuple[Entrant, Callable[[], np.ndarray]]:
        """Return a translated text, run as a kernel on data of the device."""
        program = shadertoy(text, channels=["film"])
        (one,) = program.passes
        out = buffer_zeros((self.height, self.width, 4), "u8")
        given, values = [self.picture] * len(one.kernel.inputs), {"iTime": 1.0}
        run = lambda: one.kernel.run(given, out, values)  # noqa: E731
        return self._entrant(run), out.numpy

    def wgsl(self, text: str) -> tuple[Entrant, Callable[[], np.ndarray]]:
        """Return a text written by hand, as one dispatch."""
        pipeline = self.engine.shader(text, 1, 16, "none")
        out = buffer_zeros((self.height, self.width, 4), "u8")
        bound = [self.picture.storage("bench"), out.storage("bench")]
        block = struct.pack("<2If4x", self.width, self.height, 1.0)
        groups = -(-self.width // SIDE) * -(-self.height // SIDE)
        run = lambda: self.engine.dispatch(pipeline, bound, block, groups)  # noqa: E731
        return self._entrant(run), out.numpy

    def _entrant(self, run: Callable[[], Any]) -> Entrant:
        engine = self.engine
        return Entrant(run, engine.synchronize, engine.batched, profile=engine.profile)


def compared(shaders: Shaders, rounds: int, by_hand: bool) -> dict[str, Any]:
    """Time every text of ``texts.glsl``, and the same by hand."""
    results: dict[str, Any] = {}
    (_, ours), (head, theirs) = parts("texts.glsl"), parts("texts.wgsl")
    for name, text in ours.items():
        made = {"dala": shaders.glsl(text)}
        if by_hand:
            made["by hand"] = shaders.wgsl(head + theirs[name])
        row: dict[str, Any] = race({n: entrant for n, (entrant, _) in made.items()}, rounds)
        first, *others = [read().astype(int) for _, read in made.values()]
        shown = ", ".join(f"{n} {r.get('device_ms', r['min_ms']):.4f} ms" for n, r in row.items())
        if others:
            key = "device_ms" if all("device_ms" in r for r in row.values()) else "together_ms"
            row["ratio"] = row["by hand"][key] / row["dala"][key]
            row["apart"] = float((np.abs(first - others[0]) > 2).mean())
            row["met"] = row["ratio"] >= 0.9
            shown += f", {row['ratio']:.2f} of the hand's speed, {row['apart']:.4f} apart"
        print(f"  {name:16s} {shown}", flush=True)
        results[name] = row
    return results


def frame_ms(program: KernelProgram, given: list[np.ndarray], width: int, height: int) -> float:
    """Return the least milliseconds of a frame, after the first."""
    buffers = [from_array(p) for p in given]
    taken: list[float] = []
    with program.start(width, height) as state:
        engine = buffer_zeros(1).engine
        until = perf_counter() + SECONDS
        while len(taken) < 4 or (perf_counter() < until and len(taken) < 60):
            begin = perf_counter()
            state.render(*buffers, time=len(taken) / 60)
            engine.synchronize()
            taken.append((perf_counter() - begin) * 1e3)
    return min(taken[1:])


def frames(shaders: Shaders, folder: Path | None, most: int, end: float) -> dict[str, Any]:
    """Time a frame of each text of ``benchmarks.toys`` and of each ISF file; return the slowest."""
    size = shaders.width, shaders.height
    found: dict[str, dict[str, float]] = {"toys": {}, "isf": {}}
    notes: dict[str, str] = {}

    def add(
        kind: str, name: str, make: Callable[[], tuple[KernelProgram, list[np.ndarray]]]
    ) -> None:
        if perf_counter() > end:
            notes[name] = "not timed: no time left"
            return
        try:
            found[kind][name] = frame_ms(*make(), *size)
        except DalaError as error:
            notes[name] = str(error)

    for file in sorted(folder.glob("*.fs")) if folder else []:

        def load(file: Path = file) -> tuple[KernelProgram, list[np.ndarray]]:
            program = dala.shaders.load(file)
            small = isf.pictures(isf.read_header(file.read_text("utf-8", "replace")), program)
            return program, [np.array(Image.fromarray(p).resize(size)) for p in small]

        add("isf", file.stem, load)
    for name, text in toys.texts().items():
        add("toys", name, lambda text=text: (shadertoy(text, channels=[shaders.photo]), []))
    rows: dict[str, Any] = {"notes": notes}
    for kind, times in found.items():
        slowest = sorted(times.items(), key=lambda item: -item[1])[:most]
        rows[kind] = {"timed": len(times), "ms": {n: round(t, 3) for n, t in slowest}}
        print(f"  {kind}: {len(times)} timed; ms of the slowest: {rows[kind]['ms']}", flush=True)
    print(f"  not timed: {len(notes)}", list(notes.items())[:3], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", default="webgpu")
    parser.add_argument("--out", help="where the JSON goes")
    parser.add_argument("--isf", type=Path, help="a folder of ISF files")
    parser.add_argument("--heaviest", type=int, default=20, help="how many of each kind are listed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=120.0, help="for the frames")
    parser.add_argument("--small", action="store_true", help="tiny sizes, any adapter")
    args = parser.parse_args()
    end = perf_counter() + args.seconds
    with dala.device(args.device):
        made = Shaders(*((160, 90) if args.small else (1920, 1080)))
        print(device_info()["name"], flush=True)
        results: dict[str, Any] = {
            "by hand": compared(made, 1 if args.small else args.rounds, args.device == "webgpu")
        }
        results["frames"] = frames(made, args.isf, args.heaviest, end)
    if args.out:
        write("gpu_shaders", results, (), args.out)


if __name__ == "__main__":
    main()
