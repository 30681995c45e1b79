"""Programs of users, which ``dala view`` runs again when their files change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Final

#: Seconds between looks at the files, and those that a program has to end.
LOOK_SECONDS: Final = 0.2
END_SECONDS: Final = 5.0
#: Files that are watched at most.
MAX_FILES: Final = 1000

_Files = dict[Path, tuple[int, int]]


def run_program(path: Path, show: str, end: float | None) -> int:
    """Run a program until it ends. Return how often it was started.

    It is started again when it, or a module beside it, changes. One that failed is started again
    when it was changed.

    Args:
        path: The program.
        show: Where surfaces that it runs are shown.
        end: When to end it, by the monotonic clock.
    """
    starts = 0
    while True:
        starts, seen = starts + 1, _files(path)
        program = _start(path, show)
        try:
            changed = _watch(program, path, seen, end)
        except KeyboardInterrupt:  # the program gets it too
            _end(program, END_SECONDS)
            return starts
        finally:
            _end(program)
        if not changed:
            return starts
        _say(f"{path.name} changed: it is started again.")


def _start(path: Path, show: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "DALA_SHOW": show}
    return subprocess.Popen([sys.executable, str(path)], env=environment)


def _watch(program: subprocess.Popen[bytes], path: Path, seen: _Files, end: float | None) -> bool:
    """Wait for a change, and return True; False if the program ended well, or it is time."""
    failed, before = False, seen
    while end is None or monotonic() < end:
        status = program.poll()
        if status == 0:
            return False
        if status is not None and not failed:
            failed = True
            _say(f"{path.name} failed. It is started again when it changes; Ctrl-C ends.")
        found = _files(path)
        if found == before != seen:  # twice the same: editors write in several steps
            return True
        before = found
        sleep(LOOK_SECONDS)
    return False


def _end(program: subprocess.Popen[bytes], patience: float = 0.0) -> None:
    """End a program that does not end by itself in time: politely, then for certain."""
    for seconds, stop in ((patience, program.terminate), (END_SECONDS, program.kill)):
        try:
            program.wait(seconds)
            return
        except subprocess.TimeoutExpired:
            stop()
    program.wait()


def _files(path: Path) -> _Files:
    """Return the time and size of the program and the modules beside it."""
    found: _Files = {}
    for each in (path, *sorted(path.parent.glob("*.py"))[:MAX_FILES]):
        try:
            state = each.stat()
        except OSError:  # an editor is replacing it
            continue
        found[each] = state.st_mtime_ns, state.st_size
    return found


def _say(text: str) -> None:
    print(f"dala: {text}", file=sys.stderr, flush=True)
