"""Encoding for pages: one picture for all that show the same, the newest first."""

from __future__ import annotations

import io
import itertools
import json
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic, perf_counter
from typing import Final, TypeAlias

from dala import forks
from dala.studio.catalogue.parameters import JsonObject
from dala.studio.picture.charts import histogram, waveform
from dala.studio.picture.h264 import SMALLEST, H264Encoder
from dala.studio.picture.moment import Region, RenderedMoment
from dala.studio.viewer import View, Viewer
from dala.trace.recorder import OFF, Here, tracer
from dala.typing import NDArray

#: Quality of JPEG pictures.
_QUALITY: Final = 88
#: Seconds between charts.
_CHARTS: Final = 0.1
_CHARTED: Final = {"histogram": histogram, "waveform": waveform}
#: Encoders that stay open.
_CHANNELS: Final = 8

#: What viewers share: codec, region, width, height, and whether they want the picture before.
ChannelKey: TypeAlias = tuple[str, Region, int, int, bool]


@dataclass
class _Channel:
    """The encoders of one kind of picture, and the viewers that could decode its next one."""

    encoders: dict[str, H264Encoder] = field(default_factory=dict)
    #: The moment that was encoded last, its messages, and its number.
    moment: int = -1
    messages: list[bytes] = field(default_factory=list)
    seq: int = -1
    key: bool = False
    #: Viewers that have every picture since the last key picture: now, and before the last one.
    synced: set[int] = field(default_factory=set)
    before: set[int] = field(default_factory=set)

    def close(self) -> None:
        for encoder in self.encoders.values():
            encoder.close()
        self.encoders.clear()


class PictureThread(ABC):
    """A thread that works when something has changed, until it is closed."""

    def __init__(self, name: str) -> None:
        self._changed = forks.condition()
        self._closed = False
        self._thread = forks.thread(self._run, name=name)
        self._thread.start()

    @abstractmethod
    def _run(self) -> None:
        """Work until ``_closed`` is set."""

    def wake(self) -> None:
        """Look again at the wishes of viewers."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()


class Publisher(PictureThread):
    """A thread that encodes the newest moment for the viewers that have room for it.

    Args:
        viewers: returns the connected viewers.
        device: the device that scales and converts.
    """

    def __init__(self, viewers: Callable[[], Sequence[Viewer]], device: str | None) -> None:
        self._viewers = viewers
        self._device = device
        self._moment: RenderedMoment | None = None
        #: Who rendered it, in a trace.
        self._putter: Here = (None, 0, 0)
        self._channels: dict[ChannelKey, _Channel] = {}
        self._seq = itertools.count(1)
        self._charted = 0.0
        self._charts: dict[int, tuple[int, tuple[str, ...]]] = {}
        #: Milliseconds of the last encoding, and pictures that viewers were sent.
        self.encode_ms = 0.0
        self.count = 0
        self.error = ""
        super().__init__("dala-studio-encoder")

    # from other threads -----------------------------------------------------------------------
    def publish(self, moment: RenderedMoment | None) -> None:
        """Replace the newest moment."""
        with self._changed:
            self._moment = moment
            if tracer.on:
                self._putter = tracer.here()
            self._changed.notify_all()

    @property
    def moment(self) -> RenderedMoment | None:
        """The newest moment."""
        return self._moment

    def close(self) -> None:
        """End the thread and free the encoders."""
        super().close()
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()
        self._moment = None

    # the thread -------------------------------------------------------------------------------
    def _run(self) -> None:
        while True:
            with self._changed:
                with tracer.wait("idle") if tracer.on else OFF as waited:
                    while not self._closed and not self._due():
                        self._changed.wait(_CHARTS if self._late_charts() else None)
                    if tracer.on:
                        ended = [self._putter, *(v.trace.shown for v in self._viewers())]
                        waited.woken(max(ended, key=lambda here: here[2]))
                if self._closed:
                    return
                moment = self._moment
            assert moment is not None
            if tracer.on:
                tracer.frame = moment.frame
            try:
                self._serve(moment)
                self.error = ""
            except Exception as error:  # the thread must outlive a picture that cannot be encoded
                self.error = f"the picture cannot be encoded: {error}"
                self._give_up(moment)

    def _due(self) -> bool:
        moment = self._moment
        return moment is not None and (
            any(self._wants(v, moment) for v in self._viewers())
            or bool(self._chart_viewers(moment))
        )

    def _wants(self, viewer: Viewer, moment: RenderedMoment) -> bool:
        return viewer.has_room and viewer.sent != (moment.number, viewer.view.picture)

    def _give_up(self, moment: RenderedMoment) -> None:
        for viewer in self._viewers():
            viewer.sent = moment.number, viewer.view.picture
            self._charts[viewer.id] = moment.number, viewer.view.charts

    def _serve(self, moment: RenderedMoment) -> None:
        groups: dict[ChannelKey, list[Viewer]] = {}
        for viewer in self._viewers():
            if self._wants(viewer, moment):
                viewer.sent = moment.number, viewer.view.picture
                groups.setdefault(_key(viewer.view, moment.size), []).append(viewer)
        for key, viewers in groups.items():
            self._send(key, viewers, moment)
        self._send_charts(moment)
        if len(self._channels) > _CHANNELS:
            used = {_key(v.view, moment.size) for v in self._viewers() if v.view.width}
            for key in [k for k in self._channels if k not in used]:
                self._channels.pop(key).close()

    def _send(self, key: ChannelKey, viewers: list[Viewer], moment: RenderedMoment) -> None:
        channel = self._channels.setdefault(key, _Channel())
        ids = {v.id for v in viewers}
        lost = {v.id for v in viewers if v.lost}
        for viewer in viewers:
            viewer.lost = False
        channel.synced -= lost
        channel.before -= lost
        same = channel.moment == moment.number and (
            channel.key or not key[0].startswith("h264") or ids <= channel.before
        )
        if not same or channel.synced & ids:
            start = perf_counter()
            self._encode(key, channel, ids, moment)
            self.encode_ms = (perf_counter() - start) * 1e3
        channel.synced |= ids
        self.count += 1
        for viewer in viewers:
            viewer.send_picture(channel.seq, channel.messages, moment.due)

    def _encode(
        self, key: ChannelKey, channel: _Channel, ids: set[int], moment: RenderedMoment
    ) -> None:
        codec, region, width, height, split = key
        channel.seq = next(self._seq)
        channel.moment = moment.number
        channel.key = not ids <= channel.synced
        channel.before, channel.synced = channel.synced, set()
        channel.messages = []
        for which in ("before", "after") if split else ("after",):
            with tracer.span("convert", "for pages") if tracer.on else OFF:
                pixels = moment.shown(which, region, width, height, opaque=codec != "rgba")
            header: JsonObject = {
                "seq": channel.seq,
                "tab": moment.tab,
                "which": which,
                "time": float(moment.time),
                "codec": codec,
                "key": True,
                "width": width,
                "height": height,
                "region": list(region),
                "result": list(moment.size),
            }
            if codec == "h264":
                encoder = channel.encoders.get(which)
                if encoder is None:
                    encoder = H264Encoder(width, height, device=self._device)
                    channel.encoders[which] = encoder
                    channel.key = True
                with tracer.span("encode", codec) if tracer.on else OFF:
                    data, is_key = encoder.encode(pixels, force_key=channel.key)
                header |= {"codec": encoder.codec, "key": is_key}
            elif codec == "jpeg":
                with tracer.span("encode", codec) if tracer.on else OFF:
                    data = jpeg(pixels)
            else:
                data = pixels.tobytes()
            channel.messages.append(packed(header, data))

    # charts -----------------------------------------------------------------------------------
    def _chart_viewers(self, moment: RenderedMoment) -> list[Viewer]:
        if monotonic() - self._charted < _CHARTS:
            return []
        return self._without_chart(moment)

    def _without_chart(self, moment: RenderedMoment) -> list[Viewer]:
        return [
            v
            for v in self._viewers()
            if v.wants_pictures
            and v.view.charts
            and self._charts.get(v.id) != (moment.number, v.view.charts)
        ]

    def _late_charts(self) -> bool:
        """Return whether charts wait for their time."""
        return self._moment is not None and bool(self._without_chart(self._moment))

    def _send_charts(self, moment: RenderedMoment) -> None:
        viewers = self._chart_viewers(moment)
        if not viewers:
            return
        self._charted = monotonic()
        pixels = moment.pixels("after")
        wanted = {name for v in viewers for name in v.view.charts}
        made: JsonObject = {name: _CHARTED[name](pixels, self._device) for name in wanted}
        for viewer in viewers:
            self._charts[viewer.id] = moment.number, viewer.view.charts
            own: JsonObject = {name: made[name] for name in viewer.view.charts}
            viewer.send(json.dumps({"charts": own}))


def _key(view: View, size: tuple[int, int]) -> ChannelKey:
    """Return the key that viewers of a result share; H.264 needs even sides, not too small ones.

    >>> _key(View(451, 300, codec="h264"), (451, 300))
    ('h264', (0, 0, 450, 300), 450, 300, False)
    """
    codec, (region, width, height) = view.codec, view.fitted(size)
    if codec == "h264":
        even = width & ~1, height & ~1
        if min(width, height) < SMALLEST:
            codec = "jpeg"
        else:
            if region[2:] == (width, height):  # not scaled: leave out a row or column
                region = (*region[:2], *even)
            width, height = even
    return codec, region, width, height, view.split


def jpeg(pixels: NDArray) -> bytes:
    """Return RGBA bytes as a JPEG file; alpha is left out.

    >>> import numpy as np
    >>> jpeg(np.zeros((8, 8, 4), np.uint8))[:2] == bytes((0xFF, 0xD8))
    True
    """
    from PIL import Image

    out = io.BytesIO()
    height, width = pixels.shape[:2]
    Image.frombuffer("RGBA", (width, height), pixels.tobytes(), "raw", "RGBA", 0, 1).convert(
        "RGB"
    ).save(out, "JPEG", quality=_QUALITY)
    return out.getvalue()


def packed(header: JsonObject, data: bytes) -> bytes:
    """Return a binary message: the header's length, the header as JSON, the data.

    >>> packed({"seq": 1}, b"x")
    b'\\n\\x00\\x00\\x00{"seq": 1}x'
    """
    text = json.dumps(header).encode()
    return struct.pack("<I", len(text)) + text + data
