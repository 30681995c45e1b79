"""Looks to begin with: chains of built-in filters, as data."""

from __future__ import annotations

from typing import Final

from dala.studio.catalogue.parameters import JsonObject, title_of

#: The version of presets. Version 1 had sizes as [height, width].
VERSION: Final = 2


def _look(doc: str, **chain: JsonObject) -> tuple[str, dict[str, JsonObject]]:
    """Return a look's description and chain: the parameters of each filter by name, in order."""
    return doc, chain


PRESETS: Final = {
    "golden-hour": _look(
        "Warm light, deeper colors and dark corners.",
        temperature={"value": 0.3, "tint": -0.04},
        contrast={"value": 0.08},
        saturation={"value": 0.15},
        vignette={"amount": 0.35, "radius": 0.85},
    ),
    "teal-and-orange": _look(
        "Cold shadows and warm lights, as in films.",
        grade={"lift": [-0.03, 0.015, 0.05], "gain": [1.08, 1.0, 0.9], "saturation": 0.1},
        contrast={"value": 0.1},
    ),
    "faded-film": _look(
        "Soft contrast, raised blacks and fine grain.",
        curves={"master": [[0, 0.09], [0.25, 0.28], [0.75, 0.76], [1, 0.93]]},
        saturation={"value": -0.25},
        temperature={"value": 0.08, "tint": 0.03},
        grain={"amount": 0.025, "size": 1.5},
    ),
    "noir": _look(
        "Black and white with hard light, dark corners and grain.",
        grayscale={},
        curves={"master": [[0, 0], [0.3, 0.18], [0.7, 0.8], [1, 1]]},
        vignette={"amount": 0.75, "radius": 0.7},
        grain={"amount": 0.035, "size": 1.5},
    ),
    "old-photograph": _look(
        "Brown tones on paper that has yellowed.",
        sepia={"amount": 0.75},
        levels={"out_black": 0.07, "out_white": 0.95},
        vignette={"amount": 0.5, "radius": 0.7},
        grain={"amount": 0.03, "size": 2.0},
    ),
    "portrait": _look(
        "Smoother skin, a little warmth and clear eyes.",
        beauty={"amount": 0.6, "radius": 4},
        temperature={"value": 0.08},
        unsharp_mask={"radius": 1.2, "amount": 0.4, "threshold": 0.02},
        vignette={"amount": 0.25, "radius": 0.85},
    ),
    "comic": _look(
        "Flat areas of strong color.",
        bilateral={"radius": 5, "sigma_color": 0.15, "sigma_space": 4.0},
        posterize={"levels": 12},
        saturation={"value": 0.3},
        sharpen={"amount": 0.8},
    ),
    "video-tape": _look(
        "Colors that miss their edges, and noise.",
        chromatic_aberration={"amount": 4.0},
        saturation={"value": -0.15},
        levels={"out_black": 0.05, "out_white": 0.96},
        grain={"amount": 0.03, "size": 2.0, "colored": True},
    ),
}


def presets() -> list[JsonObject]:
    """Return the looks as the catalogue lists them; each value is a preset as files have it.

    >>> presets()[0]["title"]
    'Golden hour'
    """
    return [
        {
            "name": name,
            "title": title_of(name.replace("-", "_")),
            "doc": doc,
            "value": {"dala": VERSION, "chain": [_step(*step) for step in chain.items()]},
        }
        for name, (doc, chain) in PRESETS.items()
    ]


def _step(name: str, params: JsonObject) -> JsonObject:
    return {"filter": name, "params": params} if params else {"filter": name}
