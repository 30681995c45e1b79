"""Jobs on a real Ray cluster of three nodes on this machine, with workers and a node killed."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dala import batch
from dala.batch.events import Event, Failed, Finished
from dala.batch.jobs import BatchJob
from dala.batch.runners import Resources, make_runner
from dala.batch.runners import ray as ray_runner
from dala.batch.runners.ray import RayRunner
from dala.errors import BatchError
from tests.support.cluster import RayNodes, ray_nodes


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    pytest.importorskip("ray")
    with ray_nodes(3) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with 150 pictures in ``in``, which are a dozen tasks."""
    (tmp_path / "in").mkdir()
    generator = np.random.default_rng(1)
    for k in range(150):
        pixels = generator.integers(0, 255, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "in" / f"{k:03}.png")
    return tmp_path


def job(folder: Path, out: str) -> BatchJob:
    return batch.images(
        str(folder / "in"), out=str(folder / out / "{stem}.png"), chain=["invert"], device="cpu"
    )


def digests(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.glob("*.png")}


def when(
    monkeypatch: pytest.MonkeyPatch, happen: Callable[[RayRunner, list[Event]], None]
) -> list[RayRunner]:
    """Call a function with the events of each wait; return the list of runners that waited."""
    seen: list[RayRunner] = []
    wait = RayRunner.wait

    def watched(self: RayRunner, seconds: float) -> list[Event]:
        if self not in seen:
            seen.append(self)
        events = wait(self, seconds)
        happen(self, events)
        return events

    monkeypatch.setattr(RayRunner, "wait", watched)
    return seen


def test_killed_workers_and_nodes_change_nothing(
    nodes: RayNodes, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = job(folder, "local").run(workers=1)
    assert expected.files == 150
    events: list[Event] = []

    def happen(runner: RayRunner, new: list[Event]) -> None:
        before = sum(isinstance(e, Finished) for e in events)
        events.extend(new)
        done = sum(isinstance(e, Finished) for e in events)
        if before < 1 <= done:
            os.kill(int(next(runner.busy).rpartition(":")[2]), signal.SIGKILL)
        if before < 2 <= done:
            nodes.kill(1)

    when(monkeypatch, happen)
    report = job(folder, "ray").run(on="ray", retries=0)
    assert report.ok, report.failures
    assert report.files == 150
    assert "the Ray that is initialized" in report.on
    assert report.lost >= 1
    assert any(isinstance(e, Failed) and e.lost and "was lost" in e.error for e in events)
    assert digests(folder / "ray") == digests(folder / "local")


@pytest.mark.long
def test_workers_that_differ_from_the_plan_are_refused(nodes: RayNodes, folder: Path) -> None:
    made = job(folder, "refused")
    made.environment = {**made.environment, "PyAV": "0.0.1"}
    with (
        pytest.warns(UserWarning, match=r"the machine .* is not used"),
        pytest.raises(
            BatchError, match=r"no machine can take part.*PyAV is .* the plan has '0.0.1'"
        ),
    ):
        made.run(on="ray")
    assert not (folder / "refused").is_dir() or not list((folder / "refused").glob("*.png"))


@pytest.mark.long
def test_ctrl_c_ends_the_workers_and_the_job_can_be_resumed(
    nodes: RayNodes, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    handles = []

    def happen(runner: RayRunner, new: list[Event]) -> None:
        if any(isinstance(e, Finished) for e in new):
            handles.extend(slot.actor for slot in runner._slots)
            raise KeyboardInterrupt

    when(monkeypatch, happen)
    with pytest.raises(KeyboardInterrupt):
        job(folder, "stopped").run(on="ray")
    assert ray.is_initialized()  # it was not made by the job
    assert handles
    for actor in handles:
        with pytest.raises(ray.exceptions.RayActorError):
            ray.get(actor.progress.remote())
    monkeypatch.undo()
    report = job(folder, "stopped").run(on="local", workers=1, resume=True)
    assert report.ok
    assert report.resumed >= 1
    assert len(digests(folder / "stopped")) == 150


def test_what_the_cluster_does_not_have_is_named(
    nodes: RayNodes, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_runner, "_PATIENCE", -1.0)
    monkeypatch.setattr(ray_runner, "_LOOK", 0.0)
    with pytest.raises(BatchError, match=r"no machine of the cluster has 1 CPUs, 2 GPUs"):
        job(folder, "gpus").run(on="ray", gpus=2)
    with pytest.raises(BatchError, match=r"has 99 CPUs for a task"):
        job(folder, "cpus").run(on="ray", cpus=99)


def test_another_address_than_that_of_this_process(nodes: RayNodes, folder: Path) -> None:
    with pytest.raises(BatchError, match=r"Ray is already initialized with .*, not 127.0.0.9:1"):
        job(folder, "other").run(on="127.0.0.9:1")


def test_memory_of_this_process_is_refused(nodes: RayNodes) -> None:
    from dala.batch.tasks import BatchTask

    runner = make_runner("ray", Resources(workers=1))
    task = BatchTask("a", "pictures", "a", "memory://work", {}, {}, roots=("memory://work",))
    with pytest.raises(BatchError, match=r"memory://work is in the memory of this process"):
        runner.submit(task)


def test_tasks_are_small(folder: Path) -> None:
    """Descriptors travel: no task of the job has more than a few kilobytes."""
    from dala.batch.manifest import Manifest

    made = job(folder, "small")
    for task in made.tasks(Manifest(made.work)):
        assert len(task.to_json()) < 4096
        assert dataclasses.is_dataclass(task)
