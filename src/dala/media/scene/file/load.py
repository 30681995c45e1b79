"""Scene files: scenes as JSON, written by people and by :func:`scene_to_dict`.

A file is checked whole before anything is opened, by the table of ``scene_table.py``; then its
nodes are made by the same calls that a program makes. All that is wrong is told at once.
"""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dala.errors import DalaError, SceneFileError, did_you_mean
from dala.media.scene.file.record import (
    Record,
    animation_arguments,
    is_file_param,
    is_font_file,
    record_of,
    remember,
)
from dala.media.scene.file.save import save_scene, scene_to_dict
from dala.media.scene.file.table import VERSION, scene_kind, schema
from dala.media.scene.file.values import Entry, join, shown, unprefixed
from dala.media.scene.scene import Scene

if TYPE_CHECKING:
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.nodes.video import SceneNode

__all__ = ["files_of", "load_scene", "named_files", "save_scene", "scene_to_dict", "schema"]

#: More than anybody writes.
MAX_BYTES: Final = 64 << 20


def load_scene(
    source: str | os.PathLike[str] | dict[str, Any],
    device: str | None = None,
    *,
    base: str | os.PathLike[str] | None = None,
) -> Scene:
    """The scene that a file describes.

    Args:
        source: the path of a JSON file, or what is in one, as a dict.
        device: where to draw; the current device where left out.
        base: the folder that paths in it are relative to; that of the file where left out, or the
            present one for a dict.

    Raises:
        SceneFileError: something in it is wrong; ``problems`` has all of it.
        FileNotFoundError: there is no such file.
    """
    if isinstance(source, dict):
        name, data = "scene", source
        folder = Path(base or ".")
    else:
        path = Path(source)
        name, data = path.name, read(path)
        folder = path.parent if base is None else Path(base)
    told: list[str] = []
    try:
        data = copy.deepcopy(data)
        _check_version(data, told)
        if not told:
            scene_kind().check(data, "", told)
            _check_ids(data, told)
        if not told:
            made = _Builder(data, folder.resolve(), device, told).scene()
            if not told:
                return made
            made.close()
    except RecursionError:
        told.append("nodes: groups are nested too deep.")
    raise SceneFileError(name, told)


def read(path: str | os.PathLike[str]) -> Any:
    """What is in a JSON file.

    Raises:
        SceneFileError: it is no JSON; line and column are told.
    """
    path = Path(path)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "is not there"
        raise FileNotFoundError(f"load_scene: the file {str(path)!r} {what}.")
    if path.stat().st_size > MAX_BYTES:
        raise SceneFileError(path.name, [f"it has more than {MAX_BYTES:,} bytes."])
    try:
        text = path.read_bytes().decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except UnicodeDecodeError as error:
        problem = f"it is not in UTF-8 (byte {error.start})."
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno}, column {error.colno}: {error.msg[:1].lower()}"
        problem += f"{error.msg[1:]}."
    except _NoNumber as error:
        problem = f"{error} is no number in JSON."
    except RecursionError:
        problem = "lists and objects are nested too deep."
    except ValueError as error:  # a whole number of thousands of digits
        problem = f"{error}."
    raise SceneFileError(path.name, [problem])


class _NoNumber(ValueError):
    """NaN or Infinity, which Python's reader would take."""


def _constant(text: str) -> Any:
    raise _NoNumber(text)


def _object(pairs: list[tuple[str, Any]]) -> Entry:
    made = Entry(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        made.twice = tuple(key for key in made if keys.count(key) > 1)
    return made


# checks beyond the table --------------------------------------------------------------------------
def _check_version(data: Any, told: list[str]) -> None:
    version: Any = data.get("dala") if isinstance(data, dict) else None
    if type(version) in (int, float) and version > VERSION:
        told.append(
            f"dala: this is version {version:g} of the format, and {VERSION} is the newest that "
            "this dala reads. Update it: pip install -U dala."
        )


def _check_ids(data: Any, told: list[str], home: str = "") -> None:
    """Ids that are there twice, and those that are referred to and not there.

    A scene inside the scene (whose place is ``home``) has ids of its own.
    """
    places: dict[str, str] = {}
    uses: list[tuple[str, Any]] = []

    def walk(nodes: Any, at: str) -> None:
        for i, item in enumerate(nodes if isinstance(nodes, list) else ()):
            here = f"{at}[{i}]"
            if not isinstance(item, dict):
                continue
            if isinstance(id := item.get("id"), str):
                if id in places:
                    told.append(f"{here}.id: {id!r} is the id of {places[id]} already.")
                places.setdefault(id, here)
            if item.get("type") == "effect" and "input" in item:
                uses.append((f"{here}.input", item["input"]))
            elif item.get("type") == "animation":
                uses.append((f"{here}.node", item.get("node")))
            elif item.get("type") == "group":
                walk(item.get("nodes"), f"{here}.nodes")
            elif item.get("type") == "scene":
                _check_ids(item.get("scene"), told, f"{here}.scene")

    def listed(name: str) -> list[Any]:
        found = data.get(name) if isinstance(data, dict) else None
        return found if isinstance(found, list) else []

    walk(listed("nodes"), join(home, "nodes"))
    for i, item in enumerate(listed("animations")):
        if isinstance(item, dict):
            uses.append((f"{join(home, 'animations')}[{i}].node", item.get("node")))
    for i, item in enumerate(listed("layouts")):
        at = f"{join(home, 'layouts')}[{i}]"
        inside = item.get("nodes") if isinstance(item, dict) else None
        if isinstance(inside, list):
            uses += [(f"{at}.nodes[{n}]", id) for n, id in enumerate(inside)]
        elif isinstance(inside, int) and item.get("type") != "grid":
            told.append(f"{at}.nodes: a list of ids is expected, {shown(inside)} came.")
        if isinstance(item, dict) and "columns" in item and item.get("type") != "grid":
            told.append(f"{at}.columns: only a grid has columns.")
    for at, id in uses:
        if isinstance(id, str) and id and id not in places:
            told.append(
                f"{at}: there is no node with the id {id!r}. {did_you_mean(id, places)}".strip()
            )


# making -------------------------------------------------------------------------------------------
class _Builder:
    """Makes a scene of a file that is well formed; ``home`` is where a scene inside it stands."""

    def __init__(
        self,
        data: dict[str, Any],
        base: Path,
        device: str | None,
        told: list[str],
        home: str = "",
    ) -> None:
        self.data = data
        self.home = home
        self.base = base
        self.device = device
        self.told = told
        self.record = Record(data, base)
        self.taken = set(_ids(data["nodes"]))
        #: Effects that come before the node they are on, and animations: made after all nodes.
        self.later: list[tuple[Any, dict[str, Any], str, Any]] = []

    def scene(self) -> Scene:
        """The scene, without what was refused: ``told`` has that."""
        data, home = self.data, self.home
        options = {k: data[k] for k in ("fps", "background", "blend_space") if k in data}
        made = Scene(int(data["width"]), int(data["height"]), device=self.device, **options)
        try:
            made.duration = data.get("duration")
            self._nodes(made, data["nodes"], join(home, "nodes"))
            for group, item, at, after in self.later:
                if item["type"] == "effect":
                    self._try(at, self._make, group, item, at)
                else:
                    self._animate(made, item, at, after)
            for i, item in enumerate(data.get("layouts", ())):
                self._try(f"{join(home, 'layouts')}[{i}]", self._lay, made, item)
            for i, item in enumerate(data.get("animations", ())):
                self._animate(made, item, f"{join(home, 'animations')}[{i}]", None)
            remember(made, self.record)
        except BaseException:
            made.close()
            raise
        return made

    def _try(self, at: str, call: Any, *args: Any) -> Any:
        """Calls; what is refused is told with its place, and the rest goes on."""
        try:
            return call(*args)
        except SceneFileError as error:
            self.told += error.problems
        except (DalaError, OSError, ValueError) as error:
            self.told.append(f"{at}: {unprefixed(error)}")
        return None

    def _nodes(self, home: Any, items: list[dict[str, Any]], at: str) -> None:
        before = None
        for i, item in enumerate(items):
            here = f"{at}[{i}]"
            if item["type"] == "animation":
                self.later.append((home, item, here, (_id_of(home), _id_of(before))))
                continue
            scene = home._scene_of()
            if item["type"] == "effect" and item.get("input", "") not in ("", *scene.nodes):
                self.later.append((home, item, here, None))
                continue
            node = self._try(here, self._make, home, item, here)
            before = node if node is not None else before
            if node is not None and item["type"] == "group":
                self._nodes(node, item.get("nodes", []), f"{here}.nodes")

    def _make(self, home: Any, item: dict[str, Any], at: str) -> Node:
        type = item["type"]
        inside = ("type", "nodes", "scene")
        given = {k: v for k, v in item.items() if k not in inside and v is not None}
        given.setdefault("id", self._id(type))
        if "font" in given:
            given["font"] = self._font(given["font"], f"{at}.font")
        path = None
        if type in ("video", "image", "overlay", "subtitles") and "source" in given:
            path = self._path(given.pop("source"), f"{at}.source")
        made: Node
        if type == "video":
            made = home.add_video(path, **given)
        elif type == "image":
            made = home.add_image(path, **given)
        elif type == "overlay":
            made = home.add_overlay(path, **given)
        elif type == "text":
            made = home.add_text(given.pop("text"), **given)
        elif type == "subtitles":
            made = home.add_subtitles(path, **given)
        elif type == "group":
            made = home.add_group(**given)
        elif type == "scene":
            made = self._inside(home, item["scene"], f"{at}.scene", given)
        else:
            params = self._params(given.pop("params", {}), at)
            made = home.add_effect(given.pop("filter"), given.pop("input", None), **given, **params)
        self.record.take(made, item, path)
        return made

    def _inside(self, home: Any, data: dict[str, Any], at: str, given: dict[str, Any]) -> Node:
        """A scene inside the scene, which is closed with it."""
        builder = _Builder(data, self.base, home._scene_of().device, self.told, at)
        inner = builder.scene()
        self.record.files |= builder.record.files
        try:
            made: SceneNode = home.add_scene(inner, **given)
        except BaseException:
            inner.close()
            raise
        made.owned = True
        return made

    def _id(self, type: str) -> str:
        number = 1
        while f"{type}-{number}" in self.taken:
            number += 1
        self.taken.add(f"{type}-{number}")
        return f"{type}-{number}"

    def _animate(self, scene: Scene, item: dict[str, Any], at: str, after: Any) -> None:
        if item["node"] not in scene.nodes:
            return  # it was refused, and that is told
        made = self._try(at, lambda: scene.add_animation(**animation_arguments(item)))
        if made is not None:
            self.record.animated(made, item, after)

    def _lay(self, scene: Scene, item: dict[str, Any]) -> None:
        nodes = item["nodes"]
        if not isinstance(nodes, list):
            nodes = int(nodes)
        else:
            nodes = [id for id in nodes if id in scene.nodes]
            if len(nodes) < len(item["nodes"]):
                return
        options = {k: v for k, v in item.items() if k not in ("type", "nodes")}
        if "columns" in options:
            options["columns"] = int(options["columns"])
        getattr(scene, item["type"])(nodes, **options)

    # files ----------------------------------------------------------------------------------------
    def _path(self, value: Any, at: str) -> Any:
        """What a source means: a path beside the file, or what stands there itself."""
        if not isinstance(value, str):
            return int(value)
        if "://" in value or "\n" in value:
            return value
        path = Path(os.path.normpath(self.base / value))
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "is not there"
            raise SceneFileError("", [f"{at}: the file {value!r} {what} (in {str(self.base)!r})."])
        self.record.files.add(path)
        return str(path)

    def _font(self, font: Any, at: str) -> Any:
        """A family, or a file beside this one; whether there is one is seen now, not when drawn."""
        if isinstance(font, list):
            return tuple(self._font(f, f"{at}[{i}]") for i, f in enumerate(font))
        from dala.media.text.fonts.faces import find

        found = self._path(font, at) if is_font_file(font) else font
        try:
            find(found)
        except DalaError as error:
            raise SceneFileError("", [f"{at}: {unprefixed(error)}"]) from None
        return found

    def _params(self, params: dict[str, Any], at: str) -> dict[str, Any]:
        return {k: self._param(k, v, join(f"{at}.params", k)) for k, v in params.items()}

    def _param(self, name: str, value: Any, at: str) -> Any:
        if not is_file_param(name, value):
            return _tuples(value)
        path = Path(self._path(value, at))
        if name == "lut":
            return path
        if name == "map":
            return np.load(path, allow_pickle=False)
        from dala.media.files import load

        return load(path, 1 << 27)


def _id_of(node: Any) -> str | None:
    return getattr(node, "id", None)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _ids(nodes: list[dict[str, Any]]) -> list[str]:
    found = []
    for item in nodes:
        found += [item["id"]] if "id" in item else []
        found += _ids(item.get("nodes", [])) if item["type"] == "group" else []
    return found


def files_of(scene: Scene) -> list[Path]:
    """The files that a scene was loaded with, beside the scene file itself."""
    record = record_of(scene)
    return sorted(record.files) if record is not None else []


def named_files(path: str | os.PathLike[str]) -> list[Path]:
    """The files that a scene file names, there or not; none where it is no JSON."""
    try:
        data = read(path)
    except (SceneFileError, OSError):
        return []
    folder, found = Path(path).resolve().parent, set()

    def walk(value: Any, key: str) -> None:
        if isinstance(value, dict):
            for name, item in value.items():
                walk(item, name)
        elif isinstance(value, list):
            for item in value:
                walk(item, key)
        elif isinstance(value, str) and "\n" not in value and "://" not in value:
            font = key == "font" and is_font_file(value)
            if value and (font or key == "source" or is_file_param(key, value)):
                found.add(folder / value)

    walk(data, "")
    return sorted(found)
