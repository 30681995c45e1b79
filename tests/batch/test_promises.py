"""What a job keeps to: chains, names, the driver, pictures, scenes, the command."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dala import batch
from dala.batch import driver, storage
from dala.batch.driver import Display
from dala.batch.manifest import Manifest
from dala.batch.report import Failure
from dala.batch.runners import Resources, make_runner
from dala.batch.tasks import BatchTask, Result, run_task
from dala.errors import ParameterError
from dala.media import Frame, video
from tests.batch.films import INVERT, assert_same_frames, digests, job_of, run_inline
from tests.support.clips import clip, shown, sound_packets
from tests.support.inline import InlineRunner

# chains -------------------------------------------------------------------------------------------


def test_chains_travel_as_text(tmp_path):
    from dala.batch.chains import Assets, pack_chain, unpack_chain
    from dala.gpu.compute import kernel
    from dala.gpu.compute.language import Pixel, rgba
    from dala.media.filters.pipeline import FramePipeline

    amount = 0.25

    @kernel
    def half_of(x):
        return x * 0.5

    @kernel
    def dimmed(px: Pixel, *, by: float = 0.1):
        return rgba(half_of(px.rgb) + by * amount, px.a)

    def flipped(px: Pixel):
        return rgba(px.bgr, px.a)

    lut = tmp_path / "film.cube"
    table = "\n".join(f"{1 - r} {1 - g} {1 - b}" for b in (0, 1) for g in (0, 1) for r in (0, 1))
    lut.write_text(f"LUT_3D_SIZE 2\n{table}\n")
    badge = np.full((4, 4, 4), 200, np.uint8)
    text = "def lighter(px: Pixel): return rgba(px.rgb + 0.1, px.a)"
    chain = [
        "grayscale", ("blur", {"radius": 2}), ("lut_apply", {"lut": str(lut), "amount": 0.5}),
        dimmed, (dimmed, {"by": 0.4}), text, flipped, "half_of",
        ("overlay", {"picture": badge, "position": (2, 2)}),
    ]  # fmt: skip
    assets = Assets()
    packed = pack_chain(chain, assets.keep, "videos")
    assets.write(str(tmp_path / "work"))
    lut.unlink()  # the job has its own copy
    again = unpack_chain(json.loads(json.dumps(packed)), str(tmp_path / "work"))
    pixels = np.random.default_rng(0).integers(0, 255, (16, 16, 3), dtype=np.uint8)
    lut.write_text(f"LUT_3D_SIZE 2\n{table}\n")
    plain = [kernel(text) if c is text else kernel(flipped) if c is flipped else c for c in chain]
    with FramePipeline(16, 16, device="cpu") as pipeline:
        assert np.array_equal(pipeline.process(pixels, again), pipeline.process(pixels, plain))


@pytest.mark.parametrize(
    ("chain", "text"),
    [
        ("blur", "chain must be a list"),
        (["blurr"], "Did you mean 'blur'"),
        ([("blur", {"radius": "much"})], "radius must be"),
        ([("blur", 3)], "parameters must be a dict"),
        ([lambda px: px], "must be a function or its text"),
        ([("lut_apply", {"lut": "/no/such.cube"})], "/no/such.cube"),
        ([7], "the name of a filter, or a kernel"),
        (["blur", ("background", {})], "'background' must be the first item"),
    ],
)
def test_chains_are_checked_at_once(tmp_path, chain, text):
    with pytest.raises((ValueError, OSError, KeyError, SyntaxError)) as caught:
        batch.videos("in.mp4", out=tmp_path / "a.mp4", chain=chain)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"chunk": "soon"}, "chunk must be seconds"),
        ({"chunk": -1}, "chunk must be seconds"),
        ({"crf": 99}, "crf must be an int from 0 to 63"),
        ({"threads": 0}, "threads must be an int from 1"),
        ({"encoder": "auto"}, "A plan fixes the encoder"),
        ({"codec": "h999"}, "codec must be one of"),
        ({"hdr": "more"}, "hdr must be 'sdr' or 'keep'"),
        ({"out": "a.gif"}, "out must be the name of a video"),
        ({"out": "b/{steam}.mp4"}, "Did you mean 'stem'"),
        ({"device": "abacus"}, "abacus"),
    ],
)
def test_arguments_are_checked_at_once(tmp_path, monkeypatch, more, text):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, KeyError, RuntimeError), match=None) as caught:
        batch.videos("in.mp4", **{"out": "a.mp4", "chain": INVERT, **more})
    assert text in str(caught.value)
    assert os.listdir(tmp_path) == []


# what a job keeps to ------------------------------------------------------------------------------


def test_names_outside_of_the_job_are_refused(films, tmp_path):
    job = job_of(films, tmp_path / "out")
    index = next(job.tasks(Manifest(job.work)))
    secret = tmp_path / "secret.mp4"
    clip(secret, 4)
    moved = json.loads(index.to_json())
    moved["part"]["videos"] = [[str(secret), secret.stat().st_size, "1", "/tmp/x.mp4", "k"]]
    result = run_task(BatchTask.from_json(json.dumps(moved)))
    assert "which is kept to" in result.failures[0].error
    for value in (str(tmp_path / "stolen.mp4"), f"{tmp_path}/out/../stolen.mp4"):
        found = storage.facts(str(films / "long.mp4"))
        source = [found.name, found.size, found.stamp, value, "k"]
        task = job.task("x", "videos", "x", {"videos": [source]})
        result = run_task(task)
        assert "which is kept to" in result.failures[0].error
    assert not (tmp_path / "stolen.mp4").exists()
    link = tmp_path / "out" / "link"
    link.symlink_to(tmp_path)
    found = storage.facts(str(films / "more" / "short.mkv"))
    source = [found.name, found.size, found.stamp, f"{link}/stolen.mp4", "k2"]
    assert run_task(job.task("y", "videos", "y", {"videos": [source]})).failures
    assert not (tmp_path / "stolen.mp4").exists()


def test_inputs_are_not_overwritten_and_results_differ(films, tmp_path):
    with pytest.raises(ParameterError, match="is an input and is not overwritten"):
        batch.videos(f"{films}/*.mp4", out=f"{films}/{{name}}", chain=INVERT).plan()
    with pytest.raises(ParameterError, match="two videos would become"):
        batch.videos(f"{films}/", out=tmp_path / "one.mp4", chain=INVERT).plan()
    with pytest.raises(FileNotFoundError, match="no file matches"):
        batch.videos(f"{films}/*.none", out=tmp_path / "{stem}.mp4", chain=INVERT).plan()


def test_the_files_of_a_chain_are_part_of_the_job(films, tmp_path):
    lut = tmp_path / "film.cube"
    lut.write_text("LUT_1D_SIZE 2\n1 1 1\n0 0 0\n")
    source = films / "more" / "other.mov"
    job = batch.videos(source, out=tmp_path / "out" / "a.mp4", device="cpu",
                       chain=[("lut_apply", {"lut": lut})])  # fmt: skip
    lut.unlink()
    plan = job.plan()
    assert plan.minutes is not None
    assert run_inline(job, InlineRunner()).ok
    assert [255 - n for n in shown(tmp_path / "out" / "a.mp4")[1]] == list(range(10))


def test_a_task_is_small(films, tmp_path):
    job = job_of(films, tmp_path)
    manifest = Manifest(job.work)
    index = next(job.tasks(manifest))
    parts = list(job.follow(index, run_task(index), manifest))
    assert max(len(task.to_json()) for task in parts) < 2000


@pytest.mark.parametrize("on", ["nowhere", 3, "", "http"])
def test_where_it_runs(on):
    with pytest.raises(ParameterError, match="'local', 'ray' or the address"):
        make_runner(on, Resources())


# the driver ---------------------------------------------------------------------------------------


class _Many:
    """A job of many tasks that do nothing."""

    def __init__(self, count: int) -> None:
        self.count = count

    def tasks(self, manifest):
        for number in range(self.count):
            yield BatchTask(f"t{number}", "none", f"task {number}", "", {}, {})

    def follow(self, task, result, manifest):
        return ()

    def finished(self, task, manifest):
        return None

    def files_of(self, task, result):
        return 1


class _Nothing(InlineRunner):
    def wait(self, seconds):
        from dala.batch.tasks import Finished

        tasks, self._waiting = list(self._waiting), type(self._waiting)()
        return [Finished(task.id, Result(task.id, 1, 0.0, 0.0)) for task in tasks]


def test_memory_of_the_driver_does_not_grow(tmp_path):
    def peak(count: int) -> int:
        tracemalloc.start()
        report = driver.Driver(
            _Many(count), _Nothing(width=64), Manifest(str(tmp_path)), 2, Display(False)
        ).run()
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert report.files == count
        return found

    peak(50)
    assert peak(1500) < peak(300) + 50_000


def test_the_line_of_progress(monkeypatch):
    from dala.batch import driver as module
    from dala.batch.tasks import Failed

    now = 1000.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    display = Display(False)
    task = BatchTask("a", "video", "a.mp4, 0 to 60 s", "", {}, {}, weight=60.0)
    other = BatchTask("b", "video", "b.mp4, 0 to 60 s", "", {}, {}, weight=60.0)
    display.expect(240.0)
    display.started(task, "host:1")
    display.started(other, "host:2")
    display.finished(task, Result("a", 1500, 2.0, 2.0))
    display.progressed(other, 300)
    line = display.line(now + 10)
    assert "[####            ]  25%" in line
    assert "1800 frames" in line
    assert "0:30 left" in line
    assert "slow: b.mp4, 0 to 60 s on host:2" in line
    display.retried(other, Failed("b", "lost", "host:2"))
    display.gave_up(other)
    assert "1 failed" in display.line(now + 10)
    assert str(Failure("a.mp4", "no", 2)) == "a.mp4: no (tried 2 times)"


# pictures -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    (folder / "deep").mkdir()
    for number in range(12):
        pixels = np.full((6, 8, 3), number * 9, np.uint8)
        name = f"deep/p{number}.png" if number % 2 else f"p{number}.png"
        Frame.from_array(pixels).save(folder / name)
    return folder


def test_pictures(photos, tmp_path):
    (photos / "broken.png").write_bytes(b"no")
    try:
        chain = [("resize", {"size": (4, 3)})]
        job = batch.images(f"{photos}/**/*.png", out=f"{tmp_path}/{{path}}.webp", chain=chain,
                           quality=80, device="cpu")  # fmt: skip
        report = run_inline(job, InlineRunner())
    finally:
        (photos / "broken.png").unlink()
    assert [os.path.basename(f.label) for f in report.failures] == ["broken.png"]
    assert len(digests(tmp_path)) == report.files == 12
    with Frame.open(tmp_path / "deep" / "p5.webp", device="cpu") as frame:
        assert frame.shape[:2] == (3, 4)
        assert abs(int(frame.numpy()[0, 0, 0]) - 45) < 4
    plan = job.plan(calibrate=False)
    assert (plan.files, plan.what, plan.minutes) == (12, "pictures", None)
    assert re.match(r"12 pictures, (1 group|\d+ groups)\n", str(plan))


def test_pictures_that_are_added_are_made_alone(photos, tmp_path, monkeypatch):
    from dala.batch import pictures

    monkeypatch.setattr(pictures, "_MEAN", 3)
    monkeypatch.setattr(pictures, "_SMALL", 0)
    # Names without their folder, which is another in each run, or luck decides where groups end.
    digest = pictures.digest
    monkeypatch.setattr(
        pictures, "digest", lambda name, *more: digest(os.path.basename(name), *more)
    )

    def made() -> list[str]:
        job = batch.images(f"{photos}/", out=f"{tmp_path}/{{path}}.png", chain=INVERT, device="cpu")
        runner = InlineRunner()
        assert run_inline(job, runner, resume=True).ok
        return runner.begun

    assert len(made()) == 5
    assert made() == []
    Frame.from_array(np.zeros((4, 4, 3), np.uint8)).save(photos / "added.png")
    try:
        assert len(made()) == 1
    finally:
        (photos / "added.png").unlink()
    assert "added.png" in digests(tmp_path)


# scenes -------------------------------------------------------------------------------------------


def test_scenes_are_those_of_render_to(films, tmp_path):
    from dala.media import Scene
    from dala.media.scene import load_scene

    with Scene(32, 32, fps=20, device="cpu") as scene:
        scene.add_video(str(films / "long.mp4"), id="film")
        scene.duration = 1.5
        scene.save(tmp_path / "one.json")
    job = batch.scenes(tmp_path / "*.json", out=f"{tmp_path}/out/{{stem}}.mp4", chunk=0.5, crf=20,
                       device="cpu")  # fmt: skip
    plan = job.plan(calibrate=False)
    assert (plan.files, plan.chunks, plan.frames) == (1, 3, 30)
    short = batch.scenes(tmp_path / "*.json", f"{tmp_path}/out/{{stem}}.mp4", seconds=0.3)
    assert short.plan(calibrate=False).frames == 6
    report = run_inline(job, InlineRunner())
    assert report.ok, report.failures
    with load_scene(tmp_path / "one.json", device="cpu") as scene:
        options = {"crf": 20}
        scene.render_to(tmp_path / "same.mp4", chunk=0.5, options=options, progress=False)
        scene.render_to(tmp_path / "whole.mkv", codec="ffv1", progress=False)
        scene.render_to(tmp_path / "parts.mkv", codec="ffv1", chunk=0.5, progress=False)
    assert (tmp_path / "out" / "one.mp4").read_bytes() == (tmp_path / "same.mp4").read_bytes()
    assert sound_packets(tmp_path / "whole.mkv") == sound_packets(tmp_path / "parts.mkv") != []
    assert_same_frames(tmp_path / "whole.mkv", tmp_path / "parts.mkv")


# the command --------------------------------------------------------------------------------------


def dala(*words: object) -> int:
    from dala.cli import main

    return main(["batch", *map(str, words)])


def test_the_command(films, reference, tmp_path, capsys):
    words = [films, f"{tmp_path}/{{path}}.mp4", "--invert", "--chunk", "0.4", "--crf", "12",
             "--threads", "1", "--device", "cpu"]  # fmt: skip
    assert dala("videos", *words, "--plan", "--json") == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["files"], plan["frames"]) == (3, 62)
    assert plan["minutes"] > 0
    assert dala("videos", *words, "--workers", 1, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["files"], report["failures"]) == (3, [])
    assert digests(tmp_path) == reference
    for wrong, text in (
        (["vidoes", "a", "b", "--invert"], "Did you mean 'videos'"),
        (["videos", "a"], "IN and OUT are required"),
        (["videos", "a", "b.mp4"], "name at least one filter"),
        (["images", "a", "b/", "--invert", "--crf", "3"], "--crf: `dala batch images` has no"),
        (["scenes", "a", "b.mp4", "--invert"], "--invert: `dala batch scenes` applies no filters"),
        (["videos", tmp_path / "none.mp4", tmp_path / "b" / "b.mp4", "--invert"], "none.mp4"),
    ):
        try:
            code = dala(*wrong)
        except SystemExit as ended:
            code = ended.code
        assert code == 2
        assert text in capsys.readouterr().err
    assert list(tmp_path.glob("b/**/*.json")) == []  # nothing is left of it


@pytest.mark.long
def test_ctrl_c_ends_the_processes(tmp_path):
    clip(tmp_path / "in.mp4", 250, gop=25)
    command = [sys.executable, "-m", "dala", "batch", "videos", str(tmp_path / "in.mp4"),
               str(tmp_path / "out.mp4"), "--median", "3", "--chunk", "1", "--workers", "1",
               "--device", "reference"]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as process:
        done = list((tmp_path / ".dala-batch").glob("*/done/*"))
        while len(done) < 2 and process.poll() is None:  # the index, and a part
            time.sleep(0.05)
            done = list((tmp_path / ".dala-batch").glob("*/done/*"))
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=300)[1]
    assert process.returncode == 130, errors
    assert "--resume goes on" in errors
    assert not (tmp_path / "out.mp4").exists()
    assert not list((tmp_path / ".dala-batch").glob("*/driver.json"))


# other storage, models ----------------------------------------------------------------------------


def test_files_in_other_storage(films, tmp_path):
    pytest.importorskip("fsspec")
    source = films / "long.mp4"
    storage.write_bytes("memory://jobs/in/deep/a.mp4", source.read_bytes())
    job = batch.videos("memory://jobs/in/**/*.mp4", out="memory://jobs/out/{path}.mp4",
                       chain=INVERT, chunk=0.4, crf=12, threads=1, device="cpu")  # fmt: skip
    try:
        assert job.plan().chunks == 4
        assert run_inline(job, InlineRunner()).ok
        (tmp_path / "a.mp4").write_bytes(storage.read_bytes("memory://jobs/out/deep/a.mp4"))
        again = InlineRunner()
        assert run_inline(job, again, resume=True).files == 1
        assert again.begun == []
    finally:
        storage.remove_tree("memory://jobs")
    assert [255 - n for n in shown(tmp_path / "a.mp4")[1]] == list(range(40))
    assert sound_packets(tmp_path / "a.mp4") == sound_packets(source)


@pytest.mark.long
def test_a_background_is_warmed_up(films, tmp_path):
    pytest.importorskip("onnxruntime")
    for name, chunk in (("whole", None), ("parts", 0.4)):
        job = batch.videos(films / "long.mp4", out=tmp_path / f"{name}.mkv", chunk=chunk,
                           chain=[("background", {"radius": 3}), "invert"], codec="ffv1",
                           device="cpu")  # fmt: skip
        report = run_inline(job, InlineRunner())
        assert report.ok, report.failures
    with (
        video.open(tmp_path / "whole.mkv", device="cpu") as a,
        video.open(tmp_path / "parts.mkv", device="cpu") as b,
    ):
        for one, other in zip(a, b, strict=True):
            assert one.time == other.time
            assert np.abs(one.numpy().astype(int) - other.numpy()).max() <= 2


@pytest.mark.parametrize("color", ["lime", (0, 255, 0), np.array([0, 255, 0])])
def test_background_of_pictures(color, tmp_path):
    Frame.from_array(np.zeros((4, 4, 4), np.uint8)).save(tmp_path / "clear.png")
    job = batch.images(
        f"{tmp_path}/*.png", out=f"{tmp_path}/{{stem}}.bmp", chain=[("brightness", {"value": 0.0})],
        background=color, device="cpu",
    )  # fmt: skip
    run_inline(job, InlineRunner())
    assert Frame.open(tmp_path / "clear.bmp").numpy()[0, 0, :3].tolist() == [0, 255, 0]
