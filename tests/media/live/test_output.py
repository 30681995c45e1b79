"""Live streams to real receivers on loopback: values, sound, loss, slowness."""

from __future__ import annotations

import errno
import io
import itertools
import threading
import time
from fractions import Fraction

import numpy as np
import pytest

import dala
from dala.errors import FreedError, ShapeError, VideoError
from dala.media import Frame, Scene, live, video
from dala.media.live.muxing import Muxer
from dala.media.notices import collected
from tests.media.live.receivers import (
    PATIENCE,
    TcpReceiver,
    av,
    ffmpeg,
    free_port,
    levels,
    listens,
    until,
)

SIZE = 64, 48
GRAYS = [16 + 12 * n for n in range(16)]


@pytest.fixture(autouse=True)
def on_cpu():
    before = set(threading.enumerate())
    with dala.device("cpu"):
        yield
    for thread in threading.enumerate():
        if thread not in before and thread.name.startswith("dala live"):
            thread.join(PATIENCE)
            assert not thread.is_alive(), thread.name


def picture(level: int) -> np.ndarray:
    return np.full((SIZE[1], SIZE[0], 3), level, np.uint8)


def tone(start: int, count: int) -> np.ndarray:
    wave = 0.5 * np.sin(2 * np.pi * 440 * np.arange(start, start + count) / 48000)
    return np.repeat(wave[:, None], 2, 1).astype(np.float32)


def send(sink: live.LiveOutput, grays=GRAYS, sound=None) -> None:
    """Send pictures one by one, without a clock."""
    for slot, level in enumerate(grays, sink.next_slot):
        assert sink.put(picture(level), slot, captured=time.monotonic(), sound=sound)
        assert sink.flush(PATIENCE)


# values ---------------------------------------------------------------------------------------
def test_hls(tmp_path):
    with live.open(tmp_path / "show", SIZE, fps=8, sound=True) as sink:
        send(sink, sound=tone)
        assert sink.state == "sending"
        assert "live.m3u8" in repr(sink)
    found = levels(tmp_path / "show" / "live.m3u8")
    assert found == pytest.approx(GRAYS, abs=2)
    with av.open(str(tmp_path / "show" / "live.m3u8")) as source:
        times = [f.time for f in source.decode(video=0)]
        assert np.diff(times) == pytest.approx([1 / 8] * 15, abs=1e-4)
    with av.open(str(tmp_path / "show" / "live.m3u8")) as source:
        sound = np.concatenate([f.to_ndarray() for f in source.decode(audio=0)], 1)
    assert sound.shape[1] >= 2 * 48000 - 2048
    middle = sound[0, 20000:68000]
    assert np.abs(np.fft.rfft(middle)).argmax() == 440
    assert np.sqrt((middle**2).mean()) == pytest.approx(0.5 / 2**0.5, rel=0.05)
    stats = sink.stats
    assert (stats["frames_in"], stats["shown"], stats["dropped"]) == (16, 16, 0)
    assert stats["bytes"] > 1000
    assert stats["latency_ms"] > 0
    assert sink.state == "closed"


@pytest.mark.parametrize("by_itself", [False, True])
def test_an_end_that_cannot_be_written_is_reported(tmp_path, monkeypatch, by_itself):
    def full(muxer: Muxer) -> None:
        ending(muxer)
        raise OSError(errno.ENOSPC, "No space left on device")

    ending = Muxer.close
    monkeypatch.setattr(Muxer, "close", full)
    with collected() as notices:
        if by_itself:
            with Scene(*SIZE, fps=8) as scene:
                scene.live(tmp_path / "show", seconds=0.25)
        else:
            sink = live.open(tmp_path / "show", SIZE, fps=8)
            send(sink)
            sink.close()
            sink.close()
    (said,) = notices
    assert "No space left on device" in said
    assert said.endswith("The end of the stream was not sent.")


def test_udp():
    port = free_port()
    found: list[float] = []

    def receive() -> None:
        address = f"udp://127.0.0.1:{port}?timeout=20000000&fifo_size=100000"
        with av.open(address, format="mpegts", timeout=30) as source:
            for frame in source.decode(video=0):
                found.append(float(frame.to_ndarray(format="gray").mean()))
                if len(found) > 20:
                    return

    thread = threading.Thread(target=receive, daemon=True)
    thread.start()
    with live.open(f"udp://127.0.0.1:{port}", SIZE, fps=30, key_frames=0.1) as sink:
        for slot in range(2000):  # until the receiver has found the stream
            sink.put(picture(GRAYS[slot % 16]), slot)
            sink.flush()
            if len(found) > 20:
                break
            time.sleep(0.01)
    thread.join(PATIENCE)
    assert len(found) > 20
    steps = {round((b - a) / 12) % 16 for a, b in itertools.pairwise(found)}
    assert steps == {1}  # every frame, in order


@pytest.mark.parametrize("kind", ["rtsp", "rtmp"])
def test_a_listening_ffmpeg(tmp_path, kind):
    port, path = free_port(), tmp_path / "got.mkv"
    url = f"{kind}://127.0.0.1:{port}/live/show"
    listen = ["-rtsp_flags", "listen"] if kind == "rtsp" else ["-listen", "1"]
    receiver = ffmpeg(*listen, "-i", url, "-c", "copy", str(path), ready=lambda: listens(port))
    with receiver, live.open(url, SIZE, fps=8, sound=True) as sink:
        send(sink, sound=tone)
    assert levels(path) == pytest.approx(GRAYS, abs=2)
    assert max(levels(path, "audio")) == pytest.approx(0.5 * 2 / np.pi, rel=0.1)


def test_frames_of_every_kind(tmp_path):
    frame = Frame(dala.gpu.compute.from_array(picture(200)))
    with live.open(tmp_path, SIZE, fps=5) as sink:
        for slot, given in enumerate(
            [picture(40), frame, picture(90)[..., 0], np.full((48, 64, 4), 0.5, np.float32)]
        ):
            sink.put(given, slot)
            sink.flush()
        with pytest.raises(ShapeError, match=r"must be 64x48 \(width x height\), got 48x64"):
            sink.put(np.zeros((64, 48, 3), np.uint8), 9)
        sink.repeat(5)
        sink.flush()
    assert levels(tmp_path / "live.m3u8") == pytest.approx([40, 200, 90, 128, 128, 128], abs=2)
    with pytest.raises(FreedError, match="the stream is closed"):
        sink.put(frame, 10)


def test_odd_sizes_get_one_more_row_and_column(tmp_path):
    with live.open(tmp_path, (33, 25), fps=5) as sink:
        sink.put(np.full((25, 33, 3), 77, np.uint8), 0)
    assert levels(tmp_path / "live.m3u8") == pytest.approx([77], abs=2)


def test_slots_are_used_once_and_gaps_are_filled(tmp_path):
    with live.open(tmp_path, SIZE, fps=10) as sink:
        assert sink.put(picture(100), 0)
        assert not sink.put(picture(50), 0)  # one too many
        sink.flush()
        sink.repeat(2)
        sink.flush()
        sink.skip(5)
        assert sink.put(picture(200), 5)
    assert levels(tmp_path / "live.m3u8") == pytest.approx([100, 100, 100, 200], abs=2)
    stats = sink.stats
    assert (stats["shown"], stats["dropped"], stats["repeated"]) == (4, 3, 2)


def test_slots_that_are_left_out_count_in_the_playlist(tmp_path):
    with live.open(tmp_path, SIZE, fps=10) as sink:
        for slot in range(0, 15, 2):
            sink.skip(slot)
            sink.put(picture(100), slot)
            sink.flush()
    with av.open(str(tmp_path / "live.m3u8")) as source:
        stamps = [f.pts * f.time_base for f in source.decode(video=0)]
    assert [float(stamp - stamps[0]) for stamp in stamps] == pytest.approx(
        [slot / 10 for slot in range(0, 15, 2)]
    )
    lines = (tmp_path / "live.m3u8").read_text().splitlines()
    lengths = [float(line[8:].rstrip(",")) for line in lines if line.startswith("#EXTINF:")]
    assert sum(lengths) == pytest.approx(1.5, abs=0.01)


def test_writing_by_a_clock(tmp_path):
    """Frames that arrive too early are dropped, and gaps are filled."""
    now = 0.0
    sink = live.LiveOutput(tmp_path, SIZE, fps=Fraction(10), clock=lambda: now)
    with sink:
        for now in (0.0, 0.1, 0.14, 0.2, 0.5):
            sink.write(picture(round(now * 400)), captured=now)
            sink.flush()
    assert levels(tmp_path / "live.m3u8") == pytest.approx([0, 40, 80, 80, 80, 200], abs=3)
    assert sink.stats["dropped"] == 1
    assert sink.stats["repeated"] == 2


# receivers that vanish, refuse, hang ------------------------------------------------------------
def test_nobody_listens():
    with pytest.raises(VideoError, match=r"cannot send to 'tcp://127.0.0.1:\d+': Connection refu"):
        live.open(f"tcp://127.0.0.1:{free_port()}", SIZE)


def test_a_receiver_that_vanishes_and_comes_back():
    now = 0.0
    with TcpReceiver() as server, collected() as notices:
        sink = live.LiveOutput(
            f"tcp://127.0.0.1:{server.port}", SIZE, fps=Fraction(10), clock=lambda: now,
            reconnect=100.0,
        )  # fmt: skip
        send(sink)
        until(lambda: server.received and len(server.received[0]) > 1000, "data")
        server.stop()

        def push() -> str:
            nonlocal now
            now += 0.1
            sink.put(picture(128), sink.next_slot)
            sink.flush(0.1)
            return sink.state

        until(lambda: push() == "lost", "the loss")
        for _ in range(30):  # meanwhile frames are dropped, and nothing waits
            push()
        assert sink.stats["dropped"] > 10
        server.start()
        until(lambda: push() == "sending", "the return")
        shown = sink.stats["shown"]
        until(lambda: push() and sink.stats["shown"] > shown + 5, "sending")
        assert sink.stats["reconnects"] == 1
        sink.close()
        until(lambda: len(server.received[-1]) > 1000, "data")
        with av.open(io.BytesIO(bytes(server.received[-1])), format="mpegts") as source:
            again = [float(f.to_ndarray(format="gray").mean()) for f in source.decode(video=0)]
        assert again == pytest.approx([128] * len(again), abs=2)  # a whole stream of its own
    assert any("is tried again for 100 s" in text for text in notices)


def test_a_receiver_that_stays_away_is_given_up():
    now = 0.0
    with TcpReceiver() as server, collected():
        sink = live.LiveOutput(
            f"tcp://127.0.0.1:{server.port}", SIZE, fps=Fraction(10), clock=lambda: now,
            reconnect=2.0,
        )  # fmt: skip
        send(sink)
        server.stop()

        def push() -> None:
            nonlocal now
            now += 0.1
            sink.put(picture(9), sink.next_slot)
            sink.flush(0.1)

        with pytest.raises(VideoError, match="cannot send to 'tcp://"):
            for _ in range(3000):
                push()
        with pytest.raises(VideoError, match="cannot send"):
            push()
        sink.close()


def test_a_slow_receiver_blocks_nobody():
    """The receiver takes nothing: whole frames are dropped and counted, and closing ends."""
    noise = np.random.default_rng(1).integers(0, 256, (360, 640, 3), np.uint8)
    with TcpReceiver(reads=False) as server, collected():
        sink = live.open(
            f"tcp://127.0.0.1:{server.port}", (640, 360), fps=30, bit_rate="400M", timeout=1.0
        )
        until(
            lambda: sink.put(noise, sink.next_slot) and sink.stats["dropped"] > 20, "dropped frames"
        )
        before = time.monotonic()
        for _ in range(10):
            sink.put(noise, sink.next_slot)
        sink.close()
        assert time.monotonic() - before < 30  # it never returned before there was a limit
        assert sink.stats["shown"] + sink.stats["dropped"] <= sink.stats["frames_in"]
        server.stop()


# scenes, surfaces, videos ------------------------------------------------------------------------
def test_a_scene(tmp_path):
    with Scene(*SIZE, fps=20, background="white") as scene:
        run = scene.live(tmp_path / "a", seconds=0.5)
        assert run.closed
        assert run.stats["shown"] + run.stats["dropped"] == 10
        with scene.live(tmp_path / "b", fps=50, on_frame=lambda t: None) as run:
            until(lambda: run.stats["shown"] > 3, "frames")
            scene.background = "black"
            until(lambda: run.stats["frames_in"] > 1, "a change")
        assert run.state == "closed"
    assert set(np.round(levels(tmp_path / "a" / "live.m3u8"), -1)) == {260.0}
    found = levels(tmp_path / "b" / "live.m3u8")
    assert (round(found[0]), round(found[-1])) == (255, 0)


def test_the_sound_of_a_scene_and_of_a_file(tmp_path):
    """A tone that begins at half a second, in a scene; then the recording of it, sent as a file."""
    with Scene(*SIZE, fps=20) as scene:
        scene.add_audio(dala.media.audio.tone(1000, 1, amplitude=0.5), start=0.5)
        scene.live(tmp_path / "a", seconds=1.5)
        scene.render_to(tmp_path / "b.mp4", seconds=1.5, progress=False)
        scene.live(tmp_path / "c", seconds=0.2, audio=False)
    live.send(tmp_path / "b.mp4", tmp_path / "b", wait=True)
    for name in ("a", "b"):
        with av.open(str(tmp_path / name / "live.m3u8")) as source:
            frames = list(source.decode(audio=0))
            begin = float(frames[0].pts * frames[0].time_base)
        with av.open(str(tmp_path / name / "live.m3u8")) as source:
            shown = next(source.decode(video=0))
            begin -= float(shown.pts * shown.time_base)
        sound = np.concatenate([f.to_ndarray()[0] for f in frames])
        heard = np.flatnonzero(np.abs(sound) > 0.25)[0] / 48000 + begin
        assert heard == pytest.approx(0.5, abs=0.025), name
        part = sound[int((0.7 - begin) * 48000) :][:9600]
        assert np.abs(np.fft.rfft(part)).argmax() == 200  # 1000 Hz
    with av.open(str(tmp_path / "c" / "live.m3u8")) as source:
        assert not source.streams.audio


def test_a_scene_that_is_closed_ends_its_stream(tmp_path):
    scene = Scene(*SIZE, fps=50)
    run = scene.live(tmp_path)
    scene.close()
    assert run.wait(PATIENCE)


def test_errors_of_a_run_are_raised(tmp_path):
    def fail(time: float) -> None:
        raise RuntimeError("on purpose")

    with Scene(*SIZE, fps=50) as scene:
        with pytest.raises(RuntimeError, match="on purpose"):
            scene.live(tmp_path, seconds=5, on_frame=fail)
        with pytest.raises(dala.ParameterError, match="seconds must be a number of seconds"):
            scene.live(tmp_path, seconds=-1)
        with pytest.raises(dala.ParameterError, match="on_frame must be a function"):
            scene.live(tmp_path, on_frame=3)


def test_a_surface(tmp_path):
    with dala.gpu.create_surface(*SIZE) as surface:
        surface.clear((0, 0, 0))
        surface.present()
        surface.synchronize()
        with surface.live(tmp_path, fps=50) as run:
            until(lambda: run.stats["shown"] > 1, "frames")
            surface.clear((255, 255, 255))
            surface.present()
            until(lambda: run.stats["frames_in"] > 1, "a change")
            surface.resize(32, 48)
            surface.clear((255, 255, 255))
            surface.present()
            until(lambda: run.stats["frames_in"] > 2, "a new size")
        assert run.state == "closed"
    found = levels(tmp_path / "live.m3u8")
    assert found[0] == pytest.approx(0, abs=2)
    assert pytest.approx(max(found), abs=2) == 255
    assert found[-1] == pytest.approx(127.5, abs=6)  # padded to the size of the stream


@pytest.mark.long
def test_a_file_through_filters(tmp_path):
    # Slow, so that a busy machine drops none.
    video.write(tmp_path / "in.mp4", [picture(v) for v in GRAYS[:6]], fps=5)
    run = live.send(tmp_path / "in.mp4", tmp_path / "out", ["invert"], wait=True)
    found = levels(tmp_path / "out" / "live.m3u8")
    assert run.stats["shown"] == len(found)
    wanted = {255 - v for v in GRAYS[:6]}
    assert all(min(abs(f - w) for w in wanted) < 4 for f in found)
    assert run.stats["frames_in"] + run.stats["dropped"] >= 6
    run = live.send(tmp_path / "in.mp4", tmp_path / "b", lambda f: picture(3), wait=True)
    assert levels(tmp_path / "b" / "live.m3u8") == pytest.approx(
        [3] * int(run.stats["shown"]), abs=2
    )


@pytest.mark.long
def test_filters_that_are_asked_for_each_frame(tmp_path):
    """As a Background gives them: it is asked once for each frame, in order."""

    class Stepwise:
        def __init__(self):
            self.asked = []

        def filters(self, frame):
            self.asked.append(float(frame.time))
            return ["invert"] if len(self.asked) % 2 else []

    video.write(tmp_path / "in.mp4", [picture(20)] * 6, fps=5)
    work = Stepwise()
    live.send(tmp_path / "in.mp4", tmp_path / "out", work, wait=True)
    assert work.asked == pytest.approx([n / 5 for n in range(6)])
    found = {round(level, -1) for level in levels(tmp_path / "out" / "live.m3u8")}
    assert found <= {20, 240}
    assert found
    for wrong in (3, "blur", {"blur": 3}):
        with pytest.raises(dala.ParameterError, match="process must be a list of filters, a Backg"):
            live.send(tmp_path / "in.mp4", tmp_path / "no", wrong)


def test_a_source_that_cannot_be_opened(tmp_path):
    with pytest.raises(VideoError, match="no such file"):
        live.send(tmp_path / "none.mp4", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("sound", [False, True])
def test_a_stream_of_a_few_frames_is_readable(tmp_path, count, sound):
    """Shorter than half a second, which FFmpeg rounds to 0, and than what its reader needs."""
    with live.open(tmp_path, SIZE, fps=30, sound=sound) as sink:
        send(sink, GRAYS[:count], tone if sound else None)
    assert levels(tmp_path / "live.m3u8") == pytest.approx(GRAYS[:count], abs=2)
    assert "#EXT-X-TARGETDURATION:1\n" in (tmp_path / "live.m3u8").read_text()
    with video.open(tmp_path / "live.m3u8", playlists=True) as reader:
        assert len(list(reader)) == count
