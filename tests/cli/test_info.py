"""``dala info FILE``: sizes, rates, seconds, codecs."""

import json

import numpy as np
import pytest

from dala.cli import main
from dala.media import Frame, audio, video

pytest.importorskip("av")


def test_files_are_described(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    audio.tone(330, 0.5).save("a.wav")
    frames = [np.full((32, 48, 3), 9 * n, np.uint8) for n in range(5)]
    video.write("a.mkv", frames, fps=10, audio_from="a.wav")
    video.write("b.gif", frames, fps=10)
    Frame.from_array(frames[0]).save("c.png")
    assert main(["info", "a.wav", "a.mkv", "b.gif", "c.png"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "a.wav: pcm_s16le, 0.5 s, 48000 Hz, mono",
        "a.mkv: 48x32, h264, 10 fps, 0.5 s, 8 bits; sound: pcm_s16le 48000 Hz mono",
        "b.gif: 48x32, gif, 10 fps, 0.5 s, 5 frames, 8 bits",
        "c.png: 48x32",
    ]
    assert main(["info", "a.wav", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found == {"file": "a.wav", "codec": "pcm_s16le", "rate": 48000, "layout": "mono",
                     "seconds": 0.5}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.mp4"], "dala info: there is no file 'none.mp4'.\n"),
        (["note.txt"], "dala info: audio.open: cannot open 'note.txt': "),
        (["note.txt", "--device", "cpu"], "dala info: --device is for devices. Give it without"),
    ],
)
def test_what_cannot_be_described(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "note.txt").write_text("no sound")
    assert main(["info", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(said)
