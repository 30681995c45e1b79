"""The ``dala`` command: arguments, exit codes, output."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import dala
from dala.cli import COMMANDS, help_parts, main
from dala.errors import DeviceUnavailable

ROOT = pathlib.Path(__file__).parents[2]


def fails(monkeypatch, error):
    def run(args):
        raise error

    monkeypatch.setattr("dala.cli.info.run", run)


def test_version(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"dala {dala.__version__}\n"


def test_help_lines_are_read_without_importing():
    code = "import sys, dala.cli; print([dala.cli.help_parts(n)[0] for n in dala.cli.COMMANDS]);"
    code += "assert 'numpy' not in sys.modules and 'dala.cli.filter' not in sys.modules"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environ, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "apply filters to pictures and videos" in done.stdout


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert [name for name in COMMANDS if name not in out] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(capsys, command):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: dala {command}")
    assert f"examples:\n  dala {command}" in out


@pytest.mark.parametrize(("words", "advice"), [
    ("cut a.mp4 b.mp4", "Write -o b.mp4 if it is the result."),
    ("cut a.mp4 -o b.mp4 --start 1", "Did you mean 'from'?"),
])  # fmt: skip
def test_arguments_of_other_programs(capsys, words, advice):
    with pytest.raises(SystemExit):
        main(words.split())
    assert advice in capsys.readouterr().err


def test_the_table_of_commands_lists_them_all():
    """The rows of docs/command-line.md are the help lines of the commands."""
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    table = page.partition("| command | |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = [f"| `dala {name}` | {help_parts(name)[0]} |" for name in COMMANDS]
    assert table.splitlines() == rows


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_what_the_page_says(capsys, command):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    out = capsys.readouterr().out
    assert "-q, --quiet" in out
    assert ("--json" in out) == (command != "completion")
    assert ("--device" in out) == (command not in ("completion", "models", "why"))
    assert "[]" not in out


@pytest.mark.parametrize("arguments", [[], ["fly"], ["info", "--fly"], ["demo", "--size", "big"]])
def test_wrong_arguments(capsys, arguments):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("dala")


def test_nearest_command_is_suggested(capsys):
    with pytest.raises(SystemExit):
        main(["flter"])
    assert capsys.readouterr().err == (
        "dala: there is no command 'flter'. Did you mean 'filter'?\n"
    )


def test_errors_are_one_line(monkeypatch, capsys):
    fails(monkeypatch, DeviceUnavailable("there is no GPU"))
    assert main(["info"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "dala info: there is no GPU\n")


def test_unexpected_errors(monkeypatch, capsys):
    fails(monkeypatch, KeyError("x"))
    assert main(["info"]) == 2
    assert capsys.readouterr().err == "dala info: KeyError: 'x' (--debug shows where)\n"


@pytest.mark.parametrize("arguments", [["--debug", "info"], ["info", "--debug"]])
def test_debug_raises(monkeypatch, arguments):
    fails(monkeypatch, DeviceUnavailable("there is no GPU"))
    with pytest.raises(DeviceUnavailable):
        main(arguments)


def test_interrupted(monkeypatch):
    fails(monkeypatch, KeyboardInterrupt())
    assert main(["info"]) == 130


@pytest.mark.parametrize("command", ["doctor", "info"])
def test_json(capsys, command):
    assert main([command, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["system"]["dala"] == dala.__version__
    assert report["choice"]["device"] in [device["id"] for device in report["devices"]]
    assert isinstance(report["problems"], list)


def test_doctor_page(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Dala {dala.__version__}, Python ")
    assert "auto selects " in out


def test_info_page_has_no_advice(capsys):
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    assert "auto selects " in out
    assert "Optional" not in out
    assert "Problems" not in out


@pytest.mark.parametrize(("setting", "code"), [("", 0), ("cuda", 1)])
def test_strict_doctor(monkeypatch, setting, code):
    from dala.machine.probe import Probe

    cpu, *_ = [device for device in dala.devices() if device.id == "cpu"]
    gpu = dala.Device("webgpu:0", "M4", "webgpu", "integrated", True, ("f32",), "", "Metal")
    probe = Probe(platform="darwin", libc="", devices=(gpu, cpu), setting=setting)
    monkeypatch.setattr("dala.machine.report.look", lambda: probe)
    assert main(["doctor"]) == 0
    assert main(["doctor", "--strict"]) == code


@pytest.mark.parametrize("module", ["dala", "dala.cli"])
def test_as_a_module(module):
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-m", module, "--version"],
        capture_output=True, text=True, env=environ, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"dala {dala.__version__}\n"), done.stderr


def test_broken_pipe():
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "dala", "doctor"],
            stdout=write, stderr=subprocess.PIPE, text=True, env=environ, check=False,
        )  # fmt: skip
    finally:
        os.close(write)
    assert done.returncode == 0
    assert "BrokenPipe" not in done.stderr


def test_demo_on_a_device_that_does_not_exist(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path), "--device", "opencl"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("dala demo: dala.device: name must be auto, gpu, cpu, ")
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())
