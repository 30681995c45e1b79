"""A tab: a source with its chain, its time and its undo history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from time import monotonic
from typing import Generic, TypeVar

from dala.errors import ParameterError
from dala.studio.cards.card import Card
from dala.studio.catalogue.parameters import Json, JsonObject, parameter
from dala.studio.sources.source import StudioSource

T = TypeVar("T")


class History(Generic[T]):
    """Past and future values; changes with the same mark are one step.

    >>> history = History(10)
    >>> history.add("a", mark=None); history.add("b", mark=None)
    >>> history.undo("c"), history.undo("b"), history.redo("a")
    ('b', 'a', 'b')
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self.past: list[T] = []
        self.future: list[T] = []
        self._mark: object = None

    def add(self, before: T, mark: object) -> None:
        """Record a change from a value; one with the mark of the change before joins it."""
        self.future.clear()
        if mark is None or mark != self._mark or not self.past:
            self.past.append(before)
            del self.past[: -self._length]
            self._mark = mark

    def undo(self, now: T) -> T | None:
        """Return the value before, and keep the present one for redo; None if there is none."""
        return self._step(self.past, self.future, now)

    def redo(self, now: T) -> T | None:
        """Return the value after, and keep the present one for undo; None if there is none."""
        return self._step(self.future, self.past, now)

    def _step(self, found: list[T], left: list[T], now: T) -> T | None:
        self._mark = None
        if not found:
            return None
        left.append(now)
        return found.pop()


@dataclass(frozen=True)
class Contents:
    """The contents that undo restores: the cards, and the scene file of a scene tab."""

    cards: tuple[Card, ...] = ()
    scene: object = None


class Tab:
    """A source with its chain, its time and its undo history.

    Args:
        id: the handle of the tab.
        source: what it shows.
        undo: steps of undo that are kept.
    """

    def __init__(self, id: str, source: StudioSource, undo: int) -> None:
        self.id = id
        self.source = source
        self.contents = Contents()
        self.history: History[Contents] = History(undo)
        #: Whether the text of a kernel file was changed.
        self.dirty = False
        #: Why cards are left out, by card.
        self.problems: dict[str, str] = {}
        #: Size of the last result.
        self.result: tuple[int, int] | None = None
        self.loop: tuple[Fraction, Fraction] | None = None
        self._time = Fraction(0)
        self._started: float | None = monotonic() if source.live else None
        self._serial = 0
        #: The gesture that moves a node: its mark, and where the node was.
        self.gesture: tuple[object, tuple[float, float]] | None = None
        #: How often the time was set.
        self.seeks = 0

    # cards ------------------------------------------------------------------------------------
    def next_card(self) -> str:
        """Return the handle of a new card."""
        self._serial += 1
        return f"c{self._serial}"

    def card(self, id: Json, call: str) -> tuple[int, Card]:
        """Return the place of a card, and the card.

        Raises:
            ParameterError: there is no such card.
        """
        for number, card in enumerate(self.contents.cards):
            if card.id == id:
                return number, card
        raise ParameterError.invalid(call, "card", "the id of a card", id)

    def change(self, cards: tuple[Card, ...], mark: object = None) -> None:
        """Replace the cards; undo returns to the present ones."""
        if cards != self.contents.cards:
            self.history.add(self.contents, mark)
            self.contents = replace(self.contents, cards=cards)

    def change_scene(self, scene: object, mark: object = None) -> None:
        """Replace the scene file; undo returns to the present one."""
        self.history.add(self.contents, mark)
        self.contents = replace(self.contents, scene=scene)

    # time -------------------------------------------------------------------------------------
    @property
    def playing(self) -> bool:
        """Whether time advances."""
        return self._started is not None

    def time(self, now: Callable[[], float] = monotonic) -> Fraction:
        """Return the time that is shown now; reaching the end of the source stops there."""
        if self._started is None:
            return self._time
        time = self._time + Fraction(now() - self._started).limit_denominator(10**6)
        if self.loop is not None and time >= self.loop[1]:
            first, last = self.loop
            time = first + (time - first) % (last - first)
        elif self.source.duration is not None and time >= self.source.duration:
            self._time, self._started = self.end, None
            return self._time
        return time

    @property
    def end(self) -> Fraction:
        """The time of the last picture."""
        if self.source.duration is None:
            return Fraction(10**6)
        return max(self.source.duration - self.frame, Fraction(0))

    @property
    def frame(self) -> Fraction:
        """The duration of one picture."""
        return 1 / self.source.rate if self.source.rate else Fraction(1, 25)

    def play(self) -> None:
        """Let time advance; from the beginning if it is at the end."""
        if not self.playing and self.source.rate is not None:
            if self.loop is not None and not self.loop[0] <= self._time < self.loop[1]:
                self._time = self.loop[0]
            elif self._time >= self.end:
                self._time = Fraction(0)
            self._started = monotonic()

    def pause(self) -> None:
        """Stop time."""
        if not self.source.live:
            self._time, self._started = self.time(), None

    def seek(self, time: Fraction) -> None:
        """Go to a time; a playing tab continues from there."""
        if self.source.live:
            return
        self.seeks += 1
        self._time = min(max(time, Fraction(0)), self.end)
        if self._started is not None:
            self._started = monotonic()

    def step(self, frames: int) -> None:
        """Pause, and go some pictures forward or back."""
        self.pause()
        number = (self._time / self.frame + Fraction(1, 1000)).__floor__() + frames
        self.seek(number * self.frame)

    # state ------------------------------------------------------------------------------------
    def facts(self) -> JsonObject:
        """Return the tab as the state lists it."""
        return {"id": self.id, **self.source.facts(), "dirty": self.dirty or self.source.dirty}

    def state(self) -> JsonObject:
        """Return the part of the state that describes the active tab."""
        return {
            "active": self.id,
            "chain": [self._card(card) for card in self.contents.cards],
            "scene": self.source.tree(),
            "playing": self.playing,
            "time": float(self.time()),
            "loop": None if self.loop is None else [float(time) for time in self.loop],
            "undo": bool(self.history.past),
            "redo": bool(self.history.future),
            "result": self.result and {"width": self.result[0], "height": self.result[1]},
        }

    def _card(self, card: Card) -> JsonObject:
        made: JsonObject = {
            **{name: getattr(card, name) for name in ("id", "kind", "name", "title", "on")},
            "params": dict(card.params),
            "error": self.problems.get(card.id),
        }
        if card.kind == "kernel":
            made |= {
                "text": card.text,
                "path": card.path,
                "diagnostics": list[Json](card.diagnostics),
                "declared": [parameter(p) for p in card.kernel.params],
            }
        return made
