"""Batches: one bad file never ends them, whatever a codec library raises."""

import json
import struct

import numpy as np
import pytest
from PIL import Image, ImageFile

from dala.cli import main
from tests.cli.test_filter import CPU, picture, pixels
from tests.ml.conftest import tiny

__all__ = ["tiny"]
av = pytest.importorskip("av")


class Panic(BaseException):
    """Raised by extension modules in other languages; it is no ``Exception``."""


ODD = {
    "struct": struct.error("unpack requires 4 bytes"),
    "memory": MemoryError(),
    "system": SystemError("returned a result with an exception set"),
    "key": KeyError(34665),
    "assertion": AssertionError(),
    "overflow": OverflowError("too\nlarge"),
    "runtime": RuntimeError("decoder"),
    "panic": Panic("index out of bounds"),
}


class OddImage(ImageFile.ImageFile):
    """A codec whose files say what it raises."""

    format = "ODD"

    def _open(self):
        self._size, self._mode = (4, 4), "RGB"
        self.what = self.fp.read().decode()[4:]

    def load(self):
        raise ODD.get(self.what, KeyboardInterrupt())


@pytest.fixture
def odd(monkeypatch):
    Image.init()
    monkeypatch.setitem(Image.OPEN, "ODD", (OddImage, lambda head: head.startswith(b"ODD:")))
    monkeypatch.setattr(Image, "ID", [*Image.ID, "ODD"])


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "in"
    made.mkdir()
    for name in ("a", "z"):
        Image.fromarray(picture(3, 6, 8)).save(made / f"{name}.png")
    return made


def test_whatever_a_codec_raises(odd, folder, tmp_path, capsys):
    for name in ODD:
        (folder / f"m_{name}.png").write_bytes(f"ODD:{name}".encode())
    assert main(["filter", str(folder), str(tmp_path / "out"), "--invert", "--json", *CPU]) == 2
    report = json.loads(capsys.readouterr().out)
    assert [one["in"] for one in report["made"]] == [str(folder / f"{n}.png") for n in "az"]
    failed = {one["in"]: one["error"] for one in report["failed"]}
    assert sorted(failed) == sorted(str(folder / f"m_{name}.png") for name in ODD)
    for name, error in ODD.items():
        path = str(folder / f"m_{name}.png")
        assert path in failed[path]
        assert "\n" not in failed[path]
        words = str(error).split() or [type(error).__name__]
        assert " ".join(words) in failed[path]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.png", "z.png"]
    for name in "az":
        assert (pixels(tmp_path / "out" / f"{name}.png") == 255 - picture(3, 6, 8)).all()


def test_a_single_odd_file_is_one_line(odd, tmp_path, capsys):
    for name in ("panic", "system"):
        (tmp_path / "in.png").write_bytes(f"ODD:{name}".encode())
        code = main(["filter", str(tmp_path / "in.png"), str(tmp_path / "out.png"), "--sepia"])
        assert code == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert str(ODD[name]) in err


def test_ctrl_c_ends_a_batch(odd, folder, tmp_path):
    (folder / "m.png").write_bytes(b"ODD:ctrl-c")
    assert main(["filter", str(folder), str(tmp_path / "out"), "--invert", *CPU]) == 130


@pytest.mark.parametrize("pattern", ["", "*"])
def test_pictures_and_videos(folder, tmp_path, pattern, capsys):
    from tests.media.video.clips import encode

    shade = av.VideoFrame.from_ndarray(np.full((16, 16, 3), 200, np.uint8))
    good = encode(folder / "good.mp4", [shade] * 2)
    (folder / "broken.mp4").write_bytes(good.read_bytes()[:400])
    (folder / "empty.webm").write_bytes(b"")
    (folder / "text.png").write_text("not a picture")
    out = tmp_path / "out"
    assert main(["filter", str(folder / pattern), str(out), "--invert", *CPU]) == 2
    said = capsys.readouterr()
    assert "2 pictures and 1 video in" in said.out
    assert ", 3 failed on" in said.out
    for name in ("broken.mp4", "empty.webm", "text.png"):
        assert str(folder / name) in said.err
    assert sorted(path.name for path in out.iterdir()) == ["a.png", "good.mp4", "z.png"]
    with av.open(str(out / "good.mp4")) as box:
        found = [frame.to_ndarray(format="rgb24") for frame in box.decode(video=0)]
    assert len(found) == 2
    assert abs(int(found[0].mean()) - 55) <= 3


def test_models_go_on_after_a_bad_picture(tiny, folder, capsys):
    (folder / "b.png").write_text("not a picture")
    assert main(["classify", str(folder), "--model", str(tiny), "--json"]) == 2
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert [one["in"] for one in report["results"]] == [str(folder / f"{n}.png") for n in "az"]
    assert [one["in"] for one in report["failed"]] == [str(folder / "b.png")]
    assert str(folder / "b.png") in said.err
