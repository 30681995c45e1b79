"""Sending a scene in real time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from dala.errors import ParameterError
from dala.media.live.functions import open as open_live
from dala.media.live.functions import seconds_of, started
from dala.media.live.sending import LiveRun, PacedRun
from dala.media.scene.clock import frame_rate
from dala.media.scene.output import FrameRate, start_time
from dala.typing import PathLike

if TYPE_CHECKING:
    from dala.media.frame import Frame
    from dala.media.scene.scene import Scene

_CALL = "Scene.live"


def live(
    scene: Scene,
    url: PathLike,
    seconds: float | None,
    *,
    fps: FrameRate | None,
    start: float,
    bit_rate: int | str | None,
    key_frames: float,
    encoder: str | None,
    options: Mapping[str, str | float] | None,
    reconnect: float,
    on_frame: Callable[[float], object] | None,
    wait: bool | None,
) -> LiveRun:
    """See :meth:`SceneOutput.live`."""
    scene._check_open(_CALL)
    if on_frame is not None and not callable(on_frame):
        raise ParameterError.invalid(_CALL, "on_frame", "a function of the time", on_frame)
    length, begin = seconds_of(_CALL, seconds), start_time(_CALL, start)
    rate = scene.frame_rate if fps is None else frame_rate(fps)
    output = open_live(
        url, (scene.width, scene.height), fps=rate, bit_rate=bit_rate, key_frames=key_frames,
        encoder=encoder, options=options, reconnect=reconnect, call=_CALL,
    )  # fmt: skip

    def picture(slot: int) -> Frame | None:
        skipped = scene.frames_skipped
        frame = scene.render(begin + slot / rate)
        if on_frame is not None:
            on_frame(scene.time)
        return None if slot and scene.frames_skipped > skipped else frame

    run = PacedRun(output, picture, length, until=lambda: scene._closed)
    return started(run, seconds is not None if wait is None else wait)
