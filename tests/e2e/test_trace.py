"""Traces of real runs: what must hold in each, and the stage that was delayed is the one named."""

import json

import numpy as np
import pytest

from dala.cli import main
from dala.media import video
from dala.trace.export import json_events, read
from dala.trace.path import flattened, is_wait

FRAMES = 40


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "in.mp4"
    rng = np.random.default_rng(3)
    base = rng.integers(0, 255, (96, 160, 3), np.uint8)
    video.write(path, [np.roll(base, 4 * n, 1) for n in range(FRAMES)], fps=30)
    return path


# what holds in every trace ------------------------------------------------------------------------
@pytest.fixture(scope="module")
def traced_run(clip, tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "run.json"
    assert main(["--trace", str(path), "filter", str(clip), str(path.with_name("out.mp4")),
                 "--blur", "3", "--device", "cpu", "--quiet"]) == 0  # fmt: skip
    return path


def test_no_span_is_negative_and_spans_nest(traced_run):
    events, threads, notes = read(traced_run)
    assert notes["format"] == "dala trace 1"
    lanes = {}
    for process, record in events:
        assert record[3] >= record[2], record
        assert record[4] in threads[process]
        if record[0] not in ("counter", "done"):
            lanes.setdefault((process, record[4]), []).append(record)
    assert len(lanes) >= 3
    for spans in lanes.values():
        spans.sort(key=lambda r: (r[2], -r[3]))
        open_spans = []
        for span in spans:
            while open_spans and open_spans[-1][3] <= span[2]:
                open_spans.pop()
            assert not open_spans or span[3] <= open_spans[-1][3], (open_spans[-1], span)
            open_spans.append(span)
        pieces = flattened(spans)
        covered = sum(p.end - p.begin for p in pieces)
        roots = {id(p.root): p.root for p in pieces}.values()
        assert covered == sum(r[3] - r[2] for r in roots)


def test_frames_are_followed_from_packet_to_file(traced_run):
    events, threads, _ = read(traced_run)
    stages = {}
    for _, record in events:
        if record[5] is not None and not is_wait(record):
            stages.setdefault(record[5], {})[record[0]] = record
    done = {record[5] for _, record in events if record[0] == "done"}
    assert len(done) == FRAMES
    for frame in done:
        own = stages[frame]
        assert {"demux", "decode", "convert", "upload", "pass", "encode", "mux"} <= set(own)
        order = [own[s][2] for s in ("demux", "decode", "pass", "encode")]
        assert order == sorted(order)
    flows = {}
    for event in json_events(events, threads):
        if event["ph"] in "stf":
            flows.setdefault(event["id"], []).append((event["ts"], event["ph"]))
    for frame in done:
        phases = [phase for _, phase in sorted(flows[frame])]
        assert phases[0] == "s"
        assert phases[-1] == "f"
        assert set(phases[1:-1]) <= {"t"}


def test_paths_are_as_long_as_the_time_they_explain(traced_run):
    from dala.trace.report import TraceReport

    report = TraceReport.open(traced_run)
    assert len(report.frames) == FRAMES - 1
    for frame in report.frames:
        assert sum(frame.path.values()) == pytest.approx(frame.gap, rel=0.01)
    first, last = report.frames[0], report.frames[-1]
    wall = (last.done - first.done) / 1e6 + first.gap
    assert sum(frame.gap for frame in report.frames) == pytest.approx(wall, rel=0.01)


def test_passes_have_the_names_of_the_plan(traced_run):
    names = {record[1] for _, record in read(traced_run)[0] if record[0] == "pass"}
    assert {"yuv_to_rgb", "blur", "rgb_to_yuv"} <= names


# the command --------------------------------------------------------------------------------------
def test_why(traced_run, capsys):
    assert main(["why", str(traced_run)]) == 0
    assert f"of {FRAMES - 1} frames late by more than 8 ms" in capsys.readouterr().out
    assert main(["why", str(traced_run), "--json", "--budget", "0.01", "--tolerance", "0"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["late"] > FRAMES // 2
    assert found["causes"][0]["advice"]
    picture = traced_run.with_name("late.svg")
    assert main(["why", str(traced_run), "--picture", str(picture)]) == 0
    assert picture.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["why", "{tmp}/none.json"], "no such file"),
        (["why", "{clip}"], "is no trace of Dala"),
        (["why", "{run}", "--picture", "x.png"], "must be a file such as late.svg"),
        (["why", "{run}", "--budget", "-1"], "budget must be a number of milliseconds"),
        (["--trace", "{tmp}/no/run.json", "info", "{clip}"], "no such folder"),
    ],
)
def test_mistakes(clip, traced_run, tmp_path, capsys, words, why):
    filled = [w.format(tmp=tmp_path, clip=clip, run=traced_run) for w in words]
    assert main(filled) == 2
    shown = capsys.readouterr().err
    assert why in shown
    assert "Traceback" not in shown
    assert shown.count("dala why: ") <= 1


def test_trace_is_an_option_anywhere(clip, tmp_path, capsys):
    for number, words in enumerate([["info", str(clip), "--trace={}"], ["info", "--trace", "{}"]]):
        path = tmp_path / f"{number}.json"
        assert main([word.format(path) for word in words]) == 0
        assert read(path)[2]["seconds"] is None
    with pytest.raises(SystemExit):
        main(["info", "--trace"])
    assert "expected one argument" in capsys.readouterr().err
