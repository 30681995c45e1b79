"""Videos in file objects, pipes and memory: each demuxer gets a cursor of its own over them."""

from __future__ import annotations

import io
import tempfile
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
            forks.finalize(self, kept.close)

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


def cut_off(format: str, read: Callable[[int, int], bytes], size: int) -> str:
    """Return the evidence that a file ends early, or "".

    Containers say how long they are, or mark their end; FFmpeg does not look at that.

    Args:
        format: FFmpeg's name of the container.
        read: returns ``count`` bytes from a position on.
        size: the number of bytes of the file.

    >>> two = (b"G" + bytes(187)) * 2
    >>> cut_off("mpegts", lambda at, count: two[at : at + count], 300)
    'its last packet is incomplete'
    """
    if "matroska" in format:
        missing = _segment_end(read) - size
        return f"its last {missing:,} bytes are missing" if missing > 0 else ""
    if format == "mpegts" and size % 188:
        first = read(0, 189)
        broadcast = len(first) == 189 and first[0] == first[188] == 0x47
        return "its last packet is incomplete" if broadcast else ""
    if format == "ogg":
        start = max(size - _PAGE, 0)
        tail = read(start, _PAGE)
        at = tail.rfind(b"OggS")
        if at < 0 or len(tail) < at + 27:
            return "its last page is incomplete"
        lengths = tail[at + 27 : at + 27 + tail[at + 26]]
        if len(lengths) < tail[at + 26] or at + 27 + len(lengths) + sum(lengths) > len(tail):
            return "its last page is incomplete"
        return "" if tail[at + 5] & 4 else "it has no mark of its end"
    return ""


#: The most bytes of a page of Ogg.
_PAGE = 27 + 255 + 255 * 255


def _segment_end(read: Callable[[int, int], bytes]) -> int:
    """Return where the segment of a Matroska file ends, 0 if the file does not say."""
    at = 0
    for name in (b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67"):
        head = read(at, 12)
        if head[:4] != name or len(head) < 12 or not head[4]:
            return 0
        count = 9 - head[4].bit_length()  # leading zeros of the first byte tell
        value = int.from_bytes(head[4 : 4 + count], "big") & ((1 << 7 * count) - 1)
        if value == (1 << 7 * count) - 1:
            return 0  # unknown, as in live recordings
        at += 4 + count + value
    return at


def _checked(data: object) -> bytes:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"read() must return bytes, got {type(data).__name__}")
    return bytes(data)
