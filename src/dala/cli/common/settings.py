"""Settings of the command line, from ``dala.toml`` in this folder and in the user's.

The command line comes first, then the environment, the project's file and the user's.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dala.cli.common.verbosity import result_of
from dala.errors import ParameterError, did_you_mean
from dala.folders import user_folder

FILE: Final = "dala.toml"
#: Settings that are variables of the environment; of folders, relative to the file.
_VARIABLES: Final = {"device": "DALA_DEVICE", "fonts": "DALA_FONT_PATH", "models": "DALA_MODELS"}
_FOLDERS: Final = ("fonts", "models")
#: Settings that are defaults of options, and the types of their values: of videos, of pictures.
_OF_VIDEOS: Final = {"codec": str, "crf": int, "encoder": str, "threads": int}
_OPTIONS: Final = {**_OF_VIDEOS, "quality": int}
NAMES: Final = (*_VARIABLES, *_OPTIONS)
#: Files that hold videos of nearly any codec; others have one of their own.
_CONTAINERS: Final = (".mp4", ".m4v", ".mov", ".mkv")
#: The largest file that is read.
_MOST: Final = 1 << 16


def files() -> list[Path]:
    """Return the settings files that are there, the project's first."""
    user = user_folder("XDG_CONFIG_HOME", "~/Library/Application Support", "~/.config")
    places = [Path(FILE), *([] if user is None else [Path(user) / "dala" / FILE])]
    return [place for place in places if place.is_file()]


def read(path: Path) -> dict[str, str | int]:
    """Return the settings of a file, checked.

    Raises:
        ParameterError: it is not TOML, or a setting is unknown or of another type.
    """
    import tomllib  # few have the file

    try:
        if path.stat().st_size > _MOST:
            raise ParameterError(f"{path}: a settings file has at most {_MOST:,} bytes.")
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParameterError(f"{path}: this is not TOML: {error}.") from None
    return {name: _checked(path, name, value) for name, value in found.items()}


def _checked(path: Path, name: str, value: object) -> str | int:
    if isinstance(value, dict):
        advice = f"Settings have no table: remove the line [{name}]."
        raise ParameterError(f"{path}: [{name}]: there is no such table. {advice}")
    if name not in NAMES:
        hint = did_you_mean(name, NAMES) or f"There are: {', '.join(NAMES)}."
        raise ParameterError(f"{path}: there is no setting {name!r}. {hint}")
    if name in _FOLDERS:
        given = value if isinstance(value, list) else [value]
        folders = [one for one in given if isinstance(one, str) and one]
        if folders and len(folders) == len(given):
            base = path.absolute().parent
            return os.pathsep.join(str(base / Path(one).expanduser()) for one in folders)
        raise ParameterError.invalid(str(path), name, "a folder or a list of folders", value)
    kind = _OPTIONS.get(name, str)
    if isinstance(value, str | int) and type(value) is kind:
        return value
    raise ParameterError.invalid(str(path), name, "an int" if kind is int else "a string", value)


def all_settings() -> dict[str, tuple[str | int, Path]]:
    """Return each setting with the file that decides it."""
    found: dict[str, tuple[str | int, Path]] = {}
    for path in reversed(files()):
        found |= {name: (value, path) for name, value in read(path).items()}
    return found


def apply(args: argparse.Namespace) -> None:
    """Give a command the settings that neither its line nor the environment has.

    Jobs of ``dala batch`` keep their options for later runs, and take only those of their line.
    """
    result = result_of(args)
    video = result is not None and result.suffix.lower() in _CONTAINERS
    for name, (value, _) in all_settings().items():
        if name in _VARIABLES:
            os.environ.setdefault(_VARIABLES[name], str(value))
            continue
        fits = args.command != "batch" and (video or name not in _OF_VIDEOS)
        if fits and getattr(args, name, 0) is None:
            setattr(args, name, value)


def lines(found: Mapping[str, tuple[str | int, Path]]) -> list[str]:
    """Return the settings as text.

    >>> lines({"crf": (20, Path("dala.toml"))})
    ['crf = 20 (dala.toml)']
    """
    return [f"{name} = {value!r} ({path})" for name, (value, path) in sorted(found.items())]
