"""Scenes written as scene files."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import secrets
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dala.errors import SceneFileError
from dala.gpu.compute.kernel import find
from dala.gpu.compute.runnable import Runnable
from dala.media.scene.boxes import room
from dala.media.scene.file.record import Record, is_file_param, is_font_file, record_of, state
from dala.media.scene.file.table import VERSION
from dala.media.scene.nodes.effect import EffectNode
from dala.media.scene.nodes.group import GroupNode
from dala.media.scene.nodes.image import ImageNode
from dala.media.scene.nodes.properties import PLACES, Parts
from dala.media.scene.nodes.text import SubtitlesNode, TextNode
from dala.media.scene.nodes.video import SceneNode, VideoNode

if TYPE_CHECKING:
    from dala.media.scene.animation.animation import Animation
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.scene import Scene

#: Keys of a file that say where a node lies and how large it is.
_PLACE: Final = frozenset((
    "x", "y", "width", "height", "position", "size", "scale", "pip", "pip_position", "pip_size",
    "margin",
))  # fmt: skip
_BOX: Final = ("x", "y", "width", "height", "scale")
_BORDER: Final = ("border_width", "border_color")
#: What add_subtitles would choose otherwise.
_SUBTITLES: Final = ("x", "y", "size", "align", "outline_width")
#: Columns of a line.
_WIDE: Final = 96


def save_scene(scene: Scene, path: str | os.PathLike[str]) -> None:
    """Writes a scene to a file, which appears under its name when it is whole.

    Paths in it are relative to the file.

    Raises:
        SceneFileError: something in the scene cannot be named in a file, such as an array.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"Scene.save: there is no folder '{target.parent}'. Make it first.")
    text = written(scene_to_dict(scene, base=target.resolve().parent, name=target.name))
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        part.write_text(text + "\n", encoding="utf-8")
        part.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def scene_to_dict(
    scene: Scene, *, base: str | os.PathLike[str] | None = None, name: str = "scene"
) -> dict[str, Any]:
    """A scene as what is in a scene file.

    A scene that came from a file is written in that file's words as far as they still hold;
    animated properties count as unchanged.

    Args:
        scene: the scene.
        base: the folder that paths are to be relative to; left out, those of a scene from a file
            stay relative to it, and others are absolute.
        name: of the file, for errors.

    Raises:
        SceneFileError: something in it cannot be named in a file; ``problems`` has all of it.
    """
    scene._check_open("scene_to_dict")
    saver = _Saver(scene, None if base is None else Path(base).resolve())
    made = saver.scene()
    if saver.told:
        raise SceneFileError(name, saver.told)
    return copy.deepcopy(made)


class _Saver:
    def __init__(self, scene: Scene, base: Path | None, *, inside: bool = False) -> None:
        self.scene_ = scene
        self.record = record_of(scene) or Record({}, Path())
        known = record_of(scene) is not None
        self.base = self.record.base if base is None and known and not inside else base
        self.told: list[str] = []
        self.animations = [a for a in scene.animator if not a._muted]
        #: Properties that animations have, by node.
        self.moving = {
            (_id(a), part)
            for a in self.animations
            for part in (a.property, *_parts(a.node, a.property))
        }
        self.layouts = [i for i in self.record.data.get("layouts", ()) if self._holds(i)]
        laid = [self._laid(item) for item in self.layouts]
        self.laid = {node.id for nodes in laid for node in nodes}
        self.used = {_id(a) for a in self.animations} | {
            e.input.id for e in scene.nodes.values() if isinstance(e, EffectNode) and e.input
        }

    def scene(self) -> dict[str, Any]:
        scene, said = self.scene_, self.record.data
        now: dict[str, Any] = {"dala": VERSION, "width": scene.width, "height": scene.height}
        fps = _rate(scene)
        if fps != 30:
            now["fps"] = fps
        if scene._background != (0, 0, 0, 255):
            now["background"] = _hex(scene._background)
        if scene._blend_space != "srgb":
            now["blend_space"] = scene._blend_space
        if scene.duration is not None:
            now["duration"] = _plain(scene.duration)
        now["nodes"] = self._nodes(scene._root)
        rest = [self._animation(a) for a in self.animations if a not in self.record.after]
        now |= {"animations": rest} if rest else {}
        now |= {"layouts": self.layouts} if self.layouts else {}
        return _in_words(scene, now, said)

    # nodes ----------------------------------------------------------------------------------------
    def _nodes(self, group: GroupNode) -> list[dict[str, Any]]:
        home = group.id if group.parent is not None else None
        made = self._placed(home, None)
        for node in group.children:
            made += [self._node(node), *self._placed(home, node.id)]
        return made

    def _placed(self, home: str | None, before: str | None) -> list[dict[str, Any]]:
        """The animations that stand among the nodes there."""
        after = self.record.after
        found = [a for a in self.animations if a in after and after[a] == (home, before)]
        return [self._animation(a) for a in found]

    def _node(self, node: Node) -> dict[str, Any]:
        said = self.record.nodes.get(node)
        if said is None:
            made = self._fresh(node)
        else:
            made = self._kept(node, dict(said.item))
            path = self._source(node)
            if "source" in made or path is not None:
                same = path == said.path and self.base == self.record.base
                made["source"] = made["source"] if same else self._path(path)
            if self.base != self.record.base:
                self._move_files(made)
        if isinstance(node, GroupNode) and (node.children or "nodes" in made):
            made["nodes"] = self._nodes(node)
        if isinstance(node, SceneNode):
            made["scene"] = self._inside(node)
        return made

    def _inside(self, node: SceneNode) -> dict[str, Any]:
        """A scene inside the scene."""
        saver = _Saver(node.child, self.base, inside=True)
        made = saver.scene()
        self.told += [f"node {node.id!r}: in its scene, {line}" for line in saver.told]
        said = self.record.nodes.get(node)
        own = () if said is None else said.item["scene"]
        return {k: v for k, v in made.items() if k in own or k not in ("dala", "$schema")}

    def _move_files(self, item: dict[str, Any]) -> None:
        """Files that an entry names besides its source, as seen from where it is written to."""
        if "font" in item:
            fonts = item["font"]
            many = [
                self._moved_file(f, is_font_file(f))
                for f in (fonts if isinstance(fonts, list) else [fonts])
            ]
            item["font"] = many if isinstance(fonts, list) else many[0]
        if "params" in item:
            item["params"] = {
                k: self._moved_file(v, is_file_param(k, v)) for k, v in item["params"].items()
            }

    def _moved_file(self, value: Any, file: bool) -> Any:
        return self._path(str(self.record.base / value)) if file else value

    def _kept(self, node: Node, item: dict[str, Any]) -> dict[str, Any]:
        """What the file said, but for what has changed since."""
        before, now = self.record.values[node], state(node)
        changed = {k for k, v in now.items() if before.get(k) != v}
        changed -= {k for k in changed if (node.id, k.removeprefix("params.")) in self.moving}
        if changed & set(_BOX) or self._was_laid(node):
            item = {k: v for k, v in item.items() if k not in _PLACE}
            item |= self._properties(node, _BOX)
        if changed & set(_BORDER):
            item = {k: v for k, v in item.items() if k not in ("border", *_BORDER)}
            item |= self._properties(node, _BORDER)
        for name in sorted(changed - {*_BOX, *_BORDER}):
            if name.startswith("params."):
                key = name.removeprefix("params.")
                value = self._param(node, key, now[name])
                item["params"] = {**item.get("params", {}), key: value}
            else:
                item.pop(name, None)
                item |= self._properties(node, (name,), default=name in before)
        if node.id in self.used:
            item.setdefault("id", node.id)
        return item

    def _fresh(self, node: Node) -> dict[str, Any]:
        """A node that was made by a call."""
        made: dict[str, Any] = {"type": node.type}
        if node.id != f"{node.type}-{node.serial}" or node.id in self.used:
            made["id"] = node.id
        if (source := self._source(node)) is not None:
            made["source"] = self._path(source)
        if isinstance(node, VideoNode):
            made |= {k: _plain(v) for k, v in node.options.items()}
        if isinstance(node, SubtitlesNode) and node.offset:
            made["offset"] = _plain(node.offset)
        if isinstance(node, GroupNode) and node.canvas != room(node):
            made["canvas"] = _plain(node.canvas)
        if isinstance(node, EffectNode):
            made["filter"] = node.name
            if isinstance(node.filter, Runnable) and find(node.name) is not node.filter:
                self._tell(node, f"the kernel {node.name!r} is not registered under its name.")
            if node.input is not None:
                made["input"] = node.input.id
            if node.params:
                made["params"] = {k: self._param(node, k, v) for k, v in node.params.items()}
        names = [n for n, p in node.PROPERTIES.items() if not isinstance(p, Parts)]
        if isinstance(node, SubtitlesNode):
            names.remove("text")
        return made | self._properties(node, names)

    def _properties(self, node: Node, names: Any, *, default: bool = False) -> dict[str, Any]:
        """Properties as they are now; those that are as if left out only with ``default``."""
        made: dict[str, Any] = {}
        for name in names:
            if name not in node._values:
                continue
            value = node._values[name]
            always = ("text",) if node.type != "subtitles" else _SUBTITLES
            if default or value != node.PROPERTIES[name].default or name in always:
                made[name] = self._value(name, value)
        if "x" in made or "y" in made:
            x, y = made.pop("x", 0), made.pop("y", 0)
            made["position"] = [x, y]
        if "width" in made and "height" in made and not isinstance(node, TextNode):
            made["size"] = [made.pop("width"), made.pop("height")]
        return made

    def _value(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        if name == "anchor":
            found = [place for place, point in PLACES.items() if point == value]
            return found[0] if found else _plain(value)
        if name == "shadow":
            return [*_plain(value[:3]), _hex(value[3])]
        if name in ("color", "background") or name.endswith("_color"):
            return _hex(value)
        if name == "font":
            fonts = [self._font(f) for f in (value if isinstance(value, tuple) else (value,))]
            return fonts if isinstance(value, tuple) else fonts[0]
        return _plain(value)

    def _font(self, font: Any) -> str:
        text = os.fspath(font)
        return str(self._path(text)) if os.path.isfile(text) else text

    def _param(self, node: Node, name: str, value: Any) -> Any:
        if isinstance(value, os.PathLike):
            return self._path(os.fspath(value))
        try:
            json.dumps(made := _plain(value))
        except (TypeError, ValueError):
            said = self.record.nodes.get(node)
            if said is not None and name in said.item.get("params", {}):
                return said.item["params"][name]  # a file that it was loaded from
            self._tell(node, f"{name!r} is a {type(value).__name__}, which no file can name.")
            return None
        return made

    # what is shown --------------------------------------------------------------------------------
    def _source(self, node: Node) -> Any:
        """What a node shows: a path, a URL, a camera, or the text of subtitles."""
        said = self.record.nodes.get(node)
        if isinstance(node, VideoNode):
            if isinstance(node.stream, str | int) and not isinstance(node.stream, bool):
                return node.stream
            if isinstance(node.stream, os.PathLike):
                return os.fspath(node.stream)
            what = type(node.stream).__name__
            self._tell(node, f"its frames come from a {what}, which no file can name.")
        elif isinstance(node, SubtitlesNode):
            from dala.media.subtitles import format_subtitles

            return format_subtitles(node.cues) if said is None else said.path
        elif isinstance(node, ImageNode) and node._shown is not None:
            key = None if node.texture is None else node.texture.key
            if isinstance(key, str | os.PathLike) and os.path.isfile(key):
                return os.fspath(key)
            self._tell(node, "it shows an array, which no file can name. Add it by its path.")
        return None

    def _path(self, path: Any) -> Any:
        """A path as it is written: relative to the file, with slashes."""
        if not isinstance(path, str) or "://" in path or "\n" in path:
            return path
        full = os.path.abspath(path)
        if self.base is not None:
            with contextlib.suppress(ValueError):  # another drive
                full = os.path.relpath(os.path.realpath(full), self.base)
        return Path(full).as_posix()

    # layouts --------------------------------------------------------------------------------------
    def _laid(self, item: dict[str, Any]) -> list[Node]:
        nodes = item["nodes"]
        if isinstance(nodes, list):
            return [self.scene_.nodes[id] for id in nodes if id in self.scene_.nodes]
        return [n for n in self.record.nodes if n.parent is self.scene_._root]

    def _holds(self, item: dict[str, Any]) -> bool:
        """Whether the nodes of a layout still lie where it laid them."""
        found = self._laid(item)
        if isinstance(item["nodes"], list) and len(found) < len(item["nodes"]):
            return False
        return not any(self._moved(node) for node in found)

    def _moved(self, node: Node) -> bool:
        before = self.record.values.get(node)
        return before is None or any(
            before.get(k) != node._values.get(k) and (node.id, k) not in self.moving for k in _BOX
        )

    def _was_laid(self, node: Node) -> bool:
        """True for a node of a layout that does not hold any more."""
        gone = [i for i in self.record.data.get("layouts", ()) if i not in self.layouts]
        return node.id not in self.laid and any(node in self._laid(item) for item in gone)

    # animations -----------------------------------------------------------------------------------
    def _animation(self, animation: Animation) -> dict[str, Any]:
        if animation in self.record.animations:
            return self.record.animations[animation]
        node: Any = animation.node
        made: dict[str, Any] = {"node": node.id, "property": animation.property}
        at = f"animation of {node.id!r}, {animation.property!r}"
        if animation.on_end is not None:
            self.told.append(f"{at}: on_end is a function, which no file can name.")
        if callable(animation.easing):
            self.told.append(f"{at}: its easing is a function. Give it by name.")
        if animation.keyframes is None:
            course = animation._course
            values = [_mixed(animation.property, v) for v in course.values]
            made |= {"from": values[0], "to": values[-1], "duration": _plain(course.duration)}
        else:
            frames = [list(frame) for frame in animation.keyframes]
            if any(len(f) > 2 and callable(f[2]) for f in frames):
                self.told.append(f"{at}: an easing of a keyframe is a function. Give it by name.")
                frames = []
            made["keyframes"] = _plain(frames)
            if frames and animation.duration != frames[-1][0]:
                made["duration"] = _plain(animation.duration)
        facts = {"easing": "linear", "delay": 0.0, "repeat": 0, "yoyo": False, "start": 0.0}
        for name, default in facts.items():
            value = getattr(animation, name)
            if value not in (default, None) and not callable(value):
                made[name] = _plain(value)
        return made

    def _tell(self, node: Node, problem: str) -> None:
        self.told.append(f"node {node.id!r}: {problem}")


# values -------------------------------------------------------------------------------------------
def _in_words(scene: Scene, now: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """What the whole scene is, in the file's words where they mean the same."""
    if not said:
        return now
    from dala.media.scene.clock import frame_rate
    from dala.media.scene.nodes.properties import color

    made: dict[str, Any] = {k: said[k] for k in ("dala", "$schema") if k in said}
    same: dict[str, Callable[[Any], bool]] = {
        "background": lambda v: color(v, "") == scene._background,
        "fps": lambda v: frame_rate(v) == scene._clock.rate,
        "blend_space": lambda v: v == scene._blend_space,
        "duration": lambda v: v == scene.duration,
    }
    for name in said:
        if name in ("width", "height") or (name in same and same[name](said[name])):
            made[name] = said[name]
        elif name in ("nodes", "animations", "layouts"):
            made[name] = now.get(name, [])
        elif name in now:
            made[name] = now[name]
    return made | {k: v for k, v in now.items() if k not in made and k not in said}


def _id(animation: Animation) -> str:
    node: Any = animation.node
    return str(node.id)


def _rate(scene: Scene) -> Any:
    rate: Fraction = scene._clock.rate
    return rate.numerator if rate.denominator == 1 else str(rate)


def _parts(node: Any, property: str) -> tuple[str, ...]:
    found = getattr(node, "PROPERTIES", {}).get(property)
    return found.names if isinstance(found, Parts) else ()


def _mixed(property: str, value: Any) -> Any:
    if property.endswith("color") or property == "background":
        return _hex(value)
    if property == "shadow":
        return [*_plain(value[:3]), _hex(value[3])]
    return _plain(value)


def _hex(color: Any) -> str:
    r, g, b, a = (round(n) for n in color)
    return f"#{r:02x}{g:02x}{b:02x}" + ("" if a == 255 else f"{a:02x}")


def _plain(value: Any) -> Any:
    """Numbers and lists as JSON has them; whole numbers without a point."""
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if hasattr(value, "item") and not getattr(value, "shape", ()):
        value = value.item()
    if isinstance(value, Fraction):
        value = float(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53:
        return int(value)
    return value


def written(value: Any, indent: str = "") -> str:
    """JSON as people write it: what is short stands in one line.

    >>> print(written({"size": [1, 2], "nodes": []}))
    {
      "size": [1, 2],
      "nodes": []
    }
    """
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value:
        return flat
    if indent and _flat(value) and len(indent) + len(flat) <= _WIDE:
        return flat
    inner = indent + "  "
    if isinstance(value, dict):
        lines = [f"{inner}{json.dumps(k)}: {written(v, inner)}" for k, v in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    lines = [f"{inner}{written(v, inner)}" for v in value]
    return "[\n" + ",\n".join(lines) + f"\n{indent}]"


def _flat(value: Any) -> bool:
    """True for what holds no objects."""
    items = value.values() if isinstance(value, dict) else value
    return not any(isinstance(i, dict) or (isinstance(i, list) and not _flat(i)) for i in items)
