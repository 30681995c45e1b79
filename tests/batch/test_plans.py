"""Plans: estimates from a calibration, and processors that differ."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np
import pytest

import dala
from dala import batch, samples
from dala.batch.planning import plans as calibration
from dala.batch.planning.plans import BatchPlan, MeasuredSpeed, Sampled, calibrate
from dala.batch.runners import Resources
from dala.batch.tasks import BatchTask, Failed, Finished, Progressed, Result
from dala.errors import BatchError, ParameterError
from dala.media import Frame, video

# processors ---------------------------------------------------------------------------------------
OLD = {"sse4.1": True, "avx": True}
AVX2 = {**OLD, **dict.fromkeys(("avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"), True)}
NEW = {**AVX2, **{f"avx512{name}": True for name in ("f", "bw", "cd", "dq", "vl")}}


@pytest.fixture
def processor(monkeypatch):
    """Set the features that this processor seems to have."""
    from dala.batch import environment
    from dala.gpu.compute.engines.cpu import level
    from dala.media.video import encode

    monkeypatch.setenv("DALA_CPU", "")
    monkeypatch.setattr(level, "is_x86", lambda: True)
    monkeypatch.setattr(environment.platform, "machine", lambda: "x86_64")

    def seem(features):
        os.environ["DALA_CPU"] = ""
        environment._facts.cache_clear()
        monkeypatch.setattr(level, "host_features", lambda: features)
        monkeypatch.setattr(encode, "has_instructions", lambda name: bool(features.get(name)))

    yield seem
    environment._facts.cache_clear()


@pytest.mark.parametrize(
    ("planned", "here", "used"),
    [
        (AVX2, AVX2, ""),
        (AVX2, NEW, "avx2"),  # a newer processor acts as an older one
        ({}, NEW, None),  # but x264 has no such level that is the same
        (NEW, AVX2, None),
        (OLD, AVX2, None),
    ],
    ids=["same", "newer", "oldest", "older", "between"],
)
def test_processors_that_differ_are_pinned_or_refused(processor, planned, here, used):
    from dala.batch.environment import adopt_environment, check_environment, environment

    processor(planned)
    plan = environment("cpu", "libx264")
    processor(here)
    adopt_environment(plan)
    if used is not None:
        check_environment(plan)
        assert os.environ["DALA_CPU"] == used
        return
    with pytest.raises(BatchError, match=r"cannot take part: .*(level|encoder) is '"):
        check_environment(plan)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="x86 has levels")
def test_the_level_is_chosen_for_all_code(processor, monkeypatch):
    from dala.batch.environment import adopt_environment, environment
    from dala.gpu.compute.engines.cpu import jit, level

    processor(AVX2)
    plan = environment("cpu")
    assert plan["CPU level"] == "avx2"
    processor(NEW)
    adopt_environment(plan)
    assert environment("cpu") == plan
    monkeypatch.setenv("DALA_CPU", "sse")  # which every x86 processor has
    found = jit._chosen()
    assert (found.cpu, found.features.get("avx512f", False)) == (level.LEVELS["sse"][0], False)
    monkeypatch.setenv("DALA_CPU", "mmx")
    with pytest.raises(ParameterError, match=r"cpu: DALA_CPU must be .*sse, got 'mmx'"):
        jit._chosen()


# estimates ----------------------------------------------------------------------------------------
class Clock:
    """A runner: a process starts in 2 s and takes 0.1 s for a frame, half of it of processors."""

    def __init__(self, resources, count):
        self.now, self.tasks, self.count = 100.0, [], count
        Clock.last = self

    def start(self):
        pass

    def submit(self, task):
        self.tasks.append([task, 0, self.now + (2.0 if self.now == 100.0 else 0.0)])

    def wait(self, seconds):
        self.now += 0.5
        events = []
        for one in list(self.tasks):
            task, _, began = one
            frames = min(20, int((self.now - began) / 0.1 + 1e-6))
            if frames <= 0:
                continue
            Path(task.work).mkdir(exist_ok=True)
            Path(task.work, "part").write_bytes(bytes(50 * frames))
            used = 0.05 * frames + (1.5 if began == 102.0 else 0.0)
            if frames < 20:
                events.append(Progressed(task.id, frames, used))
            else:
                self.tasks.remove(one)
                events.append(Finished(task.id, Result(task.id, 20, 2.0, used, 0, 1000)))
        return events

    def stop(self, cancel):
        self.stopped = cancel


def test_the_speed_is_that_of_a_long_run(monkeypatch):
    monkeypatch.setattr(calibration, "LocalRunner", Clock)
    monkeypatch.setattr(calibration.time, "monotonic", lambda: Clock.last.now if begun else 100.0)
    begun = []

    def sample(number, folder):
        begun.append(folder)
        return BatchTask("plan", "pictures", "", folder, {}, {})

    found = calibrate(Resources(workers=3), 2, sample)
    assert found is not None
    assert (len(begun), found.processes, Clock.last.stopped) == (2, 2, True)
    # The first seconds do not count.
    assert found.seconds == pytest.approx(0.1, rel=0.05)
    assert found.cpu == pytest.approx(0.05, rel=0.05)
    assert found.start == pytest.approx(2.0, rel=0.1)
    assert found.start_cpu == pytest.approx(1.5, rel=0.1)
    assert found.bytes == 50


def test_samples_that_fail_leave_no_estimate(monkeypatch):
    class Failing(Clock):
        def wait(self, seconds):
            self.now += 0.5
            return [Failed(task.id, "no", "worker") for task, *_ in self.tasks]

    monkeypatch.setattr(calibration, "LocalRunner", Failing)
    task = BatchTask("plan-0", "pictures", "", "", {}, {})
    assert calibrate(Resources(workers=1), 1, lambda number, folder: task) is None


def test_chunks_are_whole():
    """Three chunks take two workers as long as four."""
    plan = BatchPlan("videos", chunks=3)
    plan.estimate(MeasuredSpeed(0.1, 0.05, 10.0, 2.0, 1.5, 2), 300, Resources(workers=2))
    assert plan.minutes == pytest.approx((20 + 2) / 60)
    assert plan.worker_minutes == pytest.approx((30 + 2) / 60)
    assert plan.cpu_minutes == pytest.approx((15 + 3) / 60)
    assert (plan.bytes_written, plan.workers) == (3000, 2)
    sampled = Sampled[int](10)
    for number in range(1000):
        sampled.add(number)
    assert sampled.kept == sorted(sampled.kept)
    assert 250 < sum(sampled.kept) / 10 < 750


def test_pictures_and_tables_are_estimated(tmp_path, monkeypatch):
    monkeypatch.setattr(calibration, "_ENOUGH", 0.2)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # one process
    (tmp_path / "in").mkdir()
    for number in range(6):
        pixels = np.random.default_rng(number).integers(0, 255, (24, 32, 3), np.uint8)
        Frame.from_array(pixels).save(tmp_path / "in" / f"{number}.png")
    job = batch.images(tmp_path / "in", out=f"{tmp_path}/out/{{path}}.png", chain=["invert"],
                       device="cpu")  # fmt: skip
    plan = job.plan()
    assert plan.minutes is not None
    assert plan.minutes * 60 < 60
    assert not (tmp_path / "out").exists()
    assert job.run(workers=1).ok
    made = sum(path.stat().st_size for path in (tmp_path / "out").glob("*.png"))
    assert plan.bytes_written == pytest.approx(made, rel=0.05)
    pytest.importorskip("pyarrow")
    with dala.device("cpu"):
        face = samples.photo("astronaut").numpy()[:256:2, 128:384:2, :3]
    with video.write(tmp_path / "film.mp4", fps=10) as sink:
        for _ in range(20):
            sink.write(np.ascontiguousarray(face))
    table = batch.faces(tmp_path / "film.mp4", every="200ms", device="cpu", out=tmp_path / "found")
    plan = table.plan()
    assert (plan.files, plan.frames) == (1, 10)
    assert plan.cpu_minutes is not None
    assert plan.cpu_minutes > 0
