"""A job whose machine loses power at any moment goes on: nothing is lost, wrong, or stuck."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys

import numpy as np
import pytest

from dala.batch import pictures, storage
from dala.batch.manifest import Manifest
from dala.batch.storage import holding, records
from dala.errors import BatchError
from dala.media import Frame, parts
from tests.batch.films import digests, job_of, run_inline
from tests.batch.test_done import images
from tests.support.clips import clip
from tests.support.inline import InlineRunner
from tests.support.power import Promise, Recorder

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="it reads /proc")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Small groups, one thread that writes, no signs of life."""
    monkeypatch.setattr(pictures, "_MOST", 2)
    monkeypatch.setattr(pictures, "_TIMES", 1)
    monkeypatch.setattr(pictures, "_AHEAD", 1)
    monkeypatch.setattr(holding, "_BEAT", 600)
    monkeypatch.setattr(holding, "_PAUSE", 0)
    monkeypatch.setattr(os, "fsync", lambda number: None)  # the model is the disk
    # The machine has started again: the process is another one.
    monkeypatch.setattr(holding.Sign, "is_alive", lambda sign: False)


@pytest.fixture
def no_hang():
    def end(*_):
        raise TimeoutError("the job hangs")

    before = signal.signal(signal.SIGALRM, end)
    yield lambda: signal.alarm(60)
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def counted(capsys):
    def show(recorder, states):
        with capsys.disabled():
            sys.stdout.write(f"\n{len(recorder.ops)} operations, {states} states\n")

    return show


def finished(folder):
    """The results, without what unfinished files have left."""
    return {name: value for name, value in digests(folder).items() if ".dala.part" not in name}


def shots(folder, count):
    folder.mkdir()
    for n in range(count):
        Frame.from_array(np.full((2, 2, 4), 40 + n, np.uint8)).save(folder / f"{n}.png")
    return folder


def recorded(monkeypatch, out, work):
    """Record what some work does in a folder; a promise for each record of a task."""
    recorder = Recorder(out)
    real = Manifest.record

    def record(self, result, files=()):
        real(self, result, files)
        recorder.promise([os.path.relpath(name, out) for name in files])

    with recorder.recording(monkeypatch), monkeypatch.context() as patch:
        patch.setattr(Manifest, "record", record)
        work()
    return recorder


def resumed(make):
    """Go on with a job; where another plan was begun, from the beginning."""
    parts._searched.clear()  # as in a new process
    runner = InlineRunner()
    with contextlib.suppress(BatchError):  # "cannot be resumed: environment differ"
        return run_inline(make(), runner, resume=True)
    return run_inline(make(), runner)


def try_all(recorder, out, make, expected, old, no_hang, most, seed=1):
    """Cut the power everywhere, or in so many states; return how many there were."""
    states = recorder.states(seed)
    if most:
        every = list(states)
        states = every[:1] + random.Random(seed).sample(every[1:-1], min(most, len(every)) - 2)
        states.append(every[-1])
    count = 0
    for end, tree in states:
        count += 1
        recorder.restore(tree)
        promised = [op.what for op in recorder.ops[:end] if isinstance(op, Promise)]
        there = finished(out)
        for name, value in there.items():  # whole, whatever happens
            assert value in (expected.get(name), old.get(name)), (end, name)
        for name in (name for names in promised for name in names if name in expected):
            assert there.get(name) == expected[name], (end, name)
        no_hang()
        report = resumed(make)
        assert report.ok, (end, report.failures)
        assert finished(out) == expected, end
        if not old and "b.mp4" not in expected:  # of a video that is done no part is asked for
            assert report.resumed >= len(promised), end
    return count


def interrupted_and_resumed(make):
    """Two runs: one that is stopped in the middle, and one that goes on."""
    begun = []

    def stop(task):
        begun.append(task.id)
        if len(begun) == 2:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        run_inline(make(), InlineRunner(stop))
    assert run_inline(make(), InlineRunner(), resume=True).ok


def new_job(tmp_path, monkeypatch, count=5):
    source, out, whole = shots(tmp_path / "in", count), tmp_path / "out", tmp_path / "whole"
    assert run_inline(images(source, whole), InlineRunner()).ok
    out.mkdir()
    make = lambda: images(source, out)  # noqa: E731
    recorder = recorded(monkeypatch, out, lambda: interrupted_and_resumed(make))
    return recorder, out, make, finished(whole), {}


def old_plan(tmp_path, monkeypatch, count=5):
    """A run over the finished one of another plan, which has made other bytes."""
    source, out = shots(tmp_path / "in", count), tmp_path / "out"
    make = lambda: images(source, out)  # noqa: E731
    assert run_inline(make(), InlineRunner()).ok
    expected = finished(out)
    manifest = Manifest(make().work)
    for task in make().tasks(manifest):
        files = []
        for name in make().results_of(task):
            Frame.from_array(np.full((2, 2, 4), 7, np.uint8)).save(name)
            facts = storage.facts(name)
            files.append([facts.size, facts.stamp, digests(out)[os.path.relpath(name, out)][:32]])
        path = manifest.file("done", f"{task.id}.json")
        records.write(path, records.read(path, dict, pytest.fail) | {"files": files})
        assert manifest.finished(task.id, make().results_of(task)) is not None
    header = make().header()
    records.write(manifest.file("plan.json"), {**header, "environment": {"PyAV": "old"}})
    old = finished(out)
    assert not set(old.values()) & set(expected.values())
    recorder = recorded(monkeypatch, out, lambda: run_inline(make(), InlineRunner()))
    return recorder, out, make, expected, old


@pytest.mark.parametrize("scenario", [new_job, old_plan])
def test_power_cuts(tmp_path, monkeypatch, no_hang, scenario):
    made = scenario(tmp_path, monkeypatch)
    assert try_all(*made, no_hang, 200) >= 100


@pytest.mark.long
@pytest.mark.parametrize("scenario", [new_job, old_plan])
def test_all_power_cuts(tmp_path, monkeypatch, no_hang, scenario, counted):
    made = scenario(tmp_path, monkeypatch, 20)
    counted(made[0], try_all(*made, no_hang, 10_000))


@pytest.mark.long
def test_power_cuts_of_videos(tmp_path, monkeypatch, no_hang, counted):
    source, out, whole = tmp_path / "in", tmp_path / "out", tmp_path / "whole"
    source.mkdir()
    out.mkdir()
    clip(source / "a.mp4", 12, gop=4)
    clip(source / "b.mkv", 4)
    assert run_inline(job_of(source, whole, chunk=0.2), InlineRunner()).ok
    make = lambda: job_of(source, out, chunk=0.2)  # noqa: E731
    recorder = recorded(monkeypatch, out, lambda: interrupted_and_resumed(make))
    counted(recorder, try_all(recorder, out, make, finished(whole), {}, no_hang, 1_000))


@pytest.mark.long
def test_the_model_finds_what_is_not_synced(tmp_path, monkeypatch, no_hang):
    """Without any of the three kinds of sync, something is lost or wrong."""
    from dala.batch.storage import beneath, local

    for place, name in ((local, "sync"), (beneath, "sync"), (local.LocalPlace, "settle")):
        (tmp_path / f"{place.__name__}").mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(place, name, lambda *given: None)
            made = new_job(tmp_path / place.__name__, monkeypatch)
        with pytest.raises(AssertionError):
            try_all(*made, no_hang, None)


def test_records_are_json(tmp_path):
    records.write(str(tmp_path / "a.json"), {"id": "a"})
    assert json.loads((tmp_path / "a.json").read_bytes())["record"] == {"id": "a"}
