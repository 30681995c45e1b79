"""``dala export``: filters and chain files, reports and mistakes."""

import json

import numpy as np
import pytest

from dala.cli import main
from dala.png import encode_png


def test_filters(tmp_path, capsys):
    out = tmp_path / "page"
    assert main(["export", "--blur", "radius=4,sigma=2", "--sharpen", "0.3", "-o", str(out)]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"{out}: blur + sharpen in 1 dispatch; controls: radius, sigma, amount\n"
    assert shown.err == ""
    assert (out / "index.html").is_file()
    assert (out / "chain.json").is_file()


def test_report(tmp_path, capsys):
    picture = tmp_path / "a.png"
    picture.write_bytes(encode_png(np.full((4, 6, 3), 7, np.uint8)))
    out = tmp_path / "page.html"
    words = [
        "export",
        "--video_mix",
        f"{picture},t=0.2",
        "--json",
        "--title",
        "Mix",
        "-o",
        str(out),
    ]
    assert main([*words, "--slider", "t=0:0.5"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["files"] == ["page.html"]
    assert report["size"] == [6, 4]
    assert report["controls"] == ["t"]
    assert report["dispatches"] == 1


def test_chain_files(tmp_path, capsys):
    (tmp_path / "over.png").write_bytes(encode_png(np.full((4, 6, 4), 7, np.uint8)))
    chain = tmp_path / "chain.json"
    chain.write_text('[{"filter": "video_mix", "second": "over.png", "t": 0.5}, "invert"]')
    assert main(["export", str(chain), "-o", str(tmp_path / "page")]) == 0
    assert "video_mix + invert in 1 dispatch; controls: t\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--blur", "3"], "name the folder to write, such as -o page/."),
        (["-o", "x"], "give filters, such as --blur 3, or one file, such as kernel.py"),
        (["a.json", "--blur", "3", "-o", "x"], "give filters, such as --blur 3, or one file"),
        (["--blur", "3", "-o", "x", "--slider", "rad=1:2"], "no parameter 'rad'. Did you mean"),
        (["--blur", "3", "-o", "x", "--slider", "radius=a"], "must be NAME or NAME=LOW:HIGH"),
        (["--blur", "3", "-o", "x", "--picture", "none.png"], "there is no file 'none.png'"),
        (["none.json", "-o", "x"], "there is no file 'none.json'"),
    ],
)
def test_mistakes(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["export", *words])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
