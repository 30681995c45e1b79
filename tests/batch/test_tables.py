"""Tables: rows of models over videos and pictures, Parquet, reading, sharing of videos."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dala
from dala import batch, samples
from dala.batch import storage
from dala.batch.manifest import Manifest
from dala.batch.options import Interval
from dala.batch.planning.plans import BatchPlan
from dala.batch.planning.scaling import MachineKind
from dala.batch.tables import jobs as table_jobs
from dala.batch.tables.parquet import rows_of, schema, write_folder
from dala.batch.tables.work import Share, frames_of
from dala.batch.tasks import run_task
from dala.cli import main
from dala.errors import (
    BatchError,
    MissingPackage,
    ParameterError,
    StorageNotFound,
    UnknownParameter,
)
from dala.media import Frame, video
from dala.ml.convert.onnx_file import Graph
from dala.ml.gpu import load_model
from dala.ml.results import Hand, Hands, Keypoint, Pose, Poses, Scores

pa = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def face() -> np.ndarray:
    """A photograph with a face, small."""
    with dala.device("cpu"):
        frame = samples.photo("astronaut")
        return np.ascontiguousarray(frame.numpy()[::2, ::2, :3])


@pytest.fixture(scope="module")
def videos(face: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a video whose second half has a face, a picture of it, and a damaged one."""
    folder = tmp_path_factory.mktemp("videos")
    height, width = face.shape[0] // 2 * 2, face.shape[1] // 2 * 2
    with video.write(folder / "film.mp4", fps=10, options={"g": "4"}) as sink:
        for k in range(12):
            empty = np.zeros((height, width, 3), np.uint8)
            sink.write(face[:height, :width] if k >= 6 else empty)
    with dala.device("cpu"):
        Frame.from_array(face).save(folder / "picture.png")
    (folder / "damaged.png").write_bytes(b"not a picture")
    (folder / "notes.txt").write_text("no picture")
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test only."""
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.long
def test_faces_of_a_folder(videos: Path, cache: Path, tmp_path: Path, face: np.ndarray) -> None:
    job = batch.faces(str(videos), every="200ms", device="cpu")
    assert job.plan(calibrate=False).files == 3
    report = job.run(workers=1, retries=0)
    assert [f.label.rpartition("/")[2] for f in report.failures] == ["damaged.png"]
    report.to_parquet(tmp_path / "found")
    table = batch.read(tmp_path / "found")
    assert table.columns == [
        "video", "time", "box", "label", "score", "model", "version", "keypoints",
    ]  # fmt: skip
    rows = list(table)
    assert len(rows) == len(table) == report.rows
    film = str(videos / "film.mp4")
    assert [row["time"] for row in rows if row["video"] == film] == [0.6, 0.8, 1.0]
    [picture] = [row for row in rows if row["video"] != film]
    assert picture["video"] == str(videos / "picture.png")
    assert picture["time"] is None
    with dala.device("cpu"), load_model("blazeface", "cpu") as model:
        [expected] = model.predict(face)
    assert tuple(picture["box"].values()) == pytest.approx(expected.box, abs=0.01)
    assert picture["score"] == pytest.approx(expected.score)
    assert picture["label"] == "face"
    assert picture["model"] == "blazeface"
    assert picture["version"] == "78e73827bd42c4c5"
    assert picture["keypoints"][0]["name"] == expected.keypoints[0].name
    assert picture["keypoints"][0]["x"] == pytest.approx(expected.keypoints[0].x, abs=0.01)
    arrow = table.to_arrow()
    assert arrow.num_rows == len(rows)
    assert arrow.schema.metadata is None or b"dala.task" not in arrow.schema.metadata
    # Written again, the bytes are the same.
    before = (tmp_path / "found" / "part-00000.parquet").read_bytes()
    report.to_parquet(tmp_path / "again")
    assert (tmp_path / "again" / "part-00000.parquet").read_bytes() == before


@pytest.mark.long
def test_a_video_in_shares_has_the_same_rows(
    videos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table in ``out`` does not depend on the number of tasks, and a resumed job adds none."""
    film = str(videos / "film.mp4")
    whole = batch.faces(film, out=tmp_path / "whole", device="cpu")
    assert whole.run(workers=1).tasks == 1
    monkeypatch.setattr(table_jobs, "_SHARE_BYTES", os.path.getsize(film) // 3 + 1)
    shared = batch.faces(film, out=tmp_path / "shared", device="cpu")
    report = shared.run(workers=1)
    assert report.tasks == 3
    assert report.files == 1
    assert report.rows == 6
    first, second = batch.read(tmp_path / "whole"), batch.read(tmp_path / "shared")
    assert list(first) == list(second)
    again = shared.run(workers=1, resume=True)
    assert (again.tasks, again.resumed, again.rows) == (0, 3, 6)


def test_remote_storage(videos: Path) -> None:
    """The same through fsspec. Memory is that of this process, so the task runs here."""
    storage.write_bytes("memory://table/in/film.mp4", (videos / "film.mp4").read_bytes())
    job = batch.faces("memory://table/in/", out="memory://table/found", every=0.5, device="cpu")
    [task] = job.tasks(Manifest(job.work))
    result = run_task(task)
    assert result.facts["rows"] == 1
    [part] = storage.listing(f"{job.work}/parts/*.parquet")
    [row] = batch.read(part.name)
    assert (row["video"], row["time"]) == ("memory://table/in/film.mp4", 1.0)
    storage.remove_tree("memory://table")


def test_mistakes_are_named(videos: Path, tmp_path: Path) -> None:
    folder = str(videos)
    with pytest.raises(ParameterError, match=r"batch.detect: model must be .* for batch.faces"):
        batch.detect(folder, model="blazeface")
    with pytest.raises(ParameterError, match=r"batch.faces: every must be a time above 0"):
        batch.faces(folder, every="soon")
    with pytest.raises(UnknownParameter, match=r"has no option 'scor'\. Did you mean 'score'"):
        batch.faces(folder, scor=0.5)
    with pytest.raises(ParameterError, match=r"batch.classify: top must be an int from 1"):
        batch.classify(folder, top=0)
    with pytest.raises(ParameterError, match=r"out must be a folder that all machines reach"):
        batch.faces(folder).run(on="ray")
    with pytest.raises(StorageNotFound, match="there is no Parquet file"):
        batch.read(folder)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 not")
    with pytest.raises(ParameterError, match=r"bad.parquet' is no Parquet file, or damaged"):
        batch.read(tmp_path)


def test_weights_that_differ_from_the_plan_are_refused(videos: Path, tmp_path: Path) -> None:
    job = batch.faces(str(videos / "film.mp4"), out=tmp_path / "found", device="cpu")
    job.spec = {**job.spec, "version": "0" * 16}
    [task] = job.tasks(Manifest(job.work))
    with pytest.raises(BatchError, match="its weights of 'blazeface' are 78e73827bd42c4c5"):
        run_task(task)
    assert not list(tmp_path.rglob("*.parquet"))


def test_rows_of_every_kind() -> None:
    scores = Scores([0.1, 0.7, 0.2], ["cat", "dog", "fox"])
    assert [(r["label"], r["box"]) for r in rows_of("classify", scores, "a", None, 2)] == [
        ("dog", None),
        ("fox", None),
    ]
    points = (Keypoint("wrist", 1.0, 2.0, 0.5),)
    hand = Hands([Hand((0, 0, 9, 9), "hand", 0.9, keypoints=points, side="left")], {})
    [row] = rows_of("hands", hand, "a", 1.0, 1)
    assert row["label"] == "left hand"
    pose = Poses([Pose(points, 0.75)], {})
    [row] = rows_of("poses", pose, "a", 1.0, 1)
    assert row["label"] == "person"
    assert row["keypoints"] == [{"name": "wrist", "x": 1.0, "y": 2.0, "score": 0.5}]
    table = pa.Table.from_pylist([{**row, "model": "m", "version": "v"}], schema("poses"))
    assert table.to_pylist()[0]["box"] == {"x1": 1.0, "y1": 2.0, "x2": 1.0, "y2": 2.0}


def test_folders_are_replaced_whole(tmp_path: Path) -> None:
    columns = pa.schema([("n", pa.int64())])

    def batches(count: int) -> Iterator[pa.RecordBatch]:
        for k in range(count):
            yield pa.record_batch([pa.array([2 * k, 2 * k + 1])], schema=columns)

    assert write_folder(batches(5), columns, str(tmp_path), file_rows=4) == 10
    assert sorted(os.listdir(tmp_path)) == [f"part-0000{k}.parquet" for k in range(3)]
    assert [row["n"] for row in batch.read(tmp_path)] == list(range(10))
    assert write_folder(batches(1), columns, str(tmp_path)) == 2
    assert os.listdir(tmp_path) == ["part-00000.parquet"]
    assert write_folder(batches(0), columns, str(tmp_path)) == 0
    assert batch.read(tmp_path).columns == ["n"]  # an empty table has its columns
    assert len(batch.read(tmp_path)) == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Ray Data
def test_ray_data_reads_tables(tmp_path: Path) -> None:
    columns = pa.schema([("n", pa.int64())])
    rows = pa.record_batch([pa.array([1, 2])], schema=columns)
    write_folder(iter([rows]), columns, str(tmp_path))
    table = batch.read(tmp_path)
    try:
        import ray.data
    except ImportError:
        with pytest.raises(MissingPackage, match=r'pip install "ray\[data\]"'):
            table.to_ray_dataset()
        return
    try:
        assert sorted(row["n"] for row in table.to_ray_dataset().take_all()) == [1, 2]
    finally:
        ray.shutdown()


# sampling ----------------------------------------------------------------------------------------
@given(
    st.lists(st.fractions(0, 20, max_denominator=90), unique=True, max_size=60),
    st.integers(1, 7),
    st.one_of(st.none(), st.fractions(Fraction(1, 30), 5, max_denominator=60)),
    st.fractions(0, 25, max_denominator=90),
)
def test_shares_together_are_the_whole(
    times: list[Fraction], count: int, every: Fraction | None, duration: Fraction
) -> None:
    """No frame is lost or taken twice, whatever the header says about the duration."""
    times = sorted(times)
    whole = Share(float(duration), 0, 1, every)
    expected = [t for t in times if whole.wants(t)]
    taken = []
    for number in range(count):
        share = Share(float(duration), number, count, every)
        if not share.empty:
            taken += [t for t in times if share.wants(t)]
    assert taken == expected
    if every is not None:
        assert len({t // every for t in expected}) == len(expected)
        assert {t // every for t in expected} == {t // every for t in times}


def test_frames_of_a_share(videos: Path) -> None:
    for number, expected in enumerate([(0.0, 0.2), (0.4, 0.6), (0.8, 1.0)]):
        with dala.device("cpu"), video.open(videos / "film.mp4") as reader:
            share = Share(reader.duration, number, 3, Fraction(1, 5))
            times = [float(frame.time) for frame in frames_of(reader, share)]
        assert times == list(expected)


def test_times_as_text() -> None:
    every = Interval()
    assert every.accept("1s") == every.accept("1") == 1
    assert every.accept("1.5min") == 90
    assert every.accept("500ms") == Fraction(1, 2)
    assert every.accept(Fraction(1, 3)) == Fraction(1, 3)
    for bad in ("", "-1s", 0, -1, float("nan"), float("inf"), True, "1 day", [1]):
        with pytest.raises(ParameterError, match="every must be a time above 0"):
            every.check("x", "every", bad)


def test_a_model_from_a_file(videos: Path, tmp_path: Path, cache: Path) -> None:
    """A model of one's own is named by its file, and known by its digest."""
    graph = Graph("mine")
    mean = graph.node("GlobalAveragePool", graph.input("x", ("batch", 3, 8, 8)))
    graph.output(graph.node("Flatten", mean, axis=1), ("batch", 3), name="scores")
    mine = tmp_path / "mine.onnx"
    mine.write_bytes(graph.save())
    job = batch.classify(str(videos / "picture.png"), model=str(mine), top=3, device="cpu")
    [task] = job.tasks(Manifest(job.work))
    run_task(task)
    rows = list(batch.read(f"{job.work}/parts"))
    assert len(rows) == 3
    assert {row["model"] for row in rows} == {"mine"}
    digest = hashlib.sha256(mine.read_bytes()).hexdigest()
    assert {row["version"] for row in rows} == {digest[:16]}
    with pytest.raises(ParameterError, match="model must be the name of a model"):
        batch.faces(str(videos), model=str(mine))


# scale -------------------------------------------------------------------------------------------
def test_estimates_of_scale() -> None:
    """Each limit of a cluster shows as the bottleneck where it is the slowest part."""
    plan = BatchPlan("videos", files=100, chunks=10_000, frames=10**7, bytes_read=10**12)
    plan.worker_minutes, plan.bytes_written = 100_000.0, 10**11

    def bottleneck(count: int, **kind: float) -> str:
        [point] = batch.scale(plan, [count], MachineKind(**kind), filter_share=0.5)
        return point.bottleneck

    fast = {"storage": 1e15, "network": 1e15, "overhead": 0.0, "start": 0.0}
    assert bottleneck(1, **fast) == "CPU"
    assert bottleneck(5000, **fast) == "chunks"
    assert bottleneck(1, **{**fast, "gpus": 1, "gpu_seconds": 0.1}) == "GPU"
    assert bottleneck(100, **{**fast, "storage": 1e8}) == "storage"
    assert bottleneck(100, **{**fast, "network": 1e5}) == "network"
    assert bottleneck(600, **{**fast, "overhead": 1.0}) == "driver"
    assert bottleneck(600, **{**fast, "start": 1e6}) == "start"
    points = batch.scale(plan, range(1, 200))
    assert points[0].efficiency == 1
    assert all(a.seconds >= b.seconds for a, b in itertools.pairwise(points))
    assert all(point.efficiency <= 1.0001 for point in points)
    with pytest.raises(ParameterError, match=r"batch.scale: plan must be one with an estimate"):
        batch.scale(BatchPlan("videos"), [1])
    with pytest.raises(ParameterError, match="machines must be ints of at least 1"):
        batch.scale(plan, [0])


# the command line --------------------------------------------------------------------------------
@pytest.mark.long
def test_tables_on_the_command_line(
    videos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    film, out = str(videos / "film.mp4"), str(tmp_path / "found")
    given = ["batch", "faces", film, out, "--every", "500ms", "--score", "0.5"]
    arguments = [*given, "--device", "cpu"]
    assert main([*arguments, "--workers", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 1
    [row] = batch.read(out)
    assert (row["label"], row["time"]) == ("face", 1.0)
    assert main([*arguments, "--plan"]) == 0
    assert capsys.readouterr().out.startswith("1 file, 1 chunk")
    assert main([*arguments, "--storage", "s3"]) == 2
    assert "such as s3.endpoint_url=http://minio:9000, got 's3'" in capsys.readouterr().err
    assert main([*arguments, "--storage", "s9.key=a"]) == 2
    wanted = "--storage: protocol must be that of a known storage, got 's9'. Protocols: file, "
    assert wanted in capsys.readouterr().err
    assert main([*arguments, "--top", "3"]) == 2
    assert "--top: `dala batch faces` has no such option" in capsys.readouterr().err
