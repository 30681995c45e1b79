"""The contents of an exported page: the chain of a tab, or the effects of its scene."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple

from dala.errors import ParameterError
from dala.media.filters.plans import Filter
from dala.studio.cards.values import LoadedFiles, checked, link_of
from dala.studio.catalogue.parameters import Json
from dala.studio.document.tab import Tab
from dala.studio.scenes.source import SceneFile
from dala.studio.scenes.tree import find, to_load
from dala.typing import NDArray


class PageChain(NamedTuple):
    """Filters for a page, notes on their differences there, and the picture it begins with."""

    filters: Sequence[Filter]
    notes: Sequence[str] = ()
    #: None for the picture before the chain.
    picture: NDArray | None = None


def page_chain(tab: Tab, node: Json, files: LoadedFiles, device: str) -> PageChain:
    """Return the chain of a tab; for a node, or without a chain, the effects of its scene.

    Raises:
        ParameterError: there is nothing to export, or it cannot be on a page.
    """
    cards = [card for card in tab.contents.cards if card.on]
    if isinstance(tab.source, SceneFile) and (node is not None or not cards):
        return _effects(tab.source, node, device)
    if node is not None:
        raise ParameterError.invalid("export", "node", "null, as the tab has no scene", node)
    if not cards:
        raise ParameterError("export: the chain is empty. Add a filter first.")
    for card in cards:
        if card.kind == "model":
            raise ParameterError(f"export: models are not part of exported pages: {card.title}.")
    return PageChain([link_of(card, checked(card, files)) for card in cards])


def _effects(source: SceneFile, node: Json, device: str) -> PageChain:
    from dala.web.scenes import scene_effects, scene_picture

    id = None
    if node is not None:
        find(source.document, node, "export")
        id = to_load(source.document)[1].get(str(node))
        if id is None:
            raise ParameterError("export: effects inside an inner scene cannot be exported alone.")
    with closing(source.made(device)[0]) as scene:
        found = scene_effects(scene, id, "export")
        return PageChain(found.filters, found.notes, scene_picture(scene, found.effects))
