"""Jobs on a real Ray cluster of three nodes on this machine, with workers and a node killed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import dala
from dala import batch
from dala.batch.jobs import BatchJob
from dala.batch.manifest import Manifest
from dala.batch.runners import Resources, make_runner
from dala.batch.runners import ray as ray_runner
from dala.batch.runners.ray import RayRunner
from dala.batch.tasks import BatchTask, Event, Failed, Finished
from dala.cli import main
from dala.errors import BatchError, ParameterError
from dala.media import video
from tests.support.cluster import RayNodes, ray_nodes


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    pytest.importorskip("ray")
    with ray_nodes(3) as made:
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a video of eight seconds, which is eight parts."""
    made = tmp_path_factory.mktemp("films")
    rng = np.random.default_rng(1)
    with video.write(made / "film.mp4", fps=20, options={"g": "10", "crf": "10"}) as sink:
        for k in range(160):
            picture = np.full((48, 64, 3), k, np.uint8)
            picture[8:40, k // 4 : k // 4 + 20] = rng.integers(0, 255, 3)
            sink.write(picture)
    return made


def job(folder: Path, out: str) -> BatchJob:
    return batch.videos(
        str(folder / "film.mp4"), out=str(folder / out / "{stem}.mp4"), chain=["invert"],
        chunk="1s", crf=12, threads=1, device="cpu",
    )  # fmt: skip


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / "film.mp4").read_bytes()).hexdigest()


def frames(path: Path) -> list[tuple[Fraction, np.ndarray]]:
    with dala.device("cpu"), video.open(path) as reader:
        return [(frame.time, frame.numpy()[..., :3].astype(int)) for frame in reader]


@pytest.fixture(scope="module")
def local(folder: Path) -> str:
    """The result of one local process."""
    job(folder, "local").run(workers=1).check()
    return digest(folder / "local")


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


@pytest.mark.long
def test_killed_workers_and_nodes_change_nothing(
    nodes: RayNodes, folder: Path, local: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Event] = []

    def happen(runner: RayRunner, new: list[Event]) -> None:
        before = sum(isinstance(e, Finished) for e in events)
        events.extend(new)
        done = sum(isinstance(e, Finished) for e in events)
        if before < 2 <= done:
            os.kill(int(next(runner.busy).rpartition(":")[2]), signal.SIGKILL)
        if before < 4 <= done:
            nodes.kill(1)

    from ray.util import metrics

    counted: Counter[str] = Counter()
    inc = metrics.Counter.inc

    def counting(self: Any, value: float = 1.0, tags: dict[str, str] | None = None) -> None:
        inc(self, value, tags)
        counted[" ".join([self.info["name"], *(tags or {}).values()])] += round(value)

    monkeypatch.setattr(metrics.Counter, "inc", counting)
    when(monkeypatch, happen)
    report = job(folder, "ray").run(on="ray", retries=0, metrics=True)
    report.check()
    assert counted == {
        "dala_batch_frames": report.frames,
        "dala_batch_tasks done": report.tasks,
        "dala_batch_tasks tried again": report.retries,
    }
    assert report.files == 1
    assert "the Ray that is initialized" in report.on
    assert report.lost >= 1
    assert any(isinstance(e, Failed) and e.lost and "was lost" in e.error for e in events)
    assert digest(folder / "ray") == local


def test_frames_are_those_of_dala_filter(folder: Path, local: str) -> None:
    """Apart from the loss of the encoder, which sees other groups of pictures."""
    out = folder / "filtered.mp4"
    assert main(["filter", str(folder / "film.mp4"), str(out), "--invert", "--crf", "12",
                 "--device", "cpu"]) == 0  # fmt: skip
    found, expected = frames(folder / "local" / "film.mp4"), frames(out)
    assert [time for time, _ in found] == [time for time, _ in expected]
    assert len(found) == 160
    for (_, one), (_, other) in zip(found, expected, strict=True):
        assert np.abs(one - other).mean() < 2.0


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
    assert not (folder / "refused" / "film.mp4").exists()


@pytest.mark.long
def test_ctrl_c_ends_the_workers_and_the_job_can_be_resumed(
    nodes: RayNodes, folder: Path, local: str, monkeypatch: pytest.MonkeyPatch
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
    report.check()
    assert report.resumed >= 1
    assert digest(folder / "stopped") == local


def test_what_the_cluster_does_not_have_is_named(
    nodes: RayNodes, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_runner, "_PATIENCE", -1.0)
    monkeypatch.setattr(ray_runner, "_LOOK", 0.0)
    with pytest.raises(BatchError, match=r"no machine of the cluster has 1 CPUs, 2 GPUs"):
        job(folder, "gpus").run(on="ray", gpus=2)
    with pytest.raises(BatchError, match=r"has 99 CPUs for a task"):
        job(folder, "cpus").run(on="ray", cpus=99)


def test_tasks_take_no_more_cpus_than_the_largest_machine_has(
    nodes: RayNodes, folder: Path, local: str
) -> None:
    """Nodes have one CPU each; three threads were refused."""
    made = batch.videos(
        str(folder / "film.mp4"), out=str(folder / "small" / "{stem}.mp4"), chain=["invert"],
        chunk="4s", crf=12, threads=3, device="cpu",
    )  # fmt: skip
    with pytest.warns(UserWarning, match=r"no machine has 3 CPUs.* takes 1\."):
        made.run(on="ray").check()
    assert (folder / "small" / "film.mp4").exists()


@pytest.mark.parametrize(
    ("machines", "more", "expected"),
    [
        ([{"CPU": 1.0}, {"CPU": 2.0}, {}], {}, (2.0, [0, 1, 0])),
        ([{"CPU": 8.0}, {"CPU": 2.0}], {}, (3.0, [2, 0])),
        ([{"CPU": 2.5}, {"CPU": 2.0}], {}, (2.0, [1, 1])),
        ([{"CPU": 0.5}], {}, (0.5, [1])),
        ([{}], {}, (3.0, [0])),
        # Machines that lack something else do not count.
        ([{"CPU": 2.0, "GPU": 1.0}, {"CPU": 4.0}], {"gpus": 1.0}, (2.0, [1, 0])),
        ([{"CPU": 1.0, "memory": 2e9}, {"CPU": 2.0}], {"memory": 10**9}, (1.0, [1, 0])),
        # What was asked for is not changed.
        ([{"CPU": 1.0}], {"cpus": 3.0}, (3.0, [0])),
    ],
)
def test_cpus_of_a_task(
    machines: list[dict[str, float]],
    more: dict[str, Any],
    expected: tuple[float, list[int]],
    recwarn: pytest.WarningsRecorder,
) -> None:
    class Listing:
        def nodes(self) -> list[dict[str, object]]:
            return [
                {"NodeID": str(n), "Alive": True, "Resources": resources}
                for n, resources in enumerate(machines)
            ]

    runner = RayRunner("ray", Resources(threads=3, **more))
    runner._ray = Listing()
    runner._look()
    runner._look()
    assert (runner._cpus, [node.room for node in runner._nodes.values()]) == expected
    assert len(recwarn) == (expected[0] != 3.0)


def test_a_machine_that_joins_later_is_fitted() -> None:
    class Listing:
        found: ClassVar[list[dict[str, object]]] = []

        def nodes(self) -> list[dict[str, object]]:
            return self.found

    runner = RayRunner("ray", Resources(threads=3))
    runner._ray = Listing()
    for id, cpus, room in (("head", 0.0, [0]), ("a", 1.0, [0, 1]), ("b", 4.0, [0, 1, 4])):
        Listing.found.append({"NodeID": id, "Alive": True, "Resources": {"CPU": cpus}})
        with contextlib.nullcontext() if id != "a" else pytest.warns(UserWarning, match="takes 1"):
            runner._look()
        assert [node.room for node in runner._nodes.values()] == room


def test_another_address_than_that_of_this_process(nodes: RayNodes, folder: Path) -> None:
    with pytest.raises(BatchError, match=r"Ray is already initialized with .*, not 127.0.0.9:1"):
        job(folder, "other").run(on="127.0.0.9:1")


def test_metrics_are_those_of_a_cluster(folder: Path) -> None:
    with pytest.raises(ParameterError, match="metrics must be False, as this is no Ray cluster"):
        job(folder, "none").run(metrics=True)


def test_an_address_without_ray(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens there: that is said at once, and nothing is started."""
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    expected = rf"no Ray can be used at ray://127.0.0.1:{port} \(.*refused\)"
    with pytest.raises(BatchError, match=expected):
        job(folder, "none").run(on=f"ray://127.0.0.1:{port}")
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
    with pytest.raises(BatchError, match=rf"no Ray can be used at 127.0.0.1:{port}"):
        job(folder, "none").run(on="ray")


def test_a_cluster_that_can_grow_is_asked_for_room(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ray.autoscaler import sdk

    asked: list[tuple[int, dict[str, float]]] = []

    def request(bundles: list[dict[str, float]]) -> None:
        asked.append((len(bundles), bundles[0] if bundles else {}))

    monkeypatch.setattr(sdk, "request_resources", request)
    made = job(folder, "grown")
    task = next(step for step in made.tasks(Manifest(made.work)) if isinstance(step, BatchTask))
    runner = RayRunner("ray", Resources(workers=5, threads=2, gpus=0.5, memory=1000))
    runner._ray = True
    runner._nodes["a"] = ray_runner._Node("a", "a", room=2)
    for number in range(4):
        runner.submit(replace(task, id=str(number)))
        runner._grow()
    # There is room for two: nothing is asked before the third, and the same not twice.
    bundle = {"CPU": 2.0, "GPU": 0.5, "memory": 1000.0}
    assert asked == [(3, bundle), (4, bundle)]
    for number in range(4, 9):
        runner.submit(replace(task, id=str(number)))
        runner._grow()
    assert asked[2:] == [(5, bundle)]  # no more than workers
    runner.stop(cancel=True)
    assert asked[3:] == [(0, {})]


def test_memory_of_this_process_is_refused() -> None:
    from dala.batch.tasks import BatchTask

    runner = make_runner("ray", Resources(workers=1))
    task = BatchTask("a", "pictures", "a", "memory://work", {}, {}, roots=("memory://work",))
    with pytest.raises(BatchError, match=r"memory://work is in the memory of this process"):
        runner.submit(task)


def test_tasks_are_small(folder: Path) -> None:
    """Descriptors travel: no task has more than a few kilobytes, and nothing but text."""
    from dala.batch.manifest import Manifest

    made = job(folder, "small")
    for task in made.tasks(Manifest(made.work)):
        text = task.to_json()
        assert len(text) < 4096
        assert type(task).from_json(text) == task
