"""Effects of scenes as chains of filters, for pages that apply them to the visitor's pictures."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from dala.errors import ParameterError, did_you_mean
from dala.media.filters.plans import Filter
from dala.media.scene.file.load import load_scene
from dala.media.scene.nodes.effect import EffectNode, filter_parameters
from dala.media.scene.nodes.group import GroupNode
from dala.media.scene.nodes.node import Node
from dala.media.scene.scene import Scene
from dala.typing import ImageLike, NDArray, PathLike

#: Properties of an effect that a page does not have, and what they are called.
_NOT_ON_PAGES: Final = {
    "opacity": "an opacity",
    "blend": "a blend mode",
    "border_width": "a border",
    "corner_radius": "round corners",
}
#: Those that give an effect over everything a box of its own.
_BOX: Final = ("x", "y", "width", "height")
#: Those that set two of a box, and are animated as one.
_PAIRS: Final = ("position", "size")
_WHOLE: Final = "the whole scene"


@dataclass(frozen=True)
class SceneEffects:
    """Effects of a scene as a chain, and their differences on a page."""

    effects: Sequence[EffectNode]
    filters: list[Filter]
    notes: list[str] = field(default_factory=list)


def is_scene_file(path: PathLike) -> bool:
    """Return whether a file is a scene, by its contents; False if it cannot be read.

    >>> is_scene_file("missing.json")
    False
    """
    try:
        found = json.loads(Path(os.fspath(path)).read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, RecursionError):
        return False
    return isinstance(found, dict) and isinstance(found.get("nodes"), list)


def scene_effects(given: Scene | EffectNode, node: str | None, call: str) -> SceneEffects:
    """Return the effects of a scene that make one chain: those of a node, or the only ones.

    Args:
        given: the scene, or one effect of it.
        node: the id of an effect, or of a node with effects; by default the scene must have
            effects in one place only.
        call: the call for messages.

    Raises:
        ParameterError: there are none or several chains, or an effect cannot be on a page.
    """
    if isinstance(given, EffectNode):
        if node is not None:
            raise ParameterError.invalid(call, "node", "None, as an effect was given", node)
        return _chain([given], [], call)
    owners = _owners(given)
    if node is not None:
        return _named(given, owners, node, call)
    if not owners:
        raise ParameterError(
            f"{call}: the scene has no effects. Pages show effects, not the other nodes of scenes.",
        )
    if len(owners) > 1:
        listed = "; ".join(
            f"{_WHOLE if owner is given.container() else repr(owner.id)} "
            f"({', '.join(e.name for e in effects)})"
            for owner, effects in owners.items()
        )
        example = next(o.id for o in owners if o is not given.container())
        raise ParameterError(
            f"{call}: the scene has effects in several places: {listed}. Choose with the id of a "
            f"node or of one effect, such as {example!r}.",
            argument="node",
        )
    ((owner, effects),) = owners.items()
    return _chain(effects, _above(owner, effects), call)


def scene_picture(scene: Scene, effects: Sequence[EffectNode]) -> NDArray:
    """Return a scene without some of its effects, in the middle of its time."""
    for effect in effects:
        effect.visible = False
    return np.array(scene.render((scene.duration or 0) / 2))


def read_effects(
    path: PathLike, node: str | None, call: str, device: str | None, shown: bool
) -> tuple[SceneEffects, ImageLike | None]:
    """Return the effects of a scene file, and if ``shown`` its picture without them.

    Raises:
        SceneFileError: the file has mistakes.
        ParameterError: there are none or several chains, or an effect cannot be on a page.
    """
    with load_scene(path, device) as scene:
        found = scene_effects(scene, node, call)
        return found, scene_picture(scene, found.effects) if shown else None


def _owners(scene: Scene) -> dict[Node, list[EffectNode]]:
    """Return the nodes with effects, and the effects in the order in which they are applied.

    Effects without an input belong to their group, or to the scene.
    """
    found: dict[Node, list[EffectNode]] = {}
    for node in scene.nodes.values():
        if isinstance(node, EffectNode):
            found.setdefault(node.input or node.parent or scene.container(), [])
    for owner in found:
        inside = _drawn(owner) if isinstance(owner, GroupNode) else []
        own = [e for e in inside if isinstance(e, EffectNode) and e.input is None]
        found[owner] = own + [
            e for e in scene.nodes.values() if isinstance(e, EffectNode) and e.input is owner
        ]
    return found


def _drawn(group: GroupNode) -> list[Node]:
    return sorted(group.children, key=lambda node: node.z_index)


def _above(owner: Node, effects: Sequence[EffectNode]) -> list[str]:
    """Return the ids of nodes drawn over the first effect: it does not filter them."""
    nodes = _drawn(owner) if isinstance(owner, GroupNode) else []
    if not effects or effects[0] not in nodes:
        return []
    rest = nodes[nodes.index(effects[0]) + 1 :]
    return [node.id for node in rest if not isinstance(node, EffectNode)]


def _named(scene: Scene, owners: dict[Node, list[EffectNode]], id: str, call: str) -> SceneEffects:
    nodes = scene.nodes
    if id not in nodes:
        hint = did_you_mean(id, nodes) or f"It has: {', '.join(nodes) or 'none'}."
        raise ParameterError.invalid(call, "node", "the id of a node of the scene", id, hint)
    node = nodes[id]
    if isinstance(node, EffectNode):
        return _chain([node], [], call)
    effects = owners.get(node, [])
    if not effects:
        having = ", ".join(o.id for o in owners if o is not scene.container()) or "none"
        raise ParameterError.invalid(
            call, "node", "an effect, or a node with effects", id, f"Nodes with effects: {having}."
        )
    return _chain(effects, _above(node, effects), call)


def _chain(effects: Sequence[EffectNode], above: Sequence[str], call: str) -> SceneEffects:
    notes = [f"{e.id!r} is not visible, and left out" for e in effects if not e.visible]
    shown = [effect for effect in effects if effect.visible]
    if not shown:
        raise ParameterError(f"{call}: no effect is visible.")
    for effect in shown:
        _refuse(effect, call)
        if effect.start is not None or effect.end is not None:
            notes.append(f"{effect.id!r} has a start or an end in the scene, and none here")
        for name in filter_parameters(effect.filter):
            if effect.scene.animator.animates(effect, name):
                notes.append(f"{name} of {effect.id!r} is animated in the scene, and not here")
    if above:
        listed = ", ".join(map(repr, above))
        notes.append(f"drawn over the first effect, and not part of the page: {listed}")
    filters: list[Filter] = [(effect.filter, dict(effect.params)) for effect in shown]
    return SceneEffects(shown, filters, notes)


def _refuse(effect: EffectNode, call: str) -> None:
    """Raise for properties that pages do not have."""
    state = effect.saved_state()  # a parameter may have the name of a property
    parameters = filter_parameters(effect.filter)

    def moves(name: str) -> bool:
        return name not in parameters and effect.scene.animator.animates(effect, name)

    for name, what in _NOT_ON_PAGES.items():
        value = state.get(name)
        if moves(name) or (name in state and value != effect.PROPERTIES[name].default):
            found = "animated" if moves(name) else f"{name}={value!r}"
            raise ParameterError(
                f"{call}: the effect {effect.id!r} has {what} ({found}), which a page "
                "cannot apply. Remove it, or export another effect.",
            )
    if effect.input is None:
        x, y, *size = (state.get(name) for name in _BOX)
        whole = tuple(size) in ((None, None), (effect.scene.width, effect.scene.height))
        if x or y or not whole or any(map(moves, (*_BOX, *_PAIRS))):
            raise ParameterError(
                f"{call}: the effect {effect.id!r} covers a part of the scene, and pages apply "
                "effects to the whole picture. Remove its position and size.",
            )
