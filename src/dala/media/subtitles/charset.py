"""The encoding of a subtitle file: by its byte order mark, as Unicode, or by its letters.

Files that are not Unicode do not say what they are. Each candidate encoding is judged by the text
it would give: the letters must be those of one language that uses the encoding, and each word of
one script, with its capital in front. ``encoding=`` of ``load_subtitles`` settles what cannot be
known. It is ours because a few cues must be enough: of the twelve texts of its test,
charset-normalizer 3.5 reads seven.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from typing import Final, NamedTuple

#: Byte order marks; the longer ones first, as UTF-16's is the start of UTF-32's.
_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32"),
    (codecs.BOM_UTF8, "utf-8", "UTF-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
)
#: With fewer letters beyond ASCII than these, nothing but Windows-1252 is considered.
_ENOUGH: Final = 4
#: How much of a file is judged.
_SAMPLE: Final = 1 << 16

_CYRILLIC: Final = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
_GREEK: Final = "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰ"
_HEBREW: Final = "".join(map(chr, range(0x5D0, 0x5EB)))
_ARABIC: Final = "".join(map(chr, [*range(0x621, 0x63B), *range(0x641, 0x64B)])) + "پچژگکی"
_THAI: Final = "".join(map(chr, [*range(0xE01, 0xE3B), *range(0xE40, 0xE5C)]))
_KANA: Final = "".join(map(chr, [*range(0x3041, 0x3097), *range(0x30A1, 0x30FB), 0x30FC]))
#: Frequent characters of Chinese, simplified and traditional, and of Japanese beside kana.
_SIMPLIFIED: Final = (
    "的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所去行过"
    "家十用发天如然作方成者多日都三小军二无同么经法当起与好看学进种将还分此心前面又定见只主没公从吗什谁她想走"
)
_TRADITIONAL: Final = (
    "的一是不了人我在有他這為之大來以個中上們到說國和地也子時道出而要於就下得可你年生自會那後能對著事其裡所去行過"
    "家十用發天如然作方成者多日都三小軍二無同麼經法當起與好看學進種將還分此心前面又定見只主沒公從嗎什誰她想走"
)


class _Candidate(NamedTuple):
    codec: str
    label: str
    #: The letters beyond ASCII of each language that is written in it.
    alphabets: tuple[str, ...]


_CANDIDATES: Final = (
    _Candidate(
        "cp1252", "Windows-1252",
        (
            "àâæçéèêëîïôœùûüÿ", "äöüß", "áéíñóúü", "áâãàçéêíóôõúü", "àèéìíîòóùú", "åäöé",
            "æøåéóôò", "áðéíóúýþæö", "äöåšž", "éëïóöüèáíú", "àçéèíïòóúü",
        ),
    ),
    _Candidate(
        "cp1250", "Windows-1250",
        (
            "ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "čćđšž", "ăâîşţ",
            "ëçâ",
        ),
    ),
    _Candidate("cp1254", "Windows-1254", ("çğıiöşüâîû",)),
    _Candidate("cp1257", "Windows-1257", ("ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž")),
    _Candidate(
        "cp1251", "Windows-1251",
        (_CYRILLIC + "ё", _CYRILLIC + "іїєґ", _CYRILLIC + "ђјљњћџѓѕќ"),
    ),
    _Candidate("koi8-r", "KOI8-R", (_CYRILLIC + "ё",)),
    _Candidate("cp866", "CP866", (_CYRILLIC + "ё",)),
    _Candidate("iso8859-5", "ISO-8859-5", (_CYRILLIC + "ё",)),
    _Candidate("iso8859-2", "ISO-8859-2", ("ąćęłńóśźż", "áčďéěíňóřšťúůýž")),
    _Candidate("cp1253", "Windows-1253", (_GREEK,)),
    _Candidate("cp1255", "Windows-1255", (_HEBREW,)),
    _Candidate("cp1256", "Windows-1256", (_ARABIC,)),
    _Candidate("cp874", "Windows-874", (_THAI,)),
    _Candidate("cp932", "Shift_JIS", (_KANA + _TRADITIONAL,)),
    _Candidate("euc-jp", "EUC-JP", (_KANA + _TRADITIONAL,)),
    _Candidate("gb18030", "GB18030", (_SIMPLIFIED,)),
    _Candidate("big5", "Big5", (_TRADITIONAL,)),
    _Candidate("cp949", "EUC-KR", ("",)),
)  # fmt: skip
#: Marks beyond ASCII that are usual in subtitles: they speak neither for nor against.
_USUAL: Final = frozenset(
    "“”‘’„‚«»‹›–—…·•°´`¿¡♪♫№€£©®™\u00a0\u3000、。「」『』！？（），：；～・ー"
)


def decode(data: bytes) -> tuple[str, str, int]:
    """Return the text of a file, the name of its encoding, and where it stops being Unicode.

    The last is an offset into the data, or -1 if the encoding is certain.
    """
    for mark, codec, label in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(codec, "replace"), label, -1
    if wide := _without_mark(data):
        return data.decode(wide, "replace"), wide[:6].upper(), -1
    try:
        return data.decode("utf-8"), "UTF-8", -1
    except UnicodeDecodeError as error:
        at = error.start
    if _mostly_utf8(data):
        return data.decode("utf-8", "replace"), "UTF-8", at
    found = _legacy(data)
    if found is None:
        return data.decode("latin-1"), "Latin-1", at
    return data.decode(found.codec, "replace"), found.label, at


def _without_mark(data: bytes) -> str:
    """Return the codec of UTF-16 or UTF-32 text without a mark, by where its zeros are."""
    head = data[:_SAMPLE]
    if len(head) < 8 or head.count(0) * 5 < len(head):
        return ""
    zeros = [head[offset::4].count(0) * 4 for offset in range(4)]
    size = len(head)
    if len(data) % 4 == 0 and zeros[2] > size * 0.9 and zeros[3] > size * 0.9:
        return "utf-32-le"
    if len(data) % 4 == 0 and zeros[0] > size * 0.9 and zeros[1] > size * 0.9:
        return "utf-32-be"
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if odd > 3 * even:
        return "utf-16-le"
    return "utf-16-be" if even > 3 * odd else ""


def _mostly_utf8(data: bytes) -> bool:
    """Return whether a text is UTF-8 with a few damaged bytes."""
    text = data[: _SAMPLE * 16].decode("utf-8", "replace")
    wrong = text.count("\ufffd")
    return sum(1 for c in text if c > "\x7f") - wrong > 9 * wrong


def _legacy(data: bytes) -> _Candidate | None:
    """Return the encoding whose text looks most like a language; None if none fits at all."""
    best: _Candidate | None = None
    best_score = 0.0
    head = data[:_SAMPLE]
    for candidate in _CANDIDATES:
        text = _strict(head, candidate.codec, len(data) > len(head))
        if text is None:
            continue
        score = _score(text, candidate)
        if score > best_score + 1e-9:
            best, best_score = candidate, score
    if best is not None and best_score >= 0.6:
        return best
    fallback = _CANDIDATES[0]
    return fallback if _strict(data, fallback.codec, False) is not None else None


def _strict(data: bytes, codec: str, cut: bool) -> str | None:
    """Return the text, or None if some byte does not belong to the encoding."""
    decoder = codecs.getincrementaldecoder(codec)("strict")
    try:
        return decoder.decode(data, final=not cut)
    except (UnicodeDecodeError, ValueError):
        return None


def _score(text: str, candidate: _Candidate) -> float:
    """Return how much the characters beyond ASCII look like a language: 1 is all, 0 is none."""
    letters: Counter[str] = Counter()
    odd = 0
    for char in text:
        if char <= "\x7f" or char in _USUAL:
            continue
        if char.isalpha() or "\u0e30" <= char <= "\u0e4f":  # Thai vowels and tone marks
            letters[char.lower()] += 1
        else:
            odd += 1
    total = sum(letters.values())
    if total < _ENOUGH and candidate is not _CANDIDATES[0]:
        return 0.0
    if not total:
        return 0.0 if odd else 0.7
    if candidate.codec == "cp949":
        hangul = sum(n for c, n in letters.items() if "가" <= c <= "힣")
        return hangul / (total + 2 * odd)
    share = max(sum(letters[c] for c in set(a)) for a in candidate.alphabets) / (total + 2 * odd)
    if candidate.codec in _PLANES:
        # A fifth to a half of running text are the frequent characters; of noise, hardly any. The
        # rest is from the plane of common characters, whatever the subject.
        common = sum(n for c, n in letters.items() if _is_common(c, candidate.codec))
        frequent = min(1.0, 2.5 * share)
        return max(frequent, 0.4 * frequent + 0.6 * common / total) * total / (total + 2 * odd)
    return share * _well_cased(text)


#: First bytes of the plane of common characters.
_PLANES: Final = {
    "gb18030": (0xB0, 0xD7), "big5": (0xA4, 0xC6), "cp932": (0x88, 0x97), "euc-jp": (0xB0, 0xCF),
}  # fmt: skip


def _is_common(char: str, codec: str) -> bool:
    first, last = _PLANES[codec]
    return first <= char.encode(codec, "replace")[0] <= last


_WORD: Final = re.compile(r"[^\W\d_]+")


def _well_cased(text: str) -> float:
    """Return the share of words beyond ASCII that are lower, Title or UPPER, in one script."""
    good = total = 0
    for word in _WORD.findall(text):
        beyond = [c for c in word if c > "\x7f"]
        if not beyond:
            continue
        total += 1
        cased = (
            word.islower()
            or word.isupper()
            or word[1:].islower()
            or beyond[0].lower() == beyond[0].upper()
        )
        latin = all(c < "\u0250" for c in word)
        one_script = latin or all(c >= "\u0250" for c in word)
        foreign = latin and len(word) > 3 and len(beyond) > 0.7 * len(word)
        good += cased and one_script and not foreign
    # Hebrew read as Cyrillic has words of one case only.
    beyond_ascii = [c for c in text if c > "\x7f"]
    both = any(c.isupper() for c in beyond_ascii) and any(c.islower() for c in beyond_ascii)
    cased = any(c.lower() != c.upper() for c in beyond_ascii)
    return (good / total if total else 1.0) * (0.95 if cased and not both else 1.0)
