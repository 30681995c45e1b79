"""Check a built site, page by page: ``python -m website.crawl build/site``.

Every link and anchor leads somewhere, nothing is loaded from elsewhere, pictures have a text, lists
are lists, pages are light, and every page has its Markdown beside it.
"""

from __future__ import annotations

import gzip
import pathlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

#: Bytes of a page with its styles and scripts, as a server sends them (gzip), without pictures.
MOST_OF_A_PAGE = 200_000
#: Bytes of the whole site.
MOST = 40_000_000
#: Elements that load what they name, with the attribute that does.
_LOADS = {
    "script": "src",
    "dala-chain": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
}
#: Kinds of ``<link>`` that load a file.
_LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "manifest"}
#: Code in a cell of a table where a pipe kept its backslash.
_PIPE = re.compile(r"<code>[^<]*\\\|[^<]*</code>")
#: A line of a paragraph that looks like an item of a list: its indentation in the source is wrong.
_ITEM = re.compile(r"^(?:\d+\.|[-*]) .*", re.M)


@dataclass
class Page(HTMLParser):
    """What a page names: its anchors, links and what it loads."""

    ids: Counter[str] = field(default_factory=Counter)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    #: Styles, scripts and exported chains, which count for the weight of the page.
    code: list[str] = field(default_factory=list)
    without_text: list[str] = field(default_factory=list)
    #: Lines of paragraphs that were meant as items of a list.
    lost_items: list[str] = field(default_factory=list)
    title: str = ""
    #: The address at which the page is published.
    canonical: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self._in_title = False
        self._paragraph: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element names."""
        given = dict(attrs)
        if given.get("id"):
            self.ids[given["id"]] += 1
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag == "title":
            self._in_title = True
        if tag == "p":
            self._paragraph = ""
        if tag == "img" and "alt" not in given:
            self.without_text.append(given.get("src", ""))
        if tag == "link" and given.get("rel") == "canonical":
            self.canonical = given.get("href") or ""
        if tag == "link" and _LOADED_LINKS & set((given.get("rel") or "").split()):
            self.loads.append(given["href"])
            if "stylesheet" in given["rel"]:
                self.code.append(given["href"])
        for name in (_LOADS.get(tag, ""), "poster"):
            if given.get(name):
                self.loads.append(given[name])
                if tag in ("script", "dala-chain"):
                    self.code.append(given[name])
        if given.get("srcset"):
            self.loads += [part.split()[0] for part in given["srcset"].split(",")]

    def handle_endtag(self, tag: str) -> None:
        """Leave the title, or a paragraph."""
        if tag == "title":
            self._in_title = False
        if tag == "p" and self._paragraph is not None:
            self.lost_items += _ITEM.findall(self._paragraph)
            self._paragraph = None

    def handle_data(self, data: str) -> None:
        """Keep the text of the title and of paragraphs."""
        if self._in_title:
            self.title += data.strip()
        if self._paragraph is not None:
            self._paragraph += data


@cache
def read(path: pathlib.Path) -> Page:
    """Return a parsed page."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


@cache
def sent(path: pathlib.Path) -> int:
    """Return the bytes of a file as a server sends it."""
    return len(gzip.compress(path.read_bytes(), 6))


def weight(site: pathlib.Path, path: pathlib.Path) -> int:
    """Return the bytes of a page with its styles and scripts."""
    files = {path}
    for name in read(path).code:
        target = (path.parent / unquote(urlsplit(name).path)).resolve()
        if target.is_file():
            files.add(target)
    return sum(sent(file) for file in files)


def problems(site: pathlib.Path) -> Iterator[str]:
    """Yield what is wrong with a site, as text."""
    site = site.resolve()
    paths = sorted(site.rglob("*.html"))
    if not paths:
        yield f"{site}: no pages"
        return
    for path in paths:
        name = path.relative_to(site).as_posix()
        for problem in _page(site, path):
            yield f"{name}: {problem}"
    for path in sorted(site.rglob("*.css")):
        for address in re.findall(
            r"(?:url\(|@import )[\"']?(https?:[^\"')]+)", path.read_text("utf-8")
        ):
            yield f"{path.relative_to(site)}: loads {address}"
    total = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    if total > MOST:
        yield f"the site has {total:,} bytes, more than {MOST:,}"
    yield from _plain(site, paths)


def _page(site: pathlib.Path, path: pathlib.Path) -> Iterator[str]:
    page = read(path)
    if not page.title:
        yield "no title"
    for anchor, count in page.ids.items():
        if count > 1:
            yield f"id {anchor!r} is there {count} times"
    for picture in page.without_text:
        yield f"picture without alternative text: {picture}"
    for code in _PIPE.findall(path.read_text(encoding="utf-8")):
        yield f"a backslash before a pipe is shown: {code}"
    for line in page.lost_items:
        yield f"an item of a list is text: {line}"
    for name in page.loads:
        if urlsplit(name).scheme in ("http", "https") or name.startswith("//"):
            yield f"loads {name}"
        elif not name.startswith("data:") and _target(site, path, name) is None:
            yield f"nothing at {name}"
    for name in page.links:
        parts = urlsplit(name)
        if parts.scheme or name.startswith("//"):
            continue
        target = _target(site, path, name)
        if target is None:
            yield f"a link leads nowhere: {name}"
        elif parts.fragment and target.suffix == ".html":
            anchor = unquote(parts.fragment)
            if anchor not in read(target).ids and not anchor.startswith("__"):
                yield f"no anchor {name}"
    heavy = weight(site, path)
    if heavy > MOST_OF_A_PAGE:
        yield f"{heavy:,} bytes with its code, more than {MOST_OF_A_PAGE:,}"


@cache
def _prefix(site: pathlib.Path) -> str:
    """Return the path at which a site is published, from the address of its first page."""
    index = site / "index.html"
    found = read(index).canonical if index.is_file() else ""
    return urlsplit(found).path.removesuffix("index.html") or "/"


def _target(site: pathlib.Path, path: pathlib.Path, name: str) -> pathlib.Path | None:
    """Return the file that a relative address names, or None."""
    parts = unquote(urlsplit(name).path)
    if parts.startswith("/"):  # only the page for addresses that do not exist has these
        parts = "/" + parts.removeprefix(_prefix(site))
    base = site if parts.startswith("/") else path.parent
    target = (base / parts.lstrip("/")).resolve() if parts else path
    if target.is_dir():
        target /= "index.html"
    return target if target.is_file() and target.is_relative_to(site) else None


def _plain(site: pathlib.Path, paths: list[pathlib.Path]) -> Iterator[str]:
    """Check the Markdown beside the pages, and its list."""
    listed = site / "llms.txt"
    if not listed.is_file():
        yield "no llms.txt"
        return
    named = set(re.findall(r"\]\(([^)]+)\)", listed.read_text(encoding="utf-8")))
    for path in paths:
        name = path.relative_to(site).with_suffix(".md").as_posix()
        if name == "404.md":
            continue
        if not (site / name).is_file():
            yield f"{name}: no Markdown beside the page"
        if name not in named:
            yield f"{name}: not in llms.txt"
    for name in sorted(named):
        if not (site / name).is_file():
            yield f"llms.txt: nothing at {name}"


def main(arguments: list[str]) -> int:
    """Print the problems of a site, and what it has."""
    site = pathlib.Path(arguments[0] if arguments else "build/site")
    found = list(problems(site))
    for problem in found:
        print(problem)
    site = site.resolve()
    paths = sorted(site.rglob("*.html"))
    if paths:
        heaviest = max(paths, key=lambda path: weight(site, path))
        total = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
        print(
            f"{len(paths)} pages, {total / 1e6:.1f} MB; the heaviest is "
            f"{heaviest.relative_to(site)} with {weight(site, heaviest) / 1e3:.0f} KB; "
            f"{len(found)} problems"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
