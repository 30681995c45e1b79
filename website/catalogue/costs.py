"""What things cost, from the results of the benchmarks."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator
from functools import cache
from typing import Any

from website.docstrings import table

RESULTS = pathlib.Path(__file__).parents[2] / "benchmarks" / "results"
#: Where each topic was measured, and on what.
_PLACES = {
    "filters": "1920x1080 RGBA, {cores} CPU cores",
    "operations": "f32, {cores} CPU cores",
    "gpu_rows": "one H200",
}


@cache
def _results(topic: str) -> dict[str, Any]:
    path = RESULTS / f"{topic}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"results": {}}


def section(name: str) -> Iterator[str]:
    """Yield the section of a page about what a filter or operation costs, if it was measured."""
    figures = list(rows(name))
    if figures:
        yield from (
            "## Cost",
            "",
            "Minimum over interleaved rounds; [method](../../project/speed.md#method).",
            "",
        )
        yield from table(("measured", "Dala", "peers"), figures)


def rows(name: str) -> Iterator[tuple[str, str, str]]:
    """Yield the figures of a filter or operation: what was measured, our time, those of peers."""
    for topic, place in _PLACES.items():
        found = _results(topic)
        where = place.format(cores=found.get("machine", {}).get("cores", "?"))
        for row, result in found["results"].items():
            words = row.removeprefix("4K ").replace(",", " ").split()
            if not words or words[0] != name or "->" in row or row.startswith("4K blur,"):
                continue
            levels = result.get("levels", {"": result})
            times = next(iter(levels.values()))
            times = times.get("times", times)
            ours = [f"{_ms(own.get('times', own).get('dala'))} {at}" for at, own in levels.items()]
            peers = [
                f"{peer} {_ms(times[peer])}"
                for peer in times
                if peer != "dala" and _ms(times[peer])
            ]
            yield f"{row}: {where}", ", ".join(ours).strip(), ", ".join(peers)


def _ms(times: Any) -> str:
    if not isinstance(times, dict) or "min_ms" not in times:
        return ""
    return f"{times['min_ms']:.3g} ms"
