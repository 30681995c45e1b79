"""Programs under deadlines that come at random moments, and how late each ends.

``python -m tests.support.deadlines NAME COUNT SEED`` runs one of ``NAMES`` so often, and writes a
row of JSON for each run: what ended it, the seconds after the deadline, how many of them its thread
worked rather than waited for a core or a disk, and if they are many, the call that it was inside
of, seen twice in the same place.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import runpy
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
#: Those that want a camera or a file of the user, or write beside themselves.
WITHOUT = ("call", "hand_pointer", "web/make")
AREAS = ("COMPUTE", "SURFACES", "MEDIA", "FILTERS")
_FOUND = {str(p.relative_to(EXAMPLES).with_suffix("")) for p in EXAMPLES.rglob("*.py")}
NAMES = (*sorted(_FOUND - {*WITHOUT}), *AREAS)

#: A program, given the deadline.
Program = Callable[[float], object]
#: Seconds that a deadline gives after the moment at which it comes, and how late is late.
GIVEN, LATE = 0.05, 0.25


def programs(name: str) -> list[tuple[str, Program]]:
    """Return the programs of a name: an example, or the operations of an area."""
    os.chdir(tempfile.mkdtemp())
    if name not in AREAS:
        path = str(EXAMPLES / f"{name}.py")
        if name.startswith("shaders/"):  # they are kernels, without a program
            return [(name, partial(again, lambda folder: shade(path), Path()))]
        return [(name, lambda until: runpy.run_path(path, run_name="__main__"))]
    from tests.faults import operations as all_of

    if name == "FILTERS":
        from dala.media import gpu

        made = [all_of.filter_operation(n) for n in gpu.filters() if n not in all_of.WITH_MODEL]
    else:
        made = [o for o in getattr(all_of, name) if o.__name__ not in ("browser", "terminal")]
    return [(one.__name__, partial(again, one, Path(tempfile.mkdtemp()))) for one in made]


def shade(path: str) -> None:
    """Draw three frames with the kernel of a file."""
    import numpy as np

    from dala.cli.common.kernels import kernel_of
    from dala.media import FramePipeline

    with FramePipeline(1920, 1080, device="cpu") as pipeline:
        for number in range(3):
            picture = np.zeros((1080, 1920, 4), np.uint8)
            pipeline.process(picture, [kernel_of(path)], number=number, time=number / 10)


def again(operation: Callable[[Path], object], folder: Path, until: float) -> None:
    """Run an operation that takes milliseconds until a time: which call is late, is counted."""
    operation(folder)
    while time.monotonic() < until:
        operation(folder)


class Watch(threading.Thread):
    """Looks where the main thread is, shortly after a deadline and once it is late."""

    def __init__(self, until: float) -> None:
        super().__init__(daemon=True)
        self.until = until
        self.seen: list[tuple[object, int, list[str]]] = []
        self.done = threading.Event()
        #: The processor time of the main thread at the deadline; None before.
        self.worked: float | None = None

    def run(self) -> None:
        main = threading.main_thread().ident
        if not self.done.wait(max(self.until - time.monotonic(), 0)):
            self.worked = work_of_main()
        for after in (LATE / 2, LATE):
            if self.done.wait(max(self.until + after - time.monotonic(), 0)):
                return
            frame = sys._current_frames().get(main or 0)
            if frame is not None:
                stack = traceback.extract_stack(frame)[-7:]
                shown = [f"{place_of(s.filename)}:{s.lineno} {s.name}: {s.line}" for s in stack]
                self.seen.append((frame.f_code, frame.f_lasti, shown))

    def inside(self) -> dict[str, Any]:
        """Return the innermost frames, and whether both looks saw the same call."""
        if len(self.seen) < 2:
            return {"one_call": False, "stack": []}
        (code, at, _), (code2, at2, stack) = self.seen
        return {"one_call": (code, at) == (code2, at2), "stack": stack}


def place_of(filename: str) -> str:
    """Return the path of a module inside its package's folder."""
    for folder in ("/src/", "/site-packages/"):
        if folder in filename:
            return filename.rpartition(folder)[2]
    return Path(filename).name


def work_of_main() -> float:
    """Return the seconds of a processor that the main thread has had."""
    ident = threading.main_thread().ident
    assert ident is not None
    return time.clock_gettime(time.pthread_getcpuclockid(ident))


def run(program: Program, moment: float) -> dict[str, Any]:
    """Run a program with a deadline that comes a moment after its beginning."""
    import dala

    begin = time.monotonic()
    watch = Watch(begin + moment + GIVEN)
    watch.start()
    ended = "done"
    try:
        quiet = contextlib.redirect_stdout(io.StringIO())
        with quiet, contextlib.redirect_stderr(io.StringIO()), dala.limits(time=moment + GIVEN):
            program(watch.until)
    except SystemExit as error:
        ended = f"exit {error.code}"
    except Exception as error:
        ended = type(error).__name__
    late = time.monotonic() - watch.until
    watch.done.set()
    watch.join()
    worked = 0.0 if watch.worked is None else work_of_main() - watch.worked
    row = {
        "moment": round(moment, 3), "ended": ended, "late": round(late, 3),
        "worked": round(worked, 3),
    }  # fmt: skip
    return row | (watch.inside() if late > LATE else {})


def main(name: str, count: int, seed: int) -> None:
    warnings.simplefilter("ignore")
    chosen = random.Random(f"{name} {seed}")
    sys.argv = [name]
    sys.path.insert(0, str(EXAMPLES))
    for each, program in programs(name):
        longest = 4.0 if name not in AREAS else 0.2
        run(program, 12.0 if name not in AREAS else 0.0)  # imports
        for _ in range(count):
            row = run(program, chosen.random() ** 2 * longest)
            sys.__stdout__.write(json.dumps({"program": each, **row}) + "\n")
            sys.__stdout__.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    os._exit(0)  # threads of programs that were ended may go on
