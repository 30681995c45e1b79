"""Load scene files.

The whole file is checked before anything is opened, by the types in ``schema.py``. Then its nodes
are made with the same builder methods that a program calls. All mistakes are reported at once.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar, TypeVarTuple

from dala.arguments import checked_path, refuse_folder
from dala.arguments.paths import missing_file
from dala.budget import Charging, check_deadline, checked
from dala.errors import DalaError, ParameterError, SceneFileError, describe
from dala.media.filters.sizes import with_size
from dala.media.scene.file import record as files
from dala.media.scene.file.cost import NODE_BYTES, SceneCost, check_ids, walk
from dala.media.scene.file.follows import load_follow
from dala.media.scene.file.save import save_scene, scene_to_dict
from dala.media.scene.file.schema import check_version, copied, newest, scene_object, schema
from dala.media.scene.nodes import json_types as j
from dala.media.scene.nodes.json_types import JsonData
from dala.media.scene.nodes.nested import SceneNode
from dala.media.scene.nodes.property_types import FontType, PathType, Value, Values
from dala.media.scene.nodes.registry import NODE_TYPES
from dala.media.scene.scene import Scene
from dala.memory import check
from dala.typing import PathLike
from dala.untrusted.address import has_control, is_text, scheme_of
from dala.untrusted.opened import readable

if TYPE_CHECKING:
    from dala.media.scene.animation.animation import Animation
    from dala.media.scene.builder import NodeBuilder
    from dala.media.scene.nodes.node import Node
    from dala.untrusted.opened import Opened
    from dala.untrusted.place import Place

__all__ = ["files_of", "load_scene", "named_files", "save_scene", "scene_to_dict", "schema"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

#: Larger files are refused.
MAX_BYTES: Final = 64 << 20


def load_scene(
    source: PathLike | Mapping[str, JsonData],
    device: str | None = None,
    *,
    base: PathLike | None = None,
    memory: int | str | None = None,
    place: Place | None = None,
) -> Scene:
    """Load a scene from a scene file.

    Args:
        source: the path of a JSON file, or its contents as a dict.
        device: the device to draw on; by default the current one.
        base: the folder that paths in the file are relative to; by default that of the file, or
            the current one for a dict.
        memory: the memory that the scene may use, as of :class:`Scene`.
        place: the only place that it may name files in, for scenes of strangers; by default it may
            name all that this program can open.

    Raises:
        SceneFileError: the file has mistakes; ``problems`` lists them all.
        FileNotFoundError: there is no such file.

    >>> card = {"dala": 2, "width": 64, "height": 36, "nodes": [
    ...     {"type": "overlay", "id": "box", "color": "red", "size": [8, 8]}]}
    >>> with load_scene(card, "cpu") as scene:
    ...     scene["box"].size
    (8.0, 8.0)
    """
    name, data, folder, problems = _checked(source, memory)
    if base is not None:
        folder = checked_path("load_scene", "base", base)
    if not problems:
        given = data, folder.resolve(), device, problems
        made = _Loader(*given, memory=memory, place=place).scene()
        if not problems:
            return made
        made.close()
    raise SceneFileError(name, problems)


def plan_scene(
    source: PathLike | Mapping[str, JsonData], memory: int | str | None = None
) -> SceneCost:
    """Return the cost of a frame of a scene file, which is checked; nothing is opened or made.

    Raises:
        SceneFileError: the file has mistakes, or :func:`load_scene` would refuse its cost.

    >>> str(plan_scene({"dala": 1, "width": 64, "height": 36, "nodes": []}))
    '0 nodes, 1 scene in 1 level; 2,304 pixels a frame, at least 9 KiB of memory'
    """
    name, data, _, problems = _checked(source, memory)
    if problems:
        raise SceneFileError(name, problems)
    return SceneCost.of(data)


def _checked(
    source: PathLike | Mapping[str, JsonData], memory: int | str | None
) -> tuple[str, j.JsonItem, Path, list[str]]:
    """Return the name of a scene file, its contents, its folder, and its mistakes."""
    if isinstance(source, Mapping):
        name, data, folder = "scene", dict(source), Path(".")
    else:
        path = checked_path("load_scene", "source", source)
        name, data, folder = path.name, read(path), path.parent
    problems: list[str] = []
    check_deadline("load_scene")  # parsing is one call
    try:
        if isinstance(source, Mapping):
            data = copied(data, {})
        check_version(data, problems)
        cost = SceneCost.of(data)
        if not problems and (problem := cost.problem(memory)):
            problems.append(f"nodes: {problem}")
        if not problems:
            data = newest(data)
            check(NODE_BYTES * cost.nodes, "load_scene")
            scene_object().check(data, "", problems)
            check_ids(data, problems)
            if len(problems) >= j.MAX_PROBLEMS:
                problems.append("there are more mistakes, which were not looked for.")
    except RecursionError:
        problems.append("nodes: groups are nested too deep.")
    return name, data, folder, problems


def read(path: PathLike) -> j.JsonValue:
    """Return the contents of a JSON file.

    Raises:
        SceneFileError: it is not JSON; the error names line and column.
    """
    path = Path(path)
    refuse_folder("load_scene", path)
    if not path.is_file():
        raise missing_file(path, "load_scene")
    if path.stat().st_size > MAX_BYTES:
        raise SceneFileError(path.name, [f"the file has more than {MAX_BYTES:,} bytes."])
    try:
        text = path.read_bytes().decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except UnicodeDecodeError as error:
        problem = f"the file is not UTF-8 (byte {error.start})."
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno}, column {error.colno}: {error.msg[:1].lower()}"
        problem += f"{error.msg[1:]}."
    except _NotANumber as error:
        problem = f"{error} is not a number in JSON."
    except RecursionError:
        problem = "lists and objects are nested too deep."
    except ValueError as error:  # an integer of thousands of digits
        problem = f"{error}."
    raise SceneFileError(path.name, [problem])


class _NotANumber(ValueError):
    """NaN or Infinity, which Python's JSON parser accepts."""


def _constant(text: str) -> NoReturn:
    raise _NotANumber(text)


def _object(pairs: list[tuple[str, j.JsonValue]]) -> j.JsonDict:
    made = j.JsonDict(pairs)
    if len(made) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        made.repeated = tuple(key for key, times in counts.items() if times > 1)
    return made


# checks of the file as a whole --------------------------------------------------------------------
# making the scene ---------------------------------------------------------------------------------
@dataclass(eq=False)
class _Loader:
    """Makes a scene from a checked file; ``home`` is the location of an inner scene."""

    data: j.JsonItem
    base: Path
    device: str | None
    problems: list[str]
    home: str = ""
    memory: int | str | None = None
    place: Place | None = None

    def __post_init__(self) -> None:
        self.record = files.FileRecord(self.data, self.base)
        self.taken = {item["id"] for _, item in walk(self.data) if "id" in item}
        #: The numbers that are left for nodes without ids, by type.
        self.numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(1))
        #: Animations, and effects listed before their input: made after all other nodes.
        self.later: list[
            tuple[NodeBuilder, j.JsonItem, str, tuple[str | None, str | None] | None]
        ] = []

    def scene(self) -> Scene:
        """Return the scene; parts that were refused are missing and listed in ``problems``."""
        data = self.data
        options = {k: data[k] for k in ("fps", "background", "blend_space") if k in data}
        size = int(data["width"]), int(data["height"])
        made = Scene(*size, device=self.device, memory=self.memory, **options)
        try:
            made.duration = data.get("duration")
            self._nodes(made, data["nodes"], j.join(self.home, "nodes"))
            for group, item, at, after in checked(self.later, "load_scene"):
                if item["type"] == "animation":
                    self._animate(made, item, at, after)
                else:
                    self._attempt(at, self._make, group, item, at)
            for at, item in self._items("layouts"):
                self._attempt(at, self._lay_out, made, item)
            for at, item in self._items("ducks"):
                self._attempt(at, partial(made.duck, **item))
            for at, item in self._items("animations"):
                self._animate(made, item, at, None)
            for at, item in self._items("follows"):
                link = self._attempt(at, load_follow, made, item, self._kept, at)
                if link is not None:
                    self.record.follows[link] = item
            files.remember(made, self.record)
        except BaseException:
            made.close()
            raise
        return made

    def _items(self, name: str) -> Iterator[tuple[str, j.JsonItem]]:
        """Yield the entries of a list of the file, with their locations."""
        for number, item in checked(enumerate(self.data.get(name, ())), "load_scene"):
            yield f"{j.join(self.home, name)}[{number}]", item

    def _attempt(self, at: str, call: Callable[[*Ts], T], *args: *Ts) -> T | None:
        """Return the result of a call; an error is reported with its location."""
        try:
            return call(*args)
        except SceneFileError as error:
            self.problems += error.problems
        except (DalaError, OSError, ValueError) as error:
            self.problems.append(f"{at}: {readable(j.without_call(error))}")
        return None

    def _nodes(self, home: NodeBuilder, items: list[j.JsonItem], at: str) -> None:
        before = None
        for i, item in checked(enumerate(items), "load_scene"):
            here = f"{at}[{i}]"
            if item["type"] == "animation":
                self.later.append((home, item, here, (_id_of(home), _id_of(before))))
                continue
            early = item["type"] == "effect" and item.get("input")
            if early and early not in home.scene_of()._nodes:  # its input comes later in the file
                self.later.append((home, item, here, None))
                continue
            node = self._attempt(here, self._make, home, item, here)
            before = node if node is not None else before
            if node is not None and NODE_TYPES[item["type"]].HOLDS == "nodes":
                self._nodes(node, item.get("nodes", []), f"{here}.nodes")  # type: ignore[arg-type]

    def _make(self, home: NodeBuilder, item: j.JsonItem, at: str) -> Node:
        cls = NODE_TYPES[item["type"]]
        given = {"id": item.get("id") or self._id(cls.type)}
        paths: dict[str, str | int] = {}
        text = cls.type in ("subtitles", "svg")  # which may be in the scene file itself
        names = {argument.key or name: name for name, argument in cls.ARGUMENTS.items()}
        for key, value in item.items():
            if value is None or key in ("type", "id", cls.EXTRA, cls.HOLDS):
                continue
            name = names.get(key, key)
            type = (cls.ARGUMENTS.get(name) or cls.PROPERTIES[name]).type
            if isinstance(type, FontType):
                value = self._font(value, f"{at}.{key}")
            elif isinstance(type, PathType):
                value = self._path(value, f"{at}.{key}", text=text)
                paths[key] = os.fspath(value) if isinstance(value, os.PathLike) else value
            elif name == "transition" and isinstance(value, dict | list):
                value = self._transition(value, f"{at}.{key}")
            given[name] = value
        if cls.EXTRA:
            extra = item.get(cls.EXTRA) or {}
            found = {k: self._param(k, v, j.join(f"{at}.params", k)) for k, v in extra.items()}
            given |= with_size(str(item.get("filter")), found)
        if cls.HOLDS == "scene":
            made = self._inner(home, item["scene"], f"{at}.scene", given)
        else:
            made = getattr(home, f"add_{cls.type}")(**given)
        self.record.nodes[made] = files.NodeEntry(item, paths)
        return made

    def _inner(self, home: NodeBuilder, data: j.JsonItem, at: str, given: Values) -> Node:
        """Add an inner scene, which is closed together with the outer one."""
        outer = home.scene_of()
        loader = _Loader(data, self.base, outer.device, self.problems, at, self.memory, self.place)
        with Charging(outer.accounts):  # what the inner scene uses, the outer one does
            inner = loader.scene()
        self.record.files |= loader.record.files
        self.record.held += loader.record.held
        try:
            made: SceneNode = home.add_scene(inner, **given)
        except BaseException:
            inner.close()
            raise
        made.owned = True
        return made

    def _id(self, type: str) -> str:
        for number in self.numbers[type]:  # goes on where the last node of the type found one
            if f"{type}-{number}" not in self.taken:
                break
        return f"{type}-{number}"

    def _animate(
        self,
        scene: Scene,
        item: j.JsonItem,
        at: str,
        after: tuple[str | None, str | None] | None,
    ) -> None:
        if item["node"] not in scene._nodes:
            return  # the node was refused, which is already reported
        made = self._attempt(at, self._animation, scene, item)
        if made is not None:
            self.record.animations[made] = files.AnimationEntry(item, after)

    def _animation(self, scene: Scene, item: j.JsonItem) -> Animation:
        given = {k: _tuples(v) for k, v in item.items() if k != "type" and v is not None}
        if "from" in given:
            given["from_"] = given.pop("from")
        if "repeat" in given:
            given["repeat"] = int(given["repeat"])
        level = given.pop("level", None)
        return scene.add_animation(**given, by=None if level is None else scene.level(**level))

    def _lay_out(self, scene: Scene, item: j.JsonItem) -> None:
        nodes = item["nodes"]
        if not isinstance(nodes, list):
            nodes = int(nodes)
        else:
            nodes = [id for id in nodes if id in scene._nodes]
            if len(nodes) < len(item["nodes"]):
                return
        options = {k: v for k, v in item.items() if k not in ("type", "nodes")}
        if "columns" in options:
            options["columns"] = int(options["columns"])
        getattr(scene, item["type"])(nodes, **options)

    # files ----------------------------------------------------------------------------------------
    def _path(self, value: str | float, at: str, *, text: bool = False) -> str | int | Opened:
        """Return the meaning of a source: a path relative to the file, a URL, text, or a camera.

        With a place, it is a file in it, opened already. So every name of the file comes here.
        """
        if not isinstance(value, str):
            return int(value)
        if self.place is not None:
            return self._in_place(self.place, value, at, text)
        if text and is_text(value):
            return value
        if has_control(value):
            raise SceneFileError("", [f"{at}: {describe(value)} has a control character."])
        if scheme_of(value) is not None:
            return value
        path = Path(os.path.normpath(self.base / value))
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            raise SceneFileError("", [f"{at}: the file {value!r} {what} (in {str(self.base)!r})."])
        self.record.files.add(path)
        return str(path)

    def _in_place(self, place: Place, value: str, at: str, text: bool) -> str | Opened:
        if text and is_text(value):
            return value
        try:
            if scheme_of(value) is not None:
                place.allow_address(value, "scene")
                return value
            made = place.open(value, "scene", argument="source", base=self.base)
        except DalaError as error:
            raise SceneFileError("", [f"{at}: {j.without_call(error)}"]) from None
        self.record.files.add(made.name)
        return made

    def _kept(self, value: str, at: str) -> str:
        """Return the path of a file that is read later."""
        found = self._path(value, at)
        self.record.held.append(found)
        return os.fspath(found) if isinstance(found, os.PathLike) else str(found)

    def _font(self, font: str | list[str], at: str) -> str | tuple[str, ...]:
        """Return a family, or the path of a font file; a missing font is an error now."""
        if isinstance(font, list):
            return tuple(str(self._font(f, f"{at}[{i}]")) for i, f in enumerate(font))
        from dala.media.text.fonts.faces import find

        found = self._kept(font, at) if files.is_font_file(font) else font
        try:
            find(found)
        except DalaError as error:
            raise SceneFileError("", [f"{at}: {j.without_call(error)}"]) from None
        return found

    def _transition(self, value: j.JsonValue, at: str) -> j.JsonValue:
        """Return a transition with the path of its picture resolved."""
        if isinstance(value, list):
            return [self._transition(v, at) if isinstance(v, dict) else v for v in value]
        found = value.get("picture")
        return {**value, "picture": self._path(found, at)} if isinstance(found, str) else value

    def _param(self, name: str, value: j.JsonValue, at: str) -> Value:
        if not files.is_file_param(name, value):
            return _tuples(value)
        found = self._path(value, at)
        path = found if isinstance(found, os.PathLike) else Path(str(found))
        if name == "lut":
            return path
        if name in files.FILE_PARAMS:
            from dala.media.files import load_array

            try:
                return load_array(path)
            except ParameterError as error:
                raise SceneFileError("", [f"{at}: the file {value!r} {error}"]) from None
        from dala.media.files import load

        return load(path, 1 << 27)


def _id_of(node: NodeBuilder | Node | None) -> str | None:
    return getattr(node, "id", None)


def _tuples(value: j.JsonValue) -> j.JsonValue:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def files_of(scene: Scene) -> list[Path]:
    """Return the files that a scene was loaded with, without the scene file itself."""
    record = files.record_of(scene)
    return sorted(record.files) if record is not None else []


def named_files(path: PathLike) -> list[Path]:
    """Return the files that a scene file names, whether they exist or not; [] if it is not JSON."""
    try:
        data = read(path)
    except (SceneFileError, OSError):
        return []
    folder, found = Path(path).resolve().parent, set()

    def walk(value: j.JsonValue, key: str) -> None:
        if isinstance(value, dict):
            for name, item in value.items():
                walk(item, name)
        elif isinstance(value, list):
            for item in value:
                walk(item, key)
        elif isinstance(value, str) and scheme_of(value) is None and files.names_file(key, value):
            found.add(folder / value)

    walk(data, "")
    return sorted(found)
