"""``dala filter`` on videos: times, sound, shape, damage, signals."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from fractions import Fraction

import numpy as np
import pytest

from dala.cli import main
from dala.media import video
from tests.cli.test_filter import CPU, fails, works

av = pytest.importorskip("av")

from tests.media.video.clips import encode, number_of, numbered, packets, source  # noqa: E402
from tests.media.video.test_hdr import ramp, write_codes  # noqa: E402


def clip(path, count=12, size=(96, 64)):
    """Write frames of increasing gray (in steps of 15, from 20 again and again), and a tone."""
    shades = [np.full((size[1], size[0], 3), 20 + 15 * (n % 15), np.uint8) for n in range(count)]
    frames = [av.VideoFrame.from_ndarray(shade) for shade in shades]
    return encode(path, frames, options={"crf": "1"}, tone=True)


def read(path):
    """Return all frames of a video, decoded by FFmpeg."""
    with av.open(str(path)) as box:
        return list(box.decode(video=0))


def luma(frame):
    return frame.to_ndarray()[: frame.height].astype(int)


def test_video(tmp_path, capsys):
    first = clip(tmp_path / "in.mp4")
    made = tmp_path / "out.mp4"
    works(first, made, "--invert", "--resize", "size=48x32", "--crf", "1")
    assert "48x32, 12 frames" in capsys.readouterr().out
    assert [f.time for f in read(made)] == [f.time for f in read(first)]
    assert [p[2] for p in packets(made, "audio")] == [p[2] for p in packets(first, "audio")]
    for n, frame in enumerate(read(made)):
        assert abs(int(frame.to_ndarray(format="rgb24")[16, 24, 1]) - (235 - 15 * n)) <= 4
    works(first, tmp_path / "mute.mp4", "--invert", "--no-audio")
    with av.open(str(tmp_path / "mute.mp4")) as box:
        assert not box.streams.audio


def test_video_errors(tmp_path, capsys):
    first = clip(tmp_path / "in.mp4")
    cut = tmp_path / "cut.mp4"  # without its table of contents, which is at the end
    cut.write_bytes(first.read_bytes()[: first.stat().st_size * 2 // 3])
    out = tmp_path / "out.mp4"
    assert "OUT must be a video such as out.mp4" in fails(capsys, first, "out.png", "--sepia")
    assert fails(capsys, first, "out.png", "--sepia").endswith("facts.md.\n")
    assert fails(capsys, first, "out.mp3", "--sepia").endswith(f"dala cut {first} -o out.mp3.\n")
    assert "is not overwritten" in fails(capsys, first, first, "--sepia")
    assert "cut.mp4" in fails(capsys, cut, out, "--sepia")
    assert "no.mp4" in fails(capsys, tmp_path / "no.mp4", out, "--sepia")
    assert "from 0 to 200" in fails(capsys, first, out, "--blur", "radius=900")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.mp4", "in.mp4"]


def test_variable_frame_times_are_kept(tmp_path):
    stamps = [0, 3, 4, 11, 40, 41]
    first = encode(tmp_path / "in.mp4", numbered(6), stamps=stamps, time_base=Fraction(1, 50))
    works(first, tmp_path / "out.mp4", "--invert")
    assert [f.time * 50 for f in read(tmp_path / "out.mp4")] == pytest.approx(stamps)


@pytest.mark.parametrize("turn", [0, 90, 180])
def test_rotation_and_pixel_aspect(tmp_path, turn):
    stored = next(source("testsrc2", pixels="yuv420p"))
    aspect = Fraction(4, 3)
    first = encode(
        tmp_path / "in.mp4", [stored], rotation=-turn, aspect=aspect, options={"qp": "0"}
    )
    made = tmp_path / "out.mp4"
    works(first, made, "--brightness", "0", "--crf", "1")
    upright = np.rot90(luma(read(first)[0]), -turn // 90)
    with av.open(str(made)) as box:
        stream = box.streams.video[0]
        assert stream.sample_aspect_ratio == (1 / aspect if turn == 90 else aspect)
        frame = next(box.decode(stream))
    assert frame.rotation == 0
    got = luma(frame)
    assert got.shape == upright.shape
    assert np.abs(got - upright).mean() < 2
    assert np.abs(got - got[::-1, ::-1]).mean() > 20  # which the wrong way round would be
    works(first, tmp_path / "wide.mp4", "--resize", "size=128x64" if turn != 90 else "size=64x128")
    with av.open(str(tmp_path / "wide.mp4")) as box:
        assert (box.streams.video[0].sample_aspect_ratio or 1) == 1


# damage -----------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "a.mp4"
    options = {"g": "5", "bf": "0"}
    fast = {"movflags": "+faststart"}
    return encode(path, numbered(30), options=options, muxer=fast, tone=True)


def damaged(capsys, *arguments):
    """Run a command on a damaged video; return its standard output and error."""
    assert main(["filter", *map(str, arguments), *CPU]) == 2
    out, err = capsys.readouterr()
    assert err.count("\n") == 1
    assert err.startswith("dala filter: ")
    return out, err


@pytest.mark.parametrize("part", [0.5, 0.8])
def test_truncated_video_keeps_decodable_frames(tmp_path, capsys, whole, part):
    data = whole.read_bytes()
    cut, made = tmp_path / "cut.mp4", tmp_path / "out.mp4"
    cut.write_bytes(data[: int(len(data) * part)])
    there = sum(cut.read_bytes().find(p) >= 0 for _, _, p in packets(whole, "video"))
    assert 0 < there < 30
    out, err = damaged(capsys, cut, made, "--invert")
    assert f"{made}: 64x48, {there} frames" in out
    assert f"{str(cut)!r} is damaged near " in err
    assert f"{there} frames were saved to {str(made)!r}." in err
    numbers = [255 - number_of(f.to_ndarray(format="rgb24")) for f in read(made)]
    assert numbers == list(range(there))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.mp4", "out.mp4"]


def test_damage_in_the_middle(tmp_path, capsys, whole):
    data = bytearray(whole.read_bytes())
    victim = packets(whole, "video")[10][2]  # a key frame
    at = data.find(victim)
    data[at : at + len(victim)] = b"\xa5" * len(victim)
    bad, made = tmp_path / "bad.mp4", tmp_path / "out.mp4"
    bad.write_bytes(data)
    assert main(["filter", str(bad), str(made), "--invert", "--json", *CPU]) == 2
    report = json.loads(capsys.readouterr().out)
    frames = read(made)
    assert report["made"][0]["frames"] == len(frames)
    (failed,) = report["failed"]
    assert failed["in"] == str(bad)
    assert "is damaged after 0.360 s" in failed["error"]
    assert f"{len(frames)} frames were saved" in failed["error"]
    numbers = [255 - number_of(f.to_ndarray(format="rgb24")) for f in frames]
    assert numbers[:10] == list(range(10))
    assert numbers[-15:] == list(range(15, 30))
    assert float(frames[-1].time) == pytest.approx(29 / 25)


def test_damage_before_the_first_frame_leaves_no_file(tmp_path, capsys, whole):
    data = whole.read_bytes()
    first = packets(whole, "video")[0][2]
    (tmp_path / "cut.mp4").write_bytes(data[: data.find(first) + 8])
    line = fails(capsys, tmp_path / "cut.mp4", tmp_path / "out.mp4", "--invert")
    assert "cut.mp4" in line
    assert [path.name for path in tmp_path.iterdir()] == ["cut.mp4"]


# being stopped ----------------------------------------------------------------------------------
@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="signals are another matter there")
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_leave_no_file(tmp_path, number):
    first = clip(tmp_path / "in.mp4", 60)
    (tmp_path / "out.mp4").write_bytes(b"an older one")
    started = tmp_path / "started"
    # The first written frame tells; those after it come slowly, so there is time to interrupt.
    code = f"""
import signal, sys, time, pathlib
usual = {{"SIGINT": signal.default_int_handler}}.get({number!r}, signal.SIG_DFL)
signal.signal(signal.{number}, usual)  # also where tests run in the background
from dala.cli import main
from dala.media.video.writer import Writer
write = Writer.write
def slow(self, *given, **named):
    write(self, *given, **named)
    pathlib.Path({str(started)!r}).touch()
    time.sleep(0.3)
Writer.write = slow
paths = [{str(first)!r}, {str(tmp_path / "out.mp4")!r}]
sys.exit(main(["filter", *paths, "--sepia", "--device", "cpu"]))
"""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen([sys.executable, "-c", code], env=environ, stderr=-1) as process:
        while not started.exists() and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(getattr(signal, number))
        _, err = process.communicate(timeout=300)
    assert process.returncode == 128 + getattr(signal, number), err
    assert b"Traceback" not in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.mp4", "out.mp4", "started"]
    assert (tmp_path / "out.mp4").read_bytes() == b"an older one"


def test_signal_handlers_are_restored(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    works(clip(tmp_path / "in.mp4", 2), tmp_path / "out.mp4", "--sepia")
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize(("transfer", "code"), [("hlg", 18), ("bt709", 1)])
def test_hdr_and_deep_color_are_kept_or_made_sdr(tmp_path, capsys, transfer, code):
    source = write_codes(tmp_path / "in.mkv", ramp(64, 128), "yuv420p10le", transfer)
    out = tmp_path / "out.mkv"
    lossless = ("--codec", "ffv1")
    works(source, out, "--contrast", "0", "--hdr", "keep", *lossless)
    (frame,) = read(out)
    assert (frame.format.name, int(frame.color_trc)) == ("yuv420p10le", code)
    before = read(source)[0].to_ndarray().astype(int)
    luma_error = np.abs(frame.to_ndarray().astype(int) - before)[:64]
    assert luma_error.max() <= 2
    works(source, out, "--contrast", "0")
    (frame,) = read(out)
    assert (frame.format.name, int(frame.color_trc)) == ("yuv420p", 1)
    said = capsys.readouterr()
    assert ("HDR is tone-mapped to SDR" in said.err + said.out) == (transfer == "hlg")
    works(source, tmp_path / "hevc.mp4", "--invert", "--hdr", "keep")
    assert read(tmp_path / "hevc.mp4")[0].format.name == "yuv420p10le"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_a_named_pipe_is_waited_for_with_live_only(tmp_path, capsys):
    pipe, out = tmp_path / "pipe.mkv", tmp_path / "out.mkv"
    os.mkfifo(pipe)
    assert main(["filter", str(pipe), str(out), "--sepia"]) == 2
    assert f"'{pipe}' is a pipe, not a file. Give --live" in capsys.readouterr().err
    whole = tmp_path / "whole.mkv"
    video.write(whole, [np.full((48, 64, 3), 50 * n, np.uint8) for n in range(4)], fps=25)
    sending = threading.Thread(target=lambda: pipe.write_bytes(whole.read_bytes()))
    sending.start()
    try:
        assert main(["filter", str(pipe), str(out), "--sepia", "--live"]) == 0
    finally:
        sending.join()
    with video.open(out) as reader:
        assert sum(1 for _ in reader) == 4
    for command in (["background", str(pipe), str(out)], ["classify", str(pipe)]):
        assert main(command) == 2
        assert "is a pipe, not a file" in capsys.readouterr().err
