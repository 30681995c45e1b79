"""Unfinished files: removed by the next process if their owner has ended, and only then."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from dala.media import Frame, parts, video
from dala.media.live.muxing import complete_playlist
from dala.media.parts import PartFile

posix = pytest.mark.skipif(parts.fcntl is None, reason="locks of POSIX")


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(parts, "_searched", set())


def unfinished(folder):
    return sorted(p.name for p in folder.iterdir() if ".part" in p.name)


def test_complete_and_discard(tmp_path):
    part = PartFile(tmp_path / "a.txt")
    assert unfinished(tmp_path) == [part.path.name]
    part.path.write_text("one")
    assert not (tmp_path / "a.txt").exists()
    part.complete()
    part.discard()
    assert (tmp_path / "a.txt").read_text() == "one"
    other = PartFile(tmp_path / "a.txt")
    other.path.write_text("two")
    other.discard()
    other.discard()
    assert (tmp_path / "a.txt").read_text() == "one"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_contexts_discard_what_is_not_complete(tmp_path):
    target = tmp_path / "a.txt"
    with pytest.raises(KeyboardInterrupt), PartFile(target) as part:
        part.path.write_text("half")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []
    with PartFile(target) as part:
        part.path.write_text("whole")
        part.complete()
    assert os.listdir(tmp_path) == ["a.txt"]
    assert target.read_text() == "whole"


def test_a_playlist_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    playlist = tmp_path / "live.m3u8"
    playlist.write_text("#EXTM3U\n#EXT-X-TARGETDURATION:0\n")

    def full(self, text):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(Path, "write_bytes", full)
        complete_playlist(playlist)
    assert os.listdir(tmp_path) == ["live.m3u8"]
    complete_playlist(playlist)
    assert "TARGETDURATION:1" in playlist.read_text()


def test_a_target_that_cannot_be_replaced(tmp_path):
    (tmp_path / "a.txt").mkdir()
    part = PartFile(tmp_path / "a.txt")
    with pytest.raises(OSError, match="directory"):
        part.complete()
    assert os.listdir(tmp_path) == ["a.txt"]


def test_long_names_fit(tmp_path):
    name = "é" * 125 + ".txt"
    part = PartFile(tmp_path / name, ".txt")
    part.complete()
    assert os.listdir(tmp_path) == [name]


WRITE = """
import sys, numpy as np, dala
from dala.media import video
dala.use("cpu")
sink = video.write(sys.argv[1], fps=25)
for n in range(8):
    sink.write(np.full((64, 64, 3), n, np.uint8))
print("writing", flush=True)
sys.stdin.readline()
"""


def writer(path):
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITE), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"writing\n"
    return process


@posix
def test_the_next_process_removes_what_a_killed_one_left(tmp_path):
    with writer(tmp_path / "a.mp4") as live, writer(tmp_path / "b.mp4") as killed:
        before = unfinished(tmp_path)
        assert len(before) == 2
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert unfinished(tmp_path) == before
        foreign = [".a.12345678.part", ".x.dala.part", "x.12345678.dala.part.mp4"]
        for name in foreign:
            (tmp_path / name).write_text("of another program")
        (tmp_path / ".folder.12345678.dala.part").mkdir()
        os.mkfifo(tmp_path / ".pipe.12345678.dala.part")
        (tmp_path / ".link.12345678.dala.part").symlink_to(tmp_path / ".a.12345678.part")
        Frame.from_array(np.zeros((4, 4, 3), np.uint8), device="cpu").save(tmp_path / "c.png")
        left = set(unfinished(tmp_path))
        assert {n for n in left if n.startswith(".a.") and n.endswith("mp4")} == {before[0]}
        assert not any(n.startswith(".b.") for n in left)
        assert ".folder.12345678.dala.part" not in left  # of a process that is gone
        assert {*foreign, ".pipe.12345678.dala.part", ".link.12345678.dala.part"} <= left
        live.send_signal(signal.SIGKILL)
        live.wait()


@posix
def test_threads_and_forked_children_are_alive_too(tmp_path):
    mine = PartFile(tmp_path / "a.bin")
    parts._searched.clear()
    other = PartFile(tmp_path / "b.bin")
    assert len(unfinished(tmp_path)) == 2
    mine.complete()
    other.complete()
    assert sorted(os.listdir(tmp_path)) == ["a.bin", "b.bin"]


@posix
def test_a_new_file_that_another_process_takes_for_left_over(tmp_path, monkeypatch):
    """Between making and locking it, another process may lock and remove it."""
    lock, taken = parts._lock, []

    def late(number):
        if not taken:
            (name,) = unfinished(tmp_path)
            taken.append(name)
            (tmp_path / name).unlink()
        return lock(number)

    monkeypatch.setattr(parts, "_lock", late)
    part = PartFile(tmp_path / "a.bin")
    assert unfinished(tmp_path) == [part.path.name] != taken
    part.discard()


def test_without_locks(tmp_path, monkeypatch):
    """As on Windows, where an open file cannot be removed."""
    monkeypatch.setattr(parts, "fcntl", None)
    part = PartFile(tmp_path / "a.bin")
    part.path.write_bytes(b"x")
    part.complete()
    part.discard()
    (tmp_path / ".b.12345678.dala.part").write_bytes(b"")
    parts._searched.clear()
    PartFile(tmp_path / "c.bin").discard()
    assert os.listdir(tmp_path) == ["a.bin"]


def test_every_writer_leaves_nothing(tmp_path):
    pixels = np.zeros((16, 16, 3), np.uint8)
    Frame.from_array(pixels, device="cpu").save(tmp_path / "a.png")
    for name in ("a.mp4", "a.gif", "a.webp"):
        video.write(tmp_path / name, [pixels, pixels + 9], fps=25, device="cpu")
    assert sorted(os.listdir(tmp_path)) == ["a.gif", "a.mp4", "a.png", "a.webp"]
