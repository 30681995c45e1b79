"""What counts as done when a job goes on; one job in a folder; no link leads out of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from dala import batch
from dala.batch import storage
from dala.batch.manifest import Manifest
from dala.batch.storage import holding, records
from dala.errors import BatchError, StorageError
from dala.media import Frame
from tests.batch.films import digests, job_of, run_inline
from tests.support.clips import clip
from tests.support.inline import InlineRunner


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    """Waiting for a disk that others use takes most of the time of these tests."""
    monkeypatch.setattr(os, "fsync", lambda number: None)


def pictures(folder, count=3):
    folder.mkdir(parents=True, exist_ok=True)
    for n in range(count):
        Frame.from_array(np.full((4, 4, 4), 40 + n, np.uint8)).save(folder / f"{n}.png")
    return folder


def images(source, out, chain=("invert",)):
    return batch.images(f"{source}/*.png", out=f"{out}/{{path}}.png", chain=[*chain], device="cpu")


def again(job):
    """Resume a job; return its report and whether it did something."""
    runner = InlineRunner()
    report = run_inline(job, runner, resume=True)
    assert report.ok, report.failures
    return report, bool(runner.begun)


# results ------------------------------------------------------------------------------------------
def gone(path):
    path.unlink()


def emptied(path):
    path.write_bytes(b"")


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def changed(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(1, 1))  # the file system's clock may not have ticked since it was made


@pytest.mark.parametrize("damage", [gone, emptied, cut, changed])
@pytest.mark.parametrize("kind", ["pictures", "videos", "parts"])
def test_results_that_are_not_what_they_were(tmp_path, kind, damage):
    source, out = tmp_path / "in", tmp_path / "out"
    if kind == "pictures":
        pictures(source)
    else:
        source.mkdir()
        clip(source / "0.mp4", 12, gop=4)
    job = images(source, out) if kind == "pictures" else job_of(
        source, out, chunk=0.2 if kind == "parts" else 9.0
    )  # fmt: skip
    assert run_inline(job, InlineRunner()).ok
    before = digests(out)
    assert again(job)[1] is False
    victim = next(path for path in sorted(out.iterdir()) if path.is_file())
    damage(victim)
    assert again(job)[1] is True
    assert digests(out) == before
    assert again(job)[1] is False


def test_packets_that_are_not_what_they_were(tmp_path):
    """A part of an unfinished video."""
    (tmp_path / "in").mkdir()
    clip(tmp_path / "in" / "a.mp4", 12, gop=4)
    whole = job_of(tmp_path / "in", tmp_path / "whole", chunk=0.2)
    assert run_inline(whole, InlineRunner()).ok

    def stop(task):
        if task.kind == "stitch":
            raise KeyboardInterrupt

    for damage in (gone, emptied, cut, changed):
        job = job_of(tmp_path / "in", tmp_path / damage.__name__, chunk=0.2)
        with pytest.raises(KeyboardInterrupt):
            run_inline(job, InlineRunner(stop))
        packets = sorted((tmp_path / damage.__name__ / ".dala-batch").glob("*/parts/*/*.packets"))
        assert len(packets) == 2
        damage(packets[1])
        runner = InlineRunner()
        assert run_inline(job, runner, resume=True).ok
        assert len([id for id in runner.begun if id.endswith("-1")]) == 1
        assert len(runner.begun) == 2  # and the stitch
        assert digests(tmp_path / damage.__name__) == digests(tmp_path / "whole")


def test_a_copy_with_other_times_is_the_same(tmp_path, monkeypatch):
    """A folder that was copied, or restored from a backup, is read once more, not made again."""
    job = images(pictures(tmp_path / "in"), tmp_path / "out")
    assert run_inline(job, InlineRunner()).ok
    opened = []
    real = storage.open_read
    monkeypatch.setattr(storage, "open_read", lambda name: opened.append(name) or real(name))
    assert again(job)[1] is False
    assert opened == []  # size and time say enough
    os.utime(tmp_path / "out" / "1.png", ns=(1, 1))
    assert again(job)[1] is False
    assert opened == [f"{tmp_path}/out/1.png"]


def test_results_in_other_storage(tmp_path, monkeypatch):
    """Folders are listed, each once: no request for each picture."""
    pytest.importorskip("fsspec")
    source = pictures(tmp_path / "in", 20)
    job = images(source, "memory://done")
    asked = []
    try:
        assert run_inline(job, InlineRunner()).ok
        real = storage.facts
        monkeypatch.setattr(storage, "facts", lambda name: asked.append(name) or real(name))
        monkeypatch.setattr("dala.batch.manifest._MANY", 1)
        assert again(job)[1] is False
        assert asked == []
        storage.remove("memory://done/7.png")
        assert again(job)[1] is True
        assert asked[0] == "memory://done/7.png"
        assert storage.exists("memory://done/7.png")
        assert again(job)[1] is False
    finally:
        storage.remove_tree("memory://done")


def test_a_disk_that_is_full_for_records(tmp_path, monkeypatch):
    """The report says why each task failed, and the next run does all of it."""
    job = images(pictures(tmp_path / "in"), tmp_path / "out")
    real = records.write

    def full(name, content):
        if "/done/" in name or "/failed/" in name or name.endswith("finished.json"):
            raise StorageError(f"storage.write: no space is left for {name!r}.")
        real(name, content)

    monkeypatch.setattr(records, "write", full)
    report = run_inline(job, InlineRunner(), retries=0)
    assert {"no space is left for" in str(failure) for failure in report.failures} == {True}
    monkeypatch.undo()
    assert again(job)[1] is True
    assert sorted(digests(tmp_path / "out")) == ["0.png", "1.png", "2.png"]


# one job in a folder ------------------------------------------------------------------------------
@pytest.mark.parametrize("place", ["local", "memory"])
def test_other_filters_in_the_same_folder(tmp_path, place):
    source = pictures(tmp_path / "in")
    out = str(tmp_path / "out") if place == "local" else "memory://held"
    one, other = images(source, out), images(source, out, ["grayscale"])
    assert one.work != other.work
    try:
        with Manifest(one.work).hold():
            with pytest.raises(
                BatchError,
                match=rf"driver \(process {os.getpid()} on .*has run another job in '{out}' since",
            ):
                other.run(workers=1)
            with pytest.raises(BatchError, match=rf"has run this job in '{out}' since "):
                one.run(workers=1)
        assert run_inline(other, InlineRunner()).ok
    finally:
        storage.remove_tree(out)


def test_a_killed_driver_holds_nothing(tmp_path):
    """Its sign is fresh, and another process may have its number by now."""
    program = """
        import sys, time
        from dala.batch.manifest import Manifest
        with Manifest(sys.argv[1]).hold():
            print("held", flush=True)
            time.sleep(600)
    """
    work = str(tmp_path / ".dala-batch" / "job")
    command = [sys.executable, "-c", textwrap.dedent(program), work]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with (
            pytest.raises(BatchError, match=rf"another driver \(process {process.pid} on "),
            Manifest(work).hold(),
        ):
            pytest.fail("two drivers")
        # The lock counts, whatever became of the sign.
        sign = tmp_path / ".dala-batch" / "driver.json"
        sign.unlink()
        with pytest.raises(BatchError, match="another driver runs a job"), Manifest(work).hold():
            pytest.fail("two drivers")
        process.kill()
    with Manifest(work).hold():
        assert json.loads(sign.read_text())["record"]["process"] == os.getpid()


def held_by_another(out):
    """A process that runs a job in a folder; it ends with its input."""
    program = """
        import sys
        from dala.batch.manifest import Manifest
        with Manifest(sys.argv[1]).hold():
            print("held", flush=True)
            sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(program), f"{out}/.dala-batch/job"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize(
    ("one", "other", "free"),
    [("out", "out/sub", False), ("out/sub/deep", "out", False), ("out/a", "out/b", True),
     ("out", "link/sub", False), ("out", "outer", True)],
)  # fmt: skip
def test_jobs_in_folders_inside_each_other(tmp_path, one, other, free):
    """Both reported success, and each replaced files of the other."""
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out")
    work = f"{tmp_path / other}/.dala-batch/job"
    with held_by_another(tmp_path / one) as process:
        if free:
            with Manifest(work).hold():
                pass
        else:
            told = "another driver runs a job in .*, or in a folder in it or around it"
            with pytest.raises(BatchError, match=told), Manifest(work).hold():
                pytest.fail("two jobs")
        process.communicate()
    with Manifest(work).hold():
        pass


def test_a_driver_that_was_taken_over_stops(tmp_path, monkeypatch):
    monkeypatch.setattr(holding, "_BEAT", 600)
    job = images(pictures(tmp_path / "in"), "memory://taken")
    manifest = Manifest(job.work)
    name = "memory://taken/.dala-batch/driver.json"
    try:
        with (
            pytest.raises(BatchError, match=r"has taken over 'memory://taken/.*with resume"),
            manifest.hold(),
        ):
            manifest.check_held()
            storage.remove(name)  # by hand: it is written again
            manifest._holder.beat()
            manifest.check_held()
            found = records.read(name, dict, pytest.fail)
            records.write(name, found | {"token": "of another"})
            manifest._holder.beat()
            manifest.check_held()
        # What is there now is the other's.
        assert records.read(name, dict, pytest.fail)["token"] == "of another"
    finally:
        storage.remove_tree("memory://taken")


def test_storage_that_fails_for_a_while_ends_no_job(tmp_path, monkeypatch):
    manifest = Manifest(str(tmp_path))

    def full(*given):
        raise StorageError("storage.write: no space is left.")

    with manifest.hold():
        with monkeypatch.context() as patch:
            patch.setattr(storage, "write_bytes", full)
            manifest._holder.beat()
        manifest.check_held()
        manifest._holder.beat()
        manifest.check_held()


def test_of_two_that_take_over_one_goes_on(monkeypatch):
    """In storage without locks, the second one removes the sign that the first has just written."""
    folder = "memory://both/.dala-batch"
    old = holding.Sign("elsewhere", 1, "old", "job", 0.0, 0.0)
    records.write(f"{folder}/driver.json", vars(old))
    first = Manifest(f"{folder}/job")
    second = holding.Sign("elsewhere", 2, "second", "job", time.time(), time.time())

    def overtaken(seconds):
        records.write(f"{folder}/driver.json", vars(second))

    monkeypatch.setattr("time.sleep", overtaken)
    try:
        with pytest.raises(BatchError, match="process 2 on elsewhere"), first.hold():
            pytest.fail("two drivers")
        assert records.read(f"{folder}/driver.json", holding.Sign.of, pytest.fail) == second
    finally:
        storage.remove_tree("memory://both")


# links --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("place", [".dala-batch", ".dala-batch/WORK", ".dala-batch/WORK/done"])
def test_records_do_not_leave_the_folder(tmp_path, place):
    source, out = pictures(tmp_path / "in"), tmp_path / "out"
    job = images(source, out)
    link = out / place.replace("WORK", os.path.basename(job.work))
    link.parent.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "precious.json").write_text("{}")
    link.symlink_to(tmp_path / "elsewhere")
    for resume in (False, True):
        with pytest.raises(StorageError, match=r"is a link, and a job writes only into.*Remove"):
            job.run(workers=1, resume=resume)
    assert os.listdir(tmp_path / "elsewhere") == ["precious.json"]
    assert not (out / "0.png").exists()


def test_results_do_not_leave_the_folder(tmp_path):
    source, out = tmp_path / "in", tmp_path / "out"
    pictures(source / "a", 1)
    pictures(source / "b", 1)
    (out / "real").mkdir(parents=True)
    (out / "a").symlink_to(tmp_path)
    (out / "b").symlink_to(out / "real")  # it stays inside: refused too, whoever moves it later
    job = batch.images(f"{source}/**/*.png", out=f"{out}/{{path}}.png", chain=["invert"],
                       device="cpu")  # fmt: skip
    report = run_inline(job, InlineRunner(), retries=0)
    failed = "\n".join(map(str, report.failures))
    assert "a folder of the job" in failed or "which is kept to" in failed
    assert digests(tmp_path / "out" / "real") == {}
    assert not (tmp_path / "0.png").exists()
    # A link in the place of a result is replaced, not followed.
    (out / "a").unlink()
    (out / "b").unlink()
    (out / "a").mkdir()
    (out / "a" / "0.png").symlink_to(tmp_path / "precious.png")
    assert run_inline(job, InlineRunner(), resume=True).ok
    assert not (out / "a" / "0.png").is_symlink()
    assert not (tmp_path / "precious.png").exists()


def test_the_folder_itself_may_be_a_link(tmp_path):
    """Its user has named it."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    assert run_inline(images(pictures(tmp_path / "in"), tmp_path / "out"), InlineRunner()).ok
    assert sorted(digests(tmp_path / "disk")) == ["0.png", "1.png", "2.png"]


def test_a_folder_that_becomes_a_link_meanwhile(tmp_path):
    """What was written beside it does not get its name there."""
    out, other = tmp_path / "out", tmp_path / "other"
    other.mkdir()
    with (
        pytest.raises(OSError, match=r"No such file"),
        storage.writing(f"{out}/sub/a.bin", base=str(out)) as path,
    ):
        path.write_bytes(b"data")
        os.rename(out / "sub", out / "moved")
        (out / "sub").symlink_to(other)
        os.rename(out / "moved" / path.name, other / path.name)
    assert not [name for name in os.listdir(other) if not name.startswith(".")]


def test_where_folders_cannot_be_opened(tmp_path, monkeypatch):
    """As on Windows: names are looked at before they are used."""
    from dala.batch.storage import beneath, local

    monkeypatch.setattr(beneath, "_BY_NUMBER", False)
    monkeypatch.setattr(local, "fcntl", None)
    source, out = pictures(tmp_path / "in"), tmp_path / "out"
    job = images(source, out)
    assert run_inline(job, InlineRunner()).ok
    (out / "1.png").unlink()
    assert again(job)[1] is True
    assert sorted(digests(out)) == ["0.png", "1.png", "2.png"]
    with (
        Manifest(job.work).hold(),
        pytest.raises(BatchError, match="another driver"),
        Manifest(job.work).hold(),
    ):
        pytest.fail("two drivers")
    (out / ".dala-batch").rename(tmp_path / "elsewhere")
    (out / ".dala-batch").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="is a link, and a job writes only into"):
        run_inline(job, InlineRunner(), resume=True)
