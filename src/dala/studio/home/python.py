"""The chain of a tab as a Python script that runs as pasted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dala.errors import ParameterError
from dala.gpu.compute.kernels.filter import FilterParam
from dala.gpu.compute.passes.program import KernelProgram
from dala.shaders.files import is_glsl, is_toy
from dala.studio.cards.card import Card
from dala.studio.cards.kernels import plain_text
from dala.studio.cards.models import MODELS
from dala.studio.cards.values import required
from dala.studio.catalogue.parameters import Json, kind_of
from dala.studio.document.tab import Tab


class FileNames:
    """Names of files in a program: relative where they are below one of some folders.

    Args:
        folders: the first one that has the first file is the one that names are relative to.
        uploads: the folder of uploaded files, which have no place of their own.

    >>> names = FileNames([Path("/home/me")], Path("/tmp/uploads"))
    >>> names.of("/home/me/photos/a.jpg"), names.of("/srv/b.jpg"), names.of("/tmp/uploads/1/c.jpg")
    ('photos/a.jpg', '/srv/b.jpg', 'c.jpg')
    >>> print("\\n".join(names.notes()))
    # Run it in the folder 'me', to which its paths are relative.
    # 'c.jpg' was uploaded: put it there too.
    """

    def __init__(self, folders: Sequence[Path], uploads: Path) -> None:
        self._folders = folders
        self._uploads = uploads
        self._base: Path | None = None
        self._uploaded: dict[str, None] = {}

    def of(self, path: str) -> str:
        """Return the name of a file."""
        found = Path(path)
        if found.is_relative_to(self._uploads):
            self._uploaded[found.name] = None
            return found.name
        inside = next((f for f in self._folders if found.is_relative_to(f)), None)
        if inside is None:
            return path
        self._base = self._base or inside
        return Path(os.path.relpath(found, self._base)).as_posix()

    def notes(self) -> list[str]:
        """Return comments that say where the program finds its files."""
        lines = []
        if self._base is not None:
            name = self._base.name or str(self._base)
            lines.append(f"# Run it in the folder {name!r}, to which its paths are relative.")
        for name in self._uploaded:
            where = "there too" if self._base is not None else "beside the program"
            lines.append(f"# {name!r} was uploaded: put it {where}.")
        return lines


#: Files that scripts write.
PICTURE, VIDEO = "result.png", "result.mp4"
#: Kinds of parameters whose text is the path of a file.
FILE_KINDS: Final = ("picture", "map", "lut")
#: Seconds of a camera that a script records.
_SECONDS: Final = 10
_WIDTH: Final = 92


def quoted(text: str) -> str:
    """Return a string as Python writes it, in double quotes where it can be.

    >>> print(quoted("photo.jpg"), quoted('say "hi"'))
    "photo.jpg" 'say "hi"'
    """
    shown = repr(text)
    return f'"{shown[1:-1]}"' if shown[0] == "'" and '"' not in shown else shown


class _Script:
    """Lines of a script, and the names that it imports."""

    def __init__(self, names: FileNames) -> None:
        self._imports: dict[str, set[str]] = {}
        self._names = names
        self.lines: list[str] = []
        #: Comments at its beginning.
        self.notes: list[str] = []

    def file(self, path: str) -> str:
        """Return the name of a file, as a literal."""
        return quoted(self._names.of(path))

    def use(self, module: str, name: str) -> str:
        """Import a name, and return it."""
        self._imports.setdefault(module, set()).add(name)
        return name

    def text(self) -> str:
        heads = [*self.notes, *self._names.notes()]
        heads += [""] if heads else []
        if "numpy" in self._imports:
            heads += ["import numpy as np", ""]
        for module in sorted(m for m in self._imports if m != "numpy"):
            names = ", ".join(sorted(self._imports[module]))
            heads.append(f"from {module} import {names}")
        return "\n".join([*heads, "", *self.lines]) + "\n"


def python(tab: Tab, names: FileNames, last_good: bool = False) -> str:
    """Return a script that makes the result of the tab, and writes it to a file.

    Args:
        tab: the tab.
        names: how it names files.
        last_good: write the last text that compiled of a kernel that has mistakes.

    Raises:
        ParameterError: a card cannot be written as Python.
    """
    if tab.source.path:
        names.of(tab.source.path)  # to whose folder the others are relative
    script = _Script(names)
    cards = [card for card in tab.contents.cards if card.on]
    for card in cards:
        check_complete(card)
        if card.kind == "kernel" and card.diagnostics:
            _check_text(card, last_good)
            script.notes.append(f"# {card.name!r} is the last text that compiled.")
    groups = _groups(cards)
    lists = _filter_lists(script, groups)
    body, models = _steps(script, groups, lists)
    kinds = {"video": _video, "camera": _camera, "scene": _scene}
    kinds.get(tab.source.kind, _picture)(script, tab, body, models)
    return script.text()


def _check_text(card: Card, last_good: bool) -> None:
    """Raise ParameterError for a kernel with a mistake, unless its last good text is asked for."""
    if card.works and last_good:
        return
    found = card.diagnostics[0]
    problem = f"copy: the kernel {card.name!r} does not compile (line {found['line']}: "
    problem += f"{str(found['message']).rstrip('.')}). "
    if card.works:
        raise ParameterError(f"{problem}Mend it, or copy its last good text.", argument="last_good")
    raise ParameterError(f"{problem}Mend it, or switch its card off.")


def check_complete(card: Card) -> None:
    """Raise ParameterError if a card needs values that were not set."""
    if needs := required(card):
        raise ParameterError(f"copy: {card.name} needs {' and '.join(needs)}.")


def _groups(cards: Sequence[Card]) -> list[list[Card]]:
    """Return the cards in groups: neighboring filters and kernels together, each model alone."""
    groups: list[list[Card]] = []
    for card in cards:
        joins = groups and card.kind != "model" and groups[-1][0].kind != "model"
        if joins:
            groups[-1].append(card)
        else:
            groups.append([card])
    return groups


def _filter_lists(script: _Script, groups: Sequence[list[Card]]) -> dict[int, str]:
    """Write the kernels and the lists of filters; return the name of each group's list."""
    names: dict[int, str] = {}
    kernels: dict[str, str] = {}
    count = sum(group[0].kind != "model" for group in groups)
    for number, group in enumerate(groups):
        if group[0].kind == "model":
            continue
        rows = []
        for card in group:
            if card.kind == "kernel":
                if card.kernel.text not in kernels:
                    kernels[card.kernel.text] = _kernel(script, card, len(kernels))
                item = kernels[card.kernel.text]
            else:
                item = quoted(card.name)
            rows.append(f"    ({item}, {_params(script, card)}),")
        name = "filters" if count == 1 else f"filters_{len(names) + 1}"
        script.lines += [f"{name} = [", *rows, "]"]
        names[number] = name
    return names


def _kernel(script: _Script, card: Card, number: int) -> str:
    made = "program" if isinstance(card.kernel.kernel, KernelProgram) else "kernel"
    if is_glsl(card.kernel.text):
        made = script.use("dala.shaders", "shadertoy" if is_toy(card.kernel.text) else "isf")
    else:
        script.use("dala.gpu.compute", made)
    name = f"kernel_{number + 1}"
    text = plain_text(card.kernel.text)
    quotes = '"""' if '"""' not in text else "'''"
    if quotes in text or "\\" in text:
        script.lines.append(f"{name} = {made}({text!r})")
    else:
        script.lines += [f"{name} = {made}({quotes}", *text.strip("\n").split("\n"), f"{quotes})"]
    return name


def _params(script: _Script, card: Card) -> str:
    known = card.parameters
    rows = [f"{quoted(name)}: {_value(script, known[name], v)}" for name, v in card.params.items()]
    return "{" + ", ".join(rows) + "}"


def _value(script: _Script, p: FilterParam, value: Json) -> str:
    kind = kind_of(p)
    if isinstance(value, str) and kind in FILE_KINDS:
        name = script.file(value)
        if kind == "picture":
            return f"{script.use('dala.media', 'Frame')}.open({name})"
        if kind == "map":
            script.use("numpy", "np")
            return f"np.load({name})"
        return name
    return _plain(value, kind == "curve")


def _plain(value: Json, points: bool = False) -> str:
    if isinstance(value, list):
        inner = ", ".join(_plain(v) for v in value)
        if points:
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return quoted(value) if isinstance(value, str) else repr(value)


def _model(script: _Script, card: Card) -> tuple[str, str]:
    """Return the expression that loads a model, and its call with ``frame``."""
    params = MODELS[card.name].values(card.params)
    weights = quoted(MODELS[card.name].weights(card.params))
    if card.name == "background":
        given = f"{weights}, radius={params['radius']}"
        if params["replace"] == "color":
            given += f", background={_plain(params['color'])}"
        return f"{script.use('dala.ml', 'Background')}({given})", "process(frame)"
    score = params["score"]
    if card.name == "faces" and params["show"] != "boxes":
        given = f"{quoted(params['show'])}, score={score}, keep=0, ahead=0"
        return f"{script.use('dala.ml', 'FaceHider')}({given})", "process(frame)"
    call = f"predict(frame, score={score}).draw(frame)"
    if card.name == "classes":
        call = f"predict(frame).draw(frame, least={score})"
    return f"{script.use('dala.ml.gpu', 'load_model')}({weights})", call


def _steps(
    script: _Script, groups: Sequence[list[Card]], lists: dict[int, str]
) -> tuple[list[str], list[str]]:
    """Return the lines that process ``frame``, and those of ``with`` that load the models."""
    lines, models = [], []
    for number, group in enumerate(groups):
        if number in lists:
            lines.append(f"frame = pipeline.process(frame, {lists[number]})")
            continue
        made, call = _model(script, group[0])
        models.append(f"{made} as model_{number + 1}")
        lines.append(f"frame = model_{number + 1}.{call}")
    return lines, models


def _opened(script: _Script, size: str, body: list[str], models: list[str]) -> list[str]:
    """Return the items of the ``with`` statement: the pipeline and the models."""
    rows = list(models)
    if any("pipeline" in line for line in body):
        script.use("dala.media", "FramePipeline")
        rows.insert(0, f"FramePipeline({size}) as pipeline")
    return rows


def _with(rows: Sequence[str], body: Sequence[str]) -> list[str]:
    """Return a ``with`` statement; the body alone if there is nothing to open."""
    if not rows:
        return list(body)
    line = f"with {', '.join(rows)}:"
    if len(line) > _WIDTH:
        return ["with (", *(f"    {row}," for row in rows), "):", *(f"    {b}" for b in body)]
    return [line, *(f"    {row}" for row in body)]


def _picture(script: _Script, tab: Tab, body: list[str], models: list[str]) -> None:
    source = tab.source
    if source.path and source.kind == "picture":
        script.use("dala.media", "Frame")
        script.lines.append(f"frame = Frame.open({script.file(source.path)})")
    else:
        script.use("dala.samples", "photo")
        name = source.title if source.kind == "picture" else "coffee"
        script.lines.append(f"frame = photo({quoted(name)})")
    rows = _opened(script, "frame.width, frame.height", body, models)
    script.lines += [*_with(rows, body), f"frame.save({quoted(PICTURE)})"]


def _loop(
    script: _Script, tab: Tab, opened: str, heads: Sequence[str], body: list[str],
    models: list[str], tracks: str = "",
) -> None:  # fmt: skip
    """Write the loop over the frames of the source, as ``reader`` or ``scene``."""
    script.use("dala.media", "video")
    name, rate = ("scene", "frame_rate") if tab.source.kind == "scene" else ("reader", "fps")
    sink = f"video.write({quoted(VIDEO)}, fps={name}.{rate}{tracks}) as sink"
    size = f"{name}.width, {name}.height"
    rows = [f"{opened} as {name}", *_opened(script, size, body, models), sink]
    loop = [*heads, *(f"    {line}" for line in body), "    sink.write(frame)"]
    script.lines += _with(rows, loop)


def _video(script: _Script, tab: Tab, body: list[str], models: list[str]) -> None:
    if tab.source.path:
        path = script.file(tab.source.path)
    else:
        path = f"{script.use('dala', 'samples')}.video({quoted(tab.source.title)})"
    heads = ["for frame in reader:"]
    _loop(script, tab, f"video.open({path})", heads, body, models, ", tracks_from=reader")


def _camera(script: _Script, tab: Tab, body: list[str], models: list[str]) -> None:
    script.use("dala.media", "camera")
    script.use("itertools", "islice")
    given = tab.source.camera
    name = quoted(given) if isinstance(given, str) else str(given)
    heads = [f"for frame in islice(reader, int(reader.fps * {_SECONDS})):"]
    _loop(script, tab, f"camera.open({name})", heads, body, models)


def _scene(script: _Script, tab: Tab, body: list[str], models: list[str]) -> None:
    script.use("dala.media", "load_scene")
    opened = f"load_scene({script.file(tab.source.path)})"
    if not body:
        rendered = [f"scene.render_to({quoted(VIDEO)})"]
        script.lines += _with([f"{opened} as scene"], rendered)
        return
    seconds = "scene.duration" if tab.source.duration is not None else str(_SECONDS)
    heads = [
        f"for number in range(round({seconds} * scene.frame_rate)):",
        "    frame = scene.render(number / scene.frame_rate)",
    ]
    _loop(script, tab, opened, heads, body, models)
