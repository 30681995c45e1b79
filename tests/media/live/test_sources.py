"""Cameras, screens and live sources that are lost and found again."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dala
from dala.errors import DeviceUnavailable, ParameterError, VideoError, VideoNotFound
from dala.media import Scene, camera, live, screen, video
from dala.media.camera import Camera
from dala.media.video.decoding import devices
from dala.media.video.decoding.devices import linux_cameras
from dala.media.video.source import lasting, source_of
from tests.media.live.receivers import PATIENCE, av, free_port, levels, program, until


@pytest.fixture(autouse=True)
def on_cpu():
    with dala.device("cpu"):
        yield


# cameras ----------------------------------------------------------------------------------------
def test_the_generated_camera():
    with camera.open("test", size=(64, 48), fps=50) as source:
        frames = [next(source) for _ in range(3)]
        assert (source.width, source.height, source.fps) == (64, 48, 50)
        assert source.policy == "latest"
    times = [frame.time for frame in frames]
    assert times == sorted(set(times))
    assert frames[0].numpy()[..., :3].std() > 10  # a picture, not a color


def test_the_generated_camera_in_a_scene():
    with Scene(64, 48) as scene, camera.open("test", size=(64, 48), fps=50) as source:
        scene.add_video(source)
        # A scene does not wait for a live source.
        until(lambda: scene.render().numpy()[..., :3].std() > 10, "a picture")


def test_cameras_that_sysfs_lists(tmp_path):
    for name, label, index in (
        ("video0", "Front", "0"), ("video1", "Front", "1"), ("video10", "USB", "0"),
        ("video2", "", "0"),
    ):  # fmt: skip
        (tmp_path / name).mkdir()
        (tmp_path / name / "name").write_text(label + "\n")
        (tmp_path / name / "index").write_text(index + "\n")
    (tmp_path / "video3").mkdir()  # one that is just being unplugged
    assert linux_cameras(tmp_path) == [
        Camera(0, "Front", "/dev/video0"),
        Camera(2, "/dev/video2", "/dev/video2"),
        Camera(10, "USB", "/dev/video10"),
    ]
    assert linux_cameras(tmp_path / "none") == []


def test_cameras_by_number_are_the_same_for_all_calls(tmp_path, monkeypatch):
    """``video.open(n)`` and ``camera.open(n)`` find and open devices in one way."""
    monkeypatch.setattr(devices, "_SYSFS", tmp_path / "none")
    monkeypatch.setattr(devices, "_DEV", tmp_path)
    (tmp_path / "video70").touch()
    (tmp_path / "video-other").touch()
    assert camera.list() == [Camera(70, "/dev/video70", "/dev/video70")]
    assert source_of(70) == devices.camera_source(camera.list()[0], {})
    with pytest.raises(VideoNotFound, match=r"no camera 3\. This machine has 70: '/dev/video70'\."):
        source_of(3)
    with pytest.raises(ParameterError, match="a camera index of 0 or more, got -1"):
        source_of(-1)


@pytest.mark.parametrize(
    ("platform", "format", "name", "options"),
    [
        ("linux", "v4l2", "cam", {"video_size": "64x48"}),
        ("win32", "dshow", "video=cam", {"video_size": "64x48"}),
        ("darwin", "avfoundation", "cam:none", {"pixel_format": "nv12", "framerate": "30"}),
    ],
)
def test_cameras_of_each_platform(monkeypatch, platform, format, name, options):
    monkeypatch.setattr("sys.platform", platform)
    made = devices.camera_source(Camera(0, "Front", "cam"), {"video_size": "64x48"})
    assert (made.format, made.name, made.live) == (format, name, True)
    assert options.items() <= made.options.items()
    assert made.options["video_size"] == "64x48"
    assert made.label == "camera 0 (Front)"


def test_which_camera(monkeypatch):
    found = [
        Camera(0, "Front Camera", "/dev/video70"),
        Camera(2, "Rear Camera", "/dev/video72"),
    ]
    monkeypatch.setattr(camera, "list", lambda: found)
    for given in ("rear", "Rear Camera", 2, "/dev/video72"):
        with pytest.raises(VideoError, match=r"cannot open 'camera 2 \(Rear Camera\)'"):
            camera.open(given)
    with pytest.raises(VideoError, match="camera 0"):
        camera.open()
    with pytest.raises(ParameterError, match="must be the name of one camera, got 'camera'"):
        camera.open("camera")
    with pytest.raises(VideoNotFound, match=r"no camera 1\. This machine has 0: 'Front"):
        camera.open(1)
    with pytest.raises(VideoNotFound, match=r"no camera 'Reat Camera'.*Rear Camera"):
        camera.open("Reat Camera")
    monkeypatch.setattr(camera, "list", list)
    with pytest.raises(VideoNotFound, match=r"has no camera\. camera.open\('test'\)"):
        camera.open()


def test_a_camera_in_use(monkeypatch):
    def busy(*args, **kwargs):
        raise av.error.OSError(16, "Device or resource busy")

    monkeypatch.setattr(camera, "list", lambda: [Camera(0, "Front", "/dev/video70")])
    monkeypatch.setattr(av, "open", busy)
    with pytest.raises(VideoError, match="another program uses it"):
        camera.open(0)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"camera": None}, "camera must be 'default', a number or a name"),
        ({"camera": True}, "camera must be 'default', a number or a name"),
        ({"size": (0, 4)}, r"size must be \(width, height\)"),
        ({"size": "640x480"}, r"size must be \(width, height\)"),
        ({"fps": -3}, "fps must be a number of frames per second"),
        ({"policy": "all"}, "policy must be one of 'every', 'latest'"),
        ({"reconnect": "long"}, "reconnect must be a number of seconds"),
    ],
)
def test_arguments_of_cameras(given, why):
    with pytest.raises(ParameterError, match=why):
        camera.open(**{"camera": "test", **given})


# screens ----------------------------------------------------------------------------------------
def test_a_screen(tmp_path):
    """A region of a screen of Xvfb that another program has painted."""
    xvfb = program("Xvfb")
    reads, writes = os.pipe()  # it chooses a free display, and says which once it can be used
    process = subprocess.Popen(
        # Without -noreset it starts anew when the last client leaves, and refuses others meanwhile.
        [xvfb, "-noreset", "-displayfd", str(writes), "-screen", "0", "160x120x24"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(writes,),
    )
    os.close(writes)
    try:
        with os.fdopen(reads) as said:
            number = int(said.readline())
        with screen.open(f":{number}", region=(8, 4, 64, 48), fps=20, cursor=False) as source:
            frame = next(source)
            assert frame.shape[:2] == (48, 64)
            assert frame.numpy()[..., :3].max() == 0
            assert source.fps == 20
        with screen.open(f":{number}", fps=20) as source:
            assert next(source).shape[:2] == (120, 160)
        with pytest.raises(VideoError, match="cannot open"):
            screen.open(f":{number}", region=(150, 0, 64, 48))
    finally:
        process.terminate()
        process.wait(PATIENCE)


def test_no_screen(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(DeviceUnavailable, match="there is no X11 display"):
        screen.open()
    with pytest.raises(VideoError, match="cannot open 'screen :399'"):
        screen.open(":399")
    for region in ((1, 2, 3), (0, 0, 0, 5), "all", (0, 0, -1, 5)):
        with pytest.raises(ParameterError, match=r"region must be \(x, y, width, height\)"):
            screen.open(":1", region=region)


# lost and found ---------------------------------------------------------------------------------
def _serve(port, grays, path):
    """Send a stream of pictures to whoever connects, once."""
    pictures = [np.full((48, 64, 3), v, np.uint8) for v in grays]
    video.write(path, pictures, fps=25, format="mpegts", options={"g": 1, "bf": 0})
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", port))
    server.listen()
    return threading.Thread(target=_give, args=(server, path.read_bytes()), daemon=True)


def _give(server, data):
    with server:
        taken, _ = server.accept()
        with taken:
            taken.sendall(data)


def test_a_live_source_that_is_lost_goes_on(tmp_path):
    port = free_port()
    first = _serve(port, [40] * 10, tmp_path / "a.ts")
    first.start()
    url = f"tcp://127.0.0.1:{port}"
    source = lasting(replace(source_of(url), live=True), 60.0)
    found = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with video.open(source, policy="every") as reader:
            second = None
            for frame in reader:
                found.append((float(frame.time), int(frame.numpy()[..., 0].mean())))
                if len(found) == 8:
                    first.join()
                    second = _serve(port, [200] * 10, tmp_path / "b.ts")
                    second.start()
                if len(found) > 14:
                    break
    second.join()
    times, levels_found = zip(*found, strict=True)
    assert list(times) == sorted(set(times))
    assert levels_found[0] == pytest.approx(40, abs=3)
    assert levels_found[-1] == pytest.approx(200, abs=3)
    assert any("was lost" in str(w.message) for w in said)


def test_a_source_that_stays_away_ends(tmp_path):
    port = free_port()
    serving = _serve(port, [40] * 5, tmp_path / "a.ts")
    serving.start()
    source = lasting(replace(source_of(f"tcp://127.0.0.1:{port}"), live=True), 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            video.open(source, policy="every") as reader,
            pytest.raises(VideoError, match="it was lost and is not back"),
        ):
            list(reader)
    serving.join()


def test_files_are_not_lost(tmp_path):
    video.write(tmp_path / "a.mp4", [np.zeros((48, 64, 3), np.uint8)], fps=1)
    with pytest.raises(ParameterError, match="reconnect must be 0 for files"):
        video.open(tmp_path / "a.mp4", reconnect=5)
    with pytest.raises(ParameterError, match="reconnect must be a number of seconds"):
        video.open(tmp_path / "a.mp4", reconnect=-5)


def test_work_that_takes_longer_than_a_frame_is_shown(tmp_path):
    """Pictures that come late replace the repeated ones: none of them is lost."""
    made = []

    def slow(frame):
        time.sleep(0.15)  # three frames
        made.append(20 * len(made))
        return np.full((48, 64, 3), made[-1], np.uint8)

    run = live.send(camera.open("test", size=(64, 48), fps=20), tmp_path, slow, seconds=1.5)
    found = levels(tmp_path / "live.m3u8")
    seen = [level for level in made if any(abs(level - f) < 6 for f in found)]
    assert run.stats["frames_in"] >= 2
    assert len(seen) >= run.stats["frames_in"] - 1
    assert run.stats["repeated"] > 0


def test_a_camera_to_a_stream(tmp_path):
    """The generated camera goes the way of a real one: constant rate, nothing invented."""
    source = camera.open("test", size=(64, 48), fps=20)
    run = live.send(source, tmp_path, [("brightness", {"value": -1.0})], seconds=1)
    stats = run.stats
    assert stats["shown"] + stats["dropped"] >= 20
    found = levels(tmp_path / "live.m3u8")
    assert len(found) == stats["shown"]
    assert max(found) < 2
    with av.open(str(tmp_path / "live.m3u8")) as stream:
        stamps = [Fraction(f.pts) * f.time_base * 20 for f in stream.decode(video=0)]
    slots = [stamp - stamps[0] for stamp in stamps]
    assert all(abs(slot - round(slot)) < Fraction(1, 100) for slot in slots)
    assert source.closed
