"""The table of tolerances as Markdown, for docs/concepts/precision.md.

``python -m tests.support.tolerance_table`` writes it into the page.
"""

from __future__ import annotations

import math
import pathlib

from tests.support.tolerances import TOLERANCES, Tolerance

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "concepts" / "precision.md"
BEGIN, END = "<!-- tolerances: begin -->", "<!-- tolerances: end -->"
CLASSES = {
    "exact": "`+ - *`, comparisons",
    "div": "`/`, `sqrt`",
    "exp": "`exp log sigmoid tanh`",
    "trig": "`sin cos tan atan2`",
    "pow": "`pow`",
    "program": "a program",
}


def shown(tolerance: Tolerance) -> str:
    """Return a tolerance as text."""
    if not tolerance.ulps:
        return "exact"
    text = f"{tolerance.ulps:g} ulp{'' if tolerance.ulps == 1 else 's'}"
    if tolerance.absolute > 1e-30:
        text += f" or 2^{math.log2(tolerance.absolute):.0f}"
    return text


def page(text: str) -> str:
    """Return the page with the current table."""
    lines = ["", f"| engine | dtype | {' | '.join(CLASSES.values())} |", "|---" * 8 + "|"]
    for engine, columns in TOLERANCES.items():
        for dtype, held in columns.items():
            cells = " | ".join(shown(held[kind]) for kind in CLASSES)
            lines.append(f"| `{engine}` | `{dtype}` | {cells} |")
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n" + "\n".join(lines) + f"\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
