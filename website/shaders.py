"""The gallery of shaders: the files of ``examples/shaders``, live."""

from __future__ import annotations

import json
import pathlib
import re
from importlib import resources

import dala.web
from dala.gpu.compute.lang.source import from_text
from dala.gpu.compute.passes.source import shader_from
from website.catalogue.live import inlined
from website.catalogue.pictures import Pictures

SHADERS = pathlib.Path(__file__).parents[1] / "examples" / "shaders"
PAGE = "shaders.md"
_PICTURE = re.compile(r"!\[([^\]]*)\]\(images/shaders/(\w+)\.webp\)")


def add(pictures: Pictures) -> None:
    """Export each shader."""
    for path in sorted(SHADERS.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        kept = pictures.kept(f"{text}\0shader", ".json", lambda text=text: exported(text))  # type: ignore[misc]
        pictures.files[f"assets/shaders/{path.stem}.json"] = kept
    photo = resources.files("dala.samples").joinpath("photos", "coffee.jpg")
    pictures.files["assets/shaders/picture.jpg"] = pathlib.Path(str(photo))


def exported(text: str) -> bytes:
    """Return the exported chain of a shader as one JSON document."""
    folder = pathlib.Path("page")
    dala.web.export(shader_from(from_text(text, "shader")), folder)
    document = inlined(folder)
    document.pop("still", None)
    return json.dumps(document, separators=(",", ":")).encode()


def prepared(markdown: str) -> str:
    """Return the Markdown of the gallery with a live canvas in the place of each still."""
    live = (
        r'<div class="live"><dala-chain src="assets/shaders/\2.json">'
        r'<img src="images/shaders/\2.webp" alt="\1"></dala-chain></div>'
    )
    script = '\n<script type="module" src="assets/dala.js"></script>\n'
    return _PICTURE.sub(live, markdown) + script
