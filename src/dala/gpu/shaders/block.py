"""The block of a WGSL shader, which holds its parameters: a dict as bytes in WGSL's layout."""

from __future__ import annotations

import re
import struct
from typing import Final

import numpy as np

from dala.errors import ParameterError
from dala.gpu.compute.params import check_params, missing
from dala.gpu.shaders.wgsl import Wgsl, without_comments
from dala.typing import Params, ParamValue

#: Bytes of width and height, with which every block begins.
HEAD: Final = 8

_FORMATS: Final = {"f32": "f", "i32": "i", "u32": "I", "f": "f", "i": "i", "u": "I"}
_TYPE: Final = re.compile(r"(?P<one>f32|i32|u32)|vec([234])(?:<([fiu]32)>|([fiu]))")
_MEMBER: Final = re.compile(r"(\w+)\s*:\s*([\w<>]+)$")


def pack_block(wgsl: Wgsl, params: Params) -> bytes:
    """Return parameters by name as the bytes behind width and height in the shader's block.

    Raises:
        ShaderError: The block is missing, or has members other than numbers and vectors.
        ParameterError: A parameter is unknown, missing, or has another type.
    """
    binding = wgsl.block(f"the parameters {', '.join(map(str, params))}" if params else "")
    if binding is None:
        return b""
    members = _members(wgsl, binding.name)
    check_params(wgsl.name, params, list(members))
    data = bytearray()
    at, widest = HEAD, 4
    for name, (form, count) in members.items():
        align = 4 * (4 if count == 3 else count)
        start, widest = -(-at // align) * align, max(widest, align)
        at = start + 4 * count
        data += bytes(at - HEAD - len(data))
        value = params.get(name)
        if value is None:
            raise missing(wgsl.name, name)
        _pack_into(data, start - HEAD, wgsl.name, name, form * count, value)
    data += bytes(-(HEAD + len(data)) % widest)  # a struct is as long as a multiple of it
    return bytes(data)


def _members(wgsl: Wgsl, variable: str) -> dict[str, tuple[str, int]]:
    """Return the struct format and number of components of each member but width and height."""
    text = without_comments(wgsl.source)
    found = re.search(rf"\bvar\s*<[^<>]*>\s*{variable}\s*:\s*(\w+)", text)
    body = found and re.search(rf"\bstruct\s+{found[1]}\s*\{{([^{{}}]*)\}}", text)
    if not body:
        raise wgsl.error(
            f"the block {variable!r} is no struct, so its members have no names. Pass bytes"
        )
    members: dict[str, tuple[str, int]] = {}
    for line in (re.sub(r"\s+", " ", part).strip() for part in body[1].split(",")):
        if not line:
            continue
        member = _MEMBER.match(line)
        kind = _TYPE.fullmatch(member[2]) if member else None
        if member is None or kind is None:
            raise wgsl.error(
                f"the member {line!r} of the block is neither a number nor a vector of 32 bits. "
                "Pass bytes"
            )
        scalar = kind["one"] or kind[3] or kind[4]
        members[member[1]] = (_FORMATS[scalar], int(kind[2] or 1))
    head = list(members.items())[:2]
    if [member for _, member in head] != [("I", 1)] * 2:
        raise wgsl.error("the block must begin with width and height, two members of u32")
    for name, _ in head:
        del members[name]
    return members


def _pack_into(
    data: bytearray, at: int, shader: str, name: str, form: str, value: ParamValue
) -> None:
    items = np.asarray(value).reshape(-1).tolist()
    whole = form[0] in "iI"
    try:
        if len(items) != len(form) or isinstance(value, str):
            raise ValueError(name)
        numbers = [int(item) if whole and int(item) == item else item for item in items]
        struct.pack_into(f"<{form}", data, at, *numbers)
    except (TypeError, ValueError, OverflowError, struct.error):
        noun = {"i": "int", "I": "int of at least 0", "f": "number"}[form[0]]
        one = f"{'an' if whole else 'a'} {noun}"
        many = f"{len(form)} {noun.replace('int', 'ints').replace('number', 'numbers')}"
        raise ParameterError.invalid(shader, name, one if len(form) == 1 else many, value) from None
