"""The chain of a tab as a command line, a preset or a scene file."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from dala.errors import ParameterError
from dala.gpu.compute.kernels.filter import FilterParam
from dala.media.filters.declarations import declared
from dala.media.scene.file.schema import VERSION as SCENE_VERSION
from dala.media.scene.file.text import format_json
from dala.shaders.files import is_glsl
from dala.studio.cards.card import Card, suffix_of
from dala.studio.catalogue.parameters import Json, JsonObject, kind_of
from dala.studio.catalogue.presets import VERSION
from dala.studio.document.tab import Tab
from dala.studio.home.python import FILE_KINDS, PICTURE, VIDEO, FileNames, check_complete
from dala.studio.scenes.source import SceneFile


def preset(cards: Sequence[Card]) -> JsonObject:
    """Return a chain as a preset.

    >>> preset([Card("c1", "filter", "blur", params={"radius": 8})])
    {'dala': 2, 'chain': [{'filter': 'blur', 'params': {'radius': 8}}]}
    """
    return {"dala": VERSION, "chain": [card.preset() for card in cards]}


def preset_text(tab: Tab) -> str:
    """Return the chain of a tab as the text of a preset."""
    return format_json(preset(tab.contents.cards)) + "\n"


# the command line ---------------------------------------------------------------------------------
def command(tab: Tab, names: FileNames) -> str:
    """Return command lines that make the result of the tab; ``names`` gives names of files.

    Raises:
        ParameterError: a card, or a source without a file, has no form on the command line.
    """
    cards = [card for card in tab.contents.cards if card.on]
    for card in cards:
        if card.kind == "model":
            raise ParameterError(
                f"copy: the command line has no {card.kind} {card.name!r}. Copy as Python."
            )
        check_complete(card)
    options = [word for card in cards for word in option(card, names)]
    written = "".join(_written(card) for card in cards if card.kind == "kernel" and not card.path)
    return written + _command(tab, names, options)


def _written(card: Card) -> str:
    """Return the command that writes a kernel to the file that its option names."""
    return f"cat > {_kernel_file(card)} <<'END'\n{card.works.strip()}\nEND\n"


def _kernel_file(card: Card) -> str:
    return f"{card.name}_{card.id}{suffix_of(card.text)}"


def _command(tab: Tab, names: FileNames, options: list[str]) -> str:
    source = tab.source
    if source.kind == "scene":
        made = f"dala compose {shlex.quote(names.of(source.path))} -o {VIDEO}"
        if options:
            made += f"\n{_filter(VIDEO, 'filtered.mp4', options)}"
        return made + "\n"
    if source.kind == "camera":
        if source.camera == "test":
            words = ["live", "camera:test", "--to", "hls/", "--seconds", "10"]
        else:
            words = ["view", str(source.camera if isinstance(source.camera, int) else 0)]
        return shlex.join(["dala", *words, *options]) + "\n"
    if not source.path:
        raise ParameterError(
            f"copy: the sample {source.title!r} is not a file. Open a file, or copy as Python."
        )
    if not options:
        raise ParameterError("copy: the chain is empty. Add a filter first.")
    out = VIDEO if source.kind == "video" else PICTURE
    return _filter(names.of(source.path), out, options) + "\n"


def _filter(source: str, out: str, options: list[str]) -> str:
    return shlex.join(["dala", "filter", source, out, *options])


def option(card: Card, names: FileNames | None = None) -> list[str]:
    """Return a filter as words of the command line.

    >>> option(Card("c1", "filter", "blur", params={"radius": 3, "sigma": 1.5}))
    ['--blur', 'radius=3,sigma=1.5']
    """
    known = card.parameters
    parts = []
    for name, value in card.params.items():
        if names is not None and isinstance(value, str) and kind_of(known[name]) in FILE_KINDS:
            value = names.of(value)
        parts.append(f"{name}={_word(card, known[name], value)}")
    if card.kind == "kernel":
        path = names.of(card.path) if names is not None and card.path else _kernel_file(card)
        return ["--shader" if is_glsl(card.text) else "--kernel", ",".join([path, *parts])]
    return [f"--{card.name}", *([",".join(parts)] if parts else [])]


def _word(card: Card, p: FilterParam, value: Json) -> str:
    kind = kind_of(p)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        if "," in value:
            raise ParameterError(
                f"copy: {card.name}: the command line cannot have a comma in {value!r}."
            )
        return value
    if kind == "size" and isinstance(value, list) and len(value) == 2:
        width, height = ("" if side is None else _number(side) for side in value)
        return f"{width}x{height}"
    if isinstance(value, list):
        flat = [n for v in value for n in (v if isinstance(v, list) else [v])]
        return ":".join(_number(n) for n in flat)
    return _number(value)


def _number(value: Json) -> str:
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


# scenes -------------------------------------------------------------------------------------------
def scene_text(tab: Tab) -> str:
    """Return the tab as a scene file: its scene, or a scene that shows its source with effects.

    Raises:
        ParameterError: a card has no form in scene files.
    """
    source = tab.source
    if isinstance(source, SceneFile):
        if any(card.on for card in tab.contents.cards):
            raise ParameterError(
                "copy: the filters of a scene's tab are not part of its file. Add effects to it."
            )
        return source.text()
    if not source.path or source.kind not in ("picture", "video"):
        raise ParameterError("copy: only a file can be the source of a scene.")
    size: list[Json] = [source.width, source.height]
    kind = "image" if source.kind == "picture" else "video"
    nodes: list[Json] = [{"type": kind, "id": "source", "source": source.path, "size": size}]
    for card in tab.contents.cards:
        if not card.on:
            continue
        if card.kind != "filter":
            raise ParameterError(f"copy: a scene file has no {card.kind} {card.name!r}.")
        if declared()[card.name].resizes:
            raise ParameterError(
                f"copy: {card.name!r} changes the size, and an effect cannot. Set the node's size."
            )
        check_complete(card)
        effect: JsonObject = {"type": "effect", "filter": card.name, "input": "source"}
        if card.params:
            effect["params"] = dict(card.params)
        nodes.append(effect)
    made: JsonObject = {"dala": SCENE_VERSION, "width": source.width, "height": source.height}
    if source.rate is not None:
        made["fps"] = str(source.rate) if source.rate.denominator > 1 else source.rate.numerator
    if source.duration is not None:
        made["duration"] = round(float(source.duration), 4)
    made["nodes"] = nodes
    return format_json(made) + "\n"


def file_name(tab: Tab, suffix: str) -> str:
    """Return a name for a result: that of the source, with another suffix.

    >>> from dala.studio.sources.source import StillPicture
    >>> import numpy as np
    >>> file_name(Tab("t1", StillPicture(np.zeros((1, 1), np.uint8), "a.jpg"), 1), ".png")
    'a-studio.png'
    """
    stem = Path(tab.source.title).stem or "result"
    safe = "".join(c if c.isalnum() or c in "-_ ." else "_" for c in stem)[:60].strip() or "result"
    return f"{safe}-studio{suffix}"
