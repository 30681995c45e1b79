"""``dala.samples``: photographs and videos for examples."""

import os

import numpy as np
import pytest
from PIL import Image

import dala
from dala.media import video
from dala.samples import PHOTOS, VIDEOS
from tests.e2e.test_docs import ROOT


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path))
    return tmp_path / "samples"


@pytest.mark.parametrize("name", PHOTOS)
def test_photographs(name):
    found = dala.samples.photo(name, device="cpu")
    with Image.open(ROOT / "tests" / "photos" / f"{name}.png") as original:
        pixels = np.asarray(original.convert("RGB")).astype(int)
    assert found.shape == pixels.shape
    assert f"{found.width}x{found.height}" in PHOTOS[name]
    assert np.abs(np.asarray(found) - pixels).mean() < 4  # JPEG


@pytest.mark.parametrize("name", VIDEOS)
def test_videos_are_made_once(name, folder):
    path = dala.samples.video(name)
    assert path.parent == folder
    written = path.stat().st_mtime_ns
    assert dala.samples.video(name) == path
    assert path.stat().st_mtime_ns == written
    assert os.listdir(folder) == [path.name]
    with video.open(path, device="cpu") as reader:
        assert (reader.width, reader.height, reader.fps, reader.frames) == (320, 240, 25, 75)
        first = np.asarray(next(reader))[..., :3].astype(int)
    if name == "bars":
        assert np.abs(first[10, 20] - 180).max() < 6  # the first bar
        assert np.abs(first[120, 20] - 235).max() < 8  # the square
    else:
        photo = np.asarray(dala.samples.photo(name, device="cpu")).astype(int)
        assert np.abs(first - photo[:240, :320]).mean() < 6


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "samples").write_text("a file, not a folder")
    path = dala.samples.video("bars")
    assert path.is_file()
    assert path.parent.name.startswith("dala-samples-")
    assert dala.samples.video("bars") == path


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes of POSIX")
def test_a_cache_that_others_can_write_to(folder, monkeypatch):
    monkeypatch.delenv("DALA_CACHE_TRUST", raising=False)
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "bars-1.mp4").write_bytes(b"something else")
    path = dala.samples.video("bars")
    assert path.parent.name.startswith("dala-samples-")


@pytest.mark.parametrize("call", [dala.samples.photo, dala.samples.video])
@pytest.mark.parametrize("name", ["chelsee", "", "../photos/coffee", None, ["coffee"]])
def test_unknown_names(call, name, folder):
    with pytest.raises(dala.ParameterError, match="name must be one of ") as caught:
        call(name)
    assert ("Did you mean 'chelsea'?" in str(caught.value)) == (name == "chelsee")
    assert not folder.exists()


def test_without_the_extra(monkeypatch, folder):
    monkeypatch.setitem(__import__("sys").modules, "av", None)
    with pytest.raises(dala.MissingPackage, match=r'pip install "dala-gpu\[media\]"'):
        dala.samples.video("bars")
    assert not folder.exists() or not os.listdir(folder)
