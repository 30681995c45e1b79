"""Commands of the time line."""

from __future__ import annotations

from dala.errors import ParameterError
from dala.studio.commands.registry import PageRequest, command


@command
def play(request: PageRequest) -> None:
    """Let the active tab play."""
    request.tab.play()


@command
def pause(request: PageRequest) -> None:
    """Pause the active tab."""
    request.tab.pause()


@command
def seek(request: PageRequest) -> None:
    """Go to a time."""
    request.tab.seek(request.seconds("time"))


@command
def step(request: PageRequest) -> None:
    """Go some pictures forward or back, and pause."""
    request.tab.step(request.integer("frames", -(10**6), 10**6, 1))


@command
def loop(request: PageRequest) -> None:
    """Repeat a part, or stop that."""
    tab = request.tab
    if "from" not in request and "to" not in request:
        tab.loop = None
        return
    first, last = request.seconds("from"), request.seconds("to")
    if tab.source.duration is not None:
        last = min(last, tab.source.duration)
    first = max(first, 0 * first)
    if last - first < tab.frame:
        raise ParameterError.invalid(
            "loop", "to", "at least one frame after from", float(last), "Drag a longer part."
        )
    time = tab.time()
    tab.loop = first, last
    if not first <= time < last:
        tab.seek(first)
