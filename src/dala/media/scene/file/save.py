"""Write scenes as scene files."""

from __future__ import annotations

import contextlib
import copy
import json
import os
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import numpy as np

from dala.arguments import checked_path, refuse_folder
from dala.errors import SceneFileError
from dala.extensions import write_whole
from dala.gpu.compute import Buffer
from dala.gpu.paint import Gradient
from dala.gpu.path import Path as DrawnPath
from dala.media.scene.file import record as files
from dala.media.scene.file.follows import save_follow
from dala.media.scene.file.schema import VERSION
from dala.media.scene.file.text import format_json
from dala.media.scene.nodes import property_types as t
from dala.media.scene.nodes.effect import EffectNode
from dala.media.scene.nodes.group import GroupNode
from dala.media.scene.nodes.json_types import JsonData, JsonItem, JsonValue
from dala.media.scene.nodes.nested import SceneNode
from dala.media.scene.nodes.node import NotNamed
from dala.media.scene.nodes.properties import PIP_ARGUMENTS, PairProperty
from dala.media.scene.nodes.text import TextNode
from dala.media.scene.nodes.timeline import TimelineNode
from dala.media.scene.options import frame_rate
from dala.media.scene.sound.methods import Level
from dala.typing import PathLike
from dala.untrusted.address import is_text, scheme_of

if TYPE_CHECKING:
    from dala.media.scene.animation.animation import Animation
    from dala.media.scene.follow.follower import Follow
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.scene import Scene

_BOX: Final = ("x", "y", "width", "height", "scale")
#: Keys of a file that decide position and size.
_PLACEMENT: Final = frozenset((*_BOX, "position", "size", "margin", *PIP_ARGUMENTS))
_BORDER: Final = ("border_width", "border_color")


def save_scene(scene: Scene, path: PathLike) -> None:
    """Write a scene to a file. Paths in it are relative to the file.

    The file is complete when it appears under its name: it is written beside it and renamed.

    Raises:
        SceneFileError: something in the scene, such as an array, cannot be named in a file.
    """
    target = checked_path("Scene.save", "path", path)
    refuse_folder("Scene.save", target)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"Scene.save: the folder '{target.parent}' does not exist. Create it first."
        )
    text = format_json(scene_to_dict(scene, base=target.resolve().parent, name=target.name))
    write_whole(target, f"{text}\n".encode())


def scene_to_dict(
    scene: Scene, *, base: PathLike | None = None, name: str = "scene"
) -> dict[str, JsonData]:
    """Return a scene as the contents of a scene file.

    A scene that was loaded from a file keeps the file's form for everything that did not change;
    animated properties count as unchanged.

    Args:
        scene: the scene.
        base: the folder to make paths relative to; by default paths of a loaded scene stay
            relative to its file, and others are absolute.
        name: name of the file, for errors.

    Raises:
        SceneFileError: something cannot be named in a file; ``problems`` lists everything.

    >>> from dala.media.scene import Scene
    >>> with Scene(64, 36, device="cpu") as scene:
    ...     box = scene.add_overlay(color="red", size=(8, 8))
    ...     scene_to_dict(scene)["nodes"]
    [{'type': 'overlay', 'color': '#ff0000', 'size': [8, 8]}]
    """
    scene._check_open("scene_to_dict")
    saver = _Saver(scene, None if base is None else Path(base).resolve())
    made = saver.contents()
    if saver.problems:
        raise SceneFileError(name, saver.problems)
    return copy.deepcopy(made)


def _equal(a: t.Value, b: t.Value) -> bool:
    """Return True if a value did not change; pictures and arrays did not if they are the same."""
    if a is b:
        return True
    arrays = (np.ndarray, Buffer)
    return not isinstance(a, arrays) and not isinstance(b, arrays) and bool(a == b)


class _Saver:
    """Writes one scene; an inner scene has a saver of its own."""

    def __init__(self, scene: Scene, base: Path | None, *, inner: bool = False) -> None:
        self.scene = scene
        self.record = files.record_of(scene) or files.FileRecord({}, Path())
        loaded = files.record_of(scene) is not None
        self.base = self.record.base if base is None and loaded and not inner else base
        self.problems: list[str] = []
        self.animations = [a for a in scene.animator if not a.muted]
        #: Animated properties, as (node id, property).
        self.animated = {
            (_id(a), part)
            for a in self.animations
            for part in (a.property, *_parts(a.node, a.property))
        }
        for link in scene.followers:
            self.animated |= {(link.node.id, name) for name in link.base}
        self.layouts = [i for i in self.record.data.get("layouts", ()) if self._holds(i)]
        self.laid_out = {node.id for item in self.layouts for node in self._nodes_of(item)}
        self.referenced = {_id(a) for a in self.animations} | {
            e.input.id for e in scene.nodes.values() if isinstance(e, EffectNode) and e.input
        }
        self.referenced |= {n.id for f in scene.followers for n in (f.node, f.target.video)}
        if scene.followers.groups:
            self.problems.append("follow_each: its function cannot be named in a file.")
        self.referenced |= {
            node.id for duck in scene.ducks for node in (duck.music, *duck.under)
        } | {a.by.node.id for a in self.animations if isinstance(a.by, Level)}

    def contents(self) -> JsonItem:
        """Return the contents of the file."""
        scene = self.scene
        now: JsonItem = {"dala": VERSION, "width": scene.width, "height": scene.height}
        for name, setting in _SETTINGS.items():
            if (value := setting.of(scene)) != setting.default:
                now[name] = setting.dump(value)
        now["nodes"] = self._nodes(scene.container())
        listed = {
            "animations": [self._animation(a) for a in self.animations if not self._after(a)],
            "layouts": self.layouts,
            "follows": [self._follow(link) for link in scene.followers],
            "ducks": [duck.facts() for duck in scene.ducks],
        }
        now |= {name: rows for name, rows in listed.items() if rows}
        return _in_form_of(self.record.data, scene, now)

    # nodes ----------------------------------------------------------------------------------------
    def _nodes(self, group: GroupNode) -> list[JsonItem]:
        home = group.id if group.parent is not None else None
        made = self._animations_after(home, None)
        for node in group.children:
            made += [self._node(node), *self._animations_after(home, node.id)]
        return made

    def _animations_after(self, home: str | None, before: str | None) -> list[JsonItem]:
        """Return the animations that the file lists after a node of a group."""
        return [self._animation(a) for a in self.animations if self._after(a) == (home, before)]

    def _after(self, animation: Animation) -> tuple[str | None, str | None] | None:
        """Return the group and the node after which the file lists an animation, if it does."""
        entry = self.record.animations.get(animation)
        return None if entry is None else entry.after

    def _node(self, node: Node) -> JsonItem:
        entry = self.record.nodes.get(node)
        if entry is None:
            made = self._new_entry(node)
        else:
            made = self._kept_entry(node, entry)
            for key, path in self._sources(node).items():
                if entry.paths.get(key) != path or self.base != self.record.base:
                    made[key] = self._path(path)
            if self.base != self.record.base:
                self._relocate_files(made)
        if isinstance(node, GroupNode) and (node.children or "nodes" in made):
            made["nodes"] = self._nodes(node)
        if isinstance(node, SceneNode):
            made["scene"] = self._inner(node)
        return made

    def _inner(self, node: SceneNode) -> JsonItem:
        """Return an inner scene."""
        saver = _Saver(node.child, self.base, inner=True)
        made = saver.contents()
        self.problems += [f"node {node.id!r}: in its scene, {line}" for line in saver.problems]
        entry = self.record.nodes.get(node)
        own = () if entry is None else entry.item["scene"]
        return {k: v for k, v in made.items() if k in own or k not in ("dala", "$schema")}

    def _relocate_files(self, item: JsonItem) -> None:
        """Make the paths of fonts and parameters relative to the folder that is written to."""
        if "font" in item:
            item["font"] = _each(item["font"], lambda f: self._relocated(f, files.is_font_file(f)))
        if "params" in item:
            item["params"] = {
                k: self._relocated(v, files.is_file_param(k, v)) for k, v in item["params"].items()
            }

    def _relocated(self, value: JsonValue, is_file: bool) -> JsonValue:
        return self._path(str(self.record.base / value)) if is_file else value

    def _kept_entry(self, node: Node, entry: files.NodeEntry) -> JsonItem:
        """Return the file's entry of a node, with the values that changed since."""
        item, before, now = dict(entry.item), entry.state, node.saved_state()
        changed = {k for k, v in now.items() if not _equal(before.get(k), v)}
        changed -= {k for k in changed if (node.id, k.removeprefix("params.")) in self.animated}
        if self._left_layout(node):
            changed.update(_BOX)
        for names, keys in ((_BOX, _PLACEMENT), (_BORDER, {"border", *_BORDER})):
            if changed & set(names):
                item = {k: v for k, v in item.items() if k not in keys}
                item |= self._properties(node, names)
        for name in sorted(changed - {*_BOX, *_BORDER}):
            if name.startswith("params."):
                key = name.removeprefix("params.")
                value = self._param(node, key, now[name])
                item["params"] = {**item.get("params", {}), key: value}
            else:
                item.pop(name, None)
                item |= self._properties(node, (name,), defaults=name in before)
        if node.id in self.referenced:
            item.setdefault("id", node.id)
        return item

    def _new_entry(self, node: Node) -> JsonItem:
        """Return the entry of a node that did not come from a file."""
        made: JsonItem = {"type": node.type}
        if node.id != f"{node.type}-{node.serial}" or node.id in self.referenced:
            made["id"] = node.id
        for key, value in self._arguments(node).items():
            made[key] = self._path(value) if key in _path_keys(node) else t.plain_json(value)
        if isinstance(node, EffectNode) and node.params:
            made[node.EXTRA] = {k: self._param(node, k, v) for k, v in node.params.items()}
        if isinstance(node.parent, TimelineNode):
            clip, problems = node.parent.saved_clip(node)
            for problem in problems:
                self._report(node, problem)
            if "picture" in clip.get("transition", ()):
                clip["transition"]["picture"] = self._path(clip["transition"]["picture"])
            made |= clip
        return made | self._properties(node, node.property_values)

    def _properties(self, node: Node, names: Iterable[str], *, defaults: bool = False) -> JsonItem:
        """Return properties in file form; those with their default value only on request."""
        made: JsonItem = {}
        for name in names:
            item = node.PROPERTIES.get(name)
            if item is None or not item.saved:
                continue
            link = self.scene.followers.links.get(node.id)
            value = node.property_values[name] if link is None else link.own(name)
            always = item.required or name in node.ALWAYS_SAVED
            if defaults or always or value != item.default:
                is_font = isinstance(item.type, t.FontType)
                made[name] = _each(value, self._font) if is_font else item.type.dump(value)
        if "x" in made or "y" in made:
            made["position"] = [made.pop("x", 0), made.pop("y", 0)]
        moved = node.id in self.scene.followers.links or (node.id, "x") in self.animated
        place = node.kept_place() if isinstance(node, TextNode) and not moved else None
        if place and "x" in names:
            made |= {"position": place} | ({"margin": node.margin} if node.margin else {})
        sized = isinstance(node.PROPERTIES.get("size"), PairProperty)
        if sized and "width" in made and "height" in made:
            made["size"] = [made.pop("width"), made.pop("height")]
        return made

    def _font(self, font: PathLike | None) -> JsonValue:
        text = None if font is None else os.fspath(font)
        return self._path(text) if text and os.path.isfile(text) else text

    def _param(self, node: Node, name: str, value: t.Value) -> JsonValue:
        if isinstance(value, os.PathLike):
            return self._path(os.fspath(value))
        try:
            json.dumps(made := t.plain_json(value))
        except (TypeError, ValueError):
            entry = self.record.nodes.get(node)
            loaded = entry is not None and value is entry.state.get(f"params.{name}")
            if entry is not None and loaded and name in entry.item.get("params", {}):
                return entry.item["params"][name]  # the file it was loaded from
            if (
                isinstance(value, np.ndarray)
                and name in files.FILE_PARAMS
                and value.size <= files.MAX_LISTED
            ):
                return (value.astype(int) if value.dtype == bool else value).tolist()
            self._report(node, f"{name!r} is a {type(value).__name__}, which no file can name.")
            return None
        return made

    # sources --------------------------------------------------------------------------------------
    def _arguments(self, node: Node) -> t.Values:
        """Return the arguments of a node; arguments that no file can hold are reported."""
        made = {}
        for key, value in node.saved_arguments().items():
            if isinstance(value, NotNamed):
                self._report(
                    node, f"its {key} is {value.kind}, which no file can name. Use a path."
                )
            else:
                made[key] = value
        return made

    def _sources(self, node: Node) -> dict[str, str | int]:
        """Return the paths of a node from a file by key; text in place of a path is unchanged."""
        entry = self.record.nodes[node]
        found = {}
        for key, value in self._arguments(node).items():
            if key in _path_keys(node):
                text = os.fspath(value) if isinstance(value, os.PathLike) else value
                if isinstance(text, str) and is_text(text) and key in entry.paths:
                    text = entry.paths[key]
                found[key] = text
        return found

    def _path(self, path: t.Value) -> JsonValue:
        """Return a path as it is written: relative to the file, with forward slashes."""
        if isinstance(path, os.PathLike):
            path = os.fspath(path)
        if not isinstance(path, str) or scheme_of(path) is not None or is_text(path):
            return path
        full = os.path.abspath(path)
        if self.base is not None:
            with contextlib.suppress(ValueError):  # another drive
                full = os.path.relpath(os.path.realpath(full), self.base)
        return Path(full).as_posix()

    # layouts --------------------------------------------------------------------------------------
    def _nodes_of(self, item: JsonItem) -> list[Node]:
        nodes = item["nodes"]
        if isinstance(nodes, list):
            return [self.scene.nodes[id] for id in nodes if id in self.scene.nodes]
        return [n for n in self.record.nodes if n.parent is self.scene.container()]

    def _holds(self, item: JsonItem) -> bool:
        """Return True if the nodes of a layout are still where it put them."""
        found = self._nodes_of(item)
        if isinstance(item["nodes"], list) and len(found) < len(item["nodes"]):
            return False
        return not any(self._moved(node) for node in found)

    def _moved(self, node: Node) -> bool:
        entry, values = self.record.nodes.get(node), node.property_values
        return entry is None or any(
            entry.state.get(k) != values.get(k) and (node.id, k) not in self.animated for k in _BOX
        )

    def _left_layout(self, node: Node) -> bool:
        """Return True for a node of a layout that no longer holds."""
        gone = [i for i in self.record.data.get("layouts", ()) if i not in self.layouts]
        return node.id not in self.laid_out and any(node in self._nodes_of(item) for item in gone)

    # animations -----------------------------------------------------------------------------------
    def _animation(self, animation: Animation) -> JsonItem:
        if animation in self.record.animations:
            return self.record.animations[animation].item
        node = cast("Node", animation.node)
        made: JsonItem = {"node": node.id, "property": animation.property}
        at = f"animation of {node.id!r}, {animation.property!r}"
        if animation.on_end is not None:
            self.problems.append(f"{at}: on_end is a function, which no file can name.")
        if callable(animation.easing):
            self.problems.append(f"{at}: its easing is a function. Give it by name.")
        if animation.keyframes is None:
            first, last = (
                _animated_value(node, animation.property, v)
                for v in (animation.from_, animation.to)
            )
            made |= {"from": first, "to": last}
            if animation.by is None:
                made["duration"] = t.plain_json(animation.duration)
        else:
            frames = [list(frame) for frame in animation.keyframes]
            for frame in frames:
                if isinstance(frame[1], Gradient | DrawnPath):
                    frame[1] = _animated_value(node, animation.property, frame[1])
            if any(len(f) > 2 and callable(f[2]) for f in frames):
                self.problems.append(f"{at}: the easing of a keyframe is a function. Give a name.")
                frames = []
            made["keyframes"] = t.plain_json(frames)
            if frames and animation.by is None and animation.duration != frames[-1][0]:
                made["duration"] = t.plain_json(animation.duration)
        if isinstance(animation.by, Level):
            made["level"] = animation.by.facts()
        elif animation.by is not None:
            self.problems.append(f"{at}: it follows an object that no file can name.")
        defaults = {"easing": "linear", "delay": 0.0, "repeat": 0, "yoyo": False, "start": 0.0}
        for name, default in defaults.items():
            value = getattr(animation, name)
            if value not in (default, None) and not callable(value):
                made[name] = t.plain_json(value)
        return made

    def _follow(self, link: Follow) -> JsonItem | None:
        known = self.record.follows.get(link)
        if known is not None and self.base == self.record.base:
            return known
        made = save_follow(link, self._path)
        if made is None:
            self._report(link.node, "what it follows cannot be named in a file.")
        return made

    def _report(self, node: Node, problem: str) -> None:
        self.problems.append(f"node {node.id!r}: {problem}")


def _rate(rate: Fraction) -> JsonValue:
    return rate.numerator if rate.denominator == 1 else str(rate)


class _Setting(NamedTuple):
    """A setting of a scene in its file."""

    default: t.Value
    of: Callable[[Scene], t.Value]
    dump: Callable[[t.Value], JsonValue]
    #: Returns what the key of a file means.
    read: Callable[[JsonValue], t.Value] = lambda value: value


_SETTINGS: Final = {
    "fps": _Setting(30, lambda scene: scene.frame_rate, _rate, frame_rate),
    "background": _Setting(
        (0, 0, 0, 255), lambda scene: scene.background, t.hex_color,
        lambda value: t.ColorType().check("Scene", "background", value),
    ),
    "blend_space": _Setting("srgb", lambda scene: scene.blend_space, str),
    "duration": _Setting(None, lambda scene: scene.duration, t.plain_json),
}  # fmt: skip


# values -------------------------------------------------------------------------------------------
def _in_form_of(data: JsonItem, scene: Scene, now: JsonItem) -> JsonItem:
    """Return the contents in the form of the file that was loaded, where that means the same."""
    if not data:
        return now
    made: JsonItem = {k: data[k] for k in ("dala", "$schema") if k in data}
    for name in data:
        known = _SETTINGS.get(name)
        same = known is not None and known.read(data[name]) == known.of(scene)
        if same or name in ("width", "height"):
            made[name] = data[name]
        elif name in ("nodes", "animations", "layouts", "follows", "ducks"):
            made[name] = now.get(name, [])
        elif name in now:
            made[name] = now[name]
    return made | {k: v for k, v in now.items() if k not in made and k not in data}


def _id(animation: Animation) -> str:
    return str(getattr(animation.node, "id", ""))


def _parts(node: object, property: str) -> tuple[str, ...]:
    found = getattr(node, "PROPERTIES", {}).get(property)
    return found.names if isinstance(found, PairProperty) else ()


def _path_keys(node: Node) -> set[str]:
    return {
        argument.key or name
        for name, argument in node.ARGUMENTS.items()
        if isinstance(argument.type, t.PathType)
    }


def _animated_value(node: Node, property: str, value: t.Value) -> JsonValue:
    item = node.PROPERTIES.get(property)
    if item is None or isinstance(item, PairProperty):
        return t.hex_color(value) if property.endswith("color") else t.plain_json(value)
    return item.type.dump(value)


def _each(value: t.Value, change: Callable[[t.Value], JsonValue]) -> JsonValue:
    """Return a value, or each of several, changed."""
    return [change(v) for v in value] if isinstance(value, list | tuple) else change(value)
