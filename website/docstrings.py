"""Docstrings as Markdown: sections become tables, examples become code blocks."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

#: Sections whose items are ``name: description``.
_LISTED = ("Args", "Raises", "Warns", "Attributes")
_SECTION = re.compile(r"^(Args|Raises|Warns|Attributes|Returns|Yields|Examples?)(::?)\s*$")
_ITEM = re.compile(r"^(\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*)(?: \(([^)]*)\))?: ?(.*)", re.S)
#: Code in prose, which may run over lines.
_LITERAL = re.compile(r"(?<!`)``(?!`)[^`]+``(?!`)")
_ROLE = re.compile(r":(?:func|class|meth|mod|data|attr|exc|ref):`~?([\w.]+)`")


@dataclass
class Docstring:
    """The parts of a docstring, as Markdown."""

    summary: str = ""
    #: What follows the summary: prose and examples.
    body: str = ""
    #: Items of the sections, by section and name: description.
    items: dict[str, dict[str, str]] = field(default_factory=dict)
    returns: str = ""
    yields: str = ""


def parse(text: str | None, link: Callable[[str], str] = lambda name: f"`{name}`") -> Docstring:
    """Return a docstring's parts.

    Args:
        text: the docstring.
        link: makes Markdown of a name that the docstring refers to.

    >>> found = parse("Add.\\n\\nArgs:\\n    a (pixels): the first.\\n\\n>>> add(1)\\n2")
    >>> found.summary, found.items, found.body
    ('Add.', {'Args': {'a': 'pixels; the first.'}}, '```pycon\\n>>> add(1)\\n2\\n```')
    """
    lines = inspect.cleandoc(text or "").splitlines()
    found, prose = Docstring(), []
    index = 0
    while index < len(lines):
        head = _SECTION.match(lines[index])
        if head is None:
            prose.append(lines[index])
            index += 1
            continue
        held, index = _indented(lines, index + 1)
        if head[2] == "::":
            prose += ["", "```python", *held, "```", ""]
        elif head[1] in _LISTED:
            found.items[head[1]] = dict(_listed(held, link))
        elif head[1] == "Returns":
            found.returns = inline(" ".join(held), link)
        elif head[1] == "Yields":
            found.yields = inline(" ".join(held), link)
        else:
            prose += ["", *held]
    summary, _, rest = "\n".join(prose).strip().partition("\n\n")
    if summary.startswith(">>>"):
        summary, rest = "", "\n".join(prose).strip()
    found.summary = inline(" ".join(summary.split()), link)
    found.body = _blocks(rest, link)
    return found


def _indented(lines: list[str], index: int) -> tuple[list[str], int]:
    """Return the indented lines from an index on, and the index after them."""
    end = index
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" ")):
        end += 1
    return textwrap.dedent("\n".join(lines[index:end])).strip("\n").splitlines(), end


def _listed(lines: list[str], link: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Yield the items of a section: a line that is not indented begins one."""
    items: list[list[str]] = []
    for line in lines:
        if line.strip() and not line.startswith(" "):
            items.append([line])
        elif items and line.strip():
            items[-1].append(line.strip())
    for item in items:
        match = _ITEM.match(" ".join(item))
        if match is None:
            yield "", inline(" ".join(item), link)
        else:
            text = "; ".join(filter(None, (match[2], match[3])))
            yield match[1], inline(text, link)


def inline(text: str, link: Callable[[str], str] = lambda name: f"`{name}`") -> str:
    """Return text with Markdown's code and links instead of reStructuredText's.

    >>> inline("``x`` of :class:`a.B`")
    '`x` of `a.B`'
    """
    text = _ROLE.sub(lambda match: link(match[1]), text)
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def _blocks(text: str, link: Callable[[str], str]) -> str:
    """Return paragraphs as Markdown: doctests and literal blocks become fenced code."""
    done: list[str] = []
    text = _LITERAL.sub(lambda match: re.sub(r"\s*\n\s*", " ", match[0]), text)
    lines = text.splitlines()
    index, session = 0, False
    while index < len(lines):
        line = lines[index]
        if line.startswith("```"):
            session = False
            end = lines.index("```", index + 1)
            done += lines[index : end + 1]
            index = end + 1
        elif line.lstrip().startswith(">>>"):
            end = index
            while end < len(lines) and lines[end].strip():
                end += 1
            code = textwrap.dedent("\n".join(lines[index:end])).splitlines()
            if session and done[-1:] == [""]:  # doctests in a row are one session
                done[-2:] = ["", *code, "```"]
            else:
                done += ["```pycon", *code, "```"]
            session = True
            index = end
        elif line.rstrip().endswith("::"):
            session = False
            held, end = _indented(lines, index + 1)
            words = line.rstrip()[:-1]
            done += [inline(words, link), "", "```python", *held, "```", ""]
            index = end
        else:
            session = session and not line.strip()
            done.append(inline(line, link))
            index += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(done)).strip()


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Return the lines of a Markdown table.

    >>> table(("a", "b"), [("1", "x | y")])
    ['| a | b |', '|---|---|', '| 1 | x \\\\| y |', '']
    """
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for row in rows:
        cells = (_cell(" ".join(cell.split())) for cell in row)
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _cell(text: str) -> str:
    """Return the text of a cell without pipes that would end it.

    In code a backslash would be shown, so code with a pipe becomes HTML.
    """

    def code(match: re.Match[str]) -> str:
        if "|" not in match[1]:
            return match[0]
        return "<code>" + re.sub(r"[|*_<>&\[\]]", lambda c: f"&#{ord(c[0])};", match[1]) + "</code>"

    text = re.sub(r"`([^`]+)`", code, text)
    return re.sub(r"(?<!\\)\|", r"\\|", text)


def sections(found: Docstring, types: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the lines of a function's tables: arguments, results, errors.

    Args:
        found: its docstring.
        types: for each argument, its type as Markdown and its default as text.
    """
    lines: list[str] = []
    described = found.items.get("Args", {})
    if types:
        rows = []
        spread = {
            name.strip(" *"): text for key, text in described.items() for name in key.split(",")
        }
        for name, (kind, default) in types.items():
            rows.append(
                (
                    f"`{name}`",
                    kind,
                    f"`{default}`" if default else "",
                    spread.get(name.strip("*"), ""),
                )
            )
        lines += table(("argument", "type", "default", ""), rows)
    if found.returns:
        lines += [f"**Returns**: {found.returns}", ""]
    if found.yields:
        lines += [f"**Yields**: {found.yields}", ""]
    for section in ("Raises", "Warns"):
        if section in found.items:
            lines += table((section.lower(), ""), list(found.items[section].items()))
    return lines
