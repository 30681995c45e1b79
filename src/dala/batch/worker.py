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
from dala.batch.environment import adopt_environment
from dala.batch.tasks import BatchTask, PartFailure, run_task

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
    adopt_environment(task.environment)
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
        failed = PartFailure.of(task.id, error)
        why: dict[str, str | float | bool] = {"error": failed.error, "final": failed.final}
        _say(out, {"event": "failed", "id": task.id, **why})
    else:
        _say(out, {"event": "finished", "id": task.id, "result": result.to_json()})


def _say(out: IO[str], what: dict[str, str | float | bool]) -> None:
    out.write(json.dumps(what) + "\n")
    out.flush()


if __name__ == "__main__":
    sys.exit(main())
