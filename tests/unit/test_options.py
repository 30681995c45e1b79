"""Groups of options: checks, records, command lines, signatures and generated files."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import pytest

from dala import options
from dala.arguments import Flag, Integer, Selection
from dala.errors import ParameterError, UnknownParameter
from dala.media.video.options import EncodeOptions, EncoderOptions
from dala.options import Options, option, takes
from tests.support.option_stubs import pages, stubs, table

pytest.importorskip("av")


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
    assert "    path: the file.\n    speed: how fast.\n" in shoot.__doc__


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
