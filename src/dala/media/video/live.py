"""Where videos come from, and the bounded queue between the thread that decodes and the reader."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dala.errors import MissingPackage, ParameterError, VideoError, VideoNotFound

POLICIES = ("every", "latest")

#: Protocols whose sender does not wait for us.
_LIVE = ("rtsp", "rtsps", "rtmp", "rtmps", "rtp", "udp", "srt", "mms", "whip", "whep")


def pyav() -> Any:
    """The module ``av``, or MissingPackage saying how to get it."""
    try:
        import av
    except ModuleNotFoundError as error:
        if error.name != "av":
            raise
        raise MissingPackage(
            "dala.media.video: reading and writing video needs PyAV, which is not installed. "
            "Run: pip install dala[media]"
        ) from None
    return av


@dataclass(frozen=True)
class Source:
    """What to hand to FFmpeg for a path, a URL or a camera."""

    name: str
    shown: str
    live: bool
    format: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    url: bool = False


def source_of(what: Any, call: str = "video.open") -> Source:
    """A source from a path, a URL or a camera's index; refuses anything else."""
    if isinstance(what, int) and not isinstance(what, bool):
        return _camera(what, call)
    if isinstance(what, str) and "://" in what:
        scheme = what.split("://", 1)[0].lower()
        return Source(what, what, scheme in _LIVE, url=True)
    if not isinstance(what, str | os.PathLike):
        raise ParameterError(
            f"{call}: 'source' is a path, a URL or the number of a camera, "
            f"{type(what).__name__} came."
        )
    path = Path(os.fsdecode(what))
    if not path.exists():
        raise VideoNotFound(f"{call}: there is no file {str(path)!r}. Check the path.")
    if path.is_dir():
        raise VideoError(f"{call}: {str(path)!r} is a folder; name a file in it.")
    if path.is_file() and path.stat().st_size == 0:
        raise VideoError(f"{call}: {str(path)!r} is empty (0 bytes); it holds no video.")
    # A file's name may hold a colon, which FFmpeg would take for the end of a protocol.
    name = f"file:{path}" if path.is_file() else str(path)
    return Source(name, str(path), not path.is_file())


def _camera(index: int, call: str) -> Source:
    if index < 0:
        raise ParameterError(f"{call}: cameras are numbered from 0, {index} came.")
    shown = f"camera {index}"
    if sys.platform == "darwin":
        options = {"framerate": "30", "pixel_format": "nv12"}
        return Source(f"{index}:none", shown, True, "avfoundation", options)
    if sys.platform == "win32":
        av = pyav()
        found = [d for d in av.enumerate_input_devices("dshow") if "video" in d.media_types]
        if index >= len(found):
            raise VideoNotFound(f"{call}: there is no {shown}; this machine has {len(found)}.")
        return Source(f"video={found[index].name}", shown, True, "dshow")
    name = f"/dev/video{index}"
    if not os.path.exists(name):
        here = sorted(str(p) for p in Path("/dev").glob("video*"))
        raise VideoNotFound(
            f"{call}: there is no {shown} ({name}). "
            + (f"This machine has {', '.join(here)}." if here else "This machine has no camera.")
        )
    return Source(name, f"{shown} ({name})", True, "v4l2")


class Queue:
    """Frames on their way from a thread. Bounded: "every" waits for room, "latest" drops the old.

    Whoever closes it wakes both sides. ``finish`` is the producer's last word: the frames that are
    left are still given out, then the error, if there is one, then nothing for ever.
    """

    def __init__(self, size: int, policy: str) -> None:
        self.dropped = 0
        self._size = size
        self._policy = policy
        self._items: deque[Any] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._closed = False
        self._error: Exception | None = None

    @property
    def closed(self) -> bool:
        """True once nobody wants any more."""
        return self._closed

    def put(self, item: Any) -> bool:
        """False when nobody wants any more."""
        with self._changed:
            if self._policy == "latest":
                while len(self._items) >= self._size:
                    self._items.popleft()
                    self.dropped += 1
            while len(self._items) >= self._size and not self._closed:
                self._changed.wait(0.5)  # with a limit, so that Ctrl-C is heard everywhere
            if self._closed:
                return False
            self._items.append(item)
            self._changed.notify_all()
            return True

    def finish(self, error: Exception | None = None) -> None:
        """No more will come."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def close(self) -> None:
        """No more is wanted."""
        with self._changed:
            self._closed = self._ended = True
            self._items.clear()
            self._changed.notify_all()

    def get(self, *, keep: bool = False) -> Any | None:
        """The next item, or None after the last; ``keep`` leaves it, and any error, in place."""
        with self._changed:
            while not self._items and not self._ended:
                self._changed.wait(0.5)
            if self._items:
                if keep:
                    return self._items[0]
                item = self._items.popleft()
                self._changed.notify_all()
                return item
            if self._error is not None and not keep:
                error, self._error = self._error, None
                raise error
            return None
