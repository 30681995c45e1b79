"""Workers with different processor levels: one result where every stage is exact in bytes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import av
import numpy as np
import PIL.Image
import pytest

from dala import batch, samples
from dala.batch import driver
from dala.batch.driver import Display
from dala.batch.environment import check_environment
from dala.batch.manifest import Manifest
from dala.batch.runners import Resources
from dala.batch.runners.local import LocalRunner, _Worker
from dala.batch.storage import records
from dala.batch.tasks import Result, run_task
from dala.errors import BatchError
from dala.gpu.compute.engines.cpu.level import LEVELS, host_features
from dala.media import Scene, video
from tests.support.inline import InlineRunner

HERE = [name for name, (_, needed) in LEVELS.items() if all(map(host_features().get, needed))]
KERNEL = """
def grain(px: Pixel, *, amount: f32 = 0.3):
    noise = fract(sin(px.r * 91.7 + px.g * 47.3) * 437.5)
    return rgba(px.rgb * (1.0 - amount) + vec3(noise, px.b * noise, exp(-noise)) * amount, px.a)
"""
CHAIN = [
    ("resize", {"size": (62, 90), "method": "lanczos"}), ("blur", {"radius": 3}),
    ("sharpen", {"amount": 1.5}), ("contrast", {"value": 0.2}), "denoise", ("hue", {"degrees": 40}),
    ("gamma", {"value": 1.7}), (KERNEL, {"amount": 0.4}), ("vignette", {}), "clahe",
]  # fmt: skip


class Levels(LocalRunner):
    """A worker process for each level that this processor has."""

    def __init__(self):
        super().__init__(Resources(workers=len(HERE)))

    def start(self):
        before = os.environ.get("DALA_CPU")
        try:
            for level in HERE:
                os.environ["DALA_CPU"] = level
                self._workers.append(_Worker(self._heard, 1))
        finally:
            del os.environ["DALA_CPU"]
            if before is not None:
                os.environ["DALA_CPU"] = before
        return ", ".join(HERE)


def run(job, runner):
    """Run a job; return the processes that did its tasks."""
    manifest = Manifest(job.work)
    with manifest.hold():
        manifest.begin(job.header(), False)
        job.write_assets()
        report = driver.Driver(job, runner, manifest, 0, Display(False)).run()
    assert report.ok, report.failures
    done = [
        records.read(str(path), Result.of, pytest.fail) for path in Path(job.work, "done").iterdir()
    ]
    return {int(result.worker.rpartition(":")[2]) for result in done if result.worker}


def digests(folder):
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.is_file()
    }


def frame(number):
    face = samples.photo("astronaut").numpy()
    return np.ascontiguousarray(face[20:104, 180 + number : 302 + number, :3])


def make_films(folder):
    for name, count in (("plain.mp4", 9), ("other.mkv", 2)):
        with video.write(folder / name, fps=3, options={"g": "3"}) as sink:
            for number in range(count):
                sink.write(frame(number))


def make_pictures(folder):
    for number in range(6):
        home = folder / str(number % 3)
        home.mkdir(exist_ok=True)
        PIL.Image.fromarray(frame(number)[: 71 + number]).save(home / f"{number}.png")


def make_scene(folder, film):
    """A scene with a rotated film, a blurred one, and text."""
    with Scene(96, 64, device="cpu", background="#26304a") as scene:
        scene.add_video(folder / film, size=(70, 50), position=(10, 5), rotation=20, id="turned")
        scene.add_video(folder / film, size=(41, 31), position=(50, 30), opacity=0.7)
        scene.add_effect("blur", "turned", radius=2)
        scene.add_text("bytes", size=18, position=(5, 40))
        scene.save(folder / "scene.json")


def jobs_of(source, out):
    given = {"chain": CHAIN, "device": "cpu"}
    films = batch.videos(source, out=f"{out}/{{stem}}.mp4", chunk=0.9, threads=1, **given)
    homes = [f"{source}/{number}/" for number in range(3)]  # a task for each
    pictures = batch.images(homes, out=f"{out}/{{stem}}.png", **given)
    given = {"chunk": 1.0, "seconds": 3, "fps": 2, "codec": "ffv1", "threads": 1, "device": "cpu"}
    return films, pictures, batch.scenes(f"{source}/*.json", out=f"{out}/scene.mkv", **given)


@pytest.mark.long
@pytest.mark.skipif(len(HERE) < 2, reason="the processor has one level")
def test_workers_of_all_levels_make_the_bytes_of_one(tmp_path):
    source, one, many = tmp_path / "in", tmp_path / "one", tmp_path / "many"
    for folder in (source, one, many):
        folder.mkdir()
    make_films(source)
    make_pictures(source)
    make_scene(source, "plain.mp4")
    for job in jobs_of(source, one):
        assert run(job, InlineRunner()) == {os.getpid()}
    runner = Levels()
    runner.start()
    try:
        for job in jobs_of(source, many):
            assert run(job, runner) == set(runner.processes)  # each level took part
            plan = job.plan(calibrate=False)
            assert plan.processors.startswith("any processor level: all stages are exact in bytes")
            assert plan.processors in str(plan)
    finally:
        runner.stop(True)
    assert len(digests(one)) == 9
    assert digests(many) == digests(one)


@pytest.mark.parametrize(
    ("codec", "name", "levels"),
    [("h264", "x264", ("sse4.2", "avx2")), ("hevc", "x265", ("sse2", "avx2"))],
)
def test_encoders_make_the_same_bytes_with_other_instructions(tmp_path, codec, name, levels):
    for level in levels:
        options = {f"{name}-params": f"asm={level}:log-level=0"}
        target = tmp_path / f"{level}.mkv"
        with video.write(target, fps=25, codec=codec, options=options, threads=1) as sink:
            for number in range(4):
                sink.write(frame(number))
    assert len(set(digests(tmp_path).values())) == 1


@pytest.fixture
def planned(monkeypatch):
    """Let plans be made for another level than that of this process."""
    from dala.machine import processor

    def seem(name):
        monkeypatch.setattr(processor, "cpu_level", lambda: name)

    return seem


def test_only_pictures_of_more_than_8_bits_need_the_level(planned, tmp_path):
    deep, flat = tmp_path / "deep", tmp_path / "flat"
    for folder, dtype in ((deep, np.uint16), (flat, np.uint8)):
        folder.mkdir()
        PIL.Image.fromarray(np.arange(42, dtype=dtype).reshape(6, 7)).save(folder / "one.png")
    planned("another")
    jobs = [
        batch.images(f"{folder}/", out=f"{tmp_path}/out/{{stem}}.png", chain=["blur"], device="cpu")
        for folder in (flat, deep)
    ]
    planned("this")
    plain, refused = (run_task(next(iter(job.tasks(Manifest(job.work))))) for job in jobs)
    assert (plain.frames, plain.failures) == (1, ())
    assert refused.frames == 0
    assert "a picture of 16 bits, is computed in floats" in refused.failures[0].error
    assert "for CPU level 'another'; the worker" in refused.failures[0].error


def test_a_chain_outside_the_contract_keeps_the_level(planned, tmp_path):
    (tmp_path / "one.png").write_bytes(b"")
    planned("this")
    given = {"out": f"{tmp_path}/out/{{stem}}.mp4", "device": "cpu"}
    job = batch.videos(f"{tmp_path}/", chain=["background", "blur"], **given)
    assert job.processors == "processor level this or above: 'background' is a model"
    exact = batch.videos(f"{tmp_path}/", chain=["blur"], **given)
    planned("another")
    check_environment(exact.environment)
    with pytest.raises(BatchError, match="CPU level is 'another', the plan has 'this'"):
        check_environment(job.environment)
    detected = batch.detect(f"{tmp_path}/", out=f"{tmp_path}/rows", device="cpu")
    assert detected.processors == "processor level another or above: models are run"


def test_a_resumed_job_keeps_the_level_of_its_floats(planned, tmp_path):
    PIL.Image.new("L", (4, 4)).save(tmp_path / "one.png")

    def job():
        return batch.images(f"{tmp_path}/*.png", f"{tmp_path}/out/", ["blur"], device="cpu")

    planned("older")
    first = job()
    first.run(workers=1)
    planned("newer")
    second = job()
    report = second.run(workers=1, resume=True)
    assert (report.ok, report.resumed, second.environment) == (True, 1, first.environment)


@pytest.fixture
def hdr(tmp_path):
    """A video of one HDR frame."""
    with av.open(tmp_path / "hdr.mkv", "w") as out:
        stream = out.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 16, "yuv420p10le"
        stream.codec_context.color_trc = 16  # PQ
        made = av.VideoFrame(64, 16, "yuv420p10le")
        made.pts, made.color_trc = 0, 16
        for packet in (*stream.encode(made), *stream.encode(None)):
            out.mux(packet)
    return tmp_path


def test_hdr_videos_need_the_level(planned, hdr):
    make_scene(hdr, "hdr.mkv")
    planned("another")
    given = {"out": f"{hdr}/out/{{stem}}.mp4", "device": "cpu", "threads": 1}
    jobs = (
        batch.videos(f"{hdr}/", chain=["blur"], **given),
        batch.scenes(f"{hdr}/*.json", seconds=0.1, **given),
    )
    for job in jobs:
        planned("this")
        manifest = Manifest(job.work)
        with manifest.hold():
            manifest.begin(job.header(), False)
            report = driver.Driver(job, InlineRunner(), manifest, 0, Display(False)).run()
        assert len(report.failures) == 1
        assert "is computed in floats, which the plan fixes for CPU level" in str(report.failures)
        assert "hdr.mkv" in str(report.failures)
