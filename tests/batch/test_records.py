"""Records of a job that are empty, cut off or of other types: a clear error, or done again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from dala import batch
from dala.batch.manifest import Manifest
from dala.batch.storage import records
from dala.batch.tasks import Result
from dala.errors import BatchError, ParameterError, StorageError
from dala.media import Frame
from tests.batch.films import run_inline
from tests.support.clips import clip
from tests.support.inline import InlineRunner

#: A driver that lives: this process.
SIGN = {
    "machine": os.uname().nodename,
    "process": os.getpid(),
    "token": "0123456789abcdef",
    "job": "a job",
    "since": time.time(),
    "beat": time.time() + 3600,  # for as long as these tests run
}

#: Texts that are no JSON, or no object.
GARBAGE = [
    "",
    " ",
    "{",
    "\x00\x00\x00\x00",
    "\xff\xfe",
    "null",
    "true",
    "7",
    '"text"',
    "[]",
    "[{}]",
]
GARBAGE += ["[" * 100_000, '{"a":' * 100_000, json.dumps(SIGN)[:-1], json.dumps(SIGN)[:20], "NaN"]

#: Values that no driver writes.
WRONG = [
    *({"process": value} for value in ("1", None, -1, 2**31, 10**400, 1e400, True, [1])),
    *({"beat": value} for value in ("now", None, float("nan"), float("inf"), -1.0, 10**400, {})),
    *({"since": value} for value in ("now", 1e300, float("nan"))),
    *({"machine": value} for value in (None, 7, ["x"])),
    *({"token": value} for value in (None, 7)),
    *({"job": value} for value in (None, 7)),
]


def packed(content: object) -> str:
    """The text of a record with an intact checksum, whatever it says."""
    return records.pack(content).decode("latin-1")


def placed(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("latin-1"))
    return path


def test_a_sign_that_can_be_read_counts(tmp_path):
    placed(tmp_path, "driver.json", packed(SIGN))
    alone = rf"another driver \(process {os.getpid()} on "
    with pytest.raises(BatchError, match=alone), Manifest(str(tmp_path)).hold():
        pytest.fail("two drivers")


@pytest.mark.parametrize(
    "text",
    [*GARBAGE, "{}", packed({}), packed([]), *(packed(SIGN | wrong) for wrong in WRONG)],
    ids=[f"text{i}" for i in range(len(GARBAGE) + 3 + len(WRONG))],
)
def test_signs_that_cannot_be_read_do_not_count(tmp_path, text, monkeypatch):
    monkeypatch.setattr("dala.batch.storage.holding._PAUSE", 0.001)
    path = placed(tmp_path, "driver.json", text)
    said = []
    with Manifest(str(tmp_path), said.append).hold():
        assert json.loads(path.read_text())["record"]["process"] == os.getpid()
    assert not path.exists()
    (line,) = said
    assert "driver.json' is damaged and counts as missing (" in line


def test_a_sign_that_is_being_written_is_waited_for(tmp_path, monkeypatch):
    """Where storage has no links, the sign of a driver that begins is empty for a moment."""
    path = placed(tmp_path, "driver.json", "")
    monkeypatch.setattr("time.sleep", lambda seconds: path.write_text(packed(SIGN)))
    with pytest.raises(BatchError, match="another driver"), Manifest(str(tmp_path)).hold():
        pytest.fail("two drivers")


def test_signs_that_are_no_files(tmp_path):
    work = tmp_path / ".dala-batch" / "job"
    path = tmp_path / ".dala-batch" / "driver.json"
    path.parent.mkdir()
    for place, remove in (
        (lambda: path.symlink_to(tmp_path / "nowhere"), path.unlink),
        (lambda: os.mkfifo(path), path.unlink),
        (path.mkdir, path.rmdir),
    ):
        place()
        with pytest.raises(StorageError, match=r"driver\.json"), Manifest(str(work)).hold():
            pytest.fail("it is no sign")
        remove()
    with Manifest(str(work)).hold():
        assert path.is_file()


def test_signs_that_cannot_be_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("dala.batch.storage.holding._PAUSE", 0.001)
    placed(tmp_path, "driver.json", "")
    monkeypatch.setattr("dala.batch.storage.holding.storage.remove", lambda name: None)
    with (
        pytest.raises(BatchError, match=r"can be neither read nor replaced\. Remove it"),
        Manifest(str(tmp_path), lambda text: None).hold(),
    ):
        pytest.fail("the sign of another")


def test_the_command_ends(tmp_path):
    """``dala batch --resume`` ran for ever."""
    for name in ("a", "b"):
        Frame.from_array(np.full((16, 16, 4), 90, np.uint8)).save(tmp_path / f"{name}.png")
    words = ["batch", "images", f"{tmp_path}/*.png", f"{tmp_path}/out/{{stem}}.png", "--invert"]
    environment = {**os.environ, "DALA_DEVICE": "cpu"}
    for again in (False, True, True):
        done = subprocess.run(
            [sys.executable, "-m", "dala", *words, "--resume", "--workers", "1", "--json"],
            capture_output=True, text=True, timeout=120, env=environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        # Names of files decide where a group ends, so there may be one task or two.
        report = json.loads(done.stdout)
        before, now = (
            report[key] for key in (("tasks", "resumed") if again else ("resumed", "tasks"))
        )
        assert before == 0 < now, report
        sign = tmp_path / "out" / ".dala-batch" / "driver.json"
        assert not sign.exists()
        sign.write_bytes(b"")


@pytest.mark.parametrize("text", [*GARBAGE, packed([])], ids=lambda t: t[:20])
def test_a_damaged_plan_is_none(tmp_path, text):
    """Its records may be those of another plan, so the job begins anew."""
    placed(tmp_path, "plan.json", text)
    placed(tmp_path, "done/a.json", packed(asdict(Result("a", 1, 1.0, 1.0))))
    said = []
    manifest = Manifest(str(tmp_path), said.append)
    assert manifest.is_done("a")
    assert not manifest.begin({"kind": "videos"}, resume=True)
    assert not manifest.is_done("a")
    assert [line for line in said if "plan.json" in line] == said
    assert len(said) == 1
    assert manifest.begin({"kind": "videos"}, resume=True)


def test_damaged_records_are_done_again(tmp_path):
    good = asdict(Result("a", 1, 1.0, 1.0))
    wrong = [{name: value} for name in good for value in (None, [7], True) if good[name] != [value]]
    wrong += [{"frames": "1"}, {"seconds": "1"}, {"facts": []}, {"notices": 3}, {"failures": [[]]}]
    wrong += [{"files": one} for one in ([[]], [[1, "2"]], [["1", "2", "3"]], [[True, "2", "3"]])]
    objects = [good | one for one in wrong if one != {"notices": [7]}]
    whole = packed(good)
    bits = [whole[:n] + chr(ord(whole[n]) ^ 1) + whole[n + 1 :] for n in range(len(whole))]
    cut = [whole[:n] for n in range(len(whole))]
    texts = [*GARBAGE, json.dumps(good), *bits, *cut, whole + "\0", *map(packed, [{}, *objects])]
    for text in texts:
        placed(tmp_path, "done/a.json", text)
        said = []
        assert Manifest(str(tmp_path), said.append).finished("a") is None, text[:80]
        assert len(said) == 1, text[:80]
    for content in ({}, *objects):
        with pytest.raises(ParameterError, match=r"Result\.of"):
            Result.of(content)
    placed(tmp_path, "done/a.json", whole)
    assert Manifest(str(tmp_path)).finished("a") == Result("a", 1, 1.0, 1.0)
    assert Manifest(str(tmp_path)).finished("a", ["a.png"]) is None  # it speaks of no file
    placed(tmp_path, "done/b.json", whole)
    assert Manifest(str(tmp_path)).finished("b") is None  # it is that of another task


def test_a_job_with_damaged_records_and_indexes_is_resumed(tmp_path):
    clip(tmp_path / "clip.mp4", 20, gop=10)
    out = tmp_path / "out"

    def run(resume: bool):
        job = batch.videos(
            f"{tmp_path}/clip.mp4", out=f"{out}/{{stem}}.mp4", chain=["invert"], device="cpu",
            chunk=0.4, crf=12, threads=1,
        )  # fmt: skip
        return run_inline(job, InlineRunner(), resume=resume, retries=0)

    first = run(False)
    assert first.ok
    made = (out / "clip.mp4").read_bytes()
    (work,) = (out / ".dala-batch").iterdir()
    index = {"version": 1, "keys": [[0]], "opened": [9]}
    # The checksum may be right: then it is another program's record.
    for text in ("", "[" * 100_000, "[]", json.dumps(index), packed(index), packed({})):
        files = [*(work / "done").iterdir(), *(work / "index").iterdir()]
        for path in files:
            path.write_text(text)
        again = run(True)
        assert (again.ok, again.resumed, again.tasks) == (True, 0, first.tasks), text[:20]
        assert (out / "clip.mp4").read_bytes() == made
        assert {str(path) for path in files} == {
            line.split("'")[1] for line in again.notices if "is damaged and counts as" in line
        }
    # Facts that lead nowhere: the task is done again.
    for facts in ({}, {"videos": [{}]}, {"videos": 7}, {"videos": [{"source": []}]}):
        (record,) = (work / "done").glob("*-index.json")
        content = json.loads(record.read_text())["record"]
        records.write(str(record), content | {"facts": facts})
        again = run(True)
        assert (again.ok, again.tasks) == (True, 1), facts
        assert (out / "clip.mp4").read_bytes() == made
