"""Filters that run in the reader's browser: chains that ``dala.web`` exports, one file each."""

from __future__ import annotations

import base64
import json
import os
import pathlib
from typing import Any

import dala.web
from dala.errors import DalaError
from dala.gpu.compute.kernels.filter import FilterSpec
from dala.media import gpu
from website.catalogue.pictures import Pictures, run
from website.catalogue.programs import program

#: Ranges of sliders where each value needs a shader of its own, so that pages stay light.
_SLIDERS = {
    "blur": {"radius": (0, 16)},
    "box_blur": {"radius": (0, 16)},
    "canny": {"sigma": (0.0, 2.0)},
    "gaussian_blur": {"sigma": (0.5, 6.0)},
    "morphology": {"radius": (0, 3)},
    "pixelate": {"block": (4, 12)},
    "unsharp_mask": {"radius": (1, 4)},
}
#: The variable that says which filters get a canvas: "all", or names with commas between.
VARIABLE = "DALA_SITE_LIVE"


def element(spec: FilterSpec, before: str, pictures: Pictures) -> list[str]:
    """Return the lines of a filter's live canvas; none if it cannot run in a page.

    Args:
        spec: the filter.
        before: the name of the picture that its program filters.
        pictures: gets the exported chain.
    """
    chosen = os.environ.get(VARIABLE, "all")
    if spec.kind == "conversion" or (chosen != "all" and spec.name not in chosen.split(",")):
        return []
    code = program(spec)
    key = f"{pathlib.Path(__file__).read_text(encoding='utf-8')}\0{code}\0{before}"
    kept = pictures.kept(key, ".json", lambda: _exported(spec, code, before))
    document = json.loads(kept.read_text(encoding="utf-8"))
    if "refused" in document:
        return [
            "## In your browser",
            "",
            f"This filter does not run in a page: {document['refused']}",
            "",
        ]
    pictures.files[f"catalogue/filters/live/{spec.name}.json"] = kept
    return [
        "## In your browser",
        "",
        "This canvas runs the filter on your GPU, through WebGPU. Nothing is sent anywhere: open a picture of yours, or your camera. [Where WebGPU is off](../../web.md#where-webgpu-is-off), it is a still.",
        "",
        '<div class="live">',
        f'<dala-chain src="live/{spec.name}.json"><img src="{spec.name}.webp" alt="The picture after {spec.name}"></dala-chain>',
        '<script type="module" src="../../assets/dala.js"></script>',
        "</div>",
        "",
        *(f"- {note[0].upper()}{note[1:]}." for note in document["notes"]),
        "",
        f"A page of your own: `dala export {_option(spec)} -o page/`.",
        "",
    ]


def _option(spec: FilterSpec) -> str:
    from website.catalogue.programs import command

    return command(spec)


def chain(spec: FilterSpec, names: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a filter's example, with the inputs that its program made."""
    given = {"map": "coordinates", "picture": "badge"}
    params = {
        p.name: names[given.get(p.name, p.name)]
        for p in spec.parameters
        if p.is_input and p.name != "lut" and given.get(p.name, p.name) in names
    }
    if spec.name == "remap":
        return params
    return params | eval(f"dict({spec.example})", {"dict": dict})


def _exported(spec: FilterSpec, code: str, before: str) -> bytes:
    """Return the document of a filter with its shaders, or why there is none, as JSON."""
    small = any(p.required and p.type in ("picture", "map") for p in spec.parameters)
    if small:  # the other picture, or the map, is part of the page
        code = code.replace("600, 400)", "240, 160)").replace("[:400, :600]", "[:160, :240]")
    names = run(code.partition("result = ")[0], spec.name)
    if small:
        names["picture"] = gpu.resize(names["picture"], 240, 160)
    folder = pathlib.Path("page")
    try:
        dala.web.export(
            [(spec.name, chain(spec, names))],
            folder,
            picture=names["picture"],
            sliders=_SLIDERS.get(spec.name),
        )
    except DalaError as error:
        return json.dumps({"refused": str(error).removeprefix("export_web: ")}).encode()
    document = inlined(folder)
    document["picture"] = f"../{before}.webp"
    document["still"] = f"../{spec.name}.webp"
    return json.dumps(document, separators=(",", ":")).encode()


def inlined(folder: pathlib.Path) -> dict[str, Any]:
    """Return the document of an exported chain with its shaders and data in it."""
    document: dict[str, Any] = json.loads((folder / "chain.json").read_text(encoding="utf-8"))
    document["shaders"] = [
        {"text": (folder / part["file"]).read_text(encoding="utf-8")} if "file" in part else part
        for part in document["shaders"]
    ]
    document["data"] = [
        {"base64": base64.b64encode((folder / part["file"]).read_bytes()).decode()}
        if "file" in part
        else part
        for part in document["data"]
    ]
    return document
