"""One page with all transitions."""

from __future__ import annotations

import pathlib
from typing import Any

from dala.errors.synonyms import words_for
from dala.media.transitions.declarations import TRANSITIONS
from website.catalogue.pictures import Pictures
from website.docstrings import table

IMAGES = pathlib.Path(__file__).parents[2] / "docs" / "images" / "transitions"

#: The parameters that the picture of each transition shows, and its calls give.
EXAMPLES: dict[str, dict[str, Any]] = {
    "cut": {},
    "dissolve": {},
    "fade": {"color": "white"},
    "wipe": {"angle": 30, "softness": 0.15},
    "slide": {},
    "push": {"direction": "up"},
    "zoom": {},
    "iris": {"softness": 0.05},
    "luma": {"picture": "matte.png", "softness": 0.1},
}


def call(name: str) -> str:
    """Return the example of a transition in Python.

    >>> call("wipe")
    'Transition("wipe", 1, angle=30, softness=0.15)'
    """
    given = [f'"{name}"'] if name == "cut" else [f'"{name}"', "1"]
    for key, value in EXAMPLES[name].items():
        given.append(f'{key}="{value}"' if isinstance(value, str) else f"{key}={value}")
    return f"Transition({', '.join(given)})"


def option(name: str) -> str:
    """Return the example of a transition as the option of ``dala concat``.

    >>> option("wipe")
    '--transition wipe=1,angle=30,softness=0.15'
    """
    given = [f"{k}={v}" for k, v in EXAMPLES[name].items()]
    return f"--transition {','.join([name if name == 'cut' else f'{name}=1', *given])}"


def pages(pictures: Pictures) -> dict[str, tuple[str, str]]:
    """Return the page of the transitions."""
    lines = [
        "# Transitions",
        "",
        "How one clip of a timeline gives way to the next: a name, `(name, seconds)`, `(name, seconds, parameters)`, or a kernel of two "
        "pictures with a parameter `t`.",
        "",
        "```python",
        "import dala",
        "from dala.media import Transition, gpu",
        "",
        'first = dala.samples.photo("coffee")',
        'second = gpu.resize(dala.samples.photo("chelsea"), 600, 400)',
        'half = Transition("wipe", 1, angle=30, softness=0.15).mix(first, second, 0.5)',
        "```",
        "",
        "Timelines take a `Transition`, its name or a tuple: "
        '`Timeline(transition=("wipe", 1, {"angle": 30}))`. Every transition also takes an '
        '[easing](../easings/index.md): `easing="ease-out"`. See [times and transitions](../../media/transitions.md).',
        "",
    ]
    for name, kind in TRANSITIONS.items():
        lines += [f"## {name}", "", kind.doc, ""]
        if words := words_for(name):
            lines += [f"Also known as: {', '.join(words)}.", ""]
        if kind.parameters:
            rows = [(f"`{p.name}`", f"`{p.default!r}`", p.range, p.doc) for p in kind.parameters]
            lines += table(("parameter", "default", "range", ""), rows)
        lines += ["```py", call(name), "```", ""]
        lines += ["```sh", f"dala concat a.mp4 b.mp4 -o out.mp4 {option(name)}", "```", ""]
        if (IMAGES / f"{name}.png").exists():
            lines += [
                f"![{name} at a quarter, half and three quarters of its time](../../images/transitions/{name}.png)",
                "",
            ]
    return {"index": ("Transitions", "\n".join(lines))}
