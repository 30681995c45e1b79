"""Platforms that cannot be run here: what differs there is faked, and our code runs on it.

``docs/platforms.md`` says what was run on real machines, and what only here.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import subprocess
import sys
import types
from types import SimpleNamespace

import pytest

from dala import folders, memory, trust
from dala.gpu.compute.engines import hardware
from dala.gpu.compute.engines.cpu import threads
from dala.gpu.presenters import terminal, window_loop
from dala.media import parts, screen
from dala.media.text.fonts import scan
from dala.ml.runtime import check

ROOT = pathlib.Path(__file__).parents[2]

#: What runs where there are no fork, no fcntl, no signals of POSIX, no /proc and no /sys.
PROGRAM = """
from tests.support import bare_platform
bare_platform.install()

import importlib, pkgutil, sys
import dala

for module in pkgutil.walk_packages(dala.__path__, "dala."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)

import os
import numpy as np
from dala import cli, folders, forks, memory
from dala.gpu.compute import buffer, device_info
from dala.media import Frame, Scene, gpu, video

assert not hasattr(os, "fork") and "fcntl" not in sys.modules

# kernels, twice: compiled, and from the cache on disk
picture = np.arange(48 * 64 * 3, dtype=np.uint8).reshape(48, 64, 3)
soft = gpu.sharpen(gpu.blur(picture, radius=2), amount=0.4)
assert soft.shape == picture.shape and device_info()["name"]
assert (buffer([1.0, 2.0]) + 1).read_list() == [2.0, 3.0]

# files appear whole, and left-over ones are removed
with video.write("clip.mp4", fps=10) as writer:
    for n in range(5):
        writer.write(np.full((48, 64, 3), n * 20, np.uint8))
with video.open("clip.mp4") as reader:
    assert len([frame.pts for frame in reader]) == 5
assert not [name for name in os.listdir(".") if name.endswith(".part")]

# a scene with text, a surface, and its threads
with Scene(64, 48, fps=10) as scene:
    scene.add_video("clip.mp4", size=(64, 48))
    scene.add_text("x", size=12)
    scene.render(0.2).save("scene.png")
with dala.gpu.create_surface(32, 32) as surface:
    surface.fill_rect(0, 0, 32, 32, "red")
    assert surface.read_pixels(3, 3, 1, 1) == bytes((255, 0, 0, 255))

# what the machine is asked
assert memory.machine_bytes() > 0
assert "cpu" in str(dala.devices())
assert dala.doctor() is not None
assert cli.main(["filter", "scene.png", "out.png", "--grayscale"]) == 0
assert cli.main(["info"]) == 0
assert np.ptp(np.asarray(Frame.open("out.png"))[..., :3], axis=-1).max() == 0
print("works")
"""


def test_a_platform_without_fork_signals_and_proc(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={
            **os.environ,
            "DALA_DEVICE": "cpu",
            "DALA_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-4000:]
    assert done.stdout.endswith("works\n")


def test_no_proc_means_unknown_memory(monkeypatch):
    monkeypatch.setattr("builtins.open", _no_file)
    assert check._resident() == 0


def _no_file(path, *args, **kwargs):
    raise FileNotFoundError(2, "No such file or directory", str(path))


# folders -----------------------------------------------------------------------------------------


@pytest.fixture
def no_choice(monkeypatch):
    """No variable of the environment chooses a folder."""
    for name in ("DALA_CACHE_DIR", "XDG_CACHE_HOME", "XDG_STATE_HOME", "DALA_FONT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    return monkeypatch


def test_folders_of_windows(no_choice):
    no_choice.setattr(sys, "platform", "win32")
    no_choice.setenv("LOCALAPPDATA", r"C:\Users\Ada Lovelace\AppData\Local")
    no_choice.setenv("WINDIR", r"D:\Windows")
    # On this system a backslash is a character of a name; what matters is that all of it is there.
    assert str(folders.cache_folder("models")) == (
        r"C:\Users\Ada Lovelace\AppData\Local" + "/dala/models"
    )
    assert trust.state_folder() == r"C:\Users\Ada Lovelace\AppData\Local" + "/dala"
    assert [str(path) for path in scan.folders()] == [
        r"C:\Users\Ada Lovelace\AppData\Local" + "/Microsoft/Windows/Fonts",
        r"D:\Windows/Fonts",
    ]


def test_folders_of_macos(no_choice):
    no_choice.setattr(sys, "platform", "darwin")
    assert str(folders.cache_folder("models")) == "/home/ada/Library/Caches/dala/models"
    assert trust.state_folder() == "/home/ada/Library/Application Support/dala"
    assert "/home/ada/Library/Fonts" in [str(path) for path in scan.folders()]


# the machine -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (SimpleNamespace(stdout="Apple M4 Pro\n"), "Apple M4 Pro"),
        (FileNotFoundError(2, "No such file"), "arm64"),
        (subprocess.TimeoutExpired("sysctl", 5), "arm64"),
        (subprocess.CalledProcessError(1, "sysctl"), "arm64"),
    ],
)
def test_the_processor_of_macos(monkeypatch, answer, name):
    asked = []

    def run(command, **kwargs):
        asked.append(command)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr("platform.processor", lambda: "")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert hardware.cpu_name.__wrapped__() == name
    assert asked == [["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]]


def test_no_linux_no_device_nodes(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert hardware.gpu_nodes() is None
    assert hardware.card_bytes(0x1002, 1) is None
    assert window_loop.has_display()


def test_cores_without_affinity(monkeypatch):
    monkeypatch.setattr("builtins.open", _no_file)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "process_cpu_count", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    assert threads.usable_cores() == 12
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert threads.usable_cores() == 1


def test_memory_of_windows(monkeypatch):
    def status(pointer):
        pointer._obj.total = 16 << 30
        return 1

    kernel = SimpleNamespace(GlobalMemoryStatusEx=status)
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(memory, "_group_sizes", lambda *places: [])
    assert memory.machine_bytes.__wrapped__() == 16 << 30
    kernel.GlobalMemoryStatusEx = lambda pointer: 0  # it failed
    assert memory.machine_bytes.__wrapped__() == 1 << 46


def test_escapes_of_a_windows_console(monkeypatch):
    modes = []

    def get(handle, mode):
        mode._obj.value = 3
        return 1

    kernel = SimpleNamespace(GetConsoleMode=get, SetConsoleMode=lambda h, m: modes.append(m))
    console = types.ModuleType("msvcrt")
    console.get_osfhandle = lambda number: 40 + number
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "msvcrt", console)
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    terminal._enable_escapes(1)
    assert modes == [3 | 4]  # ENABLE_VIRTUAL_TERMINAL_PROCESSING


# files -------------------------------------------------------------------------------------------


def test_unfinished_files_without_locks(tmp_path, monkeypatch):
    """Windows has no flock: an open file cannot be removed there, so it is closed before."""
    monkeypatch.setattr(parts, "fcntl", None)
    monkeypatch.setattr(parts, "_searched", set())
    left = tmp_path / ".old.0123abcd.dala.part"
    left.write_bytes(b"")
    part = parts.PartFile(tmp_path / "new.txt")
    assert not left.exists()
    number = part._number
    real = os.replace

    def replace(source, target):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(number)  # closed: Windows would refuse to rename an open file
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    part.path.write_text("done")
    part.complete()
    assert os.listdir(tmp_path) == ["new.txt"]
    other = parts.PartFile(tmp_path / "other.txt")
    other.discard()
    other.discard()
    assert os.listdir(tmp_path) == ["new.txt"]


@pytest.mark.parametrize("path", [r"C:\clips\a.mp4", "C:/clips/a.mp4", r"\\server\share\a.mp4"])
def test_paths_of_windows_are_no_addresses(path):
    from dala.batch.storage import is_url
    from dala.cli.common.inputs import is_video
    from dala.untrusted.address import scheme_of

    assert not is_url(path)
    assert is_video(path)
    assert scheme_of(path) is None


def test_a_process_of_windows_is_not_sent_a_signal(monkeypatch):
    """There signal 0 is Ctrl-C, so a job is alive until its file has been silent for long."""
    import socket
    import time

    from dala.batch.storage.holding import Sign

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "kill", lambda *given: pytest.fail("it was sent a signal"))
    assert Sign(socket.gethostname(), 4, "token", "job", 0.0, time.time()).is_alive()
    assert not Sign(socket.gethostname(), 4, "token", "job", 0.0, 0.0).is_alive()


def test_a_key_of_windows_appears_whole(tmp_path, monkeypatch):
    """There rename fails if the target exists, and there are no owners to compare."""
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    for name in ("geteuid", "O_NOFOLLOW"):
        monkeypatch.delattr(os, name, raising=False)
    key, problem = trust.secret_key(str(tmp_path / "cache"))
    assert problem == ""
    assert len(key) == trust.KEY_BYTES
    assert trust.secret_key(str(tmp_path / "cache"))[0] == key


# screens -----------------------------------------------------------------------------------------


def test_the_screen_of_windows_and_macos(monkeypatch):
    from fractions import Fraction

    monkeypatch.setattr(sys, "platform", "win32")
    found = screen._source(None, (10, 20, 640, 480), Fraction(30), True)
    assert (found.name, found.format) == ("desktop", "gdigrab")
    assert found.options["video_size"] == "640x480"
    assert found.options["offset_x"] == "10"
    monkeypatch.setattr(sys, "platform", "darwin")
    found = screen._source("1", None, Fraction(30), False)
    assert (found.name, found.format) == ("Capture screen 1:none", "avfoundation")
    with pytest.raises(ValueError, match="None on macOS"):
        screen._source(None, (0, 0, 10, 10), Fraction(30), True)
