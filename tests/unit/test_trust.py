"""Files that only this user can have written: folders, private files, the key of seals."""

import os
import socket
import stat
import subprocess
import sys

import pytest

from dala import trust

posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes of POSIX")
root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can change the owner"
)


@pytest.fixture(autouse=True)
def own_state(monkeypatch, tmp_path):
    monkeypatch.delenv("DALA_CACHE_TRUST", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


# folders ------------------------------------------------------------------------------------------
@posix
@pytest.mark.parametrize("mode", [0o770, 0o720, 0o777, 0o702])
def test_a_folder_that_others_can_write_to(tmp_path, monkeypatch, mode):
    inner = tmp_path / "shared" / "inner"
    inner.mkdir(parents=True, mode=0o700)
    assert trust.distrust(str(inner)) == ""
    (tmp_path / "shared").chmod(mode)
    expected = f"other users can write to {tmp_path / 'shared'}"
    assert trust.distrust(str(inner)) == expected
    assert trust.distrust(str(tmp_path / "shared")) == expected
    assert trust.distrust(str(inner / "not" / "there" / "yet")) == expected
    (tmp_path / "shared").chmod(mode | stat.S_ISVTX)
    assert trust.distrust(str(inner)) == ""  # sticky, as /tmp
    (tmp_path / "shared").chmod(mode)
    monkeypatch.setenv("DALA_CACHE_TRUST", "1")
    assert trust.distrust(str(inner)) == ""


@posix
def test_links_are_followed_and_the_folders_they_are_in_are_checked(tmp_path):
    for name in ("private", "shared", "target"):
        (tmp_path / name).mkdir(mode=0o700)
    (tmp_path / "private" / "link").symlink_to("../shared/hop")
    (tmp_path / "shared" / "hop").symlink_to(tmp_path / "target")
    path = str(tmp_path / "private" / "link")
    assert trust.distrust(path) == ""
    (tmp_path / "shared").chmod(0o777)  # so the hop can be replaced, though both ends are private
    assert trust.distrust(path) == f"other users can write to {tmp_path / 'shared'}"
    (tmp_path / "loop").symlink_to("loop")
    assert "too many symbolic links" in trust.distrust(str(tmp_path / "loop" / "x"))


@root
def test_a_folder_or_link_of_another_user(tmp_path):
    (tmp_path / "sticky").mkdir()
    (tmp_path / "sticky").chmod(0o1777)
    mine = tmp_path / "sticky" / "dala"
    mine.mkdir(mode=0o700)
    assert trust.distrust(str(mine)) == ""
    os.chown(mine, 12345, 12345)
    assert trust.distrust(str(mine)) == f"{mine} belongs to another user"
    (tmp_path / "safe").mkdir(mode=0o700)
    link = tmp_path / "sticky" / "link"
    link.symlink_to(tmp_path / "safe")
    assert trust.distrust(str(link)) == ""
    os.lchown(link, 12345, 12345)
    assert trust.distrust(str(link)) == f"{link} belongs to another user"


@posix
def test_new_folders_are_private_whatever_the_umask(tmp_path):
    old = os.umask(0)
    try:
        trust.make_folder(str(tmp_path / "a" / "b" / "c"))
    finally:
        os.umask(old)
    for path in (tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


# files --------------------------------------------------------------------------------------------
def test_a_private_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    path.chmod(0o644)
    os.utime(path, (1000, 1000))
    assert trust.read_private(str(path), 10) == b"0123456789"
    assert path.stat().st_mtime == 1000
    assert trust.read_private(str(path), 10, touch=True) == b"0123456789"
    assert path.stat().st_mtime > 1000
    with pytest.raises(OSError, match="more than 9 bytes"):
        trust.read_private(str(path), 9)
    with pytest.raises(FileNotFoundError):
        trust.read_private(str(tmp_path / "other"), 9)


@posix
@pytest.mark.parametrize("kind", ["fifo", "socket", "folder", "link", "device"])
def test_what_is_not_a_regular_file_is_refused_without_waiting(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    if kind == "fifo":
        os.mkfifo("entry")
    elif kind == "folder":
        os.mkdir("entry")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("entry")
    elif kind == "link":
        (tmp_path / "target").write_bytes(b"data")
        os.symlink("target", "entry")
    path = "/dev/zero" if kind == "device" else "entry"
    with pytest.raises(OSError, match=r"regular file|symbolic links|No such device"):
        trust.read_private(path, 100)


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write(tmp_path, monkeypatch, mode):
    path = tmp_path / "file"
    path.write_bytes(b"data")
    path.chmod(mode)
    with pytest.raises(PermissionError, match="other users can write it"):
        trust.read_private(str(path), 100)
    path.chmod(0o644)
    assert trust.read_private(str(path), 100) == b"data"
    with pytest.raises(PermissionError, match="other users can read or write it"):
        trust.read_private(str(path), 100, secret=True)
    path.chmod(mode)
    monkeypatch.setenv("DALA_CACHE_TRUST", "1")
    assert trust.read_private(str(path), 100) == b"data"


@root
def test_a_file_of_another_user(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"data")
    os.chown(path, 12345, 12345)
    with pytest.raises(PermissionError, match="belongs to another user"):
        trust.read_private(str(path), 100)


def test_without_the_calls_of_posix(tmp_path, monkeypatch):
    """As on Windows: no owners, no O_NOFOLLOW, no O_NONBLOCK, no hard link needed."""
    for name in ("geteuid", "getuid", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC"):
        monkeypatch.delattr(os, name, raising=False)
    monkeypatch.setattr(os, "supports_fd", set())
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    assert trust.distrust(str(folder)) == ""
    path = folder / "file"
    path.write_bytes(b"data")
    path.chmod(0o666)
    assert trust.read_private(str(path), 100, touch=True) == b"data"
    link = folder / "link"
    link.symlink_to(path)
    with pytest.raises(OSError, match="symbolic link"):
        trust.read_private(str(link), 100)
    with pytest.raises(OSError, match="regular file"):
        trust.read_private(str(folder), 100)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    with monkeypatch.context() as windows:
        windows.setattr(sys, "platform", "win32")
        key, problem = trust.secret_key(str(folder))
        assert (len(key or b""), problem) == (32, "")
        assert trust.secret_key(str(folder)) == (key, "")
    assert (tmp_path / "local" / "dala" / "key").read_bytes() == key


# the key ------------------------------------------------------------------------------------------
def test_the_key_is_made_once_and_private(tmp_path):
    key, problem = trust.secret_key(str(tmp_path / "cache"))
    assert (len(key or b""), problem) == (32, "")
    path = tmp_path / "state" / "dala" / "key"
    assert path.read_bytes() == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 or not hasattr(os, "geteuid")
    assert trust.secret_key(str(tmp_path / "cache")) == (key, "")
    assert os.listdir(path.parent) == ["key"]  # no temporary file is left


def test_processes_that_start_at_once_share_one_key(tmp_path):
    code = (
        "import sys; from dala import trust; sys.stdin.readline();"
        "print(trust.secret_key('/none')[0].hex())"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-S", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        for _ in range(6)
    ]
    for process in running:
        process.stdin.write(b"go\n")
        process.stdin.flush()
    made = {process.communicate()[0] for process in running}
    assert len(made) == 1
    assert made == {(tmp_path / "state/dala/key").read_bytes().hex().encode() + b"\n"}


def test_without_hard_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    key, _ = trust.secret_key(str(tmp_path))
    assert key is not None
    assert trust.secret_key(str(tmp_path)) == (key, "")


def test_a_damaged_key_is_replaced(tmp_path):
    trust.secret_key(str(tmp_path))
    path = tmp_path / "state" / "dala" / "key"
    path.write_bytes(b"short")
    key, _ = trust.secret_key(str(tmp_path))
    assert path.read_bytes() == key
    assert len(key) == 32


@posix
def test_a_key_that_others_can_read_is_not_used(tmp_path):
    trust.secret_key(str(tmp_path))
    path = tmp_path / "state" / "dala" / "key"
    path.chmod(0o640)
    expected = f"{path}: other users can read or write it"
    assert trust.secret_key(str(tmp_path)) == (None, expected)
    assert trust.key_problem(str(tmp_path)) == expected
    path.unlink()
    os.mkfifo(path)
    assert trust.secret_key(str(tmp_path))[0] is None
    assert "not a regular file" in trust.key_problem(str(tmp_path))


def test_the_key_is_in_the_cache_where_the_home_folder_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(sys, "platform", "linux")
    key, problem = trust.secret_key(str(tmp_path / "cache"))
    assert problem == ""
    assert (tmp_path / "cache" / "key").read_bytes() == key
    assert trust.secret_key(str(tmp_path / "file" / "below")) == (None, "")


def test_a_seal_depends_on_key_name_and_data():
    first = trust.seal(b"k" * 32, "name", b"data")
    assert first == trust.seal(b"k" * 32, "name", b"data")
    assert len(first) == trust.SEAL_BYTES
    others = [
        trust.seal(b"K" * 32, "name", b"data"),
        trust.seal(b"k" * 32, "nam", b"edata"),
        trust.seal(b"k" * 32, "name", b"Data"),
    ]
    assert len({first, *others}) == 4
