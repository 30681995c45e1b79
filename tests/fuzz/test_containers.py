"""Damaged videos, pictures and subtitles: a result, a clear error, or a salvaged file."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("av")

from tests.fuzz.containers import KINDS


def run(kinds, cuts, flips):
    """Run the kinds in one process of their own: a crash there fails the test, not the suite."""
    command = [sys.executable, "-m", "tests.fuzz.containers", *kinds]
    done = subprocess.run(
        [*command, "--cuts", str(cuts), "--flips", str(flips)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-3000:]}"
    assert len(done.stdout.splitlines()) == len(kinds)


def test_damaged_files_end_in_results_or_clear_errors():
    run(KINDS, cuts=4, flips=3)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_files_cut_at_every_percent_and_with_flipped_bytes(kind):
    run([kind], cuts=100, flips=300)
