"""Storage: local folders, memory, S3 on a real server, HTTP with ranges; faults and limits."""

import errno
import io
import os
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dala.batch import storage
from dala.batch.storage import FileStore, Roots
from dala.batch.storage import remote as faults_module
from dala.batch.storage.reading import RangeReader
from dala.batch.storage.remote import Retries
from dala.batch.storage.store import has_magic
from dala.errors import FreedError, ParameterError, StorageError, StorageNotFound
from dala.media import video
from tests.support.servers import Web, s3_server, web_server

#: No pauses.
QUICK = Retries(attempts=4, first=0.0, most=0.0, timeout=20.0)


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, dict[str, object]]]:
    with s3_server("films") as options:
        yield options


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with web_server() as server:
        yield server


@pytest.fixture(params=["file", "memory", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FileStore, str]:
    """A storage and an empty folder in it."""
    if request.param == "file":
        return FileStore(retries=QUICK), str(tmp_path)
    if request.param == "memory":
        return FileStore(retries=QUICK), f"memory://{tmp_path.name}"
    options = request.getfixturevalue("s3")
    return FileStore(options, retries=QUICK), f"s3://films/{tmp_path.name}"


# every storage -----------------------------------------------------------------------------------
def test_files_appear_whole(place: tuple[FileStore, str]) -> None:
    store, root = place
    name = storage.join(root, "a", "b.bin")
    assert not store.exists(name)
    with pytest.raises(StorageNotFound, match="there is no file or folder"):
        store.read(name)
    store.write(name, b"first")
    store.write(name, b"second")
    assert store.read(name) == b"second"
    assert store.stat(name).size == 6
    assert store.exists(name)
    assert not store.exists(storage.join(root, "a"))
    assert store.is_folder(storage.join(root, "a"))
    store.remove(name)
    store.remove(name)
    assert not store.exists(name)


def test_of_two_creators_one_succeeds(place: tuple[FileStore, str]) -> None:
    store, root = place
    name = storage.join(root, "claim")
    assert store.create(name, b"mine")
    assert not store.create(name, b"yours")
    assert store.read(name) == b"mine"


def test_parts_are_published_or_leave_nothing(place: tuple[FileStore, str]) -> None:
    store, root = place
    name = storage.join(root, "deep", "er", "film.mp4")
    with pytest.raises(ZeroDivisionError), store.part(name, ".mp4") as part:
        part.path.write_bytes(b"half")
        assert part.path.suffix == ".mp4"
        1 / 0  # noqa: B018
    assert not store.exists(name)
    assert not part.path.exists()
    with store.part(name) as part:
        part.path.write_bytes(b"whole")
        assert not store.exists(name)
        part.complete()
    assert store.read(name) == b"whole"
    assert not part.path.exists()
    assert [f.name for f in store.list(storage.join(root, "deep", "er"))] == [name]
    store.remove_tree(storage.join(root, "deep"))
    store.remove_tree(storage.join(root, "deep"))
    assert not store.exists(name)


def test_patterns_find_files_in_order(place: tuple[FileStore, str]) -> None:
    store, root = place
    names = [
        "b.mp4",
        "a.mp4",
        "x/c.mp4",
        "x/y/d.MP4",
        "x/.hidden.mp4",
        "n.txt",
        "x/[1].mp4",
        "z/z/e.mp4",
    ]
    for name in names:
        store.write(storage.join(root, name), name.encode())

    def found(pattern: str, *suffixes: str) -> list[str]:
        files = list(store.find(storage.join(root, pattern) if pattern else root, suffixes))
        assert all(store.read(f.name) == f"{_fixed(pattern)}{f.path}".encode() for f in files)
        assert all(f.size == store.stat(f.name).size for f in files)
        return [f.path for f in files]

    assert found("*.mp4") == ["a.mp4", "b.mp4"]
    assert found("**/*.mp4") == ["a.mp4", "b.mp4", "x/[1].mp4", "x/c.mp4", "z/z/e.mp4"]
    assert found("", ".mp4") == ["a.mp4", "b.mp4", "x/[1].mp4", "x/c.mp4", "x/y/d.MP4", "z/z/e.mp4"]
    assert found("x") == ["[1].mp4", "c.mp4", "y/d.MP4"]
    assert found("x/[1].mp4") == ["[1].mp4"]  # a file of that name wins
    assert found("x/.*.mp4") == [".hidden.mp4"]
    assert found("?/?/*") == ["x/y/d.MP4", "z/z/e.mp4"]
    assert found("**/z/**/*.mp4") == ["z/z/e.mp4"]  # once, though it matches in two ways
    assert found("[ab].mp4") == ["a.mp4", "b.mp4"]
    assert found("nothing*") == []
    with pytest.raises(StorageNotFound):
        list(store.find(storage.join(root, "nothing")))
    both = [storage.join(root, "n.txt"), storage.join(root, "z/**")]
    assert [f.path for f in store.find(both)] == ["n.txt", "z/e.mp4"]


def _fixed(pattern: str) -> str:
    """The folder of a pattern, of which paths leave out."""
    if pattern in ("x", "x/.*.mp4", "x/[1].mp4"):
        return "x/"
    return ""


def test_a_stamp_changes_with_the_file(place: tuple[FileStore, str]) -> None:
    store, root = place
    name = storage.join(root, "film")
    store.write(name, b"first")
    before = store.stat(name).stamp
    assert store.stat(name).stamp == before
    store.write(name, b"other")
    assert store.stat(name).stamp != before


def test_videos_are_decoded_through_ranges(place: tuple[FileStore, str]) -> None:
    store, root = place
    name = storage.join(root, "film.mp4")
    store.write(name, _film())
    with video.open(store.source(name)) as source:
        shades = [int(frame.numpy()[..., 0].mean()) for frame in source]
    assert len(shades) == 40
    assert shades == pytest.approx([6 * k for k in range(40)], abs=3)


_films: list[bytes] = []


def _film() -> bytes:
    """Forty frames that get brighter."""
    if not _films:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "film.mp4")
            with video.write(path, fps=20, options={"g": "5"}) as sink:
                for k in range(40):
                    sink.write(np.full((48, 64, 3), 6 * k, np.uint8))
            _films.append(path.read_bytes())
    return _films[0]


# ranges ------------------------------------------------------------------------------------------
def _reader(data: bytes) -> RangeReader:
    return RangeReader(lambda start, end: data[start:end], len(data), "s3://films/a.bin")


@given(st.lists(st.tuples(st.integers(0, 2_100_000), st.integers(0, 400_000)), max_size=30))
def test_a_range_reader_reads_like_a_file(steps: list[tuple[int, int]]) -> None:
    data = random.Random(7).randbytes(2_000_000)
    with _reader(data) as file, io.BytesIO(data) as model:
        for at, count in steps:
            assert file.seek(at) == model.seek(at)
            assert file.read(count) == model.read(count)
            assert file.tell() == model.tell() or at > len(data)
        file.seek(-10, io.SEEK_END)
        assert file.read() == data[-10:]


def test_only_what_is_needed_is_fetched() -> None:
    data = bytes(100_000_000)
    with _reader(data) as file:
        file.read(8)
        file.seek(-100, io.SEEK_END)
        file.read()
        assert file.requests == 2
        assert file.fetched < 70_000
        file.seek(50_000_000)
        for _ in range(1000):
            file.read(32 << 10)
        # Requests grow while reading goes on, and never run ahead by more than one.
        assert file.requests < 20
        assert file.fetched < (32 << 10) * 1000 + (5 << 20)


def test_positions_are_read_in_turns() -> None:
    """A demuxer jumps between pictures and sound; neither is fetched twice."""
    data = bytes(20_000_000)
    with _reader(data) as file:
        for k in range(100):
            assert len(file.read_at(k * 10_000, 10_000)) == 10_000
            assert len(file.read_at(10_000_000 + k * 10_000, 10_000)) == 10_000
        assert file.fetched < 2 * (1_000_000 + (2 << 20))
    with pytest.raises(FreedError, match=r"the file 'a.bin' is closed"):
        file.read_at(0, 1)


def test_http_is_read_by_ranges(web: Web) -> None:
    data = _film() + bytes(1_000_000)
    web.files["/film.mp4"] = data
    store = FileStore(retries=QUICK)
    url = f"{web.url}/film.mp4?key=secret"
    assert [f.size for f in store.find(url)] == [len(data)]
    web.asked.clear()
    with store.open(url) as file:
        file.seek(500_000)
        assert file.read(10) == data[500_000:500_010]
    assert web.asked == [(500_000, 500_000 + (64 << 10))]
    with pytest.raises(StorageNotFound, match=r"'http://127.0.0.1:\d+/none'"):
        store.stat(f"{web.url}/none?key=secret")
    with pytest.raises(StorageError, match="HTTP is only read"):
        store.write(url, b"")
    with pytest.raises(StorageNotFound):  # no listing, hence no folder
        list(store.find(f"{web.url}/"))


def test_http_without_ranges_is_refused(web: Web) -> None:
    web.files["/film.mp4"] = bytes(1_000_000)
    web.ranges = False
    try:
        with (
            FileStore(retries=QUICK).open(f"{web.url}/film.mp4") as file,
            pytest.raises(StorageError, match="does not send parts of files"),
        ):
            file.read(10)
    finally:
        web.ranges = True


@pytest.mark.parametrize("fault", ["503", "cut", "drop"])
def test_faults_that_pass_are_tried_again(web: Web, fault: str) -> None:
    data = random.Random(3).randbytes(300_000)
    web.files["/a.bin"] = data
    with FileStore(retries=QUICK).open(f"{web.url}/a.bin") as file:
        web.faults[:] = [fault, fault]
        assert file.read() == data


def test_faults_that_do_not_pass_are_reported(web: Web) -> None:
    web.files["/a.bin"] = bytes(1000)
    with FileStore(retries=QUICK).open(f"{web.url}/a.bin?key=secret") as file:
        web.faults[:] = ["503"] * 20
        with pytest.raises(StorageError, match="cannot be reached after 4 attempts") as raised:
            file.read()
        web.faults.clear()
    assert "secret" not in str(raised.value)


def test_a_slow_answer_is_asked_for_again(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request without an answer ends after the timeout."""
    waited: list[float] = []
    tried = []

    def work() -> str:
        tried.append(1)
        if len(tried) < 3:
            raise TimeoutError
        return "done"

    retries = Retries(attempts=4, first=1.0, most=1.5, timeout=1.0)
    monkeypatch.setattr(faults_module.random, "uniform", lambda low, high: 1.0)
    assert faults_module.retrying(work, retries, "x", "y", sleep=waited.append) == "done"
    assert waited == [1.0, 1.5]


def test_which_faults_pass() -> None:
    def answer(**attributes: object) -> Exception:
        error = Exception()
        error.__dict__.update(attributes)
        return error

    passing = faults_module.passing
    assert passing(answer(response={"Error": {"Code": "SlowDown"}}))
    assert passing(answer(status=503))
    assert not passing(answer(status=403))
    assert not passing(answer(response={"Error": {"Code": "AccessDenied"}}))
    assert passing(OSError(errno.ESTALE, "stale"))
    assert not passing(OSError(errno.ENOSPC, "full"))
    assert not passing(ValueError())
    wrapped = OSError("wrapped")
    wrapped.__cause__ = answer(status=429)
    assert passing(wrapped)


def test_a_lost_answer_of_create_is_no_conflict() -> None:
    store = FileStore(retries=QUICK)
    tried = []

    def create(url: str, data: bytes) -> None:
        tried.append(url)
        if len(tried) == 1:
            store.write(url, data)
            raise ConnectionResetError
        raise FileExistsError

    name = "memory://lost/claim"
    store.exists(name)
    read = store._places["memory"].read
    stat = store._places["memory"].stat
    write = store._places["memory"].write
    store._places["memory"] = SimpleNamespace(create=create, read=read, stat=stat, write=write)
    assert store.create(name, b"mine")


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with (
        pytest.raises(StorageError, match=r"x: no space is left for 'film.mp4'"),
        open("/dev/full", "wb", 0) as file,
    ):
        faults_module.retrying(lambda: file.write(b"1"), QUICK, "x", "film.mp4")


# names and limits --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "url",
    [
        "zip://a.zip::s3://x",
        "github://a:b@c/",
        "reference://x",
        "simplecache::s3://films/a.mp4",
        "ftpx://a",
    ],
)
def test_unknown_storage_is_refused(url: str) -> None:
    with pytest.raises((ParameterError, StorageNotFound)):
        FileStore().stat(url)


def test_names_must_be_text() -> None:
    with pytest.raises(ParameterError, match="a path or a URL"):
        list(FileStore().find([3]))  # type: ignore[list-item]
    with pytest.raises(ParameterError, match="a list of them"):
        list(FileStore().find([]))
    with pytest.raises(ParameterError, match="on one line"):
        FileStore().stat("a\0b")


def test_web_addresses_are_no_patterns() -> None:
    assert not has_magic("https://example.com/a[1].mp4?b=*")
    assert has_magic("s3://films/a[1].mp4")


def test_roots_keep_a_job_to_its_files(tmp_path: Path) -> None:
    roots = Roots(["s3://films/in", str(tmp_path / "out")])
    for bad in (
        "s3://films/in/../secret",
        "s3://films/inside",
        "s3://other/in/a",
        "/etc/passwd",
        f"{tmp_path}/out/../x",
        "memory://films/in",
        f"file://{tmp_path}/x",
    ):
        for writes in (False, True):
            with pytest.raises(ParameterError, match="a file of the job, which is kept to"):
                roots.check("x", bad, writes=writes)
    roots.check("x", f"{tmp_path}/out/a", writes=True)
    roots.check("x", f"file://{tmp_path}/out/a")


def test_links_do_not_lead_writes_out_of_the_roots(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "else").mkdir()
    (tmp_path / "out" / "link").symlink_to(tmp_path / "else")
    roots = Roots([str(tmp_path / "out")])
    roots.check("x", f"{tmp_path}/out/link/a")
    with pytest.raises(ParameterError, match="a file of the job"):
        roots.check("x", f"{tmp_path}/out/link/a", writes=True)


def test_a_link_to_its_own_folder_ends(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f.png").write_bytes(b"1")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    assert [f.path for f in FileStore().find(str(tmp_path))] == ["a/f.png"]


def test_storage_travels_and_hides_its_keys() -> None:
    store = FileStore({"s3": {"secret": "hush"}}, QUICK)
    other = pickle.loads(pickle.dumps(store))
    assert other.options == store.options
    assert other.retries == QUICK
    assert "hush" not in repr(store)
    assert len(pickle.dumps(store)) < 500
    with pytest.raises(ParameterError, match="Did you mean 's3'"):
        FileStore({"s33": {}})


def test_roots_of_the_whole_disk() -> None:
    assert Roots(["/"]).contain("/etc/passwd")
    assert not Roots([]).contain("/etc/passwd")


@pytest.mark.long
def test_s3_with_faults() -> None:
    """A server of which every third request fails: each file is written once, and read whole."""
    generator = random.Random(5)
    faults: list[str] = []

    def fate(method: str, path: str) -> str:
        if path == "/flaky" or generator.random() > 0.3:
            return ""
        faults.append(generator.choice(["503", "500", "lost"]))
        return faults[-1]

    retries = Retries(attempts=12, first=0.0, most=0.0, timeout=20.0)
    with s3_server("flaky", fate) as options:
        store = FileStore(options, retries=retries)
        for k in range(12):
            name = f"s3://flaky/folder/{k:02}"
            assert store.create(name, b"%d" % k)
            assert not store.create(name, b"other")
            assert store.read(name) == b"%d" % k
        assert [f.path for f in store.find("s3://flaky/folder")] == [f"{k:02}" for k in range(12)]
    assert {"503", "500", "lost"} == set(faults)
