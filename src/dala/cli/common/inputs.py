"""The files of a command line: pictures, videos, folders and patterns, and where results go."""

from __future__ import annotations

import glob
import mimetypes
import os
from collections.abc import Sequence
from pathlib import Path

from dala.arguments.paths import missing_file
from dala.errors import ParameterError, error_line
from dala.media.video.suffixes import ANIMATED, PICTURE_SUFFIXES, VIDEO_SUFFIXES
from dala.typing import NDArray


def is_video(name: str) -> bool:
    """Return whether a name is that of a video, by its suffix or because it is a URL."""
    return "://" in name or Path(name).suffix.lower() in VIDEO_SUFFIXES


def pixels(name: str | Path) -> NDArray:
    """Return the picture of a file as RGB."""
    import numpy as np

    from dala.media.files import load

    return np.asarray(load(name, 1 << 27).convert("RGB"))


def is_one_video(name: str) -> bool:
    """Return whether a name is that of one video, not a folder or a pattern of them."""
    path = Path(name)
    pattern = "://" not in name and glob.has_magic(name) and not path.exists()
    return is_video(name) and not pattern and not path.is_dir()


def is_moving(name: str) -> bool:
    """Return whether a name is that of an animated picture."""
    from dala.media.video.animated.facts import count_frames

    return Path(name).is_file() and count_frames(name) > 1


def is_animation(source: Path, target: Path) -> bool:
    """Return whether a picture moves, and the result can too: GIF, APNG or WebP, or a video."""
    moves = target.suffix.lower() in {*ANIMATED, ".png"} or is_video(target.name)
    return moves and is_moving(str(source))


def expand(names: Sequence[str], videos: bool = False) -> tuple[list[Path], bool]:
    """Return the files that names stand for, and whether they may be many.

    A folder, a pattern and several names may be many. Of a folder the pictures are taken, and with
    ``videos`` the videos too.

    Raises:
        FileNotFoundError: a name matches no file.
    """
    found: list[Path] = []
    many = len(names) > 1
    for name in names:
        path = Path(name)
        if path.is_dir():
            many = True
            wanted = PICTURE_SUFFIXES | VIDEO_SUFFIXES if videos else PICTURE_SUFFIXES
            inside = sorted(
                p
                for p in path.iterdir()
                if p.suffix.lower() in wanted and not p.name.startswith(".") and p.is_file()
            )
            if not inside:
                what = "pictures or videos" if videos else "pictures"
                raise FileNotFoundError(f"there are no {what} in the folder {name!r}.")
            found += inside
        elif path.exists():
            found.append(path)
        elif glob.has_magic(name):
            many = True
            matching = sorted(p for p in map(Path, glob.glob(name, recursive=True)) if p.is_file())
            if not matching:
                raise FileNotFoundError(f"no file matches {name!r}.")
            found += matching
        else:
            raise missing_file(name)
    return found, many


def refuse_waiting(names: Sequence[str], advice: str) -> None:
    """Raise if a name is that of a pipe or a device, which may never send anything.

    Raises:
        ParameterError: it is; ``advice`` says what to do.
    """
    for name in names:
        path = Path(name)
        if "://" not in name and (path.is_fifo() or path.is_char_device() or path.is_socket()):
            what = "a pipe" if path.is_fifo() else "a device"
            raise ParameterError(f"{name!r} is {what}, not a file. {advice}")


def failure(source: Path, error: BaseException) -> str:
    """Return why a file of a batch failed, as one line that names it.

    Codec libraries raise anything, even exceptions that are no ``Exception``; none of them ends a
    batch. Requests to stop the process do: they are raised again.
    """
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
        raise error
    text = error_line(error)
    return text if str(source) in text else f"{source}: {text}"


def targets(sources: Sequence[Path], out: str, format: str | None = None) -> list[Path]:
    """Return the path of each result: in a folder, with the name of its source.

    ``format`` is the suffix of all results; by default those of the sources.

    Raises:
        ParameterError: two results would have the same name, or the folder is a file.
    """
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"OUT must be a folder for many files, got the file {out!r}.")
    if not folder.exists() and folder.suffix and not out.endswith(("/", os.sep)):
        raise ParameterError(
            f"OUT must be a folder for many files, and {out!r} looks like a file. For a folder "
            f"of that name write '{out}/'."
        )
    seen: dict[str, Path] = {}
    suffix = None if format is None else f".{format.lstrip('.')}"
    names = [Path(s.name) if suffix is None else Path(s.name).with_suffix(suffix) for s in sources]
    for source, name in zip(sources, names, strict=True):
        other = seen.setdefault(str(name).lower(), source)
        if other is not source:
            raise ParameterError(f"'{other}' and '{source}' would have the same name in {out!r}.")
    return [folder / name for name in names]


def refuse_no_video(place: str, source: str, out: str) -> None:
    """Raise if the result of a video has a name that is none of a video.

    Raises:
        ParameterError: with the way to a picture or a sound of a video.
    """
    if is_video(out):
        return
    kind = (mimetypes.guess_type(out)[0] or "").partition("/")[0]
    kind = "frames" if "%" in out or out.endswith("/") else kind
    pages = {
        "image": " One frame: docs/how-to/facts.md.",
        "frames": " Its frames as pictures: docs/how-to/frames.md.",
        "audio": f" Sound: dala cut {source} -o {out}.",
    }
    raise ParameterError(
        f"{place} must be a video such as out.mp4, as {source!r} is, got {out!r}."
        + pages.get(kind, "")
    )


def refuse_overwriting(read: Sequence[Path], written: Sequence[Path]) -> None:
    """Raise if a result would replace a file that is read.

    Raises:
        ParameterError: a file is read and written.
    """
    held = {_identity(path): path for path in read}
    for path in written:
        if _identity(path) in held:
            raise ParameterError(f"'{path}' is an input and is not overwritten. Name another file.")


def _identity(path: Path) -> tuple[int, int] | Path:
    """Return the same value for all names of one file, hard links included."""
    try:
        found = path.stat()
        return found.st_dev, found.st_ino
    except OSError:
        return path.resolve()
