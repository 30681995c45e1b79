"""``scene.play`` in a running event loop: nothing waits there, and cancelling ends it cleanly."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

import dala
from dala import gpu
from dala.media import Scene
from dala.media.scene.playback import play
from tests.support.waiting import Waits


@pytest.fixture(autouse=True)
def on_the_cpu():
    with dala.device("cpu"):
        yield


@pytest.fixture
def waits(monkeypatch):
    found = Waits(monkeypatch)
    for owner, name in (
        (Scene, "render"), (gpu.Surface, "synchronize"), (gpu.Surface, "close"),
        (gpu.Surface, "__init__"),
    ):  # fmt: skip
        found.watch(owner, name)
    return found


def moving():
    scene = Scene(16, 8, fps=100)
    box = scene.add_overlay(color="white", position=(0, 0), size=(2, 2))
    scene.add_animation(box, "x", 0, 10, 0.1)
    return scene


def test_no_wait_on_the_thread_of_the_loop(waits):
    async def main():
        seen, ticks = [], 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        def on_frame(time):
            seen.append((time, threading.get_ident()))

        with moving() as scene:
            beside = asyncio.create_task(tick())
            stats = await scene.play(None, 0.05, on_frame=on_frame)
            beside.cancel()
        return threading.get_ident(), seen, ticks, stats

    thread, seen, ticks, stats = asyncio.run(main())
    assert waits.on(thread) == []
    assert {"Scene.render", "Surface.__init__", "Surface.close"} <= waits.names
    assert {ident for _, ident in seen} == {thread}
    assert stats["frames"] == len(seen) == 5 - stats["dropped"]
    assert ticks > len(seen)


def test_frames_and_stats_are_those_of_a_plain_play():
    """With a clock that stands still no frame is late, so both show the same frames."""

    async def main():
        seen = []

        async def on_frame(time):
            await asyncio.sleep(0)
            seen.append(time)

        with moving() as scene, gpu.create_surface(16, 8) as surface:
            playback = play(scene, surface, 0.03, on_frame=on_frame, clock=lambda: 0.0)
            assert not playback.done()
            with pytest.raises(dala.ParameterError, match="Await it"):
                playback["frames"]
            stats = await playback
            assert playback.done()
            assert stats is playback
            assert stats["frames"] == 3
            with pytest.raises(KeyError):
                stats["none"]
            return seen, surface.to_array()

    seen, shown = asyncio.run(main())
    assert seen == [0.0, 0.01, 0.02]
    with moving() as scene:
        assert np.array_equal(shown, np.asarray(scene.render(0.02)))


def test_cancelling_ends_it(waits):
    async def main():
        waits.calls.clear()  # diagnostics() waits for other engines
        began = asyncio.Event()
        with moving() as scene:

            async def show():
                await scene.play(None, 100, on_frame=lambda _: began.set())

            task = asyncio.create_task(show())
            await began.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            count = scene.frame_count
            assert not waits.on(threading.get_ident())
            scene.render(1.0)  # waits; no other thread uses the scene now
            waited = len(waits.on(threading.get_ident()))
            assert scene.frame_count == count + 1
            playback = scene.play(None, 100)
            playback.cancel()
            with pytest.raises(asyncio.CancelledError):
                await playback
            assert len(waits.on(threading.get_ident())) == waited

    surfaces = dala.diagnostics()["objects"].get("surface", {"count": 0})["count"]
    asyncio.run(main())
    assert dala.diagnostics()["objects"].get("surface", {"count": 0})["count"] == surfaces


def test_errors_are_raised_at_once_or_by_await():
    async def main():
        with moving() as scene:
            for call in (
                lambda: scene.play(None),
                lambda: scene.play(None, 0),
                lambda: scene.play(None, 1, start="now"),
            ):
                with pytest.raises(dala.ParameterError, match=r"^Scene.play"):
                    call()
            with pytest.raises(ZeroDivisionError):
                await scene.play(None, 1, on_frame=lambda time: 1 / 0)
            with pytest.raises(dala.CommandError):
                await scene.play("nowhere", 1)

    asyncio.run(main())


def test_outside_a_loop_it_can_be_awaited_too():
    with moving() as scene:
        stats = scene.play(None, 0.02)
    assert stats["frames"] + stats["dropped"] == 2

    async def late():
        return await stats

    assert asyncio.run(late()) is stats


# opening ------------------------------------------------------------------------------------------
def test_add_video_async_opens_on_another_thread(monkeypatch, tmp_path):
    import av

    from dala.media import video

    path = tmp_path / "a.mp4"
    video.write(path, [np.full((16, 32, 3), 80 * n, np.uint8) for n in range(3)], fps=10)
    waits = Waits(monkeypatch)
    waits.watch(av, "open")

    async def main():
        with Scene(32, 16, fps=10) as scene:
            node = await scene.add_video_async(path, loop=True, position=(0, 0))
            group = scene.add_group()
            other = await group.add_video_async(path)
            assert node.stream == path
            assert node.options == {"loop": True}
            assert node.natural() == other.natural() == (32.0, 16.0)
            here = waits.on(threading.get_ident())
            frame = await asyncio.to_thread(scene.render, 0.2)
            return here, np.asarray(frame)[8, 8, 0]

    here, level = asyncio.run(main())
    assert here == []
    assert "av.open" in waits.names
    assert abs(int(level) - 160) < 8


def test_add_video_async_that_fails_or_is_cancelled(tmp_path, monkeypatch):
    from dala.media.sources import open as opening
    from dala.media.sources.types import StillSource

    closed, go = [], threading.Event()
    close = StillSource.close
    monkeypatch.setattr(StillSource, "close", lambda s: (closed.append(s), close(s))[1])
    picture = np.zeros((4, 4, 3), np.uint8)

    async def main():
        with Scene(8, 8) as scene:
            with pytest.raises(dala.VideoNotFound):
                await scene.add_video_async(tmp_path / "none.mp4")
            with pytest.raises(dala.ParameterError):
                await scene.add_video_async(picture, colour="red")
            assert closed
            closed.clear()
            real = opening.open_source
            monkeypatch.setattr(
                opening, "open_source", lambda *a, **k: (go.wait(300), real(*a, **k))[1]
            )
            task = asyncio.create_task(scene.add_video_async(picture))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            go.set()
            while not closed:
                await asyncio.sleep(0)
            assert list(scene.nodes) == []

    asyncio.run(main())


def test_play_in_a_notebook_returns_at_once():
    """Cells run in the event loop of the kernel, so playing goes on beside them."""

    async def cell():
        with moving() as scene:
            playback = scene.play(None, 0.03)
            assert playback.get("frames") is None
            stats = await playback
            return stats["frames"] + stats["dropped"]

    assert asyncio.run(cell()) == 3
