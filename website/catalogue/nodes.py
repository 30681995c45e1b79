"""A page for every type of scene node."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import dala.media.scene.nodes.builtin
from dala.media.scene.nodes.node import Node
from dala.media.scene.nodes.properties import REQUIRED, Property
from dala.media.scene.nodes.registry import NODE_TYPES
from website.catalogue.pictures import Pictures
from website.docstrings import inline, parse, table
from website.reference import linker, shown_signature, signature_of

_HEAD = """\
import dala
from dala.media import Scene

with Scene(480, 270, background="#101624", fps=25) as scene:
"""

#: A program for each type: what its scene holds, and the time at which it is rendered.
PROGRAMS = {
    "audio": """\
    tone = audio.tone(220, 2, amplitude=0.5).fade_out(1.5)
    scene.add_audio(tone, volume=0.8, fade_in=0.1)                # heard, not drawn
    scene.add_image(tone.waveform(), position=(40, 60), size=(400, 150))
    result = scene.render(1)
""",
    "effect": """\
    scene.add_image(dala.samples.photo("coffee"), size=(480, 270), fit="cover")
    scene.add_effect("gaussian_blur", sigma=8.0, position=(0, 150), size=(480, 120))   # the backdrop
    scene.add_text("blurred below", size=36, position=(24, 180))
    result = scene.render(0)
""",
    "scene": """\
    inner = Scene(240, 135, background="teal", fps=25)
    inner.add_text("a scene", size=32, position="center", anchor="center")
    scene.add_scene(inner, position=(60, 40), rotation=-8)
    scene.add_scene(inner, position=(240, 120), scale=0.8, opacity=0.7)
    result = scene.render(0)
""",
    "group": """\
    card = scene.add_group(position=(90, 60), size=(300, 150), rotation=6)
    card.add_overlay(color="white", size=(300, 150), radius=16)
    card.add_text("one card", size=36, color="navy", position=(30, 20))
    card.add_text("moves and turns as a whole", size=18, color="gray", position=(30, 90))
    result = scene.render(0)
""",
    "image": """\
    scene.add_image(dala.samples.photo("coffee"), size=(480, 270), fit="cover")
    scene.add_image(
        dala.samples.photo("chelsea"), position=(280, 130), size=(170, 113), radius=12,
        border=(3, "white"), shadow=True,
    )
    result = scene.render(0)
""",
    "overlay": """\
    scene.add_overlay(color="tomato", position=(40, 60), size=(180, 60), radius=30)
    scene.add_overlay(color="#ffd54f80", position=(150, 90), size=(120, 120), radius=60)
    scene.add_overlay(color="white", position=(320, 60), size=(110, 150), opacity=0.3)
    result = scene.render(0)
""",
    "shape": """\
    star = dala.gpu.Path.star(70, 70, 64, points=7)
    scene.add_shape(star, fill="gold", stroke="white", width=4, position=(60, 60), rotation=12)
    ring = dala.gpu.Path.circle(60, 60, 54)
    scene.add_shape(ring, stroke="tomato", width=10, trim=(0.1, 0.8), position=(280, 70))
    result = scene.render(0)
""",
    "svg": """\
    logo = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 4"><circle cx="2" cy="2" r="2" fill="teal"/></svg>'
    with open("logo.svg", "w") as file:
        file.write(logo)
    scene.add_svg("logo.svg", width=160, position=(160, 55), rotation=15)
    result = scene.render(0)
""",
    "text": """\
    scene.add_text("Good evening", size=52, weight="bold", position=(30, 40), shadow=True)
    scene.add_text("Text wraps in its box, and is shaped.", size=24, width=300, position=(30, 130))
    result = scene.render(0)
""",
    "subtitles": """\
    scene.add_image(dala.samples.photo("coffee"), size=(480, 270), fit="cover")
    scene.add_subtitles("1\\n00:00:00,000 --> 00:00:02,000\\nAnother cup, please!", size=24)
    result = scene.render(1)
""",
    "timeline": """\
    show = dala.media.Timeline(transition=("wipe", 1, {"angle": 30, "softness": 0.2}), duration=3)
    show.add(dala.samples.photo("coffee"))
    show.add(dala.samples.photo("chelsea"))
    scene.add_timeline(show, fill="cover")
    result = scene.render(2.5)               # in the middle of the transition
""",
    "video": """\
    scene.add_video(dala.samples.video("chelsea"), size=(480, 270), fit="cover")
    scene.add_video(
        dala.samples.video("bars"), pip=True, pip_position="bottom-right", radius=12,
        border=(3, "white"), shadow=True,
    )
    result = scene.render(1)
""",
}

#: A node of each type as scene files have it.
FILES = {
    "audio": '{"type": "audio", "source": "music.wav", "volume": 0.8, "fade_in": 0.1}',
    "effect": """\
{"type": "effect", "filter": "gaussian_blur", "params": {"sigma": 8.0},
 "position": [0, 150], "size": [480, 120]}""",
    "group": """\
{"type": "group", "position": [90, 60], "size": [300, 150], "rotation": 6, "nodes": [
  {"type": "overlay", "color": "white", "size": [300, 150], "radius": 16},
  {"type": "text", "text": "one card", "size": 36, "color": "navy", "position": [30, 20]}]}""",
    "image": '{"type": "image", "source": "photo.png", "size": [480, 270], "fit": "cover"}',
    "overlay": '{"type": "overlay", "color": "tomato", "position": [40, 60], "size": [180, 60], "radius": 30}',
    "scene": """\
{"type": "scene", "position": [60, 40], "rotation": -8, "scene": {
  "width": 240, "height": 135, "background": "teal",
  "nodes": [{"type": "text", "text": "a scene", "size": 32, "position": [20, 40]}]}}""",
    "shape": '{"type": "shape", "path": "M0 0 L90 30 L20 80 Z", "fill": "gold", "position": [60, 60]}',
    "subtitles": '{"type": "subtitles", "source": "talk.srt", "size": 24}',
    "svg": '{"type": "svg", "source": "logo.svg", "width": 160, "position": [160, 55]}',
    "text": """\
{"type": "text", "text": "Good evening", "size": 52, "weight": "bold",
 "position": [30, 40], "shadow": true}""",
    "timeline": """\
{"type": "timeline", "fill": "cover", "nodes": [
  {"type": "image", "source": "photo.png", "duration": 3},
  {"type": "video", "source": "talk.mp4", "transition": ["wipe", 1, {"angle": 30}]}]}""",
    "video": '{"type": "video", "source": "talk.mp4", "size": [480, 270], "fit": "cover"}',
}


def scene_file(name: str) -> str:
    """Return a scene file with one node of a type."""
    inner = FILES[name].replace("\n", "\n    ")
    return f'{{"dala": 2, "width": 480, "height": 270, "nodes": [\n    {inner}]}}'


#: The properties that nodes have in common.
_SHARED = {name: item for name, item in vars(Node).items() if isinstance(item, Property)}


def program(name: str) -> str:
    """Return the program of a node type."""
    text = _HEAD + PROGRAMS[name]
    if "audio." in text:
        text = text.replace("import Scene", "import Scene, audio")
    if "dala." not in PROGRAMS[name]:
        text = text.removeprefix("import dala\n")
    return text


def pages(pictures: Pictures) -> dict[str, tuple[str, str]]:
    """Return the pages of all node types, and their list."""
    rows = [(f"[`add_{name}`]({name}.md)", _summary(kind)) for name, kind in NODE_TYPES.items()]
    lines = [
        "# Scene nodes",
        "",
        "What a scene is made of. Each type has a method of scenes, groups and timelines, and the same properties in scene files.",
        "",
        *table(("method", ""), rows),
        "## Properties of all nodes that are drawn",
        "",
        *_properties(_SHARED),
        "Most are animated with `scene.add_animation`; see [animation](../../media/animation.md) and [scenes](../../media/scenes.md).",
    ]
    found = {"index": ("Scene nodes", "\n".join(lines))}
    for name, kind in NODE_TYPES.items():
        if name in PROGRAMS:
            pictures.of(f"catalogue/nodes/{name}.webp", program(name))
        found[name] = (name, "\n".join(_page(name, kind)))
    return found


def _summary(kind: type[Node]) -> str:
    return parse(kind.__doc__).summary


def _page(name: str, kind: type[Node]) -> Iterator[str]:
    page = f"catalogue/nodes/{name}.md"
    link = linker(page)
    doc = parse(kind.__doc__, link)
    yield from (f"# {name}", "", doc.summary, "", doc.body, "")
    if name in PROGRAMS:
        yield from (f"![What the program below renders: {name}]({name}.webp)", "")
        yield from ("## Python", "", "```python", program(name).rstrip(), "```", "")
    if name in FILES:
        yield from ("## Scene file", "", "```json", scene_file(name), "```", "")
        yield from ("```sh", "dala compose scene.json -o out.mp4", "```", "")
        yield from ("More: [scene files](../../media/scene-files.md).", "", "## Signature", "")
    method = f"dala.media.scene.Scene.add_{name}"
    yield from (f"Reference: {link(method)}", "")
    scene_method = getattr(dala.media.Scene, f"add_{name}")
    yield from (
        "```python",
        shown_signature(f"add_{name}", signature_of(scene_method), "scene"),
        "```",
        "",
    )
    yield from ("## Arguments", "")
    rows = []
    for argument, held in kind.ARGUMENTS.items():
        default = "required" if held.default is REQUIRED else f"`{held.default!r}`"
        rows.append(
            (f"`{argument}`", f"`{held.type.annotation}`", default, inline(held.description))
        )
    yield from table(("argument", "type", "default", ""), rows)
    own = {n: item for n, item in kind.PROPERTIES.items() if item is not _SHARED.get(n)}
    if own:
        yield from ("## Properties", "", *_properties(own))
    shared = ", ".join(f"`{name}`" for name in kind.PROPERTIES if name not in own)
    if shared:
        every = "[all nodes](index.md#properties-of-all-nodes-that-are-drawn)"
        yield from (f"And those of {every}: {shared}.", "")
    if kind.EXTRA:
        yield from (f"`**{kind.EXTRA}`: {inline(kind.EXTRA_DESCRIPTION)}", "")
    source = inspect.getsourcefile(kind) or ""
    yield from (f"Declared in `{source[source.rfind('src/dala') :]}`.", "")


def _properties(items: dict[str, Property]) -> list[str]:
    rows = []
    for name, item in items.items():
        facts = [
            item.unit or "",
            _range(item.low, item.high),
            "animated" if item.animatable else "",
        ]
        known = "; ".join(filter(None, facts))
        default = "required" if item.required else f"`{item.default!r}`"
        text = inline(item.description) + (f" ({known})" if known else "")
        rows.append((f"`{name}`", f"`{item.type.annotation}`", default, text))
    return table(("property", "type", "default", ""), rows)


def _range(low: float, high: float) -> str:
    """Return bounds as text; those of types that are not numbers are empty."""
    if low > high or (low == float("-inf") and high == float("inf")):
        return ""
    if low == float("-inf"):
        return f"{high:g} or less"
    return f"{low:g} or more" if high == float("inf") else f"{low:g} to {high:g}"
