"""JSON as people write it."""

from __future__ import annotations

import json
from typing import Final

from dala.media.scene.nodes.json_types import JsonValue

#: Characters of a line.
_LINE: Final = 96


def format_json(value: JsonValue, indent: str = "") -> str:
    """Return JSON as people write it: short lists and objects on one line.

    >>> print(format_json({"size": [1, 2], "nodes": []}))
    {
      "size": [1, 2],
      "nodes": []
    }
    """
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value:
        return flat
    if indent and _is_flat(value) and len(indent) + len(flat) <= _LINE:
        return flat
    inner = indent + "  "
    if isinstance(value, dict):
        lines = [f"{inner}{json.dumps(k)}: {format_json(v, inner)}" for k, v in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    lines = [f"{inner}{format_json(v, inner)}" for v in value]
    return "[\n" + ",\n".join(lines) + f"\n{indent}]"


def _is_flat(value: JsonValue) -> bool:
    """Return True for lists and objects that contain no objects."""
    items = value.values() if isinstance(value, dict) else value
    return not any(isinstance(i, dict) or (isinstance(i, list) and not _is_flat(i)) for i in items)
