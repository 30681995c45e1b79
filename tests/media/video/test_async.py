"""Videos in asyncio: nothing waits on the loop's thread, cancelling closes, nothing is lost."""

from __future__ import annotations

import asyncio
import gc
import io
import threading

import numpy as np
import pytest

import dala
from dala.media import video
from dala.offload import LoopWorker
from tests.support.waiting import Waits

av = pytest.importorskip("av")

from dala.media.video.animated import reader as animated  # noqa: E402
from dala.media.video.decoding.decoder import Decoder  # noqa: E402
from dala.media.video.decoding.input import VideoInput  # noqa: E402
from dala.media.video.encode import Encoder  # noqa: E402
from dala.media.video.reader import Reader  # noqa: E402
from dala.media.video.source import FrameQueue  # noqa: E402
from tests.media.video.clips import encode, numbered  # noqa: E402

TIMES = [k / 25 for k in range(8)]


@pytest.fixture(scope="module", autouse=True)
def on_the_cpu():
    with dala.device("cpu"):
        yield


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips")
    pictures = [np.full((18, 32, 3), 20 + 25 * k, np.uint8) for k in range(8)]
    video.write(folder / "clip.mp4", pictures, fps=25)
    video.write(folder / "clip.gif", pictures, fps=25)
    return folder


@pytest.fixture
def waits(monkeypatch):
    found = Waits(monkeypatch)
    found.watch(FrameQueue, "get")
    found.watch(Decoder, "stop")
    found.watch(Encoder, "finish")
    for owner in (VideoInput, animated.AnimationFile):
        found.watch(owner, "__init__")
    for owner in (Reader, animated.AnimationReader):
        found.watch(owner, "__next__")
    return found


def decoders():
    return [t for t in threading.enumerate() if t.name == "dala video decoder"]


def writers():
    return [t for t in threading.enumerate() if t.name == "dala video writer"]


async def times(reader):
    return [float(frame.time) async for frame in reader]


def loop_thread(main):
    """Run a coroutine function and return the ident of the loop's thread, and the result."""

    async def run():
        return threading.get_ident(), await main()

    return asyncio.run(run())


@pytest.mark.parametrize("name", ["clip.mp4", "clip.gif"])
def test_no_wait_on_the_thread_of_the_loop(clips, waits, name):
    async def main():
        plain = await times(video.open(clips / name))
        async with video.open(clips / name) as reader:
            size = reader.width, reader.height
            first = (await anext(reader)).numpy()[0, 0, 0]
            await reader.seek_async(5 / 25)
            later = await times(reader)
            again = await times(reader)
        return plain, size, int(first), later, again

    thread, (plain, size, first, later, again) = loop_thread(main)
    gc.collect()
    assert plain == again == TIMES
    assert (size, later) == ((32, 18), TIMES[5:])
    assert abs(first - 20) <= 3
    assert waits.on(thread) == []
    kind = "Reader" if name == "clip.mp4" else "AnimationReader"
    assert f"{kind}.__next__" in waits.names
    if kind == "Reader":
        assert {"VideoInput.__init__", "FrameQueue.get", "Decoder.stop"} <= waits.names
    else:
        assert "AnimationFile.__init__" in waits.names
    assert decoders() == []


def test_the_record_notices_waits(clips, waits):
    """The same calls without ``async`` are found on the loop's thread."""

    async def main():
        with video.open(clips / "clip.mp4") as reader:
            return [float(frame.time) for frame in reader]

    thread, found = loop_thread(main)
    assert found == TIMES
    assert {"VideoInput.__init__", "FrameQueue.get", "Decoder.stop"} <= set(waits.on(thread))


def test_writing(clips, waits, tmp_path):
    path = tmp_path / "copy.mp4"

    async def main():
        async with video.open(clips / "clip.mp4") as reader, video.write(path, fps=25) as sink:
            async for frame in reader:
                await sink.write_async(frame)

    thread, _ = loop_thread(main)
    assert waits.on(thread) == []
    assert "Encoder.finish" in waits.names
    with video.open(path) as reader:
        assert [float(frame.time) for frame in reader] == TIMES


def test_a_failed_block_leaves_no_file(clips, tmp_path):
    path = tmp_path / "none.mp4"

    async def main():
        async with video.write(path, fps=25) as sink:
            await sink.write_async(np.zeros((8, 8, 3), np.uint8))
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop") as kept:
        asyncio.run(main())
    assert list(tmp_path.iterdir()) == []
    for thread in writers():  # it ends, though the error's traceback holds the writer
        thread.join(60)
    assert writers() == []
    del kept


def test_two_readers_take_turns(clips):
    async def main():
        order = []

        async def read(name):
            async with video.open(clips / name) as reader:
                async for frame in reader:
                    order.append((name, float(frame.time)))

        await asyncio.gather(read("clip.mp4"), read("clip.gif"))
        return order

    order = asyncio.run(main())
    for name in ("clip.mp4", "clip.gif"):
        assert [t for found, t in order if found == name] == TIMES
    assert decoders() == []


def test_two_tasks_share_a_reader(clips):
    async def main():
        async with video.open(clips / "clip.mp4") as reader:
            a, b = await asyncio.gather(times(reader), times(reader))
        return sorted(a + b)

    assert asyncio.run(main()) == TIMES


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("name", ["clip.mp4", "clip.gif"])
def test_cancelled_in_the_body(clips, waits, name, held):
    async def main():
        began = asyncio.Event()

        async def read():
            if held:
                async with video.open(clips / name) as reader:
                    kept.append(reader)
                    async for _ in reader:
                        began.set()
                        await asyncio.Event().wait()
            else:
                async for _ in video.open(clips / name):
                    began.set()
                    await asyncio.Event().wait()

        kept = []
        task = asyncio.create_task(read())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert all(reader.closed for reader in kept)
        if held:
            assert decoders() == []
        del task
        gc.collect()
        await LoopWorker("test").run(lambda: [thread.join(60) for thread in decoders()])
        assert decoders() == []

    thread, _ = loop_thread(main)
    assert waits.on(thread) == []
    assert (name == "clip.mp4") == ("Decoder.stop" in waits.names)


class Stuck(io.BytesIO):
    """A file that reads nothing until it is released."""

    def __init__(self, data, asked):
        super().__init__(data)
        self.asked, self.released = asked, threading.Event()

    def read(self, size=-1):
        self.asked()
        assert self.released.wait(60)
        return super().read(size)


def test_a_frame_that_comes_late_is_not_lost(clips, waits):
    data = (clips / "clip.mp4").read_bytes()

    async def main():
        loop, asked = asyncio.get_running_loop(), asyncio.Event()
        file = Stuck(data, lambda: loop.call_soon_threadsafe(asked.set))
        reader = video.open(file)
        for _ in range(2):  # the second one waits for the same frame
            task = asyncio.create_task(anext(reader))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        file.released.set()
        found = await times(reader)
        await reader.aclose()
        return found

    thread, found = loop_thread(main)
    assert found == TIMES
    assert waits.on(thread) == []


def test_errors_and_closed_readers(clips, tmp_path):
    (tmp_path / "bad.mp4").write_bytes(b"\0" * 64)

    async def main():
        with pytest.raises(dala.VideoNotFound):
            video.open(tmp_path / "none.mp4")
        with pytest.raises(dala.ParameterError):
            video.open(clips / "clip.mp4", format="odd")
        bad = video.open(tmp_path / "bad.mp4")
        assert "not opened yet" in repr(bad)
        with pytest.raises(dala.VideoError, match="cannot open"):
            await times(bad)
        with pytest.raises(dala.VideoError, match="cannot open"):
            async with video.open(tmp_path / "bad.mp4"):
                pass
        for name in ("clip.mp4", "clip.gif"):
            reader = video.open(clips / name)
            await reader.aclose()
            await reader.aclose()
            assert reader.closed
            assert repr(reader) == f"<Reader '{clips / name}' closed>"
            with pytest.raises(dala.FreedError):
                await times(reader)
        # Plain use works there too: the first use opens the file.
        assert video.open(clips / "clip.mp4").width == 32

    asyncio.run(main())


def test_a_reader_outlives_its_loop(clips):
    reader = video.open(clips / "clip.mp4")

    async def some():
        return [float((await anext(reader)).time) for _ in range(3)]

    assert asyncio.run(some()) == TIMES[:3]
    assert asyncio.run(some()) == TIMES[3:6]
    assert [float(frame.time) for frame in reader] == TIMES[6:]
    reader.close()


def test_tracks_are_opened_on_the_writers_thread(tmp_path, monkeypatch):
    import av

    source = encode(tmp_path / "tone.mp4", numbered(6), tone=True)
    waits = Waits(monkeypatch)
    waits.watch(av, "open")
    pictures = [np.full((48, 64, 3), 30 * n, np.uint8) for n in range(6)]

    async def main():
        for argument in ("audio_from", "tracks_from"):
            given = {argument: source}
            async with video.write(tmp_path / f"{argument}.mp4", fps=25, **given) as sink:
                for picture in pictures:
                    await sink.write_async(picture)
        with pytest.raises(dala.VideoError):
            async with video.write(tmp_path / "x.mp4", fps=25, audio_from=tmp_path) as sink:
                pass
        (tmp_path / "text.mp4").write_text("no video")
        with pytest.raises(dala.VideoError, match="cannot open audio_from"):
            async with video.write(
                tmp_path / "x.mp4", fps=25, audio_from=tmp_path / "text.mp4"
            ) as sink:
                await sink.write_async(pictures[0])
        return threading.get_ident()

    thread = asyncio.run(main())
    assert "av.open" not in waits.on(thread)
    assert "av.open" in waits.names
    assert not (tmp_path / "x.mp4").exists()
    for argument in ("audio_from", "tracks_from"):
        with av.open(str(tmp_path / f"{argument}.mp4")) as made:
            assert len(made.streams.audio) == 1
