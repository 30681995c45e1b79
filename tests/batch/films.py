"""Videos, jobs and their results, for the tests of batches."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from dala import batch
from dala.batch import driver
from dala.batch.driver import Display
from dala.batch.manifest import Manifest
from dala.media import video
from tests.support.inline import InlineRunner

INVERT = ["invert"]


def job_of(films: Path, out: Path, **more):
    given = {"chunk": 0.4, "crf": 12, "threads": 1, "device": "cpu", **more}
    return batch.videos(f"{films}/", out=f"{out}/{{path}}.mp4", chain=INVERT, **given)


def run_inline(job, runner: InlineRunner, *, resume: bool = False, retries: int = 2):
    """Run a job with a runner of the test."""
    damaged = []
    manifest = Manifest(job.work, damaged.append)
    with manifest.hold():
        manifest.begin(job.header(), resume)
        job.write_assets()
        report = driver.Driver(job, runner, manifest, retries, Display(False)).run()
        manifest.end(report.ok)
    report.notices[:0] = damaged
    return report


def digests(folder: Path) -> dict[str, str]:
    """What results there are, and their bytes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".dala-batch" not in path.parts
    }


def assert_same_frames(one: Path, other: Path) -> None:
    with video.open(one, device="cpu") as a, video.open(other, device="cpu") as b:
        for left, right in zip(a, b, strict=True):
            assert left.time == right.time
            assert np.array_equal(left.numpy(), right.numpy())
