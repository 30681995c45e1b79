"""Commands of the time line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dala.errors import ParameterError
from dala.studio.commands.registry import command
from dala.studio.message import Message

if TYPE_CHECKING:
    from dala.studio.session import StudioSession


@command("play")
def play(session: StudioSession, message: Message) -> None:
    """Let the active tab play."""
    session.tab("play").play()


@command("pause")
def pause(session: StudioSession, message: Message) -> None:
    """Pause the active tab."""
    session.tab("pause").pause()


@command("seek")
def seek(session: StudioSession, message: Message) -> None:
    """Go to a time."""
    session.tab("seek").seek(message.seconds("time"))


@command("step")
def step(session: StudioSession, message: Message) -> None:
    """Go some pictures forward or back, and pause."""
    session.tab("step").step(message.integer("frames", -(10**6), 10**6, 1))


@command("loop")
def loop(session: StudioSession, message: Message) -> None:
    """Repeat a part, or stop that."""
    tab = session.tab("loop")
    if "from" not in message and "to" not in message:
        tab.loop = None
        return
    first, last = message.seconds("from"), message.seconds("to")
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
