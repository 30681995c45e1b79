"""The target of a video: a file that appears when it is complete, or a stream."""

from __future__ import annotations

import contextlib
import os
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO, Final

from dala.arguments import refuse_url
from dala.errors import DalaError, ParameterError, VideoError
from dala.media.parts import PartFile
from dala.media.video.source import AvObject, av
from dala.typing import PathLike

_CALL: Final = "video.write"
#: FFmpeg's names of containers that people name otherwise.
MUXERS: Final = {
    "mkv": "matroska", "m4v": "mp4", "ts": "mpegts", "m2ts": "mpegts", "mts": "mpegts",
    "wmv": "asf", "mpg": "mpeg", "ogv": "ogg", "y4m": "yuv4mpegpipe",
}  # fmt: skip
_MOV: Final = ("mp4", "mov", "m4v")
#: Containers with ids, which FFmpeg takes at random by default.
_WITH_IDS: Final = ("mkv", "webm", "ogg", "ogv")
#: The most units a second in which MP4 stores when a track begins.
_MAX_SCALE: Final = 1_000_000


class Target:
    """A file or a file object to write to.

    Args:
        given: the path of a file, or a file object open for writing bytes.
        format: the container, such as "mp4" or "mkv"; by default the suffix of the path.

    Raises:
        ParameterError: it is neither, or the container is unknown.
        VideoError: the path is a folder, or in none.
    """

    def __init__(self, given: PathLike | BinaryIO, format: str | None = None) -> None:
        self._owned: BinaryIO | None = None
        self._part: PartFile | None = None
        #: The path of the file, None for a file object; the container as a suffix without the dot.
        self.path, stream, self.format = destination(_CALL, given, format, "mkv", VideoError)
        self._stream = None if stream is None else _Stream(stream)
        name = getattr(stream, "name", None) or f"<{type(stream).__name__}>"
        #: For messages.
        self.label = str(self.path or name)

    def open(self, unit: Fraction | None = None) -> AvObject:
        """Return the open container of PyAV.

        ``unit`` is that of the pictures' times, in seconds: MP4 rounds the time at which they
        begin to milliseconds otherwise.
        """
        mov = self.format in _MOV
        options = {"movflags": "+faststart"} if mov else {}
        if self.format in _WITH_IDS:
            options["fflags"] = "+bitexact"
        exact = {}
        if mov and unit is not None and unit.numerator == 1 and unit.denominator <= _MAX_SCALE:
            exact["movie_timescale"] = str(unit.denominator * -(-1000 // unit.denominator))
        options |= exact
        muxer = MUXERS.get(self.format, self.format)
        path = self.path
        if path is not None and path.exists() and not path.is_file():  # a pipe or a device
            self._owned = path.open("wb")
            self._stream = _Stream(self._owned)
        if self._stream is None:
            assert path is not None
            # The suffix stays last: FFmpeg chooses the container by it.
            self._part = PartFile(path, path.suffix)
            same = path.suffix.lower() == f".{self.format}"
            chosen = None if same else muxer
            try:
                name = f"file:{self._part.path}"
                return av.open(name, "w", format=chosen, options=options)
            except BaseException:
                self._part.discard()
                raise
        if self.format == "avi" and not self._stream.seekable():
            raise ParameterError(
                f"{_CALL}: {self.label!r} cannot seek, which 'avi' needs. Use 'mkv' or 'mp4'."
            )
        if mov:
            # Moving the index to the front would read what was written.
            options = dict(exact)
            if not self._stream.seekable():
                options["movflags"] = "+frag_keyframe+empty_moov+default_base_moof"
        return av.open(self._stream, "w", format=muxer, options=options)

    def complete(self) -> None:
        """Give the file its name, or flush the stream.

        Raises:
            VideoError: the file cannot be replaced.
        """
        if self._stream is not None:
            self._stream.flush()
            self._release()
            return
        assert self._part is not None
        try:
            self._part.complete()
        except OSError as error:
            raise VideoError(
                f"{_CALL}: {self.label!r} cannot be replaced: {error.strerror}."
            ) from error

    def stop(self) -> None:
        """Write nothing more to a stream: FFmpeg's remaining bytes are dropped."""
        if self._stream is not None:
            self._stream.stopped = True

    def discard(self) -> None:
        """Delete the unfinished file, or cut a stream to its former length."""
        if self._stream is not None:
            self._stream.rewind()
            self._release()
        if self._part is not None:
            self._part.discard()

    def _release(self) -> None:
        owned, self._owned = self._owned, None
        if owned is not None:
            with contextlib.suppress(OSError):
                owned.close()


class _Stream:
    """A file object for PyAV: from its current position on, never closed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.stopped = False
        self._start = 0
        able = getattr(file, "seekable", None)
        # What is written to a file opened with mode "a" lands at its end wherever one seeks to.
        appends = "a" in str(getattr(file, "mode", ""))
        self._seekable = bool(able()) and not appends if callable(able) else False
        if self._seekable:
            try:
                self._start = file.tell()
            except OSError:
                self._seekable = False

    def seekable(self) -> bool:
        """Return whether the position can be changed."""
        return self._seekable

    def write(self, data: bytes) -> int:
        """Write all bytes."""
        rest = memoryview(data)
        while len(rest) and not self.stopped:
            count = self._file.write(rest)
            # Raw files may write a part only; many objects return nothing.
            rest = rest[len(rest) if count is None else count :]
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a position, counted from where the file object was."""
        return self._file.seek(offset + (self._start if whence == 0 else 0), whence) - self._start

    def tell(self) -> int:
        """Return the position, counted from where the file object was."""
        return self._file.tell() - self._start

    def flush(self) -> None:
        """Flush the file object, if it can."""
        flush = getattr(self._file, "flush", None)
        if callable(flush):
            flush()

    def rewind(self) -> None:
        """Cut the file to its former length, where it can seek."""
        if self._seekable:
            with contextlib.suppress(OSError, ValueError, AttributeError):
                self._file.seek(self._start)
                self._file.truncate()


def destination(
    call: str, given: PathLike | BinaryIO, format: str | None, usual: str, error: type[DalaError]
) -> tuple[Path | None, BinaryIO | None, str]:
    """Return the path or the file object to write to, and the container's suffix without the dot.

    Args:
        call: the call for messages.
        given: a path or a file object.
        format: the container; by default that of the path's suffix.
        usual: a container for examples in messages.
        error: raised for folders that are not there, and for folders instead of files.
    """
    if format is not None and (not isinstance(format, str) or not format.strip(".")):
        raise ParameterError.invalid(call, "format", f"a container, such as {usual!r}", format)
    if isinstance(given, str | os.PathLike):
        if not os.fspath(given):
            raise ParameterError.invalid(call, "path", "the name of a file to write", given)
        refuse_url(call, "path", given, error)
        path = Path(os.fsdecode(given))
        if path.is_dir():
            raise error(f"{call}: {str(path)!r} is a folder. Name a file in it.")
        if not path.suffix and format is None:
            raise ParameterError(
                f"{call}: {str(path)!r} has no suffix to name the container. Use .{usual}, for "
                "example."
            )
        if not path.parent.is_dir():
            raise error(f"{call}: no such folder: {str(path.parent)!r}. Create it first.")
        return path, None, (format or path.suffix).lower().lstrip(".")
    if not hasattr(given, "write"):
        expected = "the name of a file to write, or a file object"
        raise ParameterError.invalid(call, "path", expected, given)
    if format is None:
        raise ParameterError(
            f"{call}: a file object has no suffix to name the container. Give format, {usual!r} "
            "for example."
        )
    return None, given, format.lower().lstrip(".")
