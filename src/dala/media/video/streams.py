"""Videos in file objects, pipes and memory: each demuxer gets a cursor of its own over them."""

from __future__ import annotations

import io
import tempfile
import weakref
from collections.abc import Callable
from typing import BinaryIO, Protocol, cast, runtime_checkable

from dala import forks

#: Bytes of a pipe that are kept in memory; more are kept in a temporary file.
_IN_MEMORY = 64 << 20
_CHUNK = 1 << 16
#: Boxes that begin an MP4 or MOV file, whose index may be at the end.
_INDEXED = (b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide")


@runtime_checkable
class ByteStream(Protocol):
    """An object with ``read(count)``, such as an open file or ``sys.stdin.buffer``."""

    def read(self, count: int, /) -> bytes: ...


class SharedStream:
    """The bytes of a file object, for several cursors.

    What is read from a pipe is kept in a temporary file, so that a second cursor (the sound) can
    begin at the start, and reading can start over.
    """

    def __init__(self, file: ByteStream) -> None:
        self._lock = forks.lock()
        self._file = file
        #: Whether reading never waits, as the bytes are in memory.
        self.in_memory = type(file) is io.BytesIO
        self._ended = False
        self._size = 0
        self._kept: BinaryIO | None = None
        seekable = getattr(file, "seekable", None)
        if callable(seekable):
            self.seekable = bool(seekable())
        else:
            self.seekable = callable(getattr(file, "seek", None))
        self._seek: Callable[..., int] | None = getattr(file, "seek", None)
        if not self.seekable:
            kept = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - lives as long as this
            self._kept = cast(BinaryIO, kept)
            weakref.finalize(self, kept.close)

    def read_at(self, at: int, count: int) -> bytes:
        """Return up to ``count`` bytes from a position on, at least one before the end."""
        with self._lock:
            if self._kept is None:
                assert self._seek is not None
                self._seek(at)
                return _checked(self._file.read(count))
            self._pull(at + 1)
            self._kept.seek(at)
            return self._kept.read(count)

    def head(self, count: int) -> bytes:
        """Return the first ``count`` bytes, or all if there are fewer."""
        found = b""
        while len(found) < count and (more := self.read_at(len(found), count - len(found))):
            found += more
        return found

    def end(self) -> int:
        """Return the number of bytes; of a pipe, after reading all of it."""
        with self._lock:
            if self._kept is None:
                assert self._seek is not None
                return int(self._seek(0, io.SEEK_END))
            self._pull(None)
            return self._size

    def _pull(self, until: int | None) -> None:
        """Read from the pipe until there are so many bytes, or all."""
        assert self._kept is not None
        read = getattr(self._file, "read1", self._file.read)
        while not self._ended and (until is None or self._size < until):
            chunk = _checked(read(_CHUNK))
            self._ended = not chunk
            self._kept.seek(self._size)
            self._kept.write(chunk)
            self._size += len(chunk)

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        # A pipe is read forwards, where the kind of file allows that.
        jumps = self.seekable or self.read_at(0, 8)[4:8] in _INDEXED
        return Cursor(self, jumps)


class Cursor:
    """A position in a shared stream, with the methods that PyAV calls."""

    def __init__(self, stream: SharedStream, jumps: bool) -> None:
        self._stream = stream
        self._jumps = jumps
        self._at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return whether positions may be set."""
        return self._jumps

    def read(self, count: int) -> bytes:
        """Return up to ``count`` bytes; none at the end."""
        data = self._stream.read_at(self._at, count)
        self._at += len(data)
        return data

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position."""
        if whence == io.SEEK_CUR:
            offset += self._at
        elif whence == io.SEEK_END:
            offset += self._stream.end()
        self._at = max(0, offset)
        return self._at


def _checked(data: object) -> bytes:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"read() must return bytes, got {type(data).__name__}")
    return bytes(data)
