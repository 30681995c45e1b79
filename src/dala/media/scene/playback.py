"""Presenting a scene in real time: on the calling thread, or beside a running event loop."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, suppress
from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, NoReturn, TypeVar

from dala.arguments import Flag
from dala.errors import ParameterError
from dala.media.scene.options import POSITIVE, START
from dala.media.scene.output import ScenePlayer, check_surface
from dala.offload import LoopWorker, in_event_loop
from dala.trace.recorder import OFF, tracer

if TYPE_CHECKING:
    from asyncio import Task

    from dala.gpu.surface import Surface
    from dala.media.scene.scene import Scene

T = TypeVar("T")


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
    here = _Here()
    if in_event_loop():
        import asyncio

        worker = LoopWorker("dala scene")
        # macOS handles the events of windows on the main thread only.
        main = here if show == "window" and sys.platform == "darwin" else worker
        beside = _present(playback, opened, worker, main, last, on_frame, asyncio.sleep)
        playback._task = asyncio.get_running_loop().create_task(beside, name="dala scene")
        return playback

    async def rest(seconds: float) -> None:
        if seconds > 0:
            with tracer.wait("idle") if tracer.on else OFF:
                pause(seconds)

    with suppress(StopIteration):  # nothing in it waits for an event loop
        _present(playback, opened, here, here, last, on_frame, rest).send(None)
    return playback


class _Here:
    """The calling thread in the place of a worker."""

    async def run(self, function: Callable[[], T]) -> T:
        return function()

    opened = run


async def _present(
    playback: Playback,
    opened: Callable[[], ScenePlayer],
    worker: LoopWorker | _Here,
    main: LoopWorker | _Here,
    last: int | None,
    on_frame: Callable[[float], object] | None,
    rest: Callable[[float], Awaitable[None]],
) -> None:
    """Present the scene frame by frame: ``worker`` draws, ``main`` opens, asks and closes."""
    player = await main.opened(opened)
    surface = player.surface
    try:
        while (wait := player.until_next(last)) is not None:
            await rest(wait)
            await worker.run(player.present)
            if on_frame is not None:
                result = on_frame(player.scene.time)
                if isinstance(result, Awaitable) and isinstance(worker, LoopWorker):
                    await result
            if surface.presenter is not None and await main.run(partial(surface.wait_closed, 0)):
                break
        await worker.run(surface.synchronize)
    finally:
        if main is not worker:
            await worker.run(surface.synchronize)  # after the frame that a cancelled task left
        await main.run(player.close)
    playback.update(player.scene.stats)
