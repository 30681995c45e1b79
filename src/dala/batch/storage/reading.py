"""Files in storage as seekable streams that fetch only the byte ranges that are read."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dala import forks
from dala.batch.storage.urls import name_of
from dala.errors import FreedError

#: Bytes of the first request at a position, which may be all that is wanted there.
FIRST: Final = 64 << 10
#: Bytes of a request while a file is read from front to back; requests double up to it.
MOST: Final = 4 << 20
#: Positions that are read in turns, such as those of pictures, of sound and of an index.
WINDOWS: Final = 4


@dataclass(eq=False)
class _Window:
    start: int
    data: bytes
    #: Bytes that the next request from here on asks for.
    ahead: int

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class RangeReader(io.RawIOBase):
    """A file in storage, read by byte ranges.

    The first request at a position is small. While reading continues there, requests grow, up to
    ``MOST`` bytes. A few positions are kept, so that a demuxer may read pictures and sound in
    turns. Any thread may use it.

    Args:
        fetch: returns the bytes from a start to an end.
        size: bytes of the file.
        url: its name.

    Attributes:
        requests: how often bytes were fetched.
        fetched: how many bytes.

    >>> text = b"0123456789" * 100
    >>> with RangeReader(lambda start, end: text[start:end], len(text), "s3://films/a.txt") as file:
    ...     file.seek(-3, io.SEEK_END), file.read(), file.requests
    (997, b'789', 1)
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size: int, url: str) -> None:
        self.name = name_of(url)
        self.size = size
        self.requests = 0
        self.fetched = 0
        self._fetch = fetch
        self._at = 0
        self._windows: list[_Window] = []  # the last used is the last
        self._lock = forks.rlock()

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position and return it."""
        with self._lock:
            base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
            self._at = max(0, base + offset)
            return self._at

    def read(self, count: int | None = -1) -> bytes:
        """Return so many bytes, fewer at the end of the file; all that are left by default."""
        with self._lock:
            left = max(self.size - self._at, 0)
            wanted = left if count is None or count < 0 else min(count, left)
            data = self.read_at(self._at, wanted)
            self._at += len(data)
            return data

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer and return the number of bytes."""
        view = memoryview(target).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def read_at(self, start: int, count: int) -> bytes:
        """Return bytes from a position on, and leave the position of ``read`` alone."""
        with self._lock:
            if self.closed:
                raise FreedError(f"read: the file {self.name!r} is closed.")
            end = min(start + count, self.size)
            parts, wanted = [], 1
            while start < end:
                window = self._window(start, wanted)
                parts.append(window.data[start - window.start : end - window.start])
                start += len(parts[-1])
                wanted = end - start
            return b"".join(parts)

    def _window(self, at: int, wanted: int = 1) -> _Window:
        """Return a window with the byte at a position, and the bytes that will be read next."""
        latest = self._windows[::-1]
        window = next((w for w in latest if w.start <= at < w.end), None)
        if window is not None:
            self._windows.remove(window)
            self._windows.append(window)
            return window
        # Reading may go on where one ended.
        before = next((w for w in latest if 0 <= at - w.end <= FIRST), None)
        if before is not None:
            self._windows.remove(before)
        ahead = FIRST if before is None else before.ahead
        size = min(max(ahead, min(wanted, MOST)), self.size - at)
        window = _Window(at, self._fetch(at, at + size), min(2 * ahead, MOST))
        self.requests += 1
        self.fetched += len(window.data)
        del self._windows[: max(0, len(self._windows) - WINDOWS + 1)]
        self._windows.append(window)
        return window

    def close(self) -> None:
        """Give the bytes back that were read ahead."""
        self._windows.clear()
        super().close()
