"""Make a kernel of a fragment shader, and of a vertex shader if there is one.

The vertex shader runs at the corners of the picture, in each pixel; its outputs are interpolated
over the two triangles that a GPU would draw. If it sets ``gl_Position``, the pixel's place in the
picture is found from the projection.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from dala.arguments import Fitting, Text
from dala.budget import Limits
from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.lang.parser import declare
from dala.gpu.compute.lang.source import KernelSource
from dala.shaders.glsl.terms import leaves
from dala.shaders.glsl.tree import (
    VEC2,
    VEC4,
    VOID,
    DeclaredName,
    GlslFunctionText,
    GlslNode,
    GlslType,
    UnitTree,
    walk,
)
from dala.shaders.glsl.unit import GlslSource, Unit, helper_lines, parsed

SAMPLER: Final = GlslType("sampler")
#: Arguments of the calls of shaders.
TEXT: Final = Text("a str")
NAMED: Final = Fitting(
    "a dict with names", lambda v: isinstance(v, Mapping) and all(isinstance(n, str) for n in v)
)
Lines = list[tuple[int, str, int]]


class Given(NamedTuple):
    """A variable that a shader is given: an image, or a parameter declared as ``param`` says."""

    name: str
    kind: GlslType
    param: str = ""
    label: str = ""


@dataclass(frozen=True)
class ShaderText:
    """The parts of a kernel."""

    name: str
    fragment: str
    given: Sequence[Given]
    vertex: str = ""
    #: Values of variables that are constants of this kernel.
    values: Mapping[str, float] = field(default_factory=dict)
    #: Edges of images, by name; "clamp" for others.
    edges: Mapping[str, str] = field(default_factory=dict)
    #: Further variables: their types, and values as text of the kernel language.
    special: Mapping[str, tuple[GlslType, str]] = field(default_factory=dict)
    #: Whether the kernel has all images as inputs, and not only those that it reads.
    whole: bool = False
    #: Whether images have mipmaps, which ISF has not.
    levels: bool = False
    doc: str = ""


_PLACE: Final = (
    "h, w = shape()",
    "g_gl_FragCoord = vec4(x + 0.5, h - y - 0.5, 0.0, 1.0)",
    "g_RENDERSIZE = vec2(f32(w), f32(h))",
    "g_isf_FragNormCoord = g_gl_FragCoord.xy / g_RENDERSIZE",
)
_SPECIAL: Final = {"gl_FragCoord": VEC4, "RENDERSIZE": VEC2, "isf_FragNormCoord": VEC2}
_INIT: Final = ("isf_vertShaderInit", "vv_vertShaderInit")
_CORNERS: Final = ("0.0, 0.0", "1.0, 0.0", "0.0, 1.0", "1.0, 1.0")


def identifier(text: str) -> str:
    """Return a name of Python for a text.

    >>> identifier("3d Rotate")
    '_3d_Rotate'
    """
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "shader"
    if keyword.iskeyword(name) or name == "range":
        return f"{name}_shader"
    return f"_{name}" if name[0].isdigit() else name


def parameter(name: str) -> str:
    """Return the name of a kernel's parameter for that of a variable.

    >>> parameter("level"), parameter("range")
    ('level', 'range_')
    """
    if name.startswith("__"):
        return f"x{name}"
    return f"{name}_" if keyword.iskeyword(name) or name in ("range", "math", "shade_") else name


def make_kernel(text: ShaderText, limits: Limits | None = None) -> Kernel:
    """Translate a shader."""
    source = KernelSource(text.fragment, text.name)
    tree = parsed(source, text.fragment)
    outside = {g.name: g.kind for g in text.given} | _SPECIAL
    outside |= dict.fromkeys(text.values, GlslType("int"))
    outside |= {name: kind for name, (kind, _) in text.special.items()}
    color = next((v.name for v in tree.variables if "out" in v.words), "gl_FragColor")
    if color == "gl_FragColor":
        tree.variables.insert(0, DeclaredName(color, VEC4, 1))
    used: set[str] = set()
    lines, varied, moved = _vertex(text, tree, outside, used) if text.vertex else ([], [], False)
    named = {n.text for f in tree.functions for n in walk(f.body) if n.op == "name"}
    for v in tree.variables:
        given = v.name in outside or v.name in (w.name for w in varied)
        if v.words & {"in", "varying"} and v.name in named and not given:
            problem = f"no vertex shader gives the {v.kind} {v.name!r}"
            source.fail_at(v.line, 0, problem, "Put its file, which ends in .vs, beside this one.")
    here = () if moved else ("gl_FragCoord", "isf_FragNormCoord")
    unit = Unit(source, tree, outside, text.values, here, "", text.edges, text.levels)
    names = unit.heads(g.name for g in text.given)
    body = [(1, line, 1) for line in _PLACE]
    body += [(1, f"g_{name} = {value}", 1) for name, (_, value) in text.special.items()]
    if text.vertex:
        body += [(1, line, 1) for line in _interpolated(text, varied, unit, moved)]
    body += unit.run()
    used |= unit.used
    kept = [g for g in text.given if g.kind != SAMPLER or text.whole or f"g_{g.name}" in used]
    if len(kept) < len(text.given):
        return make_kernel(replace(text, given=kept, whole=True), limits)
    shown = f"where(g_discard, vec4(0.0), {unit.globals[color].texts[0]})"
    if moved:
        shown = f"where(inside, {shown}, vec4(0.0))"
    head: Lines = [(0, f"def shade_({', '.join(names)}):", 1)]
    if unit.sites:
        head[0] = (0, f"def body_({', '.join(['x, y, g_a, g_b, g_s', *names])}):", 1)
        head.append((1, f"g_p = [{', '.join(['vec4(nan)'] * unit.sites)}]", 1))
        body.append((1, f"return {shown}, g_p", 1))
        body += _derived(unit, [f"g_{g.name}" for g in text.given], names)
    else:
        head.append((1, "y, x = position()", 1))
        body.append((1, f"return {shown}", 1))
    helpers = helper_lines(unit.helpers)
    return _declared(text, [*helpers, *lines, *unit.done, *head, *body, *_entry(text)], limits)


def _derived(unit: Unit, names: Sequence[str], heads: Sequence[str]) -> Lines:
    """Return the function that runs a shader with derivatives at both neighbors, then here."""
    unknown = f"[{', '.join(['vec4(nan)'] * unit.sites)}]"
    rest = ", ".join(["s", *names])
    return [
        (0, f"def shade_({', '.join(heads)}):", 1),
        (1, "y, x = position()", 1),
        (1, "h = shape()[0]", 1),
        (1, "sx, sy = (1 - 2 * (x & 1), 1 - 2 * ((h - 1 - y) & 1))", 1),
        (1, "s = vec2(f32(sx), f32(sy))", 1),
        (1, f"none = {unknown}", 1),
        (1, f"color, across = body_(x + sx, y, none, none, {rest})", 1),
        (1, f"color, up = body_(x, y - sy, none, none, {rest})", 1),
        (1, f"color, here = body_(x, y, across, up, {rest})", 1),
        (1, "return color", 1),
    ]


def _declared(text: ShaderText, lines: Lines, limits: Limits | None) -> Kernel:
    made = "\n".join("    " * indent + line for indent, line, _ in lines)
    places = tuple(max(place, 1) for _, _, place in lines)
    source = GlslSource(text.fragment, text.name, made=made, places=places)
    decl = declare(source)
    args = tuple(replace(a, sampled=True) for a in decl.args)
    labels = {parameter(g.name): g.label for g in text.given}
    params = tuple(replace(p, label=labels.get(p.name, "")) for p in decl.params)
    return Kernel(text.name, replace(decl, args=args, params=params, doc=text.doc), limits)


def _entry(text: ShaderText) -> Lines:
    images = [parameter(g.name) for g in text.given if g.kind == SAMPLER]
    params = [f"{parameter(g.name)}: {g.param}" for g in text.given if g.kind != SAMPLER]
    heads = [f"{name}: Image" for name in images] + ["*"] * bool(params) + params
    names = [parameter(g.name) for g in text.given]
    return [
        (0, f"def {text.name}({', '.join(heads)}) -> Pixel:", 1),
        (1, f"return shade_({', '.join(names)})", 1),
    ]


def _vertex(
    text: ShaderText, tree: UnitTree, outside: Mapping[str, GlslType], used: set[str]
) -> tuple[Lines, list[DeclaredName], bool]:
    """Return the lines of the vertex shader, its outputs, and whether it moves the corners."""
    source = KernelSource(text.vertex, f"{text.name} (vertex shader)")
    vertex = parsed(source, text.vertex)
    for name in _INIT:
        vertex.functions.append(GlslFunctionText(name, VOID, [], GlslNode("block", 1), 1))
    vertex.variables.insert(0, DeclaredName("gl_Position", VEC4, 1))
    unit = Unit(source, vertex, outside, text.values, mark="x")
    unit.start.emit("gx_gl_Position = vec4(g_isf_FragNormCoord * 2.0 - 1.0, 0.0, 1.0)")
    lines = unit.run()
    used |= unit.used
    moved = any("gl_Position" in unit.assigned(f.body) for f in vertex.functions)
    names = unit.heads(g.name for g in text.given)
    varied = [v for v in vertex.variables if _varies(v, tree)]
    results = [t for v in varied for t in unit.globals[v.name].texts]
    head: Lines = [
        (0, f"def vertex_({', '.join(['g_isf_FragNormCoord', *names])}):", 1),
        (1, "h, w = shape()", 1),
        (1, "g_RENDERSIZE = vec2(f32(w), f32(h))", 1),
        (1, "g_gl_FragCoord = vec4(0.0)", 1),
    ]
    back: Lines = [(1, f"return {', '.join([*results, 'gx_gl_Position'])}", 1)]
    text_lines = [*helper_lines(unit.helpers), *unit.done, *head, *lines, *back]
    return [(indent, line, 1) for indent, line, _ in text_lines], varied, moved


def _varies(v: DeclaredName, fragment: UnitTree) -> bool:
    """Return whether a variable of the vertex shader is one of the fragment shader too."""
    mine = v.words & {"out", "varying"}
    return bool(mine) and any(
        f.name == v.name and f.kind == v.kind and f.words & {"in", "varying"}
        for f in fragment.variables
    )


def _interpolated(
    text: ShaderText, varied: Sequence[DeclaredName], unit: Unit, moved: bool
) -> Iterable[str]:
    """Yield lines that set the outputs of the vertex shader at this pixel."""
    found: list[tuple[str, GlslType]] = []
    for v in varied:
        kinds = [k for _, k in leaves(v.kind, unit.tree.structs)]
        found += zip(unit.globals[v.name].texts, kinds, strict=True)
    names = ", ".join(f"g_{g.name}" for g in text.given)
    for corner, place in enumerate(_CORNERS):
        places = [f"c{corner}_{i}" for i in range(len(found))]
        call = f"vertex_(vec2({place}){', ' * bool(names)}{names})"
        yield f"{', '.join([*places, f'at{corner}'])} = {call}"
    if moved:
        yield from _PROJECTED
    else:
        yield "u, v = (g_isf_FragNormCoord.x, g_isf_FragNormCoord.y)"
        yield "low = u + v < 1.0"
    for index, (name, kind) in enumerate(found):
        corners = [f"c{corner}_{index}" for corner in range(4)]
        if kind.length:
            items = [[f"{c}[{i}]" for c in corners] for i in range(kind.length)]
            yield f"{name} = [{', '.join(_between(kind, c, moved) for c in items)}]"
        else:
            yield f"{name} = {_between(kind, corners, moved)}"


def _between(kind: GlslType, corners: Sequence[str], moved: bool) -> str:
    a, b, c, d = corners
    if kind.base != "float":
        return a
    low = f"{a} + ({b} - {a}) * u + ({c} - {a}) * v"
    if moved:
        return low
    return f"({low} if low else {d} + ({c} - {d}) * (1.0 - u) + ({b} - {d}) * (1.0 - v))"


#: Finds the place (u, v) whose projection is this pixel.
_PROJECTED: Final = (
    "to = g_isf_FragNormCoord * 2.0 - 1.0",
    "ax, ay = (at1 - at0, at2 - at0)",
    "m = mat2(ax.xy - to * ax.w, ay.xy - to * ay.w)",
    "g_isf_FragNormCoord = inverse(m) * (to * at0.w - at0.xy)",
    "u, v = (g_isf_FragNormCoord.x, g_isf_FragNormCoord.y)",
    "at = at0 + ax * u + ay * v",
    "inside = u >= 0.0 and u <= 1.0 and v >= 0.0 and v <= 1.0 and at.w > 0.0 and abs(at.z) <= at.w",
)
