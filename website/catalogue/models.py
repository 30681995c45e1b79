"""A page for every model that loads by name."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

from dala.ml.models import NAMES, find_model
from dala.ml.spec import ModelSpec
from website.catalogue.pictures import Pictures
from website.docstrings import inline, table

IMAGES = pathlib.Path(__file__).parents[2] / "docs" / "images" / "models"
#: Pictures of results in the guide, with what they show, by the task.
_SHOWN = {
    "classify": ("found.jpg", "Results of models on three photographs"),
    "detect": ("bodies.jpg", "Objects and bodies, found in a photograph"),
    "faces": ("landmarks.jpg", "Points of faces and hands"),
    "hands": ("landmarks.jpg", "Points of faces and hands"),
    "poses": ("bodies.jpg", "Objects and bodies, found in a photograph"),
    "segment": ("found.jpg", "Results of models on three photographs"),
    "matte": ("background.jpg", "A photograph whose background was blurred and replaced"),
}
#: Commands that use models of a task.
COMMANDS = {
    "classify": "dala classify photo.jpg --model {name}",
    "detect": "dala detect street.mp4 --out boxes.mp4 --model {name}",
    "faces": "dala faces talk.mp4 out.mp4 --blur --model {name}",
    "hands": "dala hands talk.mp4 --out hands.mp4",
    "poses": "dala poses dance.mp4 --out bodies.mp4 --model {name}",
    "segment": "dala segment photo.jpg --out classes.png --model {name}",
    "matte": "dala background call.mp4 out.mp4 --blur 12 --model {name}",
}


def pages(pictures: Pictures) -> dict[str, tuple[str, str]]:
    """Return the pages of all models, and their table."""
    specs = [spec for name in NAMES if (spec := find_model(name)) is not None]
    rows = [
        (f"[`{s.name}`]({s.name}.md)", s.finds, s.result, s.license.partition(" (")[0])
        for s in specs
    ]
    lines = [
        "# Models",
        "",
        "Models that load by name; their weights are fetched on first use, checked by their hash and kept.",
        "",
        *table(("name", "finds", "result", "license"), rows),
        "Any ONNX file loads by its path. See the guide [Models](../../models.md).",
    ]
    found = {"index": ("Models", "\n".join(lines))}
    return found | {s.name: (s.name, "\n".join(_page(s))) for s in specs}


def _page(spec: ModelSpec) -> Iterator[str]:
    yield from (f"# {spec.name}", "", f"{spec.title}.", "")
    rows = [
        ("finds", spec.finds),
        ("task", spec.task),
        ("result", spec.result),
        ("license", spec.license),
    ]
    if all(spec.size):
        layout = "height, width, channels" if spec.layout == "nhwc" else "channels, height, width"
        rows.append(("input", f"{spec.size[1]} x {spec.size[0]} pixels; {layout}"))
    rows.append(("prepared with", ", ".join(f"{k}={v!r}" for k, v in spec.prepare.items())))
    if spec.labels:
        rows.append(("labels", spec.labels))
    if spec.copyleft:
        rows.append(
            (
                "note",
                "The license asks those who distribute work with it to license their own work alike.",
            )
        )
    yield from table(("", ""), [(k, inline(str(v))) for k, v in rows])
    if spec.options:
        yield from ("## Options of predict", "")
        yield from table(
            ("option", "default"), [(f"`{k}`", f"`{v}`") for k, v in spec.options.items()]
        )
    photo = {"classify": "chelsea", "segment": "chelsea"}.get(spec.task, "astronaut")
    yield from (
        "## Python",
        "",
        "```py",
        "import dala",
        "from dala.ml.gpu import load_model, predict",
        "",
        f'model = load_model("{spec.name}")             # fetches the weights the first time',
        f'result = predict(model, dala.samples.photo("{photo}"))',
        "print(result)",
        "```",
        "",
        "## Command line",
        "",
        "```sh",
        f"dala models pull {spec.name}",
    )
    if spec.task in COMMANDS:
        yield COMMANDS[spec.task].format(name=spec.name)
    yield from ("```", "")
    shown = _SHOWN.get(spec.task)
    if shown and (IMAGES / shown[0]).exists():
        yield from (f"![{shown[1]}](../../images/models/{shown[0]})", "")
