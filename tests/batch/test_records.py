"""Records of a job that are empty, cut off or of other types: a clear error, or done again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dala import batch
from dala.batch import driver
from dala.batch.display import Display
from dala.batch.manifest import Manifest
from dala.batch.tasks import Result
from dala.errors import BatchError, ParameterError, StorageError
from dala.media import Frame
from tests.support.clips import clip
from tests.support.inline import InlineRunner

#: A driver that lives: this process.
SIGN = {
    "machine": os.uname().nodename,
    "process": os.getpid(),
    "token": "0123456789abcdef",
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
]


def placed(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("latin-1"))
    return path


def test_a_sign_that_can_be_read_counts(tmp_path):
    placed(tmp_path, "driver.json", json.dumps(SIGN))
    alone = rf"another driver \(process {os.getpid()} on "
    with pytest.raises(BatchError, match=alone), Manifest(str(tmp_path)).hold():
        pytest.fail("two drivers")


@pytest.mark.parametrize(
    "text",
    [*GARBAGE, "{}", *(json.dumps(SIGN | wrong) for wrong in WRONG)],
    ids=[f"text{i}" for i in range(len(GARBAGE) + 1 + len(WRONG))],
)
def test_signs_that_cannot_be_read_do_not_count(tmp_path, text, monkeypatch):
    monkeypatch.setattr("dala.batch.manifest._PAUSE", 0.001)
    path = placed(tmp_path, "driver.json", text)
    with Manifest(str(tmp_path)).hold():
        assert json.loads(path.read_text())["process"] == os.getpid()
    assert not path.exists()


def test_a_sign_that_is_being_written_is_waited_for(tmp_path, monkeypatch):
    """Where storage has no links, the sign of a driver that begins is empty for a moment."""
    path = placed(tmp_path, "driver.json", "")
    monkeypatch.setattr("time.sleep", lambda seconds: path.write_text(json.dumps(SIGN)))
    with pytest.raises(BatchError, match="another driver"), Manifest(str(tmp_path)).hold():
        pytest.fail("two drivers")


def test_signs_that_are_no_files(tmp_path, monkeypatch):
    monkeypatch.setattr("dala.batch.manifest._PAUSE", 0.001)
    path = tmp_path / "driver.json"
    path.symlink_to(tmp_path / "nowhere")
    with Manifest(str(tmp_path)).hold():
        assert not path.is_symlink()
    path.mkdir()
    with pytest.raises(StorageError, match=r"driver\.json"), Manifest(str(tmp_path)).hold():
        pytest.fail("a folder is no sign")


def test_signs_that_cannot_be_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("dala.batch.manifest._PAUSE", 0.001)
    placed(tmp_path, "driver.json", "")
    monkeypatch.setattr("dala.batch.manifest.storage.remove", lambda name: None)
    with (
        pytest.raises(BatchError, match=r"can be neither read nor replaced\. Remove it"),
        Manifest(str(tmp_path)).hold(),
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
        (work,) = (tmp_path / "out" / ".dala-batch").iterdir()
        assert not (work / "driver.json").exists()
        (work / "driver.json").write_bytes(b"")


@pytest.mark.parametrize("text", GARBAGE, ids=lambda t: t[:20])
def test_damaged_plans_are_not_resumed(tmp_path, text):
    placed(tmp_path, "plan.json", text)
    placed(tmp_path, "done/a.json", Result("a", 1, 1.0, 1.0).to_json())
    manifest = Manifest(str(tmp_path))
    with pytest.raises(BatchError, match=r"plan\.json' is damaged .* Remove the folder, or run"):
        manifest.begin({"kind": "videos"}, resume=True)
    assert manifest.is_done("a")  # nothing was removed
    assert not manifest.begin({"kind": "videos"}, resume=False)


def test_damaged_records_are_done_again(tmp_path):
    good = json.loads(Result("a", 1, 1.0, 1.0).to_json())
    wrong = [{name: value} for name in good for value in (None, [7], True) if good[name] != [value]]
    wrong += [{"frames": "1"}, {"seconds": "1"}, {"facts": []}, {"notices": 3}, {"failures": [[]]}]
    texts = [*GARBAGE, "{}", *(json.dumps(good | one) for one in wrong if one != {"notices": [7]})]
    for text in texts:
        placed(tmp_path, "done/a.json", text)
        assert Manifest(str(tmp_path)).result_of("a") is None, text[:80]
        with pytest.raises(ParameterError, match="from_json"):
            Result.from_json(text.encode("latin-1"))
    placed(tmp_path, "done/a.json", json.dumps(good))
    assert Manifest(str(tmp_path)).result_of("a") == Result("a", 1, 1.0, 1.0)


def test_a_job_with_damaged_records_and_indexes_is_resumed(tmp_path):
    clip(tmp_path / "clip.mp4", 20, gop=10)
    out = tmp_path / "out"

    def run(resume: bool):
        job = batch.videos(
            f"{tmp_path}/clip.mp4", out=f"{out}/{{stem}}.mp4", chain=["invert"], device="cpu",
            chunk=0.4, crf=12, threads=1,
        )  # fmt: skip
        manifest = Manifest(job.work)
        with manifest.hold():
            manifest.begin(job.header(), resume)
            job.write_assets()
            return driver.Driver(job, InlineRunner(), manifest, 0, Display(False)).run()

    first = run(False)
    assert first.ok
    made = (out / "clip.mp4").read_bytes()
    (work,) = (out / ".dala-batch").iterdir()
    for text in ("", "[" * 100_000, "[]", '{"version": 1, "keys": [[0]], "opened": [9]}'):
        for path in [*(work / "done").iterdir(), *(work / "index").iterdir()]:
            path.write_text(text)
        again = run(True)
        assert (again.ok, again.resumed, again.tasks) == (True, 0, first.tasks), text[:20]
        assert (out / "clip.mp4").read_bytes() == made
