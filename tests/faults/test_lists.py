"""Faults are put into everything that the project lists: nothing is left out by mistake."""

from __future__ import annotations

import inspect

import pytest

from dala import cli
from dala.gpu import protocol
from dala.media import Scene, effects, gpu

pytest.importorskip("av")
pytest.importorskip("onnxruntime")

from tests.faults import commands, operations
from tests.support import borders

TEXT = inspect.getsource(operations)


def test_every_command():
    assert set(commands.COMMANDS) == set(cli.COMMANDS)


def test_every_filter():
    for name in gpu.filters():
        assert hasattr(gpu, name) or hasattr(effects, name)
    for table in (operations.NEEDED, operations.OF_TWO, operations.WITH_MODEL):
        assert set(table) <= set(gpu.filters())


def test_every_drawing_command():
    drawn = {row.function for row in protocol.COMMANDS}
    assert drawn <= set(operations.DRAWING)


def test_every_node_of_a_scene():
    same = {"add_node", "add_video_async"}  # the base of all of them; add_video on another thread
    for name in dir(Scene):
        assert not name.startswith("add_") or name in same or f".{name}(" in TEXT, name


def test_calls_across_the_border(tmp_path):
    """All kinds of calls are seen, by what is called and not by its name."""
    assert borders.kind_of(open, "open") == "file"
    assert borders.kind_of((tmp_path / "a").write_bytes, "write_bytes") == "file"
    assert borders.kind_of({}.get, "get") is None
    assert borders.kind_of("".join, "join") is None
    import av
    import numpy as np
    import PIL.Image

    assert borders.kind_of(av.open, "open") == "codec"
    assert borders.kind_of(np.zeros, "zeros") == "allocation"
    assert borders.kind_of(np.zeros(2).sum, "sum") is None
    assert borders.kind_of(PIL.Image.open, "open") == "picture"
    for kind in borders.KINDS:
        assert isinstance(borders.error_of(kind, "create_buffer"), Exception)
