"""The gallery of shaders: each file lints, runs alike on every engine, and is on its page."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dala
from dala.cli.common.kernels import kernel_of
from dala.media import FramePipeline

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "examples" / "shaders").glob("*.py"))
NAMES = [file.stem for file in FILES]


def drawn(name: str, device: str, frames: int = 6) -> np.ndarray:
    made = kernel_of(str(ROOT / "examples" / "shaders" / f"{name}.py"))
    picture = np.ascontiguousarray(np.asarray(dala.samples.photo("chelsea"))[40:94, 100:196])
    if picture.shape[2] == 3:
        picture = np.dstack([picture, np.full(picture.shape[:2], 255, np.uint8)])
    with FramePipeline(96, 54, device=device) as pipeline:
        for n in range(frames):
            found = pipeline.process(picture, [made], number=n, time=n / 10)
    return np.array(found)


def test_there_are_twelve():
    assert len(NAMES) == 12


@pytest.mark.third
@pytest.mark.parametrize("name", NAMES)
def test_engines_agree(name: str):
    wanted = drawn(name, "reference")
    assert wanted[..., :3].std() > 3
    for device in ("cpu", "webgpu"):
        apart = np.abs(drawn(name, device).astype(int) - wanted)
        # Functions such as sin differ in the last place, which a fractal or a cell's edge shows.
        assert (apart > 2).mean() < 0.002, (device, apart.max())


@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_the_file(name: str):
    text = (ROOT / "docs" / "shaders.md").read_text(encoding="utf-8")
    file = (ROOT / "examples" / "shaders" / f"{name}.py").read_text(encoding="utf-8")
    about, _, code = file.partition('"""\n')
    assert code.strip() in text
    assert about.strip('"') in text
    assert f"images/shaders/{name}.webp" in text


def test_ruff_accepts_the_importing_form():
    """With its own settings, as a user's editor runs it."""
    run([sys.executable, "-m", "ruff", "check", "--isolated", "--line-length", "100", *FILES])


@pytest.mark.long
def test_mypy_accepts_the_importing_form():
    run([sys.executable, "-m", "mypy", "--config-file=", *FILES])


def run(command: list[str | Path]) -> None:
    pytest.importorskip(command[2])
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
