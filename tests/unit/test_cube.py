"""Reading and writing .cube files, valid and damaged."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dala
from dala.gpu.compute import cube as cubes
from dala.gpu.compute.cube import Cube, load_cube, save_cube

TINY = """\
# made by hand
TITLE "Night, 2 points"

LUT_3D_SIZE 2
DOMAIN_MIN 0 0 0
DOMAIN_MAX 1.0 2.0 4
0 0 0
1 0 0
0 .5 0
1 0.5 0
# blue now
0 0 2.5e-1
1 0 0.25
0 0.5 0.25
+1. -0.5 0.25
"""


def rows(count):
    return "0 0 0\n" * count


def test_red_changes_fastest():
    cube = load_cube(TINY)
    assert cube.table.dtype == np.float32
    assert cube.table.shape == (2, 2, 2, 3)
    assert cube.table[1, 0, 0].tolist() == [1, 0, 0]
    assert cube.table[0, 1, 0].tolist() == [0, 0.5, 0]
    assert cube.table[0, 0, 1].tolist() == [0, 0, 0.25]
    assert cube.table[1, 1, 1].tolist() == [1, -0.5, 0.25]
    assert cube.title == "Night, 2 points"
    assert (cube.domain_min, cube.domain_max) == ((0, 0, 0), (1, 2, 4))
    assert cube.params == {"domain_min": (0, 0, 0), "domain_max": (1, 2, 4)}
    assert repr(cube) == "<Cube 'Night, 2 points' 2x2x2>"


def test_one_curve_per_channel():
    cube = load_cube("LUT_1D_SIZE 3\n0 0 0\n0.25 0.5 0.75\n1 1 1\n")
    assert cube.table.tolist() == [[0, 0, 0], [0.25, 0.5, 0.75], [1, 1, 1]]
    assert cube.size == 3


def test_text_bytes_files_and_line_endings(tmp_path):
    for end in ("\n", "\r\n", "\r"):
        text = TINY.replace("\n", end)
        for mark in (b"", b"\xef\xbb\xbf"):
            path = tmp_path / "look.cube"
            path.write_bytes(mark + text.encode())
            for source in (text, mark + text.encode(), path, str(path)):
                assert np.array_equal(load_cube(source).table, load_cube(TINY).table)


def test_title_in_latin_1():
    assert load_cube('TITLE "Café"\nLUT_1D_SIZE 2\n0 0 0\n1 1 1'.encode("latin-1")).title == "Café"


def test_input_range_sets_the_domain():
    cube = load_cube("LUT_3D_SIZE 2\nLUT_3D_INPUT_RANGE -1.0 2.0\n" + rows(8))
    assert (cube.domain_min, cube.domain_max) == ((-1.0,) * 3, (2.0,) * 3)


RESOLVE = """LUT_1D_SIZE 3
LUT_1D_INPUT_RANGE -0.5 2.0
LUT_3D_SIZE 2
LUT_3D_INPUT_RANGE 0.0 0.5

0 0 0
\t0.125  0.25\t0.375
0.5 0.5 0.5
0 0 0
1 0 0
0 0.5 0
1 0.5 0
0 0 0.25
1 0 0.25
0 0.5 0.25
1 0.5 0.25
"""


def test_curves_before_a_table():
    cube = load_cube(RESOLVE.replace("\n", "\r\n"))
    assert cube.shaper.tolist() == [[0, 0, 0], [0.125, 0.25, 0.375], [0.5, 0.5, 0.5]]
    assert (cube.shaper_min, cube.shaper_max) == ((-0.5,) * 3, (2.0,) * 3)
    assert (cube.domain_min, cube.domain_max) == ((0,) * 3, (0.5,) * 3)
    assert cube.table[1, 0, 1].tolist() == [1, 0, 0.25]
    assert repr(cube) == "<Cube '' 2x2x2 behind curves of 3>"
    assert cube.packed.shape == (3 + 8, 3)
    assert cube.params["shaper"] == 3
    again = load_cube(cube.text())
    assert np.array_equal(again.packed, cube.packed)
    assert again.params == cube.params
    with pytest.raises(dala.CubeError, match="one domain for all channels"):
        Cube(cube.table, shaper=cube.shaper, shaper_min=(-1, 0, 0)).text()


def test_table_is_read_only_and_converts_to_a_buffer():
    cube = load_cube(TINY)
    b = cube.buffer("cpu")
    assert (b.shape, b.dtype) == ((2, 2, 2, 3), "f32")
    assert np.array_equal(b.numpy(), cube.table)
    with pytest.raises(ValueError, match="read-only"):
        cube.table[0] = 1


# round trips --------------------------------------------------------------------------------------
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
tables = st.one_of(
    st.integers(2, 4).flatmap(lambda n: arrays("<f4", (n, n, n, 3), elements=floats)),
    st.integers(2, 9).flatmap(lambda n: arrays("<f4", (n, 3), elements=floats)),
)
titles = st.text(st.characters(exclude_characters='"', exclude_categories=("C", "Z")), max_size=20)


@given(
    tables, titles, st.tuples(*[st.floats(-1e3, 0.0)] * 3), st.tuples(*[st.floats(0.5, 1e3)] * 3)
)
def test_text_round_trip(table, title, low, high):
    cube = Cube(table, title, low, high)
    again = load_cube(cube.text())
    assert np.array_equal(again.table, table)
    assert (again.title, again.domain_min, again.domain_max) == (title, low, high)


def test_file_round_trip(tmp_path):
    cube = load_cube(TINY)
    path = tmp_path / "look.cube"
    save_cube(cube, path)
    assert np.array_equal(load_cube(path).table, cube.table)
    assert path.read_bytes().startswith(
        b'TITLE "Night, 2 points"\nLUT_3D_SIZE 2\nDOMAIN_MIN 0 0 0\n'
    )
    assert b"\n0 0.5 0\n" in path.read_bytes()


# refusals -----------------------------------------------------------------------------------------
_DAMAGED = "The file may be truncated or damaged. Download it again."
_KEYWORDS = "Known keywords: TITLE, LUT_1D_SIZE, LUT_3D_SIZE, DOMAIN_MIN, DOMAIN_MAX."
_SIZE_3D = "LUT_3D_SIZE must be an int from 2 to 129, got"
_WIDE = "has a number that does not fit f32"
#: Files, the line of the error, the problem, and the advice where it is another.
REFUSED = {
    "empty": (
        "\n", 0, "the file has no LUT_1D_SIZE or LUT_3D_SIZE", "Check that it is a .cube file.",
    ),
    "cut off": (
        "LUT_3D_SIZE 2\n" + rows(7), 8,
        "the file ends after 7 of the 8 lines of numbers that LUT_3D_SIZE 2 requires",
    ),
    "cut in a line": ("LUT_3D_SIZE 2\n" + rows(7) + "0 0", 9, "'0 0' is not three numbers"),
    "too much": (
        "LUT_3D_SIZE 2\n" + rows(9), 10, "more than the 8 lines of numbers of LUT_3D_SIZE",
    ),
    "lies": (
        "LUT_3D_SIZE 129\n" + rows(8), 9,
        "the file ends after 8 of the 2146689 lines of numbers that LUT_3D_SIZE 129 requires",
    ),
    "no size": (
        rows(8), 1, "numbers before LUT_1D_SIZE or LUT_3D_SIZE",
        "A .cube file starts with the size of its table.",
    ),
    "cut off behind curves": (
        "LUT_1D_SIZE 2\nLUT_3D_SIZE 2\n" + rows(9), 11,
        "the file ends after 9 of the 10 lines of numbers that LUT_1D_SIZE 2 and LUT_3D_SIZE 2 "
        "require",
    ),
    "too much behind curves": (
        "LUT_3D_SIZE 2\nLUT_1D_SIZE 2\n" + rows(11), 13,
        "more than the 10 lines of numbers of LUT_1D_SIZE and LUT_3D_SIZE",
    ),
    "twice": ("LUT_3D_SIZE 2\nLUT_3D_SIZE 2\n" + rows(8), 2, "LUT_3D_SIZE is repeated"),
    "huge": ("LUT_3D_SIZE 4096\n", 1, f"{_SIZE_3D} '4096'"),
    "digits": ("LUT_3D_SIZE " + "9" * 900 + "\n", 1, f"{_SIZE_3D} '{'9' * 57}...'"),
    "one": ("LUT_3D_SIZE 1\n0 0 0\n", 1, f"{_SIZE_3D} '1'"),
    "negative": ("LUT_1D_SIZE -3\n", 1, "LUT_1D_SIZE must be an int from 2 to 65536, got '-3'"),
    "broken": ("LUT_3D_SIZE 2.0\n", 1, f"{_SIZE_3D} '2.0'"),
    "other digits": ("LUT_3D_SIZE ٢\n", 1, f"{_SIZE_3D} '\\u0662'"),
    "nan": ("LUT_1D_SIZE 2\n0 0 0\nnan 0 0\n", 3, "'nan 0 0' is not three numbers"),
    "inf": ("LUT_1D_SIZE 2\n0 0 0\n0 inf 0\n", 3, "'0 inf 0' is not three numbers"),
    "overflow": ("LUT_1D_SIZE 2\n0 0 1e39\n", 2, f"'0 0 1e39' {_WIDE}"),
    "far over": ("LUT_1D_SIZE 2\n0 0 1e999\n", 2, f"'0 0 1e999' {_WIDE}"),
    "underscore": (
        "LUT_1D_SIZE 2\n0 0 1_0\n", 2, "'0 0 1_0' is not a keyword of .cube files", _KEYWORDS,
    ),
    "commas": ("LUT_1D_SIZE 2\n0 0 0\n1,1,1\n", 3, "'1,1,1' is not three numbers"),
    "four": ("LUT_1D_SIZE 2\n0 0 0\n1 1 1 1\n", 3, "'1 1 1 1' is not three numbers"),
    "late word": (
        "LUT_1D_SIZE 2\n0 0 0\nTITLE \"x\"\n1 1 1\n", 3, "'TITLE \"x\"' is not three numbers",
    ),
    "unknown": (
        "LUT_IN_VIDEO_RANGE\nLUT_1D_SIZE 2\n", 1,
        "'LUT_IN_VIDEO_RANGE' is not a keyword of .cube files", _KEYWORDS,
    ),
    "domain": ("DOMAIN_MIN 0 0\nLUT_1D_SIZE 2\n", 1, "DOMAIN_MIN must be 3 numbers, got '0 0'"),
    "domain inf": (
        "DOMAIN_MAX 1e999 1 1\nLUT_1D_SIZE 2\n", 1,
        "DOMAIN_MAX must be 3 numbers, got '1e999 1 1'",
    ),
    "empty domain": (
        "DOMAIN_MIN 1 0 0\nLUT_1D_SIZE 2\n" + rows(2), 4,
        "the domain from 1 0 0 to 1 1 1 is empty or too wide",
    ),
    "title": (
        'TITLE "a"b"\nLUT_1D_SIZE 2\n', 1,
        "the title '\"a\"b\"' must be text in \"quotation marks\"",
    ),
    "long": (
        "LUT_1D_SIZE 2\n" + "1" * 5000 + " 0 0\n", 2, f"'{'1' * 57}...' is not three numbers",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_damaged_file_names_the_line(case, tmp_path):
    text, line, problem, *advice = REFUSED[case]
    wanted = f"line {line}: {problem}. {advice[0] if advice else _DAMAGED}"
    with pytest.raises(dala.CubeError) as caught:
        load_cube(text)
    assert str(caught.value) == f"load_cube: <text>, {wanted}"
    path = tmp_path / "bad.cube"
    path.write_bytes(text.encode())
    with pytest.raises(dala.CubeError) as caught:
        load_cube(path)
    assert str(caught.value) == f"load_cube: {str(path)!r}, {wanted}"


def test_unreadable_and_unwritable_files(tmp_path):
    with pytest.raises(dala.CubeError, match=r"nowhere.cube' cannot be read: No such file"):
        load_cube(tmp_path / "nowhere.cube")
    with pytest.raises(dala.CubeError, match="cannot be read"):
        load_cube(tmp_path)
    with pytest.raises(dala.CubeError, match="cannot be read"):
        load_cube("a\0b")
    with pytest.raises(dala.CubeError, match="source must be a path"):
        load_cube(3)  # type: ignore[arg-type]
    with pytest.raises(dala.CubeError, match="cannot be written"):
        save_cube(load_cube(TINY), tmp_path / "no" / "such" / "folder.cube")
    with pytest.raises(dala.CubeError, match="cube must be a Cube, got"):
        save_cube([1], tmp_path / "x.cube")  # type: ignore[arg-type]


def test_binary_files_are_refused():
    with pytest.raises(dala.CubeError, match="is not text"):
        load_cube(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")


def test_large_files_are_not_read_completely(monkeypatch, tmp_path):
    monkeypatch.setattr(cubes, "MAX_BYTES", 1 << 20)
    path = tmp_path / "large.cube"
    path.write_bytes(b"# \n" * (1 << 19))
    with pytest.raises(dala.CubeError, match="larger than 1 MiB"):
        load_cube(path)


TABLE = np.zeros((2, 3), "<f4")
_SHAPE = "table must be of shape (n, n, n, 3), or (n, 3) for curves, got"
_DOMAIN = "domain_min must be three finite numbers below those of domain_max, got"
_DOMAIN_SHAPER = "shaper_min must be three finite numbers below those of shaper_max, got"
_SHAPER = "shaper must be of shape (n, 3), before a table of shape (n, n, n, 3), got"
_TITLE = "title must be one line of text without quotation marks, got"
_FINITE = "table must be finite numbers that fit f32."
_NUMBERS = "table and domain must be numbers."
_ENTRIES = "table must be of 2 to {} entries along each of {} axes, got {}."
BAD_CUBES = [
    ({"table": np.zeros((2, 2, 3))}, f"{_SHAPE} (2, 2, 3)."),
    ({"table": np.zeros((2, 3, 2, 3))}, f"{_SHAPE} (2, 3, 2, 3)."),
    ({"table": np.zeros(())}, f"{_SHAPE} ()."),
    ({"table": "abc"}, _NUMBERS),
    ({"table": np.zeros((1, 3))}, _ENTRIES.format(65536, 1, 1)),
    ({"table": np.zeros((130, 130, 130, 3), "<f4")}, _ENTRIES.format(129, 3, 130)),
    ({"table": np.full((2, 3), np.nan)}, _FINITE),
    ({"table": np.full((2, 3), 1e300)}, _FINITE),
    ({"table": TABLE, "domain_min": (0, 0)}, f"{_DOMAIN} ((0, 0), (1.0, 1.0, 1.0))."),
    ({"table": TABLE, "domain_min": (0, 0, 1)}, f"{_DOMAIN} ((0, 0, 1), (1.0, 1.0, 1.0))."),
    ({"table": TABLE, "domain_max": (1, 1, np.inf)}, f"{_DOMAIN} ((0.0, 0.0, 0.0), (1, 1, inf))."),
    ({"table": TABLE, "domain_max": None}, _NUMBERS),
    ({"table": TABLE, "shaper": TABLE}, f"{_SHAPER} (2, 3)."),
    ({"table": np.zeros((2, 2, 2, 3)), "shaper": np.zeros((2, 2))}, f"{_SHAPER} (2, 2)."),
    ({"table": TABLE, "shaper_min": (2, 0, 0)}, f"{_DOMAIN_SHAPER} ((2, 0, 0), (1.0, 1.0, 1.0))."),
    ({"table": TABLE, "title": "a\nb"}, f"{_TITLE} 'a\\nb'."),
    ({"table": TABLE, "title": 'say "x"'}, f"{_TITLE} 'say \"x\"'."),
]


@pytest.mark.parametrize(("args", "wanted"), BAD_CUBES)
@pytest.mark.filterwarnings("ignore:overflow")
def test_cube_checks_its_arguments(args, wanted):
    with pytest.raises(dala.CubeError) as caught:
        Cube(**args)
    assert str(caught.value) == f"Cube: {wanted}"


# junk ---------------------------------------------------------------------------------------------
@given(st.binary(max_size=400))
@example(b"LUT_3D_SIZE 2\n" + b"\xff" * 50)
@example(b"LUT_1D_SIZE 2\n\x1c1 1 1\x1d0 0 0")
def test_random_bytes_are_read_or_refused(data):
    said = ""
    try:
        assert np.isfinite(load_cube(data).table).all()
    except dala.CubeError as error:
        said = str(error)
    assert said == "" or (said.startswith("load_cube: <bytes>") and said.isascii())


@settings(max_examples=300)
@given(st.data())
def test_randomly_damaged_file_is_read_or_refused(data):
    text = TINY.encode()
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 30))
    put = data.draw(st.binary(max_size=6) | st.sampled_from([b"nan", b"LUT_1D_SIZE 3\n", b"e99"]))
    try:
        cube = load_cube(text[:at] + put + text[at + cut :])
    except dala.CubeError:
        return
    assert cube.table.shape in {(2, 2, 2, 3), (8, 3)}
    assert np.isfinite(cube.table).all()


def test_odd_file_names(tmp_path):
    path = os.path.join(tmp_path, "ü ñ.cube")
    save_cube(load_cube(TINY), path)
    assert load_cube(path).size == 2
