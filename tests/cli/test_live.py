"""``dala live``: sources, destinations, reports and mistakes."""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
import urllib.request

import numpy as np
import pytest

from dala.cli import main
from dala.cli.traces.watching import Watching
from dala.media import video
from dala.trace.recorder import tracer
from tests.media.live.receivers import levels


@pytest.fixture
def clip(tmp_path):
    pictures = [np.full((48, 64, 3), 40, np.uint8)] * 6
    video.write(tmp_path / "in.mp4", pictures, fps=5)  # slow, so that a busy machine drops none
    return tmp_path / "in.mp4"


def test_a_video(clip, tmp_path, capsys):
    out = tmp_path / "show"
    assert main(["live", str(clip), "--invert", "--to", str(out), "--device", "cpu"]) == 0
    found = levels(out / "live.m3u8")
    assert found == pytest.approx([215] * len(found), abs=3)
    assert f"{out}/live.m3u8: {len(found)} frames in" in capsys.readouterr().out


def test_metrics_are_for_programs_that_name_this_machine(capsys):
    """A page whose name leads here asks with its own name."""
    with Watching(False, "127.0.0.1:0"):
        place = re.search(r"http://(\S+)/metrics", capsys.readouterr().err)[1]
        for host, status in ((place, 200), ("localhost", 200), ("evil.example", 404)):
            asked = http.client.HTTPConnection(place, timeout=20)
            asked.request("GET", "/metrics", headers={"Host": host})
            assert asked.getresponse().status == status
            asked.close()


def test_a_camera_for_a_time(tmp_path, capsys):
    words = ["live", "camera:test", "--size", "64x48", "--fps", "20", "--to", str(tmp_path)]
    assert main([*words, "--seconds", "0.5", "--json", "--device", "cpu"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["in"] == "camera:test"
    assert report["shown"] == len(levels(tmp_path / "live.m3u8"))
    assert report["shown"] + report["dropped"] >= 10


def test_a_microphone(clip, tmp_path, capsys):
    words = ["live", str(clip), "--microphone", "test", "--to", str(tmp_path / "show")]
    assert main([*words, "--seconds", "1", "--device", "cpu"]) == 0
    assert max(levels(tmp_path / "show" / "live.m3u8", "audio")) > 0.05
    assert exit_code([*words, "--no-audio"]) == 2
    assert "Leave out --microphone" in capsys.readouterr().err
    assert exit_code(["live", str(clip), "--microphone", "77", "--to", str(tmp_path / "b")]) == 2
    assert "no microphone 77" in capsys.readouterr().err
    assert not (tmp_path / "b").exists()


def test_a_scene(tmp_path, capsys):
    scene = {
        "dala": 2, "width": 64, "height": 48, "fps": 20, "background": "white",
        "nodes": [{"type": "overlay", "color": "black", "size": [64, 24], "position": [0, 0]}],
    }  # fmt: skip
    (tmp_path / "scene.json").write_text(json.dumps(scene))
    words = ["live", str(tmp_path / "scene.json"), "--to", str(tmp_path / "show")]
    assert main([*words, "--seconds", "0.3", "--device", "cpu"]) == 0
    found = levels(tmp_path / "show" / "live.m3u8")
    assert found == pytest.approx([127.5] * len(found), abs=3)
    heard = ["--microphone", "test", "--seconds", "0.8", "--device", "cpu"]
    assert main([*words, *heard]) == 0
    assert max(levels(tmp_path / "show" / "live.m3u8", "audio")) > 0.05
    assert not [t for t in threading.enumerate() if t.name == "dala microphone"]
    assert main([*words, "--blur", "3"]) == 2
    assert "Put the filters into the scene file" in capsys.readouterr().err


def test_stats_and_metrics(tmp_path, capfd):
    words = [
        "live",
        "camera:test",
        "--size",
        "64x48",
        "--fps",
        "20",
        "--to",
        str(tmp_path / "show"),
    ]
    found = []

    def scrape():
        until = time.monotonic() + 60
        while time.monotonic() < until and not found:
            address = re.search(r"served at (http://\S+)", "".join(shown))
            if address is None:
                shown.append(capfd.readouterr().err)
                time.sleep(0.05)
                continue
            with urllib.request.urlopen(address[1], timeout=30) as answer:
                text = answer.read().decode()
                if "dala_frames_total{" in text:
                    found.append((answer.headers["Content-Type"], text))
            time.sleep(0.05)

    shown = []
    scraper = threading.Thread(target=scrape)
    scraper.start()
    own = ["--stats", "--metrics", "127.0.0.1:0", "--seconds", "6", "--device", "cpu"]
    assert main([*words, *own]) == 0
    scraper.join()
    (kind, text), *_ = found
    assert kind.startswith("text/plain; version=0.0.4")
    assert "# TYPE dala_frame_seconds histogram" in text
    assert f'dala_frames_total{{sink="{tmp_path}/show/live.m3u8"}} ' in text
    assert "dala_live_frames_in " in text
    assert " fps, " in "".join(shown) + capfd.readouterr().err
    assert not tracer.on
    assert exit_code([*words, "--metrics", "9100"]) == 2
    assert "--metrics must be HOST:PORT" in capfd.readouterr().err
    assert exit_code([*words, "--metrics", "192.0.2.1:9"]) == 2
    assert "--metrics cannot listen on 192.0.2.1:9" in capfd.readouterr().err


def exit_code(words):
    """Return the exit code of a command, also where argparse ends the process."""
    try:
        return main(words)
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["camera:test"], "arguments are required: --to"),
        (["camera:test", "--to", "gopher://x"], "url must be a URL of rtmp"),
        (["camera:test", "--to", "http://x/y"], "For WHIP write"),
        (["camera:test", "--to", "{tmp}", "--seconds", "-1"], "seconds must be a number"),
        (["camera:test", "--to", "{tmp}", "--bit-rate", "lots"], "--bit-rate: must be bits"),
        (["camera:test", "--to", "{tmp}", "--encoder", "best"], "--encoder: must be one of"),
        (["camera:77", "--to", "{tmp}"], "no camera 77"),
        (["none.mp4", "--to", "{tmp}"], "no such file"),
        (["none.json", "--to", "{tmp}"], "none.json"),
        (["{clip}", "--to", "{tmp}/out.mp4"], "dala filter write files"),
        (["{clip}", "--to", "{tmp}", "--size", "64x48"], "--size is for cameras"),
        (["{clip}", "--to", "{tmp}", "--blur", "much"], "blur"),
        (["{clip}", "--to", "tcp://127.0.0.1:9", "--device", "cpu"], "Connection refused"),
    ],
)
def test_mistakes(clip, tmp_path, capsys, words, why):
    filled = [w.format(tmp=tmp_path, clip=clip) for w in words]
    assert exit_code(["live", *filled]) == 2
    shown = capsys.readouterr().err
    assert why in shown
    assert "Traceback" not in shown
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.mp4"]
