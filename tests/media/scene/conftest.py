"""Fixtures of these tests."""

from __future__ import annotations

import pytest
from PIL import Image

from tests.media.scene import scene_files
from tests.media.scene.described import PHOTO, STAMP


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the pictures and subtitles that scene files name."""
    base = tmp_path_factory.mktemp("scene").resolve()
    (base / "deep").mkdir()
    Image.fromarray(PHOTO).save(base / "deep" / "photo.png")
    Image.fromarray(STAMP).save(base / "stamp.png")
    (base / "words.srt").write_text(scene_files.CUES)
    return base
