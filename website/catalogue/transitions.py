"""One page with all transitions."""

from __future__ import annotations

import pathlib

from dala.media.transitions.declarations import TRANSITIONS
from website.catalogue.pictures import Pictures
from website.docstrings import table

IMAGES = pathlib.Path(__file__).parents[2] / "docs" / "images" / "transitions"


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
        'second = gpu.resize(dala.samples.photo("chelsea"), size=(400, 600))',
        'half = Transition("wipe", 1, angle=30, softness=0.2).mix(first, second, 0.5)',
        "```",
        "",
        "On the command line: `dala concat a.mp4 b.mp4 -o out.mp4 --transition wipe=1`. Every transition also takes an "
        "[easing](../easings/index.md). See [times and transitions](../../media/transitions.md).",
        "",
    ]
    for name, kind in TRANSITIONS.items():
        lines += [f"## {name}", "", kind.doc, ""]
        if kind.parameters:
            rows = [(f"`{p.name}`", f"`{p.default!r}`", p.range, p.doc) for p in kind.parameters]
            lines += table(("parameter", "default", "range", ""), rows)
        if (IMAGES / f"{name}.png").exists():
            lines += [f"![{name}, in five steps](../../images/transitions/{name}.png)", ""]
    return {"index": ("Transitions", "\n".join(lines))}
