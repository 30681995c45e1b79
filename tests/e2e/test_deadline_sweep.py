"""Deadlines at random moments of the examples and of all public operations: each call ends soon."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tests.support.deadlines import LATE, NAMES
from tests.support.weights import weights_folder

#: Calls that are not interrupted, and the most seconds of one: those of other libraries, and of
#: Python's import. FreeType and HarfBuzz are called through Pillow and uharfbuzz.
NATIVE = re.compile(
    r"\bav\b|onnxruntime|initialize_session|decode\(|encode\(|\.mux\(|\.compress\(|importlib|"
    r"freetype|uharfbuzz|\.load\(|graph\.p(ush|ull)|join\(|poll\("
)
MOST = 2.0
RUNS = 5


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_calls_end_soon_after_the_deadline(name: str) -> None:
    place = weights_folder()
    models = {} if place is None else {"DALA_MODELS": str(place)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.deadlines", name, str(RUNS), "1"],
        env={**os.environ, "DALA_DEVICE": "cpu", **models},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows
    for row in rows:
        native = any(NATIVE.search(frame) for frame in row.get("stack", ())[-2:])
        assert row["late"] <= (MOST if native else LATE), row
