"""JSON text with some values changed: everything else stays as it was written, to the byte."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Final

from dala.media.scene.file.text import format_json
from dala.studio.catalogue.parameters import Json, JsonObject

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_SCALAR: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')


@dataclass
class _Span:
    """A value in a text: where it is, and the values inside it."""

    start: int
    end: int
    #: For an object: key, start of the key, value. For a list the key is "".
    items: list[tuple[str, int, _Span]] = field(default_factory=list)


def patched(text: str, old: Json, new: Json) -> str:
    """Return the text of a JSON document, changed where the new value differs from the old one.

    Args:
        text: the document as it was written.
        old: its contents.
        new: the contents it has to have.

    >>> patched('{"a": 1,\\n   "b": [ 1,2 ]}', {"a": 1, "b": [1, 2]}, {"a": 5, "b": [1, 2]})
    '{"a": 5,\\n   "b": [ 1,2 ]}'
    >>> patched('{"a": [1, 2]}', {"a": [1, 2]}, {"a": [1, 2, 3]})
    '{"a": [1, 2, 3]}'
    """
    try:
        span = _parse(text, _skip(text, 0))
        made = _Patch(text).value(span, old, new)
        result = text[: span.start] + made + text[span.end :]
        if json.loads(result) == new:
            return result
    except (ValueError, IndexError, RecursionError):
        pass
    assert not isinstance(new, tuple)
    return format_json(new) + "\n"  # a document that cannot be patched is written anew


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _parse(text: str, at: int) -> _Span:
    """Return the span of the value at a position, and of those inside it."""
    opening = text[at]
    if opening not in "{[":
        found = (_STRING if opening == '"' else _SCALAR).match(text, at)
        if found is None:
            raise ValueError("not a value")
        return _Span(at, found.end())
    closing = "}" if opening == "{" else "]"
    made = _Span(at, at)
    at = _skip(text, at + 1)
    while text[at] != closing:
        key, begin = "", at
        if opening == "{":
            found = _STRING.match(text, at)
            if found is None:
                raise ValueError("not a key")
            key = json.loads(found[0])
            at = _skip(text, found.end())
            if text[at] != ":":
                raise ValueError("no colon")
            at = _skip(text, at + 1)
        inner = _parse(text, at)
        made.items.append((key, begin, inner))
        at = _skip(text, inner.end)
        if text[at] == ",":
            at = _skip(text, at + 1)
        elif text[at] != closing:
            raise ValueError("no comma")
    made.end = at + 1
    return made


class _Patch:
    """Writes values, with slices of the old text where nothing changed."""

    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, span: _Span, old: Json, new: Json) -> str:
        text = self._text
        if _same(old, new):
            return text[span.start : span.end]
        if isinstance(old, dict) and isinstance(new, dict) and old and new:
            return self._object(span, old, new)
        if isinstance(old, list) and isinstance(new, list) and old and new:
            return self._list(span, old, new)
        return format_json(new, self._indent(span.start))

    def _object(self, span: _Span, old: JsonObject, new: JsonObject) -> str:
        rows: list[tuple[int | None, str]] = []
        known = {key: (begin, inner) for key, begin, inner in span.items}
        for key in _merged([k for k, _, _ in span.items if k in new], list(new)):
            if key in known and key in old:
                begin, inner = known[key]
                head = self._text[begin : inner.start]
                rows.append((begin, head + self.value(inner, old[key], new[key])))
            else:
                rows.append((None, f"{json.dumps(key)}: {self._fresh(span, new[key])}"))
        return self._joined(span, rows)

    def _list(self, span: _Span, old: list[Json], new: list[Json]) -> str:
        rows: list[tuple[int | None, str]] = []
        pairs = _aligned(old, new)
        for index, value in enumerate(new):
            found = pairs.get(index)
            if found is not None:
                _, begin, inner = span.items[found]
                rows.append((begin, self.value(inner, old[found], value)))
            else:
                rows.append((None, self._fresh(span, value)))
        return self._joined(span, rows)

    def _fresh(self, span: _Span, value: Json) -> str:
        """Return a new item, indented as the first one."""
        return format_json(value, self._indent(span.items[0][1]))

    def _joined(self, span: _Span, rows: list[tuple[int | None, str]]) -> str:
        """Join items with the spaces that the old ones had before them."""
        text = self._text
        starts = {begin: n for n, (_, begin, _) in enumerate(span.items)}
        opening = text[span.start + 1 : span.items[0][1]]
        closing = text[span.items[-1][2].end : span.end - 1]
        between = self._between(span)
        made = text[span.start] + opening
        for number, (begin, row) in enumerate(rows):
            if number:
                at, before = starts.get(begin or -1), starts.get(rows[number - 1][0] or -1)
                follows = at is not None and before == at - 1
                made += text[span.items[before or 0][2].end : begin] if follows else between
            made += row
        return made + closing + text[span.end - 1]

    def _between(self, span: _Span) -> str:
        """Return the separator of items: as between the first two, or after the bracket."""
        if len(span.items) > 1:
            return self._text[span.items[0][2].end : span.items[1][1]]
        opening = self._text[span.start + 1 : span.items[0][1]]
        return "," + (opening or " ")

    def _indent(self, at: int) -> str:
        """Return the spaces at the start of the line of a position."""
        line = self._text.rfind("\n", 0, at) + 1
        found = re.match(r"[ \t]*", self._text[line:at])
        return (found[0] if found else "") or " "


def _same(a: Json, b: Json) -> bool:
    """Return whether two values are equal, and true is not 1."""
    return json.dumps(a, sort_keys=False) == json.dumps(b, sort_keys=False)


def _merged(order: list[str], new: list[str]) -> list[str]:
    """Return the keys in the old order, with new ones after the key that they follow."""
    made = list(order)
    for number, key in enumerate(new):
        if key not in made:
            before = new[number - 1] if number else None
            made.insert(made.index(before) + 1 if before in made else len(made), key)
    return made


def _aligned(old: list[Json], new: list[Json]) -> dict[int, int]:
    """Return for each new item the old item it was made from, in order."""
    from difflib import SequenceMatcher

    a, b = [json.dumps(v) for v in old], [json.dumps(v) for v in new]
    pairs: dict[int, int] = {}
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag in ("equal", "replace"):
            pairs |= {j1 + n: i1 + n for n in range(min(i2 - i1, j2 - j1))}
    # An item that was moved keeps its text.
    free = [n for n in range(len(old)) if n not in pairs.values()]
    for number in range(len(new)):
        same = [n for n in free if a[n] == b[number]] if number not in pairs else []
        if same:
            pairs[number] = same[0]
            free.remove(same[0])
    return pairs
