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

#: Calls that are not interrupted, of at most ``MOST`` seconds each, as the innermost frame of
#: Python shows them: those of other libraries, and its import.
NATIVE = re.compile(
    r"^<frozen importlib"
    # FFmpeg, through PyAV, which has no frames of its own
    r"|^dala/media/(video|audio|live|sources|pictures/plugins)\S* \S+: "
    r".*(\bav\.|\.(open|decode|demux|encode|mux|seek|push|pull|process|resample|reformat)\()"
    r"|^(PIL|onnxruntime|uharfbuzz|freetype)/"
    # Pillow, HarfBuzz and FreeType, called from here
    r"|^dala/media/(files|pictures/\w+)\.py:\d+ \S+: .*\.(load|save|convert|open|seek|draft)\("
    r"|^dala/media/text/\S+: .*\b(hb|freetype|_hb|_ft)\."
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
        native = any(NATIVE.search(frame) for frame in row.get("stack", ())[-1:])
        if row["worked"] > LATE or row["late"] > MOST:
            assert row["late"] <= (MOST if native else LATE), row
        # Else its thread waited for a core or a disk, which no look at a clock can end.


@pytest.mark.parametrize(
    ("frame", "native"),
    [
        ("dala/media/video/decoding/decoder.py:9 read: frames = codec.decode(packet)", True),
        ("onnxruntime/capi/onnxruntime_inference_collection.py:9 run: x", True),
        ("<frozen importlib._bootstrap>:9 _find: x", True),
        ("dala/media/files.py:9 _decode: image.load()", True),
        ("dala/media/subtitles/load.py:9 read: text = data.decode('utf-8')", False),
        ("dala/media/scene/file/load.py:9 read: data = json.load(file)", False),
        ("dala/png/__init__.py:9 encode: parts = b''.join(rows)", False),
        ("dala/gpu/surface.py:9 sync: self._thread.join()", False),
    ],
)
def test_only_calls_of_other_libraries_may_take_longer(frame: str, native: bool) -> None:
    assert bool(NATIVE.search(frame)) is native
