"""Presenting a scene in real time: on the calling thread, or beside a running event loop."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Generator
from time import monotonic, sleep
from typing import TYPE_CHECKING, NoReturn

from dala.errors import ParameterError
from dala.media.scene.output import ScenePlayer, check_surface, positive, start_time
from dala.offload import LoopWorker, arrival, in_event_loop

if TYPE_CHECKING:
    from asyncio import Task
    from concurrent.futures import Future

    from dala.gpu.surface import Surface
    from dala.media.scene.scene import Scene
    from dala.media.scene.sound.device import SoundPlayer


class Playback(dict[str, float]):
    """The ``stats`` of a scene after ``play``. In a running event loop they come with ``await``::

    stats = await scene.play("window", seconds=5)
    print(stats["frames"], stats["dropped"])
    """

    def __init__(self) -> None:
        super().__init__()
        self._task: Task[None] | None = None

    def __await__(self) -> Generator[object, None, Playback]:
        if self._task is not None:
            yield from self._task.__await__()
        return self

    def __missing__(self, key: str) -> NoReturn:
        if self:
            raise KeyError(key)
        raise ParameterError(
            "Scene.play: the presentation runs beside the event loop and has no stats yet. "
            "Await it: stats = await scene.play(...)."
        )

    def done(self) -> bool:
        """Return True once the presentation has ended."""
        return self._task is None or self._task.done()

    def cancel(self) -> None:
        """End the presentation. Awaiting it then raises ``CancelledError``."""
        if self._task is not None:
            self._task.cancel()


def play(
    scene: Scene,
    show: str | Surface | None = "window",
    seconds: float | None = None,
    *,
    start: float = 0.0,
    title: str = "dala",
    on_frame: Callable[[float], object] | None = None,
    audio: bool = True,
    clock: Callable[[], float] = monotonic,
    pause: Callable[[float], object] = sleep,
) -> Playback:
    """See :meth:`dala.media.scene.output.SceneOutput.play`."""
    from dala import gpu
    from dala.gpu.surface import Surface

    call = "Scene.play"
    scene._check_open(call)
    if show is None and seconds is None:
        raise ParameterError(f"{call}: seconds is required if there is no window to close.")
    last = None
    if seconds is not None:
        last = max(1, round(positive(call, "seconds", seconds) * scene.frame_rate))
    if not isinstance(audio, bool):
        raise ParameterError.invalid(call, "audio", "True or False", audio)
    begin = start_time(call, start)
    if isinstance(show, Surface):
        check_surface(scene, show, call)

    def opened() -> ScenePlayer:
        if isinstance(show, Surface):
            surface = show
        else:
            surface = gpu.create_surface(scene.width, scene.height, show=show, title=title)
        ticks = clock
        if audio and clock is monotonic:
            from dala.media.scene.sound.device import open_player

            sound = open_player(scene, begin)
            if sound is not None:
                sounds.append(sound)
                ticks = sound.clock
        return ScenePlayer(scene, surface, start=start, clock=ticks, pause=pause)

    sounds: list[SoundPlayer] = []
    playback = Playback()
    if in_event_loop():
        import asyncio

        beside = _play_beside(playback, opened, show, last, on_frame, sounds)
        playback._task = asyncio.get_running_loop().create_task(beside, name="dala scene")
        return playback
    player = opened()
    try:
        while player.step(last):
            if on_frame is not None:
                on_frame(scene.time)
            if _is_closed(player):
                break
        player.surface.synchronize()
    finally:
        _close(player, show, sounds)
    playback.update(scene.stats)
    return playback


async def _play_beside(
    playback: Playback,
    opened: Callable[[], ScenePlayer],
    show: str | Surface | None,
    last: int | None,
    on_frame: Callable[[float], object] | None,
    sounds: list[SoundPlayer],
) -> None:
    """Present the scene from the event loop: it sleeps between frames, a thread does the work."""
    import asyncio

    worker = LoopWorker("dala scene")
    # macOS handles the events of windows on the main thread only.
    main_only = show == "window" and sys.platform == "darwin"
    if main_only:
        player = opened()
    else:
        opening = worker.submit(opened)
        try:
            player = await arrival(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(lambda late: _close_late(late, show, sounds))
            raise
    try:
        while (wait := player.until_next(last)) is not None:
            await asyncio.sleep(wait)
            await worker.run(player.present)
            if on_frame is not None:
                result = on_frame(player.scene.time)
                if isinstance(result, Awaitable):
                    await result
            if player.surface.presenter is not None and (
                _is_closed(player) if main_only else await worker.run(lambda: _is_closed(player))
            ):
                break
        await worker.run(player.surface.synchronize)
    finally:  # after the frame that a cancelled task left behind
        if main_only:
            await worker.run(player.surface.synchronize)
            _close(player, show, sounds)
        else:
            await worker.run(lambda: _close(player, show, sounds))
    playback.update(player.scene.stats)


def _is_closed(player: ScenePlayer) -> bool:
    return player.surface.presenter is not None and player.surface.wait_closed(0)


def _close(player: ScenePlayer, show: str | Surface | None, sounds: list[SoundPlayer]) -> None:
    for sound in sounds:
        sound.close()
    if player.surface is not show:
        player.surface.close()


def _close_late(
    opening: Future[ScenePlayer], show: str | Surface | None, sounds: list[SoundPlayer]
) -> None:
    if opening.exception() is None:
        _close(opening.result(), show, sounds)
