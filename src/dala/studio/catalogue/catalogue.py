"""The catalogue: everything that the page knows before it opens a file."""

from __future__ import annotations

import dala
from dala.errors.synonyms import words_for
from dala.media.filters.declarations import declared, filter_names
from dala.media.sources.easing import EASINGS
from dala.samples import PHOTOS, VIDEOS
from dala.studio.cards.models import MODELS, missing
from dala.studio.catalogue.language import language, templates
from dala.studio.catalogue.nodes import nodes
from dala.studio.catalogue.parameters import Json, JsonObject, parameter, title_of
from dala.studio.catalogue.presets import presets
from dala.studio.home.rendering import render_options
from dala.studio.limits import StudioLimits
from dala.studio.picture.h264 import h264_works


def filters() -> list[JsonObject]:
    """Return the filters that a chain may have, from their declarations.

    >>> next(row for row in filters() if row["name"] == "blur")["category"]
    'Neighborhoods'
    """
    return [
        {
            "name": name,
            "title": title_of(name),
            "category": spec.category,
            "doc": spec.summary,
            "words": ", ".join(words_for(name)),
            "definition": spec.definition,
            "resizes": spec.resizes,
            "params": [parameter(p) for p in spec.parameters],
        }
        for name, spec in ((name, declared()[name]) for name in filter_names())
    ]


def models() -> list[JsonObject]:
    """Return the models that a chain may have, and the missing parts of each.

    >>> [row["name"] for row in models()][:2]
    ['background', 'faces']
    """
    made: list[JsonObject] = []
    for name, card in MODELS.items():
        lacks = missing(name)
        made.append({
            "name": name,
            "title": card.title,
            "category": "Models",
            "doc": card.doc,
            "params": [parameter(p) for p in card.params],
            "available": not lacks,
            "missing": lacks,
        })  # fmt: skip
    return made


def catalogue(limits: StudioLimits) -> JsonObject:
    """Return the catalogue as ``catalogue.json`` has it.

    >>> sorted(catalogue(StudioLimits()))[:3]
    ['codecs', 'easings', 'filters']
    """
    samples: list[Json] = [
        {"name": name, "kind": kind, "doc": doc}
        for kind, known in (("picture", PHOTOS), ("video", VIDEOS))
        for name, doc in known.items()
    ]
    return {
        "version": dala.__version__,
        "filters": list[Json](filters()),
        "models": list[Json](models()),
        "kernels": list[Json](templates()),
        "nodes": list[Json](nodes()),
        "language": list[Json](language()),
        "easings": list[Json](sorted(EASINGS)),
        "samples": samples,
        "presets": list[Json](presets()),
        "render": [spec.card() for spec in render_options().values()],
        "codecs": [*(["h264"] if h264_works() else []), "jpeg", "rgba"],
        "limits": {
            "upload": limits.upload,
            "message": limits.message,
            "cards": limits.cards,
            "tabs": limits.tabs,
        },
    }
