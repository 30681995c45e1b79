"""Reading a subtitle file of any kind.

The readers are ours because FFmpeg's keep neither voices nor regions, and do not say which lines
of a file they skip.
"""

from __future__ import annotations

import codecs
import os
import pathlib
import warnings
from typing import Final

from dala import memory
from dala.arguments import refuse_url
from dala.errors import DtypeError, ParameterError
from dala.media.subtitles import ass, charset, srt, vtt
from dala.media.subtitles.cue import Parsed, Subtitles
from dala.typing import PathLike

#: Larger files are refused.
MAX_BYTES: Final = 64 << 20
#: Bytes of memory for each character while it is read: lines and cues are objects.
PARSED: Final = 16
#: How many skipped cues a warning names.
_NAMED: Final = 3


def load_subtitles(source: PathLike | bytes, *, encoding: str | None = None) -> Subtitles:
    """Return the cues of an SRT, WebVTT or ASS file in order of their start.

    Args:
        source: a path, or the contents of a file (a string of more than one line, or bytes).
        encoding: the file's encoding, such as "cp1250". By default it is found out.

    Returns:
        A list of cues with the ``kind`` and ``charset`` of the file, WebVTT's ``regions``, and
        ``left_out``: how much was left out, by kind.

    Raises:
        ParameterError: the file does not exist, cannot be read, or has no subtitles; or the
            encoding is unknown.
        DtypeError: the source is neither a path nor text.

    Warns:
        UserWarning: cues were skipped or drawings left out, or the file is not Unicode.

    >>> load_subtitles("WEBVTT\\n\\n00:01.000 --> 00:02.000\\nHi\\n")[0].text
    'Hi'
    """
    text, name, used = _read(source, encoding)
    memory.check(PARSED * len(text), "load_subtitles")
    found = _parse(text.removeprefix("\ufeff").replace("\0", "\ufffd"), name)
    if found.problems:
        found.left_out["malformed cues"] = len(found.problems)
        _warn(_skipped(name, found.problems))
    if drawings := found.left_out["drawings"]:
        plural = "s are" if drawings > 1 else " is"
        _warn(f"load_subtitles: {name}: {drawings} drawing{plural} left out.")
    return Subtitles(
        sorted(found.cues, key=lambda cue: cue.start),
        kind=found.kind,
        charset=used,
        regions=found.regions,
        left_out=found.left_out,
    )


def _parse(text: str, name: str) -> Parsed:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    if vtt.is_vtt(lines[0]):
        return vtt.parse(lines)
    if ass.is_ass(text):
        return ass.parse(lines)
    if "-->" in text or not text.strip():
        return srt.parse(lines)
    raise ParameterError(
        f"load_subtitles: {name} is neither SRT nor WebVTT nor ASS: it has no line with times "
        '("00:00:01,000 --> 00:00:02,000"), no [Events], and does not start with WEBVTT.'
    )


def _skipped(name: str, problems: list[tuple[int, str]]) -> str:
    line, reason = problems[0]
    if len(problems) == 1:
        return f"load_subtitles: {name}, line {line}: {reason}; the cue is skipped."
    shown = "; ".join(f"line {line}: {reason}" for line, reason in problems[:_NAMED])
    more = len(problems) - _NAMED
    rest = f"; and {more} more" if more > 0 else ""
    return f"load_subtitles: {name}: {len(problems)} cues are skipped: {shown}{rest}."


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=3)


def _read(source: PathLike | bytes, encoding: str | None) -> tuple[str, str, str]:
    """Return the text of a source, its name for messages, and its encoding."""
    if encoding is not None:
        try:
            codecs.lookup(encoding)
            "".encode(encoding)  # refuses codecs of other things, such as "hex"
        except (LookupError, TypeError, ValueError):
            raise ParameterError.invalid(
                "load_subtitles", "encoding", "the name of a text encoding", encoding
            ) from None
    if isinstance(source, str) and ("\n" in source or "\r" in source or "-->" in source):
        return source, "the text", ""
    if isinstance(source, bytes | bytearray | memoryview):
        return _decode(bytes(source), "the text", encoding)
    if not isinstance(source, str | os.PathLike):
        raise DtypeError.invalid("load_subtitles", "source", "a path or the text of a file", source)
    refuse_url("load_subtitles", "source", source)
    path = pathlib.Path(source)
    name = repr(os.fspath(source))
    try:
        size = path.stat().st_size
        data = b"" if size > MAX_BYTES else path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ParameterError(f"load_subtitles: {name} cannot be read ({reason}).") from None
    if size > MAX_BYTES:
        raise ParameterError(
            f"load_subtitles: {name} must be at most {MAX_BYTES >> 20} MiB, got "
            f"{size >> 20} MiB. Is it a video?"
        )
    return _decode(data, name, encoding)


def _decode(data: bytes, name: str, encoding: str | None) -> tuple[str, str, str]:
    if encoding is not None:
        return data.decode(encoding, "replace"), name, encoding
    text, used, at = charset.decode(data)
    if at >= 0:
        line = data.count(b"\n", 0, at) + 1
        if used == "UTF-8":
            damaged = text.count("\ufffd")
            problem = f"not UTF-8 ({damaged} damaged characters); they are shown as \ufffd."
        else:
            problem = (
                f"not UTF-8; the file is read as {used}. If letters look wrong, give encoding=."
            )
        warnings.warn(f"load_subtitles: {name}, line {line}: {problem}", UserWarning, stacklevel=4)
    return text, name, used
