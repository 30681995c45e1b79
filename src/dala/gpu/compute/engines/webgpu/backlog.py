"""How much device time is enqueued and has not ended. Calls wait when it is more than a limit.

Else a loop of calls enqueues seconds of work within milliseconds, and whatever comes next stands
behind it: a read, Ctrl-C, the next frame of a live stream.

Each kind of work has a :class:`Cost`, the estimated seconds of one call. Submits that have ended
are seen when the device is polled, so a poll gives bounds: work cannot have taken longer than from
the last time when its start was impossible, nor less than it was seen to run. Costs are scaled into
these bounds, also while the work runs. A first call of a kind is taken to be long.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Final, NamedTuple

from dala import forks
from dala.errors import ParameterError
from dala.trace.recorder import OFF, tracer

#: The default limit in milliseconds; ``DALA_QUEUE_MS`` overrides it.
QUEUE_MS: Final = 100
#: The shares of the limit that one unknown call counts as, and below which waiting calls go on.
UNKNOWN: Final = 0.25
RESUME: Final = 0.75
#: The shortest time between two polls while work is enqueued, and while calls wait.
POLL_SECONDS: Final = 0.001


class Cost:
    """The estimated device seconds of a kind of call; None before the first one."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds: float | None = None


class Costs:
    """The costs of calls of one kind, by the magnitude of their work."""

    __slots__ = ("_costs",)

    def __init__(self) -> None:
        self._costs: dict[int, Cost] = {}

    def of(self, size: int) -> Cost:
        """Return the cost of calls of a size: workgroups, statements or bytes."""
        size = size.bit_length()
        return self._costs.get(size) or self._costs.setdefault(size, Cost())


class _Submit(NamedTuple):
    number: int
    began: float
    #: Seconds of the call that submitted: OpenGL on a processor runs the work in it.
    blocked: float
    costs: Counter[Cost]


class Backlog:
    """The calls that are enqueued, recorded or submitted, and not finished.

    Args:
        most: the limit of device seconds; by default ``DALA_QUEUE_MS``, or 100 ms.
    """

    def __init__(self, most: float | None = None) -> None:
        self.most = seconds_from_environment() if most is None else most
        self.crowded = False
        #: The estimated seconds until all calls so far have ended.
        self.ahead = 0.0
        self.polled = 0.0
        self._room = forks.condition()
        #: Calls since the last poll, and how many of each kind were counted before.
        self._added: deque[Cost] = deque()
        self._counts: Counter[Cost] = Counter()
        self._recorded: Counter[Cost] = Counter()
        self._submits: deque[_Submit] = deque()
        #: The earliest and the latest time at which the device can have been free for a submit.
        self._free = (0.0, 0.0)

    # for any thread ---------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        """True if calls have to wait."""
        return self.ahead > self.most

    def add(self, cost: Cost) -> None:
        """Count a call that is about to be enqueued.

        This takes no lock, for it is part of each call: ``ahead`` may miss what two threads add at
        once until the next poll, which counts exactly.
        """
        self._added.append(cost)
        self.ahead += self._seconds(cost)

    def wait(self, wake: Callable[[], None]) -> None:
        """Wake the owner's thread, which may sleep between polls, and wait for room."""
        with self._room:
            self.crowded = self.full
            if self.crowded:
                wake()
            with tracer.wait("room on the device") if tracer.on else OFF:
                while self.crowded:
                    self._room.wait()

    # for the owner's thread -------------------------------------------------------------------

    def record(self, cost: Cost) -> None:
        """Note that a call is part of the next submit."""
        self._recorded[cost] = self._recorded.get(cost, 0) + 1

    def submit(self, number: int, began: float) -> None:
        """Note that the recorded calls were submitted, by a native call from ``began`` to now."""
        if self._recorded:
            blocked = time.monotonic() - began
            self._submits.append(_Submit(number, began, blocked, self._recorded))
            self._recorded = Counter()

    def due(self) -> bool:
        """Return whether to poll the device, as calls are enqueued without a pause."""
        return bool(self._submits) and time.monotonic() - self.polled > POLL_SECONDS

    def settle(self, finished: int) -> None:
        """Learn from a poll which submits have finished, and let calls go on."""
        now, polled, self.polled = time.monotonic(), self.polled, time.monotonic()
        ended: Counter[Cost] = Counter()
        began = blocked = 0.0
        with self._room:
            while self._added:
                cost = self._added.popleft()
                self._counts[cost] = self._counts.get(cost, 0) + 1
            while self._submits and self._submits[0].number <= finished:
                first = self._submits.popleft()
                began = began or first.began
                blocked += first.blocked
                ended += first.costs
            if ended:
                early, late = (max(began, free) for free in self._free)
                self._fit(ended, max(blocked, polled - late), now - early)
                self._free = max(polled, early), now
                self._counts -= ended  # keeps what is above 0
            running = 0.0
            if self._submits:
                first = self._submits[0]
                running = now - max(first.began, self._free[1])
                self._fit(first.costs, running, None)
                running = min(running, self._sum(first.costs))
            self.ahead = max(0.0, self._sum(self._counts) - running)
            if self.crowded and self.ahead <= RESUME * self.most:
                self._admit()

    def clear(self) -> None:
        """Forget all calls, which ended or never will: the device is idle, lost or closed."""
        with self._room:
            self._added.clear()
            self._counts.clear()
            self._recorded.clear()
            self._submits.clear()
            self.ahead = 0.0
            self._admit()

    def close(self) -> None:
        """Let all calls go on, now and later: none can be enqueued any more."""
        self.most = math.inf
        self.clear()

    # ------------------------------------------------------------------------------------------

    def _admit(self) -> None:
        self.crowded = False
        self._room.notify_all()

    def _seconds(self, cost: Cost) -> float:
        return self.most * UNKNOWN if cost.seconds is None else cost.seconds

    def _sum(self, costs: Counter[Cost]) -> float:
        return sum(self._seconds(cost) * count for cost, count in costs.items())

    def _fit(self, costs: Counter[Cost], least: float, most: float | None) -> None:
        """Scale the costs of a submit so that their sum is within bounds."""
        total = self._sum(costs)
        wanted = max(total, least) if most is None else min(max(total, least), most)
        if wanted != total and total > 0:
            for cost in costs:
                cost.seconds = self._seconds(cost) * wanted / total


def seconds_from_environment() -> float:
    """Return the limit of seconds: ``DALA_QUEUE_MS`` thousandths, or the default."""
    text = os.environ.get("DALA_QUEUE_MS", "")
    if not text:
        return QUEUE_MS / 1000
    try:
        wanted = float(text)
    except ValueError:
        wanted = 0.0
    if wanted > 0:
        return wanted / 1000
    raise ParameterError.invalid(
        "DALA_QUEUE_MS", "value", "milliseconds above 0", text, "`inf` is without a limit."
    )
