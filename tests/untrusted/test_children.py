"""Processes that the library starts import nothing from the folder that they start in."""

import queue

import pytest

pytest.importorskip("av", reason="needs the media extra")

from dala.batch.runners.local import _Worker
from dala.media.live.connection import SenderProcess

START = {"sends": lambda: SenderProcess().close(), "works": lambda: _Worker(queue.SimpleQueue(), 1)}


@pytest.mark.parametrize("kind", START)
def test_files_of_the_current_folder_are_not_run(kind, tmp_path, monkeypatch):
    for name in ("json", "numpy", "struct", "dala"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path)
    started = START[kind]()
    if started is not None:
        started.end(kill=False)
    assert not (tmp_path / "ran").exists()
