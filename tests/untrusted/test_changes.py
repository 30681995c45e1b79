"""Names that change while they are opened, and the descriptors that libraries read by."""

import errno
import itertools
import os
import random
import shutil
import threading
import warnings
from pathlib import Path

import pytest

from dala.errors import ParameterError
from dala.untrusted import beneath
from dala.untrusted.beneath import within
from dala.untrusted.opened import readable
from dala.untrusted.place import Place

pytestmark = pytest.mark.skipif(
    os.open not in os.supports_dir_fd, reason="the walk needs descriptors of folders"
)
#: The ways with descriptors of folders.
WALKS = ("kernel", "walk")
OUTSIDE = "in an allowed folder"


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


@pytest.mark.parametrize("mode", WALKS)
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

    def asks(name):
        """Whether it goes through a folder outside, and back: that would show what is there."""
        parts = name.split("/")
        left = [os.path.realpath("/".join(parts[:n])) for n, p in enumerate(parts) if p == ".."]
        near = [any(within(e, str(r)) or within(str(r), e) for r in roots) for e in left]
        return not all(near)

    for _ in range(400):
        name = f"{rng.choice(folders)}/{path()}/{rng.choice(('f', 'f', 'l', 'f/.'))}"
        real = Path(os.path.realpath(name))
        inside = os.path.isfile(name) and any(map(real.is_relative_to, roots)) and not asks(name)
        for mode in WALKS:
            monkeypatch.setattr(beneath, "mode", mode)
            if inside:
                assert place.open(name, "example").name == real, (mode, name)
                opened += 1
            else:
                with pytest.raises(ParameterError):
                    place.open(name, "example")
    assert opened > 20


@pytest.mark.parametrize("mode", WALKS)
def test_names_do_not_tell_what_is_outside(tree, monkeypatch, mode):
    """A way through a folder outside, and back, ended in the file if that folder was there."""
    monkeypatch.setattr(beneath, "mode", mode)
    place, own = Place([tree / "root"]), "root/own.png"
    (tree / "link").symlink_to("inner")
    (tree / "inner").mkdir()
    for there in ("inner", "secret.png", "link", "nothing"):
        away = f"{tree}/{there}/.."
        for name in (f"../{there}/../{own}", f"{away}/{own}", f"{away}/link/../{own}"):
            with pytest.raises(ParameterError, match="must be in an allowed folder"):
                place.open(name, "example")
    assert place.open("../root/own.png", "example").name == tree / own  # through what is above


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
    for name in ("same.png", "secret.png", "loop", "inner/../own.png", "other/own.png", "pipe.png"):
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


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs paths of descriptors")
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
            home = Path(found).parents[1]
            same = same and home.name.startswith("dala-opened-")
            if same:
                shutil.rmtree(home, ignore_errors=True)
            os._exit(0 if same else 1)
        except BaseException:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert Path(held).read_text() == "root/own.png"


def test_large_files_are_refused(tree):
    with pytest.raises(ParameterError, match="more than 3 bytes"):
        Place([tree / "root"]).open("own.png", "example").content(3, "example")
