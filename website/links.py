"""Links of Markdown pages, in ``docs`` and out of it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping

#: A Markdown link or picture: its head up to the bracket, its path, its anchor.
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)\s#]+)((?:#[^)\s]*)?)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.M | re.S)


def _replace(text: str, lead: Callable[[re.Match[str]], str]) -> str:
    """Replace links outside of code; the text of a link may be code."""
    held: list[str] = []

    def hide(match: re.Match[str]) -> str:
        held.append(match[0])
        return f"\0{len(held) - 1}\0"

    changed = _LINK.sub(lead, _CODE.sub(hide, text))
    return re.sub("\0(\\d+)\0", lambda match: held[int(match[1])], changed)


def rewrite(text: str, page: str, repository: str, mirrored: Mapping[str, str]) -> str:
    """Return a page whose links out of ``docs`` lead to the site's copy, or to the repository.

    Args:
        text: Markdown.
        page: its path below ``docs``.
        repository: address of the repository.
        mirrored: files of the repository that are pages of the site, with those pages.

    >>> text = "[a](../SECURITY.md#b) [c](../src/x.py)"
    >>> rewrite(text, "f.md", "https://r", {"SECURITY.md": "s.md"})
    '[a](s.md#b) [c](https://r/blob/HEAD/src/x.py)'
    """
    here = posixpath.dirname(page)

    def lead(match: re.Match[str]) -> str:
        head, path, anchor = match.groups()
        if "://" in path or path.startswith(("mailto:", "/")):
            return match[0]
        target = posixpath.normpath(posixpath.join("docs", here, path))
        if target in mirrored:
            return f"{head}{posixpath.relpath(mirrored[target], here or '.')}{anchor}"
        if target.startswith("docs/"):
            return match[0]
        kind = "tree" if path.endswith("/") or "." not in posixpath.basename(path) else "blob"
        return f"{head}{repository}/{kind}/HEAD/{target}{anchor}"

    return _replace(text, lead)


def move(text: str, source: str, page: str) -> str:
    """Return a file of the repository as a page below ``docs``, with links that still lead there.

    >>> move("[a](docs/x.md) ![b](docs/i/y.png)", "README.md", "project/readme.md")
    '[a](../x.md) ![b](../i/y.png)'
    """
    here, there = posixpath.dirname(source), posixpath.join("docs", posixpath.dirname(page))

    def lead(match: re.Match[str]) -> str:
        head, path, anchor = match.groups()
        if "://" in path or path.startswith(("mailto:", "/")):
            return match[0]
        slash = "/" if path.endswith("/") else ""
        target = posixpath.normpath(posixpath.join(here, path))
        return f"{head}{posixpath.relpath(target, there)}{slash}{anchor}"

    return _replace(text, lead)
