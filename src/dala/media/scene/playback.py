"""Presenting a scene in real time: on the calling thread, or beside a running event loop."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack
from time import monotonic, sleep
from typing import TYPE_CHECKING, NoReturn

from dala.arguments import Flag
from dala.errors import ParameterError
from dala.media.scene.builder import close_late
from dala.media.scene.options import POSITIVE, START
from dala.media.scene.output import ScenePlayer, check_surface
from dala.offload import LoopWorker, arrival, in_event_loop

if TYPE_CHECKING:
    from asyncio import Task

    from dala.gpu.surface import Surface
    from dala.media.scene.scene import Scene


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
        last = max(1, round(POSITIVE.check(call, "seconds", seconds) * scene.frame_rate))
    Flag().check(call, "audio", audio)
    begin = START.check(call, "start", start)
    if isinstance(show, Surface):
        check_surface(scene, show, call)

    def opened() -> ScenePlayer:
        with ExitStack() as stack:
            if isinstance(show, Surface):
                surface = show
            else:
                surface = gpu.create_surface(scene.width, scene.height, show=show, title=title)
                stack.callback(surface.close)
            ticks = clock
            if audio and clock is monotonic:
                from dala.media.scene.sound.device import open_player

                if (sound := open_player(scene, begin)) is not None:
                    stack.callback(sound.close)
                    ticks = sound.clock
            player = ScenePlayer(scene, surface, start=start, clock=ticks, pause=pause)
            player.held = stack.pop_all()
        return player

    playback = Playback()
    if in_event_loop():
        import asyncio

        # macOS handles the events of windows on the main thread only.
        main_only = show == "window" and sys.platform == "darwin"
        beside = _play_beside(playback, opened, main_only, last, on_frame)
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
        player.close()
    playback.update(scene.stats)
    return playback


async def _play_beside(
    playback: Playback,
    opened: Callable[[], ScenePlayer],
    main_only: bool,
    last: int | None,
    on_frame: Callable[[float], object] | None,
) -> None:
    """Present the scene from the event loop: it sleeps between frames, a thread does the work."""
    import asyncio

    worker = LoopWorker("dala scene")
    if main_only:
        player = opened()
    else:
        opening = worker.submit(opened)
        try:
            player = await arrival(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(close_late)
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
            player.close()
        else:
            await worker.run(player.close)
    playback.update(player.scene.stats)


def _is_closed(player: ScenePlayer) -> bool:
    return player.surface.presenter is not None and player.surface.wait_closed(0)
