"""URLs, folders and virtual cameras that live streams go to."""

from __future__ import annotations

import pytest

from dala.errors import DeviceUnavailable, MissingPackage, ParameterError, VideoError
from dala.media import live
from dala.media.live.destination import destination_of


@pytest.mark.parametrize(
    ("url", "muxer", "sound"),
    [
        ("rtmp://host/app/key", "flv", "aac"),
        ("rtmps://host/app/key", "flv", "aac"),
        ("rtsp://host:8554/show", "rtsp", "aac"),
        ("udp://239.0.0.1:5000", "mpegts", "aac"),
        ("tcp://host:5000", "mpegts", "aac"),
        ("srt://host:5000", "mpegts", "aac"),
        ("whip+https://host/whip", "whip", "libopus"),
        ("camera:", "camera", ""),
    ],
)
def test_kinds(url, muxer, sound):
    found = destination_of(url, "live.open")
    assert (found.muxer, found.sound) == (muxer, sound)
    assert "whip+" not in found.opened


def test_a_folder_is_hls(tmp_path):
    found = destination_of(tmp_path / "show", "live.open")
    assert (found.muxer, found.folder) == ("hls", tmp_path / "show")
    assert found.name == str(tmp_path / "show" / "live.m3u8")
    assert destination_of(str(tmp_path / "a.m3u8"), "live.open").name == str(tmp_path / "a.m3u8")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("rtmp://host/app/secret", "rtmp://host/..."),
        ("rtmp://me:secret@host/app/secret", "rtmp://***@host/..."),
        ("whip+https://host/whip?token=secret", "whip+https://host/..."),
        ("rtsp://user:secret@host:554/cam", "rtsp://***@host:554/..."),
    ],
)
def test_messages_name_no_secret(url, shown):
    found = destination_of(url, "live.open")
    assert found.label == shown
    assert "secret" in found.opened
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        (5, "must be a URL of rtmp.*got int"),
        ("", "must be a URL"),
        ("a\0b", "must be a URL"),
        ("gopher://host/x", "must be a URL of rtmp.*got 'gopher://host/...'"),
        ("https://host/x", r"For WHIP write 'whip\+https://...'"),
        ("rtmp:///app", "must be a URL with a host"),
        ("rtmp://host:99999/app", "must be a URL with a valid host and port"),
        ("rtmp://host/app\n", "must be a URL without line ends"),
        ("rtmp://ho\tst/app", "must be a URL without line ends"),
        ("show.mp4", "render_to and dala filter write files"),
    ],
)
def test_what_is_no_destination(url, why):
    with pytest.raises(ParameterError, match=why):
        live.open(url, (64, 48))


def test_a_file_is_no_folder(tmp_path):
    path = tmp_path / "file"
    path.write_text("x")
    with pytest.raises(VideoError, match="is a file"):
        live.open(path, (64, 48))
    assert path.read_text() == "x"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"size": (64,)}, r"size must be \(width, height\)"),
        ({"size": (1, 64)}, "from 2 to 16384"),
        ({"fps": 0}, "fps must be a number of frames per second"),
        ({"fps": "fast"}, "fps must be"),
        ({"bit_rate": "much"}, "bit_rate must be bits a second, such as 4_000_000 or '4M'"),
        ({"bit_rate": 5}, "bit_rate must be"),
        ({"key_frames": 0}, "key_frames must be a number of seconds above 0"),
        ({"encoder": "best"}, "encoder must be one of"),
        ({"reconnect": -1}, "reconnect must be a number of seconds"),
        ({"timeout": 0}, "timeout must be a number of seconds above 0"),
        ({"threads": -1}, "threads must be an int of at least 0"),
    ],
)
def test_arguments(tmp_path, given, why):
    with pytest.raises(ParameterError, match=why):
        live.open(tmp_path / "show", **{"size": (64, 48), **given})
    assert not (tmp_path / "show").exists()


def test_srt_says_that_this_build_does_not_have_it():
    # Also where PyAV has it: nobody receives.
    with pytest.raises(VideoError, match=r"cannot send to 'srt://127.0.0.1:9'"):
        live.open("srt://127.0.0.1:9", (64, 48), timeout=5)


def test_a_virtual_camera_needs_the_kernel_module():
    with pytest.raises((DeviceUnavailable, MissingPackage), match=r"v4l2loopback|pyvirtualcam"):
        live.open("camera:/dev/video79", (64, 48))
