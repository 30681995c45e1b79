"""A worker process of a local run: tasks come in as lines of JSON, events go out as lines of JSON.

The first line has the options of storage.

``python -m dala.batch.worker`` reads standard input until it ends, so it ends with its driver.
Nothing is pickled, and the script that started the job is not imported again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import IO, Final

from dala.batch import storage
from dala.batch.tasks import BatchTask, run_task
from dala.errors import MissingPackage, ParameterError

#: Errors that another try cannot change.
FINAL: Final = (ParameterError, MissingPackage)

#: Seconds between two reports of progress.
_PAUSE: Final = 0.5


def main() -> int:
    """Do tasks until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver gets Ctrl-C, and ends its workers
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not become events
    storage.configure(json.loads(sys.stdin.readline() or "null"))
    _say(out, {"event": "ready"})
    for line in sys.stdin:
        _work(line, out)
    return 0


def _work(line: str, out: IO[str]) -> None:
    task = BatchTask.from_json(line)
    _say(out, {"event": "started", "id": task.id})
    said, began = time.monotonic(), time.process_time()

    def report(frames: int) -> None:
        nonlocal said
        if time.monotonic() - said >= _PAUSE:  # a line for each frame would cost a tenth of it
            said = time.monotonic()
            used = round(time.process_time() - began, 3)
            _say(out, {"event": "progressed", "id": task.id, "frames": frames, "cpu": used})

    try:
        result = run_task(task, report)
    except Exception as error:
        _say(
            out,
            {
                "event": "failed",
                "id": task.id,
                "error": error_text(error),
                "final": isinstance(error, FINAL),
            },
        )
    else:
        _say(out, {"event": "finished", "id": task.id, "result": result.to_json()})


def error_text(error: BaseException) -> str:
    """Return an error as one line; errors that are not ours have their type.

    >>> error_text(ValueError("no"))
    'ValueError: no'
    """
    from dala.errors import DalaError

    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, DalaError | OSError) or text.startswith(type(error).__name__):
        return text
    return f"{type(error).__name__}: {text}"


def _say(out: IO[str], what: dict[str, str | float | bool]) -> None:
    out.write(json.dumps(what) + "\n")
    out.flush()


if __name__ == "__main__":
    sys.exit(main())
