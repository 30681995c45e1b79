"""Hostile names of files, to read and to write, against every way of opening."""

import os
from pathlib import Path

import pytest

from dala.errors import ParameterError
from dala.media.parts import PartFile
from dala.untrusted import beneath
from dala.untrusted.place import Place

pytestmark = pytest.mark.skipif(
    os.open not in os.supports_dir_fd, reason="the walk needs descriptors of folders"
)
#: The ways with descriptors of folders.
WALKS = ("kernel", "walk")
OUTSIDE, MISSING, KIND = "in an allowed folder", "there is no", "cannot be opened as a file"
NAME = "without control characters"


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
@pytest.mark.parametrize("mode", WALKS)
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
