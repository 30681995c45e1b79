"""What a command says with --quiet and --verbose, where it writes, and completion in shells."""

from __future__ import annotations

import logging
import pathlib
import shutil
import subprocess
import warnings

import numpy as np
import pytest

import dala
from dala.cli import COMMANDS, main, parse
from dala.cli.common.verbosity import names_folder, result_of, says_what_it_did, spoken
from dala.media.notices import MediaNotice
from dala.png import encode_png

PICTURE = np.random.default_rng(2).integers(0, 256, (6, 8, 3), np.uint8)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.png"
    path.write_bytes(encode_png(PICTURE))
    return path


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("flag", ["-q", "--quiet"])
def test_a_quiet_command_prints_errors_only(capsys, source, tmp_path, flag, place):
    def call(out, *filters):
        words = ["filter", str(source), str(out), *filters, "--device", "cpu"]
        return main([flag, *words] if place == "before" else [*words, flag])

    assert call(tmp_path / "out.png", "--invert") == 0
    assert capsys.readouterr() == ("", "")
    assert np.array_equal(dala.media.Frame.open(tmp_path / "out.png").numpy(), 255 - PICTURE)
    assert call(tmp_path / "out.nope", "--invert") == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "cannot write '.nope' files" in said.err


def test_a_quiet_command_prints_a_result_that_was_asked_for(capsys):
    assert main(["kernels", "sepia", "-q"]) == 0
    assert "sepia" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("filter a.png b/c.png --invert", "b/c.png"),
        ("filter a.png", None),
        ("concat a.mp4 b.mp4 -o c/d.mp4", "c/d.mp4"),
        ("detect a.png b/c.png", None),
        ("detect a.png --out b/c.png", "b/c.png"),
        ("view a.png", None),
        ("filter a.png - --invert", None),
        ("batch images a.png s3://b/c/ --invert", None),
        ("batch images a.png b/ --invert", "b"),
        ("background a.png b.png", "b.png"),
        ("info", None),
    ],
)
def test_what_a_command_writes(line, result):
    _, _, args = parse([*line.split(), "-q"])
    assert result_of(args) == (None if result is None else pathlib.Path(result))
    assert says_what_it_did(args) == (result is None)


def test_a_folder_that_cannot_be_made(source, tmp_path, capsys):
    (tmp_path / "file").touch()
    for out in ("file/out.png", "new/../file/deep/out.png"):
        assert main(["filter", str(source), str(tmp_path / out), "--invert"]) == 2
        assert "cannot be made" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_notices_and_the_log(capsys):
    class Given:
        quiet = verbose = False

    logger = logging.getLogger("dala")
    level = logger.level
    for quiet, verbose, expected in ((True, False, ""), (False, True, "dala: chosen\n")):
        given = Given()
        given.quiet, given.verbose = quiet, verbose
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with spoken(given):
                logger.info("dala: chosen")
                if quiet:
                    logger.warning("dala: on the CPU")
                    warnings.warn("odd", MediaNotice, stacklevel=1)
        assert capsys.readouterr().err == expected
    assert logger.level == level
    assert logger.handlers == []


def test_missing_folders_are_made(source, tmp_path, capsys):
    out = tmp_path / "a" / "b" / "out.png"
    assert main(["filter", str(source), str(out), "--invert", "--device", "cpu"]) == 0
    assert out.is_file()
    failed = tmp_path / "x" / "y" / "out.nope"
    assert main(["filter", str(source), str(failed), "--invert", "--device", "cpu"]) == 2
    assert not (tmp_path / "x").exists()
    capsys.readouterr()


def test_a_folder_is_converted(source, tmp_path, capsys):
    pytest.importorskip("PIL")
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for name in ("a.png", "b.PNG"):
        shutil.copy(source, folder / name)
    call = ["filter", f"{folder}/", f"{out}/", "--invert", "--format", "bmp", "--device", "cpu"]
    assert main(call) == 0
    assert sorted(path.name for path in out.iterdir()) == ["a.bmp", "b.bmp"]
    assert np.array_equal(dala.media.Frame.open(out / "a.bmp").numpy(), 255 - PICTURE)
    shutil.copy(source, folder / "a.jpg")
    assert main(call) == 2
    assert "would have the same name" in capsys.readouterr().err


def test_names_of_folders(tmp_path):
    assert names_folder(f"{tmp_path}/new.d/")
    assert names_folder(str(tmp_path))
    assert not names_folder("out.png")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_has_every_command_and_its_options(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in COMMANDS)
    for option in ("max-pixels", "chroma_key", "lut", "quiet"):
        assert option in script
    program = shutil.which(shell)
    if program is not None:
        check = subprocess.run([program, "-n"], input=script, text=True, capture_output=True)
        assert (check.returncode, check.stderr) == (0, "")


def test_bash_completes(capsys, tmp_path):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    main(["completion", "bash"])
    script = tmp_path / "dala.bash"
    script.write_text(capsys.readouterr().out)
    (tmp_path / "photo.jpg").touch()

    def completed(*words):
        call = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _dala"
        told = f"source {script}; {call}; echo ${{COMPREPLY[@]}}"
        done = subprocess.run(
            [bash, "-c", told], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        return done.stdout.split()

    assert completed("dala", "sel") == ["selftest"]
    assert completed("dala", "filter", "--chrom") == ["--chroma_key", "--chromatic_aberration"]
    assert completed("dala", "cut", "--co") == ["--codec", "--copy"]
    assert completed("dala", "filter", "ph") == ["photo.jpg"]
