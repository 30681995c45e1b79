"""Write a kernel as a GLSL ES 3.00 fragment shader.

Statements are those of the WGSL writer; expressions, types and declarations are GLSL's. Images are
textures of floats, the first row first; the shader counts rows from the top, as kernels do. Numbers
are those of GLSL: functions and quotients are as exact as its compiler makes them.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from dala.errors import ParameterError
from dala.gpu.compute.engines.webgpu.wgsl.body import WgslBody, slots_of
from dala.gpu.compute.engines.webgpu.wgsl.expressions import bare
from dala.gpu.compute.engines.webgpu.wgsl.names import Names
from dala.gpu.compute.lang.ir import For, Program, Value, values

#: GLSL's types of the IR's.
TYPES: Final = {"f32": "float", "s32": "int", "u32": "uint", "bool": "bool"}
_INFIX: Final = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<", "le": "<=",
    "gt": ">", "ge": ">=",
}  # fmt: skip
_LOGIC: Final = {"and": ("&&", "&"), "or": ("||", "|"), "xor": ("!=", "^")}
_CALLS: Final = {
    "min": "min", "max": "max", "abs": "abs", "floor": "floor", "ceil": "ceil", "sqrt": "sqrt",
    "round": "roundEven", "exp": "exp", "log": "log", "sin": "sin", "cos": "cos", "tan": "tan",
    "atan": "atan", "atan2": "atan", "isnan": "isnan", "pow": "power", "idiv": "quotient",
    "mod": "remainder",
}  # fmt: skip
_BITS: Final = {
    ("f32", "s32"): "floatBitsToInt", ("f32", "u32"): "floatBitsToUint",
    ("s32", "f32"): "intBitsToFloat", ("u32", "f32"): "uintBitsToFloat",
}  # fmt: skip
_HELPERS: Final = {
    "power": """float power(float x, float y) {
    if (y == 0.0) return 1.0;
    if (x >= 0.0) return pow(x, y);
    if (floor(y) != y) return uintBitsToFloat(0x7fc00000u);
    return mod(y, 2.0) == 0.0 ? pow(-x, y) : -pow(-x, y);
}""",
    "quotient": """int quotient(int a, int b) {
    if (b == 0) return 0;
    int q = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
uint quotient(uint a, uint b) { return b == 0u ? 0u : a / b; }""",
    "remainder": """int remainder(int a, int b) {
    if (b == 0) return 0;
    int r = a % b;
    return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}
uint remainder(uint a, uint b) { return b == 0u ? 0u : a % b; }""",
}
#: Words that GLSL keeps for itself, beside those of WGSL.
_WORDS: Final = """
attribute varying in out inout float int uint void input output sampler uniform buffer main
precision highp lowp mediump image texture filter common partition active half fixed noise power
quotient remainder texel size color turn last
"""


class GlslBody(WgslBody):
    """Writes the statements of a program as GLSL."""

    def lines(self) -> list[str]:
        """Return the statements, indented by one level, ending with the return."""
        self._prepare()
        for slot in slots_of(self.program):
            name = self._slots[slot] = self.names.new(slot.name)
            zero = {"f32": "0.0", "bool": "false", "u32": "0u"}.get(slot.type, "0")
            self._line(f"{TYPES[slot.type]} {name} = {zero};")
        self._own = set()
        self._block(self.program.body, self.program.result)
        found = [bare(self._use(v)) for v in self.program.result]
        found = found * 3 if len(found) == 1 else found
        self._line(f"return vec4({', '.join(found if len(found) == 4 else [*found, '1.0'])});")
        return self._lines

    def _bind(self, value: Value, text: str) -> None:
        name = self.names.number()
        self._line(f"{TYPES[value.type]} {name} = {bare(text)};")
        self._text[value] = name

    def _for(self, loop: For) -> None:
        start, stop = bare(self._use(loop.start)), self._use(loop.stop)
        self._write_pending()
        turn, index, test = self.names.new("turn"), self._slots[loop.index], "<>"[loop.step < 0]
        last = self.names.new("last")
        self._line(f"int {last} = {bare(stop)};")
        more = f"{turn} {test} {last}"
        self._line(f"for (int {turn} = {start}; {more}; {turn} += {loop.step}) {{")
        self._depth += 1
        self._line(f"{index} = {turn};")
        self._depth -= 1
        self._nested(loop.body)
        self._line("}")

    def _use(self, value: Value) -> str:
        if value.op == "const":
            return _literal(value.attr, value.type)
        self._pending.pop(value, None)
        return self._text[value]

    def _expression(self, value: Value) -> str:
        op, type_ = value.op, value.type
        args = [self._use(a) for a in value.args]
        if op == "param":
            return self.params[value.attr]
        if op == "position":
            return self.positions[value.attr]
        if op == "dim":
            arg, axis = value.attr
            size = "size" if arg < 0 else f"textureSize({self.readers[arg]}, 0)"
            return f"{size}.{'yx'[axis]}"
        if op == "get":
            return self._slots[value.attr]
        if op in ("pixel", "image"):
            arg, channel = value.attr
            place = f"ivec2(x + {args[0]}, y + {args[1]})" if args else "ivec2(x, y)"
            return f"texel({self.readers[arg]}, {place}).{'rgba'[channel]}"
        if op in _INFIX:
            return f"({args[0]} {_INFIX[op]} {args[1]})"
        if op in _LOGIC:
            return f"({args[0]} {_LOGIC[op][type_ != 'bool']} {args[1]})"
        if op in ("shl", "shr"):
            amount = f"({args[1]} & {_literal(31, value.args[1].type)})"
            return f"({args[0]} {'<<' if op == 'shl' else '>>'} {amount})"
        if op == "not":
            return f"({'!' if type_ == 'bool' else '~'}{args[0]})"
        if op == "neg":
            return f"(-{args[0]})"
        if op == "select":
            return f"({args[0]} ? {args[1]} : {args[2]})"
        if op == "bits":
            return f"{_BITS.get((value.args[0].type, type_), TYPES[type_])}({bare(args[0])})"
        if op == "cast":
            inner = bare(args[0])
            if type_ == "s32" and value.args[0].type == "f32" and value.attr != "in_range":
                inner = f"clamp({inner}, -2147483648.0, 2147483520.0)"
            return f"{TYPES[type_]}({inner})"
        if op in _CALLS:
            name = _CALLS[op]
            if name in _HELPERS:
                self.helpers.add(name)
            return f"{name}({', '.join(map(bare, args))})"
        raise refused(self.program.name, f"it reads {op}s")


def _literal(number: Any, type_: str) -> str:
    if type_ == "bool":
        return "true" if number else "false"
    if type_ == "u32":
        return f"{int(number)}u"
    if type_ == "s32":
        shown = str(int(number)) if number != -(1 << 31) else "-2147483647 - 1"
        return f"({shown})" if number < 0 else shown
    value = np.float32(number)
    if not math.isfinite(value):
        return f"uintBitsToFloat(0x{int(value.view(np.uint32)):08x}u)"
    text = str(value)
    text = text if set(text) & set(".en") else f"{text}.0"
    return f"({text})" if value < 0 else text


def refused(name: str, why: str) -> ParameterError:
    """Return the error of a kernel that GLSL has no form of."""
    return ParameterError(
        f"{name}: GLSL has kernels of pixels with 32-bit numbers, but {why}. Read pixels and "
        "images, and write pixels.",
        call=name,
    )


def glsl_parts(program: Program) -> tuple[str, list[str], list[str]]:
    """Return the functions of a program as GLSL, and the names of its textures and parameters.

    The last function, ``vec4 kernel(int x, int y)``, reads the textures and the uniforms by these
    names, and ``ivec2 size``, the size of the output.
    """
    wide = {v.type for v in values(program.body)} - TYPES.keys()
    if wide or not program.out.pixels or any(a.kind == "element" for a in program.args):
        raise refused(program.name, f"it has {wide.pop()} numbers" if wide else "it has elements")
    names = Names()
    for word in (*_WORDS.split(), "x", "y"):
        names.new(word)
    images = [names.new(a.name) for a in program.args]
    params = [
        names.new(p.name if p.component is None else f"{p.name}_{p.component}")
        for p in program.params
    ]
    body = GlslBody(
        program, names, loaded={}, positions=("y", "x"), readers=dict(enumerate(images)),
        params=tuple(params), dims={},
    )  # fmt: skip
    lines = body.lines()
    functions = [_HELPERS[name] for name in sorted(body.helpers)]
    kernel = "\n".join(["vec4 kernel(int x, int y) {", *lines, "}"])
    return "\n\n".join([*functions, kernel]), images, params


_FETCH: Final = """vec4 texel(sampler2D image, ivec2 at) {
    return texelFetch(image, clamp(at, ivec2(0), textureSize(image, 0) - 1), 0);
}"""


def glsl(program: Program) -> str:
    """Return a program as a GLSL ES 3.00 fragment shader."""
    text, images, params = glsl_parts(program)
    uniforms = [f"uniform sampler2D {name};" for name in images]
    uniforms += [
        f"uniform {TYPES[p.type]} {name};" for p, name in zip(program.params, params, strict=True)
    ]
    return "\n".join([
        "#version 300 es", f"// {program.name}: rows are counted from the top",
        "precision highp float;", "precision highp int;", "precision highp sampler2D;", "",
        "uniform ivec2 size; // of the output", *uniforms, "out vec4 color;", "",
        *([_FETCH, ""] if images else []), text, "",
        "void main() {",
        "    ivec2 at = ivec2(gl_FragCoord.xy);",
        "    color = kernel(at.x, size.y - 1 - at.y);",
        "}", "",
    ])  # fmt: skip
