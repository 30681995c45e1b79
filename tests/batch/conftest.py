"""Fixtures of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.batch.films import digests, job_of, run_inline
from tests.support.clips import clip
from tests.support.inline import InlineRunner


@pytest.fixture(scope="module")
def films(tmp_path_factory) -> Path:
    """A folder with a long video, two short ones and one that is none."""
    folder = tmp_path_factory.mktemp("films")
    (folder / "more").mkdir()
    clip(folder / "long.mp4", 40, gop=10, open_gop=True)
    clip(folder / "more" / "short.mkv", 12, sound=False)
    clip(folder / "more" / "other.mov", 10, fps=30)
    return folder


@pytest.fixture(scope="module")
def reference(films, tmp_path_factory) -> dict[str, str]:
    """The bytes of a run without failures, one task after another."""
    out = tmp_path_factory.mktemp("reference")
    report = run_inline(job_of(films, out), InlineRunner())
    assert report.ok, report.failures
    assert (report.files, report.retries, report.lost) == (3, 0, 0)
    assert report.frames == 62
    return digests(out)
