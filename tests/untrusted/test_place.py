"""Hostile names of files: each against every way of opening, and with names that change."""

import errno
import itertools
import os
import random
import shutil
import socket
import threading
import warnings
from pathlib import Path

import pytest

from dala.errors import ParameterError
from dala.media.parts import PartFile
from dala.untrusted import beneath
from dala.untrusted.opened import readable
from dala.untrusted.place import Place

pytestmark = pytest.mark.skipif(
    os.open not in os.supports_dir_fd, reason="the walk needs descriptors of folders"
)
MODES = ("kernel", "walk", "resolve")
OUTSIDE, MISSING, KIND = "in an allowed folder", "there is no", "cannot be opened as a file"
NAME = "without control characters"


@pytest.fixture(params=MODES)
def mode(request, monkeypatch):
    monkeypatch.setattr(beneath, "mode", request.param)
    return request.param


@pytest.fixture
def tree(tmp_path):
    """Two allowed folders, a secret beside them, and links of every kind."""
    root, other = tmp_path / "root", tmp_path / "other"
    (root / "deep" / "er" / "most").mkdir(parents=True)
    (root / "inner").mkdir()
    other.mkdir()
    for file in ("root/own.png", "root/inner/own.png", "other/own.png", "secret.png"):
        (tmp_path / file).write_text(file)
    (tmp_path / "root-2").mkdir()
    (tmp_path / "root-2" / "own.png").write_text("secret")
    for name, target in {
        "a": "deep/er/most",  # `a/../../secret.png` was read as `../secret.png`
        "same.png": "own.png",
        "absolute.png": root / "own.png",
        "twice.png": "absolute.png",
        "secret.png": "../secret.png",
        "absolute_secret.png": tmp_path / "secret.png",
        "door": tmp_path,
        "other": other,
        "other.png": "../other/own.png",
        "loop": "loop",
        "ping": "pong",
        "pong": "ping",
        "nowhere.png": "inner/nothing.png",
        "proc": "/proc/self/root",
        "cwd": "/proc/self/cwd",
        "tail": "inner/",
    }.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe.png")
    with socket.socket(socket.AF_UNIX) as made:
        here = os.getcwd()
        os.chdir(root)  # the path of a socket is short
        made.bind("socket.png")
        os.chdir(here)
    return tmp_path


#: Names, and the file that they lead to or why they are refused.
NAMES = {
    "own.png": "root/own.png",
    "./own.png": "root/own.png",
    "inner//own.png": "root/inner/own.png",
    "inner/../own.png": "root/own.png",
    "inner/./../inner/own.png": "root/inner/own.png",
    "same.png": "root/own.png",
    "absolute.png": "root/own.png",
    "twice.png": "root/own.png",
    "tail/own.png": "root/inner/own.png",
    "a/../../../own.png": "root/own.png",
    "../root/own.png": "root/own.png",
    "proc{tree}/root/own.png": "root/own.png",
    "{tree}/root/own.png": "root/own.png",
    "//{tree}//root/own.png": "root/own.png",
    "{tree}/other/../root/own.png": "root/own.png",
    "other/own.png": "other/own.png",
    "other.png": "other/own.png",
    "other/../root/inner/own.png": "root/inner/own.png",
    "a/../../secret.png": MISSING,
    "a/../../../../secret.png": OUTSIDE,
    "../secret.png": OUTSIDE,
    "{tree}/secret.png": OUTSIDE,
    "../root-2/own.png": OUTSIDE,
    "{tree}/root-2/own.png": OUTSIDE,
    "secret.png": OUTSIDE,
    "absolute_secret.png": OUTSIDE,
    "door/secret.png": OUTSIDE,
    "door/other/../secret.png": OUTSIDE,
    "other/../secret.png": OUTSIDE,
    "inner/../../secret.png": OUTSIDE,
    "../" * 40 + "etc/passwd": OUTSIDE,
    "/etc/passwd": OUTSIDE,
    "/proc/self/root/etc/passwd": OUTSIDE,
    "/proc/self/environ": OUTSIDE,
    "proc/etc/passwd": OUTSIDE,
    "/proc/self/fd/0": OUTSIDE,
    "/dev/stdin": OUTSIDE,
    "/dev/null": OUTSIDE,
    "/dev/tty": OUTSIDE,
    "~/own.png": MISSING,
    "C:\\own.png": MISSING,
    "..\\secret.png": MISSING,
    "OWN.PNG": MISSING,
    "own.png ": MISSING,
    "own.png.": MISSING,
    "nowhere.png": MISSING,
    "x" * 300: KIND,
    "d/" * 2000 + "own.png": MISSING,
    "loop": KIND,
    "ping/own.png": KIND,
    "pipe.png": KIND,
    "socket.png": KIND,
    "inner": KIND,
    ".": KIND,
    "..": OUTSIDE,
    "/": OUTSIDE,
    "": NAME,
    "own.png\0": NAME,
    "own.png\n": NAME,
    "own.png\r": NAME,
    "\x1b[2Jown.png": NAME,
    "own\x85.png": NAME,
    "\ud800": NAME,
    "x" * 5000: NAME,
}
#: What only the kernel's way of following paths refuses; without descriptors, they lead inside.
PHYSICAL = ("own.png/", "own.png/.", "own.png/../own.png", "nothing/../own.png")


@pytest.mark.parametrize("name", NAMES, ids=lambda n: ascii(n[:30]))
def test_hostile_names(tree, mode, name):
    expected = NAMES[name]
    place = Place([tree / "root", tree / "other"])
    written = name.replace("{tree}", str(tree))
    if expected.endswith(".png"):
        found = place.open(written, "example")
        assert found.name == tree / expected
        assert found.content(100, "example") == expected.encode()
        assert Path(found).read_text() == expected
        return
    if mode == "resolve" and expected in (MISSING, KIND):
        expected = "there is no|cannot be opened as a file"
    with pytest.raises(ParameterError, match=expected) as caught:
        place.open(written, "example")
    assert "\n" not in str(caught.value)
    if name not in ("", "."):
        with pytest.raises(ParameterError):
            place.open(f"{tree}/root/inner/../{written}", "example")


@pytest.mark.parametrize("name", PHYSICAL)
@pytest.mark.parametrize("mode", MODES[:2])
def test_a_file_is_no_folder(tree, mode, name, monkeypatch):
    monkeypatch.setattr(beneath, "mode", mode)
    with pytest.raises(ParameterError, match=r"Not a directory|there is no file"):
        Place([tree / "root"]).open(name, "example")


@pytest.mark.parametrize("value", [None, 7, ["own.png"], {}, b"own.png", True])
def test_names_are_text(tree, value):
    with pytest.raises(ParameterError, match=NAME):
        Place([tree / "root"]).open(value, "example")


def test_links_to_folders_that_are_not_allowed(tree, mode):
    """The same names, without the second folder."""
    place = Place([tree / "root"])
    for name in ("other/own.png", "other.png", "other/../root/../other/own.png"):
        with pytest.raises(ParameterError, match=OUTSIDE):
            place.open(name, "example")
    assert place.open("other/../root/own.png", "example").name == tree / "root" / "own.png"
    with pytest.raises(ParameterError, match=OUTSIDE):
        Place([]).open("own.png", "example")


def test_trusted_files_are_single_files(tree, mode):
    place = Place([tree / "root"])
    place.trusted = frozenset({str(tree / "secret.png")})
    for name in ("../secret.png", "secret.png", str(tree / "secret.png")):
        assert place.open(name, "example").content(100, "example") == b"secret.png"
    with pytest.raises(ParameterError, match=OUTSIDE):
        place.open("../other/own.png", "example")


def test_relative_names_start_at_their_scene(tree, mode):
    place = Place([tree / "root"])
    inner = place.open("own.png", "example", base=tree / "root" / "inner")
    assert inner.name == tree / "root" / "inner" / "own.png"
    with pytest.raises(ParameterError, match=OUTSIDE):
        place.open("../../secret.png", "example", base=tree / "root" / "inner")


# names that change meanwhile ----------------------------------------------------------------------
def swapped(tree, monkeypatch, name, target):
    """Replace a name by a link between the look at it and its opening, once, in another thread."""
    looks, done = os.readlink, []

    def readlink(path, *args, **given):
        try:
            return looks(path, *args, **given)
        finally:
            if not done and os.fspath(path) == os.path.basename(name):
                done.append(name)
                thread = threading.Thread(target=swap)
                thread.start()
                thread.join()

    def swap():
        os.rename(tree / name, tree / "aside")
        os.symlink(target, tree / name)

    monkeypatch.setattr(os, "readlink", readlink)
    return done


@pytest.mark.parametrize(
    ("name", "swap", "target"),
    [
        ("own.png", "root/own.png", "../secret.png"),
        ("own.png", "root/own.png", "/etc/passwd"),
        ("inner/own.png", "root/inner", ".."),
        ("deep/er/../own.png", "root/deep", "/"),
    ],
)
def test_swaps_between_the_look_and_the_opening(tree, monkeypatch, name, swap, target):
    monkeypatch.setattr(beneath, "mode", "walk")
    done = swapped(tree, monkeypatch, swap, target)
    place = Place([tree / "root"])
    try:
        found = place.open(name, "example").content(100, "example")
    except ParameterError:
        found = b"root/refused"
    assert done
    assert found.startswith(b"root/")


def test_swaps_after_the_opening(tree, mode):
    """What was checked is what libraries read, whatever the name means by then."""
    place = Place([tree / "root"])
    found = place.open("inner/own.png", "example")
    os.remove(tree / "root" / "inner" / "own.png")
    os.symlink(tree / "secret.png", tree / "root" / "inner" / "own.png")
    assert found.content(100, "example") == b"root/inner/own.png"
    if Path("/proc/self/fd").is_dir():
        assert Path(found).read_text() == "root/inner/own.png"
        assert Path(found).suffix == ".png"


def test_resolving_sees_a_swap(tree, monkeypatch):
    """Without descriptors of folders, a name that changed while it was opened is tried again."""
    monkeypatch.setattr(beneath, "mode", "resolve")
    opens, done = os.open, []

    def opening(path, *args, **given):
        if not done and str(path).endswith("root/own.png"):
            done.append(path)
            os.rename(tree / "root" / "own.png", tree / "aside")
            os.symlink(tree / "secret.png", tree / "root" / "own.png")
            return opens(tree / "secret.png", *args, **given)  # as without O_NOFOLLOW
        return opens(path, *args, **given)

    monkeypatch.setattr(os, "open", opening)
    with pytest.raises(ParameterError, match=OUTSIDE):
        Place([tree / "root"]).open("own.png", "example")
    assert done


@pytest.mark.parametrize("mode", MODES[:2])
def test_names_that_change_all_the_time(tree, monkeypatch, mode):
    """While a thread turns a file and a folder into links that lead out, and back."""
    monkeypatch.setattr(beneath, "mode", mode)
    place, ended = Place([tree / "root"]), threading.Event()
    (tree / "inner").mkdir()
    (tree / "inner" / "own.png").write_text("secret")

    def swap():
        for name in itertools.cycle(("own.png", "inner")):
            if ended.is_set():
                return
            os.rename(tree / "root" / name, tree / "aside")
            os.symlink(tree / ("secret.png" if name == "own.png" else name), tree / "root" / name)
            os.remove(tree / "root" / name)
            os.rename(tree / "aside", tree / "root" / name)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for name in ("own.png", "inner/own.png", "inner/../own.png", "same.png") * 250:
            try:
                found = place.open(name, "example")
            except ParameterError:
                continue
            assert found.content(100, "example").startswith(b"root/")
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("seed", range(4))
def test_paths_mean_what_they_mean_to_the_kernel(tmp_path, monkeypatch, seed):
    """Random folders, links and paths, compared with the system's own way to the same file."""
    rng = random.Random(seed)
    folders, roots = [tmp_path], [tmp_path / "r0", tmp_path / "r1" / "r2"]
    for root in roots:
        root.mkdir(parents=True)
        folders.append(root)
    for folder in (*roots, tmp_path / "r1"):
        folders += [folder / name for name in ("a", "b", "a/a", "b/a")]
    for folder in folders[3:]:
        folder.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        (folder / "f").write_text("f")
    parts = ("a", "b", "l", "m", "r0", "r1", "r2", "..", "..", ".", "", "x")

    def path():
        return "/".join(rng.choice(parts) for _ in range(rng.randint(1, 4))) or "."

    for folder in folders:
        for name in "lm":
            absolute = rng.random() < 0.3
            (folder / name).symlink_to(f"{rng.choice(folders)}/{path()}" if absolute else path())
    place, opened = Place(roots), 0
    for _ in range(400):
        name = f"{rng.choice(folders)}/{path()}/{rng.choice(('f', 'f', 'l', 'f/.'))}"
        real = Path(os.path.realpath(name))
        inside = os.path.isfile(name) and any(map(real.is_relative_to, roots))
        for mode in MODES[:2]:
            monkeypatch.setattr(beneath, "mode", mode)
            if inside:
                assert place.open(name, "example").name == real, (mode, name)
                opened += 1
            else:
                with pytest.raises(ParameterError):
                    place.open(name, "example")
    assert opened > 20


@pytest.mark.skipif(beneath._best() != "kernel", reason="this system has no openat2")
@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EPERM, errno.EAGAIN, errno.EXDEV])
def test_the_walk_stands_in_for_the_kernel(tree, monkeypatch, error):
    monkeypatch.setattr(beneath, "mode", "kernel")
    calls = []
    monkeypatch.setattr(beneath, "openat2", lambda *given: calls.append(given) or -error)
    place = Place([tree / "root"])
    for _ in range(2):
        assert place.open("same.png", "example").content(100, "example") == b"root/own.png"
        with pytest.raises(ParameterError, match=OUTSIDE):
            place.open("secret.png", "example")
    lacking = error in (errno.ENOSYS, errno.EPERM)
    assert beneath.mode == ("walk" if lacking else "kernel")
    assert len(calls) == 1 if lacking else len(calls) <= 16 * 4  # tried again, but not for ever


# descriptors and paths ----------------------------------------------------------------------------
def descriptors():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts in /proc")
def test_nothing_stays_open(tree, mode):
    place = Place([tree / "root"])
    place.open("own.png", "example")
    before = descriptors()
    for name in NAMES:
        try:
            place.open(name, "example")
        except ParameterError:
            continue
    assert descriptors() == before
    held = [place.open("own.png", "example") for _ in range(20)]
    assert len({id(one) for one in held}) == 1 or mode == "resolve"
    path = os.fspath(held.pop())
    del held
    assert descriptors() == before
    if path != str(tree / "root" / "own.png"):
        assert not os.path.lexists(path)


def test_a_changed_file_has_another_path(tree, mode):
    place = Place([tree / "root"])
    first = place.open("own.png", "example")
    (tree / "root" / "own.png").write_text("longer than before")
    second = place.open("own.png", "example")
    assert Path(second).read_text() == "longer than before"
    if os.fspath(first) != str(first.name):
        assert os.fspath(first) != os.fspath(second)
        assert readable(f"{os.fspath(first)!r} is damaged") == "'own.png' is damaged"


def test_readers_of_one_file_do_not_disturb_each_other(tree):
    data = os.urandom(1 << 20)
    (tree / "root" / "own.png").write_bytes(data)
    place, found = Place([tree / "root"]), []

    def read():
        found.extend(place.open("own.png", "example").content(1 << 20, "example") for _ in range(8))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [data] * 32


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs paths of descriptors")
def test_a_folder_of_links_that_others_replace_is_not_used(tree):
    """A cleaner of /tmp removes it, and another user makes one of the same name."""
    place = Place([tree / "root"])
    home = Path(place.open("own.png", "example")).parents[1]
    assert home.stat().st_mode & 0o777 == 0o700
    home.rename(tree / "aside")
    home.mkdir()
    other = Path(place.open("own.png", "example"))
    assert other.parents[1] != home
    home.rmdir()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_fork_has_links_of_its_own(tree):
    place = Place([tree / "root"])
    held = place.open("own.png", "example")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there may be threads
        child = os.fork()
    if not child:
        try:
            same = Path(held).read_text() == "root/own.png"
            found = place.open("inner/own.png", "example")
            same = same and Path(found).read_text() == "root/inner/own.png"
            shutil.rmtree(Path(found).parents[1], ignore_errors=True)
            os._exit(0 if same else 1)
        except BaseException:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert Path(held).read_text() == "root/own.png"


def test_large_files_are_refused(tree):
    with pytest.raises(ParameterError, match="more than 3 bytes"):
        Place([tree / "root"]).open("own.png", "example").content(3, "example")


# files to write -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("new.py", "root/new.py"),
        ("own.png", "root/own.png"),
        ("inner/../new.py", "root/new.py"),
        ("same.png", "root/own.png"),  # the file is replaced, not the link
        ("other.png", "other/own.png"),
        ("nowhere.png", "root/inner/nothing.png"),
        ("secret.png", None),
        ("door/new.py", None),
        ("../new.py", None),
        ("a/../../../../new.py", None),
        ("loop", None),
        ("inner", None),
        ("inner/", None),
        ("inner/..", None),
        ("nothing/new.py", None),
        ("own.png/new.py", None),
        ("pipe.png", None),
        ("new.py\n", None),
        ("", None),
    ],
)
def test_targets(tree, mode, name, expected):
    place = Place([tree / "root", tree / "other"])
    if expected is None:
        with pytest.raises(ParameterError):
            place.target(name, "example")
        return
    target = place.target(name, "example")
    assert target.name == tree / expected
    with PartFile(Path(target)) as part:
        part.path.write_text("written")
        part.complete()
    assert (tree / expected).read_text() == "written"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs paths of descriptors")
def test_a_folder_that_is_swapped_is_not_written_to(tree):
    target = Place([tree / "root"]).target("inner/new.py", "example")
    os.rename(tree / "root" / "inner", tree / "root" / "moved")
    os.symlink(tree / "other", tree / "root" / "inner")
    with PartFile(Path(target)) as part:
        part.path.write_text("written")
        part.complete()
    assert not (tree / "other" / "new.py").exists()
    assert (tree / "root" / "moved" / "new.py").read_text() == "written"
