"""The catalogue: filters, operations, nodes, easings, transitions, models and commands.

Every page is generated from the declaration of what it describes. Its Python runs when the site is
built, and what it makes is the picture on the page.
"""

from __future__ import annotations

from website.catalogue import commands, easings, filters, models, nodes, operations, transitions
from website.catalogue.pictures import Pictures

FOLDER = "catalogue"

#: The parts in the order of the navigation: folder, title, generator of its pages.
PARTS = (
    ("filters", "Filters", filters.pages),
    ("operations", "Operations", operations.pages),
    ("nodes", "Scene nodes", nodes.pages),
    ("transitions", "Transitions", transitions.pages),
    ("easings", "Easings", easings.pages),
    ("models", "Models", models.pages),
    ("commands", "Commands", commands.pages),
)


def pages(pictures: Pictures) -> dict[str, tuple[str, str]]:
    """Return every page by its path: title and Markdown."""
    found = {f"{FOLDER}/index.md": ("Overview", "")}
    rows = []
    for folder, title, generate in PARTS:
        made = generate(pictures)
        for name, page in made.items():
            found[f"{FOLDER}/{folder}/{name}.md"] = page
        entries = len(made) - 1 or ""
        rows.append(f"| [{title}]({folder}/index.md) | {entries} | {_first(made['index'][1])} |")
    lines = [
        "# Catalogue",
        "",
        "Everything that is built in, with its parameters and their ranges, from the declarations in the code.",
        "Each program was run when this site was built, and made the picture beside it.",
        "",
        "| | pages | |",
        "|---|---|---|",
        *rows,
        "",
        "## Filters at a glance",
        "",
        filters.wall(),
    ]
    found[f"{FOLDER}/index.md"] = ("Overview", "\n".join(lines))
    return found


def _first(text: str) -> str:
    """Return the first paragraph below the title, in one line."""
    return " ".join(text.split("\n\n")[1].split())
