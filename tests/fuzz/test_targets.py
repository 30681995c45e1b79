"""Everything that reads bytes ends in a result or in one of our errors, twice alike."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dala.errors import DalaError
from dala.gpu.compute.cube import load_cube
from dala.ml.convert.tflite import RULES, convert_tflite, read_tflite
from tests.fuzz import reach, targets
from tests.fuzz.coverage import LineCoverage
from tests.fuzz.flatbuffer import tflite_network
from tests.fuzz.target import CORPUS, Failed, Target

NAMES = targets.available()
made = cache(targets.make)


@pytest.mark.parametrize("name", NAMES)
def test_intact_and_kept_inputs(name):
    target = made(name)
    assert target.seeds()
    for data in target.corpus:
        target.check(data)


@pytest.mark.parametrize("name", NAMES)
def test_mutated_inputs(name):
    target = made(name)
    found = [target.check(target.input(1, number)) for number in range(50)]
    assert found.count("refused") > 2


@pytest.mark.third
@pytest.mark.parametrize("name", NAMES)
def test_edited_inputs(name):
    """By Hypothesis, which finds the smallest edit that fails."""
    target = made(name)
    places = st.integers(0, max(map(len, target.seeds())))
    pieces = st.binary(max_size=6)
    if target.words:
        pieces |= st.sampled_from(target.words)
    edits = st.lists(st.tuples(places, st.integers(0, 9), pieces), max_size=4)

    @settings(max_examples=15, database=None)
    @given(st.sampled_from(target.seeds()), edits)
    def every(data, made_edits):
        changed = bytearray(data)
        for at, cut, piece in made_edits:
            changed[at : at + cut] = piece
        target.check(bytes(changed))

    every()


@pytest.mark.parametrize("name", NAMES)
def test_seeds_are_read(name):
    """At least one intact input is read to its end; else only the first check would be tested."""
    target = made(name)
    assert "read" in {target.outcome(data)[0] for data in target.seeds()}


def test_every_target_names_its_reader():
    assert set(reach.READERS) == set(targets.TABLE)


@pytest.mark.parametrize(("name", "least"), [("tflite", 0.75), ("requests", 0.7)])
def test_reach_of_intact_inputs(name, least):
    ran, lines, missing = reach.share(name, 30)
    assert ran + len(missing) == lines
    assert ran / lines > least


def test_network_of_tflite_is_intact():
    """The file that is mutated has every operator, and ONNX Runtime runs what becomes of it."""
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(convert_tflite(tflite_network()))
    assert {op.code for op in read_tflite(tflite_network()).ops} == set(RULES)
    (out,) = session.run(None, {"input": np.ones((1, 8, 8, 3), np.float32)})
    assert out.shape == (1, 288)
    assert np.isfinite(out).all()
    assert np.unique(out).size > 20


def test_corpus_has_no_strangers():
    assert {path.name for path in CORPUS.iterdir()} <= {*targets.TABLE, "programs"}


def test_inputs_do_not_depend_on_the_machine():
    assert made("cube").input(1, 7) == made("cube").input(1, 7)
    assert made("cube").input(1, 7) != made("cube").input(2, 7)


class Broken(Target):
    """A reader with every fault that a target is checked for."""

    name = "broken"

    def __init__(self) -> None:
        self.count = 0

    def seeds(self) -> list[bytes]:
        return [b"x"]

    def read(self, data: bytes) -> object:
        self.count += 1
        return {}["absent"] if data == b"raise" else self.count


def test_faults_are_found():
    with pytest.raises(Failed, match="KeyError: 'absent'"):
        Broken().check(b"raise")
    with pytest.raises(Failed, match="the second time it ends otherwise"):
        Broken().check(b"x")
    assert Broken().check(b"x", twice=False) == "read"


def run(*args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *args], capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.long
def test_runner_counts():
    out = run("cube", "torch", "--count", "40", "--jobs", "2")
    assert "cube: 40 inputs, " in out
    assert "80 inputs in " in out
    assert "0 failures" in out


def test_lines_are_counted_once():
    lines = LineCoverage()
    lines.start()
    try:
        counts = []
        for text in ("LUT_1D_SIZE 2\n0 0 0\n1 1 1\n", "LUT_1D_SIZE 2\n0 0 0\n1 1 1\n", "x"):
            with suppress(DalaError):
                load_cube(text.encode())
            counts.append(lines.count)
    finally:
        lines.stop()
    assert 0 < counts[0] == counts[1] < counts[2]


@pytest.mark.long
def test_guided_runner_writes_what_it_found(tmp_path):
    command = [sys.executable, "-m", "tests.fuzz.guided", "cube", "events", "--seconds", "8"]
    done = subprocess.run([*command, "--jobs", "2", "--out", str(tmp_path)], capture_output=True)
    assert done.returncode == 0, done.stdout.decode()[-3000:]
    found = json.loads((tmp_path / "fuzz.json").read_text())
    assert set(found["targets"]) == {"cube", "events"}
    assert len(found["processes"]) == 4
    for each in found["targets"].values():
        assert each["runs"] > 0 < each["lines"]
        assert each["failures"] == 0


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_many_inputs(name):
    run(name, "--minutes", "1")
