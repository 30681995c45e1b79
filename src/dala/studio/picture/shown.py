"""What a trace knows of a page: when its pictures were put, sent and shown."""

from __future__ import annotations

from dala.trace.recorder import Here, tracer


class PageTrace:
    """Two tracks of a trace for one page: what is sent to it, and what it shows.

    Args:
        name: of the page.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        #: The picture that was shown last: its frame, the track of the page, and when.
        self.shown: Here = (None, 0, 0)
        self._sent_at = 0
        #: By number who put a picture or, later, that it was sent; and its due time.
        self._pictures: dict[int, tuple[Here, float]] = {}

    def put(self, seq: int, due: float) -> None:
        """Note that a picture waits to be sent; by ``due`` it had to be shown."""
        if tracer.on:
            self._pictures[seq] = tracer.here(), due

    def sent(self, seq: int, begin: int) -> None:
        """Record that a picture was sent, from a time on until now."""
        if tracer.on and seq in self._pictures:
            put, due = self._pictures[seq]
            lane, now = tracer.device(f"{self.name}, sending"), tracer.clock()
            self._wait("pictures to send", self._sent_at, begin, lane, put)
            tracer.put(("network", self.name, begin, now, lane, put[0], None))
            self._sent_at = now
            self._pictures[seq] = (put[0], lane, now), due

    def seen(self, seq: int) -> None:
        """Record that the page has shown a picture."""
        if tracer.on and seq in self._pictures:
            sent, due = self._pictures.pop(seq)
            lane, now, last = tracer.device(self.name), tracer.clock(), self.shown[2]
            self._wait("pictures", last, sent[2], lane, sent)
            begin = max(sent[2], last)
            tracer.put(("present", self.name, begin, now, lane, sent[0], None))
            self.shown = sent[0], lane, now
            tracer.done(self.name, sent[0], due, lane)

    def _wait(self, what: str, begin: int, end: int, lane: int, here: Here) -> None:
        """Record that a track waited, if it did, for who put a picture."""
        begin = max(begin, tracer.began)
        if end > begin:
            facts = {"by": here[1], "at": here[2]}
            tracer.put(("wait:", what, begin, end, lane, here[0], facts))
