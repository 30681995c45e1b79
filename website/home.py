"""The home page: the kernel that its first program defines, live, and a wall of the gallery."""

from __future__ import annotations

import json
import pathlib
import re

import dala.web
from dala.gpu.compute import kernel
from website.catalogue.live import inlined
from website.catalogue.pictures import Pictures

DOCS = pathlib.Path(__file__).parents[1] / "docs"
PAGE = "index.md"
#: Where the exported kernel is on the site; ``assets/home.js`` runs it.
CHAIN = "assets/silk.json"
#: Pictures of the wall: whole rows of two, three, four and six.
SHOWN = 12
#: The line of the page in whose place the wall comes.
_WALL = "[The gallery](gallery.md)"
_PICTURE = re.compile(r"!\[([^\]]*)\]\(images/gallery/(\w+)\.webp\)")


def add(pictures: Pictures) -> None:
    """Export the kernel of the page's first program."""
    text = (DOCS / PAGE).read_text(encoding="utf-8")
    source = text.partition("@kernel\n")[2].partition("\n\n")[0]
    pictures.files[CHAIN] = pictures.kept(f"{source}\0home", ".json", lambda: _exported(source))


def _exported(source: str) -> bytes:
    folder = pathlib.Path("page")
    dala.web.export(kernel(source), folder)
    document = inlined(folder)
    for unused in ("picture", "still"):
        document.pop(unused, None)
    return json.dumps(document, separators=(",", ":")).encode()


def prepared(markdown: str, meta: dict[str, object]) -> str:
    """Return the Markdown of the home page, with its wall; its ``meta`` gets the template."""
    meta |= {"template": "home.html", "hide": ["navigation", "toc"]}
    gallery = (DOCS / "gallery.md").read_text(encoding="utf-8")
    shown = (
        f'<a href="gallery.html#{name}"><img src="images/gallery/{name}.webp" alt="{alt}" '
        f'loading="lazy"><span>{name.replace("_", " ")}</span></a>'
        for alt, name in _PICTURE.findall(gallery)[:SHOWN]
    )
    return markdown.replace(_WALL, f'<div class="gallery-wall">{"".join(shown)}</div>')


def anchored(html: str) -> str:
    """Return the gallery's HTML with an anchor at each picture."""
    return re.sub(r'<img (?=[^>]*src="images/gallery/(\w+)\.webp")', r'<img id="\1" ', html)
