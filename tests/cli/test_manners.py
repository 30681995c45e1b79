"""What commands say once a day, how help is ordered, the manual page, and conversion."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from datetime import date
from types import SimpleNamespace

import numpy as np
import pytest

from dala.cli import COMMANDS, main
from dala.cli.common import verbosity
from dala.cli.common.verbosity import first_today, spoken
from dala.media import Frame

TODAY, LATER = date(2026, 3, 1), date(2026, 3, 2)
PICTURE = np.random.default_rng(5).integers(0, 256, (12, 16, 3), np.uint8)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "jpegs").mkdir()
    for name in "ab":
        Frame.from_array(PICTURE).save(tmp_path / "jpegs" / f"{name}.png")
    return tmp_path


# once a day ---------------------------------------------------------------------------------------


def test_a_notice_comes_first_once_a_day(tmp_path):
    calls = [("cpu", TODAY), ("cpu", TODAY), ("gpu", TODAY), ("cpu", LATER), ("cpu", LATER)]
    said = [first_today(name, day, tmp_path / "stamps") for name, day in calls]
    assert said == [True, False, True, True, False]
    assert (tmp_path / "stamps" / "cpu").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "stamps").stat().st_mode & 0o777 == 0o700


def test_a_stamp_that_cannot_be_kept_does_no_harm(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "target").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "pipe")
    for place, name in [("file", "cpu"), ("", "binary"), ("", "link"), ("", "pipe")]:
        assert first_today(name, TODAY, tmp_path / place)
        assert first_today(name, TODAY, tmp_path / place)
    assert (tmp_path / "target").read_text() == "precious"


@pytest.mark.parametrize(("verbose", "shown"), [(False, [0, 2, 3]), (True, [0, 1, 2, 3])])
def test_commands_show_a_named_notice_once_a_day(verbose, shown, caplog, monkeypatch):
    first = iter([True, False, True])
    monkeypatch.setattr(verbosity, "first_today", lambda name: next(first))
    logger = logging.getLogger("dala")
    args = SimpleNamespace(quiet=False, verbose=verbose, command="info")
    with caplog.at_level(logging.WARNING, "dala"), spoken(args):
        for number in range(3):
            logger.warning("%d", number, extra={"notice": "cpu"})
        logger.warning("3")
    assert [int(record.message) for record in caplog.records] == shown
    assert not logger.filters


# help ---------------------------------------------------------------------------------------------


def test_the_help_of_filters_leads_with_examples_and_groups_the_rest(capsys):
    with pytest.raises(SystemExit):
        main(["filter", "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("usage: dala filter IN")
    assert lines.index("examples:") < 5
    assert lines.index("  dala filter jpegs/ webp/ --format webp           only convert") < 11
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles[:6] == [
        "examples:", "positional arguments:", "options:", "pictures:", "videos:",
        "sound of videos:",
    ]  # fmt: skip
    assert "more examples:" in titles
    assert len([title for title in titles if title.startswith("filters: ")]) > 3


def test_the_manual_page_has_every_command(capsys):
    assert main(["completion", "man"]) == 0
    page = capsys.readouterr().out
    assert page.startswith(".TH DALA 1")
    for name in COMMANDS:
        assert f".SS dala {name}\n" in page
    assert r"\fB\-\-crf\fR \fIN\fR" in page
    assert r"\fB\-\-gaussian_blur\fR" in page
    assert not [line for line in page.splitlines() if line.startswith("'")]
    if shutil.which("groff") is None:
        return
    shown = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True, check=True
    )
    assert "warning" not in shown.stderr


# results ------------------------------------------------------------------------------------------


def test_a_folder_is_converted_without_filters(folder):
    made = folder / "new" / "webp"
    assert main(["filter", str(folder / "jpegs"), f"{made}/", "--format", "webp", "-q"]) == 0
    assert sorted(path.name for path in made.iterdir()) == ["a.webp", "b.webp"]
    assert Frame.open(made / "a.webp").numpy().shape == PICTURE.shape


def test_a_file_is_converted_by_its_suffix(folder):
    source = folder / "jpegs" / "a.png"
    assert main(["filter", str(source), str(folder / "x" / "a.tiff"), "-q"]) == 0
    assert (Frame.open(folder / "x" / "a.tiff").numpy() == PICTURE).all()


def test_a_file_goes_into_a_folder_that_is_made(folder):
    source = folder / "jpegs" / "a.png"
    assert main(["filter", str(source), f"{folder}/x/y/", "--invert", "-q"]) == 0
    assert (Frame.open(folder / "x" / "y" / "a.png").numpy() == 255 - PICTURE).all()
