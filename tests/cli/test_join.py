"""``dala cut`` and ``dala concat``: the right frames and sound, copied or encoded again."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from dala.cli import main
from dala.media import Frame, audio, video
from dala.media.notices import MediaNotice

av = pytest.importorskip("av")

from tests.media.video.clips import encode, number_of, numbered, packets, source  # noqa: E402

KEYS = {"g": "12", "bf": "2", "sc_threshold": "0"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("join")
    for name in ("a", "b"):
        encode(made / f"{name}.mp4", numbered(40), rate=10, options=KEYS, tone=True)
    encode(made / "other.mp4", numbered(20), rate=20, options=KEYS)
    wide = source(size="96x48", rate=10)
    encode(made / "wide.mp4", [next(wide) for _ in range(10)], rate=10)
    with av.open(str(made / "sound.m4a"), "w") as out:
        stream = out.add_stream("aac", rate=8000)
        frame = av.AudioFrame(format="fltp", layout="mono", samples=1024)
        frame.sample_rate, frame.pts = 8000, 0
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    (made / "text.mp4").write_text("no video")
    return made


def shown(path):
    with video.open(path, device="cpu") as reader:
        return [(number_of(frame), frame.time) for frame in reader]


def numbers(path):
    found = shown(path)
    assert [float(time) for _, time in found] == pytest.approx([n / 10 for n in range(len(found))])
    return [number for number, _ in found]


def run(capsys, *words):
    assert main([*map(str, words), "--device", "cpu", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("options", "copied", "want"),
    [
        (["--from", 1.2, "--to", 2.4], True, range(12, 24)),
        (["--from", "0:00:02.4"], True, range(24, 40)),
        (["--to", 1.2], True, range(12)),
        (["--from", 1.25, "--to", 2.4], True, range(12, 24)),
        (["--from", 1.5, "--to", 2.25], False, range(15, 23)),
        (["--from", 1.2, "--duration", 0.2], False, range(12, 14)),
        (["--from", 1.5, "--copy"], True, range(12, 40)),
    ],
)
def test_cut(folder, tmp_path, capsys, options, copied, want):
    out = tmp_path / "out.mp4"
    report = run(capsys, "cut", folder / "a.mp4", *options, "-o", out)
    assert numbers(out) == list(want)
    assert (report["copied"], report["frames"]) == (copied, len(want))
    assert bool(report["reason"]) == (not copied or "--copy" in options)
    own = {data for _, _, data in packets(folder / "a.mp4", "video")}
    assert ({data for _, _, data in packets(out, "video")} <= own) == copied  # the very packets


def test_a_cut_runs_on_the_device_of_the_environment(folder, tmp_path):
    """And says nothing about a GPU that was not asked for."""
    words = ["cut", folder / "a.mp4", "--from", "1.5", "--to", "2.25", "-o", tmp_path / "out.mp4"]
    done = subprocess.run(
        [sys.executable, "-m", "dala", *map(str, words)],
        capture_output=True, text=True, env={**os.environ, "DALA_DEVICE": "cpu"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "encoded again" in done.stdout


def test_the_sound_stays_in_sync(folder, tmp_path, capsys):
    out = tmp_path / "out.mp4"
    own = {bytes(data): time for data, time in sound(folder / "a.mp4")}
    for first in (1.2, 1.5):
        run(capsys, "cut", folder / "a.mp4", "--from", first, "--to", 3, "-o", out)
        heard = list(sound(out))
        assert len(heard) > 10
        for data, time in heard:
            assert time + first == pytest.approx(own[data], abs=0.002)
        assert heard[0][1] < 0.05
        assert heard[-1][1] == pytest.approx(3 - first, abs=0.05)
    run(capsys, "cut", folder / "a.mp4", "--to", 1.2, "--no-audio", "-o", out)
    assert not list(sound(out))


def sound(path):
    with av.open(str(path)) as file:
        if file.streams.audio:
            for packet in file.demux(audio=0):
                if packet.size:
                    yield bytes(packet), float(packet.pts * packet.time_base)


def test_concat(folder, tmp_path, capsys):
    out = tmp_path / "out.mp4"
    a, b = folder / "a.mp4", folder / "b.mp4"
    report = run(capsys, "concat", a, b, "-o", out)
    assert report["copied"]
    assert numbers(out) == [*range(40), *range(40)]
    assert list(sound(out))[-1][1] == pytest.approx(8, abs=0.1)
    report = run(capsys, "concat", a, b, "-o", out, "--transition", "dissolve=1")
    assert (report["copied"], report["duration"], report["frames"]) == (False, 7, 70)
    assert "mixes pictures" in report["reason"]
    found = numbers(out)
    assert found[:30] == list(range(30))
    assert found[40:] == list(range(10, 40))
    report = run(capsys, "concat", a, folder / "other.mp4", folder / "wide.mp4", "-o", out)
    assert not report["copied"]
    for word in ("in its frame rate (20, 10)", "20 fps", "(96x48) is fitted into 64x48"):
        assert word in report["reason"]
    assert report["frames"] == 60
    assert numbers(out)[:50] == [*range(40), *range(0, 20, 2)]


def test_a_gif_of_a_part(folder, tmp_path, capsys):
    out = tmp_path / "part.gif"
    with pytest.warns(MediaNotice, match="gif has no sound; that of .* is left out"):
        report = run(capsys, "cut", folder / "a.mp4", "--from", "1", "--to", "1.5", "-o", out)
    assert (report["frames"], numbers(out)) == (5, [*range(10, 15)])


def test_the_sound_alone(folder, tmp_path, capsys):
    out = tmp_path / "part.wav"
    report = run(capsys, "cut", folder / "a.mp4", "--from", "1", "--to", "2500ms", "-o", out)
    assert report["duration"] == 1.5
    with audio.open(out) as reader, audio.open(folder / "a.mp4") as whole:
        whole.seek(1)
        assert np.allclose(reader.read().samples, whole.read(1.5).samples, atol=1e-4)
    assert main(["cut", str(out), "--from", "9", "-o", str(tmp_path / "none.wav")]) == 2
    assert "has no sound from 9 s on" in capsys.readouterr().err


def test_pictures_are_shown_for_a_time(folder, tmp_path, capsys):
    for name, color in (("a", (255, 0, 0)), ("b", (0, 0, 255))):
        Frame.from_array(np.full((32, 48, 3), color, np.uint8)).save(tmp_path / f"{name}.png")
    out = tmp_path / "out.mp4"
    files = [str(tmp_path / "a.png"), str(folder / "other.mp4"), str(tmp_path / "b.png")]
    assert main(["concat", *files, "-o", str(out), "--still", "500ms"]) == 0
    assert "2 pictures shown for 0.5 s each; --still sets the time" in capsys.readouterr().out
    with video.open(out) as reader:
        shown = [frame.numpy()[16, 24, :3].argmax() for frame in reader]
        assert (reader.width, reader.height, reader.fps) == (48, 32, 20)
    assert (len(shown), set(shown[:10]), set(shown[-10:])) == (40, {0}, {2})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cut", "a.mp4", "--from", "9"], "from must be at least 0 and before the end at 4 s"),
        (["cut", "a.mp4", "--from", "3", "--to", "2"], "to must be after the beginning at 3 s"),
        (["cut", "a.mp4", "--to", "99"], "to must be at most 4, the end of the video"),
        (["cut", "a.mp4", "--from", "soon"], "--from must be a time in seconds"),
        (["cut", "a.mp4", "--to", "2", "--duration", "1"], "not both"),
        (["cut", "text.mp4", "--to", "1"], "cannot open"),
        (["cut", "sound.m4a", "--to", "1"], "has no video"),
        (["cut", "gone.mp4", "--to", "1"], "no such file"),
        (["concat", "a.mp4"], "two or more files"),
        (["concat", "a.mp4", "sound.m4a"], "has no video"),
        (["concat", "a.mp4", "b.mp4", "--transition", "dissolve=9"], "transition of 9 s is longer"),
        (["concat", "a.mp4", "b.mp4", "--transition", "disolve"], "Did you mean 'dissolve'"),
        (["concat", "a.mp4", "b.mp4", "--transition", "wipe=1,angle"], "parameter=value"),
    ],
)
def test_refused(folder, tmp_path, capsys, words, message):
    command, *rest = words
    given = [str(folder / w) if w.endswith((".mp4", ".m4a")) else w for w in rest]
    out = tmp_path / "out.mp4"
    assert main([command, *given, "-o", str(out), "--device", "cpu"]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_input_is_not_replaced(folder, capsys):
    a, b = str(folder / "a.mp4"), str(folder / "b.mp4")
    before = (folder / "a.mp4").read_bytes()
    assert main(["cut", a, "--to", "1", "-o", a]) == 2
    assert main(["concat", b, a, "-o", a]) == 2
    assert "another file than the inputs" in capsys.readouterr().err
    assert (folder / "a.mp4").read_bytes() == before


def test_the_help_lists_every_transition():
    from dala.cli import help_parts
    from dala.media.transitions import TRANSITIONS

    assert all(name in help_parts("concat")[1] for name in TRANSITIONS)


def test_sound_of_a_transition(folder, tmp_path, capsys):
    out = tmp_path / "out.mp4"
    a, b = folder / "a.mp4", folder / "b.mp4"
    run(capsys, "concat", a, b, "-o", out, "--transition", "dissolve=1")
    assert list(sound(out))[-1][1] == pytest.approx(7, abs=0.1)
    run(capsys, "concat", a, b, "-o", out, "--transition", "dissolve=1", "--no-audio")
    assert not list(sound(out))


def test_packets_that_the_container_does_not_take_are_encoded_again(folder, tmp_path, capsys):
    report = run(capsys, "cut", folder / "other.mp4", "--to", 0.6, "-o", tmp_path / "a.webm")
    assert not report["copied"]
    assert "does not take its packets" in report["reason"]
    assert [number for number, _ in shown(tmp_path / "a.webm")] == list(range(12))


@pytest.mark.parametrize(
    "words",
    [
        ["cut", "a.mp4", "--to", "1.2"],
        ["cut", "a.mp4", "--from", "0.5", "--to", "2"],  # the ends are encoded
        ["concat", "a.mp4", "b.mp4"],
    ],
)
def test_a_full_disk_is_not_answered_by_encoding(folder, tmp_path, capsys, monkeypatch, words):
    opened, written = av.open, []

    def full(file, mode="r", **options):
        if mode == "w":
            written.append(file)
            av.error.err_check(-errno.ENOSPC)
        return opened(file, mode, **options)

    monkeypatch.setattr(av, "open", full)
    given = [str(folder / w) if w.endswith(".mp4") else w for w in words]
    assert main([*given, "-o", str(tmp_path / "out.mp4"), "--device", "cpu"]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert sum(str(tmp_path) in str(file) for file in written) == 1
    assert not list(tmp_path.iterdir())
