"""The JSON document of an exported chain, with its shaders and data beside it or inside."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from dala.gpu.compute.recording import Expr, Plan
from dala.web.controls import Control
from dala.web.explore import Variant, WebPlan

#: The version of the format, which the runtime checks.
VERSION: Final = 1

#: Constants of more bytes are files of their own.
INLINE_BYTES: Final = 2048

#: A JSON document.
Document: TypeAlias = dict[str, Any]

#: Files by their names.
Files: TypeAlias = dict[str, bytes]


@dataclass
class ChainWriter:
    """Writes plans as a document, each shader and constant once."""

    plan: WebPlan
    inline: bool
    _shaders: dict[str, int] = field(default_factory=dict)
    _data: dict[bytes, int] = field(default_factory=dict)

    def write(self, title: str) -> tuple[Document, Files]:
        """Return the document and the files that it names."""
        variants = {
            format: [self._variant(v) for v in found]
            for format, found in self.plan.variants.items()
        }
        files: Files = {}
        shaders: list[Document] = [{"text": text} for text in self._shaders]
        data: list[Document] = [
            {"base64": base64.b64encode(content).decode()} for content in self._data
        ]
        if not self.inline:
            for number, text in enumerate(self._shaders):
                shaders[number] = {"file": f"shaders/{number}.wgsl"}
                files[f"shaders/{number}.wgsl"] = text.encode()
            for number, content in enumerate(self._data):
                if len(content) > INLINE_BYTES:
                    data[number] = {"file": f"data/{number}.bin"}
                    files[f"data/{number}.bin"] = content
        document: Document = {
            "format": "dala-chain",
            "version": VERSION,
            "name": self.plan.name,
            "title": title,
            "size": None if self.plan.size is None else list(self.plan.size),
            "controls": [control_json(c) for c in self.plan.controls],
            "notes": self.plan.notes,
            "roles": list(self.plan.roles),
            "generator": self.plan.generator,
            "shaders": shaders,
            "data": data,
            "plans": variants,
        }
        return document, files

    def _variant(self, variant: Variant) -> Document:
        plan: Plan = variant.plan
        buffers: list[Document] = []
        for b in plan.buffers:
            made: Document = {"bytes": expr_json(b.nbytes)}
            if b.role:
                made["role"] = b.role
            if b.table is not None:
                made["table"] = expr_json(b.table)
            elif b.data is not None:
                made["data"] = self._data.setdefault(b.data, len(self._data))
            buffers.append(made)
        steps: list[Document] = []
        for s in plan.steps:
            if not s.source:
                steps.append({"copy": list(s.buffers)})
                continue
            step: Document = {
                "shader": self._shaders.setdefault(s.source, len(self._shaders)),
                "buffers": list(s.buffers),
                "block": base64.b64encode(s.block).decode(),
                "groups": expr_json(s.groups),
            }
            if s.words:
                step["set"] = [[at, kind, expr_json(e)] for at, kind, e in s.words]
            steps.append(step)
        return {
            "when": expr_json(variant.when),
            "buffers": buffers,
            "steps": steps,
            "shape": expr_json(tuple(plan.shape)),
            "dtype": plan.dtype,
            "swaps": [list(pair) for pair in plan.swaps],
        }


def expr_json(expr: Expr | tuple[Any, ...]) -> Any:
    """Return an expression as JSON: a number, a name, or a list of an operator and operands.

    Guards, and tuples of them or of expressions, are lists too.

    >>> expr_json(("*", "w", ("//", "h", 2)))
    ['*', 'w', ['//', 'h', 2]]
    """
    return [expr_json(e) for e in expr] if isinstance(expr, tuple) else expr


def control_json(c: Control) -> Document:
    """Return a control as JSON."""
    made: Document = {
        "name": c.name,
        "filter": c.filter,
        "param": c.param,
        "type": c.type,
        "symbols": list(c.symbols),
        "values": list(c.values),
    }
    if c.type not in ("choice", "bool"):
        made |= {"low": c.low, "high": c.high, "step": c.step}
    for name in ("unit", "doc", "label", "why"):
        if getattr(c, name):
            made[name] = getattr(c, name)
    if c.choices:
        made["choices"] = list(c.choices)
    return made
