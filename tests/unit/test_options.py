"""Options are declared once: a line gives signature, stub, help, studio card, record and error."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from dala import options
from dala.arguments import Flag, Integer, Selection
from dala.errors import ParameterError, UnknownParameter
from dala.media.video import options as video_options
from dala.media.video.options import EncodeOptions, EncoderOptions
from dala.options import Options, option, takes
from tests.support.option_stubs import pages, stubs, table

pytest.importorskip("av")

ROOT = Path(__file__).parents[2]
#: The line that is added to the options of everything that encodes videos.
LINE = """    patina: int = option(Integer(0, 9), 3, "film patina", command=True, page=True)
"""

#: Run with the added line: the module is replaced before anything imports it.
PROGRAM = """
import importlib.util, inspect, io, json, sys
from contextlib import redirect_stdout, suppress

name = "dala.media.video.options"
spec = importlib.util.find_spec(name)
module = importlib.util.module_from_spec(spec)
sys.modules[name] = module
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), module.__dict__)

from dala import batch
from dala.batch.video.work import encoder_settings
from dala.cli import main
from dala.media import Scene, video
from dala.studio.catalogue.catalogue import catalogue
from dala.studio.limits import StudioLimits
from tests.support.option_stubs import keywords

def shown(call):
    return str(inspect.signature(call).parameters.get("patina"))

def said(call):
    try:
        call()
    except Exception as error:
        return str(error)

def help_of(command):
    with redirect_stdout(io.StringIO()) as out, suppress(SystemExit):
        main([command, "--help"])
    return out.getvalue()

job = batch.videos("in.mp4", out="a.mp4", chain=["invert"], patina=5, device="cpu")
calls = (video.write, Scene.render_to, batch.videos, batch.scenes)
commands = ("filter", "batch", "cut", "concat", "compose")
cards = catalogue(StudioLimits())["render"]
print(json.dumps({
    "signatures": [shown(call) for call in calls],
    "docs": ["patina: film patina." in call.__doc__ for call in calls],
    "stub": keywords(module),
    "help": ["--patina N" in help_of(command) for command in commands],
    "card": [card for card in cards if card["name"] == "patina"],
    "record": job.spec["patina"],
    "worker": encoder_settings(job.spec, "a.mp4").patina,
    "errors": [said(lambda: video.write("a.mp4", patina=12)),
               said(lambda: Scene(8, 8).render_to("a.mp4", 1, patina=12)),
               said(lambda: video.write("a.mp4", patinna=2))],
}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("declared")
    text = Path(video_options.__file__).read_text(encoding="utf-8")
    before = "    crf: int | None = option(\n"
    assert text.count(before) == 1
    changed = folder / "options.py"
    changed.write_text(text.replace(before, LINE + before), encoding="utf-8")
    program = folder / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(options.__file__).parents[1]), str(ROOT)]),
    }
    ran = subprocess.run([sys.executable, program, changed], capture_output=True, text=True,
                         cwd=folder, env=env)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_a_new_option_is_one_line(found):
    assert LINE.count("\n") == 1
    assert found["signatures"] == ["patina: 'int' = 3"] * 4
    assert found["docs"] == [True] * 4
    assert found["stub"].count("    patina: int\n") == 3  # encoders, video.write, filtering
    assert found["help"] == [True] * 5
    wanted = {"name": "patina", "default": 3, "doc": "film patina.", "type": "int", "low": 0}
    assert found["card"] == [{**wanted, "high": 9}]
    assert (found["record"], found["worker"]) == (5, 5)
    assert found["errors"] == [
        "video.write: patina must be an int from 0 to 9, got 12.",
        "Scene.render_to: patina must be an int from 0 to 9, got 12.",
        "video.write: there is no option 'patinna'. Did you mean 'patina'?",
    ]


def test_generated_files_are_current():
    for path, text in {**stubs(), **pages()}.items():
        assert path.read_text(encoding="utf-8") == text, (
            f"run python -m tests.support.option_stubs: {path}"
        )


@dataclass(frozen=True, kw_only=True)
class Film(Options):
    """Options that only these tests have.

    Args:
        sound: keep the
            sound.
    """

    speed: int = option(Integer(1, 5), 2, "how fast", command=True)
    mode: str | None = option(Selection("soft", "hard"), None, "how it looks", command=True)
    sound: bool = option(Flag(), True, "drop the sound", command=True)


def test_values_are_checked():
    assert Film.checked("film", {"speed": 3, "mode": None}) == Film(speed=3)
    with pytest.raises(
        ParameterError, match=r"^film: mode must be one of 'soft', 'hard', got 'h"
    ) as e:
        Film.checked("film", {"mode": "hart"})
    assert str(e.value).endswith("Did you mean 'hard'?")
    assert (e.value.call, e.value.argument, e.value.got) == ("film", "mode", "hart")
    with pytest.raises(UnknownParameter, match=r"no option 'speedy'\. Did you mean 'speed'"):
        Film.checked("film", {"speedy": 3})
    with pytest.raises(ParameterError, match="speed must be an int from 1 to 5, got None"):
        Film.checked("film", {"speed": None})  # not the default


def test_records_hold_every_value():
    made = Film(mode="soft")
    assert made.to_json() == {"speed": 2, "mode": "soft", "sound": True}
    assert Film.from_json("film", {**made.to_json(), "other": 1}) == made
    assert made.changed() == {"mode": "soft"}
    with pytest.raises(ParameterError, match="speed must be"):
        Film.from_json("film", {"speed": 9})


def test_command_lines_give_what_was_written():
    import argparse

    parser = argparse.ArgumentParser()
    for flag, facts in Film.command_line().items():
        parser.add_argument(flag, **facts)
    assert Film.given(parser.parse_args([])) == {}
    given = Film.given(parser.parse_args(["--speed", "4", "--mode", "hard", "--no-sound"]))
    assert given == {"speed": 4, "mode": "hard", "sound": False}


def test_calls_have_the_signature_of_their_options():
    @takes(Film)
    def shoot(path: str, **given):
        """Shoot.

        Args:
            path: the file.
        """

    assert list(inspect.signature(shoot).parameters) == ["path", "speed", "mode", "sound"]
    assert shoot.__doc__ is not None
    assert "path: the file.\n            speed: how fast.\n" in shoot.__doc__


def test_groups_share_values_by_name():
    encoding = EncoderOptions(crf=20, options={"preset": "slow"})
    assert EncodeOptions.of(encoding, fps=25).ffmpeg == {"preset": "slow", "crf": "20"}
    assert options.DeviceOptions.of(encoding) == options.DeviceOptions()


def test_crf_is_a_keyword_and_an_option_of_the_encoder(tmp_path):
    import numpy as np

    from dala.media import video

    pictures = [np.full((16, 16, 3), k, np.uint8) for k in range(4)]
    for name, given in (("a", {"crf": 40}), ("b", {"options": {"crf": 40}})):
        video.write(tmp_path / f"{name}.mp4", pictures, fps=5, threads=1, **given)
    assert (tmp_path / "a.mp4").read_bytes() == (tmp_path / "b.mp4").read_bytes()


def test_tables_of_documents_have_a_row_for_each_option():
    assert table(Film)[2:] == [
        "| `speed` | `2` | an int from 1 to 5 | how fast. |",
        "| `mode` |  | one of 'soft', 'hard' | how it looks. |",
        "| `sound` | `True` | True or False | keep the sound. |",
    ]
