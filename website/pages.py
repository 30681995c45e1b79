"""The pages that are generated: the reference, the catalogue, files of the project."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from website import catalogue, links, reference
from website.catalogue.pictures import Pictures

ROOT = pathlib.Path(__file__).parents[1]

#: Files of the repository that are pages of the site.
MIRRORED = {
    "CHANGELOG.md": "project/changelog.md",
    "CODE_OF_CONDUCT.md": "project/conduct.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "benchmarks/README.md": "project/speed.md",
    "README.md": "index.md",
}

#: An entry of the navigation, as YAML has it.
Entry: TypeAlias = "str | dict[str, Entry] | list[Entry]"


@dataclass
class Generated:
    """A generated page."""

    text: str
    #: Its entry in the navigation.
    title: str
    #: The file of the repository that it shows, if it is one.
    source: str = ""


def generate(pictures: Pictures) -> dict[str, Generated]:
    """Return every generated page by its path below ``docs``, in the order of the navigation.

    Args:
        pictures: gets the pictures of the catalogue.
    """
    found: dict[str, Generated] = {}
    for source, page in MIRRORED.items():
        if page != "index.md":
            text = (ROOT / source).read_text(encoding="utf-8")
            found[page] = Generated(links.move(text, source, page), "", source)
    for path, (title, text) in (catalogue.pages(pictures) | reference.pages()).items():
        found[path] = Generated(text, title)
    return found


def navigation(nav: list[Entry], generated: Mapping[str, Generated]) -> list[Entry]:
    """Return the navigation with pages in the place of folders, which end with a slash."""

    def fill(entry: Entry) -> Entry:
        if isinstance(entry, dict):
            return {title: fill(inner) for title, inner in entry.items()}
        if isinstance(entry, list):
            return [fill(inner) for inner in entry]
        return tree(entry, generated) if entry.endswith("/") else entry

    return [fill(entry) for entry in nav]


def complete(nav: list[Entry], docs: pathlib.Path) -> list[Entry]:
    """Return the navigation with every page of ``docs``: those it does not name follow the guides.

    Pages of ``docs/design`` follow those in "Design".
    """
    named = set(_leaves(nav))
    for path in sorted(docs.rglob("*.md")):
        name = path.relative_to(docs).as_posix()
        if name not in named:
            _section(nav, "Design" if name.startswith("design/") else "Guides").append(name)
    return nav


def _leaves(entry: Entry) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for inner in entry.values() if isinstance(entry, dict) else entry:
            yield from _leaves(inner)


def _section(entry: Entry, title: str) -> list[Entry] | None:
    """Return the list of entries under a title."""
    if isinstance(entry, dict):
        for name, inner in entry.items():
            if name == title and isinstance(inner, list):
                return inner
    for inner in entry.values() if isinstance(entry, dict) else entry:
        if not isinstance(inner, str) and (found := _section(inner, title)) is not None:
            return found
    return None


def tree(folder: str, generated: Mapping[str, Generated]) -> list[Entry]:
    """Return the entries of a folder: its pages, and the folders in it as sections.

    >>> pages = {"a/index.md": Generated("", "All"), "a/b/index.md": Generated("", "b"),
    ...          "a/b/c.md": Generated("", "c")}
    >>> tree("a/", pages)
    [{'All': 'a/index.md'}, {'b': [{'b': 'a/b/index.md'}, {'c': 'a/b/c.md'}]}]
    """
    entries: list[Entry] = []
    inner: list[str] = []
    for path, page in generated.items():
        if not path.startswith(folder):
            continue
        rest = path[len(folder) :]
        below, slash, _ = rest.partition("/")
        if not slash:
            entries.append({page.title: path})
        elif below not in inner:
            inner.append(below)
            section = f"{folder}{below}/"
            index = generated.get(f"{section}index.md")
            entries.append({index.title if index else below: tree(section, generated)})
    return entries
