"""The table has the rows of the declarations, no others, and tells results apart."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.answers.cases import KINDS, OUTSIDE, Row, rows
from dala.answers.generate import main
from dala.answers.material import PICTURES, SIZES, picture
from dala.answers.scenes import GROUPS
from dala.answers.settings import ENDS, MORE, RANDOM
from dala.answers.table import check, checksum, stored, written
from dala.errors import ParameterError
from dala.media.filters.declarations import declared


def test_the_table_is_complete():
    """A new filter needs `python -m dala.answers.generate NAME`; a removed one the same."""
    expected = [row.id for row in rows()]
    assert list(stored()) == expected, "run python -m dala.answers.generate"
    assert len(expected) == len(set(expected))


def test_every_filter_has_rows_at_its_ends_and_between():
    assert {row.name for row in rows()} == declared().keys() - OUTSIDE.keys() | GROUPS.keys()
    settings = {(row.name, row.setting) for row in rows()}
    for name, spec in declared().items():
        if name in OUTSIDE:
            continue
        assert (name, "default") in settings
        if any(p.type in ("int", "float") for p in spec.parameters):
            random = {f"random{n}" for n in range(1, RANDOM + 1)}
            assert {(name, s) for s in {"min", "max", *random}} <= settings
        for p in spec.parameters:
            for word in p.choices:
                told = f"{p.name}={word}"
                usual = {p.default, *(ENDS.get(name, {}).get(p.name) or ())}
                assert (name, told) in settings or word in usual
    assert {row.picture for row in rows()} == {*PICTURES, ""}
    assert {row.kind for row in rows()} == {*KINDS, ""}


def test_few_rows_have_every_setting():
    few, most, every = ([*rows(share=share)] for share in ("few", "most", "all"))
    assert set(few) < set(most) < set(every)
    assert {(r.name, r.setting) for r in few} == {(r.name, r.setting) for r in most}
    assert {row.kind for row in few} == {*KINDS, ""}


def test_lists_name_filters_that_exist():
    for listed in (ENDS.keys() - {""}, MORE, OUTSIDE):
        assert set(listed) <= declared().keys()


def test_pictures_are_the_same_everywhere():
    """Their checksums; another version of NumPy must not change them."""
    found = {name: checksum(picture(name, 4)) for name in SIZES}
    assert found == {
        "random": "6b4666e9",
        "gradient": "b5eb6175",
        "constant": "357a21aa",
        "photo": "f5dd076d",
        "wide": "528bdee0",
    }


def test_a_difference_is_shown(monkeypatch):
    row = Row("invert", "default", "rgb", "random")
    right = row.run("cpu")

    def wrong(self, device):
        made = right.copy()
        if device != "reference":
            made[2, 5, 1] ^= 3
        return made

    monkeypatch.setattr(Row, "run", wrong)
    [(_, problem)] = check([row], "cpu")
    must = " ".join(map(str, right[2, 5]))
    got = f"{right[2, 5, 0]} {right[2, 5, 1] ^ 3} {right[2, 5, 2]}"
    apart = abs(int(right[2, 5, 1]) - int(right[2, 5, 1] ^ 3))
    count = f"1 of {right.size} values differ, by up to {apart}"
    assert problem == f"at x=5, y=2: {got}, must be {must}; {count}"


def test_checksums_know_shapes():
    flat = np.arange(24, dtype=np.uint8)
    assert len({checksum(flat.reshape(s)) for s in ((24,), (4, 6), (6, 4), (2, 4, 3))}) == 4


def test_the_file_reads_as_it_was_written():
    sums = {row: stored()[row.id] for row in rows("invert", "compositor")}
    lines = written(sums).splitlines()[2:]
    assert lines[0].split() == ["invert/default/gray", *list(sums.values())[: len(PICTURES)]]
    assert lines[-1].split() == ["compositor/groups", stored()["compositor/groups"]]


def test_generate_refuses_unknown_names():
    with pytest.raises(SystemExit, match="no such filter or group: blurr"):
        main(["blurr"])


def test_selftest_arguments():
    report = dala.selftest("cpu", only=["invert"], share="all")
    assert report.ok
    assert report.devices[0].rows == len(KINDS) * len(PICTURES)
    assert "cpu: " in str(report)
    with pytest.raises(ParameterError, match=r"selftest: only must be .* Did you mean 'invert'"):
        dala.selftest("cpu", only=["inverd"])
    with pytest.raises(ParameterError, match="selftest: share must be 'all', 'most' or 'few'"):
        dala.selftest("cpu", share="some")
