"""Subtitles: SRT, WebVTT and ASS, valid and malformed, in any encoding."""

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
        ("3\n00:00:05,000 --> 00:00:04,999\nx", 6, "ends before it starts"),
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
    with pytest.raises(ParameterError, match="neither SRT nor WebVTT nor ASS"):
        load_subtitles("a poem\nof two lines")
    with pytest.raises(DtypeError, match="got 3"):
        load_subtitles(3)  # type: ignore[arg-type]


#: Letters of several scripts, marks, digits, signs and what the formats give a meaning. A fixed
#: alphabet: Hypothesis builds tables of all of Unicode for character classes, which takes long.
ALPHABET = "aZß0ñe\u0301שلا한日😀\U0001f1e6-.:,;!?*_#[]()/\\'\"%@+=~^$|"
WORDS = st.builds("{}{}".format, st.sampled_from("aßש日-"), st.text(ALPHABET, max_size=12))
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
    assert all(0 <= cue.start <= cue.end and cue.text for cue in found)


def test_invalid_cues_are_refused() -> None:
    with pytest.raises(ParameterError, match="'srt' or 'vtt', got 'ass'"):
        format_subtitles([], "ass")
    with pytest.raises(ParameterError, match="cue 1 must have 0 <= start <= end, got 2 to 1"):
        format_subtitles([Cue(2, 1, "x")])


def test_vtt_cues_right_under_the_header() -> None:
    for header in ("WEBVTT\n", "WEBVTT - title\nKind: captions\n", "WEBVTT\nfirst\n"):
        assert load_subtitles(f"{header}00:01.000 --> 00:02.000\na\n") == [Cue(1, 2, "a")]


def test_vtt_notes() -> None:
    """A comment ends at a line with times, as in browsers; other arrows belong to it."""
    text = "WEBVTT\n\nNOTE a --> b\nc --> d\n\nNOTE 00:01.000 --> 00:02.000\nx\n\n"
    assert load_subtitles(text) == []
    found = load_subtitles(f"{text}NOTE late\nstill\n00:03.000 --> 00:04.000\nshown\n")
    assert found == [Cue(3, 4, "shown")]
    assert found.left_out == {"comments": 3}


def test_vtt_regions_settings_and_voices() -> None:
    found = load_subtitles(
        "WEBVTT\nRegion: id=bill width=40%\n\n"
        "REGION\nid:fred\nwidth:40%\nlines:3\nscroll:up\nregionanchor:0%,100%\nwidth:140%\n\n"
        "00:01.000 --> 00:02.000 region:fred align:sideways line:-1 size:101% position:10%,center\n"
        "<v.loud Ann &amp; Bob>Hi</v> <v Eve>there</v>\n\n"
        "00:02.000 --> 00:03.000region:nowhere\n<c.yellow.bg>soon</c>\n"
    )
    assert found[0] == Cue(
        1, 2, "Hi there", {"region": "fred", "line": "-1", "position": "10%,center"}
    )
    assert found[0].voices == ("Ann & Bob", "Eve")
    assert found[1] == Cue(2, 3, "soon", color="#ffff00")
    assert found.regions == {
        "bill": {"width": "40%"},
        "fred": {"width": "40%", "lines": "3", "scroll": "up", "regionanchor": "0%,100%"},
    }
    assert found.left_out == {"settings": 3, "regions that are not in the file": 1}
    again = load_subtitles(format_subtitles(found, "vtt"))
    assert (again, again.regions, again[0].voices) == (found, found.regions, ("Ann & Bob", "Eve"))


def test_vtt_tags() -> None:
    def read(text: str) -> str:
        return load_subtitles(f"WEBVTT\n\n00:01.000 --> 00:02.000\n{text}\n")[0].text

    assert read("<ruby>漢<rt>kan</rt>字<rt>ji</rt></ruby>") == "漢(kan)字(ji)"
    assert read("<00:01.500>a <unknown>b</unknown> <c.x>c < d") == "a b c < d"
    assert read("a&nbsp;&lt;b&gt;\0") == "a\xa0<b>\ufffd"


def test_srt_keeps_cues_of_no_length() -> None:
    text = "1\n00:00:01,000 --> 00:00:01,000\na\n\n2\n00:00:02 --> 00:00:03\n\n"
    found = load_subtitles(text)
    assert found == [Cue(1, 1, "a")]
    assert found.left_out == {"empty cues": 1}
    assert load_subtitles(format_subtitles(found)) == found


ASS = """[Script Info]
; a comment
ScriptType: v4.00+
WrapStyle: 2

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, Bold, Italic, Alignment
Style: Default,Arial,20,&H00FFFFFF,0,0,2
Style: Sign,Arial,20,&H000000FF,-1,0,8

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Comment: 0,0:00:00.00,0:00:09.00,Default,,0,0,0,,a note
Dialogue: 0,0:00:02.50,0:00:03.00,Default,Ann,0,0,0,,One, {\\i1}two{\\i0}\\Nthree\\hfour\\nfive
Dialogue: 0,0:00:01.00,0:00:02.00,Sign,,0,0,0,,{\\pos(1,2)\\fad(1,2)}EX{\\k20}IT
Dialogue: 1,0:00:01.00,0:00:02.00,Sign,,0,0,0,,{\\blur3}EXIT
Dialogue: 0,0:00:01.00,0:00:02.00,Sign,,0,0,0,,{\\p1}m 0 0 l 100 0 100 100{\\p0}
Dialogue: 0,0:00:04.00,0:00:05.00,Default,,0,0,0,,{\\an7\\i1\\c&HFF0000&}{x}sky{\\p1}m 0{\\p0}
Dialogue: 0,soon,0:00:05.00,Default,,0,0,0,,lost
"""


def test_ass() -> None:
    with pytest.warns(UserWarning, match="load_subtitles") as reported:
        found = load_subtitles(ASS)
    assert found == [
        Cue(1, 2, "EXIT", {"an": "8"}, bold=True, color="#ff0000"),
        Cue(2.5, 3, "One, two\nthree four\nfive"),
        Cue(4, 5, "sky", {"an": "7"}, italic=True, color="#0000ff"),
    ]
    assert found[1].voices == ("Ann",)
    assert found.kind == "ass"
    assert found.left_out == {
        "comments": 1, "repeated lines": 1, "drawings": 1, "malformed cues": 1,
    }  # fmt: skip
    assert [str(one.message) for one in reported] == [
        "load_subtitles: the text, line 19: '0,soon,0:00:05.00,Default,,0,0,0,,lost': it does not "
        "have two times and a text; the cue is skipped.",
        "load_subtitles: the text: 1 drawing is left out.",
    ]
    srt = load_subtitles(format_subtitles(found))
    assert srt == found


def test_ass_tags_that_start_alike() -> None:
    line = "[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,"
    tags = "{\\i1\\b700\\c&H00FF00&}{\\bord2\\be1\\blur3\\iclip(1,2,3,4)\\clip(1,2,3,4)\\pbo5}"
    assert load_subtitles(f"{line}{tags}x") == [Cue(1, 2, "x", {}, True, True, "#00ff00")]
    assert load_subtitles(f"{line}{tags}x{{\\r}}y") == [Cue(1, 2, "xy")]


HOSTILE = {
    "lines": "1\n00:00:01,000 --> 00:00:02,000\n" + "\n" * 100_000,
    "classes": "WEBVTT\n\n00:01.000 --> 00:02.000\n<c" + ".a" * 50_000,
    "overrides": "1\n00:00:01,000 --> 00:00:02,000\n{" + "\\an8" * 25_000,
    "tags": "WEBVTT\n\n00:01.000 --> 00:02.000\n" + "<rt><v " * 15_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_linear_time(name: str) -> None:
    """These took from 8 s to minutes with patterns that go back; now milliseconds."""
    assert len(load_subtitles(HOSTILE[name])) <= 1


def test_ssa_has_other_alignments() -> None:
    text = (
        "[V4 Styles]\nFormat: Name, PrimaryColour, Bold, Italic, Alignment\n"
        "Style: Top,65535,0,-1,6\n[Events]\n"
        "Format: Marked, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
        "Dialogue: Marked=0,0:00:01.00,0:00:02.00,*Top,,0,0,0,,a\n"
        "Dialogue: Marked=0,0:00:02.00,0:00:03.00,*Top,,0,0,0,,{\\a10}b\n"
    )
    assert load_subtitles(text) == [
        Cue(1, 2, "a", {"an": "8"}, italic=True, color="#ffff00"),
        Cue(2, 3, "b", {"an": "5"}, italic=True, color="#ffff00"),
    ]


def test_many_skipped_cues_are_one_warning() -> None:
    with pytest.warns(UserWarning, match="5 cues are skipped") as reported:
        found = load_subtitles("00:00 --> x\na\n\n" * 5)
    assert found == []
    assert found.left_out == {"malformed cues": 5}
    assert len(reported) == 1
    assert ": 5 cues are skipped: line 1: " in str(reported[0].message)
    assert str(reported[0].message).endswith("; and 2 more.")


LEGACY = {
    "cp1252": ("Windows-1252", "Où êtes-vous allé hier soir ? Ça ne va pas très bien."),
    "cp1250": ("Windows-1250", "Příliš žluťoučký kůň úpěl ďábelské ódy. Děkuji vám."),
    "cp1251": ("Windows-1251", "Привет! Как дела? Это наш дом."),
    "koi8-r": ("KOI8-R", "Привет! Как дела? Это наш дом."),
    "cp1253": ("Windows-1253", "Καλημέρα! Τι κάνεις; Είμαι καλά, ευχαριστώ"),
    "cp1254": ("Windows-1254", "Teşekkür ederim. Nasılsın? Şimdi değil, çok güzel."),
    "cp1255": ("Windows-1255", "שלום, מה שלומך? אני בסדר"),
    "cp1256": ("Windows-1256", "مرحبا، كيف حالك؟ أنا بخير شكرا"),
    "cp932": ("Shift_JIS", "こんにちは。元気ですか？私は大丈夫です。カメラ"),
    "gb18030": ("GB18030", "你好，你在做什么？我们走吧。他说这是他的家"),
    "big5": ("Big5", "你好，你在做什麼？我們走吧。他說這是他的家"),
    "cp949": ("EUC-KR", "안녕하세요. 어떻게 지내세요? 나는 괜찮아요"),
}


@pytest.mark.parametrize("codec", LEGACY)
def test_legacy_encodings_are_found_out(codec: str) -> None:
    label, words = LEGACY[codec]
    data = f"1\n00:00:01,000 --> 00:00:02,000\n{words}\n".encode(codec)
    with pytest.warns(UserWarning, match=f"line 3: not UTF-8; the file is read as {label}"):
        found = load_subtitles(data)
    assert (found[0].text, found.charset) == (words, label)
    assert load_subtitles(data, encoding=codec) == found


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_wide_encodings(codec: str) -> None:
    found = load_subtitles(SRT.encode(codec))
    assert found == load_subtitles(SRT)
    assert found.charset == codec[:6].upper()


def test_damaged_utf8_is_not_another_encoding() -> None:
    data = f"00:00:01,000 --> 00:00:02,000\n{'это наш дом ' * 3}".encode() + b"\xff\n"
    with pytest.warns(UserWarning, match="1 damaged character"):
        found = load_subtitles(data)
    assert found.charset == "UTF-8"
    assert found[0].text.endswith("дом \ufffd")


@pytest.mark.parametrize("encoding", ["klingon", "hex", 3])
def test_unknown_encodings_are_refused(encoding: str) -> None:
    with pytest.raises(ParameterError, match="encoding must be the name of a text encoding"):
        load_subtitles(SRT, encoding=encoding)
