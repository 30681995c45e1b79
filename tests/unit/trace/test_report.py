"""The report names the right cause: delays injected into a model whose clock is its own."""

import json
import random

import pytest

from dala.errors import ParameterError
from dala.trace.export import read, write
from dala.trace.report import TraceReport
from tests.support.pipeline_model import INJECTED, NAMES, STAGES, THREADS, Model

RUNS = range(100)
SOME = range(20)


def report(model, frames=160, **options):
    return TraceReport(model.run(frames), THREADS, **options)


def spread(rng, frames, count):
    """Frames far enough from each other that one delay has passed before the next."""
    return rng.sample(range(20, frames - 10, 24), count)


@pytest.mark.parametrize("rate", [None, 30], ids=["as fast as it can", "in real time"])
@pytest.mark.parametrize("seed", RUNS)
def test_names_the_stage_that_was_slow(seed, rate):
    rng = random.Random(seed)
    stage = INJECTED[seed % len(INJECTED)]
    times = {name: ms * rng.uniform(0.6, 1.4) for name, (_, ms) in STAGES.items()}
    at = spread(rng, 160, rng.randint(1, 5))
    delays = {(stage, number): rng.uniform(200, 400) for number in at}
    found = report(Model(seed, delays, rate=rate, times=times))
    assert len(found.late) >= len(at)
    assert (found.causes[0].stage, found.causes[0].name) == (stage, NAMES[stage])
    assert found.causes[0].share > 0.9
    assert sum(cause.frames for cause in found.causes[1:]) == 0


@pytest.mark.parametrize("seed", SOME)
def test_two_causes_in_one_frame_share_it(seed):
    rng = random.Random(seed)
    one, two = rng.sample([s for s in INJECTED if STAGES[s][0] in (12, 15, 16)], 2)
    delays = {(one, 80): 300.0, (two, 80): rng.uniform(120, 280)}
    # With queues that hold nothing, what the two take adds up.
    found = report(Model(seed, delays, times={"encode": 5.0, "decode": 3.0}))
    worst = max(found.late, key=lambda frame: frame.late)
    assert {key[0] for key, _ in worst.causes} == {one, two}
    total = sum(delays.values())
    shares = {key[0]: share for key, share in worst.causes}
    assert shares[one] == pytest.approx(300 / total, abs=0.12)
    assert shares[two] == pytest.approx(delays[two, 80] / total, abs=0.12)


@pytest.mark.parametrize("seed", SOME)
def test_two_causes_in_different_frames_are_both_named(seed):
    rng = random.Random(seed)
    one, two = rng.sample(INJECTED, 2)
    first, second = {(one, 40): 300.0, (one, 90): 300.0}, {(two, 130): 320.0}
    found = report(Model(seed, first | second))
    named = {cause.stage: cause for cause in found.causes if cause.frames}
    assert set(named) == {one, two}
    assert named[one].frames > named[two].frames
    assert named[one].share == pytest.approx(2 / 3, abs=0.15)


@pytest.mark.parametrize("seed", SOME)
def test_a_hidden_delay_is_not_blamed(seed):
    """The decoder is ahead by some frames: it may be slow once, and no frame is late."""
    rng = random.Random(seed)
    hidden = {("decode", number): 40.0 for number in spread(rng, 160, 3)}
    found = report(Model(seed, hidden, times={"encode": 25.0}))
    assert found.late == []
    late = {("model", 75): 250.0}
    found = report(Model(seed, hidden | late, times={"encode": 25.0}))
    assert found.causes[0].stage == "model"
    assert "decode" not in {cause.stage for cause in found.causes if cause.share > 0.05}


def test_a_stage_that_is_always_too_slow_is_named():
    found = report(Model(1, times={"encode": 45.0}, rate=30))
    assert len(found.late) > 100
    assert found.causes[0].stage == "encode"
    assert found.causes[0].frames == len(found.late)


def test_critical_paths_are_as_long_as_the_time_between_frames():
    model = Model(3, {("pass", 50): 100.0, ("encode", 51): 90.0}, rate=60)
    for frame in report(model).frames:
        assert sum(frame.path.values()) == pytest.approx(frame.gap, rel=1e-6)
        assert all(ms > 0 for ms in frame.path.values())


def test_text():
    found = report(Model(5, {("compile", 60): 180.0}), frames=120)
    text = str(found)
    assert text.startswith("1 of 119 frames late by more than 8 ms (worst 1")
    assert "- 1 waited for a first compile (kernel 'blur') (17" in text
    assert "DALA_CACHE_DIR" in text


def test_json_and_files_say_the_same(tmp_path):
    model = Model(5, {("network", 60): 280.0, ("model", 90): 300.0}, rate=30)
    events = model.run(120)
    direct = TraceReport(events, THREADS)
    write(tmp_path / "run.json", events, THREADS, {})
    assert TraceReport.open(tmp_path / "run.json").json() == direct.json()
    assert json.loads(json.dumps(direct.json())) == direct.json()
    assert [c["stage"] for c in direct.json()["causes"]] == ["model", "network"]


def test_budget_and_tolerance():
    model = Model(7, times={"encode": 30.0}, jitter=0)
    events = model.run(60)
    assert TraceReport(events, THREADS).late == []
    slow = TraceReport(events, THREADS, budget=16.7)
    assert len(slow.late) == 59
    assert slow.causes[0].stage == "encode"
    assert TraceReport(events, THREADS, budget=16.7, tolerance=50).late == []
    with pytest.raises(ParameterError, match="tolerance must be a number of milliseconds"):
        TraceReport(events, THREADS, tolerance=-1)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"otherData": {"format": "dala trace 1"}}',
                                  '{"otherData": {"format": "dala trace 1"}, "traceEvents": [1]}',
                                  '{"otherData": {"format": "x"}, "traceEvents": []}'])  # fmt: skip
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(ParameterError, match="is no trace of Dala"):
        read(path)


def test_no_frames():
    assert str(TraceReport([], {})) == "No frame was shown, written or sent."


def changed(path, change):
    """Write a trace, with every event changed."""
    write(path, Model(1).run(20), THREADS, {})
    found = json.loads(path.read_text())
    for event in found["traceEvents"]:
        change(event)
    path.write_text(json.dumps(found))
    return path


def test_traces_of_strangers(tmp_path):
    """Times that are infinite are refused, and nothing in a name steers a terminal."""
    path = changed(tmp_path / "run.json", lambda event: event.update(ts=float("inf")))
    with pytest.raises(ParameterError, match="is no trace of Dala"):
        TraceReport.open(path)

    for facts in ({"value": "many"}, {"value": None}, {"due": [1]}, {"due": 10**400}, {"by": "x"}):
        path = changed(tmp_path / "run.json", lambda event, facts=facts: event.update(args=facts))
        with pytest.raises(ParameterError, match="is no trace of Dala"):
            TraceReport.open(path)

    def renamed(event):
        event["name"] = event["name"] if event["ph"] == "M" else "\x1b[2J\ud800"

    found = TraceReport.open(changed(path, renamed), budget=0.001, tolerance=0.0)
    text = f"{found} {found.json()}"
    assert not {"\x1b", "\ud800"} & set(text)
    assert any("\ufffd[2J\ufffd" in record[1] for _, record in read(path)[0])
