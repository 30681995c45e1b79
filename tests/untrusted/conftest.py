"""Allowed folders, with links of every kind, and each way of opening."""

import os
import socket

import pytest

from dala.untrusted import beneath

MODES = ("kernel", "walk", "resolve")


@pytest.fixture(params=MODES)
def mode(request, monkeypatch):
    monkeypatch.setattr(beneath, "mode", request.param)
    return request.param


@pytest.fixture
def tree(tmp_path):
    """Two allowed folders, a secret beside them, and links of every kind."""
    root, other = tmp_path / "root", tmp_path / "other"
    (root / "deep" / "er" / "most").mkdir(parents=True)
    (root / "inner").mkdir()
    other.mkdir()
    for file in ("root/own.png", "root/inner/own.png", "other/own.png", "secret.png"):
        (tmp_path / file).write_text(file)
    (tmp_path / "root-2").mkdir()
    (tmp_path / "root-2" / "own.png").write_text("secret")
    for name, target in {
        "a": "deep/er/most",  # `a/../../secret.png` was read as `../secret.png`
        "same.png": "own.png",
        "absolute.png": root / "own.png",
        "twice.png": "absolute.png",
        "secret.png": "../secret.png",
        "absolute_secret.png": tmp_path / "secret.png",
        "door": tmp_path,
        "other": other,
        "other.png": "../other/own.png",
        "loop": "loop",
        "ping": "pong",
        "pong": "ping",
        "nowhere.png": "inner/nothing.png",
        "proc": "/proc/self/root",
        "cwd": "/proc/self/cwd",
        "tail": "inner/",
    }.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe.png")
    with socket.socket(socket.AF_UNIX) as made:
        here = os.getcwd()
        os.chdir(root)  # the path of a socket is short
        made.bind("socket.png")
        os.chdir(here)
    return tmp_path
