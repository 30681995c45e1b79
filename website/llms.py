"""Plain text for programs that read: the Markdown of every page, and ``llms.txt``, their list."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

    from website.pages import Entry

_FENCE = re.compile(r"^```.*?^```$", re.M | re.S)


def write(site: pathlib.Path, markdown: Mapping[str, str], config: MkDocsConfig) -> None:
    """Write ``PAGE.md`` beside every ``PAGE.html``, and ``llms.txt``."""
    for path, text in markdown.items():
        target = site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text.strip() + "\n", encoding="utf-8")
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    lines += listing(config.nav, markdown)
    (site / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def listing(nav: list[Entry], markdown: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a list of all pages, by sections of the navigation."""
    for entry in nav:
        title, inner = next(iter(entry.items())) if isinstance(entry, dict) else ("", entry)
        yield from (f"## {title}", "")
        for name, path in _leaves(title, inner):
            if path in markdown:
                yield f"- [{name}]({path}): {summary(markdown[path])}"
        yield ""


def _leaves(title: str, entry: Entry) -> Iterator[tuple[str, str]]:
    if isinstance(entry, str):
        yield title, entry
    elif isinstance(entry, dict):
        for name, inner in entry.items():
            yield from _leaves(name, inner)
    else:
        for inner in entry:
            yield from _leaves(title, inner)


def summary(text: str) -> str:
    """Return the first sentence of a page.

    >>> summary("# Title\\n\\nDraw *things*. And more.")
    'Draw things.'
    """
    for block in re.split(r"\n\s*\n", _FENCE.sub("", text)):
        if block.strip() and block.lstrip()[0] not in "#<!|-[{>`:":
            plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(block.split()))
            plain = re.sub(r"[*`]", "", plain)
            return re.split(r"(?<=[.:]) ", plain)[0].rstrip(":")
    return ""
