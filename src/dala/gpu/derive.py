"""Functions made from the rows of the command protocol: encoders, and see ``draw.py`` for calls.

A function first packs its values as they are, with a color that was converted before. Values that
this fails for are checked and converted one by one. The functions are Python source, compiled once,
so that a call costs what a handwritten function costs, and has its signature.
"""

from __future__ import annotations
import __future__

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from dala.gpu.color import known
from dala.gpu.protocol import CommandRow, flag, rgba

_UNUSUAL: Final = (struct.error, TypeError, KeyError, OverflowError, ValueError)

_ENCODER: Final = """
def {name}({arguments}) -> bytes:
    try:
        return {pack}
    except unusual:
        return encode({values})
"""


def encoders(rows: Sequence[CommandRow], module: dict[str, Any]) -> None:
    """Add to a module the functions ``encode_<name>`` that it does not have."""
    for row in rows:
        name = f"encode_{row.name}"
        if name not in module:
            summary, examples = described(row, "encode_")
            doc = f"Return the command to {summary[0].lower()}{summary[1:]}{examples}"
            arguments = [*row.kinds]
            module[name] = compiled(_ENCODER, row, name, arguments, doc, module, row.encode)


def compiled(
    template: str,
    row: CommandRow,
    name: str,
    arguments: list[str],
    doc: str,
    module: dict[str, Any],
    encode: Callable[[Sequence[object]], bytes],
    more: str = "",
) -> object:
    """Return a function of a module, compiled from a template for a row."""
    kinds = [*row.kinds.values()]
    typed = [
        f"{a}: {kind.python}" + (f" = {row.defaults[field]!r}" if field in row.defaults else "")
        for a, (field, kind) in zip(arguments, row.kinds.items(), strict=True)
    ]
    packed = [f"known[{a}]" if k is rgba else a for a, k in zip(arguments, kinds, strict=True)]
    values = f"({', '.join(arguments)},)" if arguments else "()"
    pack = f"pack({', '.join([str(row.opcode), *packed])})"
    if row.struct is None or flag in kinds:  # nothing to try first
        pack = f"encode({values})"
    elif not kinds:
        pack = repr(bytes([row.opcode]))
    body = template.format(name=name, arguments=", ".join(typed) + more, pack=pack, values=values)
    packing = row.struct and row.struct.pack
    outside = {"pack": packing, "encode": encode, "known": known, "unusual": _UNUSUAL}
    body = f"def make({', '.join(outside)}):{body}return {name}".replace("\n", "\n ")
    made: dict[str, Any] = {}
    flags = __future__.annotations.compiler_flag
    exec(compile(body, f"<command {row.name}>", "exec", flags, dont_inherit=True), module, made)
    function = made["make"](**outside)
    function.__qualname__, function.__doc__ = name, doc
    return function


def described(row: CommandRow, prefix: str) -> tuple[str, str]:
    """Return a row's summary, and the rest of its docstring for an encoder or for a call.

    The examples of encoders are those that mention ``encode_`` before a surface.
    """
    summary, *rest = row.doc.strip().replace("\n    ", "\n").split("\n\n")
    encodes = [text.lstrip("> ").startswith(("encode_", "decode(")) for text in rest]
    kept = [text for text, is_one in zip(rest, encodes, strict=True) if is_one == bool(prefix)]
    if prefix:
        summary = re.split("[.;:] ", summary)[0].removesuffix(".") + "."
    return summary, "".join(f"\n\n{text.rstrip()}" for text in kept) + "\n"
