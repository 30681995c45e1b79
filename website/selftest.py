"""The self-test in the reader's browser: exported filters, pictures and the table's checksums.

``assets/selftest.js`` runs them and shows a report. ``tests/web/test_answers.py`` runs the same
script in Chromium.
"""

from __future__ import annotations

import base64
import json
import pathlib
from typing import Any

import numpy as np

import dala.web
from dala.answers.cases import Row
from dala.answers.table import stored
from website.catalogue.live import inlined
from website.catalogue.pictures import Pictures

#: Filters and settings: one of each kind of shader, and what is used most.
SOME = (
    "invert/default",
    "contrast/max",
    "gamma/max",
    "saturation/min",
    "hue/max",
    "posterize/default",
    "grayscale/default",
    "erode/radius=2",
    "median/default",
    "blur/radius=2",
    "box_blur/default",
    "sharpen/default",
    "levels/max",
    "equalize/default",
    "flip/default",
    "pad/default",
    "resize/default",
    "warp_affine/default",
)
#: The pictures, as RGBA.
SHOWN = ("random", "photo")
#: Where the files are on the site.
FOLDER = "assets/selftest"


def add(pictures: Pictures) -> None:
    """Put the cases and the exported filters on the site."""
    for case in SOME:
        text = json.dumps([case, _row(case, SHOWN[0]).parameters()])
        kept = pictures.kept(f"selftest\0{text}", ".json", lambda case=case: chain(case))  # type: ignore[misc]
        pictures.files[f"{FOLDER}/{file_of(case)}"] = kept
    listed = json.dumps(cases())
    pictures.files[f"{FOLDER}/cases.json"] = pictures.kept(listed, ".json", listed.encode)


def write(folder: pathlib.Path) -> None:
    """Write the same into a folder, with the script and the runtime that it needs."""
    root = pathlib.Path(__file__).parents[1]
    (folder / "selftest").mkdir(parents=True)
    for case in SOME:
        (folder / "selftest" / file_of(case)).write_bytes(chain(case))
    (folder / "selftest" / "cases.json").write_text(json.dumps(cases()), encoding="utf-8")
    for path in ("website/assets/selftest.js", "src/dala/web/static/dala.js"):
        (folder / pathlib.Path(path).name).write_bytes((root / path).read_bytes())


def file_of(case: str) -> str:
    """Return the file of an exported filter.

    >>> file_of("erode/radius=2")
    'erode-radius-2.json'
    """
    return case.replace("/", "-").replace("=", "-") + ".json"


def cases() -> dict[str, Any]:
    """Return the pictures, and each case with its file and the checksums of its results."""
    return {
        "version": dala.__version__,
        "pictures": {name: _picture(name) for name in SHOWN},
        "cases": [
            {
                "name": case,
                "file": file_of(case),
                "sums": {name: stored()[_row(case, name).id] for name in SHOWN},
            }
            for case in SOME
        ],
    }


def _row(case: str, picture: str) -> Row:
    name, setting = case.split("/")
    return Row(name, setting, "rgba", picture)


def _picture(name: str) -> dict[str, Any]:
    pixels = np.ascontiguousarray(_row(SOME[0], name).source())
    height, width = pixels.shape[:2]
    return {"width": width, "height": height, "base64": base64.b64encode(pixels).decode()}


def chain(case: str) -> bytes:
    """Return an exported filter with its shaders, as JSON."""
    row = _row(case, SHOWN[0])
    folder = pathlib.Path("selftest-page")
    dala.web.export([(row.name, row.parameters())], folder)
    return json.dumps(inlined(folder), separators=(",", ":")).encode()
