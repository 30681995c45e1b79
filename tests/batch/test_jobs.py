"""Jobs: one result for any workers, failures, resuming, two drivers, what is refused."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dala import batch
from dala.batch import storage
from dala.batch.manifest import Manifest
from dala.batch.runners import Resources
from dala.batch.runners.local import LocalRunner
from dala.batch.storage import records
from dala.batch.tasks import BatchTask, Started, run_task
from dala.errors import BatchError
from tests.batch.films import assert_same_frames, digests, job_of, run_inline
from tests.support.clips import clip, shown, sound_packets
from tests.support.inline import InlineRunner, LostWorker


def test_results_are_complete(films, reference, tmp_path):
    assert sorted(reference) == ["long.mp4", "more/other.mp4", "more/short.mp4"]
    report = run_inline(job_of(films, tmp_path), InlineRunner())
    assert digests(tmp_path) == reference
    times, numbers = shown(tmp_path / "long.mp4")
    assert times == shown(films / "long.mp4")[0]
    assert [255 - n for n in numbers] == list(range(40))
    assert sound_packets(tmp_path / "long.mp4") == sound_packets(films / "long.mp4")
    assert str(report).startswith("3 files, 62 frames in ")
    # What remains is the manifest: no packets, and no unfinished files.
    left = [path.name for path in (tmp_path / ".dala-batch").rglob("*") if path.is_file()]
    assert all(name.endswith(".json") for name in left)


def test_processes_give_the_same_bytes(films, reference, tmp_path):
    report = job_of(films, tmp_path).run(workers=2)
    assert report.ok, report.failures
    assert report.on == "local (2 processes)"
    assert digests(tmp_path) == reference


def test_a_killed_process_is_replaced(films, reference, tmp_path):
    class Killing(LocalRunner):
        left = 2

        def wait(self, seconds):
            events = super().wait(seconds)
            for event in events:
                if isinstance(event, Started) and event.id[-2:] in ("-1", "-2") and self.left:
                    self.left -= 1
                    os.kill(int(event.worker.split()[-1]), signal.SIGKILL)
            return events

    runner = Killing(Resources(workers=2))
    runner.start()
    try:
        report = run_inline(job_of(films, tmp_path), runner)
    finally:
        processes = runner.processes
        runner.stop(cancel=True)
    assert report.ok, report.failures
    assert (report.lost, runner.left) == (2, 0)
    assert digests(tmp_path) == reference
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_a_job_goes_on_after_a_stop(films, reference, tmp_path):
    done = []

    def stop(task):
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(task.id)

    with pytest.raises(KeyboardInterrupt):
        run_inline(job_of(films, tmp_path), InlineRunner(stop))
    assert "long.mp4" not in digests(tmp_path)
    runner = InlineRunner()
    report = run_inline(job_of(films, tmp_path), runner, resume=True)
    assert report.ok, report.failures
    assert report.resumed == 4
    assert not set(done) & set(runner.begun)
    assert digests(tmp_path) == reference
    # All is done: nothing is begun, and nothing is lost.
    again = InlineRunner()
    report = run_inline(job_of(films, tmp_path), again, resume=True)
    assert (again.begun, report.files, report.frames) == ([], 3, 0)
    (tmp_path / "more" / "short.mp4").unlink()
    run_inline(job_of(films, tmp_path), InlineRunner(), resume=True)
    assert digests(tmp_path) == reference


def test_records_are_listed_once(films, reference, tmp_path, monkeypatch):
    """A job that begins asks for no record; one that goes on lists them."""
    asked = []
    read = storage.read_bytes

    def counted(name, *most):
        if "/done/" in name:
            asked.append(name)
        return read(name, *most)

    monkeypatch.setattr(storage, "read_bytes", counted)
    job = job_of(films, tmp_path)
    manifest = Manifest(job.work)
    manifest.begin(job.header(), resume=False)
    for step in job.tasks(manifest):
        assert job.finished(step, manifest) is None
    assert asked == []
    assert run_inline(job, InlineRunner()).ok
    manifest = Manifest(job.work)
    assert manifest.begin(job.header(), resume=True)
    assert manifest.finished("no such task") is None
    assert asked == [name for name in asked if name.endswith("-stitch.json")]
    assert all(job.finished(step, manifest) is not None for step in job.tasks(manifest))


def test_many_random_failures(films, reference, tmp_path):
    random = np.random.default_rng(7)

    def fail(task):
        choice = random.random()
        if choice < 0.2:
            raise LostWorker("the worker is gone")
        if choice < 0.4:
            raise OSError(503, "slow down")
        if choice < 0.45:
            raise KeyboardInterrupt

    report = None
    for _ in range(40):
        with contextlib.suppress(KeyboardInterrupt):
            report = run_inline(job_of(films, tmp_path), InlineRunner(fail), resume=True, retries=9)
            if report.ok:
                break
    assert report is not None
    assert report.ok
    assert digests(tmp_path) == reference


def test_a_part_that_keeps_failing_is_reported_with_its_time(films, reference, tmp_path):
    tried = []

    def fail(task):
        if task.kind == "video" and task.part["number"] == 2:
            tried.append(task.label)
            raise OSError(errno.EIO, "Input/output error")

    report = run_inline(job_of(films, tmp_path), InlineRunner(fail))
    assert len(tried) == 3
    (failure,) = report.failures
    assert failure.label == tried[0]
    assert re.fullmatch(r".*/long.mp4, 0.\d+ to 1.\d+ s", failure.label)
    assert failure.tries == 3
    assert "Input/output error" in str(failure)
    made = digests(tmp_path)
    assert made == {k: v for k, v in reference.items() if k != "long.mp4"}
    with pytest.raises(BatchError, match=r"1 failed: .*long.mp4, 0.\d+ to 1"):
        report.check()
    # The parts that were done are kept for the next run.
    runner = InlineRunner()
    assert run_inline(job_of(films, tmp_path), runner, resume=True).ok
    assert digests(tmp_path) == reference


def test_a_worker_that_takes_others_down_is_given_up(films, tmp_path):
    def fail(task):
        if task.kind == "video" and task.part["number"] == 1:
            raise LostWorker("its worker ended by signal 9")

    report = run_inline(job_of(films, tmp_path), InlineRunner(fail))
    assert len(report.failures) == 1
    assert report.lost > 3
    assert "signal 9" in str(report.failures[0])


def test_a_full_disk(films, reference, tmp_path, monkeypatch):
    real = storage.writing

    @contextlib.contextmanager
    def full(name, suffix="", base=""):
        with real(name, suffix, base) as path:
            yield path
            if "long.mp4" in name or "/parts/" in name:
                raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(storage, "writing", full)
    report = run_inline(job_of(films, tmp_path), InlineRunner(), retries=1)
    monkeypatch.undo()
    assert any("No space left" in str(failure) for failure in report.failures)
    assert digests(tmp_path) == {k: v for k, v in reference.items() if k != "long.mp4"}
    assert run_inline(job_of(films, tmp_path), InlineRunner(), resume=True).ok
    assert digests(tmp_path) == reference


def test_unreadable_videos_do_not_stop_others(tmp_path):
    (tmp_path / "in").mkdir()
    clip(tmp_path / "in" / "good.mp4", 10)
    (tmp_path / "in" / "bad.mp4").write_bytes(b"no video at all" * 20)
    (tmp_path / "in" / "empty.mkv").write_bytes(b"")
    report = run_inline(job_of(tmp_path / "in", tmp_path / "out"), InlineRunner(), retries=0)
    assert sorted(digests(tmp_path / "out")) == ["good.mp4"]
    names = sorted(os.path.basename(failure.label) for failure in report.failures)
    assert names == ["bad.mp4", "empty.mkv"]
    plan = job_of(tmp_path / "in", tmp_path / "out").plan(calibrate=False)
    assert (plan.files, plan.frames, len(plan.unreadable)) == (3, 10, 2)


def test_a_video_that_changes_is_noticed(films, tmp_path):
    source = tmp_path / "in" / "a.mp4"
    source.parent.mkdir()
    clip(source, 30, gop=8)
    changed = []

    def change(task):
        if task.kind == "video" and not changed:
            changed.append(clip(source, 20, gop=8))

    report = run_inline(job_of(source.parent, tmp_path / "out"), InlineRunner(change), retries=0)
    assert any("has changed since the job was planned" in str(f) for f in report.failures)
    assert digests(tmp_path / "out") == {}


def test_other_versions_are_refused_by_name(films, tmp_path):
    job = job_of(films, tmp_path)
    task = next(job.tasks(Manifest(job.work)))
    wrong = BatchTask.from_json(task.to_json().replace(f'"PyAV":"{task.environment["PyAV"]}"',
                                                       '"PyAV":"1.0"'))  # fmt: skip
    with pytest.raises(BatchError, match=rf"worker .*:{os.getpid()} cannot take part: PyAV is "):
        run_task(wrong)
    header = job.header()
    manifest = Manifest(job.work)
    assert not manifest.begin(header, resume=True)
    assert manifest.begin(header, resume=True)
    with pytest.raises(BatchError, match="cannot be resumed: environment differ"):
        manifest.begin({**header, "environment": {"PyAV": "1.0"}}, resume=True)


def test_two_drivers_notice_each_other(tmp_path):
    manifest = Manifest(str(tmp_path))
    alone = rf"another driver \(process {os.getpid()} on "
    with manifest.hold(), pytest.raises(BatchError, match=alone), Manifest(str(tmp_path)).hold():
        pytest.fail("two drivers")
    sign = {"machine": "x", "process": 1, "token": "t", "job": "j", "since": 0, "beat": 0}
    here = os.uname().nodename
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                           capture_output=True, text=True, check=True)  # fmt: skip
    # One that was silent for long, and one of this machine that has ended, do not count.
    for other in (
        {"beat": time.time() - 60},
        {"beat": time.time(), "machine": here, "process": int(ended.stdout)},
    ):
        records.write(manifest.file("driver.json"), {**sign, **other})
        with manifest.hold():
            pass
    records.write(manifest.file("driver.json"), {**sign, "beat": time.time()})
    with pytest.raises(BatchError, match=r"process 1 on x"), manifest.hold():
        pass


def test_frames_are_those_of_dala_filter(films, tmp_path):
    from dala.cli import main

    source = films / "long.mp4"
    chain = ["--invert", "--blur", "2"]
    assert main(["filter", str(source), str(tmp_path / "a.mkv"), *chain, "--codec", "ffv1",
                 "--device", "cpu"]) == 0  # fmt: skip
    job = batch.videos(source, out=tmp_path / "b.mkv", chain=["invert", ("blur", {"radius": 2})],
                       codec="ffv1", chunk=0.4, device="cpu")  # fmt: skip
    assert run_inline(job, InlineRunner()).ok
    assert_same_frames(tmp_path / "a.mkv", tmp_path / "b.mkv")
    assert sound_packets(tmp_path / "a.mkv") == sound_packets(tmp_path / "b.mkv")
