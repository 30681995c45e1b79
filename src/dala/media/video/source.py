"""Video sources (files, URLs, cameras) and the bounded queue between decoder and reader."""

from __future__ import annotations

import io
import math
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

from dala import budget, forks
from dala.arguments import SECONDS, Flag
from dala.arguments.paths import near_files
from dala.errors import (
    DalaError,
    MissingPackage,
    ParameterError,
    VideoError,
    VideoNotFound,
    masked,
    masked_error,
)
from dala.extras import pip_install
from dala.media.video.reach import (
    PLAYLIST_OPTIONS,
    PROTOCOLS,
    container_options,
    is_named_as_picture,
)
from dala.media.video.streams import ByteStream, Cursor, SharedStream, cut_off
from dala.trace.recorder import OFF, Here, tracer
from dala.typing import PathLike
from dala.untrusted.address import Address, scheme_of
from dala.untrusted.secret import SecretUrl

#: An object of PyAV, which has no types: the module, a container, a stream or a packet.
AvObject: TypeAlias = Any
#: A ``VideoFrame`` of PyAV.
DecodedFrame: TypeAlias = AvObject

#: Protocols whose sender does not wait for the reader.
_LIVE = ("rtsp", "rtsps", "rtmp", "rtmps", "rtp", "udp", "srt", "mms", "whip", "whep")


class _PyAV:
    """PyAV, imported when it is used."""

    def __getattr__(self, name: str) -> AvObject:
        return getattr(pyav(), name)


av: AvObject = _PyAV()


def pyav() -> AvObject:
    """Return the module ``av``.

    Raises:
        MissingPackage: PyAV is not installed.
    """
    try:
        import av as found
    except ModuleNotFoundError as error:
        if error.name != "av":
            raise
        raise MissingPackage(
            "dala.media.video: PyAV is not installed, and video needs it. "
            f"Run: {pip_install('media')}"
        ) from None
    return found


def ffmpeg_message(error: BaseException) -> str:
    """Return FFmpeg's error text, with the last line of its log if there is one.

    The error becomes the cause of one of ours: the URL in it is masked.
    """
    error = masked_error(error)
    text = str(getattr(error, "strerror", None) or error)
    log = getattr(error, "log", None)
    return masked(f"{text} ({log[2].strip()})" if log and log[2].strip() else text)


@contextmanager
def ffmpeg_errors(
    what: str, kind: type[DalaError] = VideoError, advice: str = ""
) -> Iterator[None]:
    """Raise errors of FFmpeg and of files as errors of ours: ``what: the message. advice``."""
    try:
        yield
    except (av.FFmpegError, OSError, ValueError) as error:
        if isinstance(error, DalaError):
            raise
        text = f"{what}: {ffmpeg_message(error)}. {advice}"
        raise kind(text.rstrip()) from error


def pulled(pull: Callable[[], AvObject]) -> Iterator[AvObject]:
    """Yield the frames that a graph of filters has ready, pulled one by one."""
    with suppress(av.BlockingIOError, av.EOFError):
        while True:
            yield pull()


def open_container(handle: object, **options: object) -> AvObject:
    """Open a container to read; titles in other encodings than UTF-8 do not stop it."""
    if int(av.__version__.partition(".")[0]) < 19:  # 19 escapes what is not UTF-8
        options["metadata_errors"] = "replace"
    return av.open(handle, **options)


def tags_of(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata of a container, stream or chapter as text that can be written."""
    return {_readable(key): _readable(value) for key, value in metadata.items()}


def _readable(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@dataclass(frozen=True)
class VideoSource:
    """A path, URL or camera, as FFmpeg opens it.

    ``name`` is for FFmpeg, ``label`` for messages.
    """

    name: str | SecretUrl
    label: str
    live: bool
    format: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    url: bool = False
    #: A file object or bytes, instead of a name.
    stream: SharedStream | None = None
    #: The protocol of a URL.
    scheme: str | None = None
    #: Whether files and hosts that a playlist names may be opened.
    playlists: bool = False
    #: Seconds for which a live source that was lost is tried again.
    reconnect: float = 0.0

    @property
    def handle(self) -> str | Cursor:
        """The object that FFmpeg opens: the name, or a new cursor at the start of the stream."""
        if self.stream is not None:
            return self.stream.cursor()
        return self.name.reveal() if isinstance(self.name, SecretUrl) else self.name

    def open(self, timeout: float = 10.0, **more: object) -> AvObject:
        """Open the container; ``timeout`` is for streams and devices."""
        if (until := budget.deadline()) is not None:
            timeout = max(min(timeout, until - monotonic()), 0.001)
        if (self.url or self.live) and self.stream is None:
            more["timeout"] = (timeout, timeout)
        try:
            return self._opened(self.reach, more)
        except av.ArgumentError:  # its format is not listed
            if self.scheme not in ("http", "https") or self.playlists:
                raise
        assert isinstance(self.name, SecretUrl)
        from dala.untrusted.requests import HostRequests  # with ssl and http

        requests = HostRequests(self.name, timeout)
        return self._opened(PLAYLIST_OPTIONS, {**more, "io_open": requests.open})

    def _opened(self, reach: dict[str, str], more: dict[str, object]) -> AvObject:
        try:
            return open_container(
                self.handle, format=self.format, options=dict(self.options),
                container_options=dict(reach), **more,
            )  # fmt: skip
        except av.FFmpegError as error:  # its log may quote a part, such as a stream key
            budget.check_deadline("video.open")
            if isinstance(self.name, SecretUrl):
                error.args = tuple(map(self.name.hidden, error.args))
            raise

    def head(self, count: int) -> bytes:
        """Return the first bytes of a file or stream, without waiting for any."""
        with suppress(Exception), self._bytes() as stream:  # objects of the caller raise anything
            return b"" if stream is None else stream.head(count)
        return b""

    def cut_off(self, format: str) -> str:
        """Return the evidence that the file ends early, or ""; see ``streams.py``."""
        with suppress(Exception), self._bytes() as stream:
            return "" if stream is None else cut_off(format, stream.read_at, stream.end())
        return ""

    @contextmanager
    def _bytes(self) -> Iterator[SharedStream | None]:
        """Open the bytes of a file; None for live and remote sources."""
        if self.stream is not None or self.live or self.url:
            yield self.stream
        else:
            with Path(self.label).open("rb") as file:
                yield SharedStream(file)

    @property
    def reach(self) -> dict[str, str]:
        """The options that keep FFmpeg to this source; see ``reach.py``."""
        return container_options(
            self.scheme,
            in_memory=self.stream is not None,
            playlists=self.playlists,
            device=self.format is not None,
        )


#: What ``video.open`` reads.
VideoFile: TypeAlias = "PathLike | int | ByteStream | bytes | bytearray | memoryview | VideoSource"


def source_of(what: VideoFile, call: str = "video.open", *, playlists: bool = False) -> VideoSource:
    """Return the source of a path, a URL, a camera index, a file object or bytes.

    With ``playlists`` it may open the files and hosts that a playlist names.

    Raises:
        ParameterError: ``what`` is none of these.
        VideoNotFound: there is no such file or camera.
        VideoError: the path is a folder or an empty file.
    """
    if isinstance(what, VideoSource):
        return what
    Flag().check(call, "playlists", playlists)
    return replace(_found(what, call, playlists=playlists), playlists=playlists)


def lasting(source: VideoSource, reconnect: float) -> VideoSource:
    """Return a source that is tried again for so many seconds when it is lost.

    Raises:
        ParameterError: ``reconnect`` is no number of seconds, or the source is a file.
    """
    if not SECONDS.check("video.open", "reconnect", reconnect):
        return source
    if source.stream is not None or not (source.live or source.url):
        raise ParameterError.invalid(
            "video.open", "reconnect", "0 for files: only cameras and URLs are lost", reconnect
        )
    options = dict(source.options)
    if source.scheme in ("http", "https"):  # FFmpeg asks for the rest of a download by itself
        options.update(
            reconnect="1",
            reconnect_streamed="1",
            reconnect_on_network_error="1",
            reconnect_delay_max=str(max(1, round(reconnect))),
        )
    return replace(source, reconnect=float(reconnect), options=options)


def _found(what: VideoFile, call: str, *, playlists: bool) -> VideoSource:
    assert not isinstance(what, VideoSource)
    if isinstance(what, bytes | bytearray | memoryview):
        return _in_memory(bytes(what), call)
    if isinstance(what, ByteStream):
        return _stream(what, call)
    if isinstance(what, int) and not isinstance(what, bool):
        return _camera(what, call)
    scheme = scheme_of(what) if isinstance(what, str) else None
    if scheme is not None:
        assert isinstance(what, str)
        kinds = f"a path or a URL of {', '.join(sorted(PROTOCOLS))}"
        url = Address.parse(what, call, "source", PROTOCOLS, kinds).url
        return VideoSource(url, str(url), scheme in _LIVE, url=True, scheme=scheme)
    if not isinstance(what, str | os.PathLike):
        raise ParameterError.invalid(
            call,
            "source",
            "a path, a URL, a file object, bytes or the index of a camera",
            type(what),
        )
    path = Path(os.fsdecode(what))
    if not path.exists():
        advice = near_files(path) or "Check the path."
        raise VideoNotFound(f"{call}: no such file: {str(path)!r}. {advice}")
    if path.is_dir():
        raise VideoError(f"{call}: {str(path)!r} is a folder. Name a file in it.")
    if path.is_file() and path.stat().st_size == 0:
        raise VideoError(f"{call}: {str(path)!r} is empty (0 bytes).")
    if path.is_file() and not playlists and is_named_as_picture(str(path)):
        # By its name, FFmpeg would read it as a series of numbered files.
        return _in_memory(path.read_bytes(), call, str(path))
    # A file name may hold a colon, which FFmpeg would take for a protocol.
    return VideoSource(f"file:{path}", str(path), not path.is_file())


def _in_memory(data: bytes, call: str, label: str = "") -> VideoSource:
    if not data:
        raise VideoError(f"{call}: the video in memory is empty (0 bytes).")
    label = label or f"<{len(data)} bytes>"
    return VideoSource(label, label, False, url=True, stream=SharedStream(io.BytesIO(data)))


def _stream(file: ByteStream, call: str) -> VideoSource:
    if getattr(file, "closed", False) is True:
        raise ParameterError.invalid(call, "source", "an open file object", "a closed one")
    if isinstance(file, io.TextIOBase):
        raise ParameterError.invalid(
            call, "source", "a file object of bytes", file, "Open it with mode 'rb'."
        )
    name = getattr(file, "name", None)
    path = name if isinstance(name, str) and _is_file(name, file) else None
    if path is not None:
        return source_of(path, call)  # FFmpeg reads files faster than through Python
    label = name if isinstance(name, str) and name else f"<{type(file).__name__}>"
    return VideoSource(label, label, False, url=True, stream=SharedStream(file))


def _is_file(name: str, file: ByteStream) -> bool:
    """Return whether a file object reads the file of its name, uncompressed."""
    if not isinstance(file, io.BufferedReader | io.FileIO | io.BufferedRandom):
        return False
    try:
        return os.path.isfile(name) and os.path.samestat(os.stat(name), os.fstat(file.fileno()))
    except (OSError, ValueError):
        return False


def _camera(index: int, call: str) -> VideoSource:
    from dala.media.video.decoding import devices

    if index < 0:
        raise ParameterError.invalid(call, "source", "a camera index of 0 or more", index)
    return devices.camera_source(devices.camera_of(index, devices.cameras(), call), {})


def turn_of(decoded: DecodedFrame) -> int:
    """Return the rotation in degrees clockwise; FFmpeg counts counterclockwise."""
    return -int(decoded.rotation) % 360


class FrameQueue:
    """A bounded queue of frames between two threads.

    With policy "every" a full queue blocks the producer; with "latest" it drops its oldest frame.
    ``close`` wakes both sides. After ``finish`` the consumer still gets the remaining frames, then
    the error if there was one, then None.
    """

    def __init__(self, size: int, policy: str, name: str = "frames") -> None:
        #: What waits in it, for traces.
        self.name = name
        self._taker: Here | None = None
        self.dropped = 0
        #: When the last frame that was taken had been put, by ``time.monotonic``.
        self.arrived = 0.0
        #: How often a lost source was found again.
        self.reconnects = 0
        self._size = size
        self._policy = policy
        #: Frames, when they were put, and by which thread, working on which frame of a trace.
        self._items: deque[tuple[DecodedFrame, float, Here | None]] = deque()
        self._changed = forks.condition()
        self._ended = False
        #: Whether the consumer has closed the queue.
        self.closed = False
        self._error: Exception | None = None

    @property
    def done(self) -> bool:
        """Whether nothing is left, and nothing will be put."""
        return self._ended and not self._items

    def put(self, item: DecodedFrame) -> bool:
        """Add a frame. Return False if the queue is closed."""
        with self._changed:
            if self._policy == "latest":
                while len(self._items) >= self._size:
                    self._items.popleft()
                    self.dropped += 1
            with tracer.wait("room for", self.name) if tracer.on else OFF as waited:
                while len(self._items) >= self._size and not self.closed:
                    self._changed.wait(0.5)  # with a timeout, so that Ctrl-C works everywhere
                waited.woken(self._taker)
            if self.closed:
                return False
            self._items.append((item, monotonic(), tracer.here() if tracer.on else None))
            self._changed.notify_all()
            return True

    def finish(self, error: Exception | None = None) -> None:
        """Mark the end of the frames, with the error that caused it."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def close(self) -> None:
        """Discard the frames and refuse further ones."""
        with self._changed:
            self.closed = self._ended = True
            self._items.clear()
            self._changed.notify_all()

    def wait_closed(self, seconds: float) -> bool:
        """Wait so long, or until the queue is closed. Return whether it is."""
        with self._changed:
            end = monotonic() + seconds
            while not self.closed and (left := end - monotonic()) > 0:
                self._changed.wait(left)
            return self.closed

    def get(self, *, keep: bool = False, timeout: float | None = None) -> DecodedFrame | None:
        """Return the next item, and wait for it; None at the end, or after ``timeout`` seconds.

        Args:
            keep: leave the item where it is.
            timeout: without it, the wait has no end.

        Raises:
            Exception: the error that ``finish`` was given, once.
        """
        end = math.inf if timeout is None else monotonic() + timeout
        budget.check_deadline("video.open")
        with self._changed:
            with tracer.wait("", self.name) if tracer.on else OFF as waited:
                while not self._items and not self._ended and (left := end - monotonic()) > 0:
                    budget.pause(self._changed, left, "video.open")
                waited.woken(self._items[0][2] if self._items else None)
            if self._items:
                if keep:
                    return self._items[0][0]
                item, self.arrived, note = self._items.popleft()
                if tracer.on:
                    self._traced(note)
                self._changed.notify_all()
                return item
            if self._error is not None and not keep:
                error, self._error = self._error, None
                raise error
            return None

    def _traced(self, note: Here | None) -> None:
        """Go on with the frame that was taken, in a trace."""
        tracer.frame = note[0] if note else None
        self._taker = tracer.here()
        tracer.count(f"{self.name} waiting", len(self._items))
        if self.dropped:
            tracer.dropped(self.name, self.dropped)
