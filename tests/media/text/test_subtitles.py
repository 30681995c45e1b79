"""Subtitles: SRT and WebVTT, valid and malformed."""

from __future__ import annotations

import pathlib
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dala.errors import DtypeError, ParameterError
from dala.media.subtitles import Cue, format_subtitles, load_subtitles

SRT = """1
00:00:01,000 --> 00:00:02,500
Hello,
world

2
00:01:00,040 --> 01:02:03,004
<i>second</i> one
"""

VTT = """WEBVTT - a title
Kind: captions

NOTE
this is not shown --> nor is this

STYLE
::cue { color: red }

REGION
id:fred

intro
00:01.000 --> 00:02.500 line:0 position:20% align:start
<v Roger>Fish &amp; <c.loud>chips</c>

00:00:03.000 --> 00:00:04.000
<00:00:03.500>late &lt;tag&gt;
"""


def times(cues: list[Cue]) -> list[tuple[float, float]]:
    return [(cue.start, cue.end) for cue in cues]


def test_srt() -> None:
    assert load_subtitles(SRT) == [
        Cue(1.0, 2.5, "Hello,\nworld"),
        Cue(60.04, 3723.004, "second one"),
    ]


def test_vtt() -> None:
    assert load_subtitles(VTT) == [
        Cue(1.0, 2.5, "Fish & chips", {"line": "0", "position": "20%", "align": "start"}),
        Cue(3.0, 4.0, "late <tag>"),
    ]


@pytest.mark.parametrize("text", [SRT, VTT])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_line_ends_and_encodings(
    text: str, ending: str, encoding: str, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "a.srt"
    path.write_bytes(text.replace("\n", ending).encode(encoding))
    assert load_subtitles(path) == load_subtitles(str(path)) == load_subtitles(text)
    assert load_subtitles(path.read_bytes()) == load_subtitles(text)


def test_other_encodings_warn() -> None:
    data = "1\n00:00:01,000 --> 00:00:02,000\ncafé “x”\n".encode("cp1252")
    with pytest.warns(UserWarning, match=r"line 3: not UTF-8; .* Windows-1252"):
        assert load_subtitles(data)[0].text == "café “x”"
    with pytest.warns(UserWarning, match="Latin-1"):
        assert load_subtitles(data.replace(b"caf", b"\x81"))[0].text == "\x81é \x93x\x94"


def test_tags_are_removed() -> None:
    def read(text: str) -> Cue:
        return load_subtitles(f"00:00:01,000 --> 00:00:02,000\n{text}\n")[0]

    assert read("<b>a</b> <u>b</u> <font color='red'>c</font>").text == "a b c"
    assert read("1 < 2 > 0 <grin> <3").text == "1 < 2 > 0 <grin> <3"
    assert read("a<br/>b").text == "a\nb"
    assert read("<i>a\nb</i>") == Cue(1, 2, "a\nb", italic=True)
    assert read("<b><i>a</i></b>") == Cue(1, 2, "a", italic=True, bold=True)
    assert not read("<i>a</i> b").italic
    assert read(r"{\an8}top") == Cue(1, 2, "top", {"an": "8"})
    assert read(r"{\pos(10,20)\b1}x {y}").text == "x {y}"


def test_overlapping_cues_are_kept_and_sorted() -> None:
    text = "00:00:05,000 --> 00:00:09,000\nb\n\n00:00:01,000 --> 00:00:07,000\na\n"
    assert times(load_subtitles(text)) == [(1, 7), (5, 9)]


@pytest.mark.parametrize(
    ("time", "seconds"),
    [("00:01,5", 1.5), ("1:00:00.001", 3600.001), ("0:1,25", 1.25), ("100:00:00,000", 360000.0)],
)
def test_times_as_they_are_written(time: str, seconds: float) -> None:
    assert load_subtitles(f"{time} --> 999:00:00,000\nx\n")[0].start == seconds


@pytest.mark.parametrize(
    ("block", "line", "reason"),
    [
        ("3\n00:00:05,000 -> 00:00:06,000\nx", 5, "no line with times"),
        ("3\n00:00:05,000 --> soon\nx", 6, "does not have two times"),
        ("3\n00:61:05,000 --> 02:00:06,000\nx", 6, "below 60"),
        ("3\n00:00:05,000 --> 00:00:05,000\nx", 6, "ends before it starts"),
        ("just words", 5, "'just words'"),
    ],
)
def test_malformed_cues_are_skipped_with_a_warning(block: str, line: int, reason: str) -> None:
    good = "1\n00:00:01,000 --> 00:00:02,000\na\n"
    with pytest.warns(UserWarning, match=rf"line {line}: .*{reason}.*skipped") as reported:
        found = load_subtitles(f"{good}\n{block}\n\n{good}")
    assert [cue.text for cue in found] == ["a", "a"]
    assert len(reported) == 1
    assert reported[0].filename == __file__


def test_missing_blank_lines_and_numbers() -> None:
    text = "00:00:01,000 --> 00:00:02,000\na\n2\n00:00:03,000 --> 00:00:04,000\nb\n5\n"
    assert [cue.text for cue in load_subtitles(text)] == ["a", "b\n5"]
    assert load_subtitles("00:00:01,000 --> 00:00:02,000\n\n") == []
    assert load_subtitles("WEBVTT\n") == load_subtitles("\n") == load_subtitles(b"") == []


def test_invalid_subtitles(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ParameterError, match="cannot be read"):
        load_subtitles(tmp_path / "none.srt")
    with pytest.raises(ParameterError, match="cannot be read"):
        load_subtitles(tmp_path)
    with pytest.raises(ParameterError, match="cannot be read"):
        load_subtitles("a\0b")
    with pytest.raises(ParameterError, match="neither SRT nor WebVTT"):
        load_subtitles("a poem\nof two lines")
    with pytest.raises(DtypeError, match="got 3"):
        load_subtitles(3)  # type: ignore[arg-type]


WORDS = st.text(
    st.characters(exclude_categories=("C", "Z"), exclude_characters="<>{}&"), min_size=1
).filter(lambda word: "-->" not in word and not word.isdigit())
CUES = st.builds(
    lambda start, length, text, italic, bold: Cue(
        start / 1000, (start + length) / 1000, text, {}, italic, bold
    ),
    st.integers(0, 400_000_000),
    st.integers(1, 10_000_000),
    WORDS,
    st.booleans(),
    st.booleans(),
)


@given(st.lists(CUES, min_size=1, max_size=5), st.sampled_from(("srt", "vtt")))
def test_written_cues_are_read_the_same(cues: list[Cue], kind: str) -> None:
    cues = sorted(cues, key=lambda cue: cue.start)
    assert load_subtitles(format_subtitles(cues, kind)) == cues


@given(st.text("0123456789:,.-> \n\r<>ib/{}\\anWEBVTT", max_size=120))
def test_any_text_is_read_or_refused(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = load_subtitles(text + "\n")
        except ParameterError:
            return
    assert all(0 <= cue.start < cue.end and cue.text for cue in found)


def test_invalid_cues_are_refused() -> None:
    with pytest.raises(ParameterError, match="'srt' or 'vtt', got 'ass'"):
        format_subtitles([], "ass")
    with pytest.raises(ParameterError, match="cue 1 must have 0 <= start < end, got 2 to 1"):
        format_subtitles([Cue(2, 1, "x")])
