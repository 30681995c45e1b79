"""Sending a scene in real time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from dala.errors import ParameterError
from dala.media.live.functions import open as open_live
from dala.media.live.functions import seconds_of, started
from dala.media.live.muxing import SOUND_RATE, Samples
from dala.media.live.sending import LiveRun, PacedRun
from dala.media.scene.clock import frame_rate
from dala.media.scene.output import FrameRate, start_time
from dala.media.scene.sound.voices import SceneSound, sounding_nodes
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
    audio: bool,
    wait: bool | None,
) -> LiveRun:
    """See :meth:`SceneOutput.live`."""
    scene._check_open(_CALL)
    if on_frame is not None and not callable(on_frame):
        raise ParameterError.invalid(_CALL, "on_frame", "a function of the time", on_frame)
    length, begin = seconds_of(_CALL, seconds), start_time(_CALL, start)
    rate = scene.frame_rate if fps is None else frame_rate(fps)
    if not isinstance(audio, bool):
        raise ParameterError.invalid(_CALL, "audio", "True or False", audio)
    heard = audio and any(True for _ in sounding_nodes(scene.container(), live=True))
    output = open_live(
        url, (scene.width, scene.height), fps=rate, bit_rate=bit_rate, key_frames=key_frames,
        encoder=encoder, options=options, sound=heard, reconnect=reconnect, call=_CALL,
    )  # fmt: skip

    def zero() -> float | None:
        return None if run.begin is None else run.begin - float(begin)

    mixed = SceneSound(scene, SOUND_RATE, begin=zero) if heard else None
    shift = round(begin * SOUND_RATE)

    def picture(slot: int) -> Frame | None:
        skipped = scene.frames_skipped
        frame = scene.render(begin + slot / rate)
        if on_frame is not None:
            on_frame(scene.time)
        return None if slot and scene.frames_skipped > skipped else frame

    def sound(first: int, count: int) -> Samples:
        assert mixed is not None
        return mixed.arrived(first + shift, count)

    run = PacedRun(
        output, picture, length, sound=sound if mixed else None, until=lambda: scene._closed
    )
    if mixed is not None:
        run.held.callback(mixed.close)
    return started(run, seconds is not None if wait is None else wait)
