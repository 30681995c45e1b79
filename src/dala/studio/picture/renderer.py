"""The render thread: the active tab's picture through its chain, once for all viewers."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from math import inf
from time import monotonic, perf_counter
from typing import Final

from dala import forks
from dala.errors import DalaError
from dala.gpu.compute.call.instant import Instant
from dala.studio.cards.card import Card
from dala.studio.cards.chain import CardProblem, ChainRunner, ReadyCard, describe_error
from dala.studio.catalogue.parameters import JsonObject
from dala.studio.document.tab import Tab
from dala.studio.picture.channels import PictureThread, Publisher
from dala.studio.picture.moment import RenderedMoment
from dala.studio.viewer import Viewer
from dala.trace.recorder import OFF, Holding, traced, tracer
from dala.typing import ImageLike

#: Seconds between messages with statistics, and between measurements of each card.
_STATS: Final = 0.5
_COSTS: Final = 2.0
#: Seconds without a change after which cards are measured.
_QUIET: Final = 0.25
#: Frames a second of still pictures whose chain moves.
_STILLS: Final = 30
#: The shortest time between two pictures, in seconds.
_FASTEST: Final = 1 / 120


class StudioRenderer(PictureThread):
    """A thread that renders the active tab when it changes, and at its rate while it plays.

    Args:
        active: returns the active tab, or None.
        viewers: returns the connected viewers.
        runner: runs chains.
        note: called on the render thread when the problems of a tab's cards or the size of its
            result changed, or when it stopped playing at its end.
        broadcast: sends a message to every page.
    """

    def __init__(
        self,
        active: Callable[[], Tab | None],
        viewers: Callable[[], Sequence[Viewer]],
        runner: ChainRunner,
        note: Callable[[Tab, dict[str, str], tuple[int, int]], None],
        broadcast: Callable[[JsonObject], None],
    ) -> None:
        self._active, self._viewers = active, viewers
        self._runner, self._note, self._broadcast = runner, note, broadcast
        #: Held while a tab renders; a thread that closes or edits a source takes it.
        self.busy = forks.rlock()
        self._dirty = True
        #: When something changed that no picture shows yet, by ``monotonic``.
        self._asked = inf
        self._numbers = itertools.count(1)
        self._prepared: tuple[Tab, tuple[Card, ...], list[ReadyCard]] | None = None
        #: Cards that failed on a picture, by their ids, and the problem; a change clears them.
        self._failed: dict[tuple[str, str], tuple[Card, str]] = {}
        self._frame: tuple[str, int] | None = None
        #: The tab that played when its last picture was rendered.
        self._playing: Tab | None = None
        self._last: tuple[Tab, ImageLike, list[ReadyCard]] | None = None
        #: Compiles a changed chain while the tab plays on with the last one.
        self._ahead: tuple[list[str], threading.Thread] | None = None
        self._told = ""
        self._costs: dict[str, float] = {}
        self._measured = self._reported = 0.0
        self._stale = True
        self._total = 0.0
        self._times: deque[float] = deque(maxlen=60)
        #: When the clock of still pictures began.
        self._begun = monotonic()
        self.dropped = 0
        self.publisher = Publisher(viewers, runner.device)
        super().__init__("dala-studio-renderer")

    def change(self) -> None:
        """Render again, as something changed."""
        with self._changed:
            self._asked = min(self._asked, monotonic())
            self._dirty = self._stale = True
            self._changed.notify_all()

    def look(self) -> None:
        """Look again at the wishes of viewers; nothing else changed."""
        self.wake()
        self.publisher.wake()

    def forget(self, tab: Tab) -> None:
        """Drop the pictures and problems of a closed tab."""
        with self.busy:
            if self._last is not None and self._last[0] is tab:
                self._last = None
            if self._prepared is not None and self._prepared[0] is tab:
                self._prepared = None
            self._failed = {k: v for k, v in self._failed.items() if k[0] != tab.id}
            if self.publisher.moment is not None and self.publisher.moment.tab == tab.id:
                self.publisher.publish(None)

    def explain(self, tab: Tab) -> list[tuple[str, str]]:
        """Return the plans of a tab's chain: of each list of filters, and each model's name.

        Raises:
            DalaError: a card is refused.
        """
        with self.busy:
            before = tab.source.at(tab.time())
            if before is None:
                return []
            links, _ = self._links(tab)
            titles = {card.id: card.title for card in tab.contents.cards}
            return self._runner.plans(before, links, titles)

    def close(self) -> None:
        """End the threads."""
        super().close()
        if self._ahead is not None:
            self._ahead[1].join()
        self.publisher.close()
        self._last = self._prepared = None

    # the thread -------------------------------------------------------------------------------
    def _run(self) -> None:
        while True:
            with self._changed:
                with tracer.wait("idle") if tracer.on else OFF:
                    while not self._closed and (wait := self._wait()) != 0:
                        if not self._changed.wait(wait) and not self._closed:
                            break
                if self._closed:
                    return
                dirty, self._dirty = self._dirty, False
            tab = self._active()
            try:
                if tab is not None and self._someone_looks():
                    if dirty or self._is_next(tab):
                        self._render(tab, dirty)
                    self._report(tab)
                elif dirty:
                    with self._changed:
                        self._dirty, self._asked = True, inf  # until someone looks
            except Exception as error:  # the thread outlives whatever a picture did
                self._tell(describe_error(error))

    def _someone_looks(self) -> bool:
        return any(v.wants_pictures for v in self._viewers())

    def _wait(self) -> float | None:
        """Return the seconds until there is something to do; None for nothing in sight."""
        tab = self._active()
        if tab is None or not self._someone_looks():
            return None
        if self._dirty:
            return 0
        if self._is_next(tab):
            return 0
        waits: list[float] = []
        if tab.playing:
            rate = float(tab.source.rate or 30)
            time = float(tab.time())
            waits.append(max((int(time * rate) + 1) / rate - time, _FASTEST))
        elif self._runs(tab):
            waits.append(1 / _STILLS)
        if self._stale:
            waits.append(
                max(self._times[-1] + _QUIET - monotonic(), _FASTEST) if self._times else _QUIET
            )
        return min(waits, default=None)

    def _is_next(self, tab: Tab) -> bool:
        """Return whether a picture is due that was not rendered; at the end, the last one."""
        frame = tab.id, self._number(tab)
        return self._frame != frame if self._runs(tab) else self._playing is tab

    def _runs(self, tab: Tab) -> bool:
        """Return whether a tab plays, or shows a still picture through cards that move."""
        if tab.playing or tab.source.rate is not None or tab.source.live:
            return tab.playing
        known = self._prepared
        return known is not None and known[0] is tab and any(link.moves for link in known[2])

    def _seconds(self, tab: Tab) -> float:
        """Return the time that kernels are given."""
        return monotonic() - self._begun if tab.source.rate is None else float(tab.time())

    def _number(self, tab: Tab) -> int:
        return int(self._seconds(tab) * (tab.source.rate or _STILLS))

    @traced("draw", "the picture", new=True)
    def _render(self, tab: Tab, dirty: bool) -> None:
        late = not any(v.has_room for v in self._viewers())
        if late and not dirty and tab.playing:
            self._frame = tab.id, self._number(tab)
            self.dropped += 1
            if tracer.on:
                tracer.dropped("studio", self.dropped)
            return
        with Holding(self.busy, "studio") if tracer.on else self.busy:
            time, now = tab.time(), monotonic()
            self._frame = tab.id, self._number(tab)
            asked, self._asked = min(self._asked, now), inf
            if not dirty:  # the clock asked for it
                asked = now - self._seconds(tab) % (1 / float(tab.source.rate or _STILLS))
            if tab.playing and tab.source.rate and not tab.source.live:
                time = Fraction(self._frame[1]) / tab.source.rate  # the picture's own time
            before = tab.source.at(time)
            if before is None:
                if tab.source.live:
                    with self._changed:
                        self._frame = None
                return
            if tracer.on:
                tracer.frame = getattr(before, "trace_id", None) or tracer.frame
            links, problems = self._links(tab)
            links = self._compiled(tab, before, links)
            begun = perf_counter()
            seconds = float(time) if tab.source.rate is not None else self._seconds(tab)
            after = self._processed(tab, before, links, problems, Instant(seconds, self._frame[1]))
            moment = RenderedMoment(
                next(self._numbers), tab.id, time, before, after, self._runner.device, asked,
                tracer.frame if tracer.on else None,
            )  # fmt: skip
            size = moment.size  # waits for the device
            self._total = (perf_counter() - begun) * 1e3
            self._last = tab, before, links
        self._told = ""
        self._times.append(monotonic())
        self.publisher.publish(moment)
        ended = self._playing is tab and not tab.playing
        self._playing = tab if tab.playing else None
        if ended or problems != tab.problems or size != tab.result:
            self._note(tab, problems, size)

    def _links(self, tab: Tab) -> tuple[list[ReadyCard], dict[str, str]]:
        cards = tab.contents.cards
        known = {(tab.id, c.id): c for c in cards}
        self._failed = {
            k: v for k, v in self._failed.items() if k[0] != tab.id or known.get(k) == v[0]
        }
        failed = {
            card: text for (owner, card), (_, text) in self._failed.items() if owner == tab.id
        }
        if self._prepared is not None and self._prepared[:2] == (tab, cards):
            links = self._prepared[2]
            problems = {k: v for k, v in tab.problems.items() if k not in failed}
        else:
            links, found = self._runner.prepare([c for c in cards if c.id not in failed])
            problems = {p.card: p.text for p in found}
        self._prepared = tab, cards, links
        links = [link for link in links if link.card not in failed]
        return links, problems | failed

    def _compiled(self, tab: Tab, before: ImageLike, links: list[ReadyCard]) -> list[ReadyCard]:
        """Return the cards to show: while a tab plays, the last until new ones are compiled."""
        shown = self._last[2] if self._last is not None and self._last[0] is tab else links
        wanted = [link.card for link in links]
        if (
            self._playing is not tab
            or wanted == [link.card for link in shown]
            or any(link.model for link in (*links, *shown))
        ):
            return links
        if self._ahead is None or (self._ahead[0] != wanted and not self._ahead[1].is_alive()):
            work = partial(self._runner.prepare_ahead, before, links)
            self._ahead = wanted, forks.thread(work, name="dala-studio-ahead")
            self._ahead[1].start()
        if self._ahead[1].is_alive() or self._ahead[0] != wanted:
            return shown
        self._runner.take_ahead()
        self._ahead = None
        return links

    def _processed(
        self,
        tab: Tab,
        before: ImageLike,
        links: list[ReadyCard],
        problems: dict[str, str],
        moment: Instant,
    ) -> ImageLike:
        """Return the result of the chain; cards that fail are left out, with their error."""
        while True:
            try:
                return self._runner.run(before, links, moment)
            except (DalaError, ValueError, MemoryError, OSError) as error:
                found = self._runner.culprit(before, links)
                if found is None:  # each works alone: leave out the last one
                    found = CardProblem(links[-1].card, describe_error(error))
                problems[found.card] = found.text
                card = next(c for c in tab.contents.cards if c.id == found.card)
                self._failed[tab.id, card.id] = card, found.text
                links[:] = [link for link in links if link.card != found.card]

    # reports ----------------------------------------------------------------------------------
    def _report(self, tab: Tab) -> None:
        now = monotonic()
        quiet = not self._times or now - self._times[-1] >= _QUIET
        due = now - self._measured >= _COSTS and now - self._reported >= _STATS
        if (
            self._last is not None
            and self._last[0] is tab
            and ((self._stale and quiet) or (tab.playing and due))
        ):
            self._stale = False
            self._measured = now
            with self.busy:
                _, before, links = self._last
                self._costs = self._runner.costs(before, links, lambda: self._dirty)
                if not self._dirty and not self._runs(tab):
                    self._total = self._timed(before, links)
            self._send_stats(now)
        elif tab.playing and now - self._reported >= _STATS:
            self._send_stats(now)

    def _timed(self, before: ImageLike, links: list[ReadyCard]) -> float:
        """Return the milliseconds of the chain; the first run after a change may have compiled."""
        begun = perf_counter()
        after = self._runner.run(before, links)
        RenderedMoment(0, "", Fraction(0), before, after, self._runner.device).pixels("after")
        return (perf_counter() - begun) * 1e3

    def _send_stats(self, now: float) -> None:
        self._reported = now
        recent = [t for t in self._times if now - t <= 1.0]
        self._broadcast({"stats": {
            "cards": {card: round(ms, 3) for card, ms in self._costs.items()},
            "total": round(self._total, 3),
            "encode": round(self.publisher.encode_ms, 3),
            "rate": len(recent),
            "dropped": self.dropped,
            "device": self._runner.device,
            "passes": self._runner.passes if self._costs else 0,
            "results": {card: found.json() for card, found in self._runner.found.items()},
        }})  # fmt: skip
        if self.publisher.error:
            self._tell(self.publisher.error)

    def _tell(self, text: str) -> None:
        if text != self._told:
            self._told = text
            self._broadcast({"error": {"text": text}})
