"""Tasks in processes of this machine."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections import deque
from queue import Empty, SimpleQueue
from typing import Final

from dala import forks
from dala.batch import storage
from dala.batch.runners import Resources
from dala.batch.tasks import BatchTask, Event, Failed, Finished, Progressed, Result, Started
from dala.errors import counted

#: Seconds that a worker has to end by itself.
_GRACE: Final = 5.0


class _Worker:
    """A process, its task, and the thread that reads its messages."""

    def __init__(self, heard: SimpleQueue[tuple[_Worker, str | None]], threads: int) -> None:
        environment = dict(os.environ)
        environment.setdefault("OPENBLAS_NUM_THREADS", "1")
        if threads:
            environment.setdefault("DALA_THREADS", str(threads))
        # What this process can import, the other can, and nothing else from where it runs.
        environment["PYTHONPATH"] = os.pathsep.join(p or os.getcwd() for p in sys.path)
        self.task: BatchTask | None = None
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "dala.batch.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the driver
        )
        self.name = f"process {self.process.pid}"
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        with contextlib.suppress(OSError):
            self._in.write(json.dumps(storage.current.options) + "\n")
        self._heard = heard
        self._thread = forks.thread(self._listen, name="dala batch worker")
        self._thread.start()

    def _listen(self) -> None:
        with contextlib.suppress(ValueError, OSError):
            for line in self._out:
                self._heard.put((self, line))
        self._heard.put((self, None))

    def give(self, task: BatchTask) -> None:
        """Send a task."""
        self.task = task
        with contextlib.suppress(OSError):  # a process that has died is noticed by its silence
            self._in.write(task.to_json() + "\n")
            self._in.flush()

    def end(self, kill: bool) -> None:
        """End the process."""
        if kill:
            self.process.kill()
        with contextlib.suppress(OSError):
            self._in.close()
        try:
            self.process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._thread.join()
        self._out.close()


class LocalRunner:
    """Runs tasks in processes of this machine, one task in each at a time.

    A process that dies is replaced; its task is reported as lost.

    Args:
        resources: what a task takes, which decides how many processes there are.
        count: how many are started, each as if there were all; None for all.
    """

    name = "local"

    def __init__(self, resources: Resources, count: int | None = None) -> None:
        whole = worker_count(resources)
        self._count = whole if count is None else count
        # Processes share the cores: more threads than these wait for each other.
        alone = whole == 1 or resources.device != "cpu"
        self._threads = 0 if alone else max(1, (os.cpu_count() or 1) // whole)
        self._workers: list[_Worker] = []
        self._heard: SimpleQueue[tuple[_Worker, str | None]] = forks.simple_queue()
        self._waiting: deque[BatchTask] = deque()

    @property
    def processes(self) -> list[int]:
        """The ids of the processes."""
        return [worker.process.pid for worker in self._workers]

    def start(self) -> str:
        """Start the processes."""
        for _ in range(self._count):
            self._workers.append(self._worker())
        return counted(self._count, "processes", "process")

    def _worker(self) -> _Worker:
        return _Worker(self._heard, self._threads)

    def capacity(self) -> int:
        """Return how many tasks it takes: one more for each process, so that none waits."""
        return 2 * self._count

    def submit(self, task: BatchTask) -> None:
        """Begin a task, now or when a process is free."""
        self._waiting.append(task)
        self._deal()

    def _deal(self) -> None:
        for worker in self._workers:
            if worker.task is None and self._waiting:
                worker.give(self._waiting.popleft())

    def wait(self, seconds: float) -> list[Event]:
        """Return the messages of the processes since the last call."""
        events: list[Event] = []
        end = time.monotonic() + seconds
        while True:
            left = max(0.0, end - time.monotonic())
            try:
                worker, line = self._heard.get(timeout=0 if events else min(left, 0.5))
            except Empty:
                if events or not left:
                    break
                continue
            events += self._lost(worker) if line is None else self._said(worker, line)
        self._deal()
        return events

    def _said(self, worker: _Worker, line: str) -> list[Event]:
        what = json.loads(line)
        kind, id = what["event"], what.get("id", "")
        if kind == "started":
            return [Started(id, worker.name)]
        if kind == "progressed":
            return [Progressed(id, what["frames"], what["cpu"])]
        if kind in ("finished", "failed"):
            worker.task = None
        if kind == "finished":
            return [Finished(id, Result.from_json(what["result"]))]
        if kind == "failed":
            return [Failed(id, what["error"], worker.name, final=what["final"])]
        return []

    def _lost(self, worker: _Worker) -> list[Event]:
        """Replace a process that has ended."""
        if worker not in self._workers:
            return []
        worker.end(kill=True)
        code = worker.process.returncode
        self._workers[self._workers.index(worker)] = self._worker()
        if worker.task is None:
            return []
        why = f"by signal {-code}" if code < 0 else f"with code {code}"
        text = f"its worker ({worker.name}) ended {why}"
        return [Failed(worker.task.id, text, worker.name, lost=True)]

    def stop(self, cancel: bool) -> None:
        """End all processes."""
        workers, self._workers = self._workers, []
        self._waiting.clear()
        for worker in workers:
            if cancel:
                worker.process.kill()
        for worker in workers:
            worker.end(kill=cancel)


def worker_count(resources: Resources) -> int:
    """Return how many processes a local run has.

    >>> worker_count(Resources(workers=3)), worker_count(Resources(device="webgpu:0", gpus=0.5))
    (3, 2)
    """
    if resources.workers is not None:
        return resources.workers
    if resources.device not in ("cpu", "reference"):
        return max(1, int(1 / resources.gpus)) if resources.gpus else 1
    count = int((os.cpu_count() or 1) / max(1.0, resources.cpus or resources.threads))
    if resources.memory and hasattr(os, "sysconf"):
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        count = min(count, whole // resources.memory)
    return max(1, count)
