"""A page for every model that loads by name."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

from dala.ml.models import NAMES, find_model
from dala.ml.spec import ModelSpec
from website.catalogue.pictures import Pictures
from website.docstrings import inline, table

ROOT = pathlib.Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images" / "models"
WEIGHTS = ROOT / "src" / "dala" / "ml" / "weights" / "shipped"
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
#: What the options of ``predict`` mean.
OPTIONS = {
    "apart": "pixels of the input between two people; nearer ones count as one",
    "detector_score": "the least score of the model that finds where they are",
    "iris": "whether the irises are refined, too",
    "most": "how many are returned at most, the best first",
    "overlap": "share (intersection over union) above which the lower of two boxes is dropped",
    "part_score": "the least score of the point from which a person is assembled",
    "score": "the least score of what is returned",
}


def option_range(default: float) -> str:
    """Return the values that an option with this default takes, as ``predict`` checks them."""
    if isinstance(default, bool):
        return "True or False"
    if isinstance(default, int):
        return "1 or more, int"
    return "0 to 1" if default <= 1 else "0 or more"


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
    return found | {s.name: (s.name, "\n".join(_page(s, pictures))) for s in specs}


def _page(spec: ModelSpec, pictures: Pictures) -> Iterator[str]:
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
            ("option", "default", "range", ""),
            [(f"`{k}`", f"`{v}`", option_range(v), OPTIONS[k]) for k, v in spec.options.items()],
        )
    photo = {"classify": "chelsea", "segment": "chelsea"}.get(spec.task, "astronaut")
    shipped = _shipped(spec)
    yield from (
        "## Python",
        "",
        "```py",
        _program(spec, photo).rstrip(),
        "```",
        "",
    )
    if shipped:
        yield from ("It prints:", "", "```text", pictures.printed(_program(spec, photo)), "```", "")
    yield from (
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


def _shipped(spec: ModelSpec) -> bool:
    """Return whether the weights come with the package."""
    return (WEIGHTS / f"{spec.name}.onnx").is_file()


def _program(spec: ModelSpec, photo: str) -> str:
    remark = (
        "its weights come with Dala" if _shipped(spec) else "fetches the weights the first time"
    )
    return (
        "import dala\n"
        "from dala.ml.gpu import load_model, predict\n"
        "\n"
        f'model = load_model("{spec.name}")    # {remark}\n'
        f'result = predict(model, dala.samples.photo("{photo}"))\n'
        "print(result)\n"
    )
