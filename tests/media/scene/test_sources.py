"""Video in scenes: frames by time, sources that end or fail, subtitles."""

from __future__ import annotations

import numpy as np
import pytest

from dala.errors import ParameterError
from dala.media import Frame, Scene


def plain(value, size=(8, 6)):
    return np.full((size[1], size[0], 3), value, np.uint8)


def counted(n, fail_at=None):
    for i in range(n):
        if i == fail_at:
            raise OSError("the camera is gone")
        yield plain(i * 10)


def reds(scene, count):
    return [int(np.asarray(scene.render())[2, 2, 0]) for _ in range(count)]


def test_the_newest_frame_not_later_than_the_clock(engine_id):
    with Scene(8, 6, fps=20) as scene:
        scene.add_video(counted(10), fps=10)
        assert reds(scene, 6) == [0, 0, 10, 10, 20, 20]


def test_offset_speed_end(engine_id):
    with Scene(8, 6, fps=10) as scene:
        node = scene.add_video([plain(10 * i) for i in range(4)], fps=10, offset=0.2, speed=2)
        assert reds(scene, 6) == [0, 0, 0, 20, 30, 30]
        assert node.source.ended
    with Scene(8, 6, fps=10, background="white") as scene:
        scene.add_video([plain(10), plain(20)], fps=10, end="hide")
        assert reds(scene, 4) == [10, 20, 255, 255]
    with Scene(8, 6, fps=10) as scene:
        scene.add_video([plain(10), plain(20)], fps=10, loop=True)
        assert reds(scene, 5) == [10, 20, 10, 20, 10]


def test_failing_source_does_not_stop_the_scene(engine_id):
    with Scene(8, 6, fps=10) as scene:
        node = scene.add_video(counted(10, fail_at=3), fps=10)
        dot = scene.add_overlay(color="lime", position=(6, 0), size=(1, 1))
        assert reds(scene, 6)[:3] == [0, 10, 20]
        assert "camera" in str(scene.errors[node.id])
        dot.x = 0
        assert np.asarray(scene.render())[0, 0].tolist() == [0, 255, 0, 255]
        scene.remove_node(node)
        assert node.id not in scene.errors
        assert reds(scene, 1) == [0]


def test_invalid_frame_does_not_stop_the_scene(engine_id):
    frames = [plain(50), np.zeros((3, 3, 7), np.uint8), plain(70)]
    with Scene(8, 6, fps=10) as scene:
        node = scene.add_video(iter(frames), fps=10)
        got = reds(scene, 4)
        assert got[0] == 50
        assert node.id in scene.errors


def test_video_in_every_format_and_size(engine_id):
    photo = np.random.default_rng(3).integers(0, 256, (6, 8, 4), dtype=np.uint8)
    photo[..., 3] = 255
    frame = Frame.from_array(photo)
    for format in ("rgba", "rgb", "gray", "nv12", "i420"):
        given = frame.to(format)
        with Scene(8, 6) as scene:
            scene.add_video([given])
            got = np.asarray(scene.render()).astype(int)
        want = np.asarray(given.to("rgb")).astype(int)
        assert np.abs(got[..., :3] - want).max() <= 1, format
    with Scene(8, 6, fps=10) as scene:
        node = scene.add_video([plain(10, (4, 3)), plain(20, (8, 6))], fps=10)
        assert np.asarray(scene.render())[5, 7, 0] == 0
        assert node.box[2:] == (4, 3)
        assert np.asarray(scene.render())[5, 7, 0] == 20


def test_still_video_is_not_drawn_again(engine_id):
    with Scene(8, 6, fps=60) as scene:
        scene.add_video([plain(1), plain(2), plain(3)], fps=10)
        for _ in range(18):
            scene.render()
        assert scene.frames_skipped == 15


def test_video_files(engine_id, tmp_path):
    from dala.media import video

    path = tmp_path / "clip.mp4"
    with video.Writer(path, fps=10) as writer:
        for i in range(5):
            writer.write(np.full((48, 64, 3), 40 * i + 30, np.uint8))
    with Scene(64, 48, fps=10) as scene:
        node = scene.add_video(path, size=(32, 24), position="bottom-right")
        assert node.box == (32, 24, 32, 24)
        for i in range(5):
            got = np.asarray(scene.render())
            assert abs(int(got[36, 48, 0]) - (40 * i + 30)) <= 4
            assert got[0, 0, 0] == 0


def test_subtitles(engine_id):
    text = "1\n00:00:00,500 --> 00:00:01,000\nHello\n\n2\n00:00:02,000 --> 00:00:03,000\nBye\n"
    with Scene(160, 90, fps=2) as scene:
        node = scene.add_subtitles(text)
        shown = []
        for _ in range(7):
            lit = np.asarray(scene.render())[..., 0] > 128
            shown.append((node.text, bool(lit.any())))
            if lit.any():
                assert np.nonzero(lit)[0].min() > 45  # in the lower half
        assert shown == [
            ("", False), ("Hello", True), ("", False), ("", False),
            ("Bye", True), ("Bye", True), ("", False),
        ]  # fmt: skip


def test_subtitles_have_the_look_of_their_cues():
    cues = (
        "WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n\n"
        "00:01.000 --> 00:02.000\n<i>Hello</i>\n\n"
        "00:02.000 --> 00:03.000\n<b>Hello</b>\n\n"
        "00:03.000 --> 00:04.000\n<c.red>Hello</c>\n\n"
    )
    with Scene(160, 90, fps=1, device="cpu") as scene:
        node = scene.add_subtitles(cues)
        plain, slanted, bold, red = (np.asarray(scene.render()).copy() for _ in range(4))
        assert (slanted != plain).any()
        assert bold[..., 0].sum(dtype=int) > plain[..., 0].sum(dtype=int)
        assert red[..., 0].max() > 200
        assert red[..., 1:3].max() == 0
        assert node.italic is False
    with Scene(160, 90, fps=1, device="cpu") as scene:
        scene.add_subtitles(cues, color="lime")
        for _ in range(4):
            lime = np.asarray(scene.render())
        assert lime[..., 0].max() == 0
        assert lime[..., 1].max() > 200


def test_invalid_video_arguments():
    with Scene(8, 6, device="reference") as scene:
        with pytest.raises(FileNotFoundError):
            scene.add_video("nowhere.mp4")
        with pytest.raises(ParameterError):
            scene.add_video([plain(1)], end="fade")
        with pytest.raises(ParameterError, match="opacity"):
            scene.add_video([plain(1)], opacity=7)
        assert scene.nodes == {}
