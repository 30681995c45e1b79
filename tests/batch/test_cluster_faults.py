"""Two hundred kills and storage faults over one job, then a resumed run: nothing lost or twice.

Workers and nodes of a Ray cluster are killed, the driver is stopped, and the S3 server that holds
the videos answers with errors, loses answers or is slow.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dala import batch
from dala.batch import storage
from dala.batch.jobs import BatchJob
from dala.batch.runners.ray import RayRunner
from dala.batch.tasks import Event
from dala.errors import StorageError
from dala.media import video
from tests.support.cluster import ray_nodes
from tests.support.servers import s3_server

pytestmark = pytest.mark.long

FAULTS = 200
VIDEOS = 6


class Trouble:
    """What goes wrong, by a fixed generator, until there was enough."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count: Counter[str] = Counter()
        self.active = False
        self.rounds = 0

    def note(self, what: str) -> None:
        """Count a fault; with -s, show how far it is."""
        self.count[what] += 1
        if not sum(self.count.values()) % 20:
            sys.__stderr__.write(f"{dict(self.count)} in {self.rounds} runs\n")

    @property
    def enough(self) -> bool:
        return sum(self.count.values()) >= FAULTS

    def fate(self, method: str, path: str) -> str:
        """Return what becomes of a request."""
        if not self.active or self.enough or self.random.random() > 0.25:
            return ""
        what = self.random.choice(["503", "503", "500", "lost", "slow"])
        self.note(what)
        return what


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Videos of ten seconds."""
    folder = tmp_path_factory.mktemp("films")
    for number in range(VIDEOS):
        rng = np.random.default_rng(number)
        with video.write(folder / f"{number}.mp4", fps=10, options={"g": "5"}) as sink:
            for k in range(100):
                picture = np.full((48, 64, 3), 2 * k, np.uint8)
                picture[8:40, 10:50] = rng.integers(0, 255, 3)
                sink.write(picture)
    return folder


def job(source: str, out: str) -> BatchJob:
    return batch.videos(
        source, out=f"{out}/{{stem}}.mp4", chain=["invert"], chunk="0.5s", threads=1, device="cpu"
    )


def test_two_hundred_faults(
    films: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job(f"{films}/*.mp4", str(tmp_path / "local")).run(workers=1).check()
    expected = {p.name: p.read_bytes() for p in (tmp_path / "local").glob("*.mp4")}
    assert len(expected) == VIDEOS
    trouble = Trouble(11)
    with s3_server("films", trouble.fate) as options, ray_nodes(3) as nodes:
        storage.configure(options)
        try:
            for path in films.glob("*.mp4"):
                storage.write_bytes(f"s3://films/in/{path.name}", path.read_bytes())
            wait = RayRunner.wait

            def watched(self: RayRunner, seconds: float) -> list[Event]:
                events = wait(self, min(seconds, 0.2))
                busy = list(self.busy)
                if trouble.active and busy and not trouble.enough:
                    number = trouble.random.random()
                    if number < 0.08:
                        trouble.note("worker")
                        worker = trouble.random.choice(busy)
                        with contextlib.suppress(ProcessLookupError):  # gone with its node
                            os.kill(int(worker.rpartition(":")[2]), signal.SIGKILL)
                    elif number < 0.084:
                        trouble.note("node")
                        nodes.replace(trouble.random.randrange(2))
                    elif number < 0.095:
                        trouble.note("driver")
                        raise KeyboardInterrupt
                return events

            monkeypatch.setattr(RayRunner, "wait", watched)
            trouble.active = True
            while not trouble.enough:
                trouble.rounds += 1
                try:
                    # Once the job is done it begins anew, until there was enough trouble.
                    report = job("s3://films/in/*.mp4", "s3://films/out").run(
                        on="ray", resume=True, progress=False
                    )
                    if report.ok and not trouble.enough:
                        storage.remove_tree("s3://films/out")
                except (KeyboardInterrupt, StorageError):
                    continue
            trouble.active = False
            monkeypatch.undo()
            report = job("s3://films/in/*.mp4", "s3://films/out").run(on="ray", resume=True)
            report.check()
            found = {
                facts.path: storage.read_bytes(facts.name)
                for facts in storage.listing("s3://films/out/*.mp4")
            }
        finally:
            storage.configure(None)
    with capsys.disabled():
        sys.stderr.write(f"\n{dict(trouble.count)} in {trouble.rounds} runs; the last: {report}\n")
    assert found == expected
