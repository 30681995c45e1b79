"""``dala filter`` on animated pictures: frames, times and plays are kept, into all kinds."""

import io
import json
from fractions import Fraction

import numpy as np
import pytest

from dala.cli import main
from dala.media import Frame, video

pytest.importorskip("av")

TIMES = [0, 5, 15, 18]


@pytest.fixture
def source(tmp_path):
    """Return a GIF of four frames with unequal delays: red, on nothing in the right half."""
    with video.write(tmp_path / "in.gif", loop=2) as sink:
        for i, time in enumerate(TIMES):
            pixels = np.zeros((8, 12, 4), np.uint8)
            pixels[:, :6] = (40 * i, 0, 0, 255)
            sink.write(Frame.from_array(pixels, device="cpu", pts=time, time_base="1/100",
                                        duration=30))  # fmt: skip
    return tmp_path / "in.gif"


def run(*arguments):
    return main(["filter", *map(str, arguments), "--device", "cpu"])


def frames_of(path):
    with video.open(path, device="cpu") as reader:
        return [(f.to("rgba").numpy().copy(), f.time) for f in reader]


@pytest.mark.parametrize("name", ["out.gif", "out.apng", "out.png", "out.webp"])
def test_animated_to_animated(source, tmp_path, name, capsys):
    assert run(source, tmp_path / name, "--invert", "--quality", "100", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["made"][0]["frames"] == 4
    found = frames_of(tmp_path / name)
    assert [t for _, t in found] == [Fraction(t, 100) for t in TIMES]
    for i, (pixels, _) in enumerate(found):
        assert np.abs(pixels[4, 2].astype(int) - (255 - 40 * i, 255, 255, 255)).max() < 6
        assert pixels[4, 10, 3] == 0
    with video.open(tmp_path / name) as reader:
        assert reader.loop == 2
        assert reader.duration == pytest.approx(0.48)


def test_animated_to_video_and_back(source, tmp_path, capsys):
    assert run(source, tmp_path / "out.mp4", "--invert", "--background", "blue") == 0
    assert "a video has no transparency here; frames are laid over blue" in capsys.readouterr().err
    found = frames_of(tmp_path / "out.mp4")
    with video.open(tmp_path / "out.mp4") as reader:
        assert reader.duration == pytest.approx(0.48, abs=0.001)  # the last frame's included
    assert [t - found[0][1] for _, t in found] == [Fraction(t, 100) for t in TIMES]
    assert np.abs(found[0][0][4, 10, :3].astype(int) - (0, 0, 255)).max() < 20
    assert run(tmp_path / "out.mp4", tmp_path / "back.gif", "--invert", "--loop", "1") == 0
    back = frames_of(tmp_path / "back.gif")
    assert [t for _, t in back] == [Fraction(t, 100) for t in TIMES]
    assert np.abs(back[3][0][4, 2, :3].astype(int) - (120, 0, 0)).max() < 20
    with video.open(tmp_path / "back.gif") as reader:
        assert reader.loop == 1


def test_animated_to_one_picture(source, tmp_path, capsys):
    assert run(source, tmp_path / "out.tif", "--invert") == 0
    assert "in.gif has 4 pictures; this is the first" in capsys.readouterr().err
    assert Frame.open(tmp_path / "out.tif", device="cpu").numpy()[4, 2, 0] == 255


def test_batches_keep_animations(source, tmp_path, capsys):
    folder = tmp_path / "many"
    folder.mkdir()
    source.rename(folder / "moving.gif")
    Frame.from_array(np.zeros((4, 4, 3), np.uint8), device="cpu").save(folder / "still.png")
    assert run(folder, tmp_path / "out", "--invert") == 0
    assert len(frames_of(tmp_path / "out" / "moving.gif")) == 4
    assert "1 picture and 1 video" in capsys.readouterr().out


class Pipe(io.StringIO):
    """A standard stream with a buffer of bytes."""

    def __init__(self, data=b""):
        super().__init__()
        self.buffer = io.BytesIO(data)


def test_pipes(source, tmp_path, monkeypatch, capsys):
    still = Frame.from_array(np.full((4, 6, 3), 50, np.uint8), device="cpu")
    data = io.BytesIO()
    still.save(data, format="png")
    monkeypatch.setattr("sys.stdin", Pipe(data.getvalue()))
    out = Pipe()
    monkeypatch.setattr("sys.stdout", out)
    assert run("-", "-", "--format", "png", "--invert") == 0
    monkeypatch.undo()
    assert capsys.readouterr().err.startswith("-: 6x4 in ")
    assert Frame.open(out.buffer.getvalue(), device="cpu").numpy().tolist() == [[[205] * 3] * 6] * 4
    monkeypatch.setattr("sys.stdin", Pipe(source.read_bytes()))
    assert run("-", tmp_path / "out.mkv", "--invert") == 0
    assert len(frames_of(tmp_path / "out.mkv")) == 4
    monkeypatch.setattr("sys.stdin", Pipe((tmp_path / "out.mkv").read_bytes()))
    assert run("-", tmp_path / "out.gif", "--invert") == 0
    assert len(frames_of(tmp_path / "out.gif")) == 4


@pytest.mark.parametrize(("arguments", "text"), [
    (["-", "-"], "the output '-' needs a format"),
    (["-", "a.png", "b.png"], "'-' is standard input and must be the only input"),
    (["a.png", "b.png", "--format", "png"], "--format is for a folder or the output '-'"),
    (["-", "a.png"], "standard input is empty"),
])  # fmt: skip
def test_errors_of_pipes(monkeypatch, capsys, arguments, text):
    monkeypatch.setattr("sys.stdin", Pipe())
    assert run(*arguments, "--invert") == 2
    assert text in capsys.readouterr().err


def test_errors(source, tmp_path, capsys):
    assert run(source, tmp_path / "o.gif", "--invert", "--max-pixels", "50") == 2
    assert "in.gif has 12 x 8 pixels, more than max_pixels=50" in capsys.readouterr().err
    assert run(source, tmp_path / "o.gif", "--invert", "--crf", "20") == 2
    assert "gif has no option 'crf'" in capsys.readouterr().err
    assert run(source, source, "--invert") == 2
    assert "is not overwritten" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["in.gif"]
