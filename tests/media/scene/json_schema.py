"""A validator for the keywords of JSON Schema that the scene schema uses; others fail."""

from __future__ import annotations

import re
from typing import Any

_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
_NOTES = {"$schema", "$defs", "title", "description"}


def valid(schema: Any, value: Any, root: Any = None) -> bool:
    """Whether a value is what a schema says."""
    root = schema if root is None else root
    if isinstance(schema, bool):
        return schema
    return all(_word(word, schema, value, root) for word in schema if word not in _NOTES)


def _word(word: str, schema: Any, value: Any, root: Any) -> bool:
    rule = schema[word]
    if word == "$ref":
        return valid(root["$defs"][rule.removeprefix("#/$defs/")], value, root)
    if word == "type":
        return _is(rule, value)
    if word == "enum":
        return any(value == item and type(value) is type(item) for item in rule)
    if word == "const":
        return value == rule
    if word == "anyOf":
        return any(valid(part, value, root) for part in rule)
    if word == "allOf":
        return all(valid(part, value, root) for part in rule)
    if word == "if":
        return not valid(rule, value, root) or valid(schema["then"], value, root)
    if word in ("minimum", "maximum", "exclusiveMinimum"):
        good = {"minimum": lambda: value >= rule, "maximum": lambda: value <= rule}
        return not _is("number", value) or good.get(word, lambda: value > rule)()
    if word in ("minLength", "pattern"):
        if not isinstance(value, str):
            return True
        return len(value) >= rule if word == "minLength" else re.search(rule, value) is not None
    if word in ("minItems", "maxItems", "prefixItems", "items"):
        return not isinstance(value, list) or _items(word, schema, value, root)
    if word in ("required", "properties", "additionalProperties"):
        return not isinstance(value, dict) or _keys(word, schema, value, root)
    assert word == "then", f"the schema uses {word!r}, which this does not know"
    return True


def _is(type: str, value: Any) -> bool:
    if type in ("number", "integer"):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and (type == "number" or value == int(value))
    return isinstance(value, _TYPES[type])


def _items(word: str, schema: Any, value: list[Any], root: Any) -> bool:
    rule = schema[word]
    if word == "minItems":
        return len(value) >= rule
    if word == "maxItems":
        return len(value) <= rule
    if word == "prefixItems":
        return all(valid(s, v, root) for s, v in zip(rule, value, strict=False))
    rest = value[len(schema.get("prefixItems", ())) :]
    return all(valid(rule, item, root) for item in rest)


def _keys(word: str, schema: Any, value: dict[str, Any], root: Any) -> bool:
    rule = schema[word]
    if word == "required":
        return all(name in value for name in rule)
    if word == "properties":
        return all(valid(rule[k], v, root) for k, v in value.items() if k in rule)
    known = schema.get("properties", {})
    return all(valid(rule, v, root) for k, v in value.items() if k not in known)
