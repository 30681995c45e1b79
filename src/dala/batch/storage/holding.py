"""One driver at a time in a folder, and its sign.

On a file system the driver locks the folder: the system releases it when the driver ends. For
other machines, and in object stores, it leaves a sign of life there every few seconds.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from dala import forks
from dala.batch import storage
from dala.batch.storage import records
from dala.errors import BatchError, StorageError

#: Seconds between two signs of life of a driver.
_BEAT: Final = 5.0
#: Seconds after which a silent driver counts as gone.
_SILENT: Final = 30.0
#: How often a driver tries to leave its sign of life.
_TRIES: Final = 10
#: Seconds before a sign that cannot be read is read again, and after another one was replaced.
_PAUSE: Final = 0.2
#: Seconds by which clocks of machines may differ.
_DAY: Final = 86400.0


@dataclass(frozen=True)
class Sign:
    """The identity of a driver."""

    machine: str
    process: int
    #: Differs from driver to driver.
    token: str
    #: What it does, for people.
    job: str
    #: When it began, and when this was written.
    since: float
    beat: float

    @classmethod
    def of(cls, found: dict[str, Any]) -> Self:
        """Return the sign of a record.

        Raises:
            ValueError: no driver has written it.
        """
        made = cls(**found)
        if not all(isinstance(text, str) for text in (made.machine, made.token, made.job)):
            raise ValueError("it has no names")
        day = time.time() + _DAY
        for value, end in ((made.process, 2**31), (made.since, day), (made.beat, day)):
            if (
                not isinstance(value, int | float)
                or isinstance(value, bool)
                or not 0 <= value < end
            ):
                raise ValueError(f"it has the number {value!r}")
        return made

    def is_alive(self) -> bool:
        """Return whether the driver may still be there."""
        if time.time() - self.beat > _SILENT:
            return False
        if self.machine != socket.gethostname():
            return True
        if sys.platform == "win32":
            return True  # os.kill would send it a Ctrl-C there; its silence shows that it ended
        try:
            os.kill(int(self.process), 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return True


class Holder:
    """The one driver of a folder.

    Args:
        folder: what it holds.
        job: what it does, for the driver that finds it.
        say: is called with what is wrong with signs of others.
    """

    def __init__(self, folder: str, job: str, say: Callable[[str], object]) -> None:
        self._folder = folder
        self._name = storage.join(folder, "driver.json")
        self._job = job
        self._say = say
        self._token = secrets.token_hex(8)
        self._since = time.time()
        self._lost = False

    def check(self) -> None:
        """Raise BatchError if another driver has taken the folder.

        It may, where there are no locks, once this one was silent for long: its machine slept, or
        storage was out of reach.
        """
        if self._lost:
            raise BatchError(
                f"batch: another driver has taken over {storage.shown(self._folder)!r}, because "
                f"this one was silent for {_SILENT:.0f} s. Run the job again with resume."
            )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder within the block.

        Raises:
            BatchError: another driver holds it, or its sign cannot be removed.
        """
        with storage.locked(self._folder) as free:
            if not free:
                raise self._refused(records.read(self._name, Sign.of, lambda text: None))
            self._take()
            ended = forks.event()

            def live() -> None:
                while not ended.wait(_BEAT) and not self._lost:
                    self.beat()

            thread = forks.thread(live, name="dala batch driver")
            thread.start()
            try:
                yield
            finally:
                ended.set()
                thread.join()
                self._leave()

    def _take(self) -> None:
        """Leave a sign, in the place of one whose driver has ended."""
        tries, replaced = 0, False
        while True:
            if storage.create(self._name, records.pack(asdict(self._sign()))):
                if replaced and storage.is_url(self._name):
                    time.sleep(_PAUSE)  # two may have replaced the same sign: the last one counts
                if not replaced or self._is_own(self._other()):
                    return
            tries += 1
            if tries >= _TRIES:
                raise BatchError(
                    f"batch: {self._name!r} can be neither read nor replaced. Remove it, and run "
                    "the job again."
                )
            other = self._other()
            if other is None and tries < _TRIES // 2:
                time.sleep(_PAUSE)  # it has just ended, or is about to write its sign
                continue
            if other is not None and other.is_alive():
                raise self._refused(other)
            self._other(self._say)
            storage.remove(self._name)
            replaced = True

    def _refused(self, other: Sign | None) -> BatchError:
        place = storage.shown(storage.home_of(self._folder) or self._folder)
        if other is None:
            return BatchError(
                f"batch: another driver runs a job in {place!r}, or in a folder in it or around "
                "it. Wait for it, stop it first, or choose another out."
            )
        since = time.strftime("%H:%M:%S", time.localtime(other.since))
        same = "this job" if other.job == self._job else "another job"
        return BatchError(
            f"batch: another driver (process {other.process} on {other.machine}) has run {same} "
            f"in {place!r} since {since}. Wait for it, stop it first, or choose another out. Its "
            f"state is in {storage.shown(other.job)!r}."
        )

    def beat(self) -> None:
        """Leave a sign of life, unless another driver has left one."""
        try:
            data = records.pack(asdict(self._sign()))
            other = self._other()
            if other is None and storage.create(self._name, data):
                return  # someone has removed it
            other = other or self._other()
            self._lost = other is not None and not self._is_own(other)
            if not self._lost:
                storage.write_bytes(self._name, data)
        except StorageError:
            pass  # out of reach, or full: it may be back at the next beat

    def _leave(self) -> None:
        with suppress(StorageError):  # it counts as gone once it is silent
            if self._is_own(self._other()):
                storage.remove(self._name)

    def _sign(self) -> Sign:
        return Sign(
            socket.gethostname(), os.getpid(), self._token, self._job, self._since, time.time()
        )

    def _other(self, say: Callable[[str], object] | None = None) -> Sign | None:
        """Return the sign that is there; None if there is none that can be read."""
        return records.read(self._name, Sign.of, say or (lambda text: None))

    def _is_own(self, sign: Sign | None) -> bool:
        return sign is not None and sign.token == self._token
